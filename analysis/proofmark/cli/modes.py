"""The command ``modes``: it changes the firmware mode of the nodes of a run, and restores it."""

from __future__ import annotations

import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from proofmark.cli.checkout import arguments as run_arguments
from proofmark.cli.checkout import open_or_plan_run
from proofmark.cli.command import Command, verb_argument
from proofmark.cli.output import print_line
from proofmark.common.errors import bad_input
from proofmark.common.messages import say
from proofmark.common.nodesets import folded
from proofmark.common.signals import on_stop_signal
from proofmark.common.text import duration
from proofmark.machine.bmc.credentials import Credentials, credentials
from proofmark.machine.fanout import fan_out, split
from proofmark.machine.modes.rollout import ModeRollout, Result, summary
from proofmark.machine.modes.stage import (
    bmc_range,
    firmware_of,
    rollout_of,
    target_mode,
)
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.plan.resets import resets_s
from proofmark.runs.journal import Journal, journals
from proofmark.runs.lock import lock
from proofmark.runs.progress import waiting_nodes
from proofmark.runs.run import Run, enter_mode, open_run, site_of
from proofmark.site.inventory import Site

FAILED = 1


def arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to `parser`."""
    verb_argument(parser, VERBS)
    run_arguments(parser)
    parser.add_argument("--scratch-dir", help="see plan")
    parser.add_argument("--mode", help="a mode of the run's plan")
    parser.add_argument(
        "--credentials",
        metavar="FILE",
        help="JSON with user and password of the BMCs; -: stdin; default: the variables "
        "PROOFMARK_BMC_USER and PROOFMARK_BMC_PASSWORD",
    )
    parser.add_argument(
        "--confirm-reboot", action="store_true", help="required for enter and restore"
    )


def run(options: Namespace) -> int:
    """Run the verb of the command line; return its exit code.

    Raises:
        BadInput: the run, the mode, the firmware facts or the credentials cannot be used.
    """
    if options.verb == "check":
        with open_or_plan_run(options, options.scratch_dir) as opened:
            return _run(options, opened)
    if not options.folder:
        raise bad_input("RUN", "", "nothing", "a run's folder")
    return _run(options, open_run(options.folder))


def _run(options: Namespace, opened: Run) -> int:
    site = site_of(opened)
    if site.partition.firmware is None:
        accepted = "the settings of docs/modes.md"
        raise bad_input(site.facts, "partition.firmware", "nothing", accepted)
    changes = options.verb in ("enter", "restore")
    if changes and not options.confirm_reboot:
        raise bad_input("--confirm-reboot", "", "nothing", "confirm_reboot=true: nodes are reset")
    try:
        stop = threading.Event()  # after it, no new action is started
        with on_stop_signal(lambda _: stop.set()):
            rollout = rollout_of(opened, site, credentials_of(options.credentials), say, stop)
            return VERBS[options.verb](opened, site, rollout, options.mode)
    except NodeError as failed:
        raise bad_input(site.facts, "partition", str(failed), "a scheduler that answers") from None


def _check(opened: Run, site: Site, rollout: ModeRollout, mode: str | None) -> int:
    """Print the changes that the mode needs on each node, and their duration; change nothing."""
    goal = target_mode(site, _mode_argument(mode))
    nodes = waiting_nodes(opened, goal.mode)
    _announce(site, rollout, nodes, f"to {goal.mode}; check only, nothing is changed")
    good, bad = rollout.check(nodes, lambda _: goal)
    lines, seconds = rollout.forecast(good)
    for line in [*lines, *summary(bad)]:
        say(line)
    say(f"{goal.mode}: about {duration(seconds)}" if seconds else f"{goal.mode}: no reset")
    resets = resets_s(opened.plan, firmware_of(site))
    whole = duration(opened.plan.totals.wall_s + resets)
    say(f"the whole plan: about {whole}, of which {duration(resets)} for resets and the restore")
    return FAILED if bad else 0


def _enter(opened: Run, site: Site, rollout: ModeRollout, mode: str | None) -> int:
    """Change the nodes with waiting steps of the mode to it."""
    goal = target_mode(site, _mode_argument(mode))
    nodes = waiting_nodes(opened, goal.mode)
    _announce(site, rollout, nodes, f"to {goal.mode}")
    with lock(opened):
        if nodes:
            enter_mode(opened, goal.mode)
        return _conclude(rollout.enter(nodes, goal), firmware_of(site).max_failures)


def _restore(opened: Run, site: Site, rollout: ModeRollout, _: str | None) -> int:
    """Restore every node that the run has changed or drained."""
    nodes = [each.node for each in journals(opened.folder) if each.history().to_restore]
    _announce(site, rollout, nodes, "back to the original state")
    with lock(opened):
        return _conclude(rollout.restore())


def _verify(opened: Run, site: Site, rollout: ModeRollout, mode: str | None) -> int:
    """Verify on each node that it is in the mode; change nothing."""
    goal = target_mode(site, mode or site.partition.current_mode)
    nodes = waiting_nodes(opened, goal.mode)

    def verify(node: str) -> bool:
        seen = rollout.transition.observe(node)
        goal.verify(seen)
        log = Journal(opened.folder, node)
        past = log.history()
        if past.mode != goal.mode or past.failed:
            log.result("verified", mode=goal.mode, seen=seen.as_json())
        return True

    with lock(opened):
        firmware = rollout.transition.firmware
        good, bad = split(fan_out(nodes, verify, firmware.max_parallel, rollout.transition.stop))
        for node, failed in bad.items():
            if failed.outcome is not Outcome.STOPPED:  # an earlier verification is no longer valid
                log = Journal(opened.folder, node)
                log.result("fail", outcome=failed.outcome, text=failed.text)
    results = {node: Result(each.outcome, each.text) for node, each in bad.items()}
    return _conclude(results | dict.fromkeys(good, Result(Outcome.OK)), firmware.max_failures)


def _status(opened: Run, site: Site, rollout: ModeRollout, _: str | None) -> int:
    """Print the state of each node from its journal."""
    for each in journals(opened.folder):
        past = each.history()
        words = [past.failed or past.mode or "between two modes"]
        words += ["drained by this run"] if past.drained else []
        words += ["reset in progress"] if past.in_flight else []
        print_line(f"{each.node}: {', '.join(words)}")
    return 0


VERBS: Mapping[str, Callable[[Run, Site, ModeRollout, str | None], int]] = {
    "enter": _enter,
    "check": _check,
    "verify": _verify,
    "restore": _restore,
    "status": _status,
}


def _conclude(results: Mapping[str, Result], budget: int = 0) -> int:
    """Print the outcomes of the nodes; return 1 if more than `budget` nodes failed, else 0."""
    failed = [node for node, each in results.items() if each.outcome is not Outcome.OK]
    for line in summary(results):
        say(line if line.startswith(Outcome.OK) else f"proofmark: {line}")
    return FAILED if len(failed) > budget else 0


def _announce(site: Site, rollout: ModeRollout, nodes: Sequence[str], what: str) -> None:
    where = f"site: {site.name}, nodes: {len(nodes)}"
    say(f"{where} ({folded(nodes)}), BMCs: {bmc_range(rollout.hosts, nodes)}: {what}")
    if not rollout.transition.firmware.verify_tls:
        say("BMC certificates are NOT verified (firmware.verify_tls: false)")


def _mode_argument(mode: str | None) -> str:
    if mode is None:
        raise bad_input("--mode", "", "nothing", "a mode of the partition")
    return mode


def credentials_of(source: str | None) -> Credentials:
    """Return the credentials in a file, in stdin (``-``) or in the environment (None)."""
    if source == "-":
        return credentials(sys.stdin.read())
    return credentials(Path(source).read_text(encoding="utf-8") if source else "")


COMMANDS = {"modes": Command(run, "modes check runs/latest --mode snc4-flat", arguments)}
