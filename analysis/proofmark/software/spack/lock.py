"""Reads locks of Spack: the specs, their order, and the missing ones."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofmark.common.errors import bad_input


@dataclass(frozen=True)
class Spec:
    """One concrete spec.

    Attributes:
        target: archspec's name of the processor that it is built for.
        requested: the spec that the environment requests for a root, else name and version.
        run: hashes of the dependencies of types `link` and `run`.
        build: hashes of the dependencies that only the build needs.
    """

    name: str
    version: str
    hash: str
    target: str
    requested: str
    external: bool
    run: tuple[str, ...]
    build: tuple[str, ...]

    @property
    def label(self) -> str:
        """Name and version, ``ior@4.0.0``."""
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class Lock:
    """The specs of a lock by hash, and the hashes of its roots by package; `source` is the file."""

    source: Path
    specs: dict[str, Spec]
    roots: dict[str, str]

    def root(self, package: str) -> Spec:
        """Return the root of a package.

        Raises:
            BadInput: the lock has no such root.
        """
        if package not in self.roots:
            found = f"no package {package!r}"
            raise bad_input(self.source, "roots", found, ", ".join(sorted(self.roots)))
        return self.specs[self.roots[package]]

    def missing(
        self,
        packages: Iterable[str],
        installed: Collection[str],
        cached: Collection[str] = frozenset(),
    ) -> list[Spec]:
        """Return the specs to install for `packages`, dependencies first.

        A spec in `installed` or `cached` (in a build cache) needs no build dependencies.

        Raises:
            BadInput: a package is no root of the lock.
        """
        seen: dict[str, None] = {}

        def visit(spec_hash: str) -> Iterator[str]:
            if spec_hash in seen or self.specs[spec_hash].external:
                return
            seen[spec_hash] = None
            spec = self.specs[spec_hash]
            built = spec_hash in installed or spec_hash in cached
            for other in spec.run if built else (*spec.build, *spec.run):
                yield from visit(other)
            if spec_hash not in installed:
                yield spec_hash

        roots = [self.root(package).hash for package in packages]
        return [self.specs[spec_hash] for root in roots for spec_hash in visit(root)]


def read_lock(path: Path) -> Lock:
    """Read a ``spack.lock``.

    Raises:
        BadInput: the file is missing or is not a lock, a root has no spec, or two roots are of one
            package.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        requested = {root["hash"]: root["spec"] for root in raw["roots"]}
        specs = {key: _spec(key, spec, requested) for key, spec in raw["concrete_specs"].items()}
    except OSError as error:
        raise bad_input(path, "", error.strerror or "unreadable", "a lock of Spack") from None
    except (ValueError, KeyError, TypeError) as error:
        raise bad_input(path, "", f"no lock ({error!r})", "a lock of Spack") from None
    roots: dict[str, str] = {}
    for root in requested:
        if root not in specs:
            raise bad_input(path, "roots", f"{root}: not in concrete_specs", "roots with a spec")
        name = specs[root].name
        if name in roots:
            raise bad_input(path, "roots", f"{name} twice", "one root per package")
        roots[name] = root
    return Lock(path, specs, roots)


def _spec(key: str, raw: dict[str, Any], requested: dict[str, str]) -> Spec:
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
        requested=requested.get(key, f"{name}@{version}"),
        external=bool(raw.get("external")),
        run=tuple(other for other, kinds in edges if kinds & {"link", "run"}),
        build=tuple(other for other, kinds in edges if not kinds & {"link", "run"}),
    )


def differences(kit_lock: Lock, site_lock: Lock) -> list[str]:
    """Return how a site's lock differs from the kit's, one package per line.

    The last line names the packages of equal version that are built differently.
    """
    kit = {spec.name: spec for spec in kit_lock.specs.values()}
    site = {spec.name: spec for spec in site_lock.specs.values()}

    def version(spec: Spec | None) -> str:
        return f"{spec.version}{' of the site' if spec.external else ''}" if spec else "none"

    names = sorted(kit.keys() | site.keys())
    changed = [name for name in names if version(kit.get(name)) != version(site.get(name))]
    same = [name for name in names if name not in changed]
    rebuilt = [name for name in same if kit[name].hash != site[name].hash]
    lines = [f"{name}: {version(kit.get(name))} → {version(site.get(name))}" for name in changed]
    return [*lines, *([f"other builds of {', '.join(rebuilt)}"] if rebuilt else [])]
