"""The scratch guard: no benchmark starts before the directory it writes in is proven."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePosixPath

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.nodesets import folded
from proofmark.common.text import size
from proofmark.runs.run import Run
from proofmark.site.node.parts import read_mounts
from proofmark.site.node.probe_text import Stream, read_streams
from proofmark.site.storage import Scratch

MARGIN_PERCENT = 5
"""A file system takes blocks and metadata beside the data itself."""


@dataclass(frozen=True)
class ScratchFacts:
    """What one node says of the scratch directory.

    Attributes:
        nearest: the directory itself, or where it is missing the one above it that is there.
        available: bytes that an ordinary user may still write, the quota of `user` included.
        on_root: whether it lies on the device of ``/``.
        written: ``ok``, or why `user` could not write there; None where that was not tried.
        shared: what it read in the file that another node left for all; None where not tried.
        layout: how new files are laid out, in the words of the file system's own tool.
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


def read_scratch(text: str, source: str) -> list[ScratchFacts]:
    """Read what ``scratch-probe.sh`` printed, on one node or on several after one another.

    Raises:
        BadInput: it is not whole.
    """
    facts = []
    for stream in read_streams(text, source):
        if stream.kind != "scratch":
            raise bad_input(source, "", f"a probe of kind {stream.kind!r}", "scratch")
        try:
            facts.append(_facts(stream))
        except (KeyError, ValueError) as error:
            raise stream.wrong(
                "", f"a value that cannot be read ({error})", "what it prints"
            ) from error
    return facts


def _facts(stream: Stream) -> ScratchFacts:
    host, directory = stream.pairs("host"), stream.pairs("directory")
    (mount,) = read_mounts(stream.lines("mount"))
    blocks, block_bytes = map(int, directory["available"].split())
    return ScratchFacts(
        node=host["hostname"],
        path=directory["path"],
        nearest=directory["nearest"],
        kind=mount.kind,
        source=mount.source,
        available=min([blocks * block_bytes, *_quota(stream.lines("quota"), mount.source)]),
        on_root=directory["device"] == directory["root_device"],
        user=host["user"],
        written=stream.pairs("write").get("result"),
        shared=_said(stream, "shared"),
        layout=tuple(stream.lines("layout")) if "layout" in stream.sections else (),
        not_made=stream.absent.get("directory.created", ""),
    )


def _said(stream: Stream, section: str) -> str | None:
    """Return what stands in a section that not every probe has, or why it holds nothing."""
    if section not in stream.sections:
        return None
    return stream.absent.get(section) or " ".join(stream.lines(section))


def _quota(lines: Iterable[str], source: str) -> list[int]:
    """Return the bytes left of each hard limit on `source`.

    ``quota -w -p`` prints: file system, KiB used (with a star if over), soft limit, hard limit, …;
    a limit of 0 is none.
    """
    rows = (line.split() for line in lines)
    limits = [(row[1], row[3]) for row in rows if len(row) > 4 and row[0] == source]
    return [
        max(0, int(hard) - int(used.rstrip("*"))) * 1024 for used, hard in limits if int(hard) > 0
    ]


def judge_scratch(
    facts: Sequence[ScratchFacts], demand: Scratch, peak_bytes: int, *, may_create: bool
) -> list[InputError]:
    """Return what speaks against the scratch directory, each with the nodes that say so.

    `peak_bytes` is the most that the plan leaves there at one time. With `may_create` the directory
    itself may still be missing, not the one above it.
    """
    need = math.ceil(Fraction(peak_bytes * (100 + MARGIN_PERCENT), 100))
    path = PurePosixPath(demand.path)

    def missing(node: ScratchFacts) -> bool:
        return node.nearest not in ({f"{path}", f"{path.parent}"} if may_create else {f"{path}"})

    found: list[InputError] = []

    def refuse(
        wrong: Callable[[ScratchFacts], bool], what: Callable[[ScratchFacts], str], accepted: str
    ) -> None:
        for text, nodes in _nodes_by(filter(wrong, facts), what).items():
            found.append(InputError(demand.path, f"on {nodes}", text, accepted))

    refuse(
        lambda node: node.path != f"{path}",
        lambda node: f"a probe of {node.path}",
        "a probe of this directory; the run was planned with it",
    )
    refuse(
        missing,
        lambda node: (
            f"no such directory, the nearest is {node.nearest}"
            + (f"; it cannot be made: {node.not_made}" if node.not_made else "")
        ),
        f"a directory in {path.parent}; is its file system mounted?"
        if may_create
        else "a directory",
    )
    refuse(
        lambda node: demand.type is not None and node.kind != demand.type,
        lambda node: f"type {node.kind} ({node.source})",
        f"type {demand.type}",
    )
    refuse(
        lambda node: demand.source not in (None, node.source),
        lambda node: f"source {node.source} ({node.kind})",
        f"source {demand.source}",
    )
    refuse(
        lambda node: demand.off_root and node.on_root,
        lambda node: f"the device of / ({node.source})",
        "another device; is the file system mounted?",
    )
    # Every node measures free space a moment apart: one figure, the least, for all that lack it.
    least = size(min((node.available for node in facts), default=0))
    refuse(
        lambda node: node.available < need,
        lambda _node: f"{least} available",
        f"{size(need)}, for the {size(peak_bytes)} that the plan leaves there at one time "
        f"and {MARGIN_PERCENT} % more",
    )
    refuse(
        lambda node: node.written not in (None, "ok") and not missing(node),
        lambda node: f"not writable by {node.user}: {_without_name(node)}",
        "a directory that the run user can write, read and empty",
    )
    systems = _nodes_by(facts, lambda node: f"{node.kind} ({node.source})")
    if len(systems) > 1:
        told = ", ".join(f"{system} on {nodes}" for system, nodes in systems.items())
        found.append(InputError(demand.path, "", told, "one file system on all nodes"))
    return found


def _nodes_by(facts: Iterable[ScratchFacts], key: Callable[[ScratchFacts], str]) -> dict[str, str]:
    """Return the folded names of the nodes by what `key` returns for them."""
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for node in facts:
        nodes[key(node)].append(node.node)
    return {value: folded(names) for value, names in nodes.items()}


def _without_name(node: ScratchFacts) -> str:
    """Return why writing failed, without what differs from node to node: the test file's name."""
    words = (node.written or "").split()
    return " ".join(word for word in words if ".proofmark-" not in word)


def refuse_scratch(
    run: Run,
    facts: Sequence[ScratchFacts],
    demand: Scratch,
    user: str | None,
    mark: str,
    *,
    block_bytes: int | None = None,
) -> None:
    """Judge a scratch of `run` by its nodes, in which `user` has tried to write.

    `mark` is what one of them wrote for all to read. `block_bytes` is the block size for which the
    plan takes this file system: it is looked for in what the file system's own tool told.

    Raises:
        BadInput: the run must not start; every reason is named.
    """
    mistakes = judge_scratch(facts, demand, run.plan.totals.scratch_peak_bytes, may_create=False)
    if any(node.written is None for node in facts):
        mistakes.append(
            InputError(demand.path, "", "a probe that did not write", "one that did (-w)")
        )
    if user is not None and (others := sorted({node.user for node in facts} - {user})):
        mistakes.append(
            InputError(demand.path, "", f"written by {', '.join(others)}", f"by {user}")
        )
    for found, blind in _nodes_by(
        (node for node in facts if node.shared != mark),
        lambda node: _plain(node.shared or "nothing", mark),
    ).items():
        accepted = "what another node of the run wrote there: one file system on all nodes"
        mistakes.append(InputError(demand.path, f"on {blind}", found, accepted))
    for found, those in _nodes_by(
        (node for node in facts if block_bytes and node.layout),
        lambda node: " / ".join(node.layout),
    ).items():
        if f"{block_bytes}" not in found.split():
            accepted = f"a block size of {block_bytes}, for which the plan takes it"
            mistakes.append(InputError(demand.path, f"on {those}", found, accepted))
    if mistakes:
        raise BadInput(*mistakes)


def _plain(said: str, mark: str) -> str:
    return said.replace(mark, "the run's mark")
