"""Finds facts of a partition that Ansible drops because another file defines the same variable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proofmark.common.errors import BadInput, InputError
from proofmark.common.yaml_models import top_keys

ENDINGS = ("", ".yml", ".yaml", ".json")
"""The endings of the files of variables that Ansible reads (``YAML_VALID_EXTENSIONS``)."""


def refuse_split_facts(manager: Any, variable: str, parent: str) -> None:
    """Refuse an inventory with two files of variables that define `variable` of one partition.

    Ansible does not join dictionaries: that of one file replaces that of the other one.

    Args:
        manager: Ansible's ``InventoryManager``.
        variable: the name of the variable, a dictionary.
        parent: the group whose children are the partitions.

    Raises:
        BadInput: it names the files of each partition.
    """
    top = manager.groups.get(parent)
    folders = [
        source if source.is_dir() else source.parent for source in map(Path, manager._sources)
    ]
    mistakes = []
    for group in top.child_groups if top else ():
        names = [group.name, *(each.name for each in group.get_ancestors())]
        files = []
        for folder in folders:
            for name in names:
                files += [
                    file
                    for file in _files(folder / "group_vars" / name)
                    if variable in top_keys(file)
                ]
        if len(files) > 1:
            found = f"defined in {len(files)} files, of which Ansible reads one"
            others = ", ".join(str(file) for file in files[1:])
            accepted = f"one file with the key {variable}; another one is {others}"
            mistakes.append(InputError(f"{files[0]}", variable, found, accepted))
    if mistakes:
        raise BadInput(*mistakes)


def _files(path: Path) -> Iterator[Path]:
    """Yield the files of variables of the group whose name `path` has."""
    for ending in ENDINGS:
        each = path.with_name(f"{path.name}{ending}")
        if each.is_file():
            yield each
    if path.is_dir():
        found = (each for each in sorted(path.rglob("*")) if each.suffix in ENDINGS)
        yield from (each for each in found if each.is_file() and each.name[0] != ".")
