"""``explain``: what a step runs, where, with which inputs, and what its verdict depends on."""

from __future__ import annotations

from argparse import Action, ArgumentError, ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from proofmark.cli.command import Command, Words, complete
from proofmark.cli.newest import take_newest
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.report.explanation.explanation import explain as explain_step
from proofmark.runs.evidence import open_newest

RUNS = Path("runs")
STEPS = ("workdir", "steps")
"""The folder of the steps in a run. A path with it names the run and the step."""


class _Step(Action):
    """Reads ``STEP``, ``RUN STEP`` or ``RUN/workdir/steps/STEP``."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        words = [values] if isinstance(values, str) else list(values or ())
        if len(words) > 2:
            raise ArgumentError(self, f"found {len(words)} words; accepted: STEP, or RUN STEP")
        if len(words) == 2:
            _take(self, namespace, Path(words[0]))
        parts = Path(words[-1]).parts
        pairs = [*pairwise(parts[1:])]
        if STEPS in pairs:
            place = pairs.index(STEPS) + 1
            _take(self, namespace, Path(*parts[:place]))
            words = ["/".join(parts[place + 2 :])]
        namespace.step = words[-1]


class _Run(Action):
    """Reads the value of ``--run``."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        _take(self, namespace, Path(f"{values}"))


def _take(action: Action, namespace: Namespace, run: Path) -> None:
    """Take the run of the command line, which has three places for it.

    Raises:
        ArgumentError: another place names another run.
    """
    if namespace.folder not in (None, run):
        raise ArgumentError(action, f"found {namespace.folder} and {run}; accepted: one run")
    namespace.folder = run


def _arguments(parser: ArgumentParser) -> None:
    step = parser.add_argument(
        "step",
        metavar="STEP",
        nargs="+",
        action=_Step,
        help="the id of a step, its number or its beginning; <step>/<node> for one node; RUN STEP "
        "and RUN/workdir/steps/STEP name the run too",
    )
    complete(step, Words.RUN)
    note = "default: the only runs/latest-<site>"
    complete(parser.add_argument("--run", dest="folder", action=_Run, help=note), Words.RUN)
    parser.add_argument("--json", action="store_true", help="print the same as JSON")


def explain(options: Namespace) -> int:
    """Print what a step runs, where, with which inputs, and what its verdict depends on."""
    from proofmark.cli.planned import unwritten  # it imports all plug-ins

    run = open_newest(options.folder or take_newest(RUNS))
    found = explain_step(run, options.step, partial(unwritten, run))
    if options.json:
        print_json(found.as_json())
        return 0
    print_line(f"{found.instance} of run {found.run}")
    for section in found.sections:
        if section.rows:
            print_line("")
            headers = (section.title, "", "")
            print_table(headers, [(row.name, row.value, row.source) for row in section.rows])
    return 0


COMMANDS = {"explain": Command(explain, "explain 0004 --run runs/latest-local", _arguments)}
