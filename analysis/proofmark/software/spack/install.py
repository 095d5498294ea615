"""Installs the packages of a plan from a committed lock, with Spack.

One process at a time installs into a folder.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import shutil
import textwrap
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from proofmark.common.errors import BadInput, InputError, bad_input, refuse
from proofmark.common.files import open_to_append
from proofmark.common.message import Message
from proofmark.common.printed_command import Part, PrintedCommand, of_person
from proofmark.common.progress_lines import say, while_working
from proofmark.common.text import counted, duration
from proofmark.software.build_failure import BuildCause, BuildFailure, refused
from proofmark.software.build_process import run
from proofmark.software.installed import (
    Installed,
    Provided,
    ProvisionRequest,
    Sources,
    find_programs,
    spellings,
)
from proofmark.software.spack.bundle import unpack
from proofmark.software.spack.installation import (
    CopiedEnvironment,
    SpackInstallation,
    bootstrap,
    check_path,
    installation_in,
)
from proofmark.software.spack.lock_check import PINS, check, load_mapping, read_target
from proofmark.software.spack.lock_file import Lock, Spec, build_of, derived_parts, read_lock
from proofmark.software.spack.lock_make import hashes_of_lock
from proofmark.software.spack.mirror import link, located_sources
from proofmark.software.spack.mpi_and_blas import (
    check_installed_mpi,
    check_linked,
    unchosen_variants,
)
from proofmark.software.target import controller_gcc, gcc_flags, guard

LONGEST_NOTE = 200
"""Characters of the file of the lock that a message repeats."""

WIDTH = 96
"""Characters of a line that lists packages."""

RECORDING = {"SPACK_ADD_DEBUG_FLAGS": "custom", "SPACK_DEBUG_FLAGS": "-frecord-gcc-switches"}
"""The variables by which Spack's compiler wrapper has gcc record its options, for `guard`.

Not for dependencies: the wrapper gives them to the linker too, if a build calls it by itself.
"""


@contextmanager
def one_at_a_time(path: Path, work: str) -> Iterator[None]:
    """Hold the lock in the file `path` for the block. It ends with the process.

    While another process holds it, a line is printed at once and one after each `IDLE_S` seconds.

    Raises:
        BadInput: `path` is a link, or cannot be opened.
    """
    with open_to_append(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(LONGEST_NOTE).strip() or "another installation"
            with while_working(f"waiting for {holder} in the same folder", say):
                fcntl.flock(file, fcntl.LOCK_EX)
            say("the other installation has ended")
        file.truncate(0)
        since = f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"
        me = f"process {os.getpid()} on {os.uname().nodename}, which installs {work} since {since}"
        file.write(f"{me}\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


@dataclass(frozen=True)
class ChosenLock:
    """The lock to install from, and the kit's if the first is a site's.

    Attributes:
        kit: the kit's lock; None if the kit has none for the system.
    """

    lock: Lock
    of_site: bool = False
    kit: Lock | None = None


class LockCode(StrEnum):
    """Why no lock serves this controller."""

    NO_LOCK = "NO_LOCK"
    """Neither the site nor the kit has a lock for its operating system."""
    LOCK_NOT_MADE = "LOCK_NOT_MADE"
    """The site has a ``spack.yaml`` without its lock: the solver was interrupted."""
    LOCK_STALE = "LOCK_STALE"
    """The lock does not match the recipes, the pins or the ``spack.yaml`` of now."""


def choose_lock(request: ProvisionRequest, system: str) -> ChosenLock:
    """Return the lock of the operating system `system`: the site's if it exists, else the kit's.

    Raises:
        BadInput: see `LockCode`. Each error has the command that makes the lock.
    """
    kit, arch, locks = request.kit, request.arch, request.site_locks
    kit_lock = kit / "environments" / arch / system / "spack.lock"
    site_lock = locks and locks / arch / system / "spack.lock"
    if site_lock and not site_lock.is_file() and site_lock.with_name("spack.yaml").is_file():
        accepted = "the lock that is made from spack.yaml beside it"
        code, command = LockCode.LOCK_NOT_MADE, makes_lock(arch, locks)
        mistake = InputError(f"{site_lock}", "", "no such file", accepted, code, command=command)
        raise BadInput(mistake)
    if site_lock and site_lock.is_file():
        words = () if site_lock.with_name("spack.yaml").is_file() else ("--find",)
        _refuse_stale(site_lock, request, system, makes_lock(arch, locks, *words))
        of_kit = read_lock(kit_lock) if kit_lock.is_file() else None
        return ChosenLock(read_lock(site_lock), True, of_kit)
    if not kit_lock.is_file():
        raise BadInput(_no_lock(kit_lock, read_target(kit_lock.parents[1]), locks))
    made = (of_person(f"ARCH={arch}", "ARCH"), of_person(f"OS={system}", "OS"))
    of_kit_only = replace(request, site_locks=None)
    _refuse_stale(kit_lock, of_kit_only, system, PrintedCommand("make", "lock", *made))
    return ChosenLock(read_lock(kit_lock))


def makes_lock(arch: str, site_locks: Path | None, *words: str | Part) -> PrintedCommand:
    """Return the command that makes the lock of the site whose locks are in `site_locks`."""
    site = of_person(site_locks.parent if site_locks else "SITE", "SITE", "-i")
    return PrintedCommand("proofmark", "lock", of_person(arch, "ARCH"), site, *words)


def _no_lock(kit_lock: Path, target: str, site_locks: Path | None) -> InputError:
    """Return the error of a system without a lock. The lock of a site is the usual one."""
    systems = sorted(path.parent.name for path in kit_lock.parents[1].glob("*/spack.lock"))
    arch, system = kit_lock.parts[-3:-1]
    found, accepted = f"no lock of {arch} for {system}", "a lock of the site"
    words: list[str | Part] = ["--find"]
    if version := controller_gcc():
        try:
            gcc_flags(target, version)
        except BadInput as error:
            (mistake,) = error.mistakes
            found += f", and gcc {version}, which does not know {target}"
            accepted += f" with {mistake.accepted}, whose prefix --compiler takes"
            words += ["--compiler", "PREFIX"]
    accepted += f"; the kit has locks for {', '.join(systems) or 'no system'}"
    command = makes_lock(arch, site_locks, *words)
    return InputError(f"{kit_lock}", "", found, accepted, LockCode.NO_LOCK, command=command)


def _refuse_stale(lock: Path, request: ProvisionRequest, system: str, command: str) -> None:
    """Refuse a lock that `check` refuses, with the command that makes it again.

    Raises:
        BadInput: the first difference, with the number of the others.
    """
    try:
        differences = check(request.kit, request.arch, system, request.site_locks)
        mistakes = [replace(each, file=f"{lock}") for each in differences]
    except BadInput as error:
        mistakes = [*error.mistakes]  # of the file that is missing or damaged
    if not mistakes:
        return
    first, others = mistakes[0], len(mistakes) - 1
    found = f"{first.found}, and {others} more differences" if others else first.found
    code = LockCode.LOCK_STALE
    raise BadInput(replace(first, found=found, code=code, command=command))


def missing_specs(request: ProvisionRequest, system: str) -> list[Spec]:
    """Return the specs that `install` would install; change nothing and run no Spack.

    Raises:
        BadInput: see `choose_lock`, `check_path`, `check_installed_mpi` and `located_sources`; or a
            package is not in the lock.
    """
    check_path(request.prefixes)
    lock = choose_lock(request, system).lock
    check_installed_mpi(lock, request.programs)
    installation = installation_in(request.prefixes, request.sources)
    located_sources(lock, request.programs, installation, request.sources)
    return lock.missing(request.programs, installation.installed())


def install(request: ProvisionRequest, system: str) -> Installed:
    """Install the missing specs and return the packages of the request.

    Installed specs stay, so that a second call continues after a failure.

    Raises:
        BadInput: the path is too long, the lock is stale, a source is missing, or a build
            failed.
        Stopped: this process received SIGINT or SIGTERM.
    """
    chosen = choose_lock(request, system)
    if missing_specs(request, system):
        with prepare(request, chosen) as spack:
            _build(request, chosen, spack)
    return installed_packages(request, chosen)


@dataclass(frozen=True)
class PreparedSpack:
    """Spack at its pins, and the environment's folder with the lock."""

    installation: SpackInstallation
    environment: Path


@contextmanager
def prepare(request: ProvisionRequest, chosen: ChosenLock) -> Iterator[PreparedSpack]:
    """Install Spack at its pins and copy the environment; hold the lock of the folder meanwhile.

    Raises:
        BadInput: a bundle or a checkout is wrong.
    """
    sources, root = request.sources, request.prefixes / "spack"
    root.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(root / "lock", request.arch):
        if request.bundle:
            unpacked = unpack(request.bundle, root / "bundle", chosen.lock.source)
            sources = Sources(bundle=unpacked)
        installation = installation_in(request.prefixes, sources)
        bootstrap(installation, request.kit, load_mapping(request.kit / PINS), sources)
        located = located_sources(chosen.lock, request.programs, installation, sources)
        link(located, installation.mirror)
        installation.configure(sources)
        environment = _copy_environment(request, chosen.lock, root / "kit")
        yield PreparedSpack(installation, environment)


def _copy_environment(request: ProvisionRequest, lock: Lock, folder: Path) -> Path:
    """Copy environments and recipes, because Spack writes files beside them."""
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("environments", "spack-repo"):
        shutil.copytree(request.kit / part, folder / part)
    environment = folder / "environments" / request.arch
    shutil.copy(lock.source, environment / "spack.lock")
    return environment


def _build(request: ProvisionRequest, chosen: ChosenLock, spack: PreparedSpack) -> None:
    installation = spack.installation
    missing = chosen.lock.missing(request.programs, installation.installed())
    if not missing:
        return  # the installation for which this one waited has installed them
    log = installation.root / "logs" / f"{request.arch}.log"
    say(f"{counted(len(missing), 'package')} to install from their sources:")
    for line in textwrap.wrap(", ".join(spec.label for spec in missing), WIDTH):
        say(f"  {line}")
    say(f"output of Spack: {log}")
    check_recipes(installation, spack.environment)
    roots = [f"/{chosen.lock.root(package).hash}" for package in request.programs]
    words = ("-e", str(spack.environment), "install", "--only-concrete", *job_words(request.jobs))
    begun = time.monotonic()

    def report() -> None:
        say(progress(missing, installation.installed(), time.monotonic() - begun))

    for part, own in (("dependencies", {}), ("package", RECORDING)):
        command = installation.command(*words, f"--only={part}", *roots)
        done = run(command, installation.environment() | own, log, report)
        if done.returncode:
            failure, stage = read_failure(done.stdout.splitlines()), installation.root / "stage"
            raise refused("spack install", failure, done.returncode, stage, log)


def job_words(jobs: int) -> list[str]:
    """Return the option with the processes of a build; `jobs` is 0 for the default of Spack.

    Spack limits its setting ``build_jobs`` to the cores of this machine, and this option it does
    not.
    """
    return ["-j", f"{jobs}"] if jobs else []


def progress(missing: Sequence[Spec], installed: Collection[str], seconds: float) -> str:
    """Return a line of progress, from the database of Spack and not from its output."""
    left = [spec.label for spec in missing if spec.hash not in installed]
    done = f"{len(missing) - len(left)} of {len(missing)} packages installed"
    return f"{done} after {duration(seconds)}" + (f"; next: {left[0]}" if left else "")


def check_recipes(installation: SpackInstallation, environment: Path) -> None:
    """Refuse a lock of which the recipes would build other programs under the same hashes.

    The hashes are Spack's own. They find what ``git status`` does not: a file that git is told not
    to look at, and a recipe that another repository replaces.

    Raises:
        BadInput: names each package; or Spack cannot read its recipe.
    """
    words, variables = tuple(installation.command()), installation.environment()
    copied = CopiedEnvironment(words, environment, variables)
    file = f"{environment / 'spack.lock'}"
    mistakes = []
    for each in hashes_of_lock(copied):
        if each.recipe != each.locked_recipe:
            accepted = f"{each.locked_recipe}, the recipe of the lock"
            found = each.recipe or "no recipe"
            mistakes.append(InputError(file, f"{each.label}: package_hash", found, accepted))
    refuse(mistakes)


_ERROR = re.compile(r"==> (?:\S+: )?Error: ")
_STAGE = re.compile(r"spack-stage-(\S+?)-[a-z0-9]{32}\b")
_LOG = re.compile(r"\s+(/\S+/spack-build-out\.txt)$", re.MULTILINE)
_CAUSES = (
    (BuildCause.CHECKSUM, re.compile("ChecksumError|.*checksum (?:verification )?failed")),
    (BuildCause.SOURCE, re.compile("FetchError|NoCacheError|.*All fetchers failed")),
    (BuildCause.BUILD, re.compile("ProcessError|InstallError|ChildError")),
)
SHOWN_LINES, SHOWN_LETTERS = 3, 160
"""How much of an error of Spack a message repeats."""


def read_failure(lines: Sequence[str]) -> BuildFailure | None:
    """Return the first error in the output of Spack, with the lines below it; None without one.

    The lines of progress are not read: another installer of Spack has others.
    """
    begin = next((number for number, line in enumerate(lines) if _ERROR.match(line)), None)
    if begin is None:
        return None
    below = itertools.takewhile(lambda line: not line.startswith("==> "), lines[begin + 1 :])
    error = [_ERROR.sub("", lines[begin]), *below]
    text = "\n".join(error)
    package, log = _STAGE.search(text), _LOG.search(text)
    shown = [" ".join(line.split())[:SHOWN_LETTERS] for line in error if line.strip()]
    return BuildFailure(
        cause=next((cause for cause, rule in _CAUSES if rule.match(text)), BuildCause.RECIPE),
        package=package[1] if package else "",
        message=" / ".join(shown[:SHOWN_LINES]),
        log=Path(log[1]) if log else None,
    )


def installed_packages(request: ProvisionRequest, chosen: ChosenLock) -> Installed:
    """Return the installed packages of the request.

    Raises:
        BadInput: a package or a program is missing, or was built for another processor.
    """
    prefixes = installation_in(request.prefixes, request.sources).installed()
    spelling = spellings(request.kit / "environments").spack
    packages = {}
    for name, programs in request.programs.items():
        root = chosen.lock.root(name)
        if root.hash not in prefixes:
            accepted = f"the installed spec /{root.hash} of the lock"
            raise bad_input("spack", name, "no such spec", accepted)
        prefix = prefixes[root.hash]
        files = spelling[name].programs if name in spelling else {}
        kit = chosen.kit or Lock(chosen.lock.source, {}, {})
        parts = derived_parts(kit, chosen.lock, name) if chosen.of_site else None
        paths = find_programs(prefix, programs, files)
        refuse(guard(root.target, map(Path, paths.values())))
        findings = (
            *check_linked(chosen.lock, name, paths.values()),
            *unchosen_variants(chosen.lock, [name]),
        )
        if parts is not None:
            listed = tuple(map(str, parts)) or Message("derived-same")
            findings = (Message("derived", package=name, parts=listed), *findings)
        packages[name] = Provided(
            version=root.version,
            spec=root.requested,
            hash=root.hash,
            target=root.target,
            prefix=str(prefix),
            programs=paths,
            site_parts=None if parts is None else tuple(parts),
            built=build_of(chosen.lock, name),
            findings=findings,
        )
    return Installed(origin="spack", packages=packages)
