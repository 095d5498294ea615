"""A site: its Ansible inventory, read with Ansible's own library so that both always agree."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from proofmark.cases import Reference, Slug
from proofmark.errors import BadInput, Mistake, bad_input, nearest
from proofmark.yamlfile import accepted_keys

COMPUTE = "compute"
"""The parent group of all partitions; plays target it."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Scratch(_Model):
    """The directory in which benchmarks write, and what it must be.

    ``type`` and ``off_root`` are demands that the guard enforces; None or False demand nothing.
    """

    path: str = Field(pattern=r"^/")
    type: str | None = None
    off_root: bool = False


class Limit(Reference):
    """A contract limit of the site: a reference that also names its case."""

    case: Slug
    kind: Literal["contract"] = "contract"


class Partition(_Model):
    """What the kit must know of one partition: the variable ``partition`` of its group.

    ``hardware: discovered`` asks the machine; ``run_user`` None is whoever starts the play.
    """

    hardware: Literal["discovered"]
    environment: Slug
    scheduler: Slug
    provision_from: Literal["system", "spack", "easybuild", "preinstalled"]
    scratch: Scratch
    run_user: str | None = None
    origin: Literal["measured", "emulated"] = "measured"
    modes: list[str] = Field(default=["current"], min_length=1)
    limits: list[Limit] = []


class Site(_Model):
    """One partition's hosts under a limit, and how they are reached."""

    name: str
    inventory: Path
    limit: str
    partition_name: str
    partition: Partition
    hosts: tuple[str, ...]
    connection: str

    @property
    def facts(self) -> Path:
        """Where the inventory keeps the partition's facts."""
        return self.inventory / "group_vars" / self.partition_name


def choose_inventory(given: Sequence[str], environment: Mapping[str, str] = os.environ) -> Path:
    """Return the one inventory to use: ``-i`` or ``PROOFMARK_SITE``.

    Raises:
        BadInput: none or more than one site is named, or the folder does not exist.
    """
    sites = [item for text in given for item in text.split(",") if item]
    site = environment.get("PROOFMARK_SITE")
    if site and [Path(item).name for item in sites] != [site]:
        sites.append(f"inventory/{site}")
    if len(sites) != 1:
        found = f"{len(sites)} sites ({', '.join(sites)})" if sites else "no site"
        raise bad_input("-i", "", found, "exactly one site: -i inventory/<site> or PROOFMARK_SITE")
    path = Path(sites[0])
    if not path.exists():
        there = sorted(p.name for p in path.parent.glob("*") if p.is_dir())
        hint = nearest(path.name, there)
        raise bad_input("-i", "", f"no inventory {path}{hint}", ", ".join(there) or "a folder")
    return path


def load_site(
    inventory: Path, limit: str, overrides: Mapping[str, str | None] | None = None
) -> Site:
    """Read the hosts and the partition that `limit` selects.

    `overrides` are the extra variables ``provision_from`` and ``scratch_dir``; None leaves
    what the inventory says.

    Raises:
        BadInput: the limit selects no host or hosts of several partitions, or the partition's
            facts are wrong.
    """
    hosts, groups, variables = _ask_ansible(inventory, limit)
    if len(groups) != 1:
        found = f"hosts of {', '.join(groups)}" if groups else "no host"
        raise bad_input("-l", "", f"{limit!r}: {found}", "hosts of exactly one partition")
    file = inventory / "group_vars" / groups[0]
    if "partition" not in variables:
        raise bad_input(file, "partition", "nothing", "the facts of the partition")
    raw = _override(variables["partition"], overrides or {})
    try:
        partition = Partition.model_validate(raw)
    except ValidationError as error:
        raise BadInput(*(_mistake(file, item) for item in error.errors())) from None
    return Site(
        name=inventory.name,
        inventory=inventory,
        limit=limit,
        partition_name=groups[0],
        partition=partition,
        hosts=hosts,
        connection=variables.get("ansible_connection", "ssh"),
    )


def _mistake(file: Path, item: ErrorDetails) -> Mistake:
    key = ".".join(["partition", *map(str, item["loc"])])
    if item["type"] == "extra_forbidden":
        words = accepted_keys(Partition, item["loc"])
        hint = nearest(str(item["loc"][-1]), words)
        return Mistake(str(file), key, f"unknown key{hint}", f"one of {', '.join(words)}")
    found = "nothing" if item["type"] == "missing" else repr(item["input"])
    return Mistake(str(file), key, found, item["msg"])


def _override(raw: Any, overrides: Mapping[str, str | None]) -> Any:
    if not isinstance(raw, dict):
        return raw
    changed = dict(raw)
    if source := overrides.get("provision_from"):
        changed["provision_from"] = source
    if directory := overrides.get("scratch_dir"):
        scratch = changed.get("scratch")
        changed["scratch"] = {**(scratch if isinstance(scratch, dict) else {}), "path": directory}
    return changed


def _ask_ansible(
    inventory: Path, limit: str
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, Any]]:
    """Return host names, their partitions, and the templated variables of the first host."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from ansible.errors import AnsibleError
        from ansible.inventory.manager import InventoryManager
        from ansible.parsing.dataloader import DataLoader
        from ansible.template import Templar
        from ansible.vars.manager import VariableManager

        loader = DataLoader()
        try:
            manager = InventoryManager(loader=loader, sources=[str(inventory)])
            manager.subset(limit)
            hosts = manager.get_hosts(COMPUTE)
            if not hosts:
                return (), (), {}
            compute = manager.groups[COMPUTE]
            partitions = {group.name for group in compute.child_groups}
            used = {group.name for host in hosts for group in host.groups} & partitions
            scope = VariableManager(loader=loader, inventory=manager).get_vars(host=hosts[0])
            kept = {key: scope[key] for key in ("partition", "ansible_connection") if key in scope}
            values = Templar(loader=loader, variables=scope).template(kept)
        except AnsibleError as error:
            raise bad_input(inventory, "", str(error), "a valid Ansible inventory") from None
    return tuple(host.name for host in hosts), tuple(sorted(used)), _plain(values)


def _plain(value: Any) -> Any:
    """Strip Ansible's tagged subclasses: pydantic's strict types want the plain ones."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value
