"""The command ``baseline``: it accepts runs as the reference of later runs, and shares them."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path

from proofmark.cli.command import (
    ArgumentUse,
    Command,
    Words,
    complete,
    run_argument,
    verb_argument,
)
from proofmark.cli.command_inputs import kit_benchmarks, site_arguments, site_of_run
from proofmark.cli.evidence import checked_folder
from proofmark.cli.output import print_line, print_table
from proofmark.common.errors import bad_input
from proofmark.common.files import write_atomic
from proofmark.runs.run import open_run
from proofmark.site.accepted_baseline import (
    ACCEPTED,
    STATE,
    as_yaml,
    baseline_folder,
    known_baselines,
    names_of_hosts,
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
    note = "who made the figures: of an imported run, or of an exported file"
    parser.add_argument("--label", default="", help=note)
    note = f"the exported file (default: {EXPORTED})"
    output = parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=note)
    complete(output, Words.PATH)
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
    from proofmark.judge.baseline_files import (
        Acceptance,
        accepted_baseline,
        extended,
        judged_figures,
    )
    from proofmark.report.statement import runs_in

    run = open_run(options.folder)
    site = site_of_run(options, run)
    signers = options.signers or site.inventory / SIGNERS
    signed = checked_folder(options.folder, signers)
    if signed.wrong:
        found = "; ".join(signed.wrong)
        raise bad_input(signed.folder, "", found, f"as signed by {signed.names}")
    (sealed,) = runs_in(signed.folder, "run")
    if sealed.id != run.id:
        raise bad_input("RUN", "", f"signed evidence of {sealed.id}", f"that of {run.id}")
    about = (datetime.now(UTC), signed.names, signed.sha256, options.reason, options.label)
    stated = Acceptance(options.name, *about)
    made, figures = accepted_baseline(run.id, judged_figures(sealed), site, stated)
    folder = baseline_folder(site.inventory, site.partition_name, made.name)
    if (folder / STATE).exists() and not options.replace:
        made, figures = extended(*read_baseline(folder), made, figures)
    write_baseline(folder, made, figures)
    print_line(f"accepted: {run.id}, signed by {signed.names}, {made.runs[-1].verdict}")
    print_line(f"baseline {made.name}: {len(made.runs)} runs in {folder}")


def _show(options: Namespace) -> None:
    """Print the baselines of the partition of a run."""
    site = site_of_run(options, open_run(options.folder))
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


def _export(options: Namespace) -> None:
    """Write the figures of a baseline, without names of hosts, for other sites."""
    from proofmark.judge.baseline_files import exported

    site = site_of_run(options, open_run(options.folder))
    name, folder = options.name, _known_folder(options, site)
    hosts = names_of_hosts([*site.partition_hosts, *site.hosts], site.aliases)
    baseline, figures = read_baseline(folder)
    hosts |= names_of_hosts(baseline.states(), {})
    found = exported(baseline, figures, kit_benchmarks(), hosts, options.label)
    path = options.output or Path(EXPORTED)
    write_atomic(path, as_yaml(found.content))
    count = len(found.content.figures)
    models = len(found.content.models)
    print_line(f"exported: {count} figures of {models} node models of baseline {name}: {path}")
    for reason, number in found.left_out.most_common():
        print_line(f"left out: {number} values: {reason}")


def _known_folder(options: Namespace, site: Site) -> Path:
    """Return the folder of the baseline that ``--name`` names."""
    names = known_baselines(site.inventory, site.partition_name)
    if options.name not in names:
        raise bad_input("--name", "", options.name, ", ".join(names) or "no baseline exists")
    return baseline_folder(site.inventory, site.partition_name, options.name)


def _remove(options: Namespace) -> None:
    """Remove a baseline of the partition of a run; the runs stay."""
    folder = _known_folder(options, site_of_run(options, open_run(options.folder)))
    shutil.rmtree(folder)
    print_line(f"removed: {folder}")


SIGNERS = "allowed_signers"
"""The file of the inventory with the keys whose signatures the site accepts (ssh-keygen(1))."""

EXPORTED = "baseline-elsewhere.yml"
"""The file for other sites, in the current folder."""

VERBS = {"accept": _accept, "export": _export, "remove": _remove, "show": _show}

USES = (
    ArgumentUse(("--signers", "--reason", "--replace"), beside=("accept",)),
    ArgumentUse(("--label",), beside=("accept", "export")),
    ArgumentUse(("--output",), beside=("export",)),
    ArgumentUse(("--name",), beside=("accept", "export", "remove")),
)
"""The options that would be ignored beside others."""

COMMANDS = {
    "baseline": Command(
        baseline,
        "baseline accept runs/latest-nurion -i inventory/nurion",
        arguments,
        traced=False,
        uses=USES,
    )
}
