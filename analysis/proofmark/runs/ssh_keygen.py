"""Signatures by ssh-keygen(1), and the keys that made them. One key is one signer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.common.processes import run_command
from proofmark.common.text import one_line

_GOOD = re.compile(r'Good "[a-z-]+" signature with (\S+) key (SHA256:\S+)\s*')
_PATTERN = frozenset("*?!")
"""The characters of patterns in ALLOWED SIGNERS (ssh-keygen(1))."""


@dataclass(frozen=True)
class Signer:
    """Who signed.

    Attributes:
        name: the principal of the key (ssh-keygen(1), ALLOWED SIGNERS).
        key: the fingerprint of the key, ``SHA256:`` and 43 characters.
    """

    name: str
    key: str


def keygen(verb: str, *words: str, place: str, content: bytes = b"") -> str:
    """Return the output of ``ssh-keygen -Y``; `place` is what a refusal is about.

    Raises:
        BadInput: ssh-keygen refuses, or is not there.
    """
    done = run_keygen(verb, *words, content=content)
    if done.returncode:
        problem = "unknown signer" if verb == "find-principals" else "refused by ssh-keygen"
        found = f"{problem}: {one_line(done.stderr)}"
        raise bad_input(place, "", found, "the key of a signer, at a time when it is valid")
    return done.stdout


def run_keygen(verb: str, *words: str, content: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Run ``ssh-keygen -Y`` with `content` on its standard input.

    Raises:
        BadInput: there is no ssh-keygen.
    """
    program = shutil.which("ssh-keygen")
    if program is None:
        raise bad_input("ssh-keygen", "", "not found", "OpenSSH 8.2 or later")
    return run_command([program, "-Y", verb, *words], text=os.fsdecode(content))


def key_of(signature: bytes, content: bytes, namespace: str, place: str) -> str:
    """Return the fingerprint of the key that signed `content`; whose key it is stays open.

    A key with a certificate is refused: anybody with the key of the authority can make another one.

    Raises:
        BadInput: `signature` is none of `content`, or by a certificate; `place` is its file.
    """
    with _file(signature) as path:
        words = ("-n", namespace, "-s", path)
        done = run_keygen("check-novalidate", *words, content=content)
    match = _GOOD.fullmatch(done.stdout)
    if done.returncode or match is None:
        found = f"no signature of what is there now: {one_line(done.stderr or done.stdout)}"
        raise bad_input(place, "", found, f"a signature of the unchanged file for {namespace}")
    if match[1].endswith("-CERT"):
        raise bad_input(place, "", "the key of a certificate", "a key without certificate")
    return match[2]


def signer_of(
    signature: bytes,
    content: bytes,
    namespace: str,
    signers: Path,
    *,
    revoked: Path | None,
    place: str,
) -> Signer:
    """Return who signed `content`.

    Args:
        content: what was signed.
        signers: the accepted keys with their times of validity (ssh-keygen(1), ALLOWED SIGNERS).
        revoked: the keys that are no longer accepted: a list of public keys, or a KRL.

    Raises:
        BadInput: the signature is not one of `content`, or the signer is not accepted: unknown,
            a pattern, revoked, or outside of the times of validity.
    """
    key = key_of(signature, content, namespace, place)
    with _file(signature) as path:
        names = ("-f", str(signers), "-s", path)
        principals = keygen("find-principals", *names, place=place).splitlines()
        if any(_PATTERN & set(each) for each in principals):
            found = f"a pattern names a signer: {', '.join(principals)}"
            raise bad_input(signers, "", found, "the name of one person for each key")
        signer = Signer(principals[0].strip(), key)
        words = ("-I", signer.name, *names, "-n", namespace)
        revocations = ("-r", str(revoked)) if revoked else ()
        good = run_keygen("verify", *words, *revocations, content=content)
        in_time = good.returncode and not run_keygen("verify", *words, content=content).returncode
        if revoked and in_time:
            found = f"{revoked}: {one_line(good.stderr) or f'the key of {signer.name} is revoked'}"
            raise bad_input("--revoked", "", found, "a signature by a key that is not revoked")
    if good.returncode:
        problem = one_line(good.stderr) or "a signature that is not accepted"
        raise bad_input(signers, "", problem, f"a signer of {namespace}")
    return signer


@contextmanager
def _file(signature: bytes) -> Iterator[str]:
    """Yield the path of a file with a signature; ssh-keygen reads it from no pipe."""
    with tempfile.NamedTemporaryFile(prefix="proofmark-") as file:
        file.write(signature)
        file.flush()
        yield file.name
