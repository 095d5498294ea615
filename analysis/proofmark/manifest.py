"""The manifest of a run: SHA-256 of every file, signed with an ssh key, checked by anybody."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from proofmark.errors import bad_input
from proofmark.runs import write_whole

NAME, SIGNATURE = "manifest.json", "manifest.json.sig"
NAMESPACE = "proofmark-run"
"""Binds a signature to its purpose: one made for another is none for a run (ssh-keygen, -n)."""
_NOT_LISTED = frozenset({NAME, SIGNATURE, "lock"})
"""The lock tells who works on a run now; it is no part of what the run found."""


class Entry(BaseModel):
    """One file; a symbolic link is its target's name, not what stands there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str
    bytes: int
    link: bool = False


class Manifest(BaseModel):
    """All files of a run by their path in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str
    algorithm: Literal["sha256"] = "sha256"
    files: dict[str, Entry]


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
    content = manifest_of(folder).model_dump(exclude_defaults=True)
    write_whole(path, json.dumps({"algorithm": "sha256", **content}, indent=1) + "\n")
    return path


def _entries(folder: Path) -> Iterator[tuple[str, Entry]]:
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for each in found:
                name = os.path.relpath(each.path, folder)
                if each.is_symlink():
                    target = os.fsencode(os.readlink(each.path))  # noqa: PTH115
                    yield _shown(name), _entry(target, link=True)
                elif each.is_dir():
                    waiting.append(each.path)
                elif name in _NOT_LISTED:
                    continue
                elif each.is_file():
                    with open(each.path, "rb") as file:  # noqa: PTH123 (a hundred thousand files)
                        yield _shown(name), _entry(file.read())
                else:
                    raise bad_input(each.path, "", "no file and no folder", "files and folders")


def _shown(name: str) -> str:
    """Return a name that JSON can hold, also of a file whose name is no text."""
    return os.fsencode(name).decode("utf-8", errors="backslashreplace")


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
    content = path.read_bytes()
    good = _run("verify", "-I", signer, *names, content=content)
    if good.returncode:
        if _run("check-novalidate", *names[2:], content=content).returncode:
            return Checked(signer, (f"{NAME}: changed after it was signed",))
        said = good.stderr.decode(errors="replace").strip()
        raise bad_input(signers, "", said or "not accepted", f"a signer of {NAMESPACE}")
    try:
        listed = Manifest.model_validate_json(content)
    except ValidationError as error:
        raise bad_input(path, "", f"unreadable: {error}", "a manifest") from None
    return Checked(signer, tuple(_differences(listed.files, manifest_of(folder).files)))


def _differences(listed: Mapping[str, Entry], there: Mapping[str, Entry]) -> Iterator[str]:
    for name in sorted({*listed, *there}):
        if name not in there:
            yield f"{name}: removed"
        elif name not in listed:
            yield f"{name}: added"
        elif listed[name] != there[name]:
            yield f"{name}: changed"


def _run(verb: str, *words: str, content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise bad_input("ssh-keygen", "", "not found", "OpenSSH 8.2 or later")
    command = [program, "-Y", verb, *words]
    return subprocess.run(command, input=content, capture_output=True, check=False)


def _keygen(verb: str, *words: str, asked: str) -> str:
    done = _run(verb, *words)
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())
        what = "signer unknown" if verb == "find-principals" else "ssh-keygen refuses"
        raise bad_input(asked, "", f"{what}: {said}", "a key of a signer")
    return done.stdout.decode(errors="replace")
