"""The command ``stage check-programs``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from proofmark.cli.command import Command
from proofmark.cli.command_inputs import arguments as run_arguments
from proofmark.cli.command_inputs import open_or_plan_run
from proofmark.machine.node_commands import check_programs


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``proofmark stage check-programs`` to `parser`."""
    run_arguments(parser)
    parser.add_argument("--program", action="append", default=[], metavar="PATH")


def programs(options: Namespace) -> int:
    """Check on every node of a run for programs.

    Raises:
        BadInput: a node lacks a program.
    """
    with open_or_plan_run(options) as (run, site):
        check_programs(run, site, options.program)
    return 0


COMMANDS = {
    "stage check-programs": Command(
        programs,
        "stage check-programs runs/latest-nurion -i inventory/nurion --program /opt/hpl/bin/xhpl",
        arguments,
    )
}
