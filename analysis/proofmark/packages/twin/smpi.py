"""MPI programs that are compiled against SimGrid's SMPI: real sources, simulated communication."""

from __future__ import annotations

import hashlib
import re
import shutil
import tarfile
import tempfile
from collections.abc import Collection, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Annotated
from urllib.error import URLError
from urllib.request import urlopen

from pydantic import Field

from proofmark.cases.vocabulary import Text
from proofmark.common.errors import bad_input
from proofmark.common.files import sha256_of
from proofmark.common.processes import environment_of, run_command
from proofmark.common.progress_lines import say
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import load
from proofmark.site.inventory import Site
from proofmark.software.build_process import run
from proofmark.software.installed import Installed, Provided
from proofmark.software.provider import Provider

SOURCES = Path("twin/sources.yml")
"""In ``environments/``: the releases, their checksums, and how they are compiled."""
COMPILER = "smpicc"
LAUNCHER = "smpirun"
SIMGRID = "SimGrid (Debian: libsimgrid-dev)"
TIMEOUT_S = 300
PRETEND = {"SMPI_PRETEND_CC": "1"}
"""For ``configure``: the compiler makes ordinary programs, which run without a simulator. The tests
of ``configure`` are such programs."""


class Release(StrictModel):
    """A release of a package, and how it is compiled; ``sources.yml`` explains the keys."""

    version: Text
    url: Annotated[str, Field(pattern=r"^https://")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    folder: Text
    configure: tuple[Text, ...] | None = None
    make: tuple[Text, ...]
    programs: dict[str, Text]

    @property
    def archive(self) -> str:
        """The file name of the archive."""
        return self.url.rpartition("/")[2]

    @property
    def spec(self) -> str:
        """The commands of its compilation."""
        configure = () if self.configure is None else ("configure", *self.configure)
        return " ".join((*configure, "make", *self.make))


class Releases(StrictModel):
    """The content of ``sources.yml``: the releases by package."""

    packages: dict[str, Release]


def releases(environments: Path) -> Mapping[str, Release]:
    """Return the release of each package.

    Raises:
        BadInput: the file is wrong.
    """
    return load(environments / SOURCES, Releases).packages


def release_of(environments: Path, package: str) -> Release:
    """Return the release of a package.

    Raises:
        BadInput: no release of the package is known.
    """
    known = releases(environments)
    if package not in known:
        found = f"no source of {package}"
        raise bad_input(environments / SOURCES, package, found, ", ".join(known))
    return known[package]


def simulator_version() -> tuple[int, int]:
    """Return the major and the minor number of the version of this machine's SimGrid.

    Raises:
        BadInput: SimGrid is not installed, or does not print its version.
    """
    try:
        printed = run_command([LAUNCHER, "-version"], timeout_s=TIMEOUT_S).stdout
    except FileNotFoundError:
        raise bad_input(LAUNCHER, "", "no such program", SIMGRID) from None
    number = re.search(r"version (\d+)\.(\d+)", printed)
    if not number:
        raise bad_input(f"{LAUNCHER} -version", "", repr(printed[:80]), "SimGrid version 3.32")
    return int(number[1]), int(number[2])


def prefix_of(release: Release, package: str, prefixes: Path) -> Path:
    """Return the folder of a package below `prefixes`; another source has another folder."""
    content = f"{release.sha256} {release.configure} {release.make}"
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    return prefixes / f"twin-{package}-{release.version}-{digest}"


def missing_programs(
    environments: Path, programs: Mapping[str, Collection[str]], prefixes: Path
) -> list[str]:
    """Return the packages whose programs are not compiled."""
    found = []
    for package in programs:
        release = release_of(environments, package)
        if not prefix_of(release, package, prefixes).is_dir():
            found.append(f"{package}@{release.version} for SMPI")
    return found


def build(environments: Path, package: str, prefixes: Path, mirror: Path | None) -> Provided:
    """Compile a package for SMPI, if that is not done, and return it.

    Args:
        environments: the folder ``environments/``.
        package: the name that the cases use.
        mirror: a folder with the archive; None: it is downloaded.

    Raises:
        BadInput: the source cannot be downloaded, has another checksum, or cannot be compiled.
        Stopped: this process received SIGINT or SIGTERM.
    """
    release = release_of(environments, package)
    prefix = prefix_of(release, package, prefixes)
    if not prefix.is_dir():
        if shutil.which(COMPILER) is None:
            raise bad_input(COMPILER, "", "no such program", SIMGRID)
        prefixes.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=prefixes, prefix=".twin-") as folder:
            made = _compiled(release, package, Path(folder), mirror)
            made.rename(prefix)
    return Provided(
        version=release.version,
        spec=release.spec,
        prefix=f"{prefix}",
        programs={
            name: f"{prefix}/bin/{Path(path).name}" for name, path in release.programs.items()
        },
    )


def _compiled(release: Release, package: str, folder: Path, mirror: Path | None) -> Path:
    """Return a folder below `folder` with the compiled programs in ``bin``."""
    archive = _archive(release, package, folder, mirror)
    unpack(archive, folder)  # its checksum is right
    source = folder / release.folder
    say(f"{package}: {release.spec}")
    log = folder / "build.log"
    if release.configure is not None:
        command = [f"{source / 'configure'}", *release.configure]
        done = run(command, environment_of(own=PRETEND), log, folder=source)
        _check(package, "configure", done.returncode, log)
    done = run(["make", *release.make], environment_of(), log, folder=source)
    _check(package, "make", done.returncode, log)
    target = folder / "made"
    (target / "bin").mkdir(parents=True)
    for path in release.programs.values():
        shutil.copy2(source / path, target / "bin" / Path(path).name)
    return target


def _check(package: str, command: str, code: int, log: Path) -> None:
    """Raise `BadInput` with the last lines of `log` if a command of a compilation failed."""
    if code:
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
        raise bad_input(package, command, f"exit code {code}: {' | '.join(last)}", "a program")


def _archive(release: Release, package: str, folder: Path, mirror: Path | None) -> Path:
    """Return the archive of a release, whose checksum is right."""
    path = mirror / release.archive if mirror else folder / release.archive
    accepted = f"{release.url}, or a folder with {release.archive} (--sources)"
    try:
        if mirror is None:
            say(f"{package}: downloading {release.url}")
            with urlopen(release.url, timeout=TIMEOUT_S) as answer, path.open("wb") as file:
                shutil.copyfileobj(answer, file)
        digest = sha256_of(path)
    except (URLError, HTTPException, OSError) as error:
        raise bad_input(package, "source", f"not available: {error}", accepted) from None
    if digest != release.sha256:
        found = f"{path.name} with the SHA-256 {digest}"
        raise bad_input(package, "sha256", found, release.sha256)
    return path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar `archive`, compressed or not, into `folder`.

    Where Python has the filter ``data``, it refuses members that are no files, folders or links, or
    that leave the folder. Python 3.11.2 of Debian 12 has no filters: the caller checks the content.

    Raises:
        tarfile.TarError: it is not a tar archive, or a member is refused.
    """
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)


class TwinPrograms(Provider):
    """Programs that are compiled against SimGrid's SMPI."""

    def missing(self) -> list[str]:
        """Return the packages that are not compiled."""
        request = self.request
        return missing_programs(request.kit / "environments", request.programs, request.prefixes)

    def install(self) -> Installed:
        """Compile the packages from the releases of their projects.

        Raises:
            BadInput: a source is not available, or cannot be compiled.
        """
        request = self.request
        environments, mirror = request.kit / "environments", request.sources.mirror
        packages = {
            name: build(environments, name, request.prefixes, mirror) for name in request.programs
        }
        return Installed(origin="twin", packages=packages)

    @classmethod
    def packages(cls, kit: Path, site: Site) -> Collection[str]:
        """Return the packages whose sources are known."""
        return releases(kit / "environments").keys()

    @classmethod
    def programs(cls, kit: Path, site: Site) -> Mapping[str, Collection[str]]:
        """Return, for each package, the names of its compiled programs."""
        known = releases(kit / "environments")
        return {package: release.programs.keys() for package, release in known.items()}
