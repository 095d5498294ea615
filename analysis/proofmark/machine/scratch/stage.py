"""The scratch directory on all the nodes of a run at once: mounted, proven, taken away.

`proofmark.machine.scratch.checks` judges it, `proofmark.machine.scratch.mounts` describes how a
type is mounted, and `proofmark.machine.node_scripts` runs scripts on nodes.
"""

from __future__ import annotations

import json
import secrets
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from proofmark.cli.checkout import arguments as run_arguments
from proofmark.cli.checkout import run_to_look_at
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.nodesets import fold, folded, unfold
from proofmark.machine.node_scripts import Script, nodes_of, say, tell, within_budget
from proofmark.machine.outcome import Failed
from proofmark.machine.scratch.checks import (
    ScratchFacts,
    judge_scratch,
    read_scratch,
    refuse_scratch,
)
from proofmark.machine.scratch.mounts import mount_commands
from proofmark.runs.journal import Journal
from proofmark.runs.run import Run, lock, open_run, site_of, write_whole
from proofmark.site.inventory import Scratch, Site

MOUNTED = "mounted.json"
"""The file of a run's folder with the nodes on which it mounts, written before it does."""
PROBES = "scratch.probe"


def arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to `parser`."""
    parser.add_argument("verb", choices=sorted(VERBS), help="; ".join(_help()))
    run_arguments(parser)
    parser.add_argument("--mode", help="only the nodes on which steps of this mode still wait")
    parser.add_argument("--scratch-dir", help="the directory, which must be the run's")
    parser.add_argument("--user", help="who runs the benchmarks, if the inventory does not say")
    parser.add_argument("--existing", action="store_true", help="make no directory")


def run(options: Namespace) -> int:
    """Do what the command line asks; print as JSON what has changed.

    Raises:
        BadInput: the scratch directory is not what the run needs; every reason is named.
    """
    if options.verb == "look":
        with run_to_look_at(options, options.scratch_dir) as opened:
            changed = _look(_nodes_of(opened, options), options)
    else:
        if not options.folder:
            raise bad_input("RUN", "", "nothing", "a run's folder")
        opened = open_run(options.folder)
        with lock(opened):
            changed = VERBS[options.verb](_nodes_of(opened, options), options)
    print(json.dumps({"changed": fold(sorted(set(changed)))}))
    return 0


@dataclass(frozen=True)
class Nodes:
    """The nodes whose scratch is meant, and how they are spoken to."""

    run: Run
    site: Site
    names: Sequence[str]
    demand: Scratch
    block_bytes: int | None = None

    @cached_property
    def commands(self) -> Mapping[str, str]:
        """The commands that mount the file system, lay its files out, and tell how they are."""
        return mount_commands(self.demand)

    @property
    def others(self) -> Iterator[Nodes]:
        """The further file systems that the plan writes to, which the site has mounted.

        Two block sizes of GPFS are two file systems: each is of the first one's type.
        """
        wanted = {step.file_system for step in self.run.plan.steps()}
        for name, each in self.site.partition.scratches.items():
            if name in wanted and each.path != self.site.partition.scratch.path:
                kept = self.site.partition.scratch
                demand = Scratch(path=each.path, type=kept.type, off_root=kept.off_root)
                yield replace(self, demand=demand, block_bytes=each.block_bytes)

    def tell(
        self, names: Sequence[str], *scripts: Script
    ) -> tuple[dict[str, str], dict[str, Failed]]:
        """Run `scripts` on `names`."""
        return tell(self.site, names, *scripts)

    def lose(self, lost: Mapping[str, Failed]) -> None:
        """Name the nodes that are lost, as far as the budget goes."""
        accepted = "a node that mounts it and answers"
        within_budget(self.site, self.demand.path, len(self.names), lost, accepted)

    def mount(self, verb: str) -> Script:
        """Return the script that mounts, unmounts or looks, and its words."""
        mount = self.demand.mount
        assert mount is not None
        source = self.demand.source or mount.source or ""
        command = self.commands["unmount" if verb == "unmount" else "mount"]
        words = (verb, mount.point.rstrip("/"), self.demand.type or "", source, command)
        return "scratch-mount.sh", words

    def probe(self, options: Namespace, *words: str) -> Script:
        """Return the script that looks and writes, and its words."""
        user = self.site.partition.run_user or options.user
        told = [*(("-u", user) if user else ()), *words, self.demand.path]
        return "scratch-probe.sh", told


def _waiting(run: Run, mode: str) -> list[str]:
    """Return the nodes on which steps of `mode` wait, and which have not failed to enter it."""
    steps = run.folder / "steps"
    found = dict.fromkeys(
        node
        for group in run.plan.groups
        if group.mode == mode
        for job in group.jobs
        if any(not (steps / step.id / "rc").exists() for step in job.steps)
        for node in job.nodes
    )
    return [node for node in found if not Journal(run.folder, node).history().failed]


def _nodes_of(opened: Run, options: Namespace) -> Nodes:
    site = site_of(opened)
    demand = site.partition.scratch
    asked = (options.scratch_dir or demand.path).rstrip("/")
    if asked != demand.path.rstrip("/"):
        accepted = f"{demand.path}: the run was planned with it"
        raise bad_input("scratch_dir", "", asked, accepted)
    names = _waiting(opened, options.mode) if options.mode else nodes_of(opened.plan)
    scratches = site.partition.scratches.values()
    block = next((each.block_bytes for each in scratches if each.path == demand.path), None)
    return Nodes(opened, site, names, demand, block)


def _look(nodes: Nodes, options: Namespace) -> list[str]:
    """Say what would be mounted where, and what speaks against the directory; change nothing."""
    texts, lost = _seen(nodes, options, "look")
    nodes.lose(lost)
    would = _who_said(texts, "would mount")
    if not would:
        # Where nothing is mounted yet the directory below cannot be judged.
        for each in (nodes, *nodes.others):
            if each is not nodes:
                texts, lost = _seen(each, options, "look")
                each.lose(lost)
            _refuse(each, texts.values(), may_create=not options.existing)
            say(f"{each.demand.path}: nothing speaks against it; writing was not tried")
    return would


def _prove(nodes: Nodes, options: Namespace) -> list[str]:
    """Mount what is not mounted, and prove that all nodes can use one and the same directory."""
    if not nodes.names:
        say("no node waits for it")
        return []
    if nodes.demand.mount:
        _remember(nodes.run, [*_remembered(nodes.run), *nodes.names])
    texts, lost = _seen(nodes, options, "mount")
    nodes.lose(lost)
    changed = _who_said(texts, "mounted")
    proofs: list[str] = []
    for each in (nodes, *nodes.others):
        if each is not nodes:
            texts, missing = _seen(each, options, "look")
            lost |= missing
            each.lose(lost)
        changed += _prove_one(each, options, texts, lost, proofs)
    write_whole(nodes.run.folder / PROBES, "".join(proofs))
    _note(nodes, lost)
    return changed


def _prove_one(
    nodes: Nodes,
    options: Namespace,
    texts: Mapping[str, str],
    lost: dict[str, Failed],
    proofs: list[str],
) -> list[str]:
    """Prove one directory on the nodes that have told of it in `texts`."""
    _refuse(nodes, texts.values(), may_create=not options.existing)
    # GPFS tells its block size by the name of what is mounted, which the site need not say.
    (source,) = {each.source for each in _facts(texts.values())}
    demand = nodes.demand.model_copy(update={"source": nodes.demand.source or source})
    nodes = replace(nodes, demand=demand)

    # A name of this time only: of one that was there before a node may remember what is gone.
    first, mark = next(iter(texts)), f"{nodes.run.id}-{secrets.token_hex(4)}"
    layout = ("-s", nodes.commands["set"]) if nodes.commands["set"] else ()
    told = ("-g", nodes.commands["get"]) if nodes.commands["get"] else ()
    create = () if options.existing else ("-c",)
    made, gone = nodes.tell([first], nodes.probe(options, *create, "-k", mark, *layout, *told))
    changed = _who_said(made, "created") + _who_said(made, "set")
    _refuse(nodes, made.values(), may_create=False)
    written, blind = nodes.tell(list(texts), nodes.probe(options, "-w", *create, "-r", mark, *told))
    changed += _who_said(written, "created")
    nodes.tell([first], nodes.probe(options, "-d", mark))
    lost |= gone | blind
    nodes.lose(lost)
    user = nodes.site.partition.run_user
    refuse_scratch(
        nodes.run, _facts(written.values()), demand, user, mark, block_bytes=nodes.block_bytes
    )
    proofs += written.values()
    say(f"{demand.path}: proven on {len(written)} of {len(nodes.names)} nodes")
    return changed


def _unmount(nodes: Nodes, options: Namespace) -> list[str]:
    """Take away what this run mounted, and nothing else."""
    names = _remembered(nodes.run)
    if not names or not nodes.demand.mount:
        return []
    texts, lost = nodes.tell(names, nodes.mount("unmount"))
    _remember(nodes.run, lost)
    nodes.lose(lost)
    return _who_said(texts, "unmounted")


VERBS: Mapping[str, Callable[[Nodes, Namespace], list[str]]] = {
    "look": _look,
    "prove": _prove,
    "unmount": _unmount,
}


def _help() -> list[str]:
    return [f"{name}: {(verb.__doc__ or '').rstrip('.')}" for name, verb in VERBS.items()]


def _seen(nodes: Nodes, options: Namespace, verb: str) -> tuple[dict[str, str], dict[str, Failed]]:
    first = [nodes.mount(verb)] if nodes.demand.mount else []
    return nodes.tell(nodes.names, *first, nodes.probe(options))


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


def _refuse(nodes: Nodes, texts: Iterable[str], *, may_create: bool) -> None:
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


def _note(nodes: Nodes, lost: Mapping[str, Failed]) -> None:
    """Note in the journals which nodes may not run a step for want of a scratch."""
    for node in nodes.names:
        log = Journal(nodes.run.folder, node)
        if node in lost:
            log.result("scratch", missing=str(lost[node]))
        elif log.path.exists() and log.history().no_scratch:
            log.result("scratch")


def _remembered(opened: Run) -> list[str]:
    try:
        told: list[str] = json.loads((opened.folder / MOUNTED).read_text())
    except FileNotFoundError:
        return []
    return unfold(told)


def _remember(opened: Run, names: Iterable[str]) -> None:
    write_whole(opened.folder / MOUNTED, json.dumps(fold(dict.fromkeys(names))) + "\n")
