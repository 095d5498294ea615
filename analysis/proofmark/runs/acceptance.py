"""Signed acceptances: evidence, verdict and page of a run in one folder, with signatures.

``signed/<n>/`` of an acceptance folder is written once and never changed. ``SHA256SUMS`` lists its
files, and each party signs that list: ``sha256sum --check SHA256SUMS`` and ``ssh-keygen -Y verify``
check it without the kit. The folder can be copied, and a later archive, a report in another
language or another version of the kit does not touch it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import (
    is_regular,
    names_in,
    read_regular,
    sha256_of,
    write_whole_bytes,
)
from proofmark.common.text import one_line
from proofmark.runs.evidence import evidence_files
from proofmark.runs.run_files import RunFiles
from proofmark.runs.ssh_keygen import keygen, run_keygen

SUMS = "SHA256SUMS"
NAMESPACE = "proofmark-run"
"""Namespace of the signature: a signature for another purpose does not verify (ssh-keygen, -n)."""
_SIGNATURE = re.compile(r"SHA256SUMS(?:\.([2-9]|[1-9]\d+))?\.sig", re.ASCII)
_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_][\w.-]*(?:/[A-Za-z0-9_][\w.-]*)*)", re.ASCII)
_FORM = "the lines that proofmark signed"


@dataclass(frozen=True)
class CheckedAcceptance:
    """The result of `check`.

    Attributes:
        signers: the principals that signed, in the order of their signatures.
        others: the signatures that are not accepted, each with the reason.
        wrong: each file that differs from the signed one.
        sha256: of the signed list, in hexadecimal digits.
    """

    signers: tuple[str, ...]
    others: tuple[str, ...]
    wrong: tuple[str, ...]
    sha256: str


def signed_folder(folder: Path) -> Path | None:
    """Return `folder` if it is a signed acceptance, else the newest one of its run; None: none."""
    resolved = folder.resolve()
    found = [resolved] if (resolved / SUMS).exists() else signed_folders(resolved)
    return found[0] if found else None


def signed_folders(acceptance: Path) -> list[Path]:
    """Return the signed folders of an acceptance folder, the newest first."""
    place = acceptance / RunFiles.signed.path
    names = [name for name in names_in(place) if name.isdecimal()]
    return [place / name for name in sorted(names, key=int, reverse=True)]


def is_signed(run: Path) -> bool:
    """Return whether an acceptance of the run in the folder `run` was signed."""
    return bool(signed_folders(run))


@contextmanager
def new_signed(acceptance: Path) -> Iterator[Path]:
    """Yield a new folder with the evidence of `acceptance`, if it has evidence of its own.

    It becomes the next one of ``signed/`` when the block ends, unless the block removes it.

    Raises:
        BadInput: the folder cannot be written.
    """
    place = acceptance / RunFiles.signed.path
    try:
        place.mkdir(exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=place))
    except OSError as error:
        found = f"cannot be written: {error.strerror}"
        raise bad_input(place, "", found, "a folder of this user, or a copy of it") from None
    try:
        sealed = (acceptance / RunFiles.evidence.path).is_dir()
        for path in evidence_files(acceptance) if sealed else ():
            target = new / path.relative_to(acceptance)
            target.parent.mkdir(exist_ok=True)
            _link(path, target)
        yield new
        if new.exists():
            new.chmod(0o755)
            known = signed_folders(acceptance)
            new.rename(place / f"{int(known[0].name) + 1 if known else 1:04d}")
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    """Let `target` have the content of `source`, which nothing changes; a copy costs more space."""
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def sums_of(folder: Path) -> bytes:
    """Return the list of the files of a signed folder with their SHA-256, as sha256sum has it.

    Raises:
        BadInput: it has a link, a special file or an unusual name.
    """
    lines = []
    for name in _files(folder):
        if _LINE.fullmatch(f"{'0' * 64}  {name}") is None:
            raise bad_input(folder, "", repr(name), "files that proofmark wrote")
        lines.append(f"{sha256_of(folder / name)}  {name}\n")
    return "".join(lines).encode()


def signed_before(acceptance: Path, content: bytes) -> Path | None:
    """Return the newest signed folder of an acceptance if it has this list; else None."""
    for newest in signed_folders(acceptance)[:1]:
        if read_regular(newest / SUMS) == content:
            return newest
    return None


def _files(folder: Path) -> list[str]:
    """Return the sorted paths of the files that are signed."""
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
    return sorted(name for name in paths if name != SUMS and not _SIGNATURE.fullmatch(name))


def sign(folder: Path, key: Path, content: bytes) -> Path:
    """Add a signature of `content`, the list of a signed folder; return its path.

    The folder may belong to another user. ssh-keygen gets the list and returns the signature by
    pipes, so that only this process reads the key and only whole new files are written.

    Raises:
        BadInput: the key is missing, or ssh-keygen refuses.
    """
    if not key.is_file():
        accepted = "a private ssh key, or an agent's .pub"
        raise bad_input("--key", "", f"{key}: no such file", accepted)
    words = ("-f", str(key), "-n", NAMESPACE)
    signature = keygen("sign", *words, place="--key", content=content)
    number = len(_signatures(folder)) + 1
    path = folder / (f"{SUMS}.{number}.sig" if number > 1 else f"{SUMS}.sig")
    write_whole_bytes(folder / SUMS, content)
    write_whole_bytes(path, signature.encode())
    return path


def _signatures(folder: Path) -> list[Path]:
    """Return the signatures in a folder, in the order of their numbers."""
    found = {name: match for name in names_in(folder) if (match := _SIGNATURE.fullmatch(name))}
    return [folder / name for name in sorted(found, key=lambda name: int(found[name][1] or 1))]


@contextmanager
def private_copy(folder: Path) -> Iterator[Path]:
    """Yield `folder`."""
    yield folder


def check(folder: Path, signers: Path, revoked: Path | None = None) -> CheckedAcceptance:
    """Check the signatures of a signed folder, then each of its files.

    Args:
        folder: the folder, or a private copy of it.
        signers: the accepted keys with their times of validity (ssh-keygen(1), ALLOWED SIGNERS).
        revoked: the keys that are no longer accepted: a list of public keys, or a KRL.

    Raises:
        BadInput: the folder is unsigned, or no signature is accepted.
    """
    path = folder / SUMS
    raw = read_regular(path)
    accepted, refused = list[str](), list[BadInput]()
    wrong = list[str]()
    for signature in _signatures(folder):
        try:
            signer, changed = _checked(raw, signature, signers, revoked)
        except BadInput as error:
            refused.append(error)
            continue
        accepted.append(signer)
        wrong += [changed] if changed else []
    if not accepted:
        if refused:
            raise refused[0]
        raise bad_input(folder, "", "no signature", "proofmark sign RUN")
    if not wrong:
        wrong += differences(folder, raw)
    others = tuple(one_line(str(error)) for error in refused)
    return CheckedAcceptance(tuple(accepted), others, tuple(wrong), hashlib.sha256(raw).hexdigest())


def _checked(raw: bytes, signature: Path, signers: Path, revoked: Path | None) -> tuple[str, str]:
    """Return the signer of the list `raw`, and the error if it changed since.

    Raises:
        BadInput: the signer is not accepted, or the key is revoked.
    """
    if not is_regular(signature):
        raise bad_input(signature, "", "a link, or not a regular file", "a signature")
    names = ("-f", str(signers), "-s", str(signature), "-n", NAMESPACE)
    principals = keygen("find-principals", *names[:4], place=str(signature)).splitlines()
    signer = principals[0].strip()
    revocations = ("-r", str(revoked)) if revoked else ()
    good = run_keygen("verify", "-I", signer, *names, *revocations, content=raw)
    if good.returncode:
        if revoked and not run_keygen("verify", "-I", signer, *names, content=raw).returncode:
            found = f"{revoked}: {one_line(good.stderr) or f'the key of {signer} is revoked'}"
            raise bad_input("--revoked", "", found, "a signature by a key that is not revoked")
        if run_keygen("check-novalidate", *names[2:], content=raw).returncode:
            return signer, f"{SUMS}: changed after it was signed"
        problem = one_line(good.stderr) or "a signature that is not accepted"
        raise bad_input(signers, "", problem, f"a signer of {NAMESPACE}")
    return signer, ""


def differences(folder: Path, raw: bytes) -> Sequence[str]:
    """Return each file of a signed folder that is not as in the list `raw`."""
    listed: dict[str, str] = {}
    for number, line in enumerate(raw.decode("ascii", "replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise bad_input(f"{SUMS}:{number}", "", repr(line[:80]), _FORM)
        listed[match[2]] = match[1]
    present = _files(folder)
    wrong = [f"{name}: added" for name in present if name not in listed]
    for name, digest in listed.items():
        if name not in present:
            wrong.append(f"{name}: removed")
            continue
        try:
            same = sha256_of(folder / name) == digest
        except OSError as error:
            wrong.append(f"{name}: {error.strerror}")
            continue
        if not same:
            wrong.append(f"{name}: changed")
    return [one_line(each) for each in wrong]
