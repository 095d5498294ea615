"""The checksums of a run: ``SHA256SUMS``, signed with an ssh key.

Other programs check both: ``sha256sum --check SHA256SUMS`` the files, and ``ssh-keygen -Y verify``
the signature.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import read_regular, replacing, sha256_of, write_whole_bytes
from proofmark.common.text import one_line
from proofmark.runs.folder_sums import LINK, NAME, SIGNATURE, SPECIAL, sums_in_parts
from proofmark.runs.format import run_id_of
from proofmark.runs.owner import as_owner
from proofmark.runs.run_files import RunFiles
from proofmark.runs.ssh_keygen import keygen, run_keygen

NAMESPACE = "proofmark-run"
"""Namespace of the signature: a signature for another purpose does not verify (ssh-keygen, -n)."""
_ODD = re.compile(r"[\\\n\r]")
_ESCAPED = {"\\": "\\", "n": "\n", "r": "\r"}


@dataclass(frozen=True)
class Checked:
    """The result of `verify`.

    Attributes:
        signer: the principal that signed.
        wrong: each file that differs from the signed one.
        sha256: of the signed checksums, in hexadecimal digits.
        sums: the SHA-256 of each file of the run, by its path; empty if the checksums were changed.
    """

    signer: str
    wrong: tuple[str, ...]
    sha256: str
    sums: Mapping[str, str] = field(default_factory=dict)


def checksums_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 (hexadecimal) of each file of the run in `folder`, by relative path.

    A symbolic link has `LINK` instead.

    Raises:
        BadInput: the folder contains something else than files, links and folders.
    """
    return dict(chain.from_iterable(sums_in_parts(folder, list)))


def write_checksums(folder: Path, known: Mapping[str, str] | None = None) -> Path:
    """Write ``SHA256SUMS`` without symbolic links. The same files give the same bytes.

    Args:
        folder: the run.
        known: the checksums of its files, if they were computed just now.
    """
    path = folder / NAME
    parts = sums_in_parts(folder, _text) if known is None else _texts(known.items())
    with replacing(path) as file:
        file.buffer.writelines(parts)
    return path


def with_summary(folder: Path, sums: Mapping[str, str]) -> dict[str, str]:
    """Return `sums` of the run in `folder` with those of its summary, which was written after."""
    files = RunFiles(folder)
    of_summary = {path.name: sha256_of(path) for path in files.summary}
    added = of_summary.keys() - sums.keys()
    return dict(sorted({**sums, **of_summary}.items())) if added else {**sums, **of_summary}


def digest_of_evidence(sums: Mapping[str, str]) -> str:
    """Return the SHA-256 (hexadecimal) of ``SHA256SUMS`` without the lines of the summary.

    The summary contains this digest, so the digest cannot depend on the summary.
    """
    summary = {path.name for path in RunFiles(Path()).summary}
    digest = hashlib.sha256()
    for text in _texts(item for item in sums.items() if item[0] not in summary):
        digest.update(text)
    return digest.hexdigest()


def _texts(sums: Iterable[tuple[str, str]]) -> Iterator[bytes]:
    """Yield the text of many files in parts, because the whole of a large run is 150 MB."""
    items = iter(sums)
    while some := list(islice(items, 10_000)):
        yield _text(some)


def _text(sums: Iterable[tuple[str, str]]) -> bytes:
    lines = (_line(name, checksum) for name, checksum in sums if checksum != LINK)
    return os.fsencode("".join(lines))


def _line(name: str, checksum: str) -> str:
    """Return a line of sha256sum. It starts with a backslash if the name is escaped."""
    if not _ODD.search(name):
        return f"{checksum}  {name}\n"
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"\\{checksum}  {escaped}\n"


def read_checksums(text: str) -> dict[str, str]:
    """Return the checksums in a file of sha256sum, by name.

    Raises:
        ValueError: a line has another form.
    """
    sums: dict[str, str] = {}
    for line in text.split("\n")[:-1]:
        checksum, separator, name = line.removeprefix("\\").partition("  ")
        if not separator or len(checksum) != 64:
            raise ValueError(f"{line[:80]!r} is not a line of sha256sum")
        if line.startswith("\\"):
            name = re.sub(r"\\(.)", lambda match: _ESCAPED[match[1]], name)
        sums[name] = checksum
    return sums


def whole_checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of the run in `folder`, which can be signed.

    Raises:
        BadInput: the run contains symbolic links, or it is in the folder of another run.
    """
    with as_owner(folder):
        sums = checksums_of(folder)
    odd = {name: kind for name, kind in sums.items() if kind in (LINK, SPECIAL)}
    if odd:
        accepted = "only files: the target of a link can change after the signature"
        raise BadInput(
            *(InputError(f"{folder}/{_shown(name)}", "", odd[name], accepted) for name in odd)
        )
    for moved in _moved(folder):
        raise bad_input(folder, "", moved, "a folder with the name of its run")
    return sums


def sign(folder: Path, key: Path, sums: Mapping[str, str]) -> Path:
    """Write and sign ``SHA256SUMS`` of the run in `folder`; return the signature's path.

    The run may belong to another user. ssh-keygen gets the checksums and returns the signature by
    pipes, so that only this process reads the key and only whole new files are written.

    Args:
        folder: the run.
        key: the private key.
        sums: the result of `whole_checksums`.

    Raises:
        BadInput: the key is missing, or ssh-keygen refuses.
    """
    if not key.is_file():
        raise bad_input(
            "--key", "", f"{key}: no such file", "a private ssh key, or an agent's .pub"
        )
    content = _text(sums.items())
    words = ("-f", str(key), "-n", NAMESPACE)
    signature = keygen("sign", *words, place="--key", content=content)
    with as_owner(folder):
        write_whole_bytes(folder / NAME, content)
        write_whole_bytes(folder / SIGNATURE, signature.encode())
    return folder / SIGNATURE


def is_signed(folder: Path) -> bool:
    """Return whether the run in `folder` has a signature."""
    return (folder / SIGNATURE).exists()


def verify(folder: Path, signers: Path, revoked: Path | None = None) -> Checked:
    """Check the signature, then each file.

    Args:
        folder: the run.
        signers: the accepted keys with their times of validity (ssh-keygen(1), ALLOWED SIGNERS).
        revoked: the keys that are no longer accepted: a list of public keys, or a KRL.

    Raises:
        BadInput: the run is unsigned, its signer is not among `signers` or not at this time, or the
            key is revoked.
    """
    _check_outside(folder, "--signers", signers, "an allowed_signers file")
    if revoked:
        _check_outside(folder, "--revoked", revoked, "a list of revoked keys, or a KRL")
    with as_owner(folder):
        path, signature = folder / NAME, folder / SIGNATURE
        raw, signed = (_content(each) for each in (path, signature))
    with tempfile.NamedTemporaryFile() as copy:  # ssh-keygen has the rights of root
        copy.write(signed)
        copy.flush()
        names = ("-f", str(signers), "-s", copy.name, "-n", NAMESPACE)
        signer, changed = _checked(raw, names, path, signature, revoked)
    sha256 = hashlib.sha256(raw).hexdigest()
    if changed:
        return Checked(signer, (changed,), sha256)
    with as_owner(folder):
        present = checksums_of(folder)
        wrong = [f"{_shown(name)}: {LINK}" for name in present if present[name] == LINK]
        present = {name: checksum for name, checksum in present.items() if checksum != LINK}
        try:
            listed = read_checksums(os.fsdecode(raw))
        except (ValueError, KeyError) as error:
            raise bad_input(path, "", str(error), "the output of sha256sum") from None
        wrong += [*_differences(listed, present), *_moved(folder)]
        return Checked(signer, tuple(wrong), sha256, present)


def _content(path: Path) -> bytes:
    """Return the content of a file with checksums, or of a signature.

    Raises:
        BadInput: it is missing, or not a regular file.
    """
    try:
        return read_regular(path)
    except FileNotFoundError:
        found = "no such file: the run is unsigned"
        raise bad_input(path, "", found, "proofmark sign RUN") from None


def _checked(
    raw: bytes, names: Sequence[str], path: Path, signature: Path, revoked: Path | None
) -> tuple[str, str]:
    """Return the signer of the checksums `raw`, and the error if they changed since.

    Args:
        raw: the content of `path`.
        names: the words of ssh-keygen that name signers, signature and namespace.
        path: the file with the checksums.
        signature: the signature, for messages.
        revoked: see `verify`.

    Raises:
        BadInput: see `verify`.
    """
    principals = keygen("find-principals", *names[:4], place=str(signature)).splitlines()
    signer = principals[0].strip()
    revocations = ("-r", str(revoked)) if revoked else ()
    good = run_keygen("verify", "-I", signer, *names, *revocations, content=raw)
    if good.returncode:
        if revoked and not run_keygen("verify", "-I", signer, *names, content=raw).returncode:
            found = f"{revoked}: {one_line(good.stderr) or f'the key of {signer} is revoked'}"
            raise bad_input("--revoked", "", found, "a signature by a key that is not revoked")
        if run_keygen("check-novalidate", *names[2:], content=raw).returncode:
            return signer, f"{path.name}: changed after it was signed"
        problem = one_line(good.stderr) or "a signature that is not accepted"
        raise bad_input(names[1], "", problem, f"a signer of {NAMESPACE}")
    return signer, ""


def _check_outside(folder: Path, option: str, file: Path, accepted: str) -> None:
    """Refuse a file that is missing or in the run: a run cannot name its own signers."""
    if not file.is_file():
        raise bad_input(option, "", f"{file}: no such file", accepted)
    if folder.resolve() in file.resolve().parents:
        raise bad_input(option, "", f"{file}: in the run", f"{accepted} outside the run")


def _moved(folder: Path) -> Iterator[str]:
    """Yield an error if the files belong to another run than the folder's name says."""
    name = RunFiles(folder).identity.name
    run_id = run_id_of(folder)
    if run_id is None:
        yield f"{name}: missing or damaged"
    elif run_id != folder.name:
        yield f"{name}: of the run {run_id}"


def _differences(listed: Mapping[str, str], present: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*listed, *present}):
        if name not in present:
            yield f"{_shown(name)}: removed"
        elif name not in listed:
            yield f"{_shown(name)}: added"
        elif listed[name] != present[name]:
            yield f"{_shown(name)}: changed"


def _shown(name: str) -> str:
    """Return a printable form of a file name, which may contain any bytes."""
    return name if name.isprintable() else os.fsencode(name).decode(errors="backslashreplace")
