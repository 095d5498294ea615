"""A script for ``spack -e ENVIRONMENT python``: prints a property of what a lock builds.

Its arguments are the property, a key of `PRINTED`, and the JSON of its own arguments. It imports
modules of Spack, so nothing of the kit imports it. `SpecHashes`, `SourceFile` and `Unmet` describe
its output.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import spack.environment
import spack.hash_types
import spack.repo
from spack.fetch_strategy import BundleFetchStrategy, URLFetchStrategy

DAG = spack.hash_types.dag_hash
OF_PYPI = re.compile(r"https://[^/]+/packages/(?:source|py\d)/[^/]/([^/]+)/[^/]+")
"""An address of a file in PyPI. Sites have an index of their own, so that its host says nothing."""


SHOWN = "{name}{@version}{variants}{ target=architecture.target}"
"""What a message says of a spec."""


def built() -> Iterator[Any]:
    """Yield each spec of the active environment that Spack builds."""
    for spec in spack.environment.active_environment().all_specs():
        if not spec.external:
            yield spec


def hashes() -> list[dict[str, str | None]]:
    """Return the hashes in the lock of the active environment, and the same ones computed now."""
    found = []
    for spec in built():
        try:
            recipe = spec.package.content_hash()
        except spack.repo.UnknownPackageError:
            recipe = None
        each = {
            "label": f"{spec.name}@{spec.version}",
            "locked_spec": spec.dag_hash(),
            "spec": spec.spec_hash(DAG),
            "locked_recipe": spec.package_hash(),
            "recipe": recipe,
        }
        found.append(each)
    return found


def address(url: str, version: str) -> str:
    """Return an address; of a file in PyPI its package URL, ``pkg:pypi/cython@3.1.7``."""
    found = OF_PYPI.fullmatch(url)
    return f"pkg:pypi/{found[1]}@{version}" if found else url


def source(stage: Any, version: str) -> dict[str, Any]:
    """Return addresses, checksum and place in a mirror of one archive, resource or patch."""
    fetcher = stage.default_fetcher
    by_url = isinstance(fetcher, URLFetchStrategy)
    digest = fetcher.digest if by_url else None
    urls = fetcher.candidate_urls if by_url else [fetcher.url]
    return {
        "addresses": list(dict.fromkeys(address(str(url), version) for url in urls)),
        "name": stage.mirror_layout.alias.rpartition("/")[2],
        "place": stage.mirror_layout.path,
        "sha256": digest if digest and len(digest) == 64 else None,
    }


def sources() -> dict[str, list[dict[str, Any]]]:
    """Return the sources of the active environment, by ``name@version``."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for spec in built():
        files = found.setdefault(f"{spec.name}@{spec.version}", {})
        for stage in spec.package.stage:
            if not isinstance(stage.default_fetcher, BundleFetchStrategy):
                each = source(stage, str(spec.version))
                files[each["place"]] = each
    return {label: [files[place] for place in sorted(files)] for label, files in found.items()}


def asked_specs(entry: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield key and specs of each wish in an entry of ``packages.yaml``; one of them must hold."""
    for key in ("require", "prefer", "variants"):
        value = entry.get(key, [])
        for each in [value] if isinstance(value, (str, dict)) else value:
            if isinstance(each, str):
                yield key, [each]
            elif "when" not in each:
                yield key, each.get("any_of") or each.get("one_of") or [each["spec"]]
    if "version" in entry:
        yield "version", [f"@{each}" for each in entry["version"]]
    if "target" in entry:
        yield "target", [f"target={entry['target'][0]}"]


def unmet(asked: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield each wish of ``packages.yaml`` that no spec of its package fulfils."""
    specs = spack.environment.active_environment().all_specs()
    for name, entry in asked.items():
        own = [each for each in specs if name in (each.name, "all") or each.package.provides(name)]
        wishes = [(key, texts, own) for key, texts in asked_specs(entry)]
        for virtual, names in entry.get("providers", {}).items():
            providers = [each for each in specs if each.package.provides(virtual)]
            wishes.append((f"providers.{virtual}", names[:1], providers))
        for key, texts, concerned in wishes:
            if concerned and not any(spec.satisfies(each) for spec in concerned for each in texts):
                found = concerned[0].format(SHOWN)
                yield {"key": f"{name}.{key}", "found": found, "asked": " or ".join(texts)}


PRINTED: dict[str, Callable[..., Any]] = {"hashes": hashes, "sources": sources, "unmet": unmet}

if __name__ == "__main__":
    printed = PRINTED[sys.argv[1]](*map(json.loads, sys.argv[2:]))
    json.dump(printed if isinstance(printed, dict) else list(printed), sys.stdout)
