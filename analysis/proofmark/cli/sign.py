"""The commands ``sign`` and ``verify``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from proofmark.cli.command import Command, Rights, run_argument
from proofmark.cli.output import print_line
from proofmark.judge.written import Signable, WrittenVerdict, read_written, signable
from proofmark.runs import checksums
from proofmark.runs.answer import answer
from proofmark.runs.owner import as_owner
from proofmark.runs.run_files import RunFiles


def _sign_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument("--key", required=True, type=Path, metavar="FILE", help="private ssh key")


def sign(options: Namespace) -> int:
    """Judge a run, compare with its written verdict, write its checksums and sign them."""
    answer(options.folder, signable, Signable)
    print_line(f"{checksums.sign(options.folder.resolve(), options.key)}")
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
    """Check a run against its signed checksums; the last line is the signed verdict.

    Returns:
        0, or 1 if a file differs, a link leaves the run, the run was renamed or is unfinished.
    """
    folder = options.folder.resolve()
    checked = checksums.verify(folder, options.signers, options.revoked)
    with as_owner(folder):
        verdict = read_written(RunFiles(folder).verdict)
    wrong = [*checked.wrong, *_unfit(folder.name, verdict)]
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
