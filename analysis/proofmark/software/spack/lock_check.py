"""Checks the locks of ``environments/`` and of sites; checks the instructions of programs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import archspec.cpu
import yaml
from archspec.cpu import TARGETS

from proofmark.common.errors import BadInput, InputError, bad_input, nearest
from proofmark.common.printed_command import Part, PrintedCommand, of_person
from proofmark.common.processes import run_command
from proofmark.software.spack.lock_file import read_lock
from proofmark.software.spack.lock_rules import (
    LockedEnvironment,
    LockText,
    check_lock,
    forbidden_instructions,
    root_names,
)
from proofmark.software.spack.lock_sources import check_sources
from proofmark.software.spack.site_environment import declared_externals

OVERLAY = Path("spack-repo/spack_repo/proofmark")
PINS = Path("environments/common/spack-pins.yaml")
ONE_VERSION = re.compile(r"@=?([\w.-]+)")
PACKAGES = "packages.yaml"
"""The file in the folder of a site's locks with the versions that the site chooses."""


def read_environment(
    directory: Path, operating_system: str, site: Path | None = None
) -> LockedEnvironment:
    """Read ``spack.yaml`` and the files that it includes for one operating system.

    Args:
        operating_system: the name that Spack uses for it.
        site: the ``spack.yaml`` of a site for this environment; None for the kit's.

    Raises:
        BadInput: there is no such environment or operating system, or not exactly one target.
    """
    source, environment = _spack_yaml(directory)
    of_site: list[dict[str, Any]] = []
    if site:
        environment = read_spack_yaml(site)
        choice = site.parents[2] / PACKAGES
        of_site = [load_mapping(choice)] if choice.is_file() else []
    scopes = [environment, *_included(source, environment, operating_system)]
    definitions = _definitions(scopes)
    return LockedEnvironment(
        versions=_versions([*of_site, *scopes]),
        system=operating_system,
        roots=root_names(environment, definitions),
        target=read_target(directory),
        externals=declared_externals(environment) if site else {},
    )


def read_spack_yaml(path: Path) -> dict[str, Any]:
    """Return the ``spack`` mapping of a ``spack.yaml``.

    Raises:
        BadInput: the file is missing, or has no such mapping.
    """
    if not path.is_file():
        raise bad_input(path, "", "no such file", "the file that `proofmark lock --find` writes")
    content = load_mapping(path).get("spack")
    if not isinstance(content, dict):
        raise bad_input(path, "spack", type(content).__name__, "a mapping")
    return content


def check_externals(source: Path, directory: Path, operating_system: str) -> None:
    """Refuse externals of a site whose version is not the one that packages require.

    Spack would only say that there is no solution.

    Args:
        source: the ``spack.yaml`` of the site.
        directory: the folder of the kit's environment.
        operating_system: the name that Spack uses for it.

    Raises:
        BadInput: names each such package.
    """
    versions = read_environment(directory, operating_system, source).versions
    mistakes = []
    for name, entry in read_spack_yaml(source).get("packages", {}).items():
        specs = [str(each["spec"]) for each in entry.get("externals", ())]
        labels = [each.split()[0].replace("@=", "@") for each in specs]
        wanted = f"{name}@{versions.get(name, '')}"
        if name in versions and specs and wanted not in labels:
            accepted = f'"@VERSION" of the external ({", ".join(labels)}), or `--find` again'
            key = f"packages.{name}.require"
            mistakes.append(InputError(str(source), key, f"@{versions[name]}", accepted))
    if mistakes:
        raise BadInput(*mistakes)


def read_target(directory: Path) -> str:
    """Return archspec's name of the processor that an environment builds for.

    Raises:
        BadInput: there is no such environment, or not exactly one target in its ``spack.yaml``.
    """
    source, environment = _spack_yaml(directory)
    words = _definitions([environment]).get("arch", [])
    targets = [str(word).removeprefix("target=") for word in words]
    if len(targets) != 1:
        raise bad_input(source, "definitions.arch", str(targets), "one target=<name>")
    return targets[0]


def similar_environment(folder: Path, name: str) -> str:
    """Return which environment of `folder` the name may mean, as an addition to a message.

    The name of a processor (archspec) means the newest environment whose programs run on it: those
    of a similar name can end with an illegal instruction.
    """
    known = {path.parent.name: path.parent for path in folder.glob("*/spack.yaml")}
    if name not in TARGETS:
        return nearest(name, known)
    targets = {each: TARGETS.get(read_target(path)) for each, path in known.items()}
    running = {
        each: target for each, target in targets.items() if target and target <= TARGETS[name]
    }
    if not running:
        return "; the programs of no environment run on it"
    best = max(sorted(running), key=lambda each: len(running[each].features))
    return f"; the programs of {best!r} run on it"


def _spack_yaml(directory: Path) -> tuple[Path, dict[str, Any]]:
    source = directory / "spack.yaml"
    if not source.is_file():
        known = sorted(path.parent.name for path in directory.parent.glob("*/spack.yaml"))
        hint = similar_environment(directory.parent, directory.name)
        raise bad_input(directory, "", f"no spack.yaml{hint}", ", ".join(known))
    return source, load_mapping(source)["spack"]


def _definitions(scopes: list[dict[str, Any]]) -> dict[str, list[Any]]:
    definitions: dict[str, list[Any]] = {}
    for scope in scopes:
        for definition in scope.get("definitions", []):
            for name, values in definition.items():
                definitions.setdefault(name, []).extend(values)
    return definitions


def _versions(scopes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the version that each package must have, by the first of the scopes that names one.

    A requirement that is no single version, such as a range, is left to Spack.
    """
    versions: dict[str, str] = {}
    for scope in scopes:
        for name, entry in scope.get("packages", {}).items():
            required = entry.get("require")
            if isinstance(required, str) and (version := ONE_VERSION.fullmatch(required)):
                versions.setdefault(name, version[1])
    return versions


def _included(source: Path, environment: dict[str, Any], system: str) -> list[dict[str, Any]]:
    """Return the content of the files that an environment includes."""
    scopes = []
    for name in environment.get("include", []):
        path = source.parent / name.replace("$operating_system", system)
        if not path.is_file():
            raise bad_input(source, "include", name, f"an operating system that has {path.name}")
        scopes.append(load_mapping(path))
    return scopes


def load_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises:
        BadInput: the file has no mapping.
    """
    loaded = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    if not isinstance(loaded, dict):
        raise bad_input(path, "", type(loaded).__name__, "a mapping")
    return loaded


def check(
    root: Path, arch: str, operating_system: str, locks: Path | None = None
) -> list[InputError]:
    """Return all errors of one committed lock, or of a lock of a site, and of its sources.

    Args:
        operating_system: the name that Spack uses for it.
        locks: the folder of a site's locks; None for the kit's.

    Raises:
        BadInput: the lock, its ``spack.yaml``, or the digest of its recipes, is missing, or the
            file is no lock.
    """
    directory = (locks or root / "environments") / arch
    lock = directory / operating_system / "spack.lock"
    digest = lock.with_name("overlay.sha256")
    for path in (lock, digest):
        if not path.is_file():
            words: list[str | Part] = ["proofmark", "lock", of_person(arch, "ARCH")]
            if locks:
                words += [of_person(locks.parent, "SITE", "-i"), "--find"]
            else:
                words += [of_person(operating_system, "OS", "--os")]
            command = PrintedCommand(*words)
            raise bad_input(path, "", "no such file", f"the file that `{command}` writes")
    specs = read_lock(lock)
    kit = root / "environments" / arch
    source = lock.with_name("spack.yaml") if locks else None
    mistakes = check_lock(
        LockText(str(lock.relative_to(locks or root)), lock.read_text(), digest.read_text()),
        read_environment(kit, operating_system, source),
        overlay=root / OVERLAY,
        pins=load_mapping(root / PINS),
    )
    return [*mistakes, *check_sources(specs)]


def guard(target: str, programs: list[Path]) -> list[InputError]:
    """Return an error for each program with Xeon Phi instructions that its target lacks.

    Raises:
        BadInput: archspec has no such target.
    """
    if target not in archspec.cpu.TARGETS:
        hint = nearest(target, archspec.cpu.TARGETS)
        raise bad_input("--target", "", f"{target}{hint}", "an archspec name")
    features = frozenset(archspec.cpu.TARGETS[target].features)
    mistakes = []
    for program in programs:
        listing = _output("objdump", "-d", "--no-show-raw-insn", str(program))
        if instructions := forbidden_instructions(listing, features):
            accepted = f"instructions of {target}"
            mistakes.append(InputError(str(program), "", ", ".join(instructions), accepted))
    return mistakes


def _output(*command: str) -> str:
    done = run_command(command)
    done.check_returncode()
    return done.stdout.strip()
