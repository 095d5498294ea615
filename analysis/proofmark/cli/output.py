"""What a command prints: JSON and tables on stdout, and errors of the kit.

``-v`` traces calls of other programs and machines, on stderr and in the run.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from io import StringIO, TextIOWrapper
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from proofmark.common.errors import BadInput
from proofmark.common.files import open_to_append
from proofmark.common.processes import TRACE
from proofmark.common.progress_lines import say
from proofmark.common.text import one_line, visible_line
from proofmark.common.trust import weak_part
from proofmark.runs.run_files import RunFiles

_GAP = 2
"""Number of blanks between two columns."""


def print_json(content: Any) -> None:
    """Print `content` as JSON."""
    json.dump(content, sys.stdout, indent=1, default=str)
    print()


def print_line(text: str) -> None:
    """Print a text that may have words of others as one line, and flush it."""
    print(one_line(text), flush=True)


def print_text(text: str) -> None:
    """Print a text of several lines that may have words of others, each as one line."""
    for line in text.split("\n"):
        print(visible_line(line))


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    nothing: str = "nothing to show",
    width: int | None = None,
) -> None:
    """Print a table. A terminal limits its width; a pipe gets one line per row.

    Args:
        width: limits the lines of a pipe too; None: it does not.
    """
    shown = list(rows)
    if not shown:
        print_line(nothing)
        return
    of_terminal = get_terminal_size().columns if sys.stdout.isatty() else None
    print(table_text(headers, shown, min(filter(None, (of_terminal, width)), default=None)))


def table_text(headers: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """Return a table as text.

    A table that is wider than `width` characters breaks its texts between words. If the columns are
    still too wide, each row becomes a block with one line per column. A word is never cut, so that
    identifiers can be copied: a line is wider than `width` only if it is one word.
    """
    # rich takes a tenth of a second to import: only commands that print a table need it.
    from rich.cells import cell_len  # a wide letter takes two columns

    rows = [[one_line(text) for text in row] for row in rows]
    columns = list(zip(headers, *rows, strict=True))
    gaps = _GAP * (len(columns) - 1)
    natural = [max(map(cell_len, column)) for column in columns]
    least = [
        max((cell_len(word) for text in column for word in text.split()), default=0)
        for column in columns
    ]
    if width is not None and sum(least) + gaps > width:
        return _blocks(headers, rows, width)
    room = sum(natural) if width is None else width - gaps
    return _columns(headers, rows, _widths(natural, least, room))


def _widths(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return the widths of the columns, at most `room` together.

    A column that needs little more than its longest word gets it first. rich does not share the
    room itself: it shrinks the widest column, also below its longest word.
    """
    widths, spare = list(least), room - sum(least)
    order = sorted(range(len(widths)), key=lambda column: natural[column] - least[column])
    for position, column in enumerate(order):
        more = min(natural[column] - least[column], spare // (len(order) - position))
        widths[column] += more
        spare -= more
    return widths


def _columns(headers: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
    for header, width in zip(headers, widths, strict=True):
        table.add_column(Text(header), width=width)
    for row in rows:
        table.add_row(*map(Text, row))
    output = StringIO()
    total = sum(widths) + _GAP * len(widths)
    Console(file=output, width=total, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


def _blocks(headers: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    lines: list[str] = []
    for row in rows:
        for header, text in zip(headers, row, strict=True):
            lines += wrap(
                f"{header}: {text}",
                width,
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        lines.append("")
    return "\n".join(lines)


FORM = "%(asctime)s.%(msecs)03d %(message)s"
TIME = "%Y-%m-%dT%H:%M:%S"


class _FileOfRun(logging.FileHandler):
    """Appends to a file in the folder of a run."""

    def _open(self) -> TextIOWrapper:
        return open_to_append(Path(self.baseFilename))


def start_trace(run: Path | None) -> None:
    """Start the trace. A signed run is not changed, and a read-only run is not an error."""
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if run and _may_have_trace(run):
        try:
            handlers.append(_FileOfRun(RunFiles(run.resolve()).trace))
        except BadInput as error:
            say(f"proofmark: no trace in the run: {error}")
    for handler in handlers:
        handler.setFormatter(logging.Formatter(FORM, TIME))
        TRACE.addHandler(handler)
    TRACE.setLevel(logging.INFO)


def _may_have_trace(run: Path) -> bool:
    """Return whether a trace may be written into the folder `run`: a run of this user."""
    return RunFiles(run).plan.is_file() and weak_part(run) is None


def report_crash(error: Exception, run: object, *, verbose: bool) -> None:
    """Print an exception that nothing expects as one line, and keep its traceback.

    The traceback is printed with ``-v``. It is appended to the ``trace.log`` of the run if the
    command has a run.

    Args:
        run: the folder of the run; anything else if the command has none.
        verbose: whether the command has ``-v``.
    """
    # A line of the traceback may be a text of others: no line begins like one of the kit.
    text = "".join(traceback.format_exception(error))
    lines = [f"| {visible_line(line)}" for line in text.splitlines()]
    kept = "run it again with -v for the traceback"
    if isinstance(run, Path) and _may_have_trace(run):
        try:
            folder = run.resolve()
            with open_to_append(RunFiles(folder).trace) as file:
                file.write(f"{datetime.now(UTC).strftime(TIME)} internal error\n")
                file.writelines(f"{line}\n" for line in lines)
            kept = f"the traceback is in {RunFiles(run).trace}"
        except (BadInput, OSError):
            pass  # the folder belongs to another user, or the disk is full
    if verbose:
        kept = "the traceback follows"
    say(f"proofmark: internal error: {type(error).__name__}: {str(error)[:_LONGEST]}; {kept}")
    if verbose:
        for line in lines:
            say(line)


_LONGEST = 500
"""Characters of the text of an exception that are printed."""
