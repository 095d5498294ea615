"""The command ``tune``: it accepts the result of a search as facts of the partition."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

from proofmark.cli.command import Command, run_argument, verb_argument
from proofmark.cli.command_inputs import kit_benchmarks, site_arguments, site_of_run
from proofmark.cli.evidence import evidence_of
from proofmark.cli.output import print_line
from proofmark.common.errors import bad_input
from proofmark.common.files import text_or_empty, write_whole
from proofmark.common.yaml_models import load
from proofmark.judge.tuning import tuned_facts
from proofmark.runs.run import open_run
from proofmark.site.literals import literal_yaml
from proofmark.site.tuned import FILE, TUNED, Tuned, TunedFile

HEAD = """\
---
# `proofmark tune accept` wrote this file. Its facts replace those of `partition` with the same
# names. Without this file the facts of `partition` apply again.
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``proofmark tune`` to `parser`."""
    verb_argument(parser, VERBS)
    run_argument(parser)
    site_arguments(parser)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--diff", action="store_true", help="print the change of the file")


def tune(options: Namespace) -> int:
    """Accept the best values of a search as facts of the partition."""
    VERBS[options.verb](options)
    return 0


def _accept(options: Namespace) -> None:
    """Write the best values of the searches of a run into the facts of its partition."""
    site = site_of_run(options, open_run(options.folder))
    accepted = tuned_facts(evidence_of(options.folder)).cases
    _refuse_other_facts(accepted)
    path = site.facts / FILE
    before = text_or_empty(path)
    after = with_accepted(before, path, accepted)
    if options.diff and after != before:
        names = (f"{path}", f"{path} (after tune accept)")
        lines = unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
        for line in lines:
            print_line(line)
    if after == before:
        print_line(f"unchanged: {path}")
    elif options.check:
        print_line(f"would change: {path}")
    else:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, after)
        print_line(f"changed: {path}")
    for case, tuned in accepted.items():
        facts = ", ".join(f"{name} {value}" for name, value in tuned.facts.items())
        print_line(f"{case}: {facts}; source: {tuned.source}")


def _refuse_other_facts(accepted: Mapping[str, Tuned]) -> None:
    """Refuse facts that no search of the kit has. A run can be a copy that another person changed.

    Raises:
        BadInput: it names the case and the facts.
    """
    cases = kit_benchmarks().cases
    for case, tuned in accepted.items():
        uses = cases[case].uses() if case in cases else ()
        known: set[str] = set()
        for use in uses:
            if use.search:
                known.update(use.search.facts)
        if others := sorted(tuned.facts.keys() - known):
            names = ", ".join(sorted(known)) or "no fact"
            raise bad_input("RUN", case, ", ".join(others), f"{names}, as the case of the kit")


def with_accepted(text: str, path: Path, accepted: Mapping[str, Tuned]) -> str:
    """Return the content of `FILE` with `accepted` in place of earlier facts of the same cases.

    Args:
        text: the content of the file; empty if it does not exist.
        path: the file, for messages.
        accepted: the facts by case.

    Raises:
        BadInput: the file has another content.
    """
    known = load(path, TunedFile).partition_tuned if text else {}
    merged = {**known, **accepted}
    plain = {TUNED: {case: tuned.model_dump() for case, tuned in sorted(merged.items())}}
    return HEAD + literal_yaml(plain, width=100)


VERBS = {"accept": _accept}

COMMANDS = {
    "tune": Command(
        tune,
        "tune accept runs/latest-nurion -i inventory/nurion --diff",
        arguments,
    )
}
