"""A script for ``spack -e ENVIRONMENT python``: prints a property of what a lock builds.

Its argument is the property: a key of `PRINTED`. It imports modules of Spack, so nothing of the kit
imports it. `SpecHashes` and `SourceFile` describe its output.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import spack.environment
import spack.hash_types
import spack.repo
from spack.fetch_strategy import BundleFetchStrategy, URLFetchStrategy

DAG = spack.hash_types.dag_hash
OF_PYPI = re.compile(r"https://[^/]+/packages/(?:source|py\d)/[^/]/([^/]+)/[^/]+")
"""An address of a file in PyPI. Sites have an index of their own, so that its host says nothing."""


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


PRINTED = {"hashes": hashes, "sources": sources}

if __name__ == "__main__":
    json.dump(PRINTED[sys.argv[1]](), sys.stdout)
