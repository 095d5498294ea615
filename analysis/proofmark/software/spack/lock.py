"""A lock as an installer reads it: which specs, in which order, and which of them are missing."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofmark.common.errors import bad_input, nearest


@dataclass(frozen=True)
class Spec:
    """One concrete spec.

    Attributes:
        target: archspec's name of the processor that it is built for.
        asked: the words of the environment for a root, else name and version.
        run: hashes that it needs to run (dependency types `link` and `run`).
        build: hashes that only its build needs.
    """

    name: str
    version: str
    hash: str
    target: str
    asked: str
    external: bool
    run: tuple[str, ...]
    build: tuple[str, ...]

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class Lock:
    """The specs of a lock by hash, and the hashes of its roots by package."""

    source: Path
    specs: dict[str, Spec]
    roots: dict[str, str]

    def root(self, package: str) -> Spec:
        """Return the root of a package.

        Raises:
            BadInput: the lock has none.
        """
        if package not in self.roots:
            found = f"nothing on {package!r}{nearest(package, self.roots)}"
            raise bad_input(self.source, "roots", found, ", ".join(sorted(self.roots)))
        return self.specs[self.roots[package]]

    def missing(
        self,
        packages: Iterable[str],
        installed: Collection[str],
        cached: Collection[str] = frozenset(),
    ) -> list[Spec]:
        """Return what has to be installed for `packages`, dependencies first.

        What is `installed`, or comes whole from a build cache (`cached`), needs no build
        dependencies.

        Raises:
            BadInput: a package is no root of the lock.
        """
        seen: dict[str, None] = {}

        def visit(spec_hash: str) -> Iterator[str]:
            if spec_hash in seen or self.specs[spec_hash].external:
                return
            seen[spec_hash] = None
            spec = self.specs[spec_hash]
            ready = spec_hash in installed or spec_hash in cached
            for other in spec.run if ready else (*spec.build, *spec.run):
                yield from visit(other)
            if spec_hash not in installed:
                yield spec_hash

        roots = [self.root(package).hash for package in packages]
        return [self.specs[found] for root in roots for found in visit(root)]


def read_lock(path: Path) -> Lock:
    """Read a ``spack.lock``.

    Raises:
        BadInput: it is not there, is no lock, or has two roots of one package.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        asked = {root["hash"]: root["spec"] for root in raw["roots"]}
        specs = {key: _spec(key, spec, asked) for key, spec in raw["concrete_specs"].items()}
    except OSError as error:
        raise bad_input(path, "", error.strerror or "unreadable", "a lock of Spack") from None
    except (ValueError, KeyError, TypeError) as error:
        raise bad_input(path, "", f"no lock ({error!r})", "a lock of Spack") from None
    roots: dict[str, str] = {}
    for root in asked:
        name = specs[root].name
        if name in roots:
            raise bad_input(path, "roots", f"{name} twice", "one root a package")
        roots[name] = root
    return Lock(path, specs, roots)


def _spec(key: str, raw: dict[str, Any], asked: dict[str, str]) -> Spec:
    edges = [
        (edge["hash"], set(edge["parameters"]["deptypes"])) for edge in raw.get("dependencies", [])
    ]
    name, version = str(raw["name"]), str(raw["version"])
    target = raw["arch"]["target"]
    return Spec(
        name=name,
        version=version,
        hash=key,
        target=target if isinstance(target, str) else str(target["name"]),
        asked=asked.get(key, f"{name}@{version}"),
        external=bool(raw.get("external")),
        run=tuple(other for other, kinds in edges if kinds & {"link", "run"}),
        build=tuple(other for other, kinds in edges if not kinds & {"link", "run"}),
    )


def spack_system(os_release: str) -> str:
    """Return how Spack spells an operating system, from the text of ``/etc/os-release``.

    Raises:
        BadInput: the text names no system, or no version.
    """
    told: dict[str, str] = dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', os_release, re.MULTILINE))
    if not told.get("ID") or not told.get("VERSION_ID"):
        raise bad_input("/etc/os-release", "ID, VERSION_ID", str(told), "a system with a version")
    version = told["VERSION_ID"]
    return told["ID"] + (version if told["ID"] == "ubuntu" else version.partition(".")[0])


def differences(ours: Lock, theirs: Lock) -> list[str]:
    """Return what a site's own lock has other than ours, a package a line; last, what follows."""
    mine = {spec.name: spec for spec in ours.specs.values()}
    site = {spec.name: spec for spec in theirs.specs.values()}

    def told(spec: Spec | None) -> str:
        return f"{spec.version}{' of the site' if spec.external else ''}" if spec else "none"

    names = sorted(mine.keys() | site.keys())
    other = [name for name in names if told(mine.get(name)) != told(site.get(name))]
    same = [name for name in names if name not in other]
    rebuilt = [name for name in same if mine[name].hash != site[name].hash]
    lines = [f"{name}: {told(mine.get(name))} → {told(site.get(name))}" for name in other]
    return [*lines, *([f"other builds of {', '.join(rebuilt)}"] if rebuilt else [])]
