"""Exports the accepted state of the nodes as a configuration of LBNL Node Health Check.

NHC evaluates each line of its configuration with the ``eval`` of bash. So a fact of a node is only
written if it has no character with a meaning for bash, for NHC's patterns or for its ``read``.
Source of the syntax: README and ``scripts/*.nhc`` of NHC 1.4.3.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from textwrap import wrap

import numpy as np
from ClusterShell.RangeSet import RangeSet

from proofmark.common.files import write_atomic
from proofmark.common.nodesets import folded, hosts_of, is_name
from proofmark.judge.ending import counts_line
from proofmark.judge.verdict import Verdict
from proofmark.packages.exports.export import Export
from proofmark.records.columns import Records
from proofmark.runs.nodes import Node, nodes_of
from proofmark.runs.run import Run, reported_names, site_of
from proofmark.site.file_systems import network_kinds
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import AUTOFS, MountedFileSystem, Nic, is_below, mount_of

PROCESSORS, MEMORY, MOUNTS = "processors", "memory", "mounts"
LINKS, CLOCKS = "links", "clocks"
TOPICS = (PROCESSORS, MEMORY, MOUNTS, LINKS, CLOCKS)
"""The topics of checks, in the order of the file."""
LIKE_MEMORY = 0.005
"""Nodes whose memory differs by at most this share are like: kernels reserve different amounts."""
MEMORY_FUDGE = "1%"
"""NHC tolerates this share. One lost module of 64 is 1.6 % of the memory."""
_X86 = ("x86_64", "i686", "i586", "i386")
_SAFE = re.compile(r"[A-Za-z0-9/](?:[A-Za-z0-9@%+=:,./_-]| (?=[A-Za-z0-9]))*")
_SYS_CPU = "/sys/devices/system/cpu"


class Literal(str):
    """A word that the kit defines: not a fact of a node."""

    __slots__ = ()


@dataclass(frozen=True, order=True)
class NhcCheck:
    """One check: a function of NHC and its arguments, or a reason why a fact is not checked.

    Attributes:
        words: the function and its arguments; empty if the fact is not checked.
        unchecked: the reason; empty if the fact is checked.
    """

    topic: str
    words: tuple[str, ...]
    unchecked: str = ""

    def __str__(self) -> str:
        return shlex.join(self.words)

    @property
    def mount(self) -> str:
        """The mount point of a check of `MOUNTS`."""
        return self.words[-1]


@dataclass(frozen=True)
class MemorySizes:
    """The sizes of like nodes, for their total memory in bytes: the least and the greatest."""

    like: Mapping[int, tuple[int, int]]

    @classmethod
    def of(cls, totals: Iterable[int]) -> MemorySizes:
        """Return the classes of `totals`, the total memory of all nodes in bytes.

        A class begins with its least size. It ends before the first size that is greater by more
        than `LIKE_MEMORY`.
        """
        ordered = sorted(set(totals))
        starts: list[int] = []
        for index, total in enumerate(ordered):
            if not starts or total > ordered[starts[-1]] * (1 + LIKE_MEMORY):
                starts.append(index)
        like = {}
        for start, end in pairwise([*starts, len(ordered)]):
            for total in ordered[start:end]:
                like[total] = ordered[start], ordered[end - 1]
        return cls(like)


def checks_of(facts: NodeFacts, sizes: MemorySizes, scratch: str, temporary: str) -> list[NhcCheck]:
    """Return the checks that a node with these facts passes, and the facts without a check.

    Args:
        sizes: the sizes of the memory of all nodes.
        temporary: the mount point that the kit mounts and unmounts itself; empty if there is none.
    """
    sources: list[tuple[str, Callable[[], Iterator[tuple[str, ...]]]]] = [
        (PROCESSORS, lambda: _processors(facts)),
        (MEMORY, lambda: _memory(facts, sizes)),
        (MOUNTS, lambda: _mounts(facts, scratch, temporary)),
        (LINKS, lambda: _ports(facts)),
        (LINKS, lambda: (words for nic in facts.nics for words in _nic(nic))),
        (CLOCKS, lambda: _clocks(facts)),
    ]
    checks = []
    for topic, source in sources:
        checks += [_check(topic, words) for words in source()]
    return checks


def _check(topic: str, words: tuple[str, ...]) -> NhcCheck:
    """Return a check, or the reason if a fact in `words` has a character that NHC would interpret.

    One word is a reason.
    """
    if len(words) == 1:
        return NhcCheck(topic, (), words[0])
    function, *arguments = words
    if all(isinstance(word, Literal) or _SAFE.fullmatch(word) for word in arguments):
        return NhcCheck(topic, words)
    return NhcCheck(topic, (), f"{function}: a character that the shell of NHC interprets")


def _file(path: str, content: str) -> tuple[str, ...]:
    """Return the check that a line of the file `path` is `content`."""
    return "check_file_contents", path, content


def _processors(facts: NodeFacts) -> Iterator[tuple[str, ...]]:
    cores, threads = facts.cores_online, facts.cpus_online
    sockets = f"{facts.sockets}"
    if facts.machine not in _X86:
        # Without "physical id" in /proc/cpuinfo NHC counts each processor as a socket and a core.
        sockets, cores = f"{threads}", threads
    elif len(facts.cpus) < threads:
        sockets = Literal("")  # the probe did not see all sockets
    elif cores % facts.sockets or threads % facts.sockets:
        yield ("check_hw_cpuinfo: the sockets have different numbers of cores",)
        return
    yield "check_hw_cpuinfo", sockets, f"{cores}", f"{threads}"


def _memory(facts: NodeFacts, sizes: MemorySizes) -> Iterator[tuple[str, ...]]:
    least, greatest = sizes.like[facts.memory_total_bytes]
    if "meminfo.MemTotal" not in facts.unread:
        yield "check_hw_physmem", f"{least // 1024}k", f"{greatest // 1024}k", MEMORY_FUDGE
    if facts.swap_bytes is not None:
        yield "check_hw_swap", f"{facts.swap_bytes // 1024}k", f"{facts.swap_bytes // 1024}k"
    if facts.numa and "numa" not in facts.absent:
        domains = str(RangeSet.fromlist(f"{domain.index}" for domain in facts.numa))
        yield _file("/sys/devices/system/node/online", domains)
    speeds = {dimm.configured for dimm in facts.dram}
    if len(speeds) == 1 and (speed := speeds.pop()) is not None:
        # dmidecode before 3.2 prints "Configured Clock Speed" in MHz.
        line = Literal(f"/Configured (Memory|Clock) Speed: {speed:d} M(T/s|Hz)$/")
        yield "check_dmi_data_match", "-t", Literal("17"), line
    elif speeds:
        yield ("check_dmi_data_match: the memory modules have different speeds",)


def _mounts(facts: NodeFacts, scratch: str, temporary: str) -> Iterator[tuple[str, ...]]:
    mounts = [mount for mount in facts.mounts if mount.kind != AUTOFS]
    on_demand = {*facts.automounts, *(m.target for m in facts.mounts if m.kind == AUTOFS)}
    by_target = {mount.target: mount for mount in mounts}  # the last one hides the others
    holding = mount_of(scratch, mounts)
    for mount in by_target.values():
        if mount.target == temporary:
            yield ("the scratch file system: the kit mounts it for a run only",)
        elif mount.kind in network_kinds() or mount == holding:
            automatic = any(is_below(mount.target, each) for each in on_demand)
            yield _mount(mount, automatic=automatic)


def _mount(mount: MountedFileSystem, *, automatic: bool) -> tuple[str, ...]:
    """Return the check of a mount.

    With ``-F`` NHC uses the folder before it looks, so that an automounter mounts it: a map that is
    direct has an autofs at the mount point, one that is indirect has it at a folder above.
    """
    # NHC takes /.../ for a regular expression. Its `read` splits a name with a blank, which is
    # octal in /proc/mounts.
    pattern = mount.source.startswith("/") and mount.source.endswith("/")
    if pattern or " " in mount.source + mount.target:
        return ("check_fs_mount: a name that NHC cannot compare",)
    state = "rw" if "rw" in mount.options.split(",") else "ro"
    place = (Literal("-F" if automatic else "-f"), mount.target)
    options = (Literal("-t"), mount.kind, Literal("-s"), mount.source, *place)
    return f"check_fs_mount_{state}", *options


def _ports(facts: NodeFacts) -> Iterator[tuple[str, ...]]:
    """Yield one check for each active port: NHC requires the same rate of the same port."""
    active = [port for port in facts.ports if (port.state or "").endswith("ACTIVE")]
    if active and facts.modules and "ib_umad" not in facts.modules:
        yield ("check_hw_ib: the kernel module ib_umad is not loaded, and NHC requires it",)
        return
    for port in active:
        rate = re.match(r"[0-9]+(?:\.[0-9]+)?(?= Gb/sec)", port.rate or "")
        if rate is None:
            yield ("check_hw_ib: the rate of an active port is not known",)
        else:
            yield "check_hw_ib", rate[0], f"{port.adapter}:{port.port}"


def _nic(nic: Nic) -> Iterator[tuple[str, ...]]:
    """Yield the checks of an interface that is up: it exists, its speed, its PCIe link."""
    if nic.state != "up":
        return
    if "/" in nic.name:
        yield ("check_hw_eth: an interface with a slash in its name",)
        return
    yield "check_hw_eth", nic.name
    if nic.megabits is not None:
        yield _file(f"/sys/class/net/{nic.name}/speed", f"{nic.megabits}")
    link = re.fullmatch(r"x(\d+) at (.*)", nic.link or "", re.ASCII)
    if link and "nknown" not in link[2]:
        device = f"/sys/class/net/{nic.name}/device"
        yield _file(f"{device}/current_link_width", link[1])
        yield _file(f"{device}/current_link_speed", link[2])


def _clocks(facts: NodeFacts) -> Iterator[tuple[str, ...]]:
    """Yield the checks of the governor of all processors, the frequency, turbo and NTP."""
    policy = f"{_SYS_CPU}/cpu0/cpufreq"
    if facts.governor is not None and " " in facts.governor:
        yield ("scaling_governor: the processors have different governors",)
    elif facts.governor is not None:
        yield _file(f"{policy}/scaling_governor", facts.governor)
        # grep returns 1 if no processor has another governor.
        others = "grep", Literal("-rqvxF"), Literal("--include=scaling_governor"), facts.governor
        yield "check_cmd_output", Literal("-r"), "1", *others, _SYS_CPU
    if facts.frequency_driver is not None:
        yield _file(f"{policy}/scaling_driver", facts.frequency_driver)
    if facts.max_hz is not None:
        yield _file(f"{policy}/cpuinfo_max_freq", f"{facts.max_hz // 1000}")
    if facts.turbo is not None and "frequency.no_turbo" not in facts.absent:
        yield _file(f"{_SYS_CPU}/intel_pstate/no_turbo", "0" if facts.turbo else "1")
    elif facts.turbo is not None:
        yield _file(f"{_SYS_CPU}/cpufreq/boost", "1" if facts.turbo else "0")
    if facts.clock_offset_s is not None:
        synchronised = Literal("/^Leap status *: Normal$/")
        yield "check_cmd_output", Literal("-m"), synchronised, "chronyc", Literal("-n"), "tracking"


_RANGEABLE = re.compile(
    r"(?P<prefix>[A-Za-z0-9_-]*[A-Za-z_-])(?P<digits>[0-9]{1,18})"
    r"(?P<suffix>[A-Za-z-]*(?:\.[A-Za-z0-9.-]*)?)"
)
"""A name that NHC accepts in a range. Its shell compares the digits as numbers of 64 bits."""


def match_expressions(names: Iterable[str]) -> list[str]:
    """Return the match expressions that match exactly the hosts in `names`: one or two.

    NHC's ranges have one pair of brackets, without commas, and compare the number of digits
    (``mcheck_range`` in ``scripts/common.nhc`` of NHC 1.4.3). A name that fits no range is part of
    a regular expression. A dot is ``[.]`` there, because NHC's ``read`` removes backslashes.

    Args:
        names: names of hosts, as `nodesets.NAME` defines them.
    """
    groups: dict[tuple[str, str, int], set[int]] = {}
    others: list[str] = []
    for name in sorted(set(names)):
        match = _RANGEABLE.fullmatch(name)
        if match is None:
            others.append(name.replace(".", "[.]"))
            continue
        key = match["prefix"], match["suffix"], len(match["digits"])
        groups.setdefault(key, set()).add(int(match["digits"]))
    parts = []
    for (prefix, suffix, width), numbers in sorted(groups.items()):
        parts += [f"{prefix}{part}{suffix}" for part in _parts(numbers, width)]
    ranges = ",".join(parts)
    expressions = [f"{{{ranges}}}"] if ranges else []
    return expressions + ([f"/^({'|'.join(others)})$/"] if others else [])


def _parts(numbers: set[int], width: int) -> Iterable[str]:
    """Yield ``[03-07]`` for each contiguous part of `numbers`, and ``09`` for a single number."""
    padded = RangeSet.fromlist(f"{number:0{width}d}" for number in numbers)
    for part in str(padded).split(","):
        yield f"[{part}]" if "-" in part else part


USUAL_MOUNT = 0.5
"""A mount that fewer nodes have is not checked: an automounter may mount it on demand."""
CHANGED = "differs between the jobs of the run"


@dataclass
class AcceptedState:
    """The checks of the accepted nodes.

    Attributes:
        checks: the nodes that pass each check, by their host names.
        unchecked: the nodes for which a fact has no check, by topic and reason.
        left_out: the nodes without an accepted state, by reason.
    """

    checks: dict[NhcCheck, set[str]] = field(default_factory=dict)
    unchecked: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    left_out: dict[str, set[str]] = field(default_factory=dict)


class NodeHealthCheck(Export):
    """Writes the accepted state of the nodes as checks of LBNL Node Health Check."""

    content = "the accepted state of the nodes as checks of LBNL Node Health Check"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write ``nhc.conf``; return no file if the run has no accepted state of a node."""
        state = accepted_state(run, verdict)
        if not state.checks:
            return []
        path = folder / "nhc.conf"
        write_atomic(path, "".join(f"{line}\n" for line in _lines(run, verdict, state)))
        return [path]


def accepted_state(run: Run, verdict: Verdict) -> AcceptedState:
    """Return the checks that the accepted nodes of `run` pass.

    A node is accepted if it is not bad and has a valid figure. A check is part of its state if its
    facts at the start of each job of the run pass it.
    """
    state, site = AcceptedState(), site_of(run)
    nodes = nodes_of(run)
    aliases = reported_names(run, site)
    for name in run.plan.nodes():
        if not {name, *aliases.get(name, ())} & nodes.keys():
            state.left_out.setdefault("they reported no facts", set()).add(name)
    bad, sound = {node.host for node in verdict.bad.nodes}, _nodes_with_figures(verdict)
    accepted = {}
    for name, node in nodes.items():
        if reason := _refused(node, bad=name in bad, sound=name in sound):
            state.left_out.setdefault(reason, set()).add(name)
        else:
            accepted[node.newest.reported or name] = node  # NHC compares it with `hostname`
    scratch = site.partition.scratch
    temporary = scratch.mount.point if scratch.mount else ""
    facts = []
    for node in accepted.values():
        facts += [job.provenance.facts for job in node.jobs]
    sizes = MemorySizes.of(each.memory_total_bytes for each in facts)
    for host, node in accepted.items():
        by_job = [
            checks_of(job.provenance.facts, sizes, scratch.path, temporary) for job in node.jobs
        ]
        _add(state, host, by_job)
    _leave_out_rare_mounts(state)
    return state


def _refused(node: Node, *, bad: bool, sound: bool) -> str:
    """Return why a node has no accepted state; empty if it has one."""
    if not node.jobs:
        return "their facts are damaged"
    if not is_name(node.newest.reported or node.host):
        return "their host name is not one word"
    if bad:
        return "the run found a fault"
    return "" if sound else "they have no valid figure"


def _nodes_with_figures(verdict: Verdict) -> set[str]:
    """Return the nodes with a valid figure, alone or with others."""
    aggregates = verdict.results.aggregates
    numbers = np.unique(aggregates.node[aggregates.valid]).tolist()
    hosts: set[str] = set()
    for number in numbers:
        hosts.update(hosts_of(aggregates.records.nodes[number]))
    return hosts


def _add(state: AcceptedState, host: str, by_job: list[list[NhcCheck]]) -> None:
    """Add the checks that `host` passes in each of its jobs."""
    always = set(by_job[0]).intersection(*by_job[1:])
    found = set()
    for checks in by_job:
        found.update(checks)
    for check in sorted(found):
        if check.unchecked:
            state.unchecked.setdefault((check.topic, check.unchecked), set()).add(host)
        elif check in always:
            state.checks.setdefault(check, set()).add(host)
        else:
            reason = f"{check.words[0]}: {CHANGED}"
            state.unchecked.setdefault((check.topic, reason), set()).add(host)


def _leave_out_rare_mounts(state: AcceptedState) -> None:
    """Remove the checks of mounts that fewer than `USUAL_MOUNT` of the nodes have."""
    hosts = set()
    for each in state.checks.values():
        hosts.update(each)
    mounts = [check for check in state.checks if check.topic == MOUNTS]
    found = []
    for check in mounts:
        found += [check.mount for _ in state.checks[check]]
    having = Counter(found)
    for check in mounts:
        if having[check.mount] < USUAL_MOUNT * len(hosts):
            reason = "a file system that fewer than half of the nodes have"
            state.unchecked.setdefault((MOUNTS, reason), set()).update(state.checks.pop(check))


def _lines(run: Run, verdict: Verdict, state: AcceptedState) -> Iterator[str]:
    plan = run.plan
    yield from _comment("LBNL Node Health Check: the accepted state of nodes. Made by proofmark.")
    yield from _comment(
        f"run {run.id}, site {plan.site}, partition {plan.partition}, suite {plan.suite}: "
        f"{verdict.headline().word}: {counts_line(verdict.counts)}"
    )
    hosts = set()
    for each in state.checks.values():
        hosts.update(each)
    yield from _comment(f"nodes with checks: {_count(hosts)}")
    for reason, names in sorted(state.left_out.items()):
        yield from _comment(f"nodes without checks, because {reason}: {_count(names)}")
    for topic in TOPICS:
        yield ""
        yield from _comment(topic)
        for (of, reason), names in sorted(state.unchecked.items()):
            if of == topic:
                yield from _comment(f"not checked: {reason}: {_count(names)}")
        yield from _checks(state.checks, topic)


def _checks(checks: Mapping[NhcCheck, set[str]], topic: str) -> Iterator[str]:
    for check in sorted(each for each in checks if each.topic == topic):
        for target in match_expressions(checks[check]):
            yield f"{target} || {check}"


def _comment(text: str) -> Iterator[str]:
    """Yield comment lines. NHC would join a line that ends with a backslash to the next one."""
    for line in wrap(re.sub(r"[^ -~]|\\", "?", text), 98):
        yield f"# {line}"


def _count(names: Iterable[str]) -> str:
    given = list(names)
    return f"{len(given)} ({folded(given)})"
