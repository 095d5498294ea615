"""Links to the files that a figure was read from."""

from __future__ import annotations

from proofmark.common.files import is_regular
from proofmark.records.columns import Record
from proofmark.report.page import PageLink
from proofmark.report.run_data import RunData
from proofmark.runs.attempts import numbered_execution


def output_links(run_data: RunData, record: Record) -> tuple[PageLink, ...]:
    """Return links to the outputs of the execution that measured `record`.

    Of a stability run, which counts its jobs, it is the file with the states of its nodes.
    """
    files = run_data.run.files
    if run_data.verdict.stability:
        return (PageLink(files.link(files.node_states), files.node_states.name),)
    execution = numbered_execution(files.step(record.step), record.attempt)
    outputs = (execution.stdout, execution.stderr)
    return tuple(PageLink(files.link(path), path.name) for path in outputs if is_regular(path))
