"""Calls of ssh-keygen(1) for signatures."""

from __future__ import annotations

import os
import shutil
import subprocess

from proofmark.common.errors import bad_input
from proofmark.common.processes import run_command
from proofmark.common.text import one_line


def run_keygen(verb: str, *words: str, content: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Run ``ssh-keygen -Y`` with `content` on its standard input.

    Raises:
        BadInput: there is no ssh-keygen.
    """
    program = shutil.which("ssh-keygen")
    if program is None:
        raise bad_input("ssh-keygen", "", "not found", "OpenSSH 8.2 or later")
    return run_command([program, "-Y", verb, *words], text=os.fsdecode(content))


def keygen(verb: str, *words: str, place: str, content: bytes = b"") -> str:
    """Return the output of ``ssh-keygen -Y``; `place` is what a refusal is about.

    Raises:
        BadInput: ssh-keygen refuses, or is not there.
    """
    done = run_keygen(verb, *words, content=content)
    if done.returncode:
        problem = "unknown signer" if verb == "find-principals" else "refused by ssh-keygen"
        raise bad_input(
            place,
            "",
            f"{problem}: {one_line(done.stderr)}",
            "the key of a signer, at a time when it is valid",
        )
    return done.stdout
