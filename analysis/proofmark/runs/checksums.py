"""The checksums of a run: ``SHA256SUMS``, signed with an ssh key; anybody checks both.

``sha256sum --check SHA256SUMS`` checks the files without this kit. ``ssh-keygen -Y verify`` checks
the signature.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from proofmark.common.command import run_command
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import read_bytes, write_whole_bytes
from proofmark.common.parallel import parallel_map
from proofmark.runs.files import RunFiles
from proofmark.runs.format import run_id_of
from proofmark.runs.old_manifest import OLD_MANIFEST, OLD_SIGNATURE, read_old_manifest

NAME, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
NAMESPACE = "proofmark-run"
"""Binds a signature to its purpose: one made for another is none for a run (ssh-keygen, -n)."""
_NOT_LISTED = frozenset({NAME, SIGNATURE, "lock"})
"""The lock tells who works on a run now; it is no part of what the run found."""
_LINK = "a symbolic link"
_ESCAPED = {"\\": "\\", "n": "\n", "r": "\r"}
_ALONE = 2000
"""Folders up to which a second process is not worth its start."""


@dataclass(frozen=True)
class Checked:
    """What `verify` found: the signer, and every file that is not as it was signed."""

    signer: str
    wrong: tuple[str, ...]


def checksums_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of the run in `folder`, by its path there.

    A symbolic link has `_LINK` instead: its target may be anything.

    Raises:
        BadInput: there is something in it that is neither file, link nor folder.
    """
    return dict(sorted(_entries(folder)))


def write_checksums(folder: Path) -> Path:
    """Write ``SHA256SUMS``; the same files give the same bytes. Symbolic links are left out."""
    path = folder / NAME
    sums = checksums_of(folder)
    text = "".join(_line(name, each) for name, each in sums.items() if each != _LINK)
    write_whole_bytes(path, os.fsencode(text))
    return path


def _line(name: str, checksum: str) -> str:
    """Return a line as sha256sum writes it: odd names are escaped, a backslash in front says so."""
    if not any(letter in name for letter in "\\\n\r"):
        return f"{checksum}  {name}\n"
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"\\{checksum}  {escaped}\n"


def read_checksums(text: str) -> dict[str, str]:
    """Return the checksums in a file of sha256sum, by name.

    Raises:
        ValueError: a line is none of sha256sum.
    """
    sums: dict[str, str] = {}
    for line in text.split("\n")[:-1]:
        checksum, separator, name = line.removeprefix("\\").partition("  ")
        if not separator or len(checksum) != 64:
            raise ValueError(f"{line[:80]!r} is no line of sha256sum")
        if line.startswith("\\"):
            name = re.sub(r"\\(.)", lambda match: _ESCAPED[match[1]], name)
        sums[name] = checksum
    return sums


Entries = list[tuple[str, str]]


def _entries(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield every file; the folders of many steps are read by as many processes as there are."""
    root = os.fspath(folder)
    found, folders = _listed(root, "")
    deep: list[str] = []
    for name in folders:
        own, inner = _listed(root, name)
        found += own
        deep += inner
    yield from found
    # A folder has a link of each one in it, where the file system counts them.
    large = sum(os.stat(f"{root}/{name}").st_nlink for name in deep) > _ALONE  # noqa: PTH116
    for own in parallel_map(partial(_below, root), deep, large=large):
        yield from own


def _below(root: str, folder: str) -> Entries:
    found: Entries = []
    waiting = [folder]
    while waiting:
        own, folders = _listed(root, waiting.pop())
        found += own
        waiting += folders
    return found


def _listed(root: str, folder: str) -> tuple[Entries, list[str]]:
    """Return the files in `folder`, and its folders, by their names from `root` on."""
    entries: Entries = []
    folders: list[str] = []
    before = f"{folder}/" if folder else ""
    with os.scandir(f"{root}/{folder}") as found:
        for each in found:
            name = f"{before}{each.name}"
            if each.is_symlink():
                entries.append((name, _LINK))
            elif each.is_dir():
                folders.append(name)
            elif name in _NOT_LISTED:
                continue
            elif each.is_file():
                entries.append((name, hashlib.sha256(read_bytes(each.path)).hexdigest()))
            else:
                raise bad_input(each.path, "", "no file and no folder", "files and folders")
    return entries, folders


def sign(folder: Path, key: Path) -> Path:
    """Write ``SHA256SUMS`` of the run in `folder` as it is now, sign it, return the signature.

    Raises:
        BadInput: there is no such key, ssh-keygen refuses, or the run contains symbolic links.
    """
    if not key.is_file():
        raise bad_input(
            "--key", "", f"{key}: no such file", "a private ssh key, or an agent's .pub"
        )
    links = [name for name, each in checksums_of(folder).items() if each == _LINK]
    if links:
        accepted = "files only: the target of a link can change after it was signed"
        raise BadInput(*(InputError(f"{folder / name}", "", _LINK, accepted) for name in links))
    path = write_checksums(folder)
    signature = folder / SIGNATURE
    signature.unlink(missing_ok=True)
    _keygen("sign", "-f", str(key), "-n", NAMESPACE, str(path), asked="--key")
    return signature


def is_signed(folder: Path) -> bool:
    """Return whether the run in `folder` has a signature."""
    return any((folder / name).exists() for name in (SIGNATURE, OLD_SIGNATURE))


def verify(folder: Path, signers: Path) -> Checked:
    """Check the signature, then every file.

    A run that an earlier version signed has ``manifest.json`` instead of ``SHA256SUMS``.

    Raises:
        BadInput: the run is unsigned, or its signer is not among `signers`.
    """
    old = not (folder / SIGNATURE).exists() and (folder / OLD_SIGNATURE).exists()
    path, signature = (
        (folder / OLD_MANIFEST, folder / OLD_SIGNATURE)
        if old
        else (folder / NAME, folder / SIGNATURE)
    )
    if not signers.is_file():
        raise bad_input("--signers", "", f"{signers}: no such file", "an allowed_signers file")
    if folder.resolve() in signers.resolve().parents:
        accepted = "a file from outside the run: it would vouch for itself"
        raise bad_input("--signers", "", f"{signers}: in the run", accepted)
    for each in (path, signature):
        if not each.is_file():
            raise bad_input(each, "", "no such file: the run is unsigned", "proofmark sign RUN")
    names = ("-f", str(signers), "-s", str(signature), "-n", NAMESPACE)
    found = _keygen("find-principals", *names[:4], asked=str(signature)).splitlines()
    signer = found[0].strip()
    raw = path.read_bytes()
    good = _run("verify", "-I", signer, *names, content=raw)
    if good.returncode:
        if _run("check-novalidate", *names[2:], content=raw).returncode:
            return Checked(signer, (f"{path.name}: changed after it was signed",))
        said = good.stderr.strip() or "not accepted"
        raise bad_input(signers, "", said, f"a signer of {NAMESPACE}")
    there = checksums_of(folder)
    if old:
        listed, there = read_old_manifest(path, folder, there)
    else:
        try:
            listed = read_checksums(os.fsdecode(raw))
        except (ValueError, KeyError) as error:
            raise bad_input(path, "", str(error), "what sha256sum writes") from None
    return Checked(signer, (*_differences(listed, there), *_moved(folder)))


def _moved(folder: Path) -> Iterator[str]:
    """Name a run whose files are in the folder of another."""
    own = run_id_of(folder)
    if own not in (None, folder.name):
        yield f"{RunFiles(folder).identity.name}: of the run {own}"


def _differences(listed: Mapping[str, str], there: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*listed, *there}):
        if name not in there:
            yield f"{_shown(name)}: removed"
        elif name not in listed:
            yield f"{_shown(name)}: added"
        elif listed[name] != there[name]:
            yield f"{_shown(name)}: changed"


def _shown(name: str) -> str:
    """Return a name that can be printed, also of a file whose name is no text."""
    return name if name.isprintable() else os.fsencode(name).decode(errors="backslashreplace")


def _run(verb: str, *words: str, content: bytes = b"") -> subprocess.CompletedProcess[str]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise bad_input("ssh-keygen", "", "not found", "OpenSSH 8.2 or later")
    return run_command([program, "-Y", verb, *words], text=os.fsdecode(content))


def _keygen(verb: str, *words: str, asked: str) -> str:
    done = _run(verb, *words)
    if done.returncode:
        said = " ".join(done.stderr.split())
        what = "signer unknown" if verb == "find-principals" else "ssh-keygen refuses"
        raise bad_input(asked, "", f"{what}: {said}", "a key of a signer")
    return done.stdout
