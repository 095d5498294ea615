"""The commands ``sign`` and ``verify``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from proofmark.cli.command import Command, Rights, run_argument
from proofmark.cli.output import print_line
from proofmark.common.errors import BadInput, InputError
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.progress_lines import say
from proofmark.judge.written import WrittenVerdict, read_written
from proofmark.report.products import compare_products
from proofmark.runs import checksums
from proofmark.runs.anchors import compare_inputs
from proofmark.runs.owner import as_owner
from proofmark.runs.run_files import RunFiles


def _sign_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument("--key", required=True, type=Path, metavar="FILE", help="private ssh key")


def sign(options: Namespace) -> int:
    """Write the products of a run again, compare, write its checksums and sign them.

    Raises:
        BadInput: a product is not that of the raw outputs, an input is not that of the start, or
            the run cannot be signed.
    """
    folder = options.folder.resolve()
    sums = checksums.whole_checksums(folder)
    products, inputs = compare_products(folder, sums), compare_inputs(folder, sums)
    if wrong := [*filter(None, (products.unknown,)), *products.wrong, *inputs.wrong]:
        report = PrintedCommand("proofmark", "report", of_person(folder, "RUN"))
        accepted = f"what `{report}` writes; nodes/: `proofmark stage collect`"
        raise BadInput(*(InputError(f"{folder}", "", line, accepted) for line in wrong))
    for line in (*products.notes, *filter(None, (inputs.unknown,))):
        say(f"not checked: {line}")
    print_line(f"{checksums.sign(folder, options.key, sums)}")
    return 0


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
    """Check a run against its signed checksums and its raw outputs; print the signed verdict last.

    Returns:
        0, or 1 if a file differs, a link leaves the run, the run was renamed or is unfinished.
    """
    folder = options.folder.resolve()
    checked = checksums.verify(folder, options.signers, options.revoked)
    with as_owner(folder):
        verdict = read_written(RunFiles(folder).verdict)
    wrong = [*checked.wrong, *_unfit(folder.name, verdict)]
    if not wrong:  # else the files are not those that were signed
        compared = compare_products(folder, checked.sums), compare_inputs(folder, checked.sums)
        wrong += [line for each in compared for line in each.wrong]
        for line in (line for each in compared for line in (*each.notes, each.unknown) if line):
            say(f"not checked: {line}")
    for line in wrong:
        print_line(line)
    if wrong or verdict is None:
        print_line(f"{folder.name}: {len(wrong)} differences from what {checked.signer} signed")
        return 1
    print_line(f"{folder.name}: as signed by {checked.signer}")
    print_line(verdict.line)
    return 0


def _unfit(name: str, verdict: WrittenVerdict | None) -> Iterator[str]:
    """Yield why the verdict is not that of the finished run `name`."""
    if verdict is None:
        yield "verdict.json: no verdict"
        return
    if verdict.run != name:
        yield f"verdict.json: of the run {verdict.run}"
    if verdict.missing:
        yield f"unfinished: {verdict.missing} of {verdict.coverage.expected} steps are missing"


COMMANDS = {
    "sign": Command(
        sign,
        "sign runs/latest-local --key ~/.ssh/id_ed25519",
        _sign_arguments,
        rights=Rights.OF_ROOT,
        traced=False,
    ),
    "verify": Command(
        verify,
        "verify runs/latest-local --signers allowed_signers",
        _verify_arguments,
        rights=Rights.OF_ROOT,
        traced=False,
    ),
}
