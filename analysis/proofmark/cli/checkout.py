"""The checkout whose cases, environments and runs a command works on."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.models import Benchmarks
from proofmark.common.errors import bad_input
from proofmark.plan.expansion import make_plan
from proofmark.runs.run import Run, open_run
from proofmark.runs.start import start_or_continue
from proofmark.site.inventory import choose_inventory, load_site
from proofmark.site.machines import machines_of


def kit_folder() -> Path:
    """Return the checkout in use: the current folder if it is one, else where this code stands."""
    here = Path.cwd()
    return here if (here / "benchmarks" / "suites.yml").exists() else Path(__file__).parents[3]


def kit_benchmarks() -> Benchmarks:
    """Return the cases and suites of the checkout in use."""
    return load_benchmarks(kit_folder() / "benchmarks")


def arguments(parser: ArgumentParser) -> None:
    """Add RUN, and in its place what a run would be planned from, to a command that can look."""
    parser.add_argument("folder", metavar="RUN", nargs="?", type=Path, help="the run's folder")
    asked = parser.add_argument_group("to look without a run")
    asked.add_argument("-i", "--inventory", action="append", default=[], help="the site")
    asked.add_argument("-l", "--limit", help="a partition, or hosts of one")
    asked.add_argument("--suite", default="quick", help="which suite (default: quick)")
    asked.add_argument("--provision-from", help="instead of what the inventory says")


@contextmanager
def run_to_look_at(options: Namespace, scratch_dir: str | None = None) -> Iterator[Run]:
    """Give the run in ``options.folder``, or without one a run that is planned and then forgotten.

    Raises:
        BadInput: there is no such run, or nothing to plan one from.
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
    with TemporaryDirectory(prefix="proofmark-look-") as folder:
        run, _ = start_or_continue(Path(folder), plan, benchmarks, site, probe, run_id="new")
        yield run
