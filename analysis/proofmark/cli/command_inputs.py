"""The cases, the site and the run of a command, from its options."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from argparse import _ArgumentGroup as ArgumentGroup
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import DEFAULT_SUITE
from proofmark.cli.amounts import whole
from proofmark.cli.command import Words, complete
from proofmark.cli.site import inventory_of, limit_argument, site_argument
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.input_limits import MAX_REPEATS
from proofmark.common.kit import kit_folder
from proofmark.common.nodesets import folded
from proofmark.common.printed_command import AutoRepeats, auto_repeats
from proofmark.plan.kinds import PlanRequest, added_kinds, added_options, kind_of, plan_asked
from proofmark.plan.lacking import Available, refuse_lacking
from proofmark.plan.plan import Plan
from proofmark.runs.adopted import refuse_imported
from proofmark.runs.node_locks import reservation_of
from proofmark.runs.run import Run, open_run, site_of
from proofmark.runs.start import RunInputs, start_or_continue
from proofmark.site.choice import LINK, chosen_site
from proofmark.site.groups import COMPUTE
from proofmark.site.inventory import Inventory, Site, load_site, read_sites
from proofmark.site.machines import Machine, machines_of
from proofmark.software.provider import packages_at


def kit_benchmarks() -> Benchmarks:
    """Return the cases and suites of the kit in use."""
    return load_benchmarks(kit_folder() / "benchmarks")


def packages_of_kit(site: Site) -> Available | None:
    """Return the packages of the provider of `site`, with this checkout (`packages_at`)."""
    return packages_at(kit_folder(), site)


def suite_argument(
    parser: ArgumentParser | ArgumentGroup, default: str | None = DEFAULT_SUITE, note: str = ""
) -> None:
    """Add ``--suite`` to `parser`; `note` is its help, or empty for the usual one."""
    usual = f"a suite (default: {default})" if default else "only the cases of this suite"
    note = note or usual
    complete(parser.add_argument("--suite", default=default, help=note), Words.SUITE)


def repeats_argument(parser: ArgumentParser | ArgumentGroup) -> None:
    """Add ``--repeats`` to `parser`."""
    note = (
        "how often each step runs (default: that of the suite); auto or auto:MINUTES repeats the "
        "steps that are too noisy, for at most so long again"
    )
    parser.add_argument("--repeats", type=_repeats, metavar="N", help=note)


def shape_arguments(parser: ArgumentParser | ArgumentGroup) -> None:
    """Add the options of the kinds of runs to `parser`; empty ones are not given."""
    for kind in added_kinds():
        kind.add_arguments(parser)


def plan_of(
    options: Namespace, benchmarks: Benchmarks, site: Site, *, shown: bool = False
) -> tuple[Plan, Callable[[str], Machine], str]:
    """Return the plan that the options ask for, the machine of each mode, and the probe.

    A plan that is only `shown` may assume what a run has to state.

    Raises:
        BadInput: as `plan_asked`.
    """
    machines, probe = machines_of(site)
    made = plan_asked(PlanRequest(options, benchmarks, site, machines, shown=shown))
    return made, machines, probe


def _repeats(text: str) -> int | AutoRepeats:
    return auto_repeats(text) or whole(1, MAX_REPEATS)(text)


def runs_folder_argument(parser: ArgumentParser) -> None:
    """Add ``--runs`` to `parser`."""
    note = "the folder of all runs (default: runs)"
    complete(parser.add_argument("--runs", default="", help=note), Words.PATH)


def plan_arguments(parser: ArgumentParser) -> None:
    """Add the options that define a plan to `parser`."""
    site_argument(parser)
    limit_argument(parser, required=True)
    suite_argument(parser)
    repeats_argument(parser)
    shape_arguments(parser)
    parser.add_argument("--provision-from", help="replaces the value of the inventory")
    parser.add_argument("--scratch-dir", help="replaces the value of the inventory")
    runs_folder_argument(parser)


def arguments(parser: ArgumentParser) -> None:
    """Add RUN to `parser`, and the options that plan a run if RUN is missing."""
    run = parser.add_argument(
        "folder", metavar="RUN", nargs="?", type=Path, help="the run's folder"
    )
    complete(run, Words.RUN)
    site_arguments(parser)
    planned = parser.add_argument_group("without RUN, a plan is made from -i, -l and")
    suite_argument(planned)
    repeats_argument(planned)
    shape_arguments(planned)
    planned.add_argument("--provision-from", help="replaces the value of the inventory")


def planned_options() -> tuple[str, ...]:
    """Return the options of `arguments` that plan a run."""
    of_kinds = (f"--{name.replace('_', '-')}" for name in added_options())
    return ("--suite", "--repeats", *of_kinds, "--provision-from")


def site_arguments(parser: ArgumentParser) -> None:
    """Add ``-i`` and ``-l``, which select the site of a run, to `parser`."""
    site_argument(parser, "the site")
    note = "a partition, or hosts of one (default: the partition of the run)"
    limit_argument(parser, note)


def site_of_inventory(
    options: Namespace, partition: str, overrides: Mapping[str, str | None] | None = None
) -> Site:
    """Return the site that ``-i`` and ``-l`` select, for a run on `partition`.

    The file ``inputs/site.json`` in the folder of the run is not read: it has commands, and the run
    user can write it.

    Raises:
        BadInput: no site is named, or the inventory or the limit does not have the partition.
    """
    return _site_in(inventory_of(options), options, partition, overrides)


def _site_in(
    inventory: Inventory,
    options: Namespace,
    partition: str,
    overrides: Mapping[str, str | None] | None,
) -> Site:
    if options.limit:
        site = load_site(inventory, options.limit, overrides)
        if site.partition_name != partition:
            found = f"{options.limit!r}: hosts of {site.partition_name}"
            raise bad_input("-l", "", found, f"hosts of {partition}, the partition of the run")
        return site
    sites, mistakes = read_sites(inventory, COMPUTE, overrides)
    for site in sites:
        if site.partition_name == partition:
            return site
    if mistakes:
        raise BadInput(*mistakes)
    names = ", ".join(site.partition_name for site in sites)
    raise bad_input(inventory.folder, "compute", f"no partition {partition!r} of the run", names)


def site_of_run(
    options: Namespace, run: Run, overrides: Mapping[str, str | None] | None = None
) -> Site:
    """Return the site of `run`, which has all of its nodes, from the inventory.

    It is the site that ``-i`` names, or that of the same name in this checkout: the chosen one, or
    one of ``inventory/``. The folder that the
    run remembers may be that of another checkout, and is not read. If the nodes of the run are
    reserved for it, its jobs use this reservation.

    Raises:
        BadInput: there is no such site, the run remembers another one than that of this checkout,
            or the site does not have the partition or a node of the run.
    """
    named = options.inventory
    inventory = inventory_of(options) if named else Inventory.of(_site_in_checkout(run))
    changes = {"reservation": reservation_of(run) or None, **(overrides or {})}
    site = _site_in(inventory, options, run.plan.partition, changes)
    refuse_other_hosts(run, site)
    return site


def _site_in_checkout(run: Run) -> Path:
    """Return the folder of the site of `run` in this checkout.

    Raises:
        BadInput: there is none, or the run remembers another folder: the user has to choose.
    """
    here, remembered = kit_folder() / "inventory" / run.plan.site, f"{site_of(run).inventory}"
    link = kit_folder() / LINK
    if link.is_symlink() and link.resolve().name == run.plan.site:
        here = chosen_site(kit_folder())
    accepted = f"-i FOLDER, the site {run.plan.site}"
    if not here.is_dir():
        found = f"nothing; the run was planned with {remembered}, and {here} does not exist"
        raise bad_input("-i", "", found, accepted)
    if f"{here.resolve()}" != remembered:
        found = f"nothing; the run was planned with {remembered}, and this checkout has {here}"
        raise bad_input("-i", "", found, accepted)
    return here


def refuse_other_hosts(run: Run, site: Site) -> None:
    """Refuse a plan with nodes that `site` does not select, unless nodes join its run.

    Raises:
        BadInput: it names these nodes.
    """
    if run.plan.site != site.name:
        found = f"the site {site.name}"
        raise bad_input("-i", "", found, f"{run.plan.site}, the site of the run")
    others = sorted(set(run.plan.nodes()) - set(site.hosts))
    if others and not kind_of(run.plan).nodes_arrive:
        found = f"nodes that {site.limit!r} does not select: {folded(others)}"
        raise bad_input(run.files.plan, "", found, f"hosts of {site.partition_name}")


@contextmanager
def open_or_plan_run(
    options: Namespace, scratch_dir: str | None = None
) -> Iterator[tuple[Run, Site]]:
    """Yield the run in ``options.folder`` or a planned one, which is removed later, and its site.

    Raises:
        BadInput: the run does not exist, or the options to plan one are missing.
    """
    if options.folder:
        run = open_run(options.folder)
        refuse_imported(run)
        yield run, site_of_run(options, run, {"scratch_dir": scratch_dir})
        return
    if not options.limit:
        raise bad_input("RUN", "", "nothing", "a run's folder, or -i and -l to plan one")
    overrides = {"provision_from": options.provision_from, "scratch_dir": scratch_dir}
    site = load_site(inventory_of(options), options.limit, overrides)
    benchmarks = kit_benchmarks()
    plan, machines, probe = plan_of(options, benchmarks, site)
    refuse_lacking(plan, benchmarks, site, machines, packages_of_kit)
    with TemporaryDirectory(prefix="proofmark-plan-") as folder:
        # Nobody runs it, so that its run user need not make a work folder.
        unused = site.model_copy(
            update={"partition": site.partition.model_copy(update={"run_user": None})}
        )
        inputs = RunInputs(plan, benchmarks, unused, probe)
        made, _ = start_or_continue(Path(folder), inputs, run_id="new", link=None)
        yield made, site
