"""``decisions.json``: what the controller decided during the run about steps of the plan.

A step that a search did not need, and a step whose files were not written, is not run. The reason
is written when the decision is made, and stays: the figures that it rests on do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, ValidationError

from proofmark.common.files import exists, read_json, write_whole
from proofmark.common.message import Message
from proofmark.common.strict_model import StrictModel
from proofmark.runs.run_files import RunFiles


class SetAside(StrictModel):
    """Executions of a step that a site sets aside, because it runs the step again.

    Attributes:
        attempts: the number of the last of these executions.
        reason: why they say nothing about the nodes.
    """

    attempts: Annotated[int, Field(gt=0)]
    reason: Annotated[str, Field(min_length=1, max_length=500)]


class Decisions(StrictModel):
    """The decisions of a run.

    Attributes:
        searches: why each ended search ended, with its best point, by the id of the search.
        not_needed: the steps that a search did not need, each with the reason.
        not_run: the steps that cannot run, each with the reason: their files were not written, or
            the MPI lacks ROMIO. They are INVALID.
        set_aside: the executions that the site sets aside, by the folder of the step.
        more: the number of executions that ``repeats=auto`` added, by step. All of them count.
    """

    searches: dict[str, Message] = {}
    not_needed: dict[str, Message] = {}
    not_run: dict[str, Message] = {}
    set_aside: dict[str, SetAside] = {}
    more: dict[str, int] = {}

    def left_out(self) -> dict[str, Message]:
        """Return the steps that are not run, each with the reason."""
        return {**self.not_needed, **self.not_run}


def read_decisions(files: RunFiles) -> Decisions:
    """Return the decisions of a run; a run without the file has none.

    Raises:
        BadInput: the file cannot be read, or it is damaged.
    """
    path = files.decisions
    return read_json(path, Decisions) if exists(path) else Decisions()


def extends(old: bytes, new: bytes) -> bool:
    """Return whether the file `new` has all decisions of the file `old`, and perhaps more."""
    try:
        before, after = (Decisions.model_validate_json(each) for each in (old, new))
    except ValidationError:
        return False
    if any(count > after.more.get(step, 0) for step, count in before.more.items()):
        return False
    kinds = ("searches", "not_needed", "not_run", "set_aside")
    return all(getattr(before, kind).items() <= getattr(after, kind).items() for kind in kinds)


def add_decisions(
    files: RunFiles,
    *,
    searches: Mapping[str, Message] | None = None,
    not_needed: Mapping[str, Message] | None = None,
    not_run: Mapping[str, Message] | None = None,
    set_aside: Mapping[str, SetAside] | None = None,
    more: Mapping[str, int] | None = None,
) -> Decisions:
    """Add decisions to those of a run, and return all of them.

    Raises:
        BadInput: the file cannot be read or written.
    """
    known = read_decisions(files)
    changed = Decisions(
        searches={**known.searches, **(searches or {})},
        not_needed={**known.not_needed, **(not_needed or {})},
        not_run={**known.not_run, **(not_run or {})},
        set_aside={**known.set_aside, **(set_aside or {})},
        more={**known.more, **(more or {})},
    )
    write_whole(files.decisions, changed.model_dump_json(indent=1) + "\n")
    return changed
