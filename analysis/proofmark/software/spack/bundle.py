"""One archive with all that an install without a network needs, each file by its SHA-256.

The archive is a plain tar: what is in it is compressed already, and a damaged byte then spoils
one file, which can be named, and not the stream.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from proofmark.common.command import run_command
from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.strict_model import StrictModel
from proofmark.common.text import size
from proofmark.software.build_process import Say

MANIFEST = "manifest.json"
CHUNK = 1 << 20
FAILED = "failed to fetch."
"""After it, Spack names the specs whose sources it could not get."""


class Manifest(StrictModel):
    """What a bundle holds.

    Attributes:
        commits: of Spack and its recipes, by name.
        lock: SHA-256 of the lock that it was made for.
        python: the Python for which it has wheels, ``3.11``.
        packages: the roots of the lock whose sources are in it.
        files: SHA-256 by path.
    """

    arch: str
    os: str
    commits: dict[str, str]
    lock: str
    python: str
    packages: tuple[str, ...]
    files: dict[str, str]


def python_version() -> str:
    """Return the Python that runs this, as wheels count: major and minor."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def pack(folder: Path, target: Path, **facts: Any) -> Manifest:
    """Write the bundle `target` of all regular files in `folder`; return its manifest.

    Links are left out: Spack's mirror has them for people, and reads the files that they name.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    sums = {path.relative_to(folder).as_posix(): digest(path) for path in files}
    manifest = Manifest(files=sums, python=python_version(), **facts)
    noted = folder / MANIFEST
    noted.write_text(manifest.model_dump_json(indent=1) + "\n")
    fresh = target.with_name(f"{target.name}.new")
    with tarfile.open(fresh, "w") as tar:
        for path in (noted, *files):
            tar.add(path, path.relative_to(folder).as_posix(), filter=_anybody)
    fresh.rename(target)
    return manifest


def _anybody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Take owner and time out of a member: equal content gives an equal bundle."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack(bundle: Path, folder: Path, lock: Path, say: Say) -> Path:
    """Unpack `bundle` into `folder`, every file checked, and return where it now is.

    What was unpacked from a bundle with the same manifest is taken as it is.

    Raises:
        BadInput: it is no bundle, was made for another lock or Python, or is damaged; each file
            that is damaged, missing or not in the manifest is named.
    """
    try:
        with tarfile.open(bundle, "r:") as tar:
            manifest = _read_manifest(tar, bundle)
            _refuse_other(manifest, bundle, lock)
            name = hashlib.sha256(manifest.model_dump_json().encode()).hexdigest()[:16]
            target = folder / name
            if target.is_dir():
                return target
            fresh = folder / f"{name}.new"
            shutil.rmtree(fresh, ignore_errors=True)
            say(f"checking and unpacking {bundle}: {size(bundle.stat().st_size)}")
            mistakes = list(_extract(tar, manifest, fresh, bundle))
    except (tarfile.TarError, OSError) as error:
        raise bad_input(bundle, "", str(error), "a whole bundle of `make bundle`") from None
    if mistakes:
        shutil.rmtree(fresh)
        raise BadInput(*mistakes)
    fresh.rename(target)
    return target


def _read_manifest(tar: tarfile.TarFile, bundle: Path) -> Manifest:
    first = tar.next()
    file = tar.extractfile(first) if first and first.name == MANIFEST else None
    if file is None:
        found = first.name if first else "nothing"
        raise bad_input(bundle, "", f"{found} at its beginning", f"{MANIFEST}")
    try:
        return Manifest.model_validate_json(file.read())
    except ValidationError as error:
        raise bad_input(bundle, MANIFEST, str(error.errors()[0]["msg"]), "a manifest") from None


def _refuse_other(manifest: Manifest, bundle: Path, lock: Path) -> None:
    if manifest.lock != digest(lock):
        made = f"made for another lock of {manifest.arch} {manifest.os} ({manifest.lock[:12]})"
        raise bad_input(bundle, "lock", made, f"{lock} ({digest(lock)[:12]})")
    if manifest.python != python_version():
        raise bad_input(bundle, "python", manifest.python, f"wheels for {python_version()}")


def _extract(
    tar: tarfile.TarFile, manifest: Manifest, folder: Path, bundle: Path
) -> Iterable[InputError]:
    """Write each member whose digest fits; yield what does not."""
    left = dict(manifest.files)
    for member in tar:
        if member.name == MANIFEST:
            continue
        expected = left.pop(member.name, None)
        content = tar.extractfile(member) if member.isfile() else None
        if expected is None or content is None:
            yield InputError(str(bundle), member.name, "not in the manifest", "what it lists")
            continue
        path = folder / member.name
        path.parent.mkdir(parents=True, exist_ok=True)
        seen = hashlib.sha256()
        with path.open("wb") as file:
            while chunk := content.read(CHUNK):
                seen.update(chunk)
                file.write(chunk)
        path.chmod(0o755 if member.mode & 0o100 else 0o644)
        if seen.hexdigest() != expected:
            found = f"damaged, SHA-256 {seen.hexdigest()[:12]}"
            yield InputError(
                str(bundle), member.name, found, f"{expected[:12]}, as the manifest says"
            )
    for name in left:
        yield InputError(str(bundle), name, "missing", "what the manifest lists")


def bare(checkout: Path, tag: str, target: Path) -> None:
    """Copy the commit that is checked out, without its history, into a bare repository.

    Raises:
        BadInput: git could not.
    """
    target.mkdir(parents=True)
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    source = f"file://{checkout.resolve()}"
    fetch = ("fetch", "--quiet", "--no-tags", "--depth=1", source, f"HEAD:refs/tags/{tag}")
    for words in (("init", "--quiet", "--bare"), fetch):
        done = run_command(["git", "-C", str(target), *words], environment=environment)
        if done.returncode != 0:
            raise bad_input(checkout, "", done.stderr.strip(), "a git checkout")
    shutil.rmtree(target / "hooks", ignore_errors=True)
    # git makes empty folders that an archive of files does not carry, and wants this one.
    (target / "refs/.keep").touch()


def wheels(locks: Iterable[Path], target: Path) -> None:
    """Download what the locks of hashes name, as wheels for this Python.

    Raises:
        BadInput: pip could not.
    """
    for lock in locks:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input"]
        command += ["--disable-pip-version-check", "--require-hashes", "--no-deps"]
        command += ["--only-binary=:all:", f"--dest={target}", "-r", str(lock)]
        done = run_command(command)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise bad_input(lock, "", last, "wheels for this Python")


def sources(
    command: Iterable[str], environment: Mapping[str, str], target: Path, specs: Iterable[str]
) -> None:
    """Let Spack put the sources of `specs` (hashes) into a mirror; Spack checks their checksums.

    Raises:
        BadInput: a source cannot be had; Spack's words name it.
    """
    words = [*command, "mirror", "create", "-d", str(target), *(f"/{each}" for each in specs)]
    done = run_command(words, environment=environment)
    if done.returncode != 0:
        _, _, named = done.stdout.partition(FAILED)
        told = " ".join(named.split()) or " / ".join(done.stderr.strip().splitlines()[-3:])
        raise bad_input("sources that cannot be had", "", told, "each, with its checksum")
