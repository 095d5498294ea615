"""Bundles: an archive with all files for an installation without a network, and their SHA-256.

The archive is an uncompressed tar, because its files are compressed already. A damaged byte then
damages one file, which a message can name, and not all files after it.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.processes import environment_of, run_command, run_git
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import size
from proofmark.software.build_process import Say

MANIFEST = "manifest.json"
LONGEST_MANIFEST = 64 << 20
"""Bytes; the manifest of a bundle of 100,000 files has 16 MB."""
FAILED = "failed to fetch."
"""The words in Spack's output before the specs whose sources are missing."""


class Manifest(StrictModel):
    """The content of a bundle.

    Attributes:
        commits: the commits of Spack and of its recipes, by name.
        lock: SHA-256 of the lock that the bundle was made for.
        python: the version of Python that the wheels are for, ``3.11``.
    """

    arch: str
    os: str
    commits: dict[str, str]
    lock: str
    python: str
    packages: tuple[str, ...]
    files: dict[str, str]


def python_version() -> str:
    """Return major and minor version of the running Python, ``3.11``."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def pack(folder: Path, target: Path, **facts: Any) -> Manifest:
    """Write all regular files of `folder` into the bundle `target`; return its manifest.

    Links are left out, because Spack reads the files and not the links of a mirror. `facts` are
    the other values of the manifest.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    sums = {path.relative_to(folder).as_posix(): digest(path) for path in files}
    manifest = Manifest(files=sums, python=python_version(), **facts)
    manifest_file = folder / MANIFEST
    manifest_file.write_text(manifest.model_dump_json(indent=1) + "\n")
    fresh = target.with_name(f"{target.name}.new")
    with tarfile.open(fresh, "w") as tar:
        for path in (manifest_file, *files):
            tar.add(path, path.relative_to(folder).as_posix(), filter=_without_owner_and_time)
    fresh.rename(target)
    return manifest


def _without_owner_and_time(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove owner and time from a member, so that equal content gives an equal bundle."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack(bundle: Path, folder: Path, lock: Path, say: Say) -> Path:
    """Unpack `bundle` below `folder`, check each file, and return the new folder.

    If a bundle with an equal manifest was unpacked before, its folder is returned. All members are
    checked before anything is written.

    Raises:
        BadInput: the file is not a bundle, was made for another lock or Python, or is damaged;
            names each file that is damaged, missing, not in the manifest, outside of the folder,
            or not a regular file.
    """
    try:
        with tarfile.open(bundle, "r:") as tar:
            members = tar.getmembers()
            manifest = _read_manifest(tar, members[:1], bundle)
            _check_lock_and_python(manifest, bundle, lock)
            if mistakes := list(_wrong_members(members[1:], manifest, bundle)):
                raise BadInput(*mistakes)
            name = hashlib.sha256(manifest.model_dump_json().encode()).hexdigest()[:16]
            target = folder / name
            if target.is_dir():
                return target
            fresh = folder / f"{name}.new"
            shutil.rmtree(fresh, ignore_errors=True)
            say(f"checking and unpacking {bundle}: {size(bundle.stat().st_size)}")
            for member in members[1:]:
                path, content = fresh / member.name, tar.extractfile(member)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:
                    shutil.copyfileobj(content or io.BytesIO(), file)
                path.chmod(0o755 if member.mode & 0o100 else 0o644)
    # tarfile calls itself for each header before a member.
    except (tarfile.TarError, OSError, RecursionError) as error:
        accepted = "a complete bundle that `make bundle` wrote"
        raise bad_input(bundle, "", str(error), accepted) from None
    mistakes = []
    for name, expected in manifest.files.items():
        if (actual := digest(fresh / name)) != expected:
            found = f"a damaged file, SHA-256 {actual[:12]}"
            accepted = f"SHA-256 {expected[:12]} of the manifest"
            mistakes.append(InputError(str(bundle), name, found, accepted))
    if mistakes:
        shutil.rmtree(fresh)
        raise BadInput(*mistakes)
    fresh.rename(target)
    return target


def _read_manifest(
    tar: tarfile.TarFile, first: Sequence[tarfile.TarInfo], bundle: Path
) -> Manifest:
    file = tar.extractfile(first[0]) if first and first[0].isreg() else None
    if file is None or first[0].name != MANIFEST or first[0].size > LONGEST_MANIFEST:
        name = first[0].name if first else "nothing"
        raise bad_input(bundle, "", f"{name} as the first file", MANIFEST)
    try:
        return Manifest.model_validate_json(file.read())
    except ValidationError as error:
        raise bad_input(bundle, MANIFEST, str(error.errors()[0]["msg"]), "a manifest") from None


def _check_lock_and_python(manifest: Manifest, bundle: Path, lock: Path) -> None:
    if manifest.lock != digest(lock):
        system = f"{manifest.arch} {manifest.os}"
        found = f"a bundle made for another lock of {system} ({manifest.lock[:12]})"
        raise bad_input(bundle, "lock", found, f"{lock} ({digest(lock)[:12]})")
    if manifest.python != python_version():
        found = f"wheels for {manifest.python}"
        raise bad_input(bundle, "python", found, f"wheels for {python_version()}")


def _wrong_members(
    members: Iterable[tarfile.TarInfo], manifest: Manifest, bundle: Path
) -> Iterator[InputError]:
    """Yield an error for each member that may not be written, and for each that is missing.

    A member is a regular file below the new folder, and is listed in the manifest. No member is
    written twice or through another one.
    """
    listed, seen = manifest.files, set[str]()
    for member in members:
        name = member.name
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or f"{path}" != name:
            accepted = "a relative path without '..', '.' and doubled slashes"
            yield InputError(str(bundle), name, "a path that leaves the folder", accepted)
        elif not member.isreg() or member.issparse():
            yield InputError(str(bundle), name, "a link or a special file", "regular files")
        elif name not in listed:
            found = "a file that is not in the manifest"
            yield InputError(str(bundle), name, found, "the files of the manifest")
        elif name in seen:
            yield InputError(str(bundle), name, "the same path twice", "each file once")
        elif any(f"{parent}" in listed for parent in path.parents):
            yield InputError(str(bundle), name, "a file below another file", "folders of files")
        seen.add(name)
    for name in listed:
        if name not in seen:
            yield InputError(str(bundle), name, "no such file", "the files of the manifest")


def copy_repository(checkout: Path, tag: str, target: Path) -> None:
    """Copy the commit that is checked out, without its history, into a new bare repository.

    Raises:
        BadInput: git failed.
    """
    target.mkdir(parents=True)
    source = f"file://{checkout.resolve()}"
    fetch = ("fetch", "--quiet", "--no-tags", "--depth=1", source, f"HEAD:refs/tags/{tag}")
    for words in (("init", "--quiet", "--bare"), fetch):
        done = run_git(target, *words)
        if done.returncode != 0:
            raise bad_input(checkout, "", done.stderr.strip(), "a git checkout")
    shutil.rmtree(target / "hooks", ignore_errors=True)
    # A bundle has no empty folders, and git requires this one.
    (target / "refs/.keep").touch()


def download_wheels(locks: Iterable[Path], target: Path) -> None:
    """Download the distributions of the locks of hashes, as wheels for this Python.

    Raises:
        BadInput: pip failed.
    """
    for lock in locks:
        command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input"]
        command += ["--disable-pip-version-check", "--require-hashes", "--no-deps"]
        command += ["--only-binary=:all:", f"--dest={target}", "-r", str(lock)]
        done = run_command(command, environment=environment_of("pip"))
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise bad_input(lock, "", last, "wheels for this Python")


def download_sources(
    command: Iterable[str], environment: Mapping[str, str], target: Path, hashes: Iterable[str]
) -> None:
    """Download the sources of specs into the mirror `target`; Spack checks their checksums.

    Raises:
        BadInput: a source is missing; repeats the message of Spack, which names it.
    """
    specs = [f"/{spec_hash}" for spec_hash in hashes]
    words = [*command, "mirror", "create", "-d", str(target), *specs]
    done = run_command(words, environment=environment)
    if done.returncode != 0:
        _, _, names = done.stdout.partition(FAILED)
        missing = " ".join(names.split()) or " / ".join(done.stderr.strip().splitlines()[-3:])
        accepted = "every source, with its checksum"
        raise bad_input("spack mirror create", "", f"missing sources: {missing}", accepted)
