"""A script for ``spack -e ENVIRONMENT python``: prints the packages that other recipes would build.

It imports modules of Spack, so nothing of the kit imports it. The output is the label of each spec
of the lock that Spack builds, if the hash of its recipe and patches is not that of the lock.
"""

from __future__ import annotations

import json
import sys

import spack.environment


def changed() -> dict[str, list[str]]:
    """Return the hash of the lock and that of the recipe, by ``name@version``, if they differ."""
    found = {}
    for spec in spack.environment.active_environment().all_specs():
        if not spec.external:
            locked, now = str(spec.to_node_dict()["package_hash"]), spec.package.content_hash()
            if locked != now:
                found[f"{spec.name}@{spec.version}"] = [locked, now]
    return found


if __name__ == "__main__":
    json.dump(changed(), sys.stdout)
