"""What failed in the stages of a run that start no job: modes, scratch, programs, restore.

``stage-faults/<stage>.json`` has the faults of the last execution of a stage. A stage without a
fault has no file. The verdict and the report have them, because a node that fails before its jobs
has no other result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from pydantic import RootModel

from proofmark.common.errors import (
    BadInput,
    InputError,
    note_failed_nodes,
    take_failed_nodes,
)
from proofmark.common.files import paths_in, read_json, write_atomic
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of, nodes_by
from proofmark.common.progress_lines import say
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import one_line
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles

LONGEST = 400
"""Characters of a text: a node or a BMC may send any text."""
MAX_FAULTS_KEPT = 1000
"""The largest number of faults of a stage that are kept: each has all nodes with one text."""
RESTORE = "restore"
RESTORES = (RESTORE, "unmount")
"""The stages after the jobs: their faults take no figure from the run."""
FINDINGS = ("collect",)
"""The stages whose faults are findings about the evidence: no stage of the machine failed."""
NOT_PROBED = "NOT_PROBED"
"""The code of nodes whose job was stopped before a probe after their steps."""
REFUSED = "REFUSED"
"""The code of a fault without one: the stage does not accept what it found."""


class StageFault(StrictModel):
    """One fault of a stage.

    Attributes:
        stage: its name: ``scratch``, ``mode <mode>``, ``restore``, ``build``.
        nodes: the nodes with this fault, as a node set; empty in the file if it is that of all.
        code: the reason code, one word in capital letters.
    """

    stage: str
    nodes: str
    code: str
    text: str

    @property
    def opens(self) -> bool:
        """Whether the run is not accepted with it, although no figure shows it."""
        return self.stage not in FINDINGS

    @property
    def reason(self) -> Message:
        """The fault without its nodes."""
        return Message("stage-fault", stage=self.stage, code=self.code, text=self.text)

    def __str__(self) -> str:
        """Return one line with the nodes, the stage, the code and the text."""
        return f"{self.nodes}: {self.reason}"


class _Faults(RootModel[list[StageFault]]):
    """The content of a file."""


@contextmanager
def noting_faults(folder: Path, name: str) -> Iterator[None]:
    """Keep what fails in the block as the faults of the stage `name` of the run in `folder`.

    These are the nodes that the block notes (`note_failed_nodes`), and the errors that it raises.
    """
    earlier = take_failed_nodes()
    mistakes: tuple[InputError, ...] = ()
    try:
        yield
    except BadInput as error:
        mistakes = error.mistakes
        raise
    finally:
        failed = take_failed_nodes()
        note_failed_nodes(failed | earlier)
        faults = [
            _fault(name, folded(nodes), failure.code, failure.text)
            for failure, nodes in nodes_by(failed).items()
        ]
        faults += (_of_mistake(name, each) for each in mistakes)
        try:
            _keep(folder, name, faults[:MAX_FAULTS_KEPT])
        except (BadInput, OSError) as error:
            say(f"proofmark: {error}; the run has no copy of these faults")


def read_stage_faults(run: Run) -> tuple[StageFault, ...]:
    """Return the faults of all stages of `run`, by the name of the stage.

    A fault that names no node of the plan gets all nodes of the plan.

    Raises:
        BadInput: a file is damaged.
    """
    paths = paths_in(run.files.stage_faults, "*.json")
    planned = run.plan.nodes() if paths else []

    def of_plan(fault: StageFault) -> StageFault:
        named = set(hosts_of(fault.nodes)) if fault.nodes else set()
        nodes = [node for node in planned if node in named] or planned
        return fault.model_copy(update={"nodes": folded(nodes)})

    faults = []
    for path in paths:
        faults += [of_plan(fault) for fault in read_json(path, _Faults).root]
    return tuple(faults)


def _of_mistake(name: str, mistake: InputError) -> StageFault:
    if mistake.code:
        return _fault(name, mistake.nodes, mistake.code, f"{mistake.file}: {mistake.found}")
    return _fault(name, mistake.nodes, "", f"{replace(mistake, nodes='', command='')}")


def _fault(name: str, nodes: str, code: str, text: str) -> StageFault:
    shown = one_line(text)[:LONGEST]
    return StageFault(stage=name, nodes=nodes, code=code or REFUSED, text=shown)


def _keep(folder: Path, name: str, faults: list[StageFault]) -> None:
    path = RunFiles(folder).stage_faults / f"{quote(name, safe=' ')}.json"
    if not folder.is_dir():
        return  # the run was removed
    if faults:
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, _Faults(faults).model_dump_json(indent=1) + "\n")
    else:
        path.unlink(missing_ok=True)
