"""The command ``baseline``: it accepts runs as the reference of later runs, and lists them."""

from __future__ import annotations

import hashlib
import shutil
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path

from proofmark.cli.checkout import site_arguments, site_of_own_run
from proofmark.cli.command import Command, Rights, run_argument, verb_argument
from proofmark.cli.output import print_line, print_table
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import read_regular
from proofmark.judge.judging import read_and_judge
from proofmark.runs import checksums
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import Run, benchmarks_of, open_run, site_of
from proofmark.site.baseline import (
    ACCEPTED,
    COLUMNS,
    STATE,
    baseline_folder,
    known_baselines,
    read_baseline,
    refuse_predicted,
    write_baseline,
)
from proofmark.site.inventory import Site
from proofmark.software.software import software_of


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``proofmark baseline`` to `parser`."""
    verb_argument(parser, VERBS)
    run_argument(parser)
    site_arguments(parser)
    parser.add_argument(
        "--signers", type=Path, metavar="FILE", help="allowed_signers (default: that of the site)"
    )
    parser.add_argument("--name", default=ACCEPTED, help=f"of the baseline (default: {ACCEPTED})")
    parser.add_argument("--reason", default="", help="why a run is accepted that is UNJUDGED")
    parser.add_argument("--label", default="", help="who made the figures of an imported run")
    parser.add_argument(
        "--replace", action="store_true", help="remove the earlier runs from the baseline"
    )


def baseline(options: Namespace) -> int:
    """Run the verb of the command line."""
    VERBS[options.verb](options)
    return 0


def _accept(options: Namespace) -> None:
    """Add a signed run to a baseline of its partition."""
    # scipy takes a quarter of a second; other uses of this module do not need it.
    from proofmark.judge.accepting import Acceptance, accepted_baseline, extended
    from proofmark.judge.baseline.circumstances import Circumstances

    run = open_run(options.folder.resolve())
    site = site_of_own_run(options, run)
    refuse_predicted(run.files.site, site_of(run).partition.origin)
    signer = _signer(run, options.signers or site.inventory / SIGNERS)
    _, verdict = read_and_judge(run)
    nodes = {host: node.newest for host, node in nodes_of(run).items() if node.jobs}
    about = Circumstances(site_of(run), nodes, software_of(run))
    values = about.values(verdict.results.aggregates, benchmarks_of(run))
    sums = hashlib.sha256(read_regular(run.folder / checksums.NAME)).hexdigest()
    stated = Acceptance(
        options.name, datetime.now(UTC), signer, sums, options.reason, options.label
    )
    made, figures = accepted_baseline(run.id, verdict, values, about, stated), values
    folder = baseline_folder(site.inventory, site.partition_name, made.name)
    if (folder / STATE).exists() and not options.replace:
        made, figures = extended(*read_baseline(folder), made, values)
    write_baseline(folder, made, figures.select(*COLUMNS))
    print_line(f"accepted: {run.id}, signed by {signer}, {made.runs[-1].verdict}")
    print_line(f"baseline {made.name}: {len(made.runs)} runs in {folder}")


def _signer(run: Run, signers: Path) -> str:
    """Return the signer of `run`.

    Raises:
        BadInput: the run is not signed by one of `signers`, or differs from what was signed.
    """
    checked = checksums.verify(run.folder, signers)
    if checked.wrong:
        accepted = f"as signed by {checked.signer}"
        raise BadInput(*(InputError(str(run.folder), "", line, accepted) for line in checked.wrong))
    return checked.signer


def _show(options: Namespace) -> None:
    """Print the baselines of the partition of a run."""
    site = site_of_own_run(options, open_run(options.folder.resolve()))
    rows = [
        row
        for name in known_baselines(site.inventory, site.partition_name)
        for row in _rows(site, name)
    ]
    print_table(("baseline", "run", "accepted", "signer", "verdict", "origin", "reason"), rows)


def _rows(site: Site, name: str) -> list[tuple[str, ...]]:
    known, _ = read_baseline(baseline_folder(site.inventory, site.partition_name, name))
    return [
        (
            name,
            each.run,
            f"{each.accepted:%Y-%m-%d}",
            each.signer,
            each.verdict,
            " ".join(filter(None, (known.origin, known.label))),
            each.reason,
        )
        for each in known.runs
    ]


def _remove(options: Namespace) -> None:
    """Remove a baseline of the partition of a run; the runs stay."""
    site = site_of_own_run(options, open_run(options.folder.resolve()))
    names = known_baselines(site.inventory, site.partition_name)
    if options.name not in names:
        raise bad_input("--name", "", options.name, ", ".join(names) or "no baseline exists")
    folder = baseline_folder(site.inventory, site.partition_name, options.name)
    shutil.rmtree(folder)
    print_line(f"removed: {folder}")


SIGNERS = "allowed_signers"
"""The file of the inventory with the keys whose signatures the site accepts (ssh-keygen(1))."""

VERBS = {"accept": _accept, "remove": _remove, "show": _show}

COMMANDS = {
    "baseline": Command(
        baseline,
        "baseline accept runs/latest --signers allowed_signers",
        arguments,
        rights=Rights.OF_ROOT,
        traced=False,
    )
}
