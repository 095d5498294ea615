"""The easystack of the kit: the easyconfigs of the packages, for all environments."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from proofmark.common.errors import bad_input, nearest
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import load
from proofmark.software.installed import Spelling, spellings

EASYCONFIGS = Path("environments/common/easyconfigs")
EASYSTACK = Path("environments/common/easystack.yml")

Entry = str | dict[str, Any]
"""The name of an easyconfig; or this name with its options."""


class EasyStack(StrictModel):
    """An easystack: a list of easyconfigs. An easyconfig may have options."""

    easyconfigs: list[Entry]

    def by_package(self, known: Mapping[str, Spelling]) -> dict[str, Entry]:
        """Return the entries by package; `known` has EasyBuild's names of the packages."""
        names = [
            entry if isinstance(entry, str) else next(iter(entry)) for entry in self.easyconfigs
        ]
        return {
            package: entry
            for package, spelling in known.items()
            for name, entry in zip(names, self.easyconfigs, strict=True)
            if name.startswith(f"{spelling.name}-")
        }


def entries_of(kit: Path) -> dict[str, Entry]:
    """Return the entries of the easystack of the checkout `kit`, by package.

    Raises:
        BadInput: the easystack is wrong.
    """
    return load(kit / EASYSTACK, EasyStack).by_package(spellings(kit / "environments").easybuild)


@contextmanager
def easystack_of(kit: Path, wanted: Collection[str]) -> Iterator[Path]:
    """Make an easystack of the packages `wanted`, empty: all; it exists within the context.

    Raises:
        BadInput: a package is not in the easystack of the kit.
    """
    entries = entries_of(kit)
    if unknown := sorted(set(wanted) - entries.keys()):
        found = f"no package {unknown[0]!r}{nearest(unknown[0], entries)}"
        raise bad_input(EASYSTACK, "", found, ", ".join(sorted(entries)))
    chosen = [entry for name, entry in entries.items() if name in (wanted or entries)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / EASYSTACK.name
        path.write_text(yaml.safe_dump({"easyconfigs": chosen}))
        yield path
