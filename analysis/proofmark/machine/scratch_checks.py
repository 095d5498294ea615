"""Checks the scratch directory by the reports of the nodes, before any benchmark starts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePosixPath

from proofmark.common.errors import InputError, bad_input, refuse
from proofmark.common.nodesets import folded, nodes_by
from proofmark.common.progress_lines import say
from proofmark.common.text import size, whole_number
from proofmark.machine.node_commands import Script, check_failure_budget, run_on_nodes
from proofmark.runs.job_folder import JobFolder
from proofmark.runs.run import Run
from proofmark.site.file_systems import Scratch, same_type
from proofmark.site.inventory import Site
from proofmark.site.node.parts import mount_text, read_mounts
from proofmark.site.node.probe_text import ProbeStream, read_streams

MARGIN_PERCENT = 5
"""What a file system needs beside the data, for blocks and metadata, in percent of the data."""


@dataclass(frozen=True)
class ScratchFacts:
    """The report of one node on the scratch directory.

    Attributes:
        nearest: the directory, or the nearest existing one above it.
        kind, source: those of its mount. They are empty if no mount of the node contains the
            directory, as in a chroot whose ``/`` is no mount point.
        required_source: the required source, if the node resolved its host names to those of
            `source`; else empty.
        available: the bytes that an ordinary user can still write, with the quota of `user`.
        on_root: whether the directory is on the device of ``/``.
        written: ``ok``, or why `user` could not write there; None if it was not tried.
        shared: the content of the file that another node wrote for all; None if it was not read.
        layout: the layout of new files, as the tool of the file system prints it.
        not_made: why the directory could not be made, if that was tried.
    """

    node: str
    path: str
    nearest: str
    kind: str
    source: str
    available: int
    on_root: bool
    user: str
    written: str | None
    shared: str | None = None
    layout: tuple[str, ...] = ()
    not_made: str = ""
    required_source: str = ""

    @property
    def same_source(self) -> str:
        """The source by its required name; nodes can show it by other names and addresses."""
        return self.required_source or self.source

    @property
    def system(self) -> str:
        """Its file system in words."""
        return mount_text(self.kind, self.same_source)


def probe_script(demand: Scratch, user: str | None, *words: str) -> Script:
    """Return the script that reports on the directory, and its arguments."""
    named = (*(("-u", user) if user else ()), *(("-m", demand.source) if demand.source else ()))
    return "scratch-probe.sh", [*named, *words, demand.path]


def read_scratch(text: str, source: str) -> list[ScratchFacts]:
    """Read the output of ``scratch-probe.sh`` from one node, or from several in sequence.

    Raises:
        BadInput: the output is incomplete, or a value cannot be read.
    """
    facts = []
    for stream in read_streams(text, source):
        if stream.kind != "scratch":
            raise bad_input(source, "", f"a probe of kind {stream.kind!r}", "scratch")
        try:
            facts.append(_facts(stream))
        except (KeyError, IndexError, ValueError) as error:
            raise stream.wrong(
                "", f"a value that cannot be read ({error})", "what it prints"
            ) from error
    return facts


def _facts(stream: ProbeStream) -> ScratchFacts:
    host, directory = stream.pairs("host"), stream.pairs("directory")
    (line,) = stream.lines("mount")
    # The script prints an empty line if no mount contains the directory.
    mount = read_mounts([line])[0] if line.strip() else None
    source = mount.source if mount else ""
    blocks, block_bytes = map(int, directory["available"].split())
    return ScratchFacts(
        node=host["hostname"],
        path=directory["path"],
        nearest=directory["nearest"],
        kind=mount.kind if mount else "",
        source=source,
        available=min([blocks * block_bytes, *_quota(stream.lines("quota"), source)]),
        on_root=directory["device"] == directory["root_device"],
        user=host["user"],
        written=stream.pairs("write").get("result"),
        shared=_section_text(stream, "shared"),
        layout=tuple(stream.lines("layout")) if "layout" in stream.sections else (),
        not_made=stream.absent.get("directory.created", ""),
        required_source=_section_text(stream, "source") or "",
    )


def _section_text(stream: ProbeStream, section: str) -> str | None:
    """Return the text of an optional section, or why it is empty; None without the section."""
    if section not in stream.sections:
        return None
    return stream.absent.get(section) or " ".join(stream.lines(section))


def _quota(lines: Iterable[str], source: str) -> list[int]:
    """Return the remaining bytes of each hard limit on `source`.

    ``quota -w -p`` prints: file system, KiB used (with a star if over the soft limit), soft limit,
    hard limit, …; a limit of 0 means no limit.
    """
    rows = (line.split() for line in lines)
    found = [(row[1], row[3]) for row in rows if len(row) > 4 and row[0] == source]
    limits = [(whole_number(used.rstrip("*")) or 0, whole_number(hard)) for used, hard in found]
    return [max(0, hard - used) * 1024 for used, hard in limits if hard]


def judge_scratch(
    facts: Sequence[ScratchFacts], demand: Scratch, peak_bytes: int, *, may_create: bool
) -> list[InputError]:
    """Return the problems of the scratch directory, each with the nodes that report it.

    Args:
        peak_bytes: the most that the plan keeps there at one time.
        may_create: whether the directory itself may still be missing; its parent must exist.
    """
    need = math.ceil(Fraction(peak_bytes * (100 + MARGIN_PERCENT), 100))
    path = PurePosixPath(demand.path)
    known = {f"{path}", f"{path.parent}"} if may_create else {f"{path}"}
    above = f"a directory in {path.parent}; is its file system mounted?"
    # Nodes measure the free space at different times: all that lack space get the least value.
    least = size(min((node.available for node in facts), default=0))
    found: dict[tuple[int, str, str], list[str]] = {}
    for node in facts:
        missing = node.nearest not in known
        rules = (
            (
                node.path != f"{path}",
                f"a probe of {node.path}",
                "a probe of this directory; the run was planned with it",
            ),
            (
                missing,
                f"no such directory, the nearest is {node.nearest}"
                + (f"; it cannot be made: {node.not_made}" if node.not_made else ""),
                above if may_create else "a directory",
            ),
            (
                demand.type is not None and not same_type(node.kind, demand.type),
                f"type {node.system}" if node.kind else node.system,
                f"type {demand.type}",
            ),
            (
                demand.source not in (None, node.same_source),
                f"source {node.source} ({node.kind})" if node.kind else node.system,
                f"source {demand.source}",
            ),
            (
                demand.off_root and node.on_root,
                f"the device of / ({node.source or node.system})",
                "another device; is the file system mounted?",
            ),
            (
                node.available < need,
                f"{least} available",
                f"{size(need)}, for the {size(peak_bytes)} that the plan leaves there at one time "
                f"and {MARGIN_PERCENT} % more",
            ),
            (
                node.written not in (None, "ok") and not missing,
                f"not writable by {node.user}: {_without_name(node)}",
                "a directory that the run user can write, read and empty; "
                "scratch_dir names another",
            ),
        )
        for number, (wrong, text, accepted) in enumerate(rules):
            if wrong:
                found.setdefault((number, text, accepted), []).append(node.node)
    problems = [
        InputError(demand.path, "", text, accepted, nodes=folded(nodes))
        for (_, text, accepted), nodes in sorted(found.items(), key=lambda each: each[0][0])
    ]
    systems = nodes_by({node.node: node.system for node in facts})
    if len(systems) > 1:
        text = ", ".join(f"{system} on {folded(nodes)}" for system, nodes in systems.items())
        problems.append(InputError(demand.path, "", text, "one file system on all nodes"))
    return problems


def _without_name(node: ScratchFacts) -> str:
    """Return why writing failed, without the name of the test file: it differs between nodes."""
    words = (node.written or "").split()
    return " ".join(word for word in words if ".proofmark-" not in word)


def refuse_scratch(
    peak_bytes: int,
    facts: Sequence[ScratchFacts],
    demand: Scratch,
    user: str | None,
    token: str,
    *,
    block_bytes: int | None = None,
) -> None:
    """Check a scratch directory in which all nodes have tried to write.

    Args:
        peak_bytes: the most that the plan keeps there at one time.
        user: the user that must have written; None: any.
        token: the text that one node wrote for the others to read.
        block_bytes: the block size that the tool of the file system must print; None: any.

    Raises:
        BadInput: the run must not start; every reason is named.
    """
    mistakes = judge_scratch(facts, demand, peak_bytes, may_create=False)
    readers = [] if mistakes else facts  # the file of another node is not there for the same reason

    def add(found: Mapping[str, str], accepted: str) -> None:
        for text, nodes in nodes_by(found).items():
            mistakes.append(InputError(demand.path, "", text, accepted, nodes=folded(nodes)))

    if user is not None and (others := sorted({node.user for node in facts} - {user})):
        add({"": f"written by {', '.join(others)}"}, f"by {user}")
    add(
        {
            node.node: (node.shared or "nothing").replace(token, "the run's token")
            for node in readers
            if node.shared != token
        },
        "the text that another node of the run wrote: one file system on all nodes",
    )
    layouts = {node.node: " / ".join(node.layout) for node in facts if block_bytes and node.layout}
    add(
        {node: text for node, text in layouts.items() if f"{block_bytes}" not in text.split()},
        f"a block size of {block_bytes}, which the plan requires",
    )
    refuse(mistakes)


def clean(run: Run, site: Site, user: str = "") -> list[str]:
    """Remove the folder of `run` in each scratch file system; return the nodes that removed one.

    The run user removes it (`user` if the site names none; empty: the user of the connection).

    The first node removes those of a shared file system. The others follow, for scratch of a node.

    Raises:
        BadInput: a job of the run may still be in the queue, or too many nodes failed.
    """
    submitted = (each.id for each in run.plan.jobs() if JobFolder(run, each).submission())
    if job := next(submitted, ""):
        found = f"{job}: may still be in the queue"
        raise bad_input("RUN", "", found, "a run without a submitted job")
    bases = dict.fromkeys(
        [site.partition.scratch.path, *(each.path for each in site.partition.scratches.values())]
    )
    words = [site.partition.run_user or user, run.id, *bases]
    nodes = run.plan.nodes()
    changed: list[str] = []
    for names in (nodes[:1], nodes[1:]):
        outputs, failed = run_on_nodes(site, names, ("scratch-clean.sh", words))
        check_failure_budget(site, "scratch", len(names), failed, "a node that removes it")
        for node, text in outputs.items():
            for line in text.splitlines():
                say(f"{node}: {line}")
            changed += [node] if text else []
    return changed
