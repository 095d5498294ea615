"""A node whose probe lacks what its like nodes have does not pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from tests.fixtures.fleet import fleet_run

from proofmark.common.message import Message
from proofmark.judge.judging import judge_run
from proofmark.records.run_facts import probe_gaps
from proofmark.runs.nodes import Node, probed_nodes
from proofmark.runs.run import Run
from proofmark.site.node.provenance import OF_EVERY_KIND

RATES = {f"n{number}": 100.0 for number in range(1, 5)}
FOUND = {"dimms": "!tool-slow dimms: dmidecode 30", "mounts": "!no-line mounts: /proc/mounts"}
EDAC = "!no-edac counters.edac"


def content(lines: str) -> Callable[[str, str], str]:
    """Return a change of the section of a probe to `lines`."""

    def changed(text: str, section: str) -> str:
        head, _, rest = text.partition(f"=== {section}\n")
        assert rest, section
        return f"{head}=== {section}\n{lines}{rest[rest.index('=== ') :]}"

    return changed


def without(text: str, section: str) -> str:
    """Return a probe without a section."""
    head, _, rest = text.partition(f"=== {section}\n")
    return head + rest[rest.index("=== ") :]


def without_edac(text: str, _: str) -> str:
    """Return a probe of a node on which the driver is not loaded."""
    lines = [line for line in text.splitlines() if not line.startswith("| edac/")]
    lines.insert(lines.index("=== counters") + 1, EDAC)
    return "\n".join(lines) + "\n"


def change(run: Run, hosts: tuple[str, ...], how: Callable[[str, str], str], section: str) -> None:
    """Change the section of all probes of `hosts`, and collect them again."""
    for host in hosts:
        for path in run.folder.glob(f"workdir/jobs/*/*/{host}.*"):
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".before" or section in OF_EVERY_KIND:
                path.write_text(how(text, section), encoding="utf-8")


def invalid(run: Run) -> Mapping[str, Message]:
    """Return the reasons of the INVALID figures by node."""
    return {each.record.node: each.reason for each in judge_run(run).of("INVALID")}


def codes(message: Message) -> set[str]:
    """Return the codes in a reason."""
    return {each.code for each in message.nested()}


@pytest.mark.fault("probe-section-missing")
@pytest.mark.parametrize(
    ("section", "how"),
    [
        *((section, without) for section in ("counters", "dimms", "mounts", "load", "meminfo")),
        *(("counters", content("")), ("dimms", content("")), ("meminfo", content("| x\n"))),
        ("mounts", content("| x\n")),
    ],
)
def test_a_section_of_one_node_is_never_missed(
    tmp_path: Path, section: str, how: Callable[[str, str], str]
) -> None:
    run = fleet_run(tmp_path, RATES)
    assert invalid(run) == {}
    change(run, ("n3",), how, section)
    found = invalid(run)
    assert list(found) == ["n3"]
    assert "n3.before is damaged: " in found["n3"]
    assert f"(node n3, section {section}" in found["n3"]
    assert "probe-section" in codes(found["n3"])
    assert judge_run(run).exit_code() == 2


@pytest.mark.fault("probe-section-missing")
@pytest.mark.parametrize("section", OF_EVERY_KIND)
def test_a_section_that_only_the_last_probe_lacks(tmp_path: Path, section: str) -> None:
    run = fleet_run(tmp_path, RATES)
    (path,) = run.folder.glob("workdir/jobs/*/*/n2.after")
    path.write_text(without(path.read_text(encoding="utf-8"), section), encoding="utf-8")
    found = invalid(run)
    assert list(found) == ["n2"]
    assert "n2.after is damaged: " in found["n2"]
    assert f"section {section}" in found["n2"]


@pytest.mark.fault("probe-gap")
@pytest.mark.parametrize("section", [*FOUND, "counters"])
@pytest.mark.parametrize("nodes", [2, 4])
def test_a_node_without_what_its_peers_have(tmp_path: Path, section: str, nodes: int) -> None:
    run = fleet_run(tmp_path, dict(list(RATES.items())[:nodes]))
    how = without_edac if section == "counters" else content(f"{FOUND[section]}\n")
    change(run, ("n2",), how, section)
    found = invalid(run)
    assert list(found) == ["n2"]
    assert "probe-gap" in codes(found["n2"])
    name = "counters.edac" if section == "counters" else section
    assert f"n2.before, section {name}: " in found["n2"]
    assert f"{nodes - 1} of {nodes} like nodes have it" in found["n2"]
    assert judge_run(run).exit_code() == 2


@pytest.mark.fault("probe-gap")
@pytest.mark.parametrize(
    "value", ["| \tConfigured Clock Speed: 2666 MT/s", "| \tSize: 16384 MB"], ids=["speed", "size"]
)
def test_one_value_that_only_one_node_cannot_read(tmp_path: Path, value: str) -> None:
    run = fleet_run(tmp_path, RATES)

    def changed(text: str, _: str) -> str:
        assert value in text
        return text.replace(value, f"{value.partition(': ')[0]}: x", 1)

    change(run, ("n4",), changed, "dimms")
    found = invalid(run)
    assert list(found) == ["n4"]
    assert "'x' cannot be read; 3 of 4 like nodes have it" in found["n4"]


@pytest.mark.parametrize("section", [*FOUND, "counters"])
def test_what_all_nodes_lack_is_no_gap(tmp_path: Path, section: str) -> None:
    run = fleet_run(tmp_path, RATES)
    how = without_edac if section == "counters" else content(f"{FOUND[section]}\n")
    change(run, tuple(RATES), how, section)
    assert invalid(run) == {}


NO_GAP = (
    *((name,) for name in ("clock", "lscpu", "topology", "cgroup", "sizes", "drivers")),
    *((f"counters.{group}",) for group in ("lustre", "ipmi")),
    *(("fabric", "counters.infiniband"), ("nics", "counters.net", "counters.pcie")),
    ("accelerators",),
)
"""What proves nothing, and hardware that a node does not have with its counters."""


@pytest.mark.parametrize("absent", NO_GAP)
def test_what_judges_nothing_is_no_gap(tmp_path: Path, absent: Sequence[str]) -> None:
    """The controls: the memory of the node, and counters of hardware that it has."""
    nodes = dict(probed_nodes(fleet_run(tmp_path, RATES)))
    counters = absent[1:]
    for names, found in ((absent, []), (("meminfo",), ["meminfo"]), (counters, [*counters])):
        why = {name: Message("absent-no-file", path=name) for name in names}
        gaps = probe_gaps(nodes | {"n3": lacking(nodes["n3"], why)})
        sections = [each.fields["section"] for of_probe in gaps.values() for each in of_probe]
        assert (sections, {host for host, _ in gaps}) == (found, {"n3"} if found else set())


def lacking(node: Node, absent: Mapping[str, Message]) -> Node:
    """Return a node with a single job, whose probe lacks what `absent` names."""
    (job,) = node.jobs
    facts = job.provenance.facts
    with_absent = facts.model_copy(update={"absent": {**facts.absent, **absent}})
    provenance = job.provenance.model_copy(update={"facts": with_absent})
    return node.model_copy(update={"jobs": (job.model_copy(update={"provenance": provenance}),)})


@pytest.mark.parametrize(("lack", "gaps"), [(1, 1), (2, 2), (3, 0)])
def test_what_half_of_the_like_nodes_have_is_a_gap_of_the_others(
    tmp_path: Path, lack: int, gaps: int
) -> None:
    """The control is a machine of which most nodes lack it."""
    nodes = dict(probed_nodes(fleet_run(tmp_path, RATES)))
    why = Message("absent-no-file", path="x")
    for host in [*nodes][:lack]:
        nodes[host] = lacking(nodes[host], {"meminfo": why})
    found = probe_gaps(nodes)
    assert [host for host, _ in found] == [*nodes][:gaps]
    for (host, job), (message,) in found.items():
        assert message.fields == {
            "node": host,
            "file": f"workdir/jobs/{job}/{host}.before",
            "section": "meminfo",
            "text": why,
            "having": 4 - lack,
            "nodes": 4,
        }


def test_a_part_that_firmware_calls_unknown_on_one_node_is_named(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, RATES)

    def changed(text: str, _: str) -> str:
        for key in ("Configured Clock Speed", "Speed"):
            assert f"| \t{key}: 2666 MT/s" in text
            text = text.replace(f"| \t{key}: 2666 MT/s", f"| \t{key}: Unknown", 1)
        return text

    change(run, ("n4",), changed, "dimms")
    verdict = judge_run(run)
    assert [each.code for each in verdict.required] == ["part-unread"]
    assert verdict.required[0].fields["nodes"] == "n4"
    assert verdict.exit_code() == 4
