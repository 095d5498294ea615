"""The command ``baseline``: it accepts runs as the reference of later runs, and lists them."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path

from proofmark.cli.command import ArgumentUse, Command, Rights, run_argument, verb_argument
from proofmark.cli.command_inputs import site_arguments, site_of_run
from proofmark.cli.evidence import checked_acceptance
from proofmark.cli.output import print_line, print_table
from proofmark.common.errors import bad_input
from proofmark.runs.run_names import open_names
from proofmark.site.accepted_baseline import (
    ACCEPTED,
    STATE,
    baseline_folder,
    known_baselines,
    read_baseline,
    write_baseline,
)
from proofmark.site.inventory import Site


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
    """Accept a signed run as the reference of later runs; print or remove accepted runs."""
    VERBS[options.verb](options)
    return 0


def _accept(options: Namespace) -> None:
    """Add a signed run to a baseline of its partition."""
    # scipy takes a quarter of a second; other uses of this module do not need it.
    from proofmark.judge.accepting import (
        Acceptance,
        accepted_baseline,
        extended,
        judged_figures,
    )

    run = open_names(options.folder)
    site = site_of_run(options, run)
    signers = options.signers or site.inventory / SIGNERS
    with checked_acceptance(options.folder, signers) as (signed, sealed):
        if sealed.id != run.id:
            raise bad_input("RUN", "", f"signed evidence of {sealed.id}", f"that of {run.id}")
        signer = ", ".join(signed.signers)
        stated = Acceptance(
            options.name,
            datetime.now(UTC),
            signer,
            signed.sha256,
            options.reason,
            options.label,
        )
        made, figures = accepted_baseline(run.id, judged_figures(sealed), site, stated)
    folder = baseline_folder(site.inventory, site.partition_name, made.name)
    if (folder / STATE).exists() and not options.replace:
        made, figures = extended(*read_baseline(folder), made, figures)
    write_baseline(folder, made, figures)
    print_line(f"accepted: {run.id}, signed by {signer}, {made.runs[-1].verdict}")
    print_line(f"baseline {made.name}: {len(made.runs)} runs in {folder}")


def _show(options: Namespace) -> None:
    """Print the baselines of the partition of a run."""
    site = site_of_run(options, open_names(options.folder))
    rows = []
    for name in known_baselines(site.inventory, site.partition_name):
        rows += _rows(site, name)
    headers = ("baseline", "run", "accepted", "signer", "verdict", "origin", "reason")
    nothing = f"partition {site.partition_name} of {site.name} has no baseline"
    print_table(headers, rows, nothing)


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
    site = site_of_run(options, open_names(options.folder))
    names = known_baselines(site.inventory, site.partition_name)
    if options.name not in names:
        raise bad_input("--name", "", options.name, ", ".join(names) or "no baseline exists")
    folder = baseline_folder(site.inventory, site.partition_name, options.name)
    shutil.rmtree(folder)
    print_line(f"removed: {folder}")


SIGNERS = "allowed_signers"
"""The file of the inventory with the keys whose signatures the site accepts (ssh-keygen(1))."""

VERBS = {"accept": _accept, "remove": _remove, "show": _show}

USES = (
    ArgumentUse(("--signers", "--reason", "--label", "--replace"), beside=("accept",)),
    ArgumentUse(("--name",), beside=("accept", "remove")),
)
"""The options that would be ignored beside others."""

COMMANDS = {
    "baseline": Command(
        baseline,
        "baseline accept runs/latest-nurion -i inventory/nurion",
        arguments,
        rights=Rights.OF_ROOT,
        traced=False,
        uses=USES,
    )
}
