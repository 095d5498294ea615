"""Mode changes of many nodes, and the forecast of what changes and how long it takes.

All nodes are checked first, then changed batch by batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic

from proofmark.common.errors import BadInput, InputError, bad_input, nearest
from proofmark.common.expressions import flaws
from proofmark.common.grouping import batched
from proofmark.common.nodesets import folded, nodes_by
from proofmark.common.progress_lines import Say
from proofmark.common.text import Counted, counted
from proofmark.machine.bmc.back_end import (
    BACK_ENDS,
    BackEndContext,
    Credentials,
    FirmwareState,
    Host,
    address_of,
    back_end,
    to_change,
)
from proofmark.machine.modes.drains import (
    Drains,
    ModeResult,
    ModeResults,
    held_by,
    history_of,
    results_of,
)
from proofmark.machine.modes.transition import (
    ExpectedState,
    ModeTransition,
    Observation,
    TargetMode,
    look_alikes,
    original_state,
    refuse_changed,
    verify_mode,
)
from proofmark.machine.node_commands import RemoteShell
from proofmark.machine.outcome import STOP_SIGNALS, NodeError, Outcome, fan_out, node_error, split
from proofmark.machine.scheduler import draining
from proofmark.runs.journal import RESTORED, Journal, NodeHistory, journals
from proofmark.runs.node_locks import NodeLocks
from proofmark.site.firmware import UNSEEN, Firmware, Scalar, abstract, wanted
from proofmark.site.inventory import Site
from proofmark.site.machines import topology_of_mode
from proofmark.site.node.topology import numa_shape

NOT_REPEATED = (
    Outcome.DENIED,  # BMCs lock accounts
    Outcome.BAD_CERTIFICATE,
    Outcome.HELD,
    Outcome.CHANGED,
    Outcome.CANNOT_SET,
    Outcome.REPLACED,
    Outcome.BAD_JOURNAL,
    Outcome.NOT_DRAINED,  # these two have waited for long
    Outcome.NO_RETURN,
    Outcome.STOPPED,
)
"""Failures after which a restore is not repeated in the same command."""

OUTSIDE = "no host of the partition that -i and -l select"

PAUSE_POLLS = 6
"""The pause before a restore is repeated, in units of ``firmware.poll_s``."""

TargetOf = Callable[[NodeHistory], TargetMode]
"""Returns the target of a node from the history of the node."""


@dataclass(frozen=True)
class CheckedNode:
    """The state of one node before the first change."""

    history: NodeHistory
    target: TargetMode
    state: FirmwareState
    observation: Observation | None


@dataclass(frozen=True, kw_only=True)
class ModeRollout(Drains):
    """Changes the modes of the nodes of one run; nodes in a reservation of others are left."""

    say: Say

    def enter(self, nodes: Sequence[str], target: TargetMode) -> ModeResults:
        """Bring `nodes` into `target`; return the result of each node.

        Raises:
            BadInput: most nodes answer, and none of these offers the mode; no node was changed.
        """
        good, failed = self.check(nodes, lambda _: target)
        budget = self.transition.firmware.max_failures
        if len(failed) <= budget:

            def claim(node: str) -> None:
                if not good[node].history.in_flight:  # else it is held already, and may be down
                    self.claim(node)

            parallel = self.transition.firmware.max_parallel
            held = split(fan_out(good, claim, parallel, self.transition.stop))[1]
            failed |= results_of(held, changed=False)
            good = {node: checked for node, checked in good.items() if node not in held}
        return self._change(good, failed, "open", budget)

    def restore(self) -> ModeResults:
        """Restore every node that the run has changed or drained, by the journals.

        A failure affects its own node. The nodes that failed are tried once more after a pause,
        except those with an outcome in `NOT_REPEATED`.
        """
        nodes, results = self.to_restore()
        # They were not changed, or their restore ended before their release.
        results |= self._release(set(self.locks.nodes()) - {*nodes, *results})
        results |= self._restore(nodes)
        done = (Outcome.OK, *NOT_REPEATED)
        again = [node for node in nodes if results[node].outcome not in done]
        pause_s = PAUSE_POLLS * self.transition.firmware.poll_s
        if again and not self.transition.stop.wait(pause_s):
            self.say(f"{folded(again)}: {Counted(len(again)):node is|nodes are} tried again")
            for node, result in self._restore(again).items():
                changed = result.changed or results[node].changed
                results[node] = replace(result, changed=changed)
        return results

    def to_restore(self) -> tuple[list[str], ModeResults]:
        """Return the nodes to restore, and the results of the nodes with a damaged journal."""
        nodes: list[str] = []
        damaged: ModeResults = {}
        for journal in journals(self.run):
            try:
                if history_of(self.run, journal.node).to_restore:
                    nodes.append(journal.node)
            except NodeError as error:
                damaged[journal.node] = ModeResult(error.outcome, error.text)
        return nodes, damaged

    def check(
        self, nodes: Sequence[str], target_of: TargetOf
    ) -> tuple[dict[str, CheckedNode], ModeResults]:
        """Check every node and its firmware; change nothing.

        Returns:
            The nodes that can be changed, and the results of the others.

        Raises:
            BadInput: most nodes answer, and none of these offers the mode; the inventory is wrong.
            NodeError: the scheduler reports the state of no node; not raised for a restore.
        """
        if not nodes:
            return {}, {}
        known = [node for node in nodes if node in self.hosts]
        statuses, unknown = self.statuses(known)
        if unknown and len(unknown) == len(known) and target_of is not original_state:
            raise next(iter(unknown.values()))
        kept = self.kept_for_others(known)

        def check_node(node: str) -> CheckedNode:
            if node in unknown:
                raise unknown[node]
            if node not in self.hosts:
                raise NodeError(Outcome.UNREACHABLE, OUTSIDE)
            history = history_of(self.run, node)
            target = target_of(history)
            if other := self.locks.other(node):
                raise NodeError(Outcome.HELD, other)
            if node in kept:
                raise kept[node]
            if node in statuses and (reason := held_by(statuses[node], history)):
                begin = "already drained" if statuses[node].reason else "not in service"
                raise NodeError(Outcome.HELD, f"{begin}: {reason}")
            look = self.marks_nodes and not history.in_flight
            if look and (other := self.mark("look", node)):
                self.say(f"{node}: taken over from {other}")
            state, observation = self.transition.check(self.hosts[node], history, target)
            if not self.locks.take_over:
                refuse_changed(self.transition.back_end, history, state, observation)
            return CheckedNode(history, target, state, observation)

        firmware = self.transition.firmware
        good, bad = split(fan_out(nodes, check_node, firmware.max_parallel, self.transition.stop))
        refused: dict[str, str] = {}
        for node, checked in list(good.items()):
            try:
                good[node] = self._resolved(checked)
            except NodeError as error:
                bad[node] = error
                if error.outcome is Outcome.REFUSED and checked.target.mode != RESTORED:
                    refused[node] = error.text
        if len(refused) == len(good) and 2 * len(refused) > len(nodes):
            accepted = "what its BMC lists"
            mistakes = (
                InputError("firmware", "", text, accepted, nodes=folded(names))
                for text, names in nodes_by(refused).items()
            )
            raise BadInput(*mistakes)
        good = {node: checked for node, checked in good.items() if node not in bad}
        return good, results_of(bad, changed=False)

    def _resolved(self, checked: CheckedNode) -> CheckedNode:
        """Return a node that can be changed and restored, with the attributes of its target.

        A node with a reset in flight is looked at again after its boot.

        Raises:
            NodeError: BLOCKED, REFUSED or CANNOT_RESTORE.
        """
        target = self.transition.resolved(checked.target, checked.state)
        passing = checked.state.blocked or checked.state.no_reset
        if not (checked.history.in_flight and passing):
            self.transition.refuse(checked.history, checked.state, target)
        return replace(checked, target=target)

    def arrived(self, checked: CheckedNode) -> bool:
        """Return whether the firmware of a node needs no change."""
        return self.transition.arrived(
            checked.history, checked.state, checked.observation, checked.target
        )

    def _release(self, nodes: Iterable[str]) -> ModeResults:
        """Release `nodes`, which need no restore; return the results of those that failed."""

        def release(node: str) -> None:
            if node not in self.hosts:
                raise NodeError(Outcome.UNREACHABLE, OUTSIDE)
            self.release(node)

        parallel = self.transition.firmware.max_parallel
        return results_of(split(fan_out(sorted(nodes), release, parallel))[1], changed=False)

    def _restore(self, nodes: Sequence[str]) -> ModeResults:
        good, results = self.check(nodes, original_state)
        return self._change(good, results, "resume", max_failures=len(nodes))

    def _change(
        self,
        good: Mapping[str, CheckedNode],
        failed: Mapping[str, ModeResult],
        final_state: str,
        max_failures: int,
    ) -> ModeResults:
        """Change the nodes that can be changed, batch by batch; return the results of all.

        Args:
            final_state: ``open`` or ``resume``.
            max_failures: the number of failures in the check or in a batch that stops the change.
        """
        count = len(good) + len(failed)
        if len(failed) > max_failures:
            text = f"not changed: {len(failed)} of {count} nodes cannot be reset"
            return dict(failed) | dict.fromkeys(good, ModeResult(Outcome.STOPPED, text))
        arrived = {node: checked for node, checked in good.items() if self.arrived(checked)}
        results = dict(failed) | self._already_there(arrived, final_state)
        to_reset = [node for node in good if node not in arrived]
        for batch in batched(to_reset, self.transition.firmware.batch_size):
            batch_results = self._batch({node: good[node] for node in batch}, final_state)
            results |= batch_results
            bad = sum(result.outcome is not Outcome.OK for result in batch_results.values())
            self.say(f"{len(results)}/{count} nodes, {bad} of this batch failed")
            if bad > max_failures:
                break
        stopped = ModeResult(Outcome.STOPPED, "not changed: an earlier batch had too many failures")
        return {node: results.get(node, stopped) for node in [*failed, *good]}

    def _already_there(self, nodes: Mapping[str, CheckedNode], final_state: str) -> ModeResults:
        """Journal the nodes that need no reset, and resume those that this run has drained."""

        def note(node: str) -> bool:
            history, mode = nodes[node].history, nodes[node].target.mode
            observation, state = nodes[node].observation, nodes[node].state
            if observation is None:
                return False
            proven = (history.mode, history.boot_id, history.failed)
            if proven == (mode, observation.boot_id, ""):
                return False
            journal = Journal(self.run, node)
            seen = observation.as_json()
            if history.original is None:
                attributes, address = self.transition.original(state), self.hosts[node].address
                journal.result("original", address=address, attributes=attributes, seen=seen)
            attributes = dict(nodes[node].target.attributes)
            journal.result("verified", mode=mode, attributes=attributes, seen=seen)
            return True

        noted, failed = split(fan_out(nodes, note, 1))
        results = results_of(failed, changed=False)
        for node, new in noted.items():
            results[node] = ModeResult(
                Outcome.OK, f"in mode {nodes[node].target.mode} already", new
            )
        drained = [node for node in noted if nodes[node].history.drained]
        if final_state == "resume":
            results |= self._release(noted.keys() - set(drained))
        return results | self.resume(drained, final_state)

    def _batch(self, batch: Mapping[str, CheckedNode], final_state: str) -> ModeResults:
        mode = next(iter(batch.values())).target.mode
        self.say(f"{folded(batch)}: {counted(len(batch), 'node')} to {mode}")
        results = self.drain({node: each.history for node, each in batch.items()}, mode)

        def change_node(node: str) -> Observation:
            journal, begin = Journal(self.run, node), monotonic()
            checked, host = batch[node], self.hosts[node]
            try:
                seen = self.transition.run(host, checked.target, journal, checked.state)
                if final_state == "open":
                    self.claim(node)  # a node without a disk loses the name at each boot
                return seen
            except STOP_SIGNALS:
                raise
            except BaseException as error:
                failure = node_error(error, node, begin)
                outcome, text = failure.outcome, failure.text
                reasons = [self.locks.reason(outcome)]
                journal.result("fail", outcome=outcome, text=text, reasons=reasons)
                raise failure from None

        drained = [node for node in batch if node not in results]
        good, bad = split(fan_out(drained, change_node, len(batch), self.transition.stop))
        results |= self.resume(good, final_state)
        for node, error in bad.items():
            self.say(f"{node}: {error}")
            results[node] = ModeResult(error.outcome, error.text, changed=True)
        reasons = {
            node: self.locks.reason(error.outcome)
            for node, error in bad.items()
            if error.outcome is not Outcome.STOPPED
        }
        for node, failure in self.give_reasons(reasons).items():
            self.say(f"{node}: the reason of its drain is not updated: {failure}")
        return results


def forecast(rollout: ModeRollout, nodes: Mapping[str, CheckedNode]) -> tuple[list[str], float]:
    """Return the changes, one line for all nodes with the same changes, and their seconds."""
    texts: dict[str, str] = {}
    to_reset = 0
    for node, checked in nodes.items():
        text = f"nothing, in mode {checked.target.mode} already"
        if not rollout.arrived(checked):
            to_reset += 1
            current = checked.state.current
            changes = [
                f"{name}: {current.get(name, 'unknown')} → {value}"
                for name, value in to_change(checked.state, checked.target.attributes).items()
            ]
            text = ", ".join([*changes, "drain, reset, resume"])
        texts[node] = text
    firmware = rollout.transition.firmware
    lines = [f"{folded(names)}: {text}" for text, names in nodes_by(texts).items()]
    return lines, -(-to_reset // firmware.batch_size) * firmware.boot_s


def rollout_of(
    folder: Path,
    locks: NodeLocks,
    site: Site,
    credentials: Credentials,
    say: Say,
    stop: threading.Event,
) -> ModeRollout:
    """Return the rollout that changes the modes of the nodes of a run.

    Args:
        site: of the inventory. Only the nodes that it selects are changed.
        stop: no new action is started after it is set.

    Raises:
        BadInput: back end, scheduler, certificates or BMC addresses of the site are wrong.
    """
    firmware = firmware_of(site)
    shell = RemoteShell(site, firmware.timeout_s)
    selected = set(site.hosts)
    context = BackEndContext(firmware, credentials, shell)
    mode_attributes: dict[str, Scalar] = {}
    mode_settings: dict[tuple[str, str], None] = {}
    for mode in site.partition.modes.values():
        mode_attributes |= wanted(firmware, mode.settings)
        mode_settings |= dict.fromkeys(abstract(firmware, mode.settings).items())
    return ModeRollout(
        run=folder,
        locks=locks,
        transition=ModeTransition(
            firmware, back_end(context), shell, mode_attributes, stop, tuple(mode_settings)
        ),
        scheduler=draining(site.partition.scheduler, site.partition.queue),
        hosts={node: host for node, host in hosts_of(site, firmware).items() if node in selected},
        say=say,
        reservation=site.partition.queue.reservation,
    )


def hosts_of(site: Site, firmware: Firmware) -> dict[str, Host]:
    """Return every node of the partition with the address of its BMC and the id of its system.

    Raises:
        BadInput: ``firmware.bmc`` or ``firmware.system`` is no valid expression; two nodes have one
            system, and the back end would reset it twice.
    """
    hosts: dict[str, Host] = {}
    owners: dict[tuple[str, str], str] = {}
    used, facts = BACK_ENDS.get(firmware.back_end).uses_bmcs, site.facts
    for key in ("bmc", "system"):
        for found, accepted in flaws(getattr(firmware, key)):
            raise bad_input(facts, f"partition.firmware.{key}", found, accepted)
    for number, node in enumerate(site.partition_hosts or site.hosts):
        address = address_of(firmware.bmc, number, node, facts)
        system = address_of(firmware.system, number, node, facts, "system")
        hosts[node] = Host(node, address, system)
        owner = owners.setdefault((address, system), node)
        if used and owner != node:
            of_system = f", system {system}" if system else ""
            found = f"the BMC {address}{of_system} for {owner} and for {node}"
            accepted = 'a system for each node, with firmware.system such as "Node{number % 2}"'
            raise bad_input(facts, "partition.firmware.bmc", found, accepted)
    return hosts


def target_mode(site: Site, mode: str) -> TargetMode:
    """Return the target `mode`: its firmware attributes, and the check of an observation.

    Raises:
        BadInput: the partition has no such mode, or a topology cannot be read.
    """
    firmware, modes = firmware_of(site), site.partition.modes
    if mode not in modes:
        raise bad_input("--mode", "", f"{mode!r}{nearest(mode, modes)}", ", ".join(modes))
    states = {
        name: ExpectedState(
            seen_settings(firmware, declared.settings), numa_shape(topology_of_mode(site, name))
        )
        for name, declared in modes.items()
    }
    alike = look_alikes(mode, states, firmware.smbios)
    by_bmc = BACK_ENDS.get(firmware.back_end).uses_bmcs
    if by_bmc:
        # The BMC reports the values in effect: for these modes it is the proof, after a boot.
        states |= {name: replace(states[name], settings=states[mode].settings) for name in alike}
    verify = partial(verify_mode, mode=mode, expected_states=states, smbios=firmware.smbios)
    settings = modes[mode].settings
    return TargetMode(
        mode,
        wanted(firmware, settings),
        verify,
        abstract(firmware, settings),
        unseen=by_bmc and bool(alike),
        look_alikes=() if by_bmc else tuple(alike),
    )


def refuse_unprovable(site: Site, goal: TargetMode) -> None:
    """Accept a mode that a node can prove after its boot, before a node is drained for it.

    Raises:
        BadInput: other modes look the same, whatever the node shows.
    """
    if goal.look_alikes:
        others = ", ".join(goal.look_alikes)
        found = f"{goal.mode} and {others}, which differ in nothing that a node shows"
        accepted = "modes with other NUMA domains, firmware.smbios, or back_end redfish"
        raise bad_input(site.facts, "partition.modes", found, accepted)


def unprovable_modes(site: Site) -> Iterator[str]:
    """Yield a line for each group of modes that `refuse_unprovable` refuses.

    Raises:
        BadInput: a topology cannot be read.
    """
    if site.partition.firmware is None:
        return
    goals = [target_mode(site, mode) for mode in site.partition.modes]
    groups = {frozenset((each.mode, *each.look_alikes)) for each in goals if each.look_alikes}
    for group in sorted(map(sorted, groups)):
        yield (
            f"not provable: {site.partition_name}: modes {', '.join(group)}: a node shows no "
            "difference between them, and a change to one is refused"
        )


def seen_settings(firmware: Firmware, settings: Mapping[str, str]) -> dict[str, str]:
    """Return `settings` without those that only the firmware shows.

    Modes that differ in nothing else look alike to the operating system. The BMC distinguishes
    them.
    """
    unseen = abstract(firmware, settings).keys() & set(UNSEEN)
    return {name: value for name, value in settings.items() if name not in unseen}


def firmware_of(site: Site) -> Firmware:
    """Return the firmware settings of the partition.

    Raises:
        BadInput: the partition has none.
    """
    if site.partition.firmware is None:
        accepted = "the settings of docs/modes.md"
        raise bad_input(site.facts, "partition.firmware", "nothing", accepted)
    return site.partition.firmware
