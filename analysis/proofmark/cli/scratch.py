"""The command ``scratch``: it mounts and checks the scratch folder on the nodes of a run."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from proofmark.cli.checkout import arguments as run_arguments
from proofmark.cli.checkout import run_to_look_at
from proofmark.cli.command import Command, verb_argument
from proofmark.common.errors import bad_input
from proofmark.common.nodesets import fold
from proofmark.machine.scratch.stage import VERBS, ScratchTarget, check, nodes_of
from proofmark.runs.lock import lock
from proofmark.runs.run import Run, open_run


def arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to `parser`."""
    verb_argument(parser, VERBS)
    run_arguments(parser)
    parser.add_argument("--mode", help="only the nodes on which steps of this mode still wait")
    parser.add_argument("--scratch-dir", help="the directory, which must be the run's")
    parser.add_argument("--user", help="who runs the benchmarks, if the inventory does not say")
    parser.add_argument("--existing", action="store_true", help="make no directory")


def run(options: Namespace) -> int:
    """Do what the command line asks; print as JSON what has changed.

    Raises:
        BadInput: the scratch directory is not what the run needs; every reason is named.
    """
    if options.verb == "check":
        with run_to_look_at(options, options.scratch_dir) as opened:
            changed = check(_nodes(opened, options))
    else:
        if not options.folder:
            raise bad_input("RUN", "", "nothing", "a run's folder")
        opened = open_run(options.folder)
        with lock(opened):
            changed = VERBS[options.verb](_nodes(opened, options))
    print(json.dumps({"changed": fold(sorted(set(changed)))}))
    return 0


def _nodes(opened: Run, options: Namespace) -> ScratchTarget:
    return nodes_of(
        opened,
        options.mode or "",
        options.scratch_dir or "",
        user=options.user or "",
        may_create=not options.existing,
    )


COMMANDS = {
    "scratch": Command(run, "scratch check -i inventory/nurion -l knl --suite p1", arguments)
}
