"""The manifest of a run: SHA-256 of every file, signed with an ssh key, checked by anybody."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import ValidationError

from proofmark.common.command import run_command
from proofmark.common.errors import bad_input
from proofmark.common.files import read_bytes, replacing
from proofmark.common.parallel import parallel_map
from proofmark.common.strict_model import StrictModel

NAME, SIGNATURE = "manifest.json", "manifest.json.sig"
NAMESPACE = "proofmark-run"
"""Binds a signature to its purpose: one made for another is none for a run (ssh-keygen, -n)."""
_NOT_LISTED = frozenset({NAME, SIGNATURE, "lock"})
"""The lock tells who works on a run now; it is no part of what the run found."""


class _Listed(StrictModel):
    """One file as ``manifest.json`` has it."""

    sha256: str
    bytes: int
    link: bool = False


class _Signed(StrictModel):
    """The form of ``manifest.json``."""

    algorithm: Literal["sha256"]
    run: str
    files: dict[str, _Listed]


class Entry(NamedTuple):
    """One file; a symbolic link is its target's name, not what stands there."""

    sha256: str
    bytes: int
    link: bool = False


@dataclass(frozen=True)
class Manifest:
    """All files of a run by their path in it."""

    run: str
    files: Mapping[str, Entry]
    algorithm: Literal["sha256"] = "sha256"


@dataclass(frozen=True)
class Checked:
    """What `verify` found: the signer, and every file that is not as it was signed."""

    signer: str
    wrong: tuple[str, ...]


def manifest_of(folder: Path) -> Manifest:
    """Return the manifest of the run in `folder` as it stands now.

    Raises:
        BadInput: there is something in it that is neither file nor folder.
    """
    return Manifest(run=folder.name, files=dict(sorted(_entries(folder))))


def write_manifest(folder: Path) -> Path:
    """Write ``manifest.json``; the same files give the same bytes."""
    path = folder / NAME
    made = manifest_of(folder)
    head = {"algorithm": made.algorithm, "run": made.run, "files": {}}
    with replacing(path) as file:
        file.write(json.dumps(head, indent=1).removesuffix("{}\n}") + "{")
        between = "\n"
        for name, (sha256, size, link) in made.files.items():
            told = ', "link": true' if link else ""
            entry = f'{{"sha256": "{sha256}", "bytes": {size}{told}}}'
            file.write(f"{between}  {json.dumps(name)}: {entry}")
            between = ",\n"
        file.write("\n }\n}\n")
    return path


def _entries(folder: Path) -> Iterator[tuple[str, Entry]]:
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


_ALONE = 2000
"""Folders up to which a second process is not worth its start."""

Entries = list[tuple[str, Entry]]


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
                target = os.fsencode(os.readlink(each.path))  # noqa: PTH115
                entries.append((_shown(name), _entry(target, link=True)))
            elif each.is_dir():
                folders.append(name)
            elif name in _NOT_LISTED:
                continue
            elif each.is_file():
                entries.append((_shown(name), _entry(read_bytes(each.path))))
            else:
                raise bad_input(each.path, "", "no file and no folder", "files and folders")
    return entries, folders


def _shown(name: str) -> str:
    """Return a name that JSON can hold, also of a file whose name is no text."""
    return name if name.isascii() else os.fsencode(name).decode(errors="backslashreplace")


def _entry(content: bytes, *, link: bool = False) -> Entry:
    digest = hashlib.sha256(content).hexdigest()
    return Entry(sha256=digest, bytes=len(content), link=link)


def sign(folder: Path, key: Path) -> Path:
    """Write the manifest of the run in `folder` as it stands, sign it, return the signature.

    Raises:
        BadInput: there is no such key, or ssh-keygen refuses.
    """
    if not key.is_file():
        raise bad_input(
            "--key", "", f"{key}: no such file", "a private ssh key, or an agent's .pub"
        )
    path = write_manifest(folder)
    signature = folder / SIGNATURE
    signature.unlink(missing_ok=True)
    _keygen("sign", "-f", str(key), "-n", NAMESPACE, str(path), asked="--key")
    return signature


def verify(folder: Path, signers: Path) -> Checked:
    """Check the signature, then every file.

    `signers` is an ``allowed_signers`` file (ssh-keygen(1)) that comes from outside the run: a key
    that the run brought along would vouch for itself. Nothing else in the run is interpreted,
    whatever has become of it.

    Raises:
        BadInput: the run is unsigned, or its signer is not among `signers`.
    """
    path, signature = folder / NAME, folder / SIGNATURE
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
    content = path.read_bytes().decode(errors="replace")  # what is no text was not signed
    good = _run("verify", "-I", signer, *names, content=content)
    if good.returncode:
        if _run("check-novalidate", *names[2:], content=content).returncode:
            return Checked(signer, (f"{NAME}: changed after it was signed",))
        said = good.stderr.strip()
        raise bad_input(signers, "", said or "not accepted", f"a signer of {NAMESPACE}")
    try:
        listed = _Signed.model_validate_json(content)
    except ValidationError as error:
        raise bad_input(path, "", f"unreadable: {error}", "a manifest") from None
    files = {name: Entry(each.sha256, each.bytes, each.link) for name, each in listed.files.items()}
    return Checked(signer, tuple(_differences(files, manifest_of(folder).files)))


def _differences(listed: Mapping[str, Entry], there: Mapping[str, Entry]) -> Iterator[str]:
    for name in sorted({*listed, *there}):
        if name not in there:
            yield f"{name}: removed"
        elif name not in listed:
            yield f"{name}: added"
        elif listed[name] != there[name]:
            yield f"{name}: changed"


def _run(verb: str, *words: str, content: str = "") -> subprocess.CompletedProcess[str]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise bad_input("ssh-keygen", "", "not found", "OpenSSH 8.2 or later")
    command = [program, "-Y", verb, *words]
    return run_command(command, text=content)


def _keygen(verb: str, *words: str, asked: str) -> str:
    done = _run(verb, *words)
    if done.returncode:
        said = " ".join(done.stderr.split())
        what = "signer unknown" if verb == "find-principals" else "ssh-keygen refuses"
        raise bad_input(asked, "", f"{what}: {said}", "a key of a signer")
    return done.stdout
