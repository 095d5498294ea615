"""The option with the credentials of the BMCs, for each command that connects to BMCs."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from proofmark.cli.command import SECRETS, Words, complete
from proofmark.cli.input import read_limited
from proofmark.common.input_limits import MAX_SMALL_BYTES
from proofmark.machine.bmc.back_end import Credentials, credentials


def credentials_argument(parser: ArgumentParser) -> None:
    """Add the option ``--credentials`` to `parser`."""
    file = parser.add_argument(
        "--credentials",
        metavar="FILE",
        help="JSON with user and password of the BMCs; -: stdin; default: the variables "
        "PROOFMARK_BMC_USER and PROOFMARK_BMC_PASSWORD",
    )
    complete(file, Words.PATH)


def credentials_of(options: Namespace) -> Credentials:
    """Return the credentials in the file of ``--credentials``, in stdin (``-``) or in `SECRETS`.

    Raises:
        BadInput: they have another format, or more than `MAX_SMALL_BYTES`.
    """
    source = options.credentials
    if not source:
        content = b""
    elif source == "-":
        content = read_limited(sys.stdin.buffer, "stdin", MAX_SMALL_BYTES)
    else:
        with Path(source).open("rb") as file:
            content = read_limited(file, source, MAX_SMALL_BYTES)
    return credentials(content, SECRETS.get())
