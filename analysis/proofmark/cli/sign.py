"""The commands ``sign`` and ``verify``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path

from proofmark.cli.command import Command, run_argument
from proofmark.cli.evidence import checked_folder, evidence_of
from proofmark.cli.output import print_line
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import exists, read_json
from proofmark.common.message import Message
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.progress_lines import say
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
    taken_from,
    unfinished,
)
from proofmark.runs import acceptance
from proofmark.runs.acceptance import OWN, STATEMENT, CheckedStatement
from proofmark.runs.identity import Identity
from proofmark.runs.run_files import RunFiles
from proofmark.site.contract_document import Contract

CHANGED, OTHER_PRODUCTS, OTHER_VERSIONS = 1, 5, 6
"""The exit codes of `verify` beside 0."""


def _sign_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument("--key", required=True, type=Path, metavar="FILE", help="private ssh key")


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
        for path in taken_from(run):
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
    if mistakes := [InputError(f"{folder}", "", each, accepted) for each in wrong]:
        raise BadInput(*mistakes)


def _refuse_other_versions(made: Made, place: Path, accepted: str) -> None:
    if other := other_versions(made):
        raise bad_input(place, "", f"written by other versions: {other}", accepted)


def _verify_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument(
        "--signers",
        required=True,
        type=Path,
        metavar="FILE",
        help="allowed_signers (ssh-keygen(1))",
    )
    parser.add_argument(
        "--revoked",
        type=Path,
        metavar="FILE",
        help="keys that are no longer accepted: a list of public keys, or a KRL (ssh-keygen(1))",
    )


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
        print_line(f"{predicate.id}: {len(wrong)} differences from what {signed.names} signed")
        return CHANGED
    print_line(f"{predicate.id}: as signed by {signed.names}")
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


COMMANDS = {
    "sign": Command(
        sign,
        "sign runs/latest-local --key ~/.ssh/id_ed25519",
        _sign_arguments,
        traced=False,
    ),
    "verify": Command(
        verify,
        "verify runs/latest-local --signers allowed_signers",
        _verify_arguments,
        traced=False,
    ),
}
