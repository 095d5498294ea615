"""A section that a probe always prints, and that is missing, silent or garbled, proves nothing."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from tests.folders import PROBES

from proofmark.common.errors import BadInput
from proofmark.site.node import provenance
from proofmark.site.node.provenance import OF_EVERY_KIND, OF_FACTS, node_provenance

SCRIPT = Path(provenance.__file__).with_name("probe.sh")
SKL = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
AFTER = (PROBES / "skl-2x6148.after.txt").read_text(encoding="utf-8")
LATER = ("sockets", "sizes", "drivers", "accelerators")
"""The sections that the first versions of the script did not print."""
READ = ("mounts", "load", "busy", "counters", "dimms", "meminfo", "numa", "caches", "cpus", "nics")
"""Sections with values that the kit reads as numbers or as whole lines."""


@cache
def live(kind: str) -> str:
    """Return a probe of this machine."""
    done = subprocess.run(["sh", SCRIPT, kind], capture_output=True, text=True, check=True)
    return done.stdout


def section(text: str, name: str, content: str | None) -> str:
    """Return a probe with another content of a section; None: without the section."""
    whole = "" if content is None else f"=== {name}\n{content}"
    changed, number = re.subn(rf"(?ms)^=== {name}$\n.*?(?=^=== )", lambda _: whole, text)
    assert number == 1, name
    return changed


def key_of(before: str, after: str | None) -> str:
    """Return the section of the error of two readings; empty if they prove the state of a node."""
    try:
        node_provenance(before, after, "n1")
    except BadInput as error:
        assert f"n1.{'before' if after is None else 'after'}" in error.mistakes[0].file
        return error.mistakes[0].key
    return ""


def with_x(text: str, name: str) -> str:
    """Return a probe with x in place of each value of a section."""
    lines = re.search(rf"(?ms)^=== {name}$\n(.*?)(?=^=== )", text)
    assert lines
    content = re.sub(r"(?m)^(\| (?:[^:\n]*: ?)?)\S.*$", r"\1x", lines[1])
    return section(text, name, content)


def test_the_probes_of_this_machine_are_whole() -> None:
    assert key_of(live("facts"), None) == ""
    assert key_of(live("facts"), live("after")) == ""


def test_the_script_lists_every_section_that_it_prints() -> None:
    for kind, own in (
        ("facts", (*OF_EVERY_KIND, *OF_FACTS, *LATER)),
        ("after", (*OF_EVERY_KIND, "kernel")),
    ):
        printed = re.findall(r"(?m)^=== (\w+)$", live(kind))[:-1]
        listed = re.search(r"(?m)^\| sections: (.*)$", live(kind))
        assert listed
        assert printed == listed[1].split()
        assert {*printed} == {*own}


@pytest.mark.fault("probe-section-missing")
@pytest.mark.parametrize("content", [None, "", "| x\n"], ids=["missing", "empty", "x"])
def test_a_section_without_a_statement_is_damaged(content: str | None) -> None:
    """One word is a command line, and a release file of one line; all else has another form."""
    for name in (*OF_EVERY_KIND, *OF_FACTS, *LATER):
        if content != "| x\n" or name not in ("cmdline", "os"):
            assert key_of(section(live("facts"), name, content), None).partition(".")[0] == name


@pytest.mark.fault("probe-section-missing")
@pytest.mark.parametrize("name", OF_EVERY_KIND)
def test_the_probe_after_a_job_needs_its_sections(name: str) -> None:
    for content in (None, "", "| x\n"):
        key = key_of(SKL, section(AFTER, name, content))
        assert key.partition(".")[0] in (name, "hostname"), content


@pytest.mark.fault("probe-section-missing")
@pytest.mark.parametrize("name", READ)
def test_a_section_of_which_no_value_can_be_read_is_damaged(name: str) -> None:
    assert key_of(with_x(SKL, name), None).partition(".")[0] == name


@pytest.mark.parametrize("name", [name for name in OF_FACTS if f"=== {name}\n" in SKL])
def test_a_recorded_probe_of_the_first_version_needs_its_sections(name: str) -> None:
    assert key_of(section(SKL, name, None), None) == name


def test_a_recorded_probe_of_the_first_version_is_whole() -> None:
    assert key_of(SKL, AFTER) == ""


@pytest.mark.fault("probe-section-missing")
@pytest.mark.parametrize("group", ["edac", "thermal", "interrupts", "vmstat", "infiniband"])
def test_a_group_of_counters_that_one_reading_lacks_is_damaged(group: str) -> None:
    without = re.sub(rf"(?m)^\| {group}/.*\n", "", AFTER)
    assert key_of(SKL, without) == f"counters.{group}"
    reason = f"!no-edac counters.{group}\n"
    stated = without.replace("=== counters\n", f"=== counters\n{reason}")
    assert key_of(SKL, stated) == f"counters.{group}"


def test_a_tool_for_information_may_be_slow_once() -> None:
    slow = re.sub(r"(?m)^\| ipmi/.*$", "!tool-slow counters.ipmi: ipmitool 10", AFTER)
    assert slow != AFTER
    assert key_of(SKL, slow) == ""


@pytest.mark.parametrize("value", ["x", "", "-x", "nan"])
def test_a_counter_is_a_number(value: str) -> None:
    text = re.sub(r"(?m)^(\| edac/mc1/ue_count: ).*$", rf"\g<1>{value}", SKL)
    assert key_of(text, None) == "counters.edac/mc1/ue_count"


def test_a_counter_that_a_port_does_not_have_is_no_damage() -> None:
    text = re.sub(r"(?m)^(\| infiniband/.*symbol_error: ).*$", r"\1N/A (no PMA)", SKL)
    assert text != SKL
    assert key_of(text, None) == ""


def test_a_counter_of_faults_that_appears_during_a_job_proves_nothing() -> None:
    before = SKL.replace("| edac/mc2/ue_count: 0\n", "")
    changes = {each.name: each for each in node_provenance(before, AFTER, "n1").changes}
    found = changes["edac/mc2/ue_count"]
    assert (found.before, found.invalid, found.is_fault) == ("absent", True, False)
