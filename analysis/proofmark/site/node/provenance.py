"""What each kind of probe must print, and the facts and counters of one node for a job.

A section that is missing, silent or garbled proves nothing. ``probe.sh`` prints each section of its
kind, with lines or with the reason why it has none. "The node has none" is a reason of the probe; a
section without a line and a reason is no statement. The record is ``runs/<id>/nodes/<host>.json``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from proofmark.common.message import Message, joined
from proofmark.common.shared_models import StrictModel
from proofmark.site.node.counters import (
    KINDS,
    CounterChange,
    Counters,
    counter_differences,
    counters_of,
    disturbance,
)
from proofmark.site.node.facts import NodeFacts, facts_of
from proofmark.site.node.probe_text import COUNTERS, ProbeStream, Unread, finite, read_stream

OF_EVERY_KIND = ("host", "load", "counters", "busy")
OF_FACTS = (
    *("system", "cmdline", "os", "virtual", "mounts", "limits", "modules", "vulnerabilities"),
    *("clock", "cpuinfo", "cpuinfo_counts", "cpus", "allowed", "caches", "lscpu", "topology"),
    *("smt", "frequency", "meminfo", "numa", "settings", "cgroup", "dmi", "devicetree", "dimms"),
    *("nics", "fabric"),
)
"""The sections that every version of ``probe.sh facts`` prints as well."""
LISTED = "sections"
"""The key of ``host`` with the sections that the probe prints; the first versions have no list."""
SILENT_AT_FIRST = ("cgroup",)
"""The sections for which the first versions printed no reason."""
GROUPS = ("edac", "thermal", "interrupts", "vmstat", "cpu", "infiniband", "lustre", "ipmi")
"""The groups of counters: each has a value or a reason."""
LATER_GROUPS = ("tcp", "net", "pcie")
"""Groups for which the first versions printed no reason."""
INFORMATION = ("lustre", "ipmi")
"""Groups that no rule judges. A tool that can need seconds prints them, so one reading may lack
them."""
WORDS = re.compile(r".*(_label|/current_link_\w+)")
"""The counters whose values are words."""
EACH_LINE: Mapping[str, str] = {
    "mounts": r"\s*\S+ \S+ \S+ \S+.*",
    "load": r"\d+\.\d+ \d+\.\d+ \d+\.\d+( .*)?",
    "busy": r"\d+: \d+ .*|seconds: -?\d+(\.\d+)?",
}
"""The form of each line of a section."""
ONE_LINE: Mapping[str, str] = {
    "cpuinfo": r"processor\s*:?\s*\d+.*",
    "cpuinfo_counts": r".+ x \d+",
    "cpus": r"\d+ .+",
    "caches": r"L\d+ .+",
    "lscpu": r"\s*[{\[].*",
    "topology": r"\s*<.*",
    "meminfo": r"\w+:\s+\d+.*",
    "numa": r"node\d+ \w+: .*",
    "modules": r"\S+ \d+ .+",
    "limits": r"\w+: (\d+|unlimited)",
    "clock": r"System time\s*: .*",
    "dimms": r"Memory Device\s*",
    "sockets": r"Processor Information\s*",
    "kernel": r"\[ *\d+\.\d+\].*",
    "sizes": r"/.*: \d+",
    "drivers": r"\S+: .+",
    "accelerators": r"\S+ class: 0x.+",
    "fabric": r"\S+ (state: \d+:.*|(?!state|rate|link_layer)\w+: .+)",
    **dict.fromkeys(("system", "virtual", "allowed", "smt", "frequency", "settings"), r".+: .*"),
    **dict.fromkeys(("cgroup", "dmi", "devicetree", "nics", "vulnerabilities"), r".+: .*"),
}
"""The form of at least one line of a section; without it the section has another content."""
HOST: Mapping[str, str] = {
    "date": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "boot_id": r"[\w-]{2,64}",
    "uptime_s": r"\d{1,12}(\.\d{1,9})?",
}
"""The forms of the values with which two readings of one node are compared."""


def check_sections(stream: ProbeStream) -> None:
    """Check that a probe of a node states something in each section of its kind.

    Raises:
        BadInput: a section or a group of counters is missing, has no line and no reason, or has
            another content. The key of the error begins with the section.
    """
    listed = stream.pairs("host").get(LISTED, "").split()
    own = (*OF_EVERY_KIND, *(OF_FACTS if stream.kind == "facts" else ()))
    for section in dict.fromkeys((*own, *listed)):
        if section not in stream.sections:
            raise stream.wrong(section, "no section", f"'=== {section}', as each probe has it")
        may_be_silent = not listed and section in SILENT_AT_FIRST
        if not (stream.lines(section) or has_reason(stream, section) or may_be_silent):
            raise _silent(stream, section)
        if (line := _wrong_line(section, stream.lines(section))) is not None:
            raise stream.wrong(section, repr(line), "the output of probe.sh")
    _check_counters(stream, GROUPS if not listed else (*GROUPS, *LATER_GROUPS))
    host = stream.pairs("host")
    for key, form in HOST.items():
        if key in host and not re.fullmatch(form, host[key], re.ASCII):
            raise stream.wrong(f"host.{key}", repr(host[key]), "the output of probe.sh")
    if "boot_id" not in host and not has_reason(stream, "host"):
        raise stream.wrong("host.boot_id", "no value and no reason", "one of the two")


def has_reason(stream: ProbeStream, section: str) -> bool:
    """Return whether a probe states why the section, or a value of it, is absent."""
    return any(name.partition(".")[0].partition("/")[0] == section for name in stream.absent)


def groups_of(names: Iterable[str]) -> set[str]:
    """Return the groups of the counters with these names."""
    return {name.partition("/")[0] for name in names}


@lru_cache(maxsize=512)  # most sections are the same on thousands of nodes
def _wrong_line(section: str, lines: tuple[str, ...]) -> str | None:
    """Return the first line that a section cannot have; None if it can have all."""
    each, one = EACH_LINE.get(section), ONE_LINE.get(section)
    if lines and one and not any(re.fullmatch(one, line) for line in lines):
        return lines[0]
    return next((line for line in lines if each and not re.fullmatch(each, line)), None)


def _check_counters(stream: ProbeStream, groups: Iterable[str]) -> None:
    values = stream.pairs(COUNTERS)
    reasons = (name.partition(".") for name in stream.absent)
    stated = groups_of([*values, *(name for of, _, name in reasons if of == COUNTERS)])
    for group in groups:
        if group not in stated:
            raise _silent(stream, f"{COUNTERS}.{group}")
    for line in stream.lines(COUNTERS):
        name, _, text = line.partition(": ")
        try:
            is_count = finite(text) >= 0
        except ValueError:
            is_count = False
        if not (is_count or WORDS.fullmatch(name)):
            raise stream.wrong(f"{COUNTERS}.{name}", repr(text), "a number")


def _silent(stream: ProbeStream, key: str) -> Exception:
    return stream.wrong(key, "no value and no reason", "a value, or the reason why there is none")


_TIME = re.compile(r"\[ *(\d{1,12}\.\d{1,9})\]", re.ASCII)
"""The time of a message of the kernel, in seconds since the node started."""


class NodeProvenance(StrictModel):
    """The facts of a node, and its counters before and after a job.

    Attributes:
        after: None if the second probe did not run.
        changes: the counters that changed during the job.
        disturbances: the processes that ran on the node when it should have been idle.
    """

    facts: NodeFacts
    before: Counters
    after: Counters | None
    changes: tuple[CounterChange, ...]
    disturbances: tuple[Message, ...]

    @property
    def kernel(self) -> tuple[str, ...]:
        """The messages of the kernel about errors in the time of the job."""
        if self.after is None:
            return ()
        restarted = self.after.boot_id != self.before.boot_id
        since = 0.0 if restarted else self.before.uptime_s
        if since is None:
            return ()
        timed = ((_TIME.match(line), line) for line in self.after.kernel)
        return tuple(line for match, line in timed if match and float(match[1]) >= since)

    @property
    def invalid(self) -> Message:
        """Return why all results of the job are INVALID, or `NOTHING`."""
        return joined(change.message for change in self.changes if change.invalid)


def node_provenance(before: str, after: str | None, source: str, node: str = "") -> NodeProvenance:
    """Return the provenance of one node from its two probes of a job.

    Args:
        before: the output of ``probe.sh facts`` before the job.
        after: the output of ``probe.sh after`` after the job, or None.
        source: the name of the probes in messages.
        node: the name of the node in the inventory; empty: the name that it reports.

    Raises:
        BadInput: a probe is not complete, states nothing in a section, or has nothing in a section
            of which no value can be read; the two have different groups of counters, or are of
            different nodes.
    """
    facts, first = _first(before, f"{source}.before")
    last = None if after is None else _last(after, f"{source}.after", first)
    if node and node != facts.hostname:
        facts = facts.model_copy(update={"hostname": node, "reported": facts.hostname})
        first = first.model_copy(update={"hostname": node})
        last = last and last.model_copy(update={"hostname": node})
    readings = [first] if last is None else [first, last]
    return NodeProvenance(
        facts=facts,
        before=first,
        after=last,
        changes=tuple(counter_differences(first, last)) if last else (),
        disturbances=tuple(filter(None, map(disturbance, readings))),
    )


def _first(text: str, source: str) -> tuple[NodeFacts, Counters]:
    """Return the facts and the counters of the probe before a job."""
    stream, unread = read_stream(text, source, "facts"), Unread()
    check_sections(stream)
    facts = facts_of(stream, unread)
    for section in unread.garbled:
        found = next(
            text for name, text in unread.values.items() if name.partition(".")[0] == section
        )
        raise stream.wrong(section, f"no value that can be read: {found!r}", "one or more")
    return facts, counters_of(stream)


def _last(text: str, source: str, first: Counters) -> Counters:
    """Return the counters of the probe after a job; it has all groups that `first` has."""
    stream = read_stream(text, source, *KINDS)
    check_sections(stream)
    last = counters_of(stream)
    if last.hostname != first.hostname:
        raise stream.wrong("hostname", last.hostname, first.hostname)
    for group in sorted(groups_of(first.values) ^ groups_of(last.values)):
        if group in INFORMATION:
            continue
        lacking, when = (last, "after") if group in groups_of(first.values) else (first, "before")
        reason = lacking.absent.get(f"{COUNTERS}.{group}", "no value")
        raise stream.wrong(
            f"{COUNTERS}.{group}", f"{when} the job: {reason}", "it at both readings"
        )
    for section in ("load", "busy"):
        if (section in first.absent) != (section in last.absent):
            raise stream.wrong(section, "it at one of the readings only", "it at both")
    return last
