"""The checks before a machine is changed, each with a named outcome.

One of them is whether the nodes see the checkout and the runs at their paths on this machine. The
scripts of jobs and steps are in the folder of the run, and the nodes run them there.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from proofmark.common.errors import BadInput, InputError, OutsideError, nearest
from proofmark.common.host_names import same_host
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, nodes_by
from proofmark.common.printed_command import setting
from proofmark.common.rights import run_user, starting_as
from proofmark.common.text import counted, duration
from proofmark.machine.bmc.back_end import BackEndContext, Credentials, back_end
from proofmark.machine.modes.rollout import hosts_of
from proofmark.machine.node_commands import SCRIPT as MISSING_PROGRAMS
from proofmark.machine.node_commands import (
    CalledProgram,
    NodeProcess,
    RemoteShell,
    lacking,
    run_on_nodes,
    run_text,
    step_programs,
)
from proofmark.machine.outcome import NodeError, Outcome, fan_out, split
from proofmark.machine.scheduler import (
    QueueLimits,
    Request,
    Scheduler,
    SchedulerError,
    SchedulerUnavailable,
    SubmitLimitReached,
    draining,
    is_closed,
    scheduler,
)
from proofmark.machine.scheduler_commands import EVERY, ask_scheduler
from proofmark.machine.scratch_checks import judge_scratch, probe_script, read_scratch
from proofmark.plan.plan import Plan
from proofmark.plan.totals import nodes_to_reset, resets_s
from proofmark.site.firmware import Firmware
from proofmark.site.hardware import StatedNode
from proofmark.site.installed_parts import (
    Parts,
    declared_parts,
    missing_parts,
    parts_of,
    unknown_parts,
)
from proofmark.site.inventory import Site
from proofmark.site.node.facts import parse_probe

PROBE = (files("proofmark.site.node") / "probe.sh").read_text(encoding="utf-8")
CLOCK_S = 2.0
"""With a larger difference of clocks, logs, counters and certificates are not comparable."""
CLOCK_AND_UID = """#: clock-and-uid.sh USER
date +%s
id -u "$1"
"""
_SHOWN = 4
"""The limit of the nodes that a finding shows with their states."""
_NO_CHANGE = "the plan changes no mode"
SSH_OUTCOMES = {
    "Host key verification failed": "HOST_KEY",
    "REMOTE HOST IDENTIFICATION HAS CHANGED": "HOST_KEY",
    "Permission denied": "LOGIN",
    "no such user": "NO_USER",
}
"""The outcome of each message of ssh and id."""


NO_PROBLEM = {
    "NOT_NEEDED": "the plan does not need it",
    "NOT_GIVEN": "the check needs an option",
    "TO_INSTALL": "the stage build installs it",
    "UNKNOWN": "it cannot be read; the text has the command that shows it",
}
"""Outcomes that are neither a confirmation nor a problem, with their meaning."""


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        outcome: ``OK``, one of `NO_PROBLEM`, or the name of a problem.
        text: the nodes and the details.
    """

    what: str
    outcome: str
    text: str
    nodes: tuple[str, ...] = ()

    @property
    def bad(self) -> bool:
        """Whether the problem must be solved before a run."""
        return self.outcome not in ("OK", *NO_PROBLEM)


class Answer(NamedTuple):
    """What one node answered: an outcome, as that of a `Finding`, and the details."""

    outcome: str
    details: str = ""


def preflight(
    site: Site, plan: Plan, credentials: Credentials, window_end: datetime | None, user: str
) -> list[Finding]:
    """Return the findings of all checks, which change nothing.

    A plan that changes no mode needs neither BMCs nor the permission to drain.
    """
    firmware = site.partition.firmware
    changing = any(group.mode != plan.current_mode for group in plan.groups)
    return [
        *_nodes(site, user),
        *_programs(site, step_programs(bound_memory=plan.binds_memory())),
        *_parts(site),
        *_bmcs(site, firmware if changing else None, credentials),
        _drain_permission(site, firmware if changing else None),
        _window(plan, firmware, window_end),
        _stop_command(site),
        *_version(site),
    ]


def _nodes(site: Site, user: str) -> list[Finding]:
    what = "nodes: host key, log-in, clock, uid"
    try:
        uid = pwd.getpwnam(user).pw_uid
    except KeyError:
        return [Finding(what, "NO_USER", f"{user}: no such user on this host")]
    processes, failed = run_text(site, site.hosts, f"set -- {shlex.quote(user)}\n{CLOCK_AND_UID}")
    results = {node: _identity(process, user, uid) for node, process in processes.items()}
    for node, error in failed.items():
        outcomes = (outcome for text, outcome in SSH_OUTCOMES.items() if text in error.text)
        results[node] = Answer(next(outcomes, error.outcome), error.text)
    return _grouped(what, results)


def _identity(process: NodeProcess, user: str, uid: int) -> Answer:
    """Return the answer of a node that printed its clock and the uid of `user`."""
    try:
        clock, node_uid = map(int, process.stdout.split())
    except ValueError:
        found = f"found {process.stdout[:80]!r}; accepted: a clock and a uid"
        return Answer("UNEXPECTED", found)
    if not process.began - CLOCK_S <= clock + 1 or not clock <= process.ended + CLOCK_S:
        return Answer("CLOCK_SKEW", f"{clock - process.began:+.0f} s")
    if node_uid != uid:
        return Answer("OTHER_UID", f"{user} is {node_uid}, here {uid}")
    return Answer("OK")


def _programs(site: Site, needed: Mapping[str, CalledProgram]) -> list[Finding]:
    """Check on every node that can be reached for the programs that the step scripts call.

    The stage build installs them if the programs of the plan are those of the distribution.
    """
    lacks = "TO_INSTALL" if site.partition.provision_from == "system" else "NO_PROGRAM"
    outputs, _ = run_on_nodes(site, site.hosts, (MISSING_PROGRAMS, needed))
    nodes_of = nodes_by({node: lacking(output, needed) for node, output in outputs.items()})
    what = "programs: what the steps call"
    return [
        _of_nodes(what, nodes, Answer(lacks if missing else "OK", missing))
        for missing, nodes in nodes_of.items()
    ]


def _parts(site: Site) -> list[Finding]:
    """Compare the parts of every node that can be reached with those that were bought."""
    what = "parts: what was bought"
    declared = declared_parts(site.partition.node)
    if declared == declared_parts(StatedNode()):
        return [Finding(what, "NOT_NEEDED", "partition.node states none")]
    processes, _ = run_text(site, site.hosts, f"set -- facts\n{PROBE}")
    return _grouped(what, {node: _missing(declared, each) for node, each in processes.items()})


def _missing(declared: Parts, process: NodeProcess) -> Answer:
    try:
        found = parts_of(parse_probe(process.stdout, "probe.sh"))
    except BadInput as error:
        return Answer("UNEXPECTED", str(error))
    if less := missing_parts(declared, found):
        return Answer("LESS_HARDWARE", "; ".join(less.values()))
    unknown = ", ".join(Message(f"part-{name}") for name in unknown_parts(declared, found))
    if unknown:
        return Answer("UNKNOWN", f"{unknown}; run probe.sh as root on the node")
    return Answer("OK")


def _bmcs(site: Site, firmware: Firmware | None, credentials: Credentials) -> list[Finding]:
    what = "BMCs: certificate, log-in, registry"
    if firmware is None:
        return [Finding(what, "NOT_NEEDED", _NO_CHANGE)]
    shell = RemoteShell(site, firmware.timeout_s)
    try:
        chosen = back_end(BackEndContext(firmware, credentials, shell))
        hosts = hosts_of(site, firmware)
    except BadInput as error:
        return [Finding(what, "BAD_INPUT", str(error))]

    def check_node(node: str) -> Answer:
        state = chosen.read(hosts[node], {})
        if state.no_reset:
            return Answer(Outcome.REFUSED, state.no_reset)
        return Answer(Outcome.BLOCKED, state.blocked) if state.blocked else Answer("OK")

    good, bad = split(fan_out(site.hosts, check_node, firmware.max_parallel))
    failed = {node: Answer(error.outcome, error.text) for node, error in bad.items()}
    return _grouped(what, {**good, **failed})


def _grouped(what: str, results: Mapping[str, Answer]) -> list[Finding]:
    """Return one finding for each outcome, with the details of its first node."""
    nodes_of = nodes_by({node: result.outcome for node, result in results.items()})
    return [_of_nodes(what, nodes, results[nodes[0]]) for nodes in nodes_of.values()]


def _of_nodes(what: str, nodes: Sequence[str], answer: Answer) -> Finding:
    text = f"{folded(nodes)}: {answer.details}".strip(": ")
    return Finding(what, answer.outcome, text, tuple(nodes))


def _drain_permission(site: Site, firmware: Firmware | None) -> Finding:
    what = "scheduler: permission to drain"
    if firmware is None:
        return Finding(what, "NOT_NEEDED", _NO_CHANGE)
    try:
        chosen = draining(site.partition.scheduler, site.partition.queue)
        missing = chosen.missing_permission(site.hosts[0])
    except BadInput as error:
        return Finding(what, "CANNOT_DRAIN", str(error))
    except NodeError as error:
        return Finding(what, error.outcome, error.text)
    return Finding(what, "NO_RIGHTS" if missing else "OK", missing or site.partition.scheduler)


def _window(plan: Plan, firmware: Firmware | None, end: datetime | None) -> Finding:
    needed_s = plan.totals.wall_s + resets_s(nodes_to_reset(plan), firmware)
    text = f"the plan takes about {duration(needed_s)}, resets included"
    if end is None:
        sets = setting("window_ends", "TIME")
        return Finding("maintenance window", "NOT_GIVEN", f"{text}; {sets} sets the end")
    left_s = (end - datetime.now(UTC)).total_seconds()
    outcome = "OK" if needed_s <= left_s else "TOO_SHORT"
    return Finding("maintenance window", outcome, f"{text}; {duration(max(0, left_s))} are left")


def _stop_command(site: Site) -> Finding:
    command = scheduler(site.partition.scheduler).stop_command
    if not command:
        return Finding("stop command", "NOT_NEEDED", "jobs are child processes; Ctrl-C ends them")
    text = f"Ctrl-C ends jobs by {command}; then run playbooks/restore.yml"
    return Finding("stop command", "OK" if shutil.which(command) else "NO_STOP", text)


def scheduler_findings(site: Site, jobs: Sequence[Request], user: str) -> list[Finding]:
    """Return what the scheduler of `site` says of its nodes, and of `jobs`; it gets none of them.

    Args:
        jobs: the longest and the largest jobs of a plan; their logs are in no folder.
    """
    partition = site.partition
    if partition.scheduler == "none":
        return []
    try:
        chosen = scheduler(partition.scheduler, partition.queue)
        with starting_as(run_user(user)):
            return [_node_states(site, chosen), *_limits(chosen, jobs), *_trials(chosen, jobs)]
    except (BadInput, OutsideError) as error:
        return [Finding("scheduler: nodes and jobs", "NO_ANSWER", str(error))]


def _node_states(site: Site, chosen: Scheduler) -> Finding:
    what, own = "scheduler: states of nodes", site.partition.queue.reservation
    states = chosen.nodes(site.hosts)
    if unknown := [node for node in site.hosts if node not in states]:
        text = f"{folded(unknown)}: the scheduler does not list them"
        return Finding(what, "NOT_LISTED", text, tuple(unknown))
    closed = {node: state for node, state in states.items() if is_closed(state, own)}
    text = "; ".join(f"{node}: {state}" for node, state in list(closed.items())[:_SHOWN])
    more = f"; {len(closed) - _SHOWN} more" if len(closed) > _SHOWN else ""
    return Finding(what, "CLOSED" if closed else "OK", f"{text}{more}", tuple(closed))


def _limits(chosen: Scheduler, jobs: Sequence[Request]) -> Iterator[Finding]:
    """Yield a finding: whether the queue of `jobs` has room for them."""
    what = "scheduler: limits of the queue"
    try:
        limits = chosen.queue_limits(partial(ask_scheduler, final=EVERY))
    except NodeError as error:
        yield Finding(what, error.outcome, error.text)
        return
    named = chosen.queue.name.partition("@")[0]  # PBS: of another server
    names = named.split(",") if named else [name for name, each in limits.items() if each.default]
    if not limits or not names:
        yield Finding(what, "UNKNOWN", "the scheduler does not show them")
    elif missing := [name for name in names if name not in limits]:
        text = f"{missing[0]!r}{nearest(missing[0], limits)}; accepted: {', '.join(limits)}"
        yield Finding(what, "NO_QUEUE", text)
    else:
        wrong = [_exceeded(name, limits[name], jobs) for name in names]
        yield Finding(what, "OK" if not all(wrong) else "UNFIT", wrong[0] or names[0])


def _exceeded(name: str, limits: QueueLimits, jobs: Sequence[Request]) -> str:
    """Return why a queue never starts one of `jobs`; empty if it starts them."""
    shown = f"{name}: {limits.source}:"
    longest = max(job.seconds for job in jobs)
    if limits.closed:
        return f"{shown} {limits.closed}"
    if limits.max_walltime_s and longest > limits.max_walltime_s:
        least, limit = duration(longest), duration(limits.max_walltime_s)
        return f"{shown} at most {limit}. A job takes {least}. Change `queue.max_walltime_s`"
    for most, needed, what in (
        (limits.max_nodes, max(len(job.nodes) for job in jobs), "nodes"),
        (limits.max_cpus, max(job.cpus * len(job.nodes) for job in jobs), "CPUs"),
    ):
        if most and needed > most:
            return f"{shown} at most {most} {what}. A job needs {needed}. Change `nodes_per_job`"
    return ""


def _trials(chosen: Scheduler, jobs: Sequence[Request]) -> Iterator[Finding]:
    """Yield for each of `jobs` whether the scheduler would take it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # the user who submits reads it
        for job in jobs:
            what = f"scheduler: {counted(len(job.nodes), 'node')} for {duration(job.seconds)}"
            request = replace(job, log=folder / "trial.log")
            try:
                request.host_file.write_text(chosen.host_list(request))
                lines = ["#!/bin/sh", *chosen.header(request), ":", ""]
                request.script.write_text("\n".join(lines))
                asked = chosen.trial(request.script, request)
            except SchedulerError as error:
                open_ = isinstance(error, (SchedulerUnavailable, SubmitLimitReached))
                yield Finding(what, "NO_ANSWER" if open_ else "REFUSED", str(error))
            else:
                text = "" if asked else "this scheduler has no test of a job"
                yield Finding(what, "OK" if asked else "UNKNOWN", text)


def scratch_findings(site: Site, plan: Plan) -> list[Finding]:
    """Check the scratch directory, its type, its source and its space on the nodes that answer."""
    what, demand = "scratch: path, type, source, space", site.partition.scratch
    if demand.mount:
        return [Finding(what, "NOT_NEEDED", "the stage scratch mounts and checks it")]
    outputs, _ = run_on_nodes(site, site.hosts, probe_script(demand, site.partition.run_user))
    facts, findings = [], []
    for node, text in outputs.items():
        try:
            facts += read_scratch(text, node)
        except BadInput as error:
            findings.append(Finding(what, "UNEXPECTED", str(error), (node,)))
    problems = judge_scratch(facts, demand, plan.totals.scratch_peak_bytes, may_create=True)
    findings += [Finding(what, "BAD_SCRATCH", str(each)) for each in problems]
    return findings or ([Finding(what, "OK", demand.path)] if facts else [])


def _version(site: Site) -> list[Finding]:
    what = "scheduler: version"
    try:
        too_old = scheduler(site.partition.scheduler).unfit()
    except (BadInput, OutsideError) as error:
        return [Finding(what, "NO_ANSWER", str(error))]
    return [Finding(what, "TOO_OLD", too_old)] if too_old else []


MOUNTS = Path("/proc/self/mounts")
IN_MEMORY = frozenset({"devtmpfs", "ramfs", "tmpfs"})
"""Types of file systems in the memory of one machine."""
OF_ONE_MACHINE = ("/tmp", "/var/tmp")
"""Folders of temporary files, which each machine has for itself (Filesystem Hierarchy Standard)."""
MARK = Path("benchmarks/suites.yml")
"""A file of each checkout. Its content shows a checkout of another version at the same path."""
ACCEPTED = "a folder that all nodes see at this path, for example below a shared home directory"
CHECKOUT_MARK = """#: checkout-mark.sh FILE
if test -r "$1"; then sha256sum <"$1"; else echo none; fi
"""
WHAT = "checkout: seen by the nodes"


def unseen(site: Site, folder: Path) -> InputError | None:
    """Return the error of a `folder` that only this machine can see, if other hosts must see it.

    Virtual nodes are on this machine.
    """
    hosts = other_hosts(site)
    if not hosts or site.partition.origin == "emulated":
        return None
    path = folder.resolve()
    reason = only_here(path, MOUNTS.read_text(encoding="utf-8", errors="replace"))
    if not reason:
        return None
    found = f"a folder {reason}, which {folded(hosts)} cannot see"
    return InputError(f"{path}", "", found, ACCEPTED)


def refuse_unseen(site: Site, folder: Path) -> None:
    """Refuse to run steps of `site` from a `folder` that its hosts cannot see.

    Raises:
        BadInput: the folder is one that only this machine can see.
    """
    if mistake := unseen(site, folder):
        raise BadInput(mistake)


def other_hosts(site: Site) -> list[str]:
    """Return the hosts of `site` that are not this machine."""
    if site.connection == "local":
        return []
    here = ("localhost", os.uname().nodename)
    return [host for host in site.hosts if not any(same_host(host, name) for name in here)]


def only_here(path: Path, mounts: str) -> str:
    """Return why no other machine can see `path`; empty if others may see it.

    Args:
        path: an absolute path without symbolic links.
        mounts: the text of ``/proc/self/mounts``.
    """
    points = (line.split(" ")[1:3] for line in mounts.splitlines() if line.count(" ") >= 2)
    types = {Path(point): kind for point, kind in points}
    kind = next((types[each] for each in (path, *path.parents) if each in types), "")
    if kind in IN_MEMORY:
        return f"on a file system in memory ({kind})"
    inside = (folder for folder in OF_ONE_MACHINE if path.is_relative_to(folder))
    return next((f"below {folder}" for folder in inside), "")


def checkout_findings(site: Site, kit: Path) -> list[Finding]:
    """Return the findings of the nodes that can be reached: whether they see the checkout `kit`.

    The nodes are read as the user of the connection.
    """
    if not other_hosts(site):
        return [Finding(WHAT, "NOT_NEEDED", "no other node than this machine")]
    path = kit.resolve() / MARK
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    processes, _ = run_text(site, site.hosts, f"set -- {shlex.quote(str(path))}\n{CHECKOUT_MARK}")
    outcomes = {digest: "OK", "none": "NO_CHECKOUT"}
    found = {
        node: outcomes.get(process.stdout.split(" ")[0].strip(), "OTHER_CHECKOUT")
        for node, process in processes.items()
    }
    texts = {
        "OK": f"{path.parents[1]}",
        "NO_CHECKOUT": f"{path} is missing there, or not readable; accepted: {ACCEPTED}",
        "OTHER_CHECKOUT": f"{path} differs from the file of this machine; accepted: {ACCEPTED}",
    }
    return [
        Finding(WHAT, outcome, f"{folded(nodes)}: {texts[outcome]}")
        for outcome, nodes in nodes_by(found).items()
    ]
