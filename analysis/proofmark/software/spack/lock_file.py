"""Reads locks of Spack: the specs, their order, and the missing ones."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from proofmark.common.errors import bad_input
from proofmark.common.files import read_json
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import parse_yaml
from proofmark.software.installed import DerivedPart

VIRTUALS = ("mpi", "blas")
"""The virtual packages of a program whose provider a report names, most important first."""


FLAGS = ("cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs")
"""The parameters of a spec that are flags of its compiler."""
PATCHES, DIGITS = "patches", 7
"""The variant with the SHA-256 of each patch, and the digits of one that Spack prints."""

NETWORK = ("libfabric", "ucx", "rdma-core")
"""The libraries below an MPI that drive the network."""

PARALLEL = ("gpfs", "lustre")
"""The drivers of ROMIO for parallel file systems that an MPI of the kit can have."""

COMPILERS = ("gcc", "llvm", "intel-oneapi-compilers", "aocc", "nvhpc", "cce", "acfl", "armgcc")
"""The packages of Spack that are compilers."""


REQUEST = "packages.json"
"""The file beside the lock of a site: a `SiteRequest`."""


class SiteRequest(StrictModel):
    """What the files of a site and of the kit ask of packages, as Spack merged it.

    Attributes:
        inputs: the digest of these files when the lock was made.
        packages: the merged configuration; ``spack config get packages`` prints it.
    """

    inputs: str
    packages: dict[str, dict[str, Any]]


def asked_beside(folder: Path) -> dict[str, Any]:
    """Return what was asked of packages for the lock in a folder; of the kit, by ``spack.yaml``.

    Empty if the folder has neither file.

    Raises:
        BadInput: the file is damaged.
    """
    if (folder / REQUEST).is_file():
        return read_json(folder / REQUEST, SiteRequest).packages
    source = folder / "spack.yaml"
    if not source.is_file():
        return {}
    loaded = parse_yaml(source.read_text(encoding="utf-8"), source)
    asked: dict[str, Any] = loaded["spack"].get("packages", {})
    return asked


_SPEC = re.compile(
    r"(?P<package>\w[\w.-]*(?![\w.:=-]))?(?:@=?(?P<version>[^\s+~%^@]+))?"
    r"(?P<variants>(?:[^%^\"']|\"[^\"]*\"|'[^']*')*)(?P<others>.*)"
)
_VARIANT = re.compile(r"""(?:[+~]+|(?<!\S)-+)([\w.-]+)|([\w.-]+):?==?("[^"]*"|'[^']*'|\S+)""")


@dataclass(frozen=True)
class AbstractSpec:
    """A spec as the notation of Spack asks for it; a constraint of any package has none.

    Attributes:
        variants: the words that state them, by name: ``+openmp``, ``threads=none``.
        others: what it asks of compiler and dependencies, from the first on.
    """

    package: str = ""
    version: str = ""
    variants: Mapping[str, str] = field(default_factory=dict)
    others: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the spec of a text."""
        stated = _SPEC.match(" ".join(text.split()))
        assert stated  # each part of the pattern may be empty
        words = {word[1] or word[2]: word[0] for word in _VARIANT.finditer(stated["variants"])}
        return cls(stated["package"] or "", stated["version"] or "", words, stated["others"])

    def value(self, variant: str) -> str:
        """Return the value of a variant that is no switch; empty if it is not stated."""
        return self.variants.get(variant, "").partition("=")[2].strip("='\"")

    def __str__(self) -> str:
        """Return its text."""
        label = f"{self.package}@{self.version}" if self.version else self.package
        return " ".join(filter(None, (label, *self.variants.values(), self.others)))


def variant_word(name: str, value: Any) -> str:
    """Return the value of a variant in the notation of Spack: ``+openmp``, ``threads=none``."""
    if isinstance(value, bool):
        return f"{'+' if value else '~'}{name}"
    digits = DIGITS if name == PATCHES else None
    values = value if isinstance(value, list) else [value]
    return f"{name}={','.join(str(each)[:digits] for each in values)}"


def abstract_specs(
    asked: str | Iterable[Any], definitions: Mapping[str, Iterable[Any]] = MappingProxyType({})
) -> Iterator[AbstractSpec]:
    """Yield the specs in a value of ``packages.yaml`` or ``spack.yaml``, also of alternatives.

    Args:
        definitions: the lists that ``$name`` means.
    """
    if isinstance(asked, str) and asked.startswith("$"):
        yield from abstract_specs(definitions[asked[1:]], definitions)
    elif isinstance(asked, str):
        yield AbstractSpec.parse(asked)
    else:
        kinds = ("spec", "any_of", "one_of", "matrix")
        parts = [asked.get(kind, ()) for kind in kinds] if isinstance(asked, Mapping) else asked
        for each in parts:
            yield from abstract_specs(each, definitions)


@dataclass(frozen=True)
class Spec:
    """One concrete spec.

    Attributes:
        target: archspec's name of the processor that it is built for.
        requested: name and version; of a root with the rest that the environment requests.
        run: hashes of the dependencies of types `link` and `run`.
        build: hashes of the dependencies that only the build needs.
        prefix: the prefix of an external; empty for a spec that Spack builds.
        threads: the variant ``threads`` of a BLAS; empty for other packages.
        variants: all its variants, and flags of compilers; an external has those that are known.
        virtuals: hashes of the dependencies that are its ``mpi`` and ``blas``.
    """

    name: str
    version: str
    hash: str
    target: str
    requested: str
    external: bool
    run: tuple[str, ...]
    build: tuple[str, ...]
    prefix: str = ""
    threads: str = ""
    variants: Mapping[str, Any] = field(default_factory=dict)
    virtuals: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name and version, ``ior@4.0.0``."""
        return f"{self.name}@{self.version}"

    @property
    def switches(self) -> str:
        """The variants without the flags, in the notation of Spack, in order."""
        given = sorted(self.variants.items())
        return " ".join(variant_word(name, value) for name, value in given if name not in FLAGS)

    @property
    def flags(self) -> str:
        """The flags of its compiler, in the notation of Spack, in order."""
        given = {name: self.variants.get(name) for name in FLAGS}
        return " ".join(
            f"{name}={' '.join(map(str, words))}" for name, words in given.items() if words
        )


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

    def missing(self, packages: Iterable[str], installed: Collection[str]) -> list[Spec]:
        """Return the specs to install for `packages`, dependencies first.

        A spec in `installed` needs no build dependencies.

        Raises:
            BadInput: a package is no root of the lock.
        """
        seen, found = set[str](), list[Spec]()

        def visit(spec: Spec) -> None:
            if spec.hash in seen or spec.external:
                return
            seen.add(spec.hash)
            for other in spec.run if spec.hash in installed else (*spec.build, *spec.run):
                visit(self.specs[other])
            if spec.hash not in installed:
                found.append(spec)

        for package in packages:
            visit(self.root(package))
        return found


def read_lock(path: Path) -> Lock:
    """Read a ``spack.lock``; of an external, only the variants that its ``spack.yaml`` states.

    Spack completes an external with the defaults of its recipe, which recipes of programs read.
    Nobody looked at these variants in the library of the site: they are not known.

    Raises:
        BadInput: the file is missing or is not a lock, a root has no spec, or two roots are of one
            package.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        requested = {root["hash"]: root["spec"] for root in raw["roots"]}
        stated = dict[str, set[str]]()
        for name, entry in asked_beside(path.parent).items():
            for spec in abstract_specs(entry.get("externals", ())):
                stated.setdefault(name, set()).update(spec.variants)
        specs = {
            key: _spec(key, _as_stated(spec, stated), requested)
            for key, spec in raw["concrete_specs"].items()
        }
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


def _as_stated(raw: dict[str, Any], stated: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """Return a spec of a lock; an external of `stated` with the variants that are stated there."""
    names = stated.get(raw["name"]) if raw.get("external") else None
    if names is None:
        return raw
    known = raw.get("parameters", {}).items()
    return {**raw, "parameters": {name: value for name, value in known if name in names}}


def _spec(key: str, raw: dict[str, Any], requested: dict[str, str]) -> Spec:
    edges = [
        (edge["hash"], set(edge["parameters"]["deptypes"])) for edge in raw.get("dependencies", [])
    ]
    name, version = str(raw["name"]), str(raw["version"])
    target, external = raw["arch"]["target"], raw.get("external")
    rest = re.sub(r"^@[^\s+~%^]+", "", requested.get(key, "").removeprefix(name))
    threads = raw.get("parameters", {}).get("threads", "")  # a value, a list of one, or a switch
    virtuals: dict[str, str] = {}
    for edge in raw.get("dependencies", []):
        for virtual in edge["parameters"].get("virtuals", []):
            if virtual in VIRTUALS:
                virtuals[virtual] = edge["hash"]
    return Spec(
        name=name,
        version=version,
        hash=key,
        target=target if isinstance(target, str) else str(target["name"]),
        requested=f"{name}@{version}{rest}",
        external=bool(external),
        run=tuple(other for other, kinds in edges if kinds & {"link", "run"}),
        build=tuple(other for other, kinds in edges if not kinds & {"link", "run"}),
        prefix=str(external.get("path") or "") if external else "",
        threads=",".join(threads) if isinstance(threads, list) else str(threads),
        variants=raw.get("parameters", {}),
        virtuals=virtuals,
    )


def build_of(lock: Lock, package: str) -> dict[str, str]:
    """Return how Spack builds a package: variants, flags, compiler, MPI, BLAS, and the network.

    What a spec does not have is left out.

    Raises:
        BadInput: the lock has no such package.
    """
    root = lock.root(package)
    compilers = [lock.specs[each] for each in root.build if lock.specs[each].name in COMPILERS]
    found = {
        "variants": root.switches,
        "flags": root.flags,
        "compiler": ", ".join(sorted(each.label for each in compilers)),
    }
    for virtual in VIRTUALS:
        if virtual in root.virtuals:
            spec = lock.specs[root.virtuals[virtual]]
            found[virtual] = _with_switches(spec)
    network = (spec for spec in closure(lock, root.run) if spec.name in NETWORK)
    found["network"] = "; ".join(map(_with_switches, sorted(network, key=lambda each: each.name)))
    return {name: text for name, text in found.items() if text}


def _with_switches(spec: Spec) -> str:
    return " ".join(filter(None, (spec.label, spec.switches, spec.flags)))


def derived_parts(kit_lock: Lock, site_lock: Lock, package: str) -> list[DerivedPart] | None:
    """Return how a site's program differs from the kit's; None if their hashes are equal.

    The parts are the program and what it loads, MPI and BLAS first, if the version differs or the
    part is of the site, and the compiler. Other build tools are not listed. An empty list: the
    program was built by other tools, or the versions are equal and the variants are not.

    Raises:
        BadInput: the site's lock has no such package.
    """
    root = site_lock.root(package)
    if kit_lock.roots.get(package) == root.hash:
        return None
    kit = {spec.name: spec for spec in kit_lock.specs.values()}
    kit_root = kit_lock.specs[kit_lock.roots[package]] if package in kit_lock.roots else None
    compilers = [each for each in root.build if site_lock.specs[each].name == "gcc"]
    roles = {virtual: root.virtuals[virtual] for virtual in VIRTUALS if virtual in root.virtuals}
    loaded = closure(site_lock, [*roles.values(), root.hash, *compilers])
    by_hash = {spec_hash: virtual for virtual, spec_hash in roles.items()}
    parts = []
    for spec in loaded:
        role = by_hash.get(spec.hash, "")
        kit_hash = kit_root.virtuals.get(role) if kit_root else None
        same = kit_lock.specs[kit_hash] if kit_hash else kit.get(spec.name)
        known = (same.name, same.version, same.prefix) if same else None
        if known != (spec.name, spec.version, spec.prefix):
            parts.append(
                DerivedPart(
                    package=spec.name,
                    role=role,
                    kit=same.label if same else "",
                    version=spec.version,
                    prefix=spec.prefix,
                )
            )
    return parts


def lock_changes(before: Lock, after: Lock) -> dict[str, tuple[list[str], list[str]]]:
    """Return the versions of each package that differs between two locks, in both of them.

    If the versions are equal, the package is built in another way.
    """
    differing = before.specs.keys() ^ after.specs.keys()
    specs = {**before.specs, **after.specs}

    def versions(lock: Lock, name: str) -> list[str]:
        return sorted({each.version for each in lock.specs.values() if each.name == name})

    names = sorted({specs[each].name for each in differing})
    return {name: (versions(before, name), versions(after, name)) for name in names}


def closure(lock: Lock, hashes: Iterable[str]) -> list[Spec]:
    """Return specs and what they load at run time, each once, in the order of `hashes`."""
    seen: dict[str, None] = {}
    waiting = list(hashes)
    while waiting:
        spec_hash = waiting.pop(0)
        if spec_hash not in seen:
            seen[spec_hash] = None
            waiting += lock.specs[spec_hash].run
    return [lock.specs[spec_hash] for spec_hash in seen]
