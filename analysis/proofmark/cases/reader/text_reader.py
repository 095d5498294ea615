"""The engine of a `text:` block: from lines to readings."""

from __future__ import annotations

from proofmark.cases.reader.aborted import messages_in
from proofmark.cases.reader.builder import ProgramRun
from proofmark.cases.reader.command_line import Request
from proofmark.cases.reader.spec import ReadSpec
from proofmark.cases.reader.spec_text import TextSpec
from proofmark.cases.reader.text_run import TextRun
from proofmark.common.message import Message


def read_text(
    spec: ReadSpec, rules: TextSpec, text: str, request: Request | None
) -> list[ProgramRun]:
    """Return the program runs in `text`, one `ProgramRun` each."""
    *lines, cut = text.split("\n")
    current = TextRun(spec, rules, request)
    runs = [current]
    begins = [0]  # the first line of each run
    started = False
    classify, ruled = rules.classify, rules.gate.fullmatch
    for number, raw in enumerate(lines):
        if current.table and not ruled(row := raw.rstrip()):
            current.table.take(row)  # rows differ: a cache would not help
            continue
        line = classify(raw)
        if not line.ruled:
            if line.text and rules.strays:
                current.stray(line.text)
            continue
        if line.starts or current.ends_before(line.roles):
            if started or current.closed or current.foreign:
                current = current.following()
                runs.append(current)
                begins.append(number)
            elif line.starts:
                begins[-1] = number  # what stands before the first banner is not of the program
            started = True
        current.ruled(line)
    current.cut(cut.rstrip())
    ends = [*begins[1:], len(lines) + 1]
    lines = [*lines, cut] if (words := messages_in(text)) else []
    parts = (lines[first:end] for first, end in zip(begins, ends, strict=True))
    finished = [
        run.finish(messages_in("\n".join(part)) if words else ())
        for run, part in zip(runs, parts, strict=True)
    ]
    for problem in dict.fromkeys(run.mixed for run in runs if run.mixed):
        for each in finished:
            each.problems.append(Message("reader-mixed", problem=problem))
    return finished
