"""The command ``scratch``: it mounts and checks the scratch directory on the nodes of a run."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from proofmark.cli.checkout import arguments as run_arguments
from proofmark.cli.checkout import open_or_plan_run
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
    parser.add_argument("--mode", help="only the nodes with waiting steps of this mode")
    parser.add_argument("--scratch-dir", help="the directory; it must be the one of the run")
    parser.add_argument("--user", help="the run user; default: the one of the inventory")
    parser.add_argument("--existing", action="store_true", help="do not create the directory")


def run(options: Namespace) -> int:
    """Run the verb of the command line; print the changed nodes as JSON.

    Raises:
        BadInput: the scratch directory does not fit the needs of the run. It has every reason.
    """
    if options.verb == "check":
        with open_or_plan_run(options, options.scratch_dir) as opened:
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
