"""The commands ``sign``, ``verify`` and ``baseline``: a person answers for a run."""

from __future__ import annotations

import shutil
from argparse import Namespace
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from proofmark.cli.inputs import checked_folder, evidence_of, kit_benchmarks, site_of_run
from proofmark.cli.output import print_line, print_table
from proofmark.common.errors import InputError, bad_input, refuse
from proofmark.common.files import exists, read_json, write_atomic
from proofmark.common.message import Message
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.progress_lines import say
from proofmark.common.text import counted
from proofmark.common.trust import refuse_untrusted
from proofmark.report.products import Made, differing, made_of, other_versions
from proofmark.report.statement import (
    CONTRACT,
    Predicate,
    against_evidence,
    made_again,
    predicate_of,
    products_of,
    runs_in,
    unfinished,
)
from proofmark.runs import acceptance
from proofmark.runs.acceptance import OWN, STATEMENT, CheckedStatement
from proofmark.runs.evidence import evidence_files
from proofmark.runs.identity import Identity
from proofmark.runs.run import open_run
from proofmark.runs.run_files import RunFiles
from proofmark.site.accepted_baseline import (
    STATE,
    baseline_folder,
    known_baselines,
    read_baseline,
    write_baseline,
)
from proofmark.site.contract_document import Contract
from proofmark.site.groups import literal_yaml
from proofmark.site.inventory import Site

CHANGED, OTHER_PRODUCTS, OTHER_VERSIONS = 1, 5, 6
"""The exit codes of `verify` beside 0."""


def sign(options: Namespace) -> int:
    """Sign the evidence of a run with what is made from it, or add a signature to such a folder.

    Raises:
        BadInput: the run is unfinished, a product is not that of the evidence, another user can
            change a file, or ssh-keygen refuses.
    """
    refuse_untrusted(options.folder, OWN)
    folder = options.folder.resolve()
    if (folder / STATEMENT).exists():
        print_line(f"{_countersigned(folder, options.key)}")
        return 0
    run = evidence_of(folder)
    made = made_of(run.products)
    _refuse_other_versions(made, run.products.made, "a new report: proofmark report RUN")
    with acceptance.new_signed(folder) as new:
        for path in evidence_files(run.products.folder):
            acceptance.take(path, new / path.relative_to(folder))
        asked = Predicate(kind="run", id=run.id, site=run.plan.site, partitions={}, made=made)
        predicate = made_again(runs_in(new, "run"), asked, new)
        report = PrintedCommand("proofmark", "report", of_person(folder, "RUN"))
        _refuse(folder, unfinished(predicate), "a run with a result of each planned step")
        _refuse(folder, differing(new, products_of(new), folder), f"what `{report}` writes")
        print_line(f"{acceptance.accept(new, predicate.model_dump(mode='json'), options.key)}")
    return 0


def _countersigned(folder: Path, key: Path) -> Path:
    """Add a signature to a signed folder if its files are those that its evidence gives.

    Raises:
        BadInput: they are not, or they were written by other versions.
    """
    statement = acceptance.read_statement(folder)
    predicate = predicate_of(statement, folder)
    _refuse(folder, acceptance.differences(folder, statement), "what was signed")
    _refuse_other_versions(predicate.made, folder, "the versions that wrote it")
    wrong = against_evidence(folder, statement, predicate)
    _refuse(folder, wrong, "what its evidence gives")
    return acceptance.sign(folder, key)


def _refuse(folder: Path, wrong: Iterable[Message], accepted: str) -> None:
    refuse(InputError(f"{folder}", "", each, accepted) for each in wrong)


def _refuse_other_versions(made: Made, place: Path, accepted: str) -> None:
    if other := other_versions(made):
        raise bad_input(place, "", f"written by other versions: {other}", accepted)


def verify(options: Namespace) -> int:
    """Check a signed folder, judge its evidence again, and print the signed verdict last.

    Returns:
        0, or `CHANGED` if a file is not as it was signed or not what the evidence gives,
        `OTHER_VERSIONS` if it was not judged again here, `OTHER_PRODUCTS` if what lies in RUN is
        not what was signed.

    Raises:
        BadInput: no signature is accepted, it is that of another run, or it has no evidence.
    """
    folder = options.folder.resolve()
    signed = checked_folder(folder, options.signers, options.revoked)
    predicate = predicate_of(signed.statement, signed.folder)
    if folder != signed.folder:
        _refuse_other(folder, signed.folder, predicate)
    for each in signed.others:
        say(f"not accepted: {each}")
    wrong = signed.wrong or against_evidence(signed.folder, signed.statement, predicate)
    for message in wrong:
        print_line(message)
    if wrong:
        differences = counted(len(wrong), "difference")
        print_line(f"{predicate.id}: {differences} from what {signed.names} signed")
        return CHANGED
    print_line(f"{predicate.id}: as signed by {signed.names}")
    for place in acceptance.signed_folders(folder)[1:]:
        names = acceptance.check(place, options.signers, options.revoked).names
        print_line(f"{place}: an earlier statement, signed by {names}")
    if missing := _not_signed(signed, predicate):
        print_line(f"not signed by: {', '.join(missing)}")
    other = list[Message]()
    if folder != signed.folder:
        other += differing(signed.folder, products_of(signed.folder), folder)
    for message in other:
        print_line(f"{folder}: {message}; what was signed is in {signed.folder}")
    print_line(predicate.line)
    if versions := other_versions(predicate.made):
        print_line(f"{predicate.id}: not judged again here: judged by {versions}")
        return OTHER_VERSIONS
    return OTHER_PRODUCTS if other else 0


def _refuse_other(folder: Path, signed: Path, predicate: Predicate) -> None:
    """Refuse the signature of another run than that in `folder`.

    Raises:
        BadInput: the folder has another name or another run.
    """
    names = [folder.name]
    if exists(identity := RunFiles(folder).identity):
        names.append(read_json(identity, Identity).run)
    for name in names:
        if name != predicate.id:
            found = f"the signature of {predicate.id}"
            raise bad_input(signed, "", found, f"that of {name}, which is in {folder}")


def _not_signed(signed: CheckedStatement, predicate: Predicate) -> list[str]:
    """Return the signers that the contract names and that did not sign."""
    if not predicate.contract:
        return []
    contract = read_json(signed.folder / CONTRACT, Contract)
    keys = {each.key for each in signed.signers}
    return [name for name, of_name in contract.keys.items() if not keys & of_name]


def baseline(options: Namespace) -> int:
    """Accept a signed run as the reference of later runs; print or remove accepted runs."""
    VERBS[options.verb](options, site_of_run(options, open_run(options.folder)))
    return 0


def _accept(options: Namespace, site: Site) -> None:
    """Add a signed run to a baseline of its partition."""
    # scipy takes a quarter of a second; other uses of this module do not need it.
    from proofmark.judge.baseline_files import (
        Acceptance,
        accepted_baseline,
        extended,
        judged_figures,
    )

    run = open_run(options.folder)
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
    print_line(f"baseline {made.name}: {counted(len(made.runs), 'run')} in {folder}")


def _show(options: Namespace, site: Site) -> None:
    """Print the baselines of the partition of a run."""
    rows = []
    for name in known_baselines(site.inventory, site.partition_name):
        known, _ = read_baseline(baseline_folder(site.inventory, site.partition_name, name))
        origin = " ".join(filter(None, (known.origin, known.label)))
        for each in known.runs:
            by = (f"{each.accepted:%Y-%m-%d}", each.signer, each.verdict)
            rows.append((name, each.run, *by, origin, each.reason))
    headers = ("baseline", "run", "accepted", "signer", "verdict", "origin", "reason")
    nothing = f"partition {site.partition_name} of {site.name} has no baseline"
    print_table(headers, rows, nothing)


def _export(options: Namespace, site: Site) -> None:
    """Write the figures of a baseline as items of a contract, for a site with like nodes."""
    from proofmark.judge.baseline_files import contract_items

    baseline, figures = read_baseline(_known_folder(options, site))
    items = contract_items(baseline, figures, kit_benchmarks())
    path = options.output or Path(EXPORTED)
    write_atomic(path, literal_yaml({"items": items}, width=100))
    print_line(f"exported: {counted(len(items), 'item')} of baseline {options.name}: {path}")


def _known_folder(options: Namespace, site: Site) -> Path:
    """Return the folder of the baseline that ``--name`` names."""
    names = known_baselines(site.inventory, site.partition_name)
    if options.name not in names:
        raise bad_input("--name", "", options.name, ", ".join(names) or "no baseline exists")
    return baseline_folder(site.inventory, site.partition_name, options.name)


def _remove(options: Namespace, site: Site) -> None:
    """Remove a baseline of the partition of a run; the runs stay."""
    folder = _known_folder(options, site)
    shutil.rmtree(folder)
    print_line(f"removed: {folder}")


SIGNERS = "allowed_signers"
"""The file of the inventory with the keys whose signatures the site accepts (ssh-keygen(1))."""

EXPORTED = "contract-items.yml"
"""The file of an export, in the current folder."""

VERBS = {"accept": _accept, "export": _export, "remove": _remove, "show": _show}
