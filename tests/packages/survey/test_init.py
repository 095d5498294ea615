"""`proofmark init`: an inventory from what a scheduler and nodes report, and its differences."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.emulators.bmc.server import Emulator
from tests.fixtures.kit import make_kit
from tests.fixtures.probes import probe_text
from tests.fixtures.survey import (
    SCHEDULERS,
    TOOLS,
    node_that_reports,
    put_command,
    slurm_nodes,
    tools_output,
)
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.packages.survey.answers import ListedNode, NodeKind, NodeReport, Survey
from proofmark.packages.survey.collection import (
    is_this_machine,
    node_runner,
    read_section,
    site_runner,
    survey,
)
from proofmark.packages.survey.findings import environments_in
from proofmark.packages.survey.inventory_files import inventory_files, write_files
from proofmark.site.access import Access, HostAccess
from proofmark.site.groups import comments
from proofmark.site.inventory import load_sites
from proofmark.site.node.facts import parse_probe

SKL = probe_text("skl-2x6148")
NAMES = [f"skl{number:04d}" for number in range(1, 65)]
NODE = "skl0007"
SHOW_NODE = "--all --oneliner show node"
SHOW_PARTITION = "--all --oneliner show partition"
SHOW_TOPOLOGY = "--oneliner show topology"
Run = Callable[[str, str], str]
Reads = Callable[[Run], None]
Called = Callable[..., tuple[int, str, str]]
UseSlurm = Callable[..., None]


@pytest.fixture(autouse=True)
def checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    return tmp_path / "inventory" / "mysite"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Return a function that replaces how scripts run on nodes."""

    def use(run_script: Run) -> None:
        for runner in ("node_runner", "site_runner"):
            monkeypatch.setattr(
                f"proofmark.packages.survey.init.{runner}", lambda *_, **__: run_script
            )

    return use


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UseSlurm:
    """Return a function that puts a scontrol with these nodes and switches into PATH."""

    def use(
        nodes: str = slurm_nodes(NAMES, Partitions="normal"), switches: str = "", **limits: str
    ) -> None:
        partitions = (SCHEDULERS / "slurm-partitions.txt").read_text()
        partitions = partitions.replace("PartitionName=knl", "PartitionName=normal")
        for key, value in limits.items():
            partitions = partitions.replace(f"{key}=UNLIMITED", f"{key}={value}")
        answers = {SHOW_NODE: nodes, SHOW_PARTITION: partitions, SHOW_TOPOLOGY: switches}
        put_command(tmp_path / "bin", "scontrol", answers, monkeypatch)

    return use


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str]) -> Called:
    def call(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


def partition(inventory: Path, name: str = "normal") -> dict[str, object]:
    text = (inventory / "group_vars" / name / "partition.yml").read_text(encoding="utf-8")
    facts: dict[str, object] = yaml.safe_load(text)["partition"]
    return facts


class TestSlurmAndLustre:
    """64 nodes of two sockets, Slurm, Lustre, InfiniBand EDR: the recorded probe of such a node."""

    @pytest.fixture(autouse=True)
    def site(self, slurm: UseSlurm, reads: Reads) -> None:
        leaves = "SwitchName=l1 Level=0 Nodes=skl[0001-0032]\nSwitchName=l2 Level=0 Nodes="
        slurm(
            switches=f"{leaves}skl[0033-0064]\n"
            "SwitchName=top Level=1 LinkSpeed=1 Nodes=skl[0001-0064] Switches=l[1-2]\n",
            MaxTime="2-00:00:00",
            MaxNodes="32",
        )
        reads(node_that_reports(SKL))

    @pytest.mark.core("the package works")
    def test_the_inventory_is_valid_without_an_answer(
        self, inventory: Path, called: Called
    ) -> None:
        code, printed, said = called("init", inventory, "--from-node", NODE, "--scheduler", "slurm")
        assert code == 0
        assert "partition normal: skl[0001-0064]\n" in printed
        assert "proofmark: slurm: scontrol show node\n" in said
        assert f"proofmark: {NODE}: probe.sh\n" in said
        code, printed, said = called("check", "-i", inventory)
        assert (code, said) == (0, "")
        assert re.search(r"^normal +node ", printed, re.MULTILINE)
        code, printed, _ = called(
            "plan", "-i", inventory, "-l", "normal", "--suite", "node", "--json"
        )
        assert code == 0
        assert json.loads(printed)["totals"]["steps"] > 0

    @pytest.mark.parametrize(
        ("system", "asked"),
        [
            ("CentOS Linux 7 (Core)", True),
            ("Rocky Linux 9.4 (Blue Onyx)", True),
            ("Debian GNU/Linux 13 (trixie)", True),
            ("Debian GNU/Linux 12 (bookworm)", False),
        ],
    )
    def test_a_system_without_a_lock_of_spack_is_a_question(
        self, inventory: Path, called: Called, reads: Reads, system: str, asked: bool
    ) -> None:
        reads(node_that_reports(SKL.replace("CentOS Linux 7 (Core)", system)))
        called("init", inventory, "--from-node", NODE, "--scheduler", "slurm")
        text = (inventory / "group_vars/normal/partition.yml").read_text(encoding="utf-8")
        question = (
            f"environments/skl has debian12. The node runs {system}. There, `proofmark lock skl"
        )
        assert (question in text) == asked

    def test_the_facts_are_those_of_the_scheduler_and_the_node(
        self, inventory: Path, called: Called
    ) -> None:
        called("init", inventory, "--from-node", f"{NODE}.cluster", "--scheduler", "slurm")
        hosts = yaml.safe_load((inventory / "hosts.yml").read_text(encoding="utf-8"))
        compute = hosts["all"]["children"]["compute"]["children"]
        assert compute == {"normal": {"hosts": {"skl[0001:0064]": None}}}
        facts = partition(inventory)
        sources = {
            "cpu_model": f"/proc/cpuinfo of {NODE}",
            "architecture": f"archspec, from /proc/cpuinfo of {NODE}",
            "topology": f"lstopo --of xml on {NODE}",
            "clock_hz": f"cpufreq, for {NODE}",
        }
        node = facts.pop("node")
        assert isinstance(node, dict)
        table = node["sources"].pop("flop_per_cycle")
        sources["memory"] = f"/proc/meminfo and the control groups of {NODE}"
        sources["llc_bytes"] = f"/sys/devices/system/cpu of {NODE}"
        assert table.startswith("the table of processors: ")
        assert node == {
            "cpu_model": "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz",
            "architecture": "skylake_avx512",
            "topology": f"{NODE}.xml",
            "clock_hz": 2.4e9,
            "flop_per_cycle": 32,
            # The recorded topology has no sizes.
            "memory": {"bytes": 196000000 * 1024},
            "llc_bytes": 2 * 28160 * 1024,
            "sources": sources,
        }
        place = "scontrol show topology"
        assert facts == {
            "environment": "skl",
            "provision_from": "spack",
            "facts": {"stream_array_size": 64000000, "threaded_blas": 1, "hpl_nb": 192},
            "scheduler": "slurm",
            "queue": {"name": "normal", "max_walltime_s": 2 * 86400},
            "nodes_per_job": 32,
            "scratch": {
                "path": "/scratch/proofmark",
                "type": "lustre",
                "source": "10.1.1.1@o2ib:/scratch",
                "off_root": True,
            },
            "fabric": {
                "levels": [
                    {
                        "name": "switches-1",
                        "switches": {"l1": "skl[0001-0032]", "l2": "skl[0033-0064]"},
                    }
                ],
                "top": "switches-3",
                "source": place,
                "rate": "100 Gb/sec (4X EDR)",
                "network": {"kind": "infiniband", "interfaces": ["mlx5_0"]},
            },
        }

    def test_every_fact_has_a_source(self, inventory: Path, called: Called) -> None:
        called("init", inventory, "--from-node", NODE)
        text = (inventory / "group_vars/normal/partition.yml").read_text(encoding="utf-8")
        _, _, below = text.partition("\n  environment:")
        values = [line for line in below.splitlines() if re.match(r" +[a-z_]+: \S", line)]
        without = [line.split(":")[0].strip() for line in values if "  # " not in line]
        # The names and nodes of switches have the source of `levels`; the others are assumed.
        assert set(without) <= {"hpl_nb", "provision_from", "l1", "l2"}
        found = yaml.safe_load((inventory / "group_vars/normal/found.yml").read_text())
        facts = found["proofmark_found"][NODE]
        assert all(set(entry) == {"value", "source"} for entry in facts.values())
        assert facts["compilers"]["value"] == [
            "gcc 11.5.0, /usr/bin/gcc",
            "icx 2024.2.1, /opt/intel/bin/icx",
        ]
        assert facts["mpi"]["value"] == ["mpirun 4.1.6, /opt/ompi/bin/mpirun"]
        assert facts["modules"]["value"] == ["GCC/13.2.0", "OpenMPI/4.1.6-GCC-13.2.0"]
        assert facts["dimms"]["source"] == f"dmidecode -t memory of {NODE}"
        assert {"bios", "fabric_ports", "nics", "kernel", "microcode"} <= set(facts)

    def test_an_inventory_that_was_just_written_has_no_difference(
        self, inventory: Path, called: Called
    ) -> None:
        called("init", inventory, "--from-node", NODE)
        before = content(inventory)
        code, printed, _ = called("init", "--diff", inventory, "--from-node", NODE)
        assert (code, printed) == (0, "differences: 0\n")
        assert content(inventory) == before

    @pytest.mark.fault("init-file-exists")
    def test_no_file_is_replaced(self, inventory: Path, called: Called) -> None:
        called("init", inventory, "--from-node", NODE)
        before = content(inventory)
        code, printed, said = called("init", inventory, "--from-node", NODE)
        assert (code, printed) == (3, "")
        assert "hosts.yml: found an existing inventory" in said
        assert "init --diff" in said
        assert content(inventory) == before
        (inventory / "hosts.yml").unlink()
        code, _, said = called("init", inventory, "--from-node", NODE)
        names = ("partition.yml", "found.yml", f"{NODE}.xml")
        listed = ", ".join(f"group_vars/normal/{name}" for name in names)
        assert code == 3
        assert f"{inventory}: found {listed} already" in said
        assert not (inventory / "hosts.yml").exists()

    def test_a_link_of_unknown_rate_keeps_its_network(
        self, inventory: Path, called: Called, reads: Reads
    ) -> None:
        odd = SKL.replace("100 Gb/sec (4X EDR)", "1600 Gb/sec (4X ZDR)")
        reads(node_that_reports(odd, TOOLS))
        _, printed, _ = called("init", inventory, "--from-node", NODE)
        fabric = partition(inventory)["fabric"]
        assert isinstance(fabric, dict) and "rate" not in fabric
        assert fabric["network"] == {"kind": "infiniband", "interfaces": ["mlx5_0"]}
        question = "fabric.rate: how many bytes/s has a link of '1600 Gb/sec (4X ZDR)'?"
        assert question in printed
        assert f"# QUESTION: {question}" in (
            inventory / "group_vars/normal/partition.yml"
        ).read_text(encoding="utf-8")

    def test_slingshot_is_found_by_its_driver(
        self, inventory: Path, called: Called, reads: Reads
    ) -> None:
        text = re.sub(r"=== fabric\n(?:[|!].*\n)*", "=== fabric\n", SKL)
        text = text.replace("| ib0 operstate", "| ib0 driver: cxi_ss1\n| ib0 operstate")
        reads(node_that_reports(text, TOOLS))
        called("init", inventory, "--from-node", NODE)
        fabric = partition(inventory)["fabric"]
        assert isinstance(fabric, dict) and fabric["network"] == {"kind": "slingshot"}

    @pytest.mark.parametrize(
        ("mount", "found"),
        [
            (("wekafs", "weka1/scratch", "rw"), True),
            (("fuse.daos", "dfuse", "rw,user_id=0"), True),
            (("nfs", "vast:/scratch", "rw,vers=3,remoteports=10.0.0.1-10.0.0.8"), True),
            (("nfs", "filer:/scratch", "rw,vers=3"), False),
        ],
    )
    def test_a_parallel_file_system_is_the_scratch(
        self,
        inventory: Path,
        called: Called,
        reads: Reads,
        mount: tuple[str, str, str],
        found: bool,
    ) -> None:
        kind, source, options = mount
        line = f"| {source} /scratch {kind} {options} 0 0"
        probe, count = re.subn(r"\| \S+ /scratch lustre .*", line, SKL)
        assert count == 1
        reads(node_that_reports(probe, TOOLS))
        called("init", inventory, "--from-node", NODE)
        scratch = partition(inventory).get("scratch", {})
        assert isinstance(scratch, dict)
        assert (scratch.get("type"), scratch.get("source")) == (
            (kind, source) if found else (None, None)
        )

    @pytest.mark.parametrize(
        ("installed", "usable", "asked"),
        [(98, 196, True), (98, 60, True), (98, 98, False), (98, 96, False)],
    )
    def test_memory_that_two_readings_do_not_agree_on_is_asked(
        self,
        inventory: Path,
        called: Called,
        reads: Reads,
        installed: int,
        usable: int,
        asked: bool,
    ) -> None:
        """The topology has `installed` GB, and /proc/meminfo `usable` GB."""
        numa = f'type="NUMANode" local_memory="{installed * 10**9 // 2}"'
        probe = SKL.replace('type="NUMANode"', numa).replace("| machine: none", "| machine: kvm")
        probe = re.sub(r"MemTotal: +\d+ kB", f"MemTotal: {usable * 10**6} kB", probe)
        probe = re.sub(r"(node[01] meminfo:) +\d+ kB", rf"\1 {usable * 10**6 // 2} kB", probe)
        reads(node_that_reports(probe, TOOLS))
        _, printed, _ = called("init", inventory, "--from-node", NODE)
        node = partition(inventory)["node"]
        assert isinstance(node, dict) and "memory" not in node
        question = "node.memory.bytes: which memory do programs have?"
        written = (inventory / "group_vars/normal/partition.yml").read_text(encoding="utf-8")
        assert (question in printed) == (f"# QUESTION: {question}" in written) == asked
        assert ("a virtual machine (kvm)" in printed) == asked

    @pytest.mark.fault("init-changed-machine")
    def test_each_difference_is_one_line_with_its_place_and_source(
        self, inventory: Path, called: Called, slurm: UseSlurm, reads: Reads
    ) -> None:
        called("init", inventory, "--from-node", NODE)
        slurm(slurm_nodes(NAMES[:63], Partitions="normal"), MaxTime="1-00:00:00", MaxNodes="32")
        changed = SKL.replace("100 Gb/sec (4X EDR)", "50 Gb/sec (2X EDR)").replace(
            "/scratch lustre", "/scratch nfs4"
        )
        assert changed != SKL
        tools = {**TOOLS, "mpi": "| mpirun: /opt/ompi/bin/mpirun: mpirun (Open MPI) 5.0.1\n"}
        reads(node_that_reports(changed, tools))
        before = content(inventory)
        code, printed, _ = called("init", "--diff", inventory, "--from-node", NODE)
        assert code == 1
        folder = inventory / "group_vars" / "normal"
        lines = [re.sub(r"(partition\.yml):\d+", r"\1", line) for line in printed.splitlines()]
        assert lines == [
            f"{inventory}/hosts.yml: normal.hosts: declared skl[0001-0064]; found skl[0001-0063] "
            "(scontrol show node)",
            f"{folder}/partition.yml: partition.queue.max_walltime_s: declared 172800; found 86400 "
            "(scontrol show partition)",
            f"{folder}/partition.yml: partition.scratch.type: declared lustre; found nfs4 "
            f"(/proc/mounts of {NODE}: /scratch)",
            f"{folder}/partition.yml: partition.fabric.rate: declared 100 Gb/sec (4X EDR); found "
            f"50 Gb/sec (2X EDR) (/sys/class/infiniband/mlx5_0/ports/1/rate of {NODE})",
            f"{folder}/found.yml: proofmark_found.{NODE}.fabric_ports: declared mlx5_0/1, "
            "4: ACTIVE, 100 Gb/sec (4X EDR); found mlx5_0/1, 4: ACTIVE, 50 Gb/sec (2X EDR) "
            f"(/sys/class/infiniband of {NODE})",
            f"{folder}/found.yml: proofmark_found.{NODE}.mpi: declared mpirun 4.1.6, "
            "/opt/ompi/bin/mpirun; found mpirun 5.0.1, /opt/ompi/bin/mpirun "
            f"(--version of each program on {NODE})",
            "differences: 6",
        ]
        assert content(inventory) == before

    @pytest.mark.fault("init-changed-machine")
    def test_another_topology_is_a_difference(self, inventory: Path, called: Called) -> None:
        called("init", inventory, "--from-node", NODE)
        xml = inventory / "group_vars/normal" / f"{NODE}.xml"
        facts = inventory / "group_vars/normal/partition.yml"
        xml.unlink()
        synthetic = "pack:2 [numa(memory=48GiB)] l3:1(size=27MiB) l2:20(size=1MiB) core:1 pu:2"
        text = facts.read_text().replace(f"topology: {NODE}.xml", f"topology: '{synthetic}'")
        text = text.replace("clock_hz: 2400000000.0", "clock_hz: 2.1e+9")
        facts.write_text(text.replace(f" bytes: {196000000 * 1024}", " bytes: 100000000000"))
        code, printed, _ = called("init", "--diff", inventory, "--from-node", NODE)
        assert code == 1
        keys = re.findall(r"partition\.yml:\d+: partition\.node\.([a-z_:. ]+): declared", printed)
        assert {"clock_hz", "topology: threads_per_core", "memory.bytes"} <= set(keys)

    def test_another_queue_with_all_the_nodes_is_no_difference(
        self, inventory: Path, called: Called, slurm: UseSlurm
    ) -> None:
        called("init", inventory, "--from-node", NODE)
        facts = inventory / "group_vars/normal/partition.yml"
        facts.write_text(facts.read_text().replace("name: normal", "name: long"))
        slurm(slurm_nodes(NAMES, Partitions="normal,long"), MaxTime="1-00:00:00")
        assert called("init", "--diff", inventory, "--from-node", NODE)[0] == 0
        slurm(slurm_nodes(NAMES, Partitions="normal"))
        code, printed, _ = called("init", "--diff", inventory, "--from-node", NODE)
        assert code == 1
        assert "partition.queue.name: declared long; found normal" in printed

    def test_a_node_outside_the_scheduler_is_refused_with_a_suggestion(
        self, inventory: Path, called: Called
    ) -> None:
        code, _, said = called("init", inventory, "--from-node", "sk0007")
        assert code == 3
        assert "--from-node: found 'sk0007', did you mean 'skl0007'?" in said
        assert not inventory.exists()


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.fault("init-tool-fails")
@pytest.mark.parametrize("scheduler", ["slurm", ""])
def test_a_scheduler_that_does_not_answer_becomes_a_question(
    inventory: Path, called: Called, slurm: UseSlurm, reads: Reads, scheduler: str, tmp_path: Path
) -> None:
    slurm()
    broken = tmp_path / "bin" / "scontrol"
    broken.write_text("#!/bin/sh\necho 'slurm_load_node error: Unable to contact' >&2\nexit 1\n")
    reads(node_that_reports(SKL))
    words = ["--scheduler", scheduler] if scheduler else []
    code, _, said = called("init", inventory, "--from-node", NODE, *words)
    assert code == 0
    assert "Unable to contact" in said
    text = (inventory / "hosts.yml").read_text()
    assert re.search(r"# QUESTION: hosts: which other nodes .* Unable to contact", text)
    assert "skl0007:" in text
    assert partition(inventory, "skl")["scheduler"] == (scheduler or "none")


@pytest.mark.fault("init-tool-fails")
def test_a_node_that_is_not_reached_leaves_questions_that_validate_prints(
    inventory: Path, called: Called, slurm: UseSlurm, reads: Reads
) -> None:
    def unreachable(node: str, text: str) -> str:
        raise NodeError(Outcome.UNREACHABLE, f"{node}: ssh: connect to port 22: {{{{ refused")

    slurm()
    reads(unreachable)
    code, printed, _ = called("init", inventory, "--from-node", NODE, "--scheduler", "slurm")
    assert code == 0
    asked = [line for line in printed.splitlines() if line.startswith("question: ")]
    needed = {line.split(": ")[2] for line in asked if line.endswith(" (needs an answer)")}
    keys = ("node.cpu_model", "node.architecture", "node.topology")
    assert needed == {*keys, "environment", "provision_from", "scratch.path"}
    counts = f"questions: {len(asked)}, of which 6 need an answer; grep -rn QUESTION: "
    assert counts in printed
    marked = re.findall(r"QUESTION: ", "".join(map(Path.read_text, inventory.rglob("*.yml"))))
    assert len(asked) == len(marked)
    code, printed, said = called("check", "-i", inventory)
    assert (code, printed) == (3, "")
    file = f"{inventory}/group_vars/normal/partition.yml"
    for key in needed:
        assert re.search(
            rf"^proofmark: {file}:\d+: partition\.{key}: found the question: .+; accepted: the",
            said,
            re.MULTILINE,
        ), key
    assert len(said.splitlines()) == 6


@pytest.mark.fault("init-unanswered")
def test_a_command_does_not_run_with_an_unanswered_question(
    inventory: Path, called: Called, slurm: UseSlurm, reads: Reads
) -> None:
    slurm()
    reads(node_that_reports(SKL.replace("/scratch lustre", "/scratch xfs")))
    called("init", inventory, "--from-node", NODE)
    code, printed, said = called("plan", "-i", inventory, "-l", "normal", "--suite", "node")
    assert (code, printed) == (3, "")
    assert "partition.scratch.path: found the question: Which directory" in said
    assert "NFS there: /home (nfs4, nas:/my home)" in said
    file = inventory / "group_vars/normal/partition.yml"
    answered = re.sub(r"path: .*QUESTION.*", "path: /home/bench", file.read_text())
    file.write_text(answered)
    assert called("plan", "-i", inventory, "-l", "normal", "--suite", "node")[0] == 0


def answer_about_array(inventory: Path, called: Called) -> bool:
    """Answer the question of `init` about STREAM's array, and return whether it was asked.

    `check` refuses an inventory with this question. It prints the smallest accepted array.
    """
    (file,) = inventory.glob("group_vars/*/partition.yml")
    text = file.read_text(encoding="utf-8")
    asked = "QUESTION: facts.array: an array has " in text
    code, _, said = called("check", "-i", inventory)
    assert code == (3 if asked else 0), said
    if asked:
        least = re.search(r"facts\.stream_array_size: found \d+; accepted: at least (\d+):", said)
        assert least, said
        answered = re.sub(r"stream_array_size: \d+", f"stream_array_size: {least[1]}", text)
        file.write_text(answered, encoding="utf-8")
        assert called("check", "-i", inventory)[0] == 0
    return asked


@pytest.mark.parametrize(("kilobytes", "asked"), [(28160, False), (281600, True)])
def test_an_array_smaller_than_the_caches_is_a_question(
    inventory: Path, called: Called, slurm: UseSlurm, reads: Reads, kilobytes: int, asked: bool
) -> None:
    slurm()
    reads(node_that_reports(SKL.replace("L3 Unified 28160K", f"L3 Unified {kilobytes}K")))
    called("init", inventory, "--from-node", NODE)
    assert answer_about_array(inventory, called) == asked


def test_questions_that_need_no_answer_are_printed_by_validate(
    inventory: Path, called: Called, slurm: UseSlurm, reads: Reads
) -> None:
    slurm()
    reads(node_that_reports(SKL))
    called("init", inventory, "--from-node", NODE)
    code, printed, _ = called("check", "-i", inventory)
    assert code == 0
    asked = [line for line in printed.splitlines() if line.startswith("question: ")]
    keys = [re.sub(r"^question: \S+: ([a-z_.]+).*", r"\1", line) for line in asked]
    assert {"queue.account", "fabric.levels", "firmware", "contract"} <= set(keys)
    written = "".join(path.read_text() for path in inventory.rglob("*.yml"))
    assert written.count("# QUESTION: ") == len(asked)


def test_a_processor_without_a_name_is_a_question(
    inventory: Path, called: Called, slurm: UseSlurm, reads: Reads
) -> None:
    slurm()
    reads(node_that_reports(re.sub(r"\| model name\t?: .*\n", "", SKL)))
    called("init", inventory, "--from-node", NODE)
    with pytest.raises(BadInput, match=r"node\.cpu_model: found the question: Which processor"):
        load_sites(inventory, "normal")


def test_two_kinds_of_nodes_are_two_partitions_and_each_needs_a_node(
    inventory: Path, called: Called, slurm: UseSlurm, reads: Reads
) -> None:
    fat = [f"fat{number}" for number in range(1, 5)]
    slurm(
        slurm_nodes(NAMES, Partitions="normal")
        + slurm_nodes(fat, Partitions="fat", RealMemory=1500000)
    )
    reads(node_that_reports(SKL))
    code, printed, _ = called("init", inventory, "--from-node", NODE)
    assert code == 0
    assert "partition fat: fat[1-4]\n" in printed
    (normal,) = load_sites(inventory, "normal")
    assert len(normal.hosts) == 64
    with pytest.raises(BadInput, match=r"Run init with --from-node fat1 too. .* Sockets=2"):
        load_sites(inventory, "fat")
    both = inventory.with_name("both")
    called("init", both, "--from-node", NODE, "--from-node", "fat1")
    assert [site.partition_name for site in load_sites(both, "compute")] == ["fat", "normal"]


def test_the_switches_of_an_infiniband_fabric_are_found_without_the_scheduler(
    inventory: Path, called: Called, slurm: UseSlurm, reads: Reads
) -> None:
    slurm(slurm_nodes(NAMES[:4], Partitions="normal"))
    printed = (SCHEDULERS / "ibnetdiscover.txt").read_text().splitlines()
    fabric = "".join(f"| {line}\n" for line in printed)
    reads(node_that_reports(SKL, {**TOOLS, "fabric": fabric}))
    assert called("init", inventory, "--from-node", "skl0001")[0] == 0
    (site,) = load_sites(inventory, "normal")
    switches = [site.location(host)["switches-1"] for host in site.hosts]
    assert switches[0] == switches[1] != switches[2] == switches[3]
    assert site.partition.fabric.source == "ibnetdiscover on skl0001"
    facts = inventory / "group_vars/normal/partition.yml"
    text = facts.read_text()
    assert "skl[0001-0002]" in text
    text = text.replace("skl[0001-0002]", "skl[0001,0003]")
    facts.write_text(text.replace("skl[0003-0004]", "skl[0002,0004]"))
    code, printed_lines, _ = called("init", "--diff", inventory, "--from-node", "skl0001")
    declared = "declared skl[0001,0003]; skl[0002,0004]"
    found = "found skl[0001-0002]; skl[0003-0004] (ibnetdiscover on skl0001)"
    assert code == 1
    assert f"partition.fabric.levels: switches-1: {declared}; {found}\n" in printed_lines


@pytest.mark.parametrize(
    ("scheduler", "commands", "node", "cpus"),
    [
        ("pbs", {"pbsnodes": {"-a -F json": "pbsnodes.json"}}, "cn001", 40),
        (
            "sge",
            {"qhost": {"-q -xml": "sge-qhost.xml"}, "qconf": {"-sel": "sge-hosts"}},
            "knl0001",
            None,
        ),
        (
            "lsf",
            {
                "bhosts": {"-X -w": "lsf-bhosts.txt"},
                "lshosts": {"-w": "lsf-lshosts.txt"},
                "bmgroup": {"-r -w": "lsf-bmgroup.txt"},
            },
            "p9n01",
            176,
        ),
    ],
)
def test_the_other_schedulers_give_the_hosts_too(
    inventory: Path,
    called: Called,
    reads: Reads,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    scheduler: str,
    commands: dict[str, dict[str, str]],
    node: str,
    cpus: int | None,
) -> None:
    """Jobs of PBS and LSF request the CPUs that the scheduler counts."""
    for name, answers in commands.items():
        outputs = {
            words: "knl0001\nknl0002\n" if file == "sge-hosts" else (SCHEDULERS / file).read_text()
            for words, file in answers.items()
        }
        put_command(tmp_path / "bin", name, outputs, monkeypatch)
    reads(node_that_reports(SKL))
    code, _, said = called("init", inventory, "--from-node", node, "--scheduler", scheduler)
    assert code == 0, said
    sites = {site.partition_name: site for site in load_sites(inventory, f"{node}")}
    (site,) = sites.values()
    assert site.partition.scheduler == scheduler
    assert node in site.partition_hosts
    assert len(site.partition_hosts) == 2
    assert site.partition.queue.cpus_per_node == cpus


def test_the_commands_of_the_scheduler_may_be_on_the_node_only(
    inventory: Path, called: Called, reads: Reads, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers = {SHOW_NODE: slurm_nodes(NAMES[:8], Partitions="normal")}
    usual = node_that_reports(SKL)

    def run_script(node: str, text: str) -> str:
        words = text.removeprefix("scontrol ").removesuffix(" </dev/null\n")
        return answers.get(words) or usual(node, text)

    monkeypatch.setattr("proofmark.packages.survey.collection.shutil.which", lambda _: None)
    reads(run_script)
    code, printed, _ = called("init", inventory, "--from-node", NODE, "--scheduler", "slurm")
    assert code == 0
    assert "partition normal: skl[0001-0008]\n" in printed


class TestThisMachine:
    def test_its_inventory_is_valid_and_has_a_plan(self, inventory: Path, called: Called) -> None:
        code, printed, said = called(
            "init", inventory, "--from-node", "localhost", "--scheduler", "none"
        )
        assert code == 0, said
        name = os.uname().nodename
        assert f": {name}\n" in printed
        answer_about_array(inventory, called)
        code, printed, said = called(
            "plan", "-i", inventory, "-l", "compute", "--suite", "quick", "--json"
        )
        assert code == 0, said
        assert json.loads(printed)["totals"]["steps"] > 0
        (site,) = load_sites(inventory, "compute")
        assert (site.hosts, site.connection) == ((name,), "local")
        assert called("init", "--diff", inventory, "--from-node", "localhost")[0] == 0

    @pytest.mark.parametrize("section", ["compilers", "mpi", "modules", "bmc", "fabric"])
    def test_the_script_works_with_any_posix_shell(self, section: str) -> None:
        lines, problem = read_section(os.uname().nodename, section, node_runner())
        assert bool(lines) != bool(problem)

    def test_sudo_runs_the_script_if_it_is_asked_to(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sudo = tmp_path / "sudo"
        sudo.write_text('#!/bin/sh\n[ "$1" = -n ] || exit 1\nshift\nUSED=yes exec "$@"\n')
        sudo.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        node, script = os.uname().nodename, 'echo "used: ${USED:-no}"\n'
        assert node_runner(become=True)(node, script) == "used: yes\n"
        assert node_runner()(node, script) == "used: no\n"

    def test_a_node_of_an_inventory_is_reached_as_its_variables_state(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The user root is added by `become=True` to the connection of the inventory."""
        ssh = tmp_path / "ssh"
        ssh.write_text('#!/bin/sh\necho "$*"\n')
        ssh.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        access = HostAccess(host_name="10.1.0.1", user="bringup", port="2222")
        other = access.model_copy(update={"host_name": "10.1.0.2"})
        ssh_access = Access(usual=access, hosts={"n2": other})
        site = (
            make_kit(tmp_path / "kit")
            .site(hosts=("n1", "n2"))
            .model_copy(update={"ssh": ssh_access, "aliases": {"n2": ["n2-mgmt.example"]}})
        )
        printed = site_runner([site])("n1.example", "")
        assert " -o Port=2222 -o User=bringup " in printed
        assert printed.endswith(" 10.1.0.1 sh -s\n")
        printed = site_runner([site], become=True)("n2-mgmt", "")
        assert printed.endswith(" 10.1.0.2 sudo -n sh -s\n")

    def test_the_inventory_of_the_kit_for_it_has_no_difference(self, called: Called) -> None:
        code, printed, _ = called("init", "--diff", "inventory/local", "--from-node", "localhost")
        assert (code, printed) == (0, "differences: 0\n")

    def test_its_name_may_have_a_domain(self) -> None:
        assert is_this_machine(f"{os.uname().nodename}.example.org")
        assert not is_this_machine("another")


@pytest.fixture
def idrac(tmp_path: Path) -> Iterator[Emulator]:
    root = {"Vendor": "Dell", "Product": "Integrated Dell Remote Access Controller"}
    with Emulator([NODE], tmp_path / "bmc", service_root=root) as emulator:
        yield emulator


def with_bmc() -> Run:
    content = "".join(
        f"| {line}\n"
        for name in ("ipmitool-lan.txt", "ipmitool-mc.txt")
        for line in (SCHEDULERS / name).read_text().splitlines()
    )
    return node_that_reports(SKL, {**TOOLS, "bmc": content})


class TestBmc:
    def test_its_address_and_vendor_are_found(
        self, inventory: Path, called: Called, slurm: UseSlurm, reads: Reads, idrac: Emulator
    ) -> None:
        slurm()
        reads(with_bmc())
        assert idrac.address(NODE) == "127.9.0.1"
        code, _, said = called(
            "init", inventory, "--from-node", NODE, "--bmc-port", str(idrac.port)
        )
        assert code == 0
        assert f"proofmark: {NODE}: Redfish service root of 127.9.0.1\n" in said
        found = yaml.safe_load((inventory / "group_vars/normal/found.yml").read_text())
        facts = found["proofmark_found"][NODE]
        assert facts["bmc_address"]["value"] == "127.9.0.1"
        assert facts["bmc_vendor"] == {
            "value": "Dell Integrated Dell Remote Access Controller",
            "source": "its Redfish service root, certificate not verified",
        }
        text = (inventory / "group_vars/normal/partition.yml").read_text()
        assert "# QUESTION: firmware: does the kit change firmware modes?" in text
        assert "  #   vendor: idrac\n" in text
        assert '  #   bmc: "the addresses of all nodes, with {node} or {number}"' in text
        assert load_sites(inventory, "compute")

    @pytest.mark.parametrize(
        ("size", "pattern"), [(1, "10.1.0.{number + 101}"), (2, "10.1.0.{number // 2 + 101}")]
    )
    def test_consecutive_addresses_of_three_nodes_are_a_pattern(
        self,
        inventory: Path,
        called: Called,
        slurm: UseSlurm,
        reads: Reads,
        size: int,
        pattern: str,
    ) -> None:
        """Of two nodes behind one BMC each has a system of its own."""
        usual, asked = node_that_reports(SKL), []

        def run_script(node: str, text: str) -> str:
            if not text.startswith("set -- bmc\n"):
                return usual(node, text)
            asked.append(node)
            address = f"10.1.0.{(int(node.removeprefix('skl')) - 1) // size + 101}"
            return tools_output("bmc", f"| IP Address              : {address}\n")

        slurm()
        reads(run_script)
        called("init", inventory, "--from-node", NODE, "--bmc-port", "1")
        assert sorted(asked) == [NODE, "skl0033", "skl0064"]
        text = (inventory / "group_vars/normal/partition.yml").read_text()
        assert f'  #   bmc: "{pattern}"' in text
        assert ('  #   system: "Node{number % 2}"' in text) == (size == 2)

    def test_the_name_service_has_its_address_if_the_node_reports_none(
        self,
        inventory: Path,
        called: Called,
        slurm: UseSlurm,
        reads: Reads,
        idrac: Emulator,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def resolve(name: str, port: object, **options: object) -> list[tuple[object, ...]]:
            if name != f"{NODE}-idrac":
                raise OSError("Name or service not known")
            return [(None, None, None, "", (idrac.address(NODE), 0))]

        slurm()
        reads(node_that_reports(SKL))
        monkeypatch.setattr(
            "proofmark.packages.survey.collection.socket", SimpleNamespace(getaddrinfo=resolve)
        )
        called("init", inventory, "--from-node", NODE, "--bmc-port", str(idrac.port))
        text = (inventory / "group_vars/normal/partition.yml").read_text()
        assert '  #   bmc: "{node}-idrac"' in text
        assert "has the address 127.9.0.1 (the name service), Dell Integrated" in text
        other = inventory.with_name("other")
        called("init", other, "--from-node", NODE, "--bmc-port", "1")  # no service root answers
        text = (other / "group_vars/normal/partition.yml").read_text()
        assert "# QUESTION: firmware: which addresses do the BMCs have?" in text

    @pytest.mark.fault("init-tool-fails")
    def test_a_bmc_that_does_not_answer_has_the_manufacturer_of_ipmi(
        self, inventory: Path, called: Called, slurm: UseSlurm, reads: Reads
    ) -> None:
        slurm()
        reads(with_bmc())
        code, _, said = called("init", inventory, "--from-node", NODE, "--bmc-port", "1")
        assert code == 0
        assert "https://127.9.0.1:1/redfish/v1/" in said
        text = (inventory / "group_vars/normal/found.yml").read_text()
        assert "Dell Inc." in text
        assert "# QUESTION: redfish: not found" in text


TEMPLATE = "{{ lookup('ansible.builtin.pipe', 'touch FILE') }}"


@pytest.mark.fault("init-template")
def test_ansible_evaluates_no_text_of_a_node(
    inventory: Path, called: Called, slurm: UseSlurm, reads: Reads, tmp_path: Path
) -> None:
    file = tmp_path / "evaluated"
    evil = TEMPLATE.replace("FILE", str(file))
    slurm(slurm_nodes(NAMES, Partitions=f"normal,{evil.replace(' ', '')}"))
    probe = SKL.replace("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", evil)
    probe = probe.replace("10.1.1.1@o2ib:/scratch", evil.replace(" ", "\\040"))
    tools = {**TOOLS, "mpi": f"| mpirun: /opt/{evil}: mpirun 4.1\n", "bmc": f"! bmc: {evil}\n"}
    reads(node_that_reports(probe, tools))
    called("init", inventory, "--from-node", NODE)
    code, _, said = called("check", "-i", inventory)
    assert code == 3
    assert "partition.node.cpu_model: found the question: node.cpu_model?" in said
    assert not file.exists()


MARKS = ("", "{{ x }}", "{% x %}", "{# x #}", "# QUESTION: x", "\n- x", "!unsafe x", "@x: {", "'")


@given(text=st.builds("{}{}{}".format, st.text(max_size=9), st.sampled_from(MARKS), st.text()))
def test_any_text_of_a_node_leaves_a_readable_inventory(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """Hosts, facts and reasons of one partition, with any text in each of them."""
    facts = parse_probe(SKL, "probe").model_copy(
        update={
            "cpu_model": text,
            "firmware": {"bios_version": text},
            "os": text,
            "absent": {"topology": text},
        }
    )
    report = NodeReport("n1", facts, {"compilers": (f"gcc: /gcc: {text}",)}, problems={"mpi": text})
    nodes = (ListedNode("n1", (text,), groups=(text,), alias=text),)
    found = Survey(
        scheduler="slurm",
        kinds=(NodeKind("cluster", nodes, (text,)),),
        reports={"n1": report},
        listing_source="scontrol show node",
        listing_problem=text,
        groups_are_queues=True,
        fabric_source=text,
    )
    files = inventory_files(found, environments_in(ROOT / "environments"))
    for name, written in files.items():
        if name.endswith(".yml"):
            data = yaml.safe_load(written)
            assert isinstance(data, dict), name
    facts_file = yaml.safe_load(files["group_vars/cluster/partition.yml"])
    assert facts_file["partition"]["scheduler"] == "slurm"
    values = [yaml.safe_load(each) for name, each in files.items() if name.endswith(".yml")]
    assert not re.search(r"\{[{%#]", str(values))


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text("mine")
    with pytest.raises(BadInput, match=r"b\.yml already"):
        write_files(tmp_path, {"a.yml": "new", "b.yml": "new"})
    assert (tmp_path / "b.yml").read_text() == "mine"
    assert not (tmp_path / "a.yml").exists()


@pytest.mark.fault("init-tool-fails")
def test_an_output_that_is_too_large_is_a_problem_of_its_tool_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proofmark.packages.survey.collection.MAX_PROBE_BYTES", len(SKL) - 1)
    found = survey(["n1"], "none", node_that_reports(SKL), lambda _: None)
    report = found.reports["n1"]
    assert report.facts is None
    assert re.search("probe.sh: .* KiB, more than .* KiB", report.problems["probe"])
    assert report.tools["mpi"]


def test_a_name_with_an_option_is_refused() -> None:
    with pytest.raises(BadInput, match="--from-node: found '-oProxyCommand=x'"):
        survey(["-oProxyCommand=x"], "none", node_that_reports(SKL), print)


def test_the_environment_is_that_of_the_processor_or_a_generic_one() -> None:
    environments = environments_in(ROOT / "environments")
    assert environments["skl"].target == "skylake_avx512"
    fitting = {name for name, each in environments.items() if each.fits("skylake_avx512")}
    assert fitting == {"skl", "local"}
    assert {name for name, each in environments.items() if each.fits("zen3")} == {"local", "zen3"}
    assert {name for name, each in environments.items() if each.fits("zen")} == {"local"}
    of_arm = {name for name, each in environments.items() if each.fits("neoverse_v2")}
    assert of_arm == {"neoverse_v2"}
    assert not any(each.fits("riscv64") for each in environments.values())


PROCESSORS = {
    "skl": SKL,
    "zen2": probe_text("live-kvm-zen3"),
    "local": re.sub(r" (avx512\w*|clwb|pku|mpx)\b", "", SKL),
}
"""Probes by the environment that `init` writes; `local` is for a processor without its own."""


@pytest.mark.parametrize("environment", PROCESSORS)
def test_the_pages_are_true_on_each_processor(
    inventory: Path, called: Called, slurm: UseSlurm, reads: Reads, environment: str
) -> None:
    """Sections 2 and 3 of the tutorial, and the sentence of the README about the suite quick."""
    slurm()
    reads(node_that_reports(PROCESSORS[environment]))
    assert called("init", inventory, "--from-node", NODE, "--scheduler", "slurm")[0] == 0
    facts = partition(inventory)
    assert facts["environment"] == environment
    page = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    stated, contract, *_ = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    facts |= yaml.safe_load(f"a:\n{stated}")["a"]
    for file in (inventory / "group_vars/normal").glob("*.yml"):
        file.unlink()
    written = yaml.safe_dump({"partition": facts}).replace("'!unsafe ", "!unsafe '")
    (inventory / "group_vars/normal/partition.yml").write_text(written)
    (inventory / "contract.yml").write_text(contract)
    for words in (["check"], ["plan", "-l", "normal"]):
        code, printed, said = called(*words, "-i", inventory, "--suite", "tutorial")
        assert (code, said) == (0, ""), printed
    code, printed, said = called("check", "-i", inventory, "--suite", "quick")
    assert (code, said) == (0, ""), printed


def test_an_answered_question_is_asked_no_more(tmp_path: Path) -> None:
    """A key of the file answers its question, and a contract that of the contract."""
    file = tmp_path / "partition.yml"
    asked = "  # QUESTION: node.clock_hz: which?\n  # QUESTION: contract: which figures?\n"
    file.write_text(f"partition:\n{asked}  node:\n    cores: 2\n  # node:\n  #   clock_hz: 1\n")
    assert [place for place, _ in comments(tmp_path)] == [f"{file}:2", f"{file}:3"]
    file.write_text(f"partition:\n{asked}  node:\n    clock_hz: 2.0e9\n")
    assert [place for place, _ in comments(tmp_path)] == [f"{file}:3"]
    (tmp_path / "contract.yml").write_text("title: x\n")
    assert not [*comments(tmp_path)]
