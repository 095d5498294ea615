"""Installs the packages of a plan from a committed lock, with Spack."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from proofmark.common.errors import BadInput, bad_input
from proofmark.software.build_process import Say, run
from proofmark.software.installed import Installed, Provided, find_programs, spellings
from proofmark.software.spack import buildcache
from proofmark.software.spack.build_progress import BuildProgress, read_times
from proofmark.software.spack.bundle import unpack
from proofmark.software.spack.installation import Sources, SpackInstallation, bootstrap, home_of
from proofmark.software.spack.lock import Lock, Spec, differences, read_lock, spack_system
from proofmark.software.spack.lock_check import OVERLAY, PINS, check
from proofmark.software.spack.lock_rules import overlay_digest

LAST_ERRORS = 3


@dataclass(frozen=True)
class Order:
    """What is to be installed from what, into what.

    Attributes:
        kit: the checkout of Proofmark.
        arch: the environment's name.
        programs: the programs that are needed, by package.
        prefixes: the folder under which this installs.
        site_locks: where the site keeps locks of its own, ``<arch>/<os>/spack.lock``.
        bundle: a bundle, as a file.
        jobs: how many processes a build may take; 0 is Spack's choice.
    """

    kit: Path
    arch: str
    programs: Mapping[str, Collection[str]]
    prefixes: Path
    sources: Sources = field(default_factory=Sources)
    site_locks: Path | None = None
    bundle: Path | None = None
    jobs: int = 0


@dataclass(frozen=True)
class Choice:
    """The lock that is installed from; `derived` says what of it is the site's own."""

    lock: Lock
    derived: tuple[str, ...]


def choose_lock(order: Order, system: str) -> Choice:
    """Return the lock of this operating system: the site's own if there is one, else ours.

    Raises:
        BadInput: there is none, or it is stale.
    """
    ours = order.kit / "environments" / order.arch / system / "spack.lock"
    site = order.site_locks and order.site_locks / order.arch / system / "spack.lock"
    if site and site.is_file():
        digest = overlay_digest(order.kit / OVERLAY)
        noted = site.with_name("overlay.sha256")
        found = noted.read_text().strip() if noted.is_file() else "nothing"
        if found != digest:
            raise bad_input(noted, "", found, f"{digest} (recipes changed: make the lock anew)")
        lock = read_lock(site)
        differs = differences(read_lock(ours), lock) if ours.is_file() else ["no lock of ours"]
        return Choice(lock, tuple(differs))
    if not ours.is_file():
        there = sorted(path.parent.name for path in ours.parents[1].glob("*/spack.lock"))
        accepted = ", ".join(there) or "a lock"
        make = f"make lock ARCH={order.arch} OS={system}, on this system"
        raise bad_input(ours, "", "no such file", f"{accepted}; else {make}")
    if mistakes := check(order.kit, order.arch, system):
        raise BadInput(*mistakes)
    return Choice(read_lock(ours), ())


def to_do(order: Order, system: str) -> list[Spec]:
    """Return what an install would have to do; nothing is changed, and Spack is not needed.

    Raises:
        BadInput: as `choose_lock`, or a package is not in the lock.
    """
    lock = choose_lock(order, system).lock
    home = home_of(order.prefixes, order.sources)
    ready = buildcache.cached(order.sources.cache)
    return lock.missing(order.programs, home.installed(), ready)


def install(order: Order, system: str, say: Say) -> Installed:
    """Install what is missing; what is there stays, so the same command goes on after a failure.

    Raises:
        BadInput: the lock is stale, a source cannot be had, a signature is wrong, a build failed.
        Stopped: SIGINT or SIGTERM came.
    """
    choice = choose_lock(order, system)
    if to_do(order, system):
        with prepared(order, choice, say) as bench:
            _build(order, choice, bench, say)
    return answer(order, choice)


@dataclass(frozen=True)
class Bench:
    """Spack ready to work: its home, the environment's folder with the lock, the cache in use."""

    home: SpackInstallation
    environment: Path
    cache: Path | None


@contextmanager
def prepared(order: Order, choice: Choice, say: Say) -> Iterator[Bench]:
    """Bring Spack to its pins and lay out the environment. One at a time under one folder.

    Raises:
        BadInput: a bundle, a checkout or a key is not what it must be.
    """
    sources, root = order.sources, order.prefixes / "spack"
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if order.bundle:
            unpacked = unpack(order.bundle, root / "bundle", choice.lock.source, say)
            inside = unpacked / "cache"
            given = sources.cache or (inside if inside.is_dir() else None)
            sources = Sources(bundle=unpacked, cache=given, key=sources.key)
        home = home_of(order.prefixes, sources)
        bootstrap(home, order.kit, read_pins(order.kit), sources, say)
        home.configure(sources, order.jobs)
        with ExitStack() as ends:
            if sources.cache:
                buildcache.trust(home, sources.key)
                ends.callback(buildcache.release, home)
                wanted = choice.lock.missing(order.programs, home.installed())
                buildcache.verify(home, sources.cache, {spec.hash for spec in wanted})
            yield Bench(home, _lay_out(order, choice.lock, root / "kit"), sources.cache)


def read_pins(kit: Path) -> Mapping[str, Any]:
    """Return ``environments/common/spack-pins.yaml``."""
    pins: Mapping[str, Any] = yaml.safe_load((kit / PINS).read_text(encoding="utf-8"))
    return pins


def _lay_out(order: Order, lock: Lock, folder: Path) -> Path:
    """Copy environments and recipes to where Spack may write beside them."""
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("environments", "spack-repo"):
        shutil.copytree(order.kit / part, folder / part)
    environment = folder / "environments" / order.arch
    shutil.copy(lock.source, environment / "spack.lock")
    return environment


def _build(order: Order, choice: Choice, bench: Bench, say: Say) -> None:
    home, ready = bench.home, buildcache.cached(bench.cache)
    todo = choice.lock.missing(order.programs, home.installed(), ready)
    noted = home.root / "times.json"
    follower = BuildProgress(todo, say, read_times(noted))
    log = home.root / "logs" / f"{order.arch}.log"
    say(f"{len(todo)} specs to install; all that Spack prints: {log}")
    wanted = [f"/{choice.lock.root(package).hash}" for package in order.programs]
    command = home.command("-e", str(bench.environment), "install", "--only-concrete", *wanted)
    try:
        code = run(command, home.environment(), log, follower.read, follower.tell)
    finally:
        noted.write_text(json.dumps(follower.times, indent=1, sort_keys=True) + "\n")
    if code:
        found = " / ".join(follower.errors[-LAST_ERRORS:]) or f"exit code {code}"
        again = f"a whole install; {log} has the rest, and the same command goes on"
        raise bad_input("spack install", "", found, again)


def answer(order: Order, choice: Choice) -> Installed:
    """Describe what is installed.

    Raises:
        BadInput: it is not whole: a package or a program is missing.
    """
    prefixes = home_of(order.prefixes, order.sources).installed()
    spelt = spellings(order.kit / "environments").spack
    packages = {}
    for name, programs in order.programs.items():
        root = choice.lock.root(name)
        if root.hash not in prefixes:
            raise bad_input("spack", name, "not installed", f"/{root.hash} of the lock")
        prefix = prefixes[root.hash]
        names = spelt[name].programs if name in spelt else {}
        findings = (
            [f"{name} is DERIVED, built from the site's own lock: {'; '.join(choice.derived)}."]
            if choice.derived
            else []
        )
        packages[name] = Provided(
            version=root.version,
            spec=root.asked,
            hash=root.hash,
            target=root.target,
            prefix=str(prefix),
            programs=find_programs(prefix, programs, names),
            findings=tuple(findings),
        )
    return Installed(origin="spack", packages=packages)


def this_system() -> str:
    """Return how Spack spells the operating system of the controller."""
    return spack_system(Path("/etc/os-release").read_text(encoding="utf-8"))
