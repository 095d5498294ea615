"""A script for ``spack -e ENVIRONMENT python``: prints Spack's hashes of each spec that is built.

It imports modules of Spack, so nothing of the kit imports it. `SpecHashes` describes its output.
"""

from __future__ import annotations

import json
import sys

import spack.environment
import spack.hash_types
import spack.repo

DAG = spack.hash_types.dag_hash


def hashes() -> list[dict[str, str | None]]:
    """Return the hashes in the lock of the active environment, and the same ones computed now."""
    found = []
    for spec in spack.environment.active_environment().all_specs():
        if not spec.external:
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


if __name__ == "__main__":
    json.dump(hashes(), sys.stdout)
