"""The byte counters of networks, from trees of sysfs that follow the kernel's documentation."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.folders import ROOT

from proofmark.site.fabric import Network
from proofmark.site.node.networks import (
    Carrier,
    CounterSample,
    Division,
    carried,
    divided,
    read_samples,
)

SCRIPT = ROOT / "analysis/proofmark/jobs/shell/network.sh"
TREES = ROOT / "tests/data/sysfs"
SHELLS = {"dash": ["/usr/bin/dash"], "busybox": ["/usr/bin/busybox", "sh"]}
INFINIBAND, OMNI_PATH = Network(kind="infiniband"), Network(kind="omni-path")
SLINGSHOT, ETHERNET = Network(kind="slingshot"), Network(kind="ethernet")


def printed(tree: Path, moment: str, shell: str = "dash") -> str:
    command = [*SHELLS[shell], str(SCRIPT), moment]
    environment = {"PROBE_ROOT": str(tree), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=600
    ).stdout


def bump(tree: Path, counter: str, rise: int) -> None:
    path = tree / "sys/class" / counter
    value, at, time = path.read_text().partition("@")
    path.write_text(f"{int(value) + rise}{at}{time}\n")


def meanwhile(tmp_path: Path, name: str, rises: Mapping[str, int], network: Network) -> Division:
    """Return what the networks of the tree `name` carried while its counters rose by `rises`."""
    tree = tmp_path / name
    shutil.copytree(TREES / name, tree)
    before = read_samples(printed(tree, "before"))
    for counter, rise in rises.items():
        bump(tree, counter, rise)
    after = read_samples(printed(tree, "after"))[-1]
    return divided(carried(before, after), network, after)


def others(division: Division) -> dict[str, float]:
    return {each.name: each.bytes for each in division.others if each.bytes}


PORT = "infiniband/{}/ports/1/counters{}/port_{}_data{}"


@pytest.mark.parametrize(
    ("tree", "adapter", "folder", "unit", "network"),
    [
        ("infiniband", "mlx5_0", ("", ""), 4, INFINIBAND),
        ("infiniband-old-kernel", "mlx4_0", ("_ext", "_64"), 4, INFINIBAND),
        ("omni-path", "hfi1_0", ("", ""), 8, OMNI_PATH),
        ("roce-and-bond", "mlx5_bond_0", ("", ""), 4, Network(kind="ethernet")),
    ],
)
def test_the_unit_of_each_driver(
    tmp_path: Path, tree: str, adapter: str, folder: tuple[str, str], unit: int, network: Network
) -> None:
    """4 octets for InfiniBand, also in the counters of old kernels; 8 for Omni-Path."""
    rises = {
        PORT.format(adapter, folder[0], which, folder[1]): rise
        for which, rise in (("xmit", 1000), ("rcv", 500))
    }
    division = meanwhile(tmp_path, tree, rises, network)
    assert (division.intended, others(division)) == (1500 * unit, {})


WAYS = ("In", "Out")
HARDWARE = "infiniband/{}/ports/1/hw_counters/{}"


@pytest.mark.parametrize(
    ("tree", "counters", "network"),
    [
        ("efa", [HARDWARE.format("rdmap0s6", f"{way}_bytes") for way in ("tx", "rx")], ETHERNET),
        ("efa", [HARDWARE.format("rdmap0s6", "rdma_read_bytes")], ETHERNET),
        (
            "irdma",
            [HARDWARE.format("irdma0", f"ip4{way}Octets") for way in WAYS],
            ETHERNET,
        ),
        ("bnxt-re", [HARDWARE.format("bnxt_re0", "tx_bytes")], ETHERNET),
        ("slingshot", ["cxi/cxi0/device/telemetry/hni_sts_tx_ok_octets"], SLINGSHOT),
    ],
)
def test_drivers_that_count_bytes(
    tmp_path: Path, tree: str, counters: list[str], network: Network
) -> None:
    division = meanwhile(tmp_path, tree, dict.fromkeys(counters, 1000), network)
    assert (division.intended, others(division)) == (1000 * len(counters), {})


def test_tcp_over_slingshot_is_another_network(tmp_path: Path) -> None:
    """The adapter counts the bytes of its interface, too."""
    octets = "cxi/cxi0/device/telemetry/hni_sts_rx_ok_octets"
    rises = {octets: 9000, "net/hsn0/statistics/rx_bytes": 9000}
    division = meanwhile(tmp_path, "slingshot", rises, SLINGSHOT)
    assert (division.intended, others(division)) == (0, {"hsn0": 9000})


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_the_script_in_two_shells(shell: str) -> None:
    idle, start = read_samples(printed(TREES / "omni-path", "before", shell))
    assert start.uptime - idle.uptime >= 0.9
    assert {name: each.kind for name, each in start.carriers.items()} == {
        "hfi1_0/1": "omni-path",
        "eth0": "ethernet",
        "ib0": "ip-over-infiniband",
    }
    assert start.carriers == idle.carriers


def test_ip_over_infiniband_is_another_network(tmp_path: Path) -> None:
    """TCP over the same port: the counters of the port and of ib0 both rise."""
    rises = {PORT.format("mlx5_0", "", "xmit", ""): 2500, "net/ib0/statistics/tx_bytes": 9000}
    division = meanwhile(tmp_path, "infiniband", rises, INFINIBAND)
    assert (division.intended, others(division)) == (1000, {"ib0": 9000})


def test_an_interface_above_others_counts_once(tmp_path: Path) -> None:
    """The bond has the bytes of its two interfaces again. Its name means these interfaces."""
    rises = {f"net/{name}/statistics/rx_bytes": 10 for name in ("eth0", "eth1")}
    rises["net/bond0/statistics/rx_bytes"] = 20
    division = meanwhile(
        tmp_path, "roce-and-bond", rises, Network(kind="ethernet", interfaces=["bond*"])
    )
    assert (division.intended, others(division)) == (20, {})
    adapter = Network(kind="ethernet", interfaces=["mlx5_*"])
    division = meanwhile(tmp_path / "adapter", "roce-and-bond", rises, adapter)
    assert (division.intended, others(division)) == (0, {"eth0": 10, "eth1": 10})


def sample(uptime: float, **bytes_: int | None) -> CounterSample:
    carriers = {name: Carrier(name, "ethernet", total) for name, total in bytes_.items()}
    return CounterSample("2026-11-21T10:18:00Z", uptime, carriers)


@given(rate=st.integers(0, 10**9), seconds=st.integers(1, 1000), moved=st.integers(0, 10**12))
def test_the_traffic_before_the_step_is_subtracted(rate: int, seconds: int, moved: int) -> None:
    before = [sample(10, eth0=0), sample(11, eth0=rate)]
    after = sample(11 + seconds, eth0=rate + seconds * rate + moved)
    (eth0,) = carried(before, after)
    assert eth0.bytes == pytest.approx(moved, abs=1e-3 * (rate + 1))


@pytest.mark.parametrize(
    ("start", "end", "found"), [(5, 7, 2), (7, 5, 0), (None, 7, 0), (5, None, 0)]
)
def test_a_counter_that_tells_nothing(start: int | None, end: int | None, found: int) -> None:
    (eth0,) = carried([sample(10, eth0=start)], sample(20, eth0=end))
    assert eth0.bytes == found


def test_an_interface_that_appeared_counts_from_zero() -> None:
    found = carried([sample(10)], sample(20, eth0=7))
    assert [each.bytes for each in found] == [7]


@pytest.mark.parametrize("count", ["4294967295", "18446744073709551615", "-1"])
@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("adapter mlx4_0 1 InfiniBand {} 12", 48),
        ("bytes efa_0 1 Unknown 12 {}", 12),
        ("interface eth0 1 {} 12 -", 12),
    ],
)
def test_a_value_that_is_no_count_is_unknown(line: str, known: int, count: str) -> None:
    for value, total in ((count, None), ("0", known)):
        text = f"sample 2026-11-21T10:18:00Z 5.00\n{line.format(value)}\nend\n"
        (found,) = read_samples(text)
        (carrier,) = found.carriers.values()
        assert carrier.total == total


@pytest.mark.parametrize(
    "text",
    [
        "",
        "end\n",
        "sample 2026-11-21T10:18:00Z 5.00\n",
        "interface eth0 1 2 3 -\nend\n",
        "sample 2026-11-21T10:18:00Z 5.00\nnonsense\nend\n",
        "sample a b\nend\n",
    ],
)
def test_a_damaged_sample_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_samples(text)


def test_an_unknown_moment_is_refused() -> None:
    done = subprocess.run(
        ["sh", str(SCRIPT), "meanwhile"], capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "accepted: before, after" in done.stderr
