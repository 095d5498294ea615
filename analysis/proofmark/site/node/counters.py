"""Error counters of a node before and after a job, and how many events a sound node may have."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache

from pydantic import Field

from proofmark.common.errors import bad_input
from proofmark.common.files import Moment
from proofmark.common.message import NOTHING, Message
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import whole_number
from proofmark.common.yaml_models import shipped_data
from proofmark.site.hardware_limits import shown_gbit
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.probe_text import ProbeStream

ABSENT = "absent"
"""The value of a counter that does not exist at one of the two readings."""
_NO_RISE = _GONE, _APPEARED, _RESET = ("meaning-gone", "meaning-appeared", "meaning-reset")
KINDS = ("facts", "before", "after")
"""The kinds of probes of a node: each has its counters."""

RESENT, SENT = "tcp/RetransSegs", "tcp/OutSegs"
LEAST_RESENT = 1e-3
"""Fewer segments that were sent again, as a share of all segments, are no change: every network
loses some packets when it is congested."""


class BusyProcess(StrictModel):
    """A process that used more than 20 % of a processor on a node that should be idle."""

    pid: int
    percent: int
    command: str


class Counters(StrictModel):
    """The counters of a node at one time.

    Attributes:
        date: UTC, ISO 8601.
        values: by name (``edac/mc0/ue_count``): numbers, and the state of PCIe links.
        places: the labels printed on the board, by the directory of the counter
            (``edac/mc0/dimm3``).
        load: load averages of 1, 5 and 15 minutes.
        busy: processes that used a processor while the probe ran.
        absent: the reason for each counter that the node does not have.
        uptime_s: the time since the node started; None if the probe did not print it.
        kernel: messages of the kernel log about errors, with the time since the node started.
    """

    hostname: str
    boot_id: str | None
    date: Moment
    values: dict[str, str]
    places: dict[str, str]
    load: tuple[float, ...]
    busy: tuple[BusyProcess, ...]
    absent: dict[str, Message]
    uptime_s: float | None = None
    kernel: tuple[str, ...] = ()


class CounterChange(StrictModel):
    """One counter whose value after the job differs from the value before it.

    Attributes:
        difference: None if the values are not numbers or the counter was reset.
        place: the label of the DIMM or slot, if the firmware names it.
        invalid: whether the change makes all results of the job INVALID.
    """

    name: str
    before: str
    after: str
    difference: int | None
    place: str | None
    invalid: bool
    meaning: Message

    @property
    def is_fault(self) -> bool:
        """Whether it shows a fault: a rise. A counter that is new, gone or was reset shows none."""
        return self.invalid and self.meaning.code not in _NO_RISE

    def __str__(self) -> str:
        return str(self.message)

    @property
    def message(self) -> Message:
        """The text of the change, with the label of the slot if the probe has it."""
        fields: dict[str, str | int] = {"text": self.meaning, "counter": self.name}
        if self.difference is None:
            code = "counter-changed"
            fields |= {"before": self.before, "after": self.after}
        else:
            code, fields["rise"] = "counter-rose", self.difference
        if self.place:
            return Message(f"{code}-at", place=self.place, **fields)
        return Message(code, **fields)


@cache
def _meanings() -> dict[str, dict[str, str]]:
    """Return the meanings by pattern; of the counters that make results INVALID first."""
    return shipped_data("proofmark.site.node", "counters.yml", dict[str, dict[str, str]])


def meaning_of(name: str) -> Message:
    """Return the meaning of a rise of the counter."""
    return _meaning(name)[1]


def _meaning(name: str) -> tuple[bool, Message]:
    """Return whether a rise of the counter makes results INVALID, and the meaning of a rise."""
    for kind, patterns in _meanings().items():
        for pattern, meaning in patterns.items():
            if fnmatchcase(name, pattern):
                return kind == "invalid", Message(f"meaning-{meaning}")
    return False, Message("meaning-unknown")


def counters_of(stream: ProbeStream) -> Counters:
    """Return the counters of a probe of a node.

    Raises:
        BadInput: it has no host name or no date.
    """
    host, counters = stream.pairs("host"), stream.pairs("counters")
    for key in ("hostname", "date"):
        if key not in host:
            raise stream.wrong(f"host.{key}", "nothing", "the output of probe.sh")
    labels = {name: value for name, value in counters.items() if name.endswith("_label")}
    up = host.get("uptime_s", "")
    return Counters(
        hostname=host["hostname"],
        boot_id=host.get("boot_id"),
        date=stream.moment("host", "date"),
        values={name: value for name, value in counters.items() if name not in labels},
        places={name.rpartition("/")[0]: value for name, value in labels.items()},
        load=tuple(map(float, re.findall(r"\d+\.\d+", stream.text("load")))),
        busy=_busy(stream),
        absent={
            name: reason
            for name, reason in stream.absent.items()
            if name.partition(".")[0] in ("counters", "busy", "load")
        },
        uptime_s=float(up) if re.fullmatch(r"\d{1,12}(\.\d{1,9})?", up, re.ASCII) else None,
        kernel=stream.lines("kernel"),
    )


def _busy(stream: ProbeStream) -> tuple[BusyProcess, ...]:
    lines = re.findall(r"^(\d+): (\d+) (.*)$", stream.text("busy"), re.MULTILINE)
    return tuple(
        BusyProcess(pid=int(pid), percent=int(percent), command=command)
        for pid, percent, command in lines
    )


def counter_differences(before: Counters, after: Counters) -> list[CounterChange]:
    """Return each counter that changed; those that make results INVALID are first.

    A restart of the node between the two readings is such a change: it resets the counters, and it
    ended the job's processes.

    Raises:
        BadInput: the two readings are of different nodes.
    """
    if before.hostname != after.hostname:
        raise bad_input("counters", "hostname", after.hostname, before.hostname)
    changes = [
        _change(name, before, after)
        for name in (before.values | after.values).keys() - {SENT, RESENT}
        if before.values.get(name) != after.values.get(name)
    ]
    again, sent = tcp_segments(before, after) or (0, 0)
    if again > 0 and again >= LEAST_RESENT * sent:
        changes.append(_change(RESENT, before, after))
    if before.boot_id != after.boot_id:
        changes.append(
            CounterChange(
                name="boot_id",
                before=str(before.boot_id),
                after=str(after.boot_id),
                difference=None,
                place=None,
                invalid=True,
                meaning=Message("meaning-restarted"),
            )
        )
    return sorted(changes, key=lambda change: (not change.invalid, change.name))


def tcp_segments(before: Counters, after: Counters) -> tuple[int, int] | None:
    """Return the numbers of resent and of all sent TCP segments between two readings.

    None: the node does not have these counters, or it reset them.
    """
    again, all_sent = (
        _rise(before.values.get(name, ""), after.values.get(name, "")) for name in (RESENT, SENT)
    )
    if again is None or all_sent is None or min(again, all_sent) < 0:
        return None
    return again, all_sent


def _rise(before: str, after: str) -> int | None:
    first, last = whole_number(before), whole_number(after)
    return None if first is None or last is None else last - first


def _change(name: str, first: Counters, last: Counters) -> CounterChange:
    before, after = (each.values.get(name, ABSENT) for each in (first, last))
    invalid, meaning = _meaning(name)
    rise = _rise(before, after)
    backwards = rise is not None and rise < 0
    if after == ABSENT:
        meaning = Message(_GONE)
    elif before == ABSENT:
        meaning = Message(_APPEARED)
    elif backwards:
        meaning = Message(_RESET)
    places = last.places if before == ABSENT else first.places
    return CounterChange(
        name=name,
        before=before,
        after=after,
        # Only numbers of events have a difference; a link's width and an eviction's time do not.
        difference=None if backwards or "current_link" in name or "newest" in name else rise,
        place=places.get(name.rpartition("/")[0]),
        invalid=invalid,
        meaning=meaning,
    )


def disturbance(reading: Counters) -> Message:
    """Return the processes that ran on a node before or after its job; `NOTHING` for none."""
    if not reading.busy:
        return NOTHING
    worst = sorted(reading.busy, key=lambda process: -process.percent)
    commands = ", ".join(f"{process.command} ({process.percent} %)" for process in worst[:3])
    if (more := len(worst) - 3) > 0:
        commands = Message("listed-and-more", listed=commands, count=more)
    return Message("node-busy", node=reading.hostname, time=reading.date, commands=commands)


DEVIATIONS = 5
"""Standard deviations of a Poisson number that are accepted above a bit error ratio."""
FASTEST_GT = 32.0
"""GT/s of a lane up to PCI Express 5.0. Later ones correct errors, and have another ratio."""
_PORT = re.compile(r"infiniband/(?P<adapter>[^/]+)/ports/(?P<port>\d+)/")


class ErrorRule(StrictModel):
    """How many events of one counter a sound node may have; see ``error_rules.yml``."""

    counters: tuple[str, ...]
    allowed: float = Field(ge=0)
    hours: float | None = Field(default=None, gt=0)
    bit_error_ratio: float | None = Field(default=None, gt=0, lt=1)
    falls: bool = False
    before: bool = False
    source: str = Field(min_length=1)

    def limit(self, hours: float, bits_per_s: float) -> float:
        """Return the largest number of events in `hours` on a link of `bits_per_s`."""
        if self.hours:
            return self.allowed * max(1.0, hours / self.hours)
        expected = (self.bit_error_ratio or 0.0) * bits_per_s * hours * 3600
        return max(self.allowed, expected + DEVIATIONS * math.sqrt(expected))


@cache
def error_rules() -> tuple[ErrorRule, ...]:
    """Return the rules, in the order in which they are tried."""
    return shipped_data("proofmark.site.node", "error_rules.yml", tuple[ErrorRule, ...])


@lru_cache(maxsize=4096)
def rule_of(counter: str) -> ErrorRule | None:
    """Return the rule of a counter; None if its events are information."""
    return next(
        (
            rule
            for rule in error_rules()
            if any(fnmatchcase(counter, pattern) for pattern in rule.counters)
        ),
        None,
    )


def bits_per_s(counter: str, facts: NodeFacts, values: Mapping[str, str]) -> float:
    """Return the bits/s of the link of a counter; 0 if they are not known.

    Args:
        values: the counters of the node, with the state of its PCIe links.
    """
    kind, _, rest = counter.partition("/")
    device = rest.partition("/")[0]
    if kind == "net":
        return next((1e6 * (nic.megabits or 0) for nic in facts.nics if nic.name == device), 0.0)
    if kind == "pcie":
        speed = re.match(
            r"(\d{1,3}(?:\.\d)?) GT/s", values.get(f"pcie/{device}/current_link_speed", "")
        )
        width = whole_number(values.get(f"pcie/{device}/current_link_width", ""))
        known = speed is not None and width is not None and float(speed[1]) <= FASTEST_GT
        return 1e9 * float(speed[1]) * width if speed and width and known else 0.0
    port = _PORT.match(counter)
    rates = (
        shown_gbit(each.rate or "")
        for each in facts.ports
        if port and (each.adapter, each.port) == (port["adapter"], port["port"])
    )
    return 1e9 * (next(rates, None) or 0.0)
