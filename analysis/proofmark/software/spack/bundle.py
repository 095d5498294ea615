"""Bundles: a tar with all files for an installation without a network, and their ``SHA256SUMS``.

The archive is an uncompressed tar, because its files are compressed already. A damaged byte then
damages one file, which a message can name, and not all files after it.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from proofmark.common.errors import InputError, bad_input, refuse
from proofmark.common.processes import run_command, run_git
from proofmark.common.progress_lines import say
from proofmark.common.text import size
from proofmark.software.spack.installation import HASHED, PIP, run_python

SUMS = "SHA256SUMS"
"""The file of a bundle that `sha256sum --check` reads."""
PYTHON = "python"
"""The file of a bundle with the version of Python that its wheels are for, ``3.11``."""
LOCK = "spack.lock"
"""The file of a bundle with the lock that it was made for."""
FAILED = "failed to fetch."
"""The words in Spack's output before the specs whose sources are missing."""


def python_version() -> str:
    """Return major and minor version of the running Python, ``3.11``."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def pack(folder: Path, target: Path, lock: Path) -> int:
    """Write all regular files of `folder` into the bundle `target`; return their number.

    Links are left out, because Spack reads the files and not the links of a mirror.
    """
    shutil.copy(lock, folder / LOCK)
    (folder / PYTHON).write_text(f"{python_version()}\n")
    (folder / SUMS).unlink(missing_ok=True)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    sums = [f"{digest(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    (folder / SUMS).write_text("".join(sums))
    fresh = target.with_name(f"{target.name}.new")
    with tarfile.open(fresh, "w") as tar:
        for path in (folder / SUMS, *files):
            tar.add(path, path.relative_to(folder).as_posix(), filter=_without_owner_and_time)
    fresh.rename(target)
    return len(files)


def _without_owner_and_time(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove owner and time from a member, so that equal content gives an equal bundle."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack(bundle: Path, folder: Path, lock: Path) -> Path:
    """Unpack `bundle` below `folder`, check each file, and return the new folder.

    If an equal bundle was unpacked before, its folder is returned. Of another one nothing stays.

    Raises:
        BadInput: the file is not a bundle, was made for another lock or Python, or is damaged;
            names each file that is damaged, missing, or not in its sums.
    """
    accepted = "a complete bundle that `make bundle` wrote"
    if not bundle.is_file():
        raise bad_input(bundle, "", "no such file", accepted)
    target = folder / digest(bundle)[:16]
    if not target.is_dir():
        say(f"checking and unpacking {bundle}: {size(bundle.stat().st_size)}")
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as name:
            fresh = Path(name) / "fresh"
            try:
                with tarfile.open(bundle, "r:") as tar:
                    for member in tar:
                        _write(tar, member, fresh)
                mistakes = list(_damaged(fresh, bundle))
            # tarfile calls itself for each header before a member.
            except (tarfile.TarError, OSError, UnicodeError, RecursionError) as error:
                raise bad_input(bundle, "", str(error), accepted) from None
            refuse(mistakes)
            fresh.rename(target)
    if (made := digest(target / LOCK)) != digest(lock):
        found = f"a bundle made for another lock ({made[:12]})"
        raise bad_input(bundle, LOCK, found, f"{lock} ({digest(lock)[:12]})")
    if (made := (target / PYTHON).read_text().strip()) != python_version():
        raise bad_input(bundle, PYTHON, f"wheels for {made}", f"wheels for {python_version()}")
    return target


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write a member below `folder`, once, as a regular file.

    The filters of `tarfile` would do it. The Python of Debian 12 lacks them.
    """
    path, content = folder / member.name, tar.extractfile(member) if member.isreg() else None
    if content is None or ".." in path.parts or not path.is_relative_to(folder):
        raise tarfile.ExtractError(f"{member.name} is a link, a special file, or leaves the folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        shutil.copyfileobj(content, file)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)


def _damaged(folder: Path, bundle: Path) -> Iterator[InputError]:
    sums = {}
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        expected, _, name = line.partition("  ")
        sums[name] = expected
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name in sorted({*sums, *files, LOCK, PYTHON} - {SUMS}):
        actual = digest(folder / name) if name in files else ""
        if name not in sums:
            yield InputError(f"{bundle}", name, "a file without its sum", f"the files of {SUMS}")
        elif not actual:
            yield InputError(f"{bundle}", name, "no such file", f"the files of {SUMS}")
        elif actual != sums[name]:
            found = f"a damaged file, SHA-256 {actual[:12]}"
            yield InputError(f"{bundle}", name, found, f"SHA-256 {sums[name][:12]} of {SUMS}")


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
        command = [sys.executable, *PIP, "download", *HASHED, "--only-binary=:all:"]
        run_python(lock, [*command, f"--dest={target}", f"-r{lock}"])


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
