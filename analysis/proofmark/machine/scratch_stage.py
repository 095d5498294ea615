"""Mounts, checks and unmounts the scratch directory on all nodes of a run, and keeps which have it.

`proofmark.site.file_systems` has the words of the types of file systems. What is checked is the
same for all types (`proofmark.machine.scratch_checks`).
"""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from string import Formatter

from proofmark.common.errors import BadInput, bad_input, refuse
from proofmark.common.files import parse_json, read_bytes, write_atomic
from proofmark.common.grouping import flat
from proofmark.common.nodesets import fold, folded, unfold
from proofmark.common.progress_lines import say
from proofmark.machine.node_commands import (
    Script,
    check_failure_budget,
    refuse_failures,
    run_on_nodes,
)
from proofmark.machine.outcome import NodeError, NodeErrors, Outcome
from proofmark.machine.scheduler import DrainingScheduler, kept_for_others, present, scheduler
from proofmark.machine.scratch_checks import (
    ScratchFacts,
    judge_scratch,
    probe_script,
    read_scratch,
    refuse_scratch,
)
from proofmark.runs.journal import Journal
from proofmark.runs.progress import due_nodes, waiting_nodes
from proofmark.runs.run import Run, site_of
from proofmark.runs.run_files import RunFiles
from proofmark.site.file_systems import Scratch, kinds
from proofmark.site.inventory import Site


def mount_commands(scratch: Scratch) -> dict[str, str]:
    """Return the commands for `scratch` as quoted sh text, by purpose; empty: nothing to do.

    ``mount`` and ``unmount`` are set if the site declares a mount, ``set`` if it declares a layout,
    ``get`` if the type has a command that prints the layout.

    Raises:
        BadInput: the type cannot set the layout, or a mount has an unknown type.
    """
    known = kinds().get(scratch.type or "")
    commands = dict.fromkeys(("mount", "unmount", "set", "get"), "")
    if scratch.mount is not None and known is None:
        accepted = f"to be mounted: {', '.join(kinds())}"
        raise bad_input("partition.scratch", "type", f"{scratch.type!r}", accepted)
    if known is None:
        if scratch.layout:
            raise _no_layout(scratch, "no layout: the type is unknown")
        return commands
    words: dict[str, str] = {"path": scratch.path, "source": scratch.source or ""}
    if scratch.mount is not None:
        words["source"] = scratch.mount.source or words["source"]
        words["point"] = scratch.mount.point
        words["options"] = ",".join(scratch.mount.options) or "rw"
        commands["mount"] = _shell_text(known.mount, words)
        commands["unmount"] = _shell_text(known.unmount, words)
    if _fields(known.get) <= {name for name, value in words.items() if value}:
        commands["get"] = _shell_text(known.get, words)
    if scratch.layout:
        settable = _fields(known.set) - set(words)
        if set(scratch.layout) != settable:
            raise _no_layout(scratch, ", ".join(sorted(settable)) or "no layout: it is fixed")
        commands["set"] = _shell_text(known.set, {**words, **scratch.layout})
    return commands


def _fields(command: Sequence[str]) -> set[str]:
    return {field for _, field, _, _ in Formatter().parse(" ".join(command)) if field}


def _shell_text(command: Sequence[str], words: Mapping[str, object]) -> str:
    return shlex.join(word.format_map(words) for word in command)


def _no_layout(scratch: Scratch, accepted: str) -> Exception:
    found = f"{', '.join(scratch.layout)} of a {scratch.type or 'file system without type'}"
    return bad_input("partition.scratch", "layout", found, accepted)


def read_mounted(state: Path) -> list[str]:
    """Return the nodes on which this run may have mounted the file system."""
    path = RunFiles(state).mounted
    try:
        return unfold(parse_json(read_bytes(path)))
    except FileNotFoundError:
        return []
    except (OSError, TypeError, ValueError) as error:
        raise bad_input(path, "", f"damaged: {error}", "the file that the kit wrote") from None


def write_mounted(state: Path, names: Iterable[str]) -> None:
    """Keep the nodes with a mount; without one there is no file."""
    if sets := fold(dict.fromkeys(names)):
        write_atomic(RunFiles(state).mounted, json.dumps(sets) + "\n")
    else:
        RunFiles(state).mounted.unlink(missing_ok=True)


def mount_script(demand: Scratch, verb: str) -> Script:
    """Return the script that mounts, unmounts or only looks, and its arguments."""
    mount = demand.mount
    assert mount is not None
    source = demand.source or mount.source or ""
    commands = mount_commands(demand)
    given = [commands["unmount"]] if verb == "unmount" else [commands["mount"], commands["unmount"]]
    words = (verb, mount.point.rstrip("/"), demand.type or "", source, *given)
    return "scratch-mount.sh", words


@dataclass(frozen=True)
class ScratchUse:
    """Who uses a scratch directory, and who makes it.

    Attributes:
        user: the user that runs the benchmarks; empty: the user of this process.
    """

    user: str = ""
    may_create: bool = True


OWN_USE = ScratchUse()


@dataclass(frozen=True)
class ScratchTarget:
    """Nodes of a run, and what is required of their scratch directory.

    Attributes:
        state: the folder of the run's state, with the journals and the list of mounts.
        block_bytes: the required block size of the file system; None: any.
    """

    run: Run
    state: Path
    site: Site
    names: Sequence[str]
    demand: Scratch
    block_bytes: int | None = None
    use: ScratchUse = OWN_USE

    @cached_property
    def commands(self) -> Mapping[str, str]:
        """The commands that mount the file system, and set and print the layout of its files."""
        return mount_commands(self.demand)

    @property
    def others(self) -> Iterator[ScratchTarget]:
        """The other file systems to which the plan writes. The site mounts them.

        Example: two GPFS file systems with different block sizes.
        """
        wanted = {step.file_system for step in self.run.plan.steps()}
        first = self.site.partition.scratch
        for name, further in self.site.partition.scratches.items():
            if name in wanted and further.path != first.path:
                demand = Scratch(path=further.path, type=first.type, off_root=first.off_root)
                yield replace(self, demand=demand, block_bytes=further.block_bytes)

    def check_budget(self, failed: Mapping[str, NodeError]) -> None:
        """Print the nodes that failed, and refuse more than the failure budget."""
        accepted = "a node that mounts it and answers"
        check_failure_budget(self.site, self.demand.path, len(self.names), failed, accepted)

    def kept_for_others(self) -> NodeErrors:
        """Return the nodes on which nothing is mounted now, because others have reserved them.

        A mount stops no job. So it is made if the scheduler does not tell its reservations.
        """
        partition = self.site.partition
        chosen = scheduler(partition.scheduler, partition.queue)
        if not isinstance(chosen, DrainingScheduler):
            return {}
        kept = kept_for_others(chosen, self.names, partition.queue.reservation)
        for text in {error.text for error in kept.values() if error.outcome is not Outcome.HELD}:
            say(f"reservations of others are not known: {text}")
        return {node: error for node, error in kept.items() if error.outcome is Outcome.HELD}


def _failed(journal: Journal) -> bool:
    try:
        return bool(journal.history().failed)
    except BadInput:
        return True


def nodes_of(
    opened: Run,
    state: Path,
    site: Site,
    mode: str = "",
    scratch_dir: str = "",
    use: ScratchUse = OWN_USE,
) -> ScratchTarget:
    """Return the nodes of a run, or those that wait for steps of `mode`.

    Args:
        mode: only the nodes with waiting steps of this mode, without those that failed to enter
            it; empty: those of `due_nodes`.
        scratch_dir: the directory, if it is not that of the inventory.

    Raises:
        BadInput: the run was planned with another directory than `scratch_dir`.
    """
    demand = site.partition.scratch
    planned = site_of(opened).partition.scratch.path
    if (scratch_dir or demand.path).rstrip("/") != planned.rstrip("/"):
        found, accepted = scratch_dir or demand.path, f"{planned}, with which the run was planned"
        raise bad_input("scratch_dir", "", found, accepted)
    names = due_nodes(opened)
    if mode:
        names = [n for n in waiting_nodes(opened, mode) if not _failed(Journal(state, n))]
    names = present(opened, site, names)
    scratches = site.partition.scratches.values()
    block = next((each.block_bytes for each in scratches if each.path == demand.path), None)
    return ScratchTarget(opened, state, site, names, demand, block, use)


def check(nodes: ScratchTarget) -> list[str]:
    """Print what would be mounted, and check the directory; change nothing.

    Returns:
        The nodes on which something would be mounted.
    """
    for target in (nodes, *nodes.others) if nodes.names else ():
        outputs, failed = _report(target, target.names, "look")
        target.check_budget(failed)
        # The directory below a mount point cannot be checked before the mount.
        if would_mount := _nodes_with(outputs, "would mount"):
            return would_mount
        _refuse(target, outputs.values())
        say(f"{target.demand.path}: no problem found; writing was not tried")
    return []


def verify(nodes: ScratchTarget) -> list[str]:
    """Mount what is not mounted, and verify that all nodes can use one and the same directory.

    Returns:
        The nodes on which something changed.
    """
    if not nodes.names:
        say("no node waits for it")
        return []
    failed = nodes.kept_for_others() if nodes.demand.mount else {}
    if nodes.demand.mount:
        free = [node for node in nodes.names if node not in failed]
        write_mounted(nodes.state, [*read_mounted(nodes.state), *free])
    changed: list[str] = []
    reports: list[str] = []
    for target in (nodes, *nodes.others):
        changed += _verify_one(target, failed, reports)
    write_atomic(nodes.run.files.scratch_probe, "".join(reports))
    _journal(nodes, failed)
    return changed


def _verify_one(nodes: ScratchTarget, failed: NodeErrors, reports: list[str]) -> list[str]:
    """Verify one directory on its nodes without those of `failed`; return where it changed.

    If it is ready on the first node, each node is started once: it looks, reads the file of the
    first node, and then writes. Else nothing is made before all nodes have looked.

    Nodes that fail are added to `failed`, and the reports of the others to `reports`.
    """
    names, create = [node for node in nodes.names if node not in failed], list[str]()
    looked, _ = _report(nodes, names[:1], "mount")
    changed = _changes(looked)
    if not _is_ready(nodes, looked):
        looked, lost = _report(nodes, names, "mount")
        changed += _changes(looked)
        failed |= lost
        nodes.check_budget(failed)
        _refuse(nodes, looked.values())
        names, create = list(looked), ["-c"] if nodes.use.may_create else []
    # The tool of GPFS needs the name of the device, which the site need not declare.
    (source,) = {each.same_source for each in _facts(looked.values())}
    demand = nodes.demand.model_copy(update={"source": nodes.demand.source or source or None})
    nodes = replace(nodes, demand=demand)

    # A new name each time: a node may have cached the content of a file that was removed.
    token = f"{nodes.run.id}-{secrets.token_hex(16)}"
    layout, read = ["-g", nodes.commands["get"]], ["-r", token]
    keep = [*create, *layout, "-s", nodes.commands["set"], "-k", token]
    made, lost = _report(nodes, names[:1], "mount", *keep)
    changed += _changes(made)
    failed |= lost
    if any(each.shared != token for each in _facts(made.values())):
        names, read = names[:1], []  # the first node says why it cannot write
    written, lost = _report(nodes, names, "mount", *create, *layout, "-w", *read)
    changed += _changes(written)
    failed |= lost
    _report(nodes, names[:1], "mount", "-d", token)
    nodes.check_budget(failed)
    user = nodes.site.partition.run_user
    refuse_scratch(
        nodes.run.plan.totals.scratch_peak_bytes,
        _facts(written.values()),
        demand,
        user,
        token,
        block_bytes=nodes.block_bytes,
    )
    reports += map(_probe_in, written.values())
    say(f"{demand.path}: verified on {len(written)} of {len(nodes.names)} nodes")
    return changed


def _is_ready(nodes: ScratchTarget, looked: Mapping[str, str]) -> bool:
    """Return whether nothing has to be made: the directory, or a layout that was never verified."""
    peak, facts = nodes.run.plan.totals.scratch_peak_bytes, _facts(looked.values())
    set_before = not nodes.demand.layout or nodes.run.files.scratch_probe.exists()
    wrong = judge_scratch(facts, nodes.demand, peak, may_create=False)
    return bool(facts) and set_before and not wrong


def unmount(state: Path, site: Site) -> list[str]:
    """Unmount what the run mounted; return the nodes on which something was unmounted.

    Raises:
        BadInput: nodes are no hosts of the site, or the unmount failed on them.
    """
    names = read_mounted(state)
    if not names or not site.partition.scratch.mount:
        return []
    known = [node for node in names if node in site.hosts]
    outputs, failed = run_on_nodes(site, known, mount_script(site.partition.scratch, "unmount"))
    text = "no host of the partition that -i and -l select"
    failed |= {
        node: NodeError(Outcome.UNREACHABLE, f"{node}: {text}")
        for node in names
        if node not in site.hosts
    }
    write_mounted(state, failed)
    accepted = "a node that unmounts it and answers"
    refuse_failures(site.partition.scratch.path, failed, accepted)
    return _nodes_with(outputs, "unmounted")


def _report(
    nodes: ScratchTarget, names: Sequence[str], verb: str, *words: str
) -> tuple[dict[str, str], NodeErrors]:
    """Mount the file system on `names` or only look, then report on the directory."""
    first = [mount_script(nodes.demand, verb)] if nodes.demand.mount else []
    user = nodes.site.partition.run_user or nodes.use.user
    return run_on_nodes(nodes.site, names, *first, probe_script(nodes.demand, user, *words))


def _changes(outputs: Mapping[str, str]) -> list[str]:
    """Print what the nodes changed, and return their names."""
    return flat(_nodes_with(outputs, fact) for fact in ("mounted", "created", "set"))


def _nodes_with(outputs: Mapping[str, str], fact: str) -> list[str]:
    """Print the lines of `fact`, and return the nodes that printed one."""
    nodes_by_line: dict[str, list[str]] = {}
    for node, text in outputs.items():
        for line in text.splitlines():
            if line.startswith(f"| {fact}: "):
                nodes_by_line.setdefault(line.removeprefix("| "), []).append(node)
    for line, nodes in nodes_by_line.items():
        say(f"{folded(nodes)}: {line}")
    return sorted(set(chain.from_iterable(nodes_by_line.values())))


def _refuse(nodes: ScratchTarget, texts: Iterable[str]) -> None:
    peak, may_create = nodes.run.plan.totals.scratch_peak_bytes, nodes.use.may_create
    refuse(judge_scratch(_facts(texts), nodes.demand, peak, may_create=may_create))


def _facts(texts: Iterable[str]) -> list[ScratchFacts]:
    return flat(read_scratch(_probe_in(text), "scratch-probe.sh") for text in texts)


def _probe_in(text: str) -> str:
    """Return the report on the directory; the lines of the mount are before it."""
    return text[text.index("proofmark-probe") :]


def _journal(nodes: ScratchTarget, failed: Mapping[str, NodeError]) -> None:
    """Write into the journals which nodes must not run a step, because they have no scratch."""
    for node in nodes.names:
        log = Journal(nodes.state, node)
        if node in failed:
            log.result("scratch", missing=str(failed[node]))
        elif log.path.exists() and not _failed(log) and log.history().no_scratch:
            log.result("scratch")
