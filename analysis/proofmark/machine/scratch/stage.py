"""The scratch directory on all the nodes of a run at once: mounted, proven, taken away.

`proofmark.machine.scratch.checks` judges it, `proofmark.machine.scratch.mounts` describes how a
type is mounted, and `proofmark.machine.node_scripts` runs scripts on nodes.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import write_whole
from proofmark.common.messages import say
from proofmark.common.nodesets import fold, folded, unfold
from proofmark.machine.node_scripts import Script, check_failure_budget, run_on_nodes
from proofmark.machine.outcome import NodeError
from proofmark.machine.scratch.checks import (
    ScratchFacts,
    judge_scratch,
    read_scratch,
    refuse_scratch,
)
from proofmark.machine.scratch.mounts import mount_commands
from proofmark.runs.journal import Journal
from proofmark.runs.progress import waiting_nodes
from proofmark.runs.run import Run, site_of
from proofmark.site.inventory import Site
from proofmark.site.storage import Scratch


@dataclass(frozen=True)
class ScratchTarget:
    """The nodes whose scratch is meant, and what is required of it.

    Attributes:
        user: who runs the benchmarks; empty: who asks.
        may_create: whether a missing directory is made.
    """

    run: Run
    site: Site
    names: Sequence[str]
    demand: Scratch
    block_bytes: int | None = None
    user: str = ""
    may_create: bool = True

    @cached_property
    def commands(self) -> Mapping[str, str]:
        """The commands that mount the file system, lay its files out, and tell how they are."""
        return mount_commands(self.demand)

    @property
    def others(self) -> Iterator[ScratchTarget]:
        """The further file systems that the plan writes to, which the site has mounted.

        Two block sizes of GPFS are two file systems: each is of the first one's type.
        """
        wanted = {step.file_system for step in self.run.plan.steps()}
        for name, each in self.site.partition.scratches.items():
            if name in wanted and each.path != self.site.partition.scratch.path:
                kept = self.site.partition.scratch
                demand = Scratch(path=each.path, type=kept.type, off_root=kept.off_root)
                yield replace(self, demand=demand, block_bytes=each.block_bytes)

    def run_on_nodes(
        self, names: Sequence[str], *scripts: Script
    ) -> tuple[dict[str, str], dict[str, NodeError]]:
        """Run `scripts` on `names`."""
        return run_on_nodes(self.site, names, *scripts)

    def lose(self, lost: Mapping[str, NodeError]) -> None:
        """Name the nodes that are lost, as far as the budget goes."""
        accepted = "a node that mounts it and answers"
        check_failure_budget(self.site, self.demand.path, len(self.names), lost, accepted)

    def mount(self, verb: str) -> Script:
        """Return the script that mounts, unmounts or looks, and its words."""
        mount = self.demand.mount
        assert mount is not None
        source = self.demand.source or mount.source or ""
        command = self.commands["unmount" if verb == "unmount" else "mount"]
        words = (verb, mount.point.rstrip("/"), self.demand.type or "", source, command)
        return "scratch-mount.sh", words

    def probe(self, *words: str) -> Script:
        """Return the script that looks and writes, and its words."""
        user = self.site.partition.run_user or self.user
        told = [*(("-u", user) if user else ()), *words, self.demand.path]
        return "scratch-probe.sh", told


def _waiting(run: Run, mode: str) -> list[str]:
    """Return the nodes on which steps of `mode` wait, and which have not failed to enter it."""
    waiting = waiting_nodes(run, mode)
    return [node for node in waiting if not Journal(run.folder, node).history().failed]


def nodes_of(
    opened: Run, mode: str = "", scratch_dir: str = "", *, user: str = "", may_create: bool = True
) -> ScratchTarget:
    """Return the nodes of a run, or those on which steps of `mode` wait.

    Raises:
        BadInput: the run was planned with another directory than `scratch_dir`.
    """
    site = site_of(opened)
    demand = site.partition.scratch
    asked = (scratch_dir or demand.path).rstrip("/")
    if asked != demand.path.rstrip("/"):
        accepted = f"{demand.path}: the run was planned with it"
        raise bad_input("scratch_dir", "", asked, accepted)
    names = _waiting(opened, mode) if mode else opened.plan.nodes()
    scratches = site.partition.scratches.values()
    block = next((each.block_bytes for each in scratches if each.path == demand.path), None)
    return ScratchTarget(opened, site, names, demand, block, user, may_create)


def check(nodes: ScratchTarget) -> list[str]:
    """Say what would be mounted where, and what speaks against the directory; change nothing."""
    texts, lost = _seen(nodes, "look")
    nodes.lose(lost)
    would = _who_said(texts, "would mount")
    if not would:
        # Where nothing is mounted yet the directory below cannot be judged.
        for each in (nodes, *nodes.others):
            if each is not nodes:
                texts, lost = _seen(each, "look")
                each.lose(lost)
            _refuse(each, texts.values(), may_create=nodes.may_create)
            say(f"{each.demand.path}: nothing speaks against it; writing was not tried")
    return would


def _verify(nodes: ScratchTarget) -> list[str]:
    """Mount what is not mounted, and prove that all nodes can use one and the same directory."""
    if not nodes.names:
        say("no node waits for it")
        return []
    if nodes.demand.mount:
        _remember(nodes.run, [*_remembered(nodes.run), *nodes.names])
    texts, lost = _seen(nodes, "mount")
    nodes.lose(lost)
    changed = _who_said(texts, "mounted")
    proofs: list[str] = []
    for each in (nodes, *nodes.others):
        if each is not nodes:
            texts, missing = _seen(each, "look")
            lost |= missing
            each.lose(lost)
        changed += _verify_one(each, texts, lost, proofs)
    write_whole(nodes.run.files.scratch_probe, "".join(proofs))
    _note(nodes, lost)
    return changed


def _verify_one(
    nodes: ScratchTarget,
    texts: Mapping[str, str],
    lost: dict[str, NodeError],
    proofs: list[str],
) -> list[str]:
    """Prove one directory on the nodes that have told of it in `texts`."""
    _refuse(nodes, texts.values(), may_create=nodes.may_create)
    # GPFS tells its block size by the name of what is mounted, which the site need not say.
    (source,) = {each.source for each in _facts(texts.values())}
    demand = nodes.demand.model_copy(update={"source": nodes.demand.source or source})
    nodes = replace(nodes, demand=demand)

    # A name of this time only: of one that was there before a node may remember what is gone.
    first, mark = next(iter(texts)), f"{nodes.run.id}-{secrets.token_hex(4)}"
    layout = ("-s", nodes.commands["set"]) if nodes.commands["set"] else ()
    told = ("-g", nodes.commands["get"]) if nodes.commands["get"] else ()
    create = ("-c",) if nodes.may_create else ()
    made, gone = nodes.run_on_nodes([first], nodes.probe(*create, "-k", mark, *layout, *told))
    changed = _who_said(made, "created") + _who_said(made, "set")
    _refuse(nodes, made.values(), may_create=False)
    written, blind = nodes.run_on_nodes(list(texts), nodes.probe("-w", *create, "-r", mark, *told))
    changed += _who_said(written, "created")
    nodes.run_on_nodes([first], nodes.probe("-d", mark))
    lost |= gone | blind
    nodes.lose(lost)
    user = nodes.site.partition.run_user
    refuse_scratch(
        nodes.run, _facts(written.values()), demand, user, mark, block_bytes=nodes.block_bytes
    )
    proofs += written.values()
    say(f"{demand.path}: proven on {len(written)} of {len(nodes.names)} nodes")
    return changed


def _unmount(nodes: ScratchTarget) -> list[str]:
    """Take away what this run mounted, and nothing else."""
    names = _remembered(nodes.run)
    if not names or not nodes.demand.mount:
        return []
    texts, lost = nodes.run_on_nodes(names, nodes.mount("unmount"))
    _remember(nodes.run, lost)
    nodes.lose(lost)
    return _who_said(texts, "unmounted")


VERBS: Mapping[str, Callable[[ScratchTarget], list[str]]] = {
    "check": check,
    "verify": _verify,
    "unmount": _unmount,
}


def _seen(nodes: ScratchTarget, verb: str) -> tuple[dict[str, str], dict[str, NodeError]]:
    first = [nodes.mount(verb)] if nodes.demand.mount else []
    return nodes.run_on_nodes(nodes.names, *first, nodes.probe())


def _who_said(texts: Mapping[str, str], word: str) -> list[str]:
    """Say what the nodes did in that word, and return who did."""
    said: dict[str, list[str]] = {}
    for node, text in texts.items():
        for line in text.splitlines():
            if line.startswith(f"| {word}: "):
                said.setdefault(line.removeprefix("| "), []).append(node)
    for line, those in said.items():
        say(f"{folded(those)}: {line}")
    return sorted({node for those in said.values() for node in those})


def _refuse(nodes: ScratchTarget, texts: Iterable[str], *, may_create: bool) -> None:
    peak = nodes.run.plan.totals.scratch_peak_bytes
    if wrong := judge_scratch(_facts(texts), nodes.demand, peak, may_create=may_create):
        raise BadInput(*wrong)


def _facts(texts: Iterable[str]) -> list[ScratchFacts]:
    """Read what nodes said of the directory, behind what they said of the mount."""
    return [
        node
        for text in texts
        for node in read_scratch(text[text.index("proofmark-probe") :], "scratch-probe.sh")
    ]


def _note(nodes: ScratchTarget, lost: Mapping[str, NodeError]) -> None:
    """Note in the journals which nodes may not run a step for want of a scratch."""
    for node in nodes.names:
        log = Journal(nodes.run.folder, node)
        if node in lost:
            log.result("scratch", missing=str(lost[node]))
        elif log.path.exists() and log.history().no_scratch:
            log.result("scratch")


def _remembered(opened: Run) -> list[str]:
    try:
        told: list[str] = json.loads(opened.files.mounted.read_text())
    except FileNotFoundError:
        return []
    return unfold(told)


def _remember(opened: Run, names: Iterable[str]) -> None:
    write_whole(opened.files.mounted, json.dumps(fold(dict.fromkeys(names))) + "\n")
