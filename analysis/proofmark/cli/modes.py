"""The commands ``modes`` and ``scratch``: the firmware and the scratch directory of nodes."""

from __future__ import annotations

import json
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from proofmark.cli.inputs import (
    credentials_of,
    executed_run,
    open_or_plan_run,
    site_name,
    site_of_inventory,
    site_of_run,
)
from proofmark.cli.output import print_line
from proofmark.common.errors import BadInput, InputError, NodeFailure, bad_input, note_failed_nodes
from proofmark.common.nodesets import fold, folded
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.processes import on_stop_signal
from proofmark.common.progress_lines import say
from proofmark.common.text import duration
from proofmark.machine.bmc.back_end import NO_BMC, Host, bmc_range
from proofmark.machine.modes.drains import ModeResult, failures, history_of, results_of, summary
from proofmark.machine.modes.rollout import (
    ModeRollout,
    firmware_of,
    forecast,
    refuse_unprovable,
    rollout_of,
    target_mode,
)
from proofmark.machine.modes.transition import TargetMode
from proofmark.machine.node_commands import PROBE, run_text
from proofmark.machine.outcome import NodeError, Outcome, fan_out, split
from proofmark.machine.scheduler import present
from proofmark.machine.scratch_checks import clean
from proofmark.machine.scratch_stage import (
    ScratchTarget,
    ScratchUse,
    check,
    nodes_of,
    unmount,
    verify,
)
from proofmark.plan.kinds import kind_of
from proofmark.plan.totals import nodes_to_reset, resets_s
from proofmark.runs.journal import Journal, journals
from proofmark.runs.node_locks import node_locks_of
from proofmark.runs.progress import waiting_nodes
from proofmark.runs.run import Run, enter_mode, open_run
from proofmark.runs.stage_faults import noting_faults
from proofmark.runs.state import Busy, RunState, begin, find, lock, planned, site_folder
from proofmark.site.inventory import Site

FAILED = 1
CHANGES = ("enter", "restore")
UNCHANGED = "the run has changed no node"


def modes(options: Namespace) -> int:
    """Change the firmware mode of the nodes of a run, check it, and restore it.

    Raises:
        BadInput: the run, the mode, the firmware facts or the credentials cannot be used.
    """
    if options.verb in CHANGES and not options.confirm_reboot:
        raise bad_input("--confirm-reboot", "", "nothing", "confirm_reboot=true: nodes are reset")
    if options.verb == "check":
        with open_or_plan_run(options, options.scratch_dir) as (opened, site):
            return _check(options, opened, site)
    if not options.folder:
        raise bad_input("RUN", "", "nothing", "a run's folder")
    return MODES[options.verb](options)


def _nodes(opened: Run, state: RunState, site: Site, mode: str) -> list[str]:
    """Return the nodes with waiting steps of `mode`; if nodes arrive, those that are up."""
    own = journals(state.folder) if kind_of(opened.plan).nodes_arrive else ()
    begun = {each.node for each in own if each.history().drained}
    return present(opened, site, waiting_nodes(opened, mode), begun)


def _check(options: Namespace, opened: Run, site: Site) -> int:
    """Print the changes that the mode needs on each node, and their duration; change nothing."""
    goal = _goal(options, site)
    nodes = _nodes(opened, planned(opened), site, goal.mode)
    with _rollout(options, planned(opened), site) as rollout:
        _announce(site, rollout, nodes, f"to {goal.mode}; check only, nothing is changed")
        good, bad = rollout.check(nodes, lambda _: goal)
    lines, seconds = forecast(rollout, good)
    for line in [*lines, *summary(bad).values()]:
        say(line)
    say(f"{goal.mode}: about {duration(seconds)}" if seconds else f"{goal.mode}: no reset")
    resets = resets_s(nodes_to_reset(opened.plan), site.partition.firmware)
    whole = duration(opened.plan.totals.wall_s + resets)
    say(f"the whole plan: about {whole}, of which {duration(resets)} for resets and the restore")
    return FAILED if bad else 0


def _enter(options: Namespace) -> int:
    """Change the nodes with waiting steps of the mode to it."""
    opened, site = _opened(options)
    goal = _goal(options, site)
    nodes = _nodes(opened, begin(opened), site, goal.mode)
    name = f"mode {goal.mode}"
    with _working(options, begin(opened), lock(opened.folder), site, name) as rollout:
        _announce(site, rollout, nodes, f"to {goal.mode}")
        if nodes:
            enter_mode(opened.folder, goal.mode)
        return _conclude(rollout.enter(nodes, goal), rollout.transition.firmware.max_failures)


def _verify(options: Namespace) -> int:
    """Verify on each node that it is in the mode; change nothing."""
    opened, site = _opened(options)
    firmware = firmware_of(site)
    goal = target_mode(site, options.mode or site.partition.current_mode)
    nodes = _nodes(opened, begin(opened), site, goal.mode)
    name = f"mode {goal.mode}"
    with _working(options, begin(opened), lock(opened.folder), site, name) as rollout:
        # One process starts the probes of all nodes. A thread for each node needs more CPU time.
        probes, unreachable = run_text(site, nodes, PROBE, timeout_s=firmware.timeout_s)

        def verify(node: str) -> bool:
            if node in unreachable:
                raise unreachable[node]
            host, printed = rollout.hosts.get(node) or Host(node, ""), probes[node].stdout
            past = history_of(rollout.run, node)
            seen = rollout.transition.prove(host, goal, printed, past)
            if (past.mode, past.boot_id, past.failed) != (goal.mode, seen.boot_id, ""):
                seen_facts = seen.as_json()
                Journal(rollout.run, node).result("verified", mode=goal.mode, seen=seen_facts)
            return True

        good, bad = split(fan_out(nodes, verify, firmware.max_parallel, rollout.transition.stop))
        for node, failed in bad.items():
            if failed.outcome is not Outcome.STOPPED:  # an earlier verification is no longer valid
                log = Journal(rollout.run, node)
                log.result("fail", outcome=failed.outcome, text=failed.text)
        results = results_of(bad, changed=False) | dict.fromkeys(good, ModeResult(Outcome.OK))
        return _conclude(results, firmware.max_failures)


def _restore(options: Namespace) -> int:
    """Restore every node that the run has changed or drained."""
    state = _state(options)
    if state is None or not journals(state.folder):
        say(f"{options.folder}: {UNCHANGED}: nothing is restored")
        return 0
    site = site_of_inventory(options, state.partition)
    firmware_of(site)
    with _working(options, state, _run_lock(state), site, "restore") as rollout:
        nodes, damaged = rollout.to_restore()
        _announce(site, rollout, [*nodes, *damaged], "back to the original state")
        results = rollout.restore()
        code = _conclude(results)
    for failed in failures(results):
        say(f"not restored: {failed}")
    if code:
        words = [of_person(options.folder, "RUN")]
        words += (of_person(each, "SITE", "-i") for each in options.inventory)
        words += [of_person(options.limit, "LIMIT", "-l")] if options.limit else []
        command = PrintedCommand("proofmark", "modes", "restore", *words, "--confirm-reboot")
        say(f"repeat the restore: {command}")
    return code


def _status(options: Namespace) -> int:
    """Print the state of each node from its journal."""
    state = _state(options)
    if state is None or not journals(state.folder):
        print_line(f"{options.folder}: {UNCHANGED}")
        return 0
    for each in journals(state.folder):
        try:
            past = history_of(state.folder, each.node)
        except NodeError as error:
            print_line(f"{each.node}: {error}")
            continue
        words = [past.failed or past.mode or "between two modes"]
        words += ["drained by this run"] if past.drained else []
        words += ["reset in progress"] if past.in_flight else []
        print_line(f"{each.node}: {', '.join(words)}")
    return 0


MODES: Mapping[str, Callable[[Namespace], int]] = {
    "enter": _enter,
    "verify": _verify,
    "restore": _restore,
    "status": _status,
}


def _opened(options: Namespace) -> tuple[Run, Site]:
    opened = executed_run(options.folder)
    return opened, site_of_run(options, opened)


def _state(options: Namespace) -> RunState | None:
    """Return the state of the run; its folder need not exist any more.

    Raises:
        BadInput: another site, or a run that changed nodes and whose state is not here.
    """
    folder: Path = options.folder.resolve()
    site = site_name(options)
    state = find(site, folder)
    if state and (journals(state.folder) or not folder.is_dir()):
        return state
    opened = open_run(folder)
    if opened.plan.site != site:
        raise bad_input("-i", "", f"the site {site}", f"{opened.plan.site}, the site of the run")
    if copies := journals(folder):
        found = f"journals of {len(copies)} nodes, without their state in {site_folder(site)}"
        accepted = "the state of the user who changed the nodes, on the same controller"
        raise bad_input(opened.files.journal, "", found, accepted)
    return state


@contextmanager
def _working(
    options: Namespace,
    state: RunState,
    run_lock: AbstractContextManager[None],
    site: Site,
    name: str,
) -> Iterator[ModeRollout]:
    """Yield a rollout that changes nodes in the stage `name`; the block holds the locks.

    Then the journals are exported. What failed is kept as the faults of the stage.
    """
    with (
        state.locked(),
        run_lock,
        noting_faults(state.run, name),
        _exported(state),
        _rollout(options, state, site) as rollout,
    ):
        yield rollout


@contextmanager
def _rollout(options: Namespace, state: RunState, site: Site) -> Iterator[ModeRollout]:
    """Yield the rollout of a run. A signal ends it before its next action."""
    stop = threading.Event()
    login = credentials_of(options)
    try:
        with on_stop_signal(lambda _: stop.set()):
            locks = node_locks_of(state, take_over=options.take_over)
            yield rollout_of(state.folder, locks, site, login, say, stop)
    except NodeError as failed:
        accepted = "a scheduler that answers"
        mistake = InputError(f"{site.facts}", "partition", failed.text, accepted, failed.outcome)
        raise BadInput(mistake) from None


@contextmanager
def _run_lock(state: RunState) -> Iterator[None]:
    """Hold the lock in the folder of the run, unless the folder or its lock cannot be used.

    Nodes are restored even if the owner of the folder has removed or damaged it.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(lock(state.run))
        except Busy:
            raise
        except (BadInput, OSError) as error:
            say(f"proofmark: {error}; the nodes are restored without the lock of the run")
        yield


@contextmanager
def _exported(state: RunState) -> Iterator[None]:
    """Copy the journals into the folder of the run after the block."""
    try:
        yield
    finally:
        try:
            state.export()
        except (BadInput, OSError) as error:
            say(f"proofmark: {error}; the run has no copy of the journals")


def _conclude(results: Mapping[str, ModeResult], budget: int = 0) -> int:
    """Print the outcomes of the nodes; return 1 if more than `budget` nodes failed, else 0."""
    failed = {
        node: NodeFailure(each.text, each.outcome)
        for node, each in results.items()
        if each.outcome is not Outcome.OK
    }
    note_failed_nodes(failed)
    for outcome, line in summary(results).items():
        say(line if outcome is Outcome.OK else f"proofmark: {line}")
    return FAILED if len(failed) > budget else 0


def _announce(site: Site, rollout: ModeRollout, nodes: Sequence[str], what: str) -> None:
    if not nodes:
        say(f"site: {site.name}: no node needs a change {what}")
        return
    used = rollout.transition.back_end.uses_bmcs
    bmcs = bmc_range(rollout.hosts, nodes) if used else NO_BMC
    say(f"site: {site.name}, nodes: {len(nodes)} ({folded(nodes)}), BMCs: {bmcs}: {what}")
    if used and not rollout.transition.firmware.verify_tls:
        say("BMC certificates are NOT verified (firmware.verify_tls: false)")


def _goal(options: Namespace, site: Site) -> TargetMode:
    """Return the mode that ``--mode`` names, which a node can prove.

    Raises:
        BadInput: the partition has no firmware or no such mode, or other modes look the same.
    """
    firmware_of(site)
    if options.mode is None:
        raise bad_input("--mode", "", "nothing", "a mode of the partition")
    goal = target_mode(site, options.mode)
    refuse_unprovable(site, goal)
    return goal


def scratch(options: Namespace) -> int:
    """Mount, check, unmount and clean the scratch directory of a run; print changed nodes.

    Raises:
        BadInput: the scratch directory does not fit the needs of the run. It has every reason.
    """
    if options.verb != "check" and not options.folder:
        raise bad_input("RUN", "", "nothing", "a run's folder")
    changed = SCRATCH[options.verb](options)
    print_line(json.dumps({"changed": fold(sorted(set(changed)))}))
    return 0


def _check_scratch(options: Namespace) -> list[str]:
    """Print what would be mounted, and check the directory; change nothing."""
    with open_or_plan_run(options, options.scratch_dir) as (opened, site):
        return check(_target(opened, planned(opened), site, options))


def _verify_scratch(options: Namespace) -> list[str]:
    """Mount what is not mounted, and verify that all nodes can use one and the same directory."""
    with open_or_plan_run(options, options.scratch_dir) as (opened, site):
        state = begin(opened)
        stage = f"scratch of mode {options.mode}" if options.mode else "scratch"
        with state.locked(), lock(opened.folder), noting_faults(opened.folder, stage):
            changed = verify(_target(opened, state, site, options))
            state.export()
        return changed


def _unmount(options: Namespace) -> list[str]:
    """Unmount what this run mounted."""
    state = find(site_name(options), options.folder.resolve())
    if state is None:
        return []
    site = site_of_inventory(options, state.partition, {"scratch_dir": options.scratch_dir})
    with state.locked(), noting_faults(state.run, "unmount"):
        return unmount(state.folder, site)


def _clean(options: Namespace) -> list[str]:
    """Remove the files that the run left in scratch."""
    opened = executed_run(options.folder)
    site = site_of_run(options, opened, {"scratch_dir": options.scratch_dir})
    with lock(opened.folder):
        return clean(opened, site, options.user or "")


SCRATCH: Mapping[str, Callable[[Namespace], list[str]]] = {
    "check": _check_scratch,
    "verify": _verify_scratch,
    "unmount": _unmount,
    "clean": _clean,
}


def _target(opened: Run, state: RunState, site: Site, options: Namespace) -> ScratchTarget:
    return nodes_of(
        opened,
        state.folder,
        site,
        options.mode or "",
        options.scratch_dir or "",
        ScratchUse(user=options.user or "", may_create=not options.existing),
    )
