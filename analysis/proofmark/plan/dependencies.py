"""Relates the steps that read files to the steps that write them (ADR 0095)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from proofmark.common.errors import bad_input
from proofmark.plan.draft import Draft


def linked(
    drafts: Sequence[Draft], hosts: Sequence[str], file: str, leave_out: Callable[[str], None]
) -> list[Draft]:
    """Return the drafts of one case in one mode; each reading step is on nodes of its own.

    A reading step gets the first of `hosts` that its writing step does not use. The writing step
    has the same repeat and the same values of all axes that both uses sweep.

    Args:
        drafts: all steps of the case, with their ids and nodes.
        hosts: the nodes of the site under its limit.
        file: the file of the case, for messages.
        leave_out: called with the reason for each reading step that cannot run.

    Raises:
        BadInput: a reading step has several writing steps.
    """
    kept: set[str] = set()
    result: list[Draft] = []
    for draft in drafts:
        if draft.use.reads is None:
            result.append(draft)
            continue
        writers = [each for each in drafts if _same_point(each, draft)]
        point = ", ".join(f"{axis} {value}" for axis, value in draft.axes.items())
        if len(writers) > 1:
            found = f"{len(writers)} steps of {draft.use.reads} for {point}"
            raise bad_input(file, "reads", found, "one step that writes the files of each point")
        needed = len(draft.step.nodes)
        free = [host for host in hosts if writers and host not in writers[0].step.nodes]
        if not writers:
            leave_out(f"{draft.step.case}: {point}: no step of {draft.use.reads} writes its files")
        elif len(free) < needed:
            leave_out(
                f"{draft.step.case}: {point}: {needed} nodes that did not write its files are "
                f"needed; the site has {len(free)}"
            )
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


def _same_point(writer: Draft, reader: Draft) -> bool:
    return (
        writer.use.name == reader.use.reads
        and writer.step.repeat == reader.step.repeat
        and all(
            writer.axes[axis] == value for axis, value in reader.axes.items() if axis in writer.axes
        )
    )
