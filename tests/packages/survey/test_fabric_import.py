"""Switch levels from topology.conf and from the output of ibnetdiscover."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.packages.survey.fabric_findings import fabric_levels
from proofmark.site.fabric import Fabric
from proofmark.site.hardware import bytes_per_s

SLURM = """
# three levels
SwitchName=chip1 Nodes=n[1-2]
SwitchName=chip2 Nodes=n3,n4 LinkSpeed=100
SwitchName=chip3 \\
  Nodes=n[10-11]
switchname=card1 switches=chip[1-2]
SwitchName=card2 Switches=chip3
SwitchName=core Switches=card[1-2]
"""
IBNET = """
#
# Topology file: generated on Mon Mar  2 10:00:00 2009
#
vendid=0x2c9
devid=0xb924
sysimgguid=0x2c90000000013
switchguid=0x2c90000000010(2c90000000010)
Switch	24 "S-0002c90000000010"		# "ISR9024 A" enhanced port 0 lid 1 lmc 0
[1]	"H-0002c90000000101"[1](2c90000000101) 		# "n1 HCA-1" lid 11 4xDDR
[2]	"H-0002c90000000102"[1](2c90000000102) 		# "n2 HCA-1" lid 12 4xDDR
[23]	"S-0002c90000000030"[1]		# "SPINE" lid 3 4xDDR

Switch	24 "S-0002c90000000020"		# "ISR9024 B" enhanced port 0 lid 2 lmc 0
[1]	"H-0002c90000000103"[1](2c90000000103) 		# "n3 HCA-1" lid 13 4xDDR
[23]	"S-0002c90000000030"[2]		# "SPINE" lid 3 4xDDR

Switch	24 "S-0002c90000000030"		# "SPINE" base port 0 lid 3 lmc 0
[1]	"S-0002c90000000010"[23]		# "ISR9024 A" lid 1 4xDDR
[2]	"S-0002c90000000020"[23]		# "ISR9024 B" lid 2 4xDDR

vendid=0x2c9
caguid=0x2c90000000100
Ca	2 "H-0002c90000000101"		# "n1 HCA-1"
[1](2c90000000101) 	"S-0002c90000000010"[1]		# lid 11 lmc 0 "ISR9024 A" lid 1 4xDDR

Ca	2 "H-0002c90000000102"		# "n2 HCA-1"
[1](2c90000000102) 	"S-0002c90000000010"[2]		# lid 12 lmc 0 "ISR9024 A" lid 1 4xDDR

Ca	2 "H-0002c90000000103"		# "n3 HCA-1"
[1](2c90000000103) 	"S-0002c90000000020"[1]		# lid 13 lmc 0 "ISR9024 B" lid 2 4xDDR
"""

YAML = """
- topology: gpu
  block: {block_sizes: [4, 16], blocks: [{block: b1, nodes: "gpu[1-4]"}]}
- topology: cpu
  cluster_default: true
  tree:
    switches:
      - switch: core
        children: card[1-2]
      - {switch: card1, children: "chip[1-2]"}
      - {switch: card2, children: chip3}
      - {switch: chip1, nodes: "n[1-2]"}
      - {switch: chip2, nodes: "n3,n4"}
      - {switch: chip3, nodes: "n[10-11]"}
- topology: one
  flat: true
"""
SHOWN = """
SwitchName=chip1 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=chip2 Level=0 LinkSpeed=1 Nodes=n[3-4]
SwitchName=chip3 Level=0 LinkSpeed=1 Nodes=n[10-11] Switches=(null)
SwitchName=card1 Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=chip[1-2]
SwitchName=card2 Level=1 LinkSpeed=1 Nodes=n[10-11] Switches=chip3
SwitchName=core Level=2 LinkSpeed=1 Nodes=n[1-4,10-11] Switches=card[1-2]
"""
"""The output of `scontrol show topology`."""
UNNAMED = (
    IBNET.replace("n1 HCA-1", "MT4123 ConnectX6 Mellanox Technologies")
    .replace("n2 HCA-1", "Mellanox Technologies Aggregation Node")
    .replace("n3 HCA-1", "localhost mlx5_0")
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(YAML, id="yaml"),
        pytest.param(SHOWN, id="scontrol"),
        pytest.param(SLURM.replace("\n", "\r\n"), id="line-ends"),
    ],
)
def test_other_forms_of_the_tree_of_slurm(text: str) -> None:
    assert fabric_levels(text, "f") == fabric_levels(SLURM, "f")


@pytest.mark.parametrize(
    "description",
    [
        "MT4123 ConnectX6   Mellanox Technologies",
        "MT25408 ConnectX Mellanox Technologies",
        "Mellanox Technologies Aggregation Node",
        "localhost mlx5_0",
        "localhost.localdomain HCA-1",
        "(none) HCA-1",
        "",
    ],
)
def test_an_adapter_without_a_host_is_no_host(
    description: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = IBNET.replace("n2 HCA-1", description)
    assert fabric_levels(text, "f")["switches-3"] == {"S-0002c90000000010": "n[1,3]"}
    file = tmp_path / "ibnet"
    file.write_text(text)
    assert main(["init", "--fabric", str(file)]) == 0
    assert f"in no level: H-0002c90000000102 ({description})" in capsys.readouterr().err


def test_the_ports_of_a_chassis_have_a_second_number() -> None:
    text = IBNET.replace("[23]\t", "[23][ext 4]\t")
    assert fabric_levels(text, "f") == fabric_levels(IBNET, "f")


def test_a_host_with_a_short_and_a_long_name_is_one_host() -> None:
    second = IBNET.replace("n3 HCA-1", "N1.cluster.local HCA-2")
    assert fabric_levels(second, "f")["switches-1"]["S-0002c90000000020"] == "n1"
    domains = IBNET.replace("n1 ", "n1.a ").replace("n2 ", "n1.b ").replace("n3 ", "n1 ")
    near = fabric_levels(domains, "f")["switches-1"]
    assert near["S-0002c90000000020"] == "n1", "which of the two it is, is not known"
    level = {"name": "leaf", "switches": {"s1": "cn01.x,cn02.x"}}
    fabric = Fabric.model_validate({"levels": [level]})
    assert fabric.location(0, "cn02") == {"leaf": "s1"}
    assert fabric.location(0, "cn02.y") == fabric.location(0, "cn03") == {}


def test_one_switch_with_all_nodes_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topology.conf"
    file.write_text("SwitchName=s1 Nodes=ALL\n")
    assert main(["init", "--fabric", str(file), "--levels", "switch"]) == 0
    assert "one switch has all nodes; there is no level below switch" in capsys.readouterr().err


def test_the_tree_of_slurm_has_a_level_for_each_row_of_switches() -> None:
    assert fabric_levels(SLURM, "topology.conf", ["chip", "line-card", "switch"]) == {
        "chip": {"chip1": "n[1-2]", "chip2": "n[3-4]", "chip3": "n[10-11]"},
        "line-card": {"chip1": "n[1-4]", "chip3": "n[10-11]"},
        "switch": {"chip1": "n[1-4,10-11]"},
    }
    assert list(fabric_levels(SLURM, "f")) == ["switches-1", "switches-3", "switches-5"]


def test_infiniband_levels_are_switches_on_the_path() -> None:
    assert fabric_levels(IBNET, "ibnet") == {
        "switches-1": {"S-0002c90000000010": "n[1-2]", "S-0002c90000000020": "n3"},
        "switches-3": {"S-0002c90000000010": "n[1-3]"},
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no switch and no adapter"),
        ("SwitchName=a Nodes=n1 Switches=b", "f:1: found SwitchName=a Nodes=n1 Switches=b"),
        ("SwitchName=a Switches=b", "Switches: found b; accepted: switches that have a line"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2", "no path from n1 to n2"),
        (f"{SLURM}SwitchName=two Switches=chip1", "f:9: found chip1 is below card1 and two"),
        (f"{SLURM}SwitchName=chip1 Nodes=n9", "f:9: found chip1 has two lines"),
        (f"{SLURM}SwitchName=chip4 Nodes=n3", "f:9: found n3 is below chip2 and chip4"),
        ("SwitchName=a Switches=a", "no switch with nodes"),
        (SLURM.replace("n[1-2]", "ALL"), "Nodes=ALL beside other switches with nodes"),
        ("BlockName=b1 Nodes=n[1-4]\nBlockSizes=4", "f:1: found BlockName=b1 Nodes=n[1-4]"),
        ("- topology: t\n  flat: true\n", "t (flat); accepted: a topology with a tree"),
        ("- topology: t\n  tree: {}\n", "t.tree.switches: found no switch"),
        (
            "- topology: t\n  tree: {switches: [{switch: s}]}",
            "f: t.tree.switches.0: found {'switch': 's'}",
        ),
        ("topology:\n - [", "not YAML"),
        ("- topology: a\n  tree: {}\n- topology: b\n  tree: {}\n", "the trees a, b, none of which"),
        (UNNAMED, "no adapter with the name of a host: MT4123 ConnectX6 Mellanox Technologies; "),
        (IBNET[: IBNET.index('Ca\t2 "H-0002c90000000101"')], "no switch and no adapter"),
        (
            IBNET.replace('[23]\t"S-', '[23]\t"X-').replace('[1]\t"S-', '[1]\t"X-'),
            "no path from n1 to n3",
        ),
    ],
)
def test_an_incomplete_file_is_refused(text: str, expected: str) -> None:
    with pytest.raises(BadInput) as error:
        fabric_levels(text, "f")
    assert expected in str(error.value)


def test_the_levels_of_nodes_are_those_of_their_own_tree() -> None:
    two = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\nSwitchName=top Switches=a,b\n"
    two += "SwitchName=alone Nodes=d[0-1]\n"
    levels = fabric_levels(two, "f", hosts=["n1", "n2", "n3"])
    assert levels == {
        "switches-1": {"a": "n[1-2]", "b": "n3"},
        "switches-3": {"a": "n[1-3]"},
    }
    assert fabric_levels(two, "f", hosts=["d0"]) == {"switches-1": {"alone": "d[0-1]"}}
    with pytest.raises(BadInput, match="no path from n1 to d0"):
        fabric_levels(two, "f", hosts=["n1", "d1"])


def test_a_ring_has_no_levels() -> None:
    names = ["S1", "S2", "S3", "S4"]
    text = ""
    for at, name in enumerate(names):
        ends = (names[at - 1], names[(at + 1) % 4])
        text += f'Switch\t4 "{name}"\t# "{name}" port 0\n[1]\t"H{at}"[1]\n'
        text += "".join(f'[{port}]\t"{end}"[3]\n' for port, end in enumerate(ends, start=2))
        text += f'Ca\t1 "H{at}"\t# "n{at} HCA-1"\n[1](0) \t"{name}"[1]\n'
    with pytest.raises(
        BadInput, match="two leaf switches at this distance whose neighbours differ"
    ):
        fabric_levels(text, "f")


def test_the_number_of_names_is_that_of_the_levels() -> None:
    with pytest.raises(BadInput, match="2 names for 3 levels; accepted: for 1, 3, 5 switches"):
        fabric_levels(SLURM, "f", ["chip", "switch"])


def test_the_output_of_the_command_can_be_used_as_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(SLURM)
    assert main(["init", "--fabric", str(file), "--levels", "chip,line-card,switch"]) == 0
    fabric = Fabric.model_validate(yaml.safe_load(capsys.readouterr().out)["fabric"])
    assert fabric.names == ["chip", "line-card", "switch"]
    hosts = list(enumerate(["n1", "n2", "n3", "n10", "stray"]))
    assert [fabric.distance(hosts[0], host) for host in hosts[1:]] == [
        "chip", "line-card", "switch", "switch"
    ]  # fmt: skip
    assert fabric.location(3, "n10") == {"chip": "chip3", "line-card": "chip3"}
    assert main(["init", "--fabric", str(tmp_path / "none")]) == 3


def test_the_rate_of_an_uplink_is_that_of_a_node_unless_it_is_declared() -> None:
    rates: list[float | str | None] = ["100 Gb/sec (4X EDR)", 5e9, None]
    assert [bytes_per_s(rate) for rate in rates] == [12.5e9, 5e9, None]
