"""What each state of a node means: no word that the kit does not know is in service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.emulators.bmc.rollouts import path_with

from proofmark.machine.scheduler_commands import state_of, states_of, status_of
from proofmark.machine.schedulers import loadleveler, lsf, pbs, sge, slurm
from proofmark.machine.schedulers.pbs import active_reservations
from proofmark.machine.schedulers.slurm import FLAGS, OTHER_NAMES, SUFFIXES, node_states
from proofmark.packages.survey.listings import size_of

IN_SERVICE = {
    *("ALLOCATED", "BLOCKED", "CLOUD", "COMPLETING", "DYNAMIC", "DYNAMIC_FUTURE", "DYNAMIC_NORM"),
    *("IDLE", "MIXED", "PERFCTRS", "PLANNED", "RESERVED", "RESUME"),
}
"""Every other flag of Slurm takes a node out of service."""


def test_the_flags_of_slurm_that_leave_a_node_in_service() -> None:
    assert {flag for flag in FLAGS if not status_of(node_states(flag), "").out} == IN_SERVICE


@pytest.mark.fault("slurm-node-state-unknown")
@pytest.mark.parametrize(
    ("text", "out", "idle", "listed"),
    [
        ("idle+maintenance+reserved", True, True, "reserved"),
        ("IDLE+MAINTENANCE", True, True, "reserved"),
        ("unknown", True, True, "down"),
        ("future", True, True, "down"),
        ("error", True, True, "down"),
        ("inval", True, True, "down"),
        ("idle+invalid_reg", True, True, "down"),
        ("idle+powered_down", True, True, "busy"),
        ("idle+cloud+powered_down", True, True, "busy"),
        ("idle+powering_down", True, True, "busy"),
        ("idle+cloud+powering_up", True, True, "busy"),
        ("idle+not_responding", True, True, "down"),
        ("idle+reboot_requested", True, True, "busy"),
        ("idle+reboot_issued", True, True, "busy"),
        ("idle+external", True, True, "down"),
        ("idle+sleepy", True, False, "down"),
        ("idle+?", True, False, "down"),
        ("", True, False, "down"),
        ("mixed+drain", True, False, "down"),
        ("idle+fail", True, True, "down"),
        ("allocated+fail", True, False, "down"),
        # sinfo --format=%T and %t
        ("idle*", True, True, "down"),
        ("idle~", True, True, "busy"),
        ("idle#", True, True, "busy"),
        ("idle!", True, True, "busy"),
        ("idle%", True, True, "busy"),
        ("mix$", True, False, "reserved"),
        ("alloc@", True, False, "busy"),
        ("reboot^", True, True, "busy"),
        ("boot", True, True, "busy"),
        ("drng", True, False, "down"),
        ("drained*", True, True, "down"),
        ("maint*", True, True, "down"),
        ("futr", True, True, "down"),
        ("unk*", True, True, "down"),
        # in service
        ("idle", False, True, "idle"),
        ("idle+cloud", False, True, "idle"),
        ("idle+dynamic_norm", False, True, "idle"),
        ("idle+planned", False, True, "busy"),
        ("mixed-", False, False, "busy"),
        ("plnd", False, True, "busy"),
        ("resv", False, True, "busy"),
        ("idle+blocked", False, False, "busy"),
        ("allocated+", False, False, "busy"),
        ("completing", False, False, "busy"),
    ],
)
def test_states_of_slurm_nodes(text: str, out: bool, idle: bool, listed: str) -> None:
    states = node_states(text)
    status = status_of(states, "")
    assert (status.out, status.idle) == (out, idle)
    assert bool(status.states) == out
    assert state_of(states, text, "").use == listed


@given(st.text(), st.sampled_from(["", "idle+", "alloc+"]))
def test_no_word_that_slurm_does_not_have_is_in_service(text: str, begin: str) -> None:
    words = [word.rstrip("".join(SUFFIXES)) for word in text.strip().upper().split("+")]
    known = {*FLAGS, *OTHER_NAMES, ""}
    if set(words) - known:
        status = status_of(node_states(f"{begin}{text}"), "")
        assert status.out
        assert not status.idle


def test_a_reservation_is_named_apart_from_other_causes() -> None:
    assert status_of(node_states("maint"), "").reserved
    assert not status_of(node_states("drained$"), "").reserved
    assert status_of(node_states("idle+sleepy"), "").why.startswith("state 'sleepy', unknown")


def write(folder: Path, name: str, printed: str) -> None:
    (folder / f"{name}.out").write_text(printed)
    (folder / name).write_text(f"#!/bin/sh\nexec cat {folder}/{name}.out\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", path_with(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("state", "out", "reserved", "listed"),
    [
        ("free", False, False, "idle"),
        ("job-busy", False, False, "busy"),
        ("job-exclusive,resv-exclusive", True, True, "reserved"),
        ("resv-exclusive", True, True, "reserved"),
        ("maintenance", True, False, "down"),
        ("offline", True, False, "down"),
        ("offline_by_mom", True, False, "down"),
        ("Stale", True, False, "down"),
        ("state-unknown,down", True, False, "down"),
        ("unresolvable", True, False, "down"),
        ("provisioning", True, False, "down"),
        ("wait-provisioning", True, False, "down"),
        ("initializing", True, False, "down"),
        ("sleep", True, False, "busy"),
        ("frozen", True, False, "down"),
    ],
)
def test_states_of_pbs_nodes(
    commands: Path, state: str, out: bool, reserved: bool, listed: str
) -> None:
    write(commands, "pbsnodes", json.dumps({"nodes": {"n1": {"state": state}}}))
    status = pbs.Pbs().node_status(["n1"])["n1"]
    assert (status.out, status.reserved) == (out, reserved)
    assert pbs.Pbs().nodes(["n1"])["n1"].split()[0] == listed


def test_a_pbs_node_that_the_server_does_not_have_is_not_listed(commands: Path) -> None:
    write(commands, "pbsnodes", '{"nodes": {"n1": {"Error": "Unknown node"}}}')
    assert pbs.Pbs().node_status(["n1"])["n1"].out
    assert pbs.Pbs().nodes(["n1"]) == {}


RESERVATIONS = """Resv ID: R12.pbs01
Reserve_Name = maintenance
queue = R12
reserve_state = RESV_RUNNING
resv_nodes = (n1:ncpus=4+n2[0]:ncpus=2)+(n3:ncpus=4)

Resv ID: R13.pbs01
queue = R13
reserve_state = RESV_CONFIRMED
resv_nodes = (n4:ncpus=4)

Resv ID: S14.pbs01
queue = S14
reserve_state = RESV_DEGRADED
resv_nodes = (n5:ncpus=4)
"""


def test_the_active_reservations_of_pbs() -> None:
    expected = {"R12": ["n1", "n2[0]", "n2", "n3"], "S14": ["n5"]}
    assert active_reservations(RESERVATIONS) == expected
    assert active_reservations("") == {}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("196607040kb", 196607040 << 10),
        ("1.5tb", 3 << 39),
        ("16777216kw", 16777216 << 13),
        ("16gw", 16 << 33),
        ("4096b", 4096),
        ("4096", 4096),
        ("512w", 4096),
        ("2G", 2 << 30),
        ("1pb", 1 << 50),
    ],
)
def test_sizes_of_pbs(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["", "kb", "-1kb", "1e9", "1.5.2tb", "many", "9" * 400])
def test_no_size_of_pbs(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        size_of(text)


QUEUES = """<?xml version='1.0'?>
<job_info><queue_info>
  <Queue-List><name>all.q@n1</name><slots_used>0</slots_used></Queue-List>
  <Queue-List><name>all.q@n2</name><slots_used>2</slots_used></Queue-List>
  <Queue-List><name>all.q@n3</name><slots_used>0</slots_used><state>au</state></Queue-List>
  <Queue-List><name>all.q@n4</name><slots_used>0</slots_used><state>C</state></Queue-List>
  <Queue-List><name>all.q@n5</name><slots_used>0</slots_used><state>s</state></Queue-List>
  <Queue-List><name>all.q@n6</name><slots_used>0</slots_used><state>x</state></Queue-List>
  <Queue-List><name>all.q@n7</name><slots_used>0</slots_used></Queue-List>
  <Queue-List><name>old.q@n7</name><slots_used>0</slots_used><state>d</state></Queue-List>
  <Queue-List><name>all.q@n8</name><slots_used>0</slots_used><state>o</state></Queue-List>
  <Queue-List><name>all.q@n9</name><slots_used>4</slots_used><state>a</state></Queue-List>
  <Queue-List><name>all.q@n10</name><slots_used>0</slots_used><state>D</state></Queue-List>
  <Queue-List><name>all.q@n11</name><slots_used>0</slots_used><state>Dd</state></Queue-List>
</queue_info><job_info></job_info></job_info>
"""


def test_states_of_grid_engine_nodes(commands: Path) -> None:
    write(commands, "qstat", QUEUES)
    """A load alarm and a calendar end by themselves; qmod, an error and a silent host do not."""
    nodes = sge.GridEngine().nodes([f"n{number}" for number in range(1, 13)])
    assert {node: text.split()[0] for node, text in nodes.items()} == {
        **{"n1": "idle", "n2": "busy", "n3": "down", "n4": "busy", "n5": "down", "n6": "down"},
        **{"n7": "idle", "n8": "down", "n9": "busy", "n10": "busy", "n11": "down"},
    }


@pytest.mark.parametrize("word", ["hibernating", "closed", "closed_New", "", "OK", "okay"])
def test_words_that_lsf_and_loadleveler_do_not_have(word: str) -> None:
    assert lsf._node(word, "0").startswith("down")
    found = states_of([word], loadleveler.NODE_STATES)
    assert state_of(found, word, "").startswith("down")


def test_a_reason_with_line_breaks_is_no_state_of_another_node(commands: Path) -> None:
    script = """#!/bin/sh
case "$*" in
*%N\\|%T*) printf 'n1|drained\\nn2|idle\\n' ;;
*) for word; do mark=${word#--format=}; done
   mark=${mark%% *}
   printf '%s n1 lost\\nn2|down|x\\n%s n2 none\\n' "$mark" "$mark" ;;
esac
"""
    (commands / "sinfo").write_text(script)
    (commands / "sinfo").chmod(0o755)
    nodes = slurm.Slurm().nodes(["n1", "n2"])
    assert nodes == {"n1": "down drained lost n2|down|x", "n2": "idle"}
