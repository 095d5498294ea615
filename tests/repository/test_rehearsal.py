"""The parts of a rehearsal: its nodes, its faults and its exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.emulators.bmc.machine import DEFAULTS
from tests.emulators.bmc.machine import FAULTS as BMC_FAULTS
from tests.emulators.bmc.node import notation
from tests.emulators.vcluster.cluster import node_names
from tests.fixtures.shipped import shipped_site
from tests.folders import ROOT
from tests.rehearsal.__main__ import (
    BAD_INPUT,
    LONGEST,
    NOT_NAMED,
    STOPPED,
    exit_code,
    main,
    named_by,
    place,
)
from tests.rehearsal.ahead import Ahead, duration_line, look_ahead, refuse
from tests.rehearsal.faults import FAULTS, Need
from tests.rehearsal.play import Played, limit_of
from tests.rehearsal.shapes import RATE, SHAPES

from proofmark.common.errors import BadInput
from proofmark.site.firmware import wanted
from proofmark.site.inventory import Site
from proofmark.site.machines import topology_of_mode
from proofmark.site.node.topology import Topology, numa_shape

LINK = {"elements": [{"name": "uplink 1 of leaf-002"}]}
NAMED = "fatal: DENIED: 1 node (rknl0002): once\n"


@pytest.fixture(scope="module", params=["knl", "skl", "fabric"])
def site(request: pytest.FixtureRequest) -> Site:
    """Return the site of the rehearsal; no rehearsal runs."""
    return shipped_site("rehearsal", request.param)


def test_nodes_show_the_declared_topology_in_each_mode(site: Site) -> None:
    shape = SHAPES[site.partition_name]
    assert len(site.hosts) == shape.nodes and site.partition.origin == "emulated"
    assert site.partition.firmware
    for name, mode in site.partition.modes.items():
        attributes: dict[str, Any] = {**DEFAULTS[shape.firmware]}
        attributes |= wanted(site.partition.firmware, mode.settings)
        shown = Topology.from_lstopo(notation(attributes, shape.firmware))
        assert numa_shape(shown) == numa_shape(topology_of_mode(site, name)), name


def test_cpuinfo_has_each_processor(site: Site) -> None:
    shape = SHAPES[site.partition_name]
    blocks = shape.cpuinfo().rstrip().split("\n\n")
    assert len(blocks) == shape.slurm["CPUs"]
    last = dict(line.split(":", 1) for line in blocks[-1].splitlines())
    fields = {key.strip(): value.strip() for key, value in last.items()}
    assert (fields["processor"], fields["core id"]) == (f"{len(blocks) - 1}", f"{shape.cores - 1}")


def test_the_declared_fabric_is_that_of_the_virtual_switches() -> None:
    switches = SHAPES["fabric"].switches
    fabric = shipped_site("rehearsal", "fabric").partition.fabric
    (level,) = fabric.levels
    assert level.hosts_per_switch == switches.hosts_per_leaf
    assert fabric.link_bytes_per_s == 25e6 and RATE == "200mbit"


def test_a_verdict_names_bad_nodes_file_systems_and_jobs_that_ended_early() -> None:
    fleet = {"nodes": [{"node": "rknl0002", "likely": "the node itself"}]}
    stopped = {"stopped": ["job 00-0001: lost a node"]}
    files = [{"line": "file system of /run/pfs: full"}]
    named = named_by({"fleet": fleet, "file_systems": files, "links": LINK, "coverage": stopped})
    bad = "bad node: rknl0002: the node itself"
    uplink = "slow element: uplink 1 of leaf-002"
    assert named == [bad, uplink, "file system of /run/pfs: full", "job 00-0001: lost a node"]
    assert FAULTS["slow-uplink"].message == uplink
    assert FAULTS["slow-link"].message.format(node="rknl0002") in named[0]


def test_its_faults_are_in_faults_yml() -> None:
    known = yaml.safe_load((ROOT / "tests/faults.yml").read_text())
    assert FAULTS.keys() <= known.keys()
    assert {fault.bmc for fault in FAULTS.values()} - {""} <= BMC_FAULTS.keys()


@pytest.mark.parametrize(
    ("name", "played", "code"),
    [
        ("", Played(0, "", False), 0),
        ("", Played(2, "", False), 2),
        ("", Played(0, "", True), STOPPED),
        ("bmc-wrong-password", Played(2, NAMED, False), 2),
        ("bmc-wrong-password", Played(2, NAMED.replace("0002", "0003"), False), NOT_NAMED),
        ("bmc-wrong-password", Played(0, NAMED, False), NOT_NAMED),
        ("scheduler-restarts", Played(0, "PASS: 3 PASS, 0 FAIL, 0 INVALID", False), 0),
        ("scheduler-restarts", Played(2, "0 FAIL, 0 INVALID", False), NOT_NAMED),
    ],
)
def test_the_exit_code_is_that_of_the_playbooks_if_they_name_the_fault(
    name: str, played: Played, code: int
) -> None:
    assert exit_code(name, FAULTS.get(name), "rknl0002", played) == code


@cache
def ahead(
    limit: str = "knl",
    suite: str = "rehearsal",
    nodes: int = 8,
    one_mode: bool = False,
    more: Sequence[str] = (),
) -> Ahead:
    names = node_names(SHAPES[limit].prefix, nodes)
    options = {"one_mode": one_mode, "more": more, "names": names}
    selected = limit_of(SHAPES[limit], names)
    return look_ahead(ROOT, limit, suite, nodes, **options, selected=selected)  # type: ignore[arg-type]


BMC_ONLY = {"bmc-unreachable", "bmc-wrong-password", "bmc-expired-certificate", "bmc-hang"}
BMC_ONLY |= {"bmc-503-storm", "mode-foreign-pending", "mode-drained-by-admin"}
RESETS = {"mode-not-applied", "mode-no-return", "mode-other-mode"}
LINKS = {"slow-link", "slow-uplink", "lossy-link"}
SHORT = {"throttled-node", "slow-disk-server", "full-file-system", "client-hangs", "server-stops"}
IMPOSSIBLE: list[tuple[dict[str, Any], set[str], str]] = [
    ({"one_mode": True}, BMC_ONLY | RESETS, "--one-mode: found fault {}"),
    ({"limit": "skl"}, RESETS, "--limit=skl: found a plan in mode snc-off alone; fault {}"),
    ({"limit": "knl"}, {"slow-uplink"}, "--limit=knl: found one switch; fault {}"),
    ({"nodes": 4}, LINKS, "--nodes=4: found fault {}"),
    ({"suite": "rehearsal"}, SHORT, "found a plan without it; fault {}"),
    ({"suite": "quick"}, {*FAULTS}, "--suite=quick --limit={limit}: found a plan without a step"),
    ({"more": ("--check",)}, {*FAULTS} - BMC_ONLY, "ARGS: found --check with fault {}"),
    ({"more": ("--tags", "x")}, {*FAULTS}, "ARGS: found --tags with fault {}"),
]
"""Options, the faults that they make impossible, and the start of the message."""


def of_every_fault() -> Iterator[tuple[str, dict[str, Any], str]]:
    for name, fault in FAULTS.items():
        usual = {"suite": fault.suite, "limit": fault.limit, "nodes": SHAPES[fault.limit].nodes}
        yield name, usual, ""
        for options, impossible, words in IMPOSSIBLE:
            if name == "slow-uplink" and options == {"limit": "skl"}:
                continue  # as with knl
            given = {**usual, **options}
            if given["limit"] != fault.limit:
                given["nodes"] = SHAPES[given["limit"]].nodes
            text = words.format(name, limit=given["limit"])
            yield name, given, text if name in impossible else ""


def test_options_that_make_a_fault_impossible_are_refused_by_name() -> None:
    """The control: options that leave the fault possible, and no options, are accepted."""
    for name, options, words in of_every_fault():
        if not words:
            refuse(name, FAULTS, ahead(**options))
            continue
        with pytest.raises(BadInput) as refused:
            refuse(name, FAULTS, ahead(**options))
        message = str(refused.value)
        assert words in message and "accepted: " in message, (name, options)
        for other in message.partition("with it: ")[2].partition("\n")[0].split(", "):
            assert not other or Need.CONFIRMATION not in FAULTS[other].needs, (name, options)


def test_a_plan_without_pairs_has_no_slow_link() -> None:
    with pytest.raises(BadInput, match=r"--suite=p5 .* measures no links"):
        refuse("slow-link", FAULTS, ahead(suite="p5"))


@pytest.mark.root
def test_a_refused_rehearsal_starts_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[object] = []
    monkeypatch.setattr("tests.rehearsal.__main__.Room", lambda *room: began.append(room))
    assert main(["--one-mode", "--fault=bmc-hang"]) == BAD_INPUT
    printed = capsys.readouterr()
    assert (began, printed.out) == ([], "")
    assert printed.err.startswith(
        "--one-mode: found fault bmc-hang, which needs confirm_reboot=true;"
    )


@pytest.mark.parametrize(
    "more", ["suite=p1", "{'suite': 'p1'}", "confirm_reboot=false", "-lknl", "--inventory=x"]
)
def test_arguments_that_another_option_sets_are_refused(more: str) -> None:
    with pytest.raises(BadInput, match=r"ARGS: found .* which another option sets; accepted: "):
        ahead(more=("-e", "fresh=true", more))


def test_the_expected_duration_counts_steps_mode_changes_and_the_start(tmp_path: Path) -> None:
    whole, one = ahead(), ahead(one_mode=True)
    assert "48 steps " in duration_line(whole)
    assert "; 3 mode changes and the way back 1 min 20 s; " in duration_line(whole)
    assert "12 steps " in duration_line(one)
    assert "; 0 mode changes and the way back 0 s; " in duration_line(one)


@pytest.mark.parametrize("folder", ["/var/tmp", "/var/tmp/a b", f"/var/tmp/{'x' * LONGEST}"])
def test_its_folder_allows_the_paths_of_sockets(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", folder)
    assert place() == (folder if folder == "/var/tmp" else "/tmp")
