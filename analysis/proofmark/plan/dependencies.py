"""Relates the steps that read files to the steps that write them (docs/design/fabric.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from proofmark.cases.suite_use import SuiteUse
from proofmark.cases.vocabulary import Scalar
from proofmark.common.errors import bad_input
from proofmark.common.message import Message
from proofmark.plan.draft import Draft


def linked(
    drafts: Sequence[Draft], hosts: Sequence[str], file: str, leave_out: Callable[[Message], None]
) -> list[Draft]:
    """Return the drafts of one case in one mode; each reading step is on nodes of its own.

    A reading step gets the first of `hosts` that its writing step does not use. The writing step
    has the same repeat and the same values of the common axes: those for which both uses have a
    value in common. An axis that tells writing from reading is not common.

    Args:
        drafts: all steps of the case, with their ids and nodes.
        hosts: the nodes of the site under its limit.
        file: the file of the case, for messages.
        leave_out: called with the reason for each reading step that cannot run.

    Raises:
        BadInput: a reading step has several writing steps.
    """
    common: dict[int, set[str]] = {}
    kept: set[str] = set()
    result: list[Draft] = []
    for draft in drafts:
        if draft.use.reads is None:
            result.append(draft)
            continue
        if draft.number not in common:
            common[draft.number] = _common_axes(drafts, draft.use)
        writers = [each for each in drafts if _same_point(each, draft, common[draft.number])]
        point = ", ".join(f"{axis} {value}" for axis, value in draft.axes.items())
        if len(writers) > 1:
            found = f"{len(writers)} steps of {draft.use.reads} for {point}"
            raise bad_input(file, "reads", found, "one step that writes the files of each point")
        needed = len(draft.step.nodes)
        free = [host for host in hosts if writers and host not in writers[0].step.nodes]
        if not writers:
            about = {"case": draft.step.case, "point": point}
            leave_out(Message("left-unwritten", **about, writer=draft.use.reads))
        elif len(free) < needed:
            counts = {"needed": needed, "free": len(free)}
            leave_out(Message("left-readers", case=draft.step.case, point=point, **counts))
        else:
            writer = writers[0].step
            kept.add(writer.id)
            changes = {
                "nodes": free[:needed],
                "reads": writer.id,
                "file_system": writer.file_system,
            }
            result.append(replace(draft, step=draft.step.model_copy(update=changes)))
    return [
        replace(draft, step=draft.step.model_copy(update={"kept": True}))
        if draft.step.id in kept
        else draft
        for draft in result
    ]


def _common_axes(drafts: Sequence[Draft], reading: SuiteUse) -> set[str]:
    """Return the axes for which a use and the use whose files it reads have a value in common."""
    own: dict[str, set[Scalar]] = {}
    other: dict[str, set[Scalar]] = {}
    for draft in drafts:
        if draft.use is reading or draft.use.name == reading.reads:
            values = own if draft.use is reading else other
            for axis, value in draft.axes.items():
                values.setdefault(axis, set()).add(value)
    return {axis for axis, values in own.items() if values & other.get(axis, set())}


def _same_point(writer: Draft, reader: Draft, common: Collection[str]) -> bool:
    return (
        writer.use.name == reader.use.reads
        and writer.step.repeat == reader.step.repeat
        and all(writer.axes[axis] == reader.axes[axis] for axis in common)
    )
