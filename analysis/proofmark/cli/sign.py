"""The commands ``sign`` and ``verify``."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from proofmark.cli.command import Command, run_argument
from proofmark.cli.evidence import ChangedAcceptance, checked_folder, evidence_of, run_in
from proofmark.cli.output import print_line
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import read_regular
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.progress_lines import say
from proofmark.judge.written import WrittenVerdict, read_written, refuse_unfinished
from proofmark.report.products import differences, differing, made_of, other_versions, write_again
from proofmark.runs import acceptance
from proofmark.runs.acceptance_data import PAGE_DATA, of_page
from proofmark.runs.evidence import read_evidence
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles


def _sign_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument("--key", required=True, type=Path, metavar="FILE", help="private ssh key")


def sign(options: Namespace) -> int:
    """Sign the evidence of a run with what is made from it, or add a signature to such a folder.

    Raises:
        BadInput: the run is unfinished, a product is not that of the evidence, or ssh-keygen
            refuses.
    """
    folder = options.folder.resolve()
    if (folder / acceptance.SUMS).exists():
        content = _listed_again(folder)
        print_line(f"{acceptance.sign(folder, options.key, content)}")
        return 0
    run = evidence_of(folder)
    made = made_of(run.products)
    if other := other_versions(made):
        found = f"written by other versions: {other}"
        raise bad_input(run.products.made, "", found, "a new report: proofmark report RUN")
    assert run.seal is not None
    with acceptance.new_signed(run.seal.folder) as new:
        written = write_again(run, made, RunFiles(new))
        refuse_unfinished(run, written.verdict)
        if wrong := [*differing(new, run.products)]:
            report = PrintedCommand("proofmark", "report", of_person(folder, "RUN"))
            accepted = f"what `{report}` writes"
            raise BadInput(
                *(InputError(f"{run.seal.folder}", "", each, accepted) for each in wrong)
            )
        content = acceptance.sums_of(new)
        same = acceptance.signed_before(run.seal.folder, content)
        signature = acceptance.sign(same or new, options.key, content)
        if same:
            shutil.rmtree(new)
    newest = same or acceptance.signed_folders(run.seal.folder)[0]
    print_line(f"{newest / signature.name}")
    return 0


def _listed_again(folder: Path) -> bytes:
    """Return the list of a signed folder, if its files are those that its evidence gives.

    Raises:
        BadInput: they are not, or they were written by other versions.
    """
    with acceptance.private_copy(folder) as place:
        content = read_regular(place / acceptance.SUMS)
        wrong = [*acceptance.differences(place, content)]
        evidence = None if wrong else read_evidence(place)
        if evidence:
            run = evidence.run()
            made = made_of(run.products)
            if other := other_versions(made):
                found = f"written by other versions: {other}"
                raise bad_input(folder, "", found, "the versions that wrote it")
            wrong += differences(run, made)
        if wrong:
            accepted = "what was signed, made from its evidence"
            raise BadInput(*(InputError(f"{folder}", "", each, accepted) for each in wrong))
    return content


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
    """Check a signed acceptance, judge its evidence again, and print the signed verdict last.

    The page of an acceptance names the evidence of its runs: those that are beside it are compared.

    Returns:
        0, or 1 if a file is not as it was signed, or is not what the evidence gives.
    """
    name = options.folder.name
    try:
        with checked_folder(options.folder, options.signers, options.revoked) as (signed, place):
            if (place / PAGE_DATA).exists():
                line, wrong = of_page(place / PAGE_DATA, options.folder.resolve().parent)
            else:
                run = run_in(place)
                verdict = _written_verdict(run)
                wrong, line = [*_judged_again(run, verdict)], verdict.line
    except ChangedAcceptance as error:
        signed, wrong, line = error.checked, list(error.checked.wrong), None
    for each in signed.others:
        say(f"not accepted: {each}")
    for each in wrong:
        print_line(each)
    signers = ", ".join(signed.signers)
    if wrong or line is None:
        print_line(f"{name}: {len(wrong)} differences from what {signers} signed")
        return 1
    print_line(f"{name}: as signed by {signers}")
    print_line(line)
    return 0


def _judged_again(run: Run, verdict: WrittenVerdict) -> Iterator[str]:
    """Yield each product that is not what the evidence gives, if these versions wrote it."""
    if verdict.missing:
        yield f"unfinished: {verdict.missing} of {verdict.coverage.expected} steps are missing"
    made = made_of(run.products)
    if other := other_versions(made):
        say(f"not judged again here: judged by {other}")
        return
    yield from differences(run, made)


def _written_verdict(run: Run) -> WrittenVerdict:
    """Return the verdict of a signed acceptance.

    Raises:
        BadInput: it has no verdict.
    """
    verdict = read_written(run.products.verdict)
    if verdict is None or verdict.run != run.id:
        found = "no verdict of this run"
        raise bad_input(run.products.verdict, "", found, f"the verdict of {run.id}")
    return verdict


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
