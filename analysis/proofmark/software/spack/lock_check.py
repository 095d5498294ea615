"""Checks the locks of ``environments/`` and of sites.

A lock is the result of Spack's solver for one architecture and one operating system. Spack writes
an equal result in a different order each time. A shipped lock therefore has a canonical form, so
that two sites can compare bytes. Spack does not notice an edited recipe, so that a digest of the
overlay recipes is beside each lock. No check needs Spack.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from archspec.cpu import TARGETS

from proofmark.common.errors import InputError, bad_input, nearest
from proofmark.common.files import read_json
from proofmark.common.printed_command import Part, PrintedCommand, of_person
from proofmark.software.spack.installation import Json
from proofmark.software.spack.lock_file import (
    REQUEST,
    SiteRequest,
    abstract_specs,
    asked_beside,
    read_lock,
)
from proofmark.software.spack.mirror import check_sources

SYSTEM_PREFIX = re.compile(r"^/usr(/|$)")
"""Paths that a shipped lock may contain."""


JsonObject = Mapping[str, Json]


def canonicalise(lock: JsonObject) -> str:
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


def _canonical_spec(spec: JsonObject) -> dict[str, Json]:
    """Sort the lists of a concrete spec that are sets: dependencies, types, variant values."""
    shipped = dict(spec)
    if "dependencies" in spec:
        shipped["dependencies"] = sorted(
            ({**edge, "parameters": _sorted(edge)} for edge in spec["dependencies"]),
            key=lambda edge: (edge["name"], edge["hash"]),
        )
    shipped["parameters"] = _sorted(spec)
    return shipped


def _sorted(of: JsonObject) -> dict[str, Json]:
    """Return the parameters of a spec or an edge with sorted lists; flags keep their order."""
    return {
        name: sorted(value, key=str) if isinstance(value, list) and "flags" not in name else value
        for name, value in of.get("parameters", {}).items()
    }


def overlay_digest(overlay: Path) -> str:
    """Return the SHA-256 over names and contents of every file of the overlay recipes.

    Byte code and hidden folders, which tools write, are not part of a recipe.
    """
    digest = hashlib.sha256()
    for path in sorted(overlay.rglob("*")):
        name = path.relative_to(overlay)
        of_a_tool = any(part == "__pycache__" or part.startswith(".") for part in name.parts)
        if path.is_file() and not of_a_tool:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{content}  {name.as_posix()}\n".encode())
    return digest.hexdigest()


def root_names(environment: JsonObject, definitions: Mapping[str, list[Json]]) -> set[str]:
    """Return the package names that an environment's ``specs`` request.

    Args:
        definitions: all named lists, also those of included files.
    """
    specs = abstract_specs(environment["specs"], definitions)
    return {each.package for each in specs if each.package}


@dataclass(frozen=True)
class LockedEnvironment:
    """What an environment requests on one operating system.

    Attributes:
        system: the name that Spack uses for the operating system (``debian12``).
        externals: the prefixes that a site declares, by package; the kit declares none but gcc's.
        versions: the version that a package must have, if the lock has the package.
    """

    system: str
    roots: set[str]
    target: str
    externals: Mapping[str, Sequence[str]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def check_lock(
    name: str,
    text: str,
    recorded: str,
    environment: LockedEnvironment,
    overlay: Path,
    pins: JsonObject,
) -> list[InputError]:
    """Return all errors of a lock that is to be shipped.

    Args:
        name: the name of its file in messages.
        recorded: the digest of the recipes beside it.
    """
    lock = json.loads(text)
    mistakes: list[InputError] = []

    def wrong(key: str, found: object, accepted: str) -> None:
        mistakes.append(InputError(name, key, str(found), accepted))

    if text != canonicalise(lock):
        wrong("", "a lock that is not canonical", "the text that `make lock` writes")
    digest, commit = overlay_digest(overlay), pins["spack"]["commit"]
    if recorded.strip() != digest:
        wrong("overlay.sha256", recorded.strip(), f"{digest} (recipes changed: make lock)")
    if (found := lock.get("spack", {}).get("commit")) != commit:
        wrong("spack.commit", found, commit)
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
    spec: JsonObject, environment: LockedEnvironment, overlay_names: set[str]
) -> Iterator[tuple[str, object, str]]:
    """Yield key, found and accepted for each error of one concrete spec."""
    arch, namespace = spec["arch"], "proofmark" if spec["name"] in overlay_names else "builtin"
    found_target = arch["target"] if isinstance(arch["target"], str) else arch["target"]["name"]
    version, external = spec.get("version"), (spec.get("external") or {}).get("path")
    for key, found, accepted in (
        ("arch.platform", arch["platform"], "linux"),
        ("arch.platform_os", arch["platform_os"], environment.system),
        ("arch.target", found_target, environment.target),
        ("namespace", spec.get("namespace"), namespace),
    ):
        if found != accepted:
            yield key, found, accepted
    if not re.fullmatch(r"[\w.+-]+", str(version or "")):
        yield "version", version, "one version"
    wanted = environment.versions.get(spec["name"])
    # `@2.3` of Spack also means 2.3.7 and 2.3-1.
    if wanted and not re.match(rf"{re.escape(wanted)}($|[.-])", str(version)):
        yield "version", version, f"{wanted}, which packages require"
    if not (spec.get("external") or spec.get("package_hash")):
        yield "package_hash", None, "the hash of the recipe"
    if "dev_path" in spec.get("parameters", {}):
        yield "parameters.dev_path", spec["parameters"]["dev_path"], "no development source"
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


OVERLAY = Path("spack-repo/spack_repo/proofmark")
PINS = Path("environments/common/spack-pins.yaml")
ONE_VERSION = re.compile(r"@=?([\w.-]+)")
PACKAGES = "packages.yaml"
"""The file in the folder of a site's locks with what the site asks of packages."""


def digest_of_inputs(source: Path, directory: Path, operating_system: str) -> str:
    """Return the SHA-256 of what asks something of the lock of a site; comments do not count.

    Args:
        directory: the folder of the kit's environment, from which its `include` starts.

    Raises:
        BadInput: a file is missing, or has no mapping.
    """
    environment, choice = read_spack_yaml(source), source.parents[2] / PACKAGES
    asked = [environment, *_included(directory / "spack.yaml", environment, operating_system)]
    asked += [load_mapping(choice)] if choice.is_file() else []
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()


def read_environment(
    directory: Path, operating_system: str, site: Path | None = None
) -> LockedEnvironment:
    """Read ``spack.yaml`` and the files that it includes for one operating system.

    Args:
        site: the ``spack.yaml`` of a site for this environment; None for the kit's.

    Raises:
        BadInput: there is no such environment or operating system, or not exactly one target.
    """
    source, environment = _spack_yaml(directory)
    if site:
        environment = read_spack_yaml(site)
    scopes = [environment, *_included(source, environment, operating_system)]
    definitions = definitions_of(scopes)
    beside = asked_beside(site.parent) if site else {}
    prefixes = {
        name: tuple(str(each["prefix"]) for each in entry.get("externals", ()))
        for name, entry in beside.items()
    }
    # Spack itself has compared the lock of a site with all that the site asks.
    return LockedEnvironment(
        versions={} if site else _versions([each.get("packages", {}) for each in scopes]),
        system=operating_system,
        roots=root_names(environment, definitions),
        target=read_target(directory),
        externals={name: each for name, each in prefixes.items() if each},
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


def external_mistakes(source: Path, merged: JsonObject) -> Iterator[InputError]:
    """Yield the externals of the ``spack.yaml`` of a site without the version that is required.

    Spack would only say that there is no solution. It takes 2.3.7-1 where 2.3.7 is required, and
    not the reverse.
    """
    versions = _versions([merged])
    for name, entry in read_spack_yaml(source).get("packages", {}).items():
        found = [each.version for each in abstract_specs(entry.get("externals", ()))]
        wanted = re.compile(rf"{re.escape(f'{versions.get(name)}')}(?!\w)")
        if name in versions and found and not any(map(wanted.match, found)):
            labels = ", ".join(f"{name}@{each}" for each in found)
            accepted = f'"@VERSION" of the external ({labels}), or `--find` again'
            key = f"packages.{name}.require"
            yield InputError(str(source), key, f"@{versions[name]}", accepted)


def read_target(directory: Path) -> str:
    """Return archspec's name of the processor that an environment builds for.

    Raises:
        BadInput: there is no such environment, or not exactly one target in its ``spack.yaml``.
    """
    source, environment = _spack_yaml(directory)
    words = abstract_specs(definitions_of([environment]).get("arch", ()))
    targets = [target for word in words if (target := word.value("target"))]
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


def definitions_of(scopes: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return all lists of `definitions`, by name."""
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
        for name, entry in scope.items():
            required = entry.get("require", ())
            for each in [required] if isinstance(required, str) else required:
                if isinstance(each, str) and (version := ONE_VERSION.fullmatch(each)):
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
        locks: the folder of a site's locks; None for the kit's.

    Raises:
        BadInput: the lock, its ``spack.yaml`` or the digest of its recipes is missing or wrong.
    """
    directory = (locks or root / "environments") / arch
    lock = directory / operating_system / "spack.lock"
    digest = lock.with_name("overlay.sha256")
    for path in (lock, digest):
        if not path.is_file():
            words: list[str | Part] = [of_person(operating_system, "OS", "--os")]
            words = [of_person(locks.parent, "SITE", "-i"), "--find"] if locks else words
            command = PrintedCommand("proofmark", "lock", of_person(arch, "ARCH"), *words)
            raise bad_input(path, "", "no such file", f"the file that `{command}` writes")
    specs = read_lock(lock)
    kit = root / "environments" / arch
    source = lock.with_name("spack.yaml") if locks else None
    mistakes = check_lock(
        str(lock.relative_to(locks or root)),
        lock.read_text(),
        digest.read_text(),
        read_environment(kit, operating_system, source),
        root / OVERLAY,
        load_mapping(root / PINS),
    )
    if source:
        mistakes += _request_mistakes(source, kit, operating_system)
    return [*mistakes, *check_sources(specs)]


def _request_mistakes(source: Path, directory: Path, system: str) -> Iterator[InputError]:
    """Yield a mistake if the files of a site have changed since its lock was made.

    Raises:
        BadInput: nothing states what they asked.
    """
    recorded = source.with_name(REQUEST)
    now = digest_of_inputs(source, directory, system)
    if (made := read_json(recorded, SiteRequest).inputs) != now:
        accepted = f"{now[:12]}, what {PACKAGES}, spack.yaml and its `include` ask now"
        yield InputError(str(recorded), "inputs", made[:12], accepted)
