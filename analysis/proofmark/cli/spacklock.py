"""Checks the locks of ``environments/``: ``python -m proofmark.cli.spacklock``.

Exit codes: 0 no error, 1 errors (one line each), 3 bad input.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from proofmark.cli.output import print_line
from proofmark.common.errors import BadInput
from proofmark.common.progress_lines import say
from proofmark.software.spack.lock_check import check
from proofmark.software.target import guard


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="spacklock", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout of Proofmark")
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("check", epilog="example: spacklock check knl debian12")
    one.add_argument("arch")
    one.add_argument("os")
    one.add_argument("-i", "--inventory", type=Path, help="a site, whose own lock is checked")
    two = verbs.add_parser("guard", epilog="example: spacklock guard --target skylake_avx512 bin/*")
    two.add_argument("--target", required=True, help="the archspec name of the CPU of the nodes")
    two.add_argument("programs", type=Path, nargs="+")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand and return its exit code."""
    try:
        chosen = _parser().parse_args(arguments)
    except SystemExit as error:
        return 3 if error.code else 0
    root: Path = chosen.root.resolve()
    try:
        if chosen.verb == "guard":
            mistakes = [*guard(chosen.target, chosen.programs)]
        else:
            locks = chosen.inventory.resolve() / "locks" if chosen.inventory else None
            mistakes = check(root, chosen.arch, chosen.os, locks)
    except BadInput as error:
        for mistake in error.mistakes:
            say(f"{mistake}")
        return 3
    for mistake in mistakes:
        print_line(f"{mistake}")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
