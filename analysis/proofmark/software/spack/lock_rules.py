"""The rules for shipped locks of Spack: canonical, complete, and made from the current recipes.

A lock is the result of Spack's solver for one architecture and one operating system. Spack writes
an equal result in a different order each time. A shipped lock therefore has a canonical form, so
that two sites can compare bytes. Spack does not notice an edited recipe, so that a digest of the
overlay recipes is beside each lock. These functions do not need Spack.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofmark.common.errors import InputError

Json = Any
"""A value read from JSON or YAML."""

SYSTEM_PREFIX = re.compile(r"^/usr(/|$)")
"""Paths that a shipped lock may contain."""

PHI_ONLY = {
    "avx512er": re.compile(r"\bv(?:exp2|rcp28|rsqrt28)[ps][sd]\b"),
    "avx512pf": re.compile(r"\bv(?:gather|scatter)pf[01][dq]p[sd]\b"),
}
"""Instructions of the Xeon Phi alone, by CPU feature (Intel SDM, AVX-512 ER and PF)."""


def canonicalise(lock: Mapping[str, Json]) -> str:
    """Return the canonical text of a lock: sorted keys, and sorted lists if order has no meaning.

    The format stays Spack's, so that `spack install` reads the result. The order of compiler flags
    has a meaning and is kept.
    """
    shipped: dict[str, Json] = {key: value for key, value in lock.items() if key != "roots"}
    shipped["concrete_specs"] = {
        spec_hash: _canonical_spec(spec) for spec_hash, spec in lock["concrete_specs"].items()
    }
    shipped["roots"] = sorted(lock["roots"], key=lambda root: (root["spec"], root["hash"]))
    return json.dumps(shipped, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _canonical_spec(spec: Mapping[str, Json]) -> dict[str, Json]:
    """Sort the lists of a concrete spec that are sets: dependencies, types, variant values."""
    shipped = dict(spec)
    if "dependencies" in spec:
        shipped["dependencies"] = sorted(
            (_canonical_edge(edge) for edge in spec["dependencies"]),
            key=lambda edge: (edge["name"], edge["hash"]),
        )
    shipped["parameters"] = {
        name: sorted(value, key=str) if isinstance(value, list) and "flags" not in name else value
        for name, value in spec.get("parameters", {}).items()
    }
    return shipped


def _canonical_edge(edge: Mapping[str, Json]) -> dict[str, Json]:
    """Sort the types and the virtual packages of one dependency."""
    parameters = {
        name: sorted(value) if isinstance(value, list) else value
        for name, value in edge.get("parameters", {}).items()
    }
    return {**edge, "parameters": parameters}


def overlay_digest(overlay: Path) -> str:
    """Return the SHA-256 over names and contents of every file of the overlay recipes.

    Byte code and hidden folders, which tools write, are not part of a recipe.

    Args:
        overlay: the folder of the package repository, which contains ``repo.yaml``.
    """
    digest = hashlib.sha256()
    for path in sorted(overlay.rglob("*")):
        name = path.relative_to(overlay)
        of_a_tool = any(part == "__pycache__" or part.startswith(".") for part in name.parts)
        if path.is_file() and not of_a_tool:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{content}  {name.as_posix()}\n".encode())
    return digest.hexdigest()


def root_names(environment: Mapping[str, Json], definitions: Mapping[str, list[Json]]) -> set[str]:
    """Return the package names that an environment's ``specs`` request.

    Args:
        environment: the ``spack`` mapping of a ``spack.yaml``.
        definitions: all named lists, also those of included files.
    """
    names = set()
    for entry in environment["specs"]:
        names |= {_name(spec) for spec in _expand(entry, definitions)}
    return names


def _expand(entry: Json, definitions: Mapping[str, list[Json]]) -> Iterator[str]:
    """Yield the specs of one entry; for a matrix, those of the rows that name packages."""
    if isinstance(entry, dict):
        for row in entry["matrix"]:
            for item in row:
                yield from _expand(item, definitions)
    elif entry.startswith("$"):
        for item in definitions[entry[1:]]:
            yield from _expand(item, definitions)
    elif re.match(r"[a-z]", entry) and not re.match(r"\w+=", entry):
        yield entry


def _name(spec: str) -> str:
    return re.split(r"[@%+~ ^]", spec, maxsplit=1)[0]


@dataclass(frozen=True)
class LockedEnvironment:
    """What an environment requests on one operating system.

    Attributes:
        system: the name that Spack uses for the operating system (``debian12``).
        roots: the names of the requested packages.
        externals: the prefixes that a site declares, by package; the kit declares none but gcc's.
        versions: the version that a package must have, if the lock has the package.
    """

    system: str
    roots: set[str]
    target: str
    externals: Mapping[str, Sequence[str]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LockText:
    """The files of a lock.

    Attributes:
        name: the name of the lock for messages.
        text: the content of ``spack.lock``.
        recorded_digest: the content of ``overlay.sha256`` beside it.
    """

    name: str
    text: str
    recorded_digest: str


def check_lock(
    written: LockText, environment: LockedEnvironment, overlay: Path, pins: Mapping[str, Json]
) -> list[InputError]:
    """Return all errors of a lock that is to be shipped.

    Args:
        environment: what it must have.
        overlay: the folder of the overlay recipes.
        pins: content of ``environments/common/spack-pins.yaml``.
    """
    lock = json.loads(written.text)
    mistakes: list[InputError] = []

    def wrong(key: str, found: object, accepted: str) -> None:
        mistakes.append(InputError(written.name, key, str(found), accepted))

    if written.text != canonicalise(lock):
        wrong("", "a lock that is not canonical", "the text that `make lock` writes")
    digest = overlay_digest(overlay)
    recorded = written.recorded_digest.strip()
    if recorded != digest:
        wrong("overlay.sha256", recorded, f"{digest} (recipes changed: make lock)")
    commit = lock.get("spack", {}).get("commit")
    if commit != pins["spack"]["commit"]:
        wrong("spack.commit", commit, pins["spack"]["commit"])
    specs = lock["concrete_specs"]
    locked = {specs[root["hash"]]["name"] for root in lock["roots"]}
    if locked != environment.roots:
        wrong("roots", ", ".join(sorted(locked)), ", ".join(sorted(environment.roots)))
    overlay_names = {
        path.parent.name.replace("_", "-") for path in overlay.glob("packages/*/package.py")
    }
    for spec in specs.values():
        for key, found, accepted in _spec_mistakes(spec, environment, overlay_names):
            wrong(f"{spec['name']}.{key}", found, accepted)
    return mistakes


def _spec_mistakes(
    spec: Mapping[str, Json], environment: LockedEnvironment, overlay_names: set[str]
) -> Iterator[tuple[str, object, str]]:
    """Yield key, found and accepted for each error of one concrete spec."""
    arch = spec["arch"]
    found_target = arch["target"] if isinstance(arch["target"], str) else arch["target"]["name"]
    for key, found, accepted in (
        ("arch.platform", arch["platform"], "linux"),
        ("arch.platform_os", arch["platform_os"], environment.system),
        ("arch.target", found_target, environment.target),
    ):
        if found != accepted:
            yield key, found, accepted
    if not re.fullmatch(r"[\w.+-]+", str(spec.get("version", ""))):
        yield "version", spec.get("version"), "one version"
    wanted = environment.versions.get(spec["name"])
    # `@2.3` of Spack also means 2.3.7 and 2.3-1.
    if wanted and not re.match(rf"{re.escape(wanted)}($|[.-])", str(spec.get("version"))):
        yield "version", spec.get("version"), f"{wanted}, which packages require"
    if not (spec.get("external") or spec.get("package_hash")):
        yield "package_hash", None, "the hash of the recipe"
    namespace = "proofmark" if spec["name"] in overlay_names else "builtin"
    if spec.get("namespace") != namespace:
        yield "namespace", spec.get("namespace"), namespace
    if "dev_path" in spec.get("parameters", {}):
        yield "parameters.dev_path", spec["parameters"]["dev_path"], "no development source"
    external = spec["external"].get("path") if spec.get("external") else None
    if external in environment.externals.get(spec["name"], ()):
        return  # the site answers for the paths of its own parts
    if external and spec["name"] not in ("gcc", "glibc"):
        yield "external", external, "gcc and glibc, and what spack.yaml of a site declares"
    edges = {edge["name"] for edge in spec.get("dependencies", [])}
    if "compiler-wrapper" in edges and "gcc" not in edges:
        yield "dependencies", "compiler-wrapper without gcc", "both"
    for key, path in _paths(spec):
        if not SYSTEM_PREFIX.match(path):
            yield key, path, "only paths below /usr"


def _paths(value: Json, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every absolute path in a JSON value, with its dotted key."""
    if isinstance(value, str) and (value.startswith(("/", "file://")) or "=/" in value):
        yield key, value
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _paths(item, f"{key}.{name}" if key else name)


def forbidden_instructions(disassembly: str, features: frozenset[str]) -> list[str]:
    """Return the Xeon-Phi-only instructions in a disassembly that a CPU cannot run.

    Args:
        disassembly: the output of ``objdump -d``.
        features: the CPU features of the target, as archspec names them (``avx512er``).
    """
    found: set[str] = set()
    for feature, mnemonics in PHI_ONLY.items():
        if feature not in features:
            found |= {match.group() for match in mnemonics.finditer(disassembly)}
    return sorted(found)
