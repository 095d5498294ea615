"""The commands ``gate`` and ``stage gate-decide``: nodes return to service by measurement."""

from __future__ import annotations

import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from proofmark.cli.command import (
    ArgumentUse,
    Command,
    above_zero,
    run_argument,
    runs_folder_argument,
    site_arguments,
    suite_argument,
    verb_argument,
)
from proofmark.cli.inputs import evidence_of, inventory_of, kit_benchmarks, read_stdin, site_name
from proofmark.cli.output import print_json, print_line
from proofmark.common.errors import (
    BadInput,
    NodeFailure,
    OutsideError,
    Stopped,
    bad_input,
    note_failed_nodes,
)
from proofmark.common.input_limits import MAX_WAIT_S
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.nodesets import HostName, folded
from proofmark.common.processes import on_stop_signal
from proofmark.common.progress_lines import say
from proofmark.common.rights import this_user
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import counted, one_line
from proofmark.judge.judging import judged
from proofmark.machine.node_commands import run_on_nodes
from proofmark.machine.outcome import NodeError
from proofmark.machine.scheduler import NodeUse, ReservingScheduler, of_kind, scheduler
from proofmark.machine.scratch_checks import judge_scratch, read_scratch
from proofmark.packages.service.gate_checks import GateCheck, last_checks, read_checks, vendor_file
from proofmark.packages.service.gate_decisions import LONGEST, NOT_MEASURED, Action, vendor_entry
from proofmark.packages.service.gates import (
    GateState,
    NodeGate,
    begin_gate,
    gates,
    open_gate,
    unnamed_gate,
)
from proofmark.packages.service.rolling_nodes import decisions_of
from proofmark.plan.expansion import located, make_plan
from proofmark.records.stored_readings import stored_or_read
from proofmark.runs.run import benchmarks_of
from proofmark.runs.state import is_locked, site_folder
from proofmark.site.inventory import Site, load_site
from proofmark.site.machines import machines_of

MOST_NODES = 64
"""A gate of more nodes needs a confirmation."""
MOST_KEPT = 4
"""With this number of kept nodes the nightly check takes no further nodes: a fault of the site must
not drain a node after the other."""


def refuse_too_many(site: Site, most: int = MOST_NODES) -> None:
    """Refuse a gate of a whole partition, or of more than `most` nodes.

    Raises:
        BadInput: it names what confirms such a gate.
    """
    count, whole = len(site.hosts), len(site.partition_hosts or site.hosts)
    if count == whole or count > most:
        size = f"{counted(count, 'node')}" + (
            f", the whole partition {site.partition_name}" * (count == whole)
        )
        accepted = f"at most {most} nodes, not all; gate_whole_partition=true takes more"
        raise bad_input("-l", "", size, accepted)


def choose_next(
    site: Site, gate: NodeGate, checks: Sequence[GateCheck], suite: str, node_hours: float
) -> list[str]:
    """Return the nodes of the nightly check of `site`; see `next_nodes`.

    Idle nodes in service are chosen if no run and no gate holds them. No node is chosen if gates
    keep `MOST_KEPT` nodes of the partition out of service.
    """
    last = last_checks(checks)
    hosts = list(site.hosts)
    statuses, _ = gate.check(hosts, {}, take_over=True)
    known = gate.scheduler.node_status(hosts)
    kept = [
        node
        for node in hosts
        if node in last and last[node].drain and known[node].reason == last[node].drain
    ]
    if len(kept) >= MOST_KEPT:
        say(f"proofmark: {folded(kept)}: kept by gates; no further node is taken until they return")
        return []
    states = gate.scheduler.nodes(hosts)
    idle = [
        node
        for node, status in statuses.items()
        if not status.out and node in states and states[node].use is NodeUse.IDLE
    ]
    benchmarks = kit_benchmarks()

    def cost(nodes: Sequence[str]) -> float:
        some = site.model_copy(update={"hosts": tuple(nodes)})
        return make_plan(benchmarks, suite, some, machines, digest=False).totals.node_hours

    machines, _ = machines_of(site)
    times = {node: check.at for node, check in last.items()}
    chosen = next_nodes(hosts, idle, times, cost, node_hours)
    return [node for node in hosts if node in chosen]


def next_nodes(
    nodes: Sequence[str],
    idle: Collection[str],
    checked: Mapping[str, str],
    cost: Callable[[Sequence[str]], float],
    node_hours: float,
) -> list[str]:
    """Return the nodes to check now: those whose last check is the longest time ago.

    A node that was never checked comes first. Equal nodes are in the order of `nodes`. The plan of
    the returned nodes costs at most `node_hours`. A budget that does not suffice for one node
    returns no node.

    Args:
        idle: the nodes without jobs.
        checked: the time of the last check of a node, in ISO 8601 with one time zone.
        cost: returns the node-hours of the plan of some nodes; it grows with their number.
    """
    waiting = sorted((node for node in nodes if node in idle), key=lambda n: checked.get(n, ""))
    fits, fails = 0, 1
    while fails <= len(waiting) and cost(waiting[:fails]) <= node_hours:
        fits, fails = fails, 2 * fails
    fails = min(fails, len(waiting) + 1)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if cost(waiting[:middle]) <= node_hours:
            fits = middle
        else:
            fails = middle
    return waiting[:fits]


FAILED, STOPPED = 1, 130
NO_NODE = "no node is checked: none is free, or none fits into the node-hours"


MOST_LETTERS = 2000


def _line(text: str) -> str:
    return one_line(text)[:MOST_LETTERS]


Words = Annotated[str, AfterValidator(_line)]
"""A text of the run user: one line for the scheduler, the journals and the list for the vendor."""


class DecidedNode(StrictModel):
    """The decision about a node: ``stage gate-decide`` prints it, ``gate conclude`` reads it."""

    node: HostName
    action: Action
    reason: Words
    fault: bool = False
    serial_number: Words = ""
    slot: Words = ""
    evidence: Words = ""


class Decided(StrictModel):
    """The decisions about all nodes of a run."""

    nodes: list[DecidedNode]


MOST_NODE_HOURS = 1e9
"""The largest budget of a nightly check."""


def arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to `parser`."""
    verb_argument(parser, VERBS)
    parser.add_argument("gate", metavar="GATE", nargs="?", help="the name of a gate")
    site_arguments(parser)
    suite_argument(parser, "node")
    runs_folder_argument(parser)
    parser.add_argument("--take-over", action="store_true", help="also nodes that others drained")
    note = f"a whole partition, or more than {MOST_NODES} nodes"
    parser.add_argument("--whole-partition", action="store_true", help=note)
    note = "the directory of the benchmarks, if it is not that of the inventory"
    parser.add_argument("--scratch-dir", help=note)
    note = "the time limit for jobs that run on the nodes (default: 3600)"
    parser.add_argument(
        "--wait-s", type=above_zero(MAX_WAIT_S), default=3600.0, metavar="SECONDS", help=note
    )
    note = "only the nodes of the nightly check, whose plan costs at most this"
    parser.add_argument(
        "--node-hours", type=above_zero(MOST_NODE_HOURS), metavar="HOURS", help=note
    )


def run(options: Namespace) -> int:
    """Return nodes to service by measurement; print which nodes are held or kept.

    Raises:
        BadInput: the scheduler does not answer, or refuses; with its command and what it printed.
    """
    try:
        return VERBS[options.verb](options)
    except OutsideError as failed:
        found = f"{failed.outcome}: {failed.text}" if isinstance(failed, NodeError) else f"{failed}"
        raise bad_input("partition", "scheduler", found, "a scheduler that answers") from None


def _check(options: Namespace) -> int:
    """Print which nodes a gate would hold, and why it would not hold others; change nothing."""
    site = _site(options)
    gate = _actions(unnamed_gate(site.name, site.partition_name, _user(site)), site)
    nodes = _chosen(options, site, gate)
    if not nodes:
        say(NO_NODE)
    free, refused = gate.check(nodes, _drained(site), take_over=options.take_over)
    for node, status in free.items():
        state = f"drained: {status.reason}" if status.out else "in service"
        say(f"{node}: would be held, {state}" + ("" if status.idle else ", jobs run on it"))
    _note(refused)
    return FAILED if nodes and not free else 0


def _hold(options: Namespace) -> int:
    """Hold nodes until they are decided about; print the gate as JSON."""
    site = _site(options)
    base = unnamed_gate(site.name, site.partition_name, _user(site))
    if options.gate:
        state = open_gate(site.name, options.gate)
        nodes = [node for node in state.held() if node in site.hosts]
    else:
        nodes = _chosen(options, site, _actions(base, site))
        runs = result_folder(kit_folder(), "runs", options.runs)
        if not nodes:
            say(NO_NODE)
            print_json({"gate": "", "nodes": "", "run": "", "reservation": ""})
            return 0
        limit = folded(nodes)
        state = begin_gate(site.name, site.partition_name, runs, _user(site), limit, nodes)
    with _working(state, site) as gate:
        failed = gate.hold(
            nodes, _drained(site), take_over=options.take_over, wait_s=options.wait_s
        )
        if gate.stop.is_set():
            _note(gate.release())
            raise Stopped("a signal; the nodes are as before")
        held = [node for node in nodes if node not in failed]
        broken = without_scratch(site, held, options.scratch_dir or "")
        failed |= gate.conclude([_as_check(state, node, each) for node, each in broken.items()])
    _note(failed)
    for node, kept in broken.items():
        say(f"proofmark: {node}: kept out of service: {kept.reason}")
    note_failed_nodes({node: NodeFailure(kept.reason) for node, kept in broken.items()})
    held = [node for node in held if node not in broken]
    for node in held:
        say(f"{node}: held by the reservation {state.reservation}")
    names = {"gate": state.id, "run": state.gate.run, "reservation": state.reservation}
    print_json({**names, "nodes": folded(held)})
    return 0 if held or options.gate else FAILED


def without_scratch(site: Site, nodes: Sequence[str], path: str) -> dict[str, DecidedNode]:
    """Return the decision about each of `nodes` that cannot use the scratch directory.

    Such a node measures nothing, and the others do not wait for it. A directory that the kit mounts
    is checked after its mount.

    Args:
        path: the directory, if it is not that of the inventory.
    """
    demand, user = site.partition.scratch, site.partition.run_user
    if demand.mount:
        return {}
    demand = demand.model_copy(update={"path": path or demand.path})
    words = [*(("-u", user) if user else ()), *(("-m", demand.source) if demand.source else ())]
    script = ("scratch-probe.sh", [*words, "-c", "-w", demand.path])
    outputs, silent = run_on_nodes(site, nodes, script)
    reasons = {node: str(error) for node, error in silent.items()}
    for node, text in outputs.items():
        try:
            problems = judge_scratch(read_scratch(text, node), demand, 0, may_create=True)
        except BadInput as error:
            problems = [*error.mistakes]
        if problems:
            reasons[node] = "; ".join(map(str, problems))
    return {
        node: DecidedNode(node=node, action="keep", reason=f"scratch: {reason}")
        for node, reason in reasons.items()
    }


def _conclude(options: Namespace) -> int:
    """Resume or drain the nodes of a gate; stdin has the decisions as JSON."""
    site = _site(options)
    state = open_gate(site.name, _name(options))
    given = {each.node: each for each in read_stdin(Decided).nodes}
    with _working(state, site) as gate:
        checks = [_as_check(state, node, given.get(node)) for node in state.held()]
        failed = gate.conclude(checks)
    for check in checks:
        if check.node not in failed:
            verb = "resumed" if check.action == "resume" else "kept out of service"
            say(f"{check.node}: {verb}: {check.reason}")
    _note(failed)
    kept = {each.node: NodeFailure(each.reason) for each in checks if each.action == "keep"}
    note_failed_nodes(kept)
    if any(check.fault for check in checks):
        say(f"list for the vendor: {vendor_file(state.site)}")
    return 0


def _release(options: Namespace) -> int:
    """Make the nodes of a gate, or of all gates that hold nodes, as they were before."""
    inventory = inventory_of(options)
    name = inventory.folder.name
    states = [open_gate(name, options.gate)] if options.gate else gates(name)
    code = 0
    if not any(state.held() for state in states):
        say(f"no gate of {name} holds a node: nothing is released")
    for state in states:
        held = state.held()
        if not held:
            continue
        if is_locked(Path(state.gate.run)):
            accepted = "a gate whose run has ended, or was stopped"
            raise bad_input("gate", "", f"{state.id}: its jobs are watched now", accepted)
        site = load_site(inventory, options.limit or state.gate.partition)
        with _working(state, site) as gate:
            failed = gate.release()
        for node in held.keys() - failed.keys():
            before = held[node].reason if held[node].out else ""
            say(
                f"{node}: released, " + (f"drained as before: {before}" if before else "in service")
            )
        _note(failed)
        code = FAILED if failed else code
    return code


def _status(options: Namespace) -> int:
    """Print the gates that hold nodes, and the nodes that gates keep out of service."""
    name = site_name(options)
    lines = [
        f"{state.id}: holds {folded(held)} since {state.gate.since}"
        for state in gates(name)
        if (held := state.held())
    ]
    lines += (
        f"{node}: kept by {check.gate}: {check.reason}"
        for node, check in last_checks(read_checks(site_folder(name))).items()
        if check.action == "keep"
    )
    for line in lines or [f"no gate of {name} holds a node or keeps one out of service"]:
        print_line(line)
    return 0


def _next(options: Namespace) -> int:
    """Print the nodes of the nightly check."""
    if options.node_hours is None:
        raise bad_input("--node-hours", "", "nothing", "the budget of node-hours")
    site = _site(options)
    gate = _actions(unnamed_gate(site.name, site.partition_name, _user(site)), site)
    nodes = _chosen(options, site, gate)
    for node in nodes:
        print_line(node)
    if not nodes:
        say(NO_NODE)
    return 0


VERBS: Mapping[str, Callable[[Namespace], int]] = {
    "check": _check,
    "hold": _hold,
    "conclude": _conclude,
    "release": _release,
    "status": _status,
    "next": _next,
}


def _decide_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    note = "resume nodes although a required metric was not judged"
    parser.add_argument("--accept-unjudged", action="store_true", help=note)


def decide_nodes(options: Namespace) -> int:
    """Print the decision about each node of a run as JSON."""
    opened = evidence_of(options.folder, again=False)
    _, verdict, nodes = judged(opened, stored_or_read)
    accept, benchmarks = options.accept_unjudged, benchmarks_of(opened)
    decisions = decisions_of(verdict, opened.plan, benchmarks, accept_unjudged=accept)
    facts = {host: node.newest for host, node in nodes.items() if node.jobs}
    decided = []
    for node, each in decisions.items():
        keys = ("serial_number", "slot", "evidence")
        entry = vendor_entry(verdict, node, facts.get(node)) if each.fault else ("", "", "")
        more = dict(zip(keys, entry, strict=True))
        more["evidence"] = more["evidence"] or (each.reason if each.fault else "")
        words = {"node": node, "action": each.action, "reason": each.reason, "fault": each.fault}
        decided.append(DecidedNode.model_validate({**words, **more}))
    print_json(Decided(nodes=decided).model_dump())
    return 0


def _site(options: Namespace) -> Site:
    if not options.limit:
        raise bad_input("-l", "", "nothing", "nodes of one partition")
    return load_site(inventory_of(options), options.limit)


def _chosen(options: Namespace, site: Site, gate: NodeGate) -> list[str]:
    """Return the nodes of ``-l``. With a budget, only those that the nightly check chooses."""
    if options.node_hours is not None:
        checks = read_checks(site_folder(site.name))
        return choose_next(site, gate, checks, options.suite, options.node_hours)
    if not options.whole_partition:
        refuse_too_many(site)
    return list(site.hosts)


def _user(site: Site) -> str:
    return site.partition.run_user or this_user().name


def _drained(site: Site) -> dict[str, str]:
    """Return the complete reasons with which gates of the site drained nodes."""
    last = last_checks(read_checks(site_folder(site.name)))
    return {node: check.drain for node, check in last.items() if check.drain}


def _actions(state: GateState, site: Site) -> NodeGate:
    return NodeGate(state, reserving(site), say, threading.Event())


@contextmanager
def _working(state: GateState, site: Site) -> Iterator[NodeGate]:
    """Yield the actions of a gate; the block holds its lock, and a signal ends its waits."""
    gate = _actions(state, site)
    with state.locked(), on_stop_signal(lambda _: gate.stop.set()):
        yield gate


def _as_check(state: GateState, node: str, decided: DecidedNode | None) -> GateCheck:
    """Return the decision about a node; a node without a decision was not measured."""
    chosen = decided or DecidedNode(node=node, action="keep", reason=NOT_MEASURED)
    reason = one_line(chosen.reason)[:LONGEST]
    return GateCheck(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        gate=state.id,
        run=state.gate.run,
        drain=state.claims.reason(reason) if chosen.action == "keep" else "",
        **chosen.model_dump(exclude={"reason"}),
        reason=reason,
    )


def _name(options: Namespace) -> str:
    if not options.gate:
        raise bad_input("GATE", "", "nothing", "the name of a gate")
    return str(options.gate)


def _note(failed: Mapping[str, NodeError]) -> None:
    """Print the nodes that failed, and collect them for the playbook."""
    for node, error in failed.items():
        say(f"proofmark: {node}: {error}")
    failures = {node: NodeFailure(error.text, error.outcome) for node, error in failed.items()}
    note_failed_nodes(failures)


USES = (
    ArgumentUse("GATE", beside="hold conclude release status"),
    # A night's script hands over the same folder of runs for the next nodes and for their gate.
    ArgumentUse("--suite --node-hours --runs", beside="check hold next"),
    # A play hands over the same options for the check and for the gate itself.
    ArgumentUse("--take-over --whole-partition --wait-s --scratch-dir", beside="check hold"),
)
"""The options that would be ignored beside others."""

COMMANDS = {
    "gate": Command(
        run,
        "gate status -i inventory/nurion",
        arguments,
        traced=False,
        uses=USES,
    ),
    "stage gate-decide": Command(
        decide_nodes,
        "stage gate-decide runs/latest-local",
        _decide_arguments,
        traced=False,
    ),
}


def reserving(site: Site) -> ReservingScheduler:
    """Return the scheduler of `site` if it is a `ReservingScheduler`.

    Raises:
        BadInput: the kit cannot reserve its nodes.
    """
    name = site.partition.scheduler
    chosen = scheduler(name, site.partition.queue)
    try:
        return of_kind(chosen, name, ReservingScheduler, "reserve")
    except BadInput as error:
        raise BadInput(*(located(site, each) for each in error.mistakes)) from None
