"""The command ``scratch``: it mounts, checks and cleans the scratch directory of a run."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping

from proofmark.cli.command import ArgumentUse, Command, verb_argument
from proofmark.cli.command_inputs import arguments as run_arguments
from proofmark.cli.command_inputs import (
    open_or_plan_run,
    planned_options,
    site_of_inventory,
    site_of_run,
)
from proofmark.cli.output import print_line
from proofmark.cli.site import site_name
from proofmark.common.errors import bad_input
from proofmark.common.nodesets import fold
from proofmark.machine.scratch_checks import clean
from proofmark.machine.scratch_stage import (
    ScratchTarget,
    ScratchUse,
    check,
    nodes_of,
    unmount,
    verify,
)
from proofmark.runs.adopted import refuse_imported
from proofmark.runs.run import Run, open_run
from proofmark.runs.stage_faults import noting_faults
from proofmark.runs.state import RunState, begin, find, lock, planned
from proofmark.site.inventory import Site


def arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to `parser`."""
    verb_argument(parser, VERBS)
    run_arguments(parser)
    parser.add_argument("--mode", help="only the nodes with waiting steps of this mode")
    parser.add_argument("--scratch-dir", help="the directory; it must be the one of the run")
    parser.add_argument("--user", help="the run user; default: the one of the inventory")
    parser.add_argument("--existing", action="store_true", help="do not create the directory")


def run(options: Namespace) -> int:
    """Mount, check, unmount and clean the scratch directory of a run; print changed nodes.

    Raises:
        BadInput: the scratch directory does not fit the needs of the run. It has every reason.
    """
    if options.verb != "check" and not options.folder:
        raise bad_input("RUN", "", "nothing", "a run's folder")
    changed = VERBS[options.verb](options)
    print_line(json.dumps({"changed": fold(sorted(set(changed)))}))
    return 0


def _check(options: Namespace) -> list[str]:
    """Print what would be mounted, and check the directory; change nothing."""
    with open_or_plan_run(options, options.scratch_dir) as (opened, site):
        return check(_nodes(opened, planned(opened), site, options))


def _verify(options: Namespace) -> list[str]:
    """Mount what is not mounted, and verify that all nodes can use one and the same directory."""
    with open_or_plan_run(options, options.scratch_dir) as (opened, site):
        state = begin(opened)
        with state.locked(), lock(opened.folder), noting_faults(opened.folder, _stage(options)):
            changed = verify(_nodes(opened, state, site, options))
            state.export()
        return changed


def _unmount(options: Namespace) -> list[str]:
    """Unmount what this run mounted."""
    state = find(site_name(options), options.folder.resolve())
    if state is None:
        return []
    site = site_of_inventory(options, state.partition, {"scratch_dir": options.scratch_dir})
    with state.locked(), noting_faults(state.run, "unmount"):
        return unmount(state.folder, site)


def _clean(options: Namespace) -> list[str]:
    """Remove the files that the run left in scratch."""
    opened = open_run(options.folder)
    refuse_imported(opened)
    site = site_of_run(options, opened, {"scratch_dir": options.scratch_dir})
    with lock(opened.folder):
        return clean(opened, site, options.user or "")


VERBS: Mapping[str, Callable[[Namespace], list[str]]] = {
    "check": _check,
    "verify": _verify,
    "unmount": _unmount,
    "clean": _clean,
}


def _stage(options: Namespace) -> str:
    return f"scratch of mode {options.mode}" if options.mode else "scratch"


def _nodes(opened: Run, state: RunState, site: Site, options: Namespace) -> ScratchTarget:
    return nodes_of(
        opened,
        state.folder,
        site,
        options.mode or "",
        options.scratch_dir or "",
        ScratchUse(user=options.user or "", may_create=not options.existing),
    )


USES = (
    ArgumentUse(planned_options(), beside=("check",)),
    ArgumentUse(("--mode", "--existing"), beside=("check", "verify")),
    ArgumentUse(("--user",), beside=("check", "verify", "clean")),
)
"""The options that would be ignored beside others."""

COMMANDS = {
    "scratch": Command(
        run,
        "scratch check -i inventory/nurion -l knl --suite p1",
        arguments,
        uses=USES,
    )
}
