"""Installs the packages of a plan from a committed lock, with Spack.

One process at a time installs into a folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

import yaml
from pydantic import AwareDatetime, TypeAdapter, ValidationError

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import open_to_append, write_atomic
from proofmark.common.message import Message
from proofmark.common.printed_command import Part, PrintedCommand, of_person
from proofmark.common.processes import run_command
from proofmark.common.progress_lines import IDLE_S
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import duration
from proofmark.software.build_failure import error_of_build, read_log, refused
from proofmark.software.build_process import Say, complete_installation, run
from proofmark.software.installed import (
    DerivedPart,
    Installed,
    Provided,
    ProvisionRequest,
    Sources,
    find_programs,
    spellings,
)
from proofmark.software.spack.build_progress import (
    BuildProgress,
    known_times,
    measured_times,
    read_failure,
    read_times,
)
from proofmark.software.spack.bundle import unpack
from proofmark.software.spack.installation import (
    LOCK_SCRIPT,
    SpackInstallation,
    bootstrap,
    check_blanks,
    check_length,
    installation_in,
)
from proofmark.software.spack.lock_check import PINS, check, read_target
from proofmark.software.spack.lock_file import Lock, Spec, build_of, derived_parts, read_lock
from proofmark.software.spack.mirror import (
    cached_manifests,
    import_key,
    kill_agents,
    located_sources,
    search_sources,
    verify_signatures,
)
from proofmark.software.spack.mpi_and_blas import (
    check_installed_mpi,
    check_linked,
    unchosen_variants,
)
from proofmark.software.target import controller_gcc, gcc_flags

POLL_S = 0.5
"""The time between two attempts to take the lock."""

LONGEST_NOTE = 1000
"""Characters of the file of the lock."""

SPACK_JOBS = 16
"""Largest number of processes of a build by default: ``build_jobs`` in the defaults of Spack."""


class LockHolder(StrictModel):
    """The process that holds the lock of a folder, as the file of the lock names it."""

    process: int
    host: str
    since: AwareDatetime
    work: str


@contextmanager
def one_at_a_time(
    path: Path, work: str, say: Say, pause: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Hold the lock in the file `path` for the block. It ends with the process.

    While another process holds it, `say` gets a line at once and one after each `IDLE_S` seconds.

    Args:
        work: the environment that is installed.

    Raises:
        BadInput: `path` is a link, or cannot be opened.
    """
    with open_to_append(path) as file:
        waited = 0.0
        while not _taken(file):
            if waited % IDLE_S == 0:
                say(_line(_holder(file), waited))
            pause(POLL_S)
            waited += POLL_S
        if waited:
            say(f"the other installation has ended after {duration(waited)}")
        me = LockHolder(process=os.getpid(), host=os.uname().nodename, since=_now(), work=work)
        file.truncate(0)
        file.write(f"{me.model_dump_json()}\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _taken(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(file: TextIO) -> LockHolder | None:
    """Return the process that the file names; None if it names none."""
    file.seek(0)
    with suppress(ValidationError, UnicodeError):
        return LockHolder.model_validate_json(file.read(LONGEST_NOTE))
    return None


def _line(holder: LockHolder | None, waited: float) -> str:
    so_far = f"waited for {duration(waited)}"
    if holder is None:
        return f"waiting for another installation in the same folder; {so_far}"
    since = f"{holder.since.astimezone():%Y-%m-%d %H:%M:%S}"
    busy = duration(max(0.0, (_now() - holder.since).total_seconds()))
    return (
        f"waiting for process {holder.process} on {holder.host}, which installs {holder.work} in "
        f"the same folder since {since} ({busy}); {so_far}"
    )


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class ChosenLock:
    """The lock to install from, and the kit's if the first is a site's.

    Attributes:
        kit: the kit's lock; None if the kit has none for the system.
    """

    lock: Lock
    of_site: bool = False
    kit: Lock | None = None

    def site_parts(self, package: str) -> tuple[DerivedPart, ...] | None:
        """Return the parts of a program that are not the kit's; None if it is the kit's program.

        Raises:
            BadInput: the lock has no such package.
        """
        if not self.of_site:
            return None
        parts = derived_parts(self.kit or Lock(self.lock.source, {}, {}), self.lock, package)
        return None if parts is None else tuple(parts)


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
        BadInput: see `choose_lock`, `check_length`, `check_blanks`, `check_installed_mpi` and
            `located_sources`; or a package is not in the lock.
    """
    check_length(request.prefixes)
    check_blanks(request.prefixes)
    lock = choose_lock(request, system).lock
    check_installed_mpi(lock, request.programs)
    installation = installation_in(request.prefixes, request.sources)
    cached = cached_manifests(request.sources.cache)
    located_sources(lock, request.programs, installation, request.sources)
    return lock.missing(request.programs, installation.installed(), cached)


def install(request: ProvisionRequest, system: str, say: Say) -> Installed:
    """Install the missing specs and return the packages of the request.

    Installed specs stay, so that a second call continues after a failure.

    Raises:
        BadInput: the path is too long, the lock is stale, a source is missing, a signature is
            wrong, or a build failed.
        Stopped: this process received SIGINT or SIGTERM.
    """
    chosen = choose_lock(request, system)
    if missing_specs(request, system):
        with prepare(request, chosen, say) as spack:
            _build(request, chosen, spack, say)
    return installed_packages(request, chosen)


@dataclass(frozen=True)
class PreparedSpack:
    """Spack at its pins, the environment's folder with the lock, and the build cache, if any."""

    installation: SpackInstallation
    environment: Path
    cache: Path | None


@contextmanager
def prepare(request: ProvisionRequest, chosen: ChosenLock, say: Say) -> Iterator[PreparedSpack]:
    """Install Spack at its pins and copy the environment; hold the lock of the folder meanwhile.

    Raises:
        BadInput: a bundle, a checkout, a key or a signature is wrong.
    """
    sources, root = request.sources, request.prefixes / "spack"
    root.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(root / "lock", request.arch, say):
        if request.bundle:
            unpacked = unpack(request.bundle, root / "bundle", chosen.lock.source, say)
            bundled = unpacked / "cache"
            cache = sources.cache or (bundled if bundled.is_dir() else None)
            sources = Sources(bundle=unpacked, cache=cache, key=sources.key)
        installation = installation_in(request.prefixes, sources)
        bootstrap(installation, request.kit, read_pins(request.kit), sources, say)
        search_sources(chosen.lock, request.programs, installation, sources, say)
        installation.configure(sources)
        with ExitStack() as ends:
            if sources.cache:
                import_key(installation, sources.key)
                ends.callback(kill_agents, installation)
                missing = chosen.lock.missing(request.programs, installation.installed())
                verify_signatures(installation, sources.cache, {spec.hash for spec in missing})
            environment = _copy_environment(request, chosen.lock, root / "kit")
            yield PreparedSpack(installation, environment, sources.cache)


def read_pins(kit: Path) -> Mapping[str, Any]:
    """Return the content of ``environments/common/spack-pins.yaml``."""
    pins: Mapping[str, Any] = yaml.load(
        (kit / PINS).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
    )
    return pins


def _copy_environment(request: ProvisionRequest, lock: Lock, folder: Path) -> Path:
    """Copy environments and recipes, because Spack writes files beside them."""
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("environments", "spack-repo"):
        shutil.copytree(request.kit / part, folder / part)
    environment = folder / "environments" / request.arch
    shutil.copy(lock.source, environment / "spack.lock")
    return environment


def _build(request: ProvisionRequest, chosen: ChosenLock, spack: PreparedSpack, say: Say) -> None:
    installation, cached = spack.installation, cached_manifests(spack.cache)
    missing = chosen.lock.missing(request.programs, installation.installed(), cached)
    if not missing:
        return  # the installation for which this one waited has installed them
    times_file, cores = installation.root / "times.json", cores_of_build(request.jobs)
    own = read_times(times_file)
    times = known_times(own, measured_times(), cores)
    progress = BuildProgress(missing, say, times, cores, cached)
    log = installation.root / "logs" / f"{request.arch}.log"
    progress.begin()
    say(f"output of Spack: {log}")
    progress.report()
    check_recipes(installation, spack.environment)
    roots = [f"/{chosen.lock.root(package).hash}" for package in request.programs]
    # Spack limits its setting build_jobs to the cores of this machine, and this option it does not.
    jobs = ["-j", f"{request.jobs}"] if request.jobs else []
    words = ("-e", str(spack.environment), "install", "--only-concrete", *jobs, *roots)
    command = installation.command(*words)
    try:
        code = run(command, installation.environment(), log, progress.read, progress.report)
    finally:
        now_known = own | progress.built
        write_atomic(times_file, json.dumps(now_known, indent=1, sort_keys=True) + "\n")
    if code:
        raise _refused(progress.lines, code, installation, log)


_CHANGED = TypeAdapter(dict[str, tuple[str, str]])


def check_recipes(installation: SpackInstallation, environment: Path) -> None:
    """Refuse a lock of which the recipes would build other programs under the same hashes.

    The hashes are Spack's own. They find what ``git status`` does not: a file that git is told not
    to look at, and a recipe that another repository replaces.

    Args:
        environment: the folder of the environment with the lock.

    Raises:
        BadInput: names each package; or Spack cannot read its recipe.
    """
    command = installation.command("-e", str(environment), "python", str(LOCK_SCRIPT), "recipes")
    done = run_command(command, environment=installation.environment())
    try:
        changed = _CHANGED.validate_json(done.stdout if done.returncode == 0 else "")
    except ValidationError:
        last = " / ".join(done.stderr.strip().splitlines()[-3:]) or f"exit code {done.returncode}"
        accepted = "a recipe for each package of the lock"
        raise bad_input(environment / "spack.lock", "package_hash", last, accepted) from None
    file = str(environment / "spack.lock")
    mistakes = (
        InputError(file, f"{label}: package_hash", now, f"{locked}, the recipe of the lock")
        for label, (locked, now) in sorted(changed.items())
    )
    if found := tuple(mistakes):
        raise BadInput(*found)


def _refused(
    output: Sequence[str], code: int, installation: SpackInstallation, log: Path
) -> BadInput:
    """Return the exception of a failed installation, with its first cause."""
    stage = installation.root / "stage"
    failure = read_failure(output)
    if failure is None:
        return bad_input("spack install", "", f"exit code {code}", complete_installation(log))
    error = error_of_build(failure.log, lambda path: read_log(path, stage)) if failure.log else None
    return refused("spack install", failure, error, log)


def cores_of_build(jobs: int) -> int:
    """Return the processes of a build; `jobs` is 0 for the default of Spack."""
    return jobs or min(SPACK_JOBS, len(os.sched_getaffinity(0)))


def derived_finding(package: str, parts: Sequence[DerivedPart]) -> Message:
    """Return the finding about a program that is not exactly the kit's."""
    listed = tuple(map(str, parts)) or Message("derived-same")
    return Message("derived", package=package, parts=listed)


def installed_packages(request: ProvisionRequest, chosen: ChosenLock) -> Installed:
    """Return the installed packages of the request.

    Raises:
        BadInput: a package or a program is missing.
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
        parts = chosen.site_parts(name)
        paths = find_programs(prefix, programs, files)
        findings = (
            *check_linked(chosen.lock, name, paths.values()),
            *unchosen_variants(chosen.lock, [name]),
        )
        if parts is not None:
            findings = (derived_finding(name, parts), *findings)
        packages[name] = Provided(
            version=root.version,
            spec=root.requested,
            hash=root.hash,
            target=root.target,
            prefix=str(prefix),
            programs=paths,
            site_parts=parts,
            built=build_of(chosen.lock, name),
            findings=findings,
        )
    return Installed(origin="spack", packages=packages)
