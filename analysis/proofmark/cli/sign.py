"""The commands ``sign`` and ``verify``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from proofmark.cli.command import Command, run_argument
from proofmark.cli.output import print_line
from proofmark.runs import checksums
from proofmark.runs.run import open_run


def _sign_arguments(parser: ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument("--key", required=True, type=Path, metavar="FILE", help="private ssh key")


def sign(options: Namespace) -> int:
    """Write the checksums of a run and sign them."""
    print(checksums.sign(open_run(options.folder).folder, options.key))
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


def verify(options: Namespace) -> int:
    """Check a run against its signed checksums; return 1 if a file differs."""
    folder = options.folder.resolve()
    checked = checksums.verify(folder, options.signers)
    for line in checked.wrong:
        print_line(line)
    if checked.wrong:
        print_line(
            f"{folder.name}: {len(checked.wrong)} differences from what {checked.signer} signed"
        )
        return 1
    print_line(f"{folder.name}: as signed by {checked.signer}")
    return 0


COMMANDS = {
    "sign": Command(sign, "sign runs/latest --key ~/.ssh/id_ed25519", _sign_arguments),
    "verify": Command(verify, "verify runs/latest --signers allowed_signers", _verify_arguments),
}
