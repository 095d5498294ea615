"""The checkout with the cases, environments and runs of a command."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from argparse import _ArgumentGroup as ArgumentGroup
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.models import Benchmarks
from proofmark.cli.command import complete
from proofmark.common.errors import bad_input
from proofmark.plan.expansion import make_plan
from proofmark.runs.run import Run, open_run
from proofmark.runs.start import start_or_continue
from proofmark.site.inventory import choose_inventory, load_site
from proofmark.site.machines import machines_of


def kit_folder() -> Path:
    """Return the current folder if it is a checkout, else the checkout of this code."""
    here = Path.cwd()
    return here if (here / "benchmarks" / "suites.yml").exists() else Path(__file__).parents[3]


def kit_benchmarks() -> Benchmarks:
    """Return the cases and suites of the checkout in use."""
    return load_benchmarks(kit_folder() / "benchmarks")


def suite_argument(parser: ArgumentParser | ArgumentGroup, default: str | None = "quick") -> None:
    """Add ``--suite`` to `parser`."""
    note = f"a suite (default: {default})" if default else "only the cases of this suite"
    complete(parser.add_argument("--suite", default=default, help=note), _suites)


def _suites() -> Iterable[str]:
    return kit_benchmarks().suites


def arguments(parser: ArgumentParser) -> None:
    """Add RUN to `parser`, and the options that plan a run if RUN is missing."""
    parser.add_argument("folder", metavar="RUN", nargs="?", type=Path, help="the run's folder")
    planned = parser.add_argument_group("without RUN, a plan is made from")
    planned.add_argument("-i", "--inventory", action="append", default=[], help="the site")
    planned.add_argument("-l", "--limit", help="a partition, or hosts of one")
    suite_argument(planned)
    planned.add_argument("--provision-from", help="replaces the value of the inventory")


@contextmanager
def open_or_plan_run(options: Namespace, scratch_dir: str | None = None) -> Iterator[Run]:
    """Yield the run in ``options.folder``, or else a planned run, which is removed afterwards.

    Raises:
        BadInput: the run does not exist, or the options to plan one are missing.
    """
    if options.folder:
        yield open_run(options.folder)
        return
    if not options.limit:
        raise bad_input("RUN", "", "nothing", "a run's folder, or -i and -l to plan one")
    overrides = {"provision_from": options.provision_from, "scratch_dir": scratch_dir}
    site = load_site(choose_inventory(options.inventory), options.limit, overrides)
    benchmarks = kit_benchmarks()
    machines, probe = machines_of(site)
    plan = make_plan(benchmarks, options.suite, site, machines)
    with TemporaryDirectory(prefix="proofmark-plan-") as folder:
        run, _ = start_or_continue(Path(folder), plan, benchmarks, site, probe, run_id="new")
        yield run
