"""The sites of an inventory: their hosts, partitions and facts, and how the hosts are reached."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from proofmark.common.errors import BadInput, InputError, bad_input, nearest, refuse
from proofmark.common.host_names import HostTable, alike_error, canonical, clashes
from proofmark.common.nodesets import ACCEPTED, HostName, Nodes, is_name
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import mistakes_of, placed
from proofmark.site.access import Access
from proofmark.site.choice import LINK, chosen_site, missing_inventory, refuse_foreign_site
from proofmark.site.contract_document import (
    CONTRACT,
    CheckItem,
    Contract,
    ContractItem,
    read_contract,
)
from proofmark.site.firmware import SSH
from proofmark.site.groups import (
    ALIASES,
    COMPUTE,
    PARTITION,
    TOOLCHAIN,
    PartitionGroup,
    odd_variables,
    read_groups,
    unanswered,
    unread_group_vars,
)
from proofmark.site.partition import PREDICTED, Partition, Toolchain


def _place(facts: Path, *parts: str | int) -> str:
    """Return ``file:line`` of a variable of a partition; the folder if no file has it."""
    return placed(variable_files(facts), parts)[0] or f"{facts}"


def open_question(facts: Path, place: tuple[str | int, ...], text: str) -> InputError:
    """Return the error of a required key whose value is a question of ``proofmark init``."""
    key = ".".join([PARTITION, *map(str, place)])
    accepted = "the answer in place of the text"
    return InputError(_place(facts, PARTITION, *place), key, f"the question: {text}", accepted)


_PLACEHOLDERS: Mapping[str, Any] = {
    "environment": "local",
    "scheduler": "none",
    "provision_from": "system",
    "scratch": {"path": "/"},
}
"""Values of the required facts, for a partition in which these facts are wrong."""


def without_wrong_facts(raw: Any, error: ValidationError) -> Partition | None:
    """Return a partition of the facts that `error` does not name; None if they are not one."""
    wrong = {item["loc"][0] for item in error.errors() if item["loc"]}
    try:
        return Partition.model_validate(without_keys(raw, wrong) if wrong else _PLACEHOLDERS)
    except ValidationError:
        return None


def without_keys(raw: Any, wrong: Collection[Any]) -> dict[str, Any]:
    """Return `raw` without the keys `wrong`. A required key gets a placeholder."""
    right = raw.items() if isinstance(raw, dict) else ()
    return {**_PLACEHOLDERS, **{key: value for key, value in right if key not in wrong}}


def variable_files(folder: Path) -> list[Path]:
    """Return the files from which Ansible reads the variables of the group of `folder`."""
    return [folder.with_suffix(".yml"), *sorted(folder.glob("*.yml"))]


def fact_mistakes(facts: Path, error: ValidationError) -> list[InputError]:
    """Return each mistake in the facts of a partition."""
    files = variable_files(facts)

    def place(parts: Sequence[Any]) -> tuple[list[Any], str]:
        where, keys = placed(files, parts)
        return (keys, where) if where else ([*parts], f"{facts}")

    return mistakes_of(error, Partition.model_json_schema(), place, [PARTITION])


_PLACES = {
    "provision_from": ("provision_from",),
    "scratch_dir": ("scratch", "path"),
    "reservation": ("queue", "reservation"),
}
"""The place of the fact that an extra variable replaces, below ``partition``."""


Overrides = Mapping[str, str | None]
"""The values of extra variables, by name; None leaves that of the inventory."""


def overridden(raw: Any, overrides: Overrides) -> tuple[Any, dict[str, tuple[str, str]]]:
    """Return the facts `raw` with the values of extra variables (see `load_site`), and the changes.

    A change is what the inventory has, and what the variable has.
    """
    if not isinstance(raw, dict):
        return raw, {}
    changed, replaced = dict(raw), {}
    for name, (key, *below) in _PLACES.items():
        if not (value := overrides.get(name)):
            continue
        stated = changed.get(key)
        if below:
            own = stated if isinstance(stated, dict) else {}
            stated, changed[key] = own.get(below[0]), {**own, below[0]: value}
        else:
            changed[key] = value
        if value != stated:
            replaced[name] = ("" if stated is None else f"{stated}", value)
    return changed, replaced


class Site(StrictModel):
    """The hosts of one partition under a limit, and how they are reached.

    Attributes:
        name: of the site.
        limit: the host pattern of ``-l``.
        hosts: the hosts of the partition that the limit selects.
        connection: ``local`` if all hosts are this machine, else ``ssh``.
        remote_shell: the command that runs ``sh -s`` on a node, if there is no `ssh`. The name of
            the node replaces ``{node}``.
        ssh: how each host is reached; None if the firmware's facts name the command.
        partition_hosts: all hosts of the partition, in the inventory's order. Switch levels are
            computed from their numbers.
        aliases: further names that a host may report, by host: the variable `ALIASES` of the host,
            and the name of this machine for a host with the connection ``local``.
        contract: the document of the acceptance, if there is one.
        replaced: the values of the inventory that extra variables replace, and their values, by
            the name of the variable.
        toolchain: the compiler, MPI and BLAS of EasyBuild's programs: the variable `TOOLCHAIN`.
    """

    name: str
    inventory: Path
    limit: str
    partition_name: str
    partition: Partition
    hosts: tuple[HostName, ...]
    connection: str
    remote_shell: list[str] = [*SSH]
    ssh: Access | None = None
    partition_hosts: Nodes = []
    aliases: dict[str, list[str]] = {}
    contract: Contract | None = None
    replaced: dict[str, tuple[str, str]] = Field(default={}, exclude_if=lambda given: not given)
    toolchain: Toolchain = Field(
        default=Toolchain.FOSS, exclude_if=lambda given: given == Toolchain.FOSS
    )

    @property
    def items(self) -> dict[str, ContractItem]:
        """The limits of the contract for the partition, by their place in its file."""
        limits = self.contract.limits if self.contract else {}
        return {
            f"items.{place}": item
            for place, item in limits.items()
            if item.system in (None, self.partition_name)
        }

    @property
    def checks(self) -> list[CheckItem]:
        """The functional items of the contract for the partition."""
        checks = self.contract.checks if self.contract else []
        return [item for item in checks if item.system in (None, self.partition_name)]

    @property
    def contract_file(self) -> Path:
        """The file of the contract, which need not exist."""
        return self.inventory / CONTRACT

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Numbers of the partition's hosts, from 0, by host."""
        hosts = self.partition_hosts or self.hosts
        return {host: number for number, host in enumerate(hosts)}

    def location(self, host: str) -> dict[str, str]:
        """Return the switch of each level, and the rack, of `host`."""
        return self.partition.fabric.location(self._numbers[host], host)

    def switches(self, host: str) -> list[str | None]:
        """Return the switch of each level, the nearest first; None if `host` has none there."""
        number = self._numbers[host]
        return [level.group(number, host) for level in self.partition.fabric.levels]

    def distance(self, hosts: Sequence[str]) -> str:
        """Return the nearest level whose switch two hosts share; empty for other sets of hosts."""
        if len(hosts) != 2 or not self._numbers.keys() >= {*hosts}:
            return ""
        one, other = ((self._numbers[host], host) for host in hosts)
        return self.partition.fabric.distance(one, other)

    def host_of(self, name: str) -> str | None:
        """Return the host whose name, or one of its further names, is `name`.

        None: no host has this name, or several hosts can have it.
        """
        return self._table.find(name)

    @cached_property
    def _table(self) -> HostTable:
        return HostTable({host: self.aliases.get(host, ()) for host in self.hosts})

    def pair_at(self, level: str) -> list[str]:
        """Return the first two hosts whose nearest common switch level is `level`, or []."""
        fabric, numbers = self.partition.fabric, self._numbers
        wanted = next((each for each in fabric.levels if each.name == level), None)
        first_of_group: dict[str | None, str] = {}
        for host in self.hosts:
            place = (numbers[host], host)
            first = first_of_group.setdefault(wanted.group(*place) if wanted else None, host)
            if first != host and fabric.distance((numbers[first], first), place) == level:
                return [first, host]
        return []

    @property
    def facts(self) -> Path:
        """The folder of the partition's group variables."""
        return self.inventory / "group_vars" / self.partition_name


@dataclass(frozen=True)
class Inventory:
    """The folder of a site, and its groups if a play has resolved them.

    Attributes:
        source: what Ansible reads: the folder, or one file in it.
    """

    folder: Path
    source: Path
    groups: Mapping[str, PartitionGroup] | None = None

    @classmethod
    def of(cls, inventory: Path | Inventory) -> Inventory:
        """Return `inventory`; a path has no resolved groups, and its folder has a name.

        Raises:
            Untrusted: another user can change a file of the site.
        """
        if isinstance(inventory, Inventory):
            return inventory
        path = normal_path(inventory)
        refuse_foreign_site(path)
        return cls(path.absolute().parent if path.is_file() else path, path)


def has_contract(inventory: Path) -> bool:
    """Return whether an inventory has a contract beside its hosts."""
    return (Inventory.of(inventory).folder / CONTRACT).exists()


def normal_path(given: Path) -> Path:
    """Return `given` without ``..`` after a name, and absolute if it ends with ``.`` or ``..``.

    Ansible removes ``..`` from the text of a path, without a look at symbolic links.
    """
    path = Path(os.path.normpath(given))
    return path if path.name not in ("", "..") else Path(os.path.normpath(path.absolute()))


def choose_inventory(given: Sequence[str], kit: Callable[[], Path]) -> Inventory:
    """Return the inventory that ``-i`` names; without ``-i``, that of the chosen site.

    Args:
        given: the values of ``-i``.
        kit: returns the folder of the kit, whose link names the chosen site.

    Raises:
        BadInput: no site or more than one site is named, or the folder does not exist.
    """
    sites = [*filter(None, ",".join(given).split(","))]
    if len(sites) > 1:
        found = f"{len(sites)} sites ({', '.join(sites)})"
        raise bad_input("-i", "", found, "exactly one site: -i inventory/<site>")
    if not sites:
        return Inventory.of(chosen_site(kit()))
    path = normal_path(Path(sites[0]))
    if not path.exists():
        raise missing_inventory(path)
    if path.is_symlink() and path.name == LINK:  # Ansible names the link of the chosen site
        path = path.parent / path.readlink()
    return Inventory.of(path)


def load_site(inventory: Path | Inventory, limit: str, overrides: Overrides | None = None) -> Site:
    """Return the site with the hosts and the partition that `limit` selects.

    Args:
        limit: a host pattern of Ansible.
        overrides: the extra variables ``provision_from`` and ``scratch_dir``, and the
            ``reservation`` of the queue. A value that is None leaves that of the inventory.

    Raises:
        BadInput: the limit selects no host or hosts of several partitions, or the partition's
            facts are wrong.
    """
    sites = load_sites(inventory, limit, overrides)
    if len(sites) != 1:
        names = [site.partition_name for site in sites]
        given = "no -l" if limit == COMPUTE else f"{limit!r}"
        several = f"{given}: hosts of {', '.join(names)}"
        accepted = f"hosts of exactly one partition, as -l {names[0]}"
        raise bad_input("-l" if limit != COMPUTE else inventory, "", several, accepted)
    return sites[0]


def load_sites(
    inventory: Path | Inventory, limit: str, overrides: Overrides | None = None
) -> list[Site]:
    """Return one site for each partition that `limit` selects, in the inventory's order.

    Raises:
        BadInput: the limit selects no host, or the facts of a partition are wrong. It holds the
            mistakes of all partitions.
    """
    sites, mistakes = read_sites(inventory, limit, overrides)
    refuse(mistakes)
    if not sites:
        raise bad_input("-l", "", f"{limit!r}: no host", "hosts of a partition")
    return sites


def _unknown_toolchain(file: Path, toolchain: object) -> InputError | None:
    """Return that the variables of a partition name a toolchain that the kit does not have."""
    if not toolchain or toolchain in {*Toolchain}:
        return None
    found = f"{toolchain!r}{nearest(f'{toolchain}', map(str, Toolchain))}"
    return InputError(_place(file, TOOLCHAIN), TOOLCHAIN, found, ", ".join(Toolchain))


def read_sites(
    inventory: Path | Inventory,
    limit: str,
    overrides: Overrides | None = None,
    broken: list[Site] | None = None,
) -> tuple[list[Site], list[InputError]]:
    """Return the sites whose facts are right, and the mistakes of the others.

    Each site that has wrong facts is appended to `broken` without these facts, so that the caller
    can look for further mistakes in it.

    Raises:
        BadInput: Ansible cannot read the inventory.
    """
    source = Inventory.of(inventory)
    folder = source.folder
    sites: list[Site] = []
    broken = [] if broken is None else broken
    mistakes: list[InputError] = []
    contract = None
    try:
        contract = read_contract(folder)
    except BadInput as error:
        mistakes += error.mistakes

    def site_of(name: str, group: PartitionGroup, partition: Partition) -> Site:
        firmware = partition.firmware
        return Site(
            name=folder.name,
            inventory=folder,
            limit=limit,
            partition_name=name,
            partition=partition,
            hosts=group.hosts,
            connection="local" if group.local else "ssh",
            remote_shell=firmware.remote_shell if firmware and group.access is None else [*SSH],
            ssh=group.access_with_passwords(),
            partition_hosts=list(group.all_hosts),
            aliases=group.aliases,
            contract=contract,
            replaced=overridden(group.partition, overrides or {})[1],
            toolchain=Toolchain(group.toolchain or Toolchain.FOSS),
        )

    groups = source.groups if source.groups is not None else read_groups(source.source, limit)
    mistakes += _alike(folder, groups)
    mistakes += _of_no_partition(folder / CONTRACT, contract, groups)
    for name, group in groups.items():
        file = folder / "group_vars" / name
        names = [(name, host) for host in group.all_hosts]
        for host, aliases in group.aliases.items():
            names += ((f"{host}.{ALIASES}", alias) for alias in aliases)
        if odd := [(key, each) for key, each in names if not is_name(each)]:
            mistakes += (InputError(f"{folder}", key, repr(each), ACCEPTED) for key, each in odd)
            continue
        if group.partition is None:
            others = ", ".join(sorted(each.name for each in file.glob("*")))
            found = f"nothing{' in ' * bool(others)}{others}"
            missing = InputError(f"{file}", PARTITION, found, "the facts, in a file *.yml")
            unread = unread_group_vars() if file.is_dir() else []
            mistakes += unread or [missing, *odd_variables(source.source)]
            continue
        if unknown := _unknown_toolchain(file, group.toolchain):
            mistakes.append(unknown)
            continue
        raw, _ = overridden(group.partition, overrides or {})
        questions = dict(unanswered(raw))
        mistakes += (open_question(file, place, text) for place, text in questions.items())
        if questions:
            raw = without_keys(raw, {place[0] for place in questions if place})
        try:
            partition = Partition.model_validate(raw)
        except ValidationError as error:
            mistakes += fact_mistakes(file, error)
            if right := without_wrong_facts(raw, error):
                broken.append(site_of(name, group, right))
            continue
        if partition.origin == PREDICTED:
            place, accepted = _place(file, PARTITION, "origin"), "measured or emulated"
            accepted += "; no inventory declares predictions"
            mistakes.append(InputError(place, f"{PARTITION}.origin", f"{PREDICTED!r}", accepted))
        else:
            (broken if questions else sites).append(site_of(name, group, partition))
    return sites, mistakes


def _of_no_partition(
    file: Path, contract: Contract | None, groups: Mapping[str, PartitionGroup]
) -> Iterator[InputError]:
    """Yield the items of the contract whose ``system`` is no partition: they judge nothing."""
    known = dict.fromkeys(chain.from_iterable(group.siblings for group in groups.values()))
    for place, item in enumerate(contract.items if contract and known else ()):
        if item.system is not None and item.system not in known:
            parts = ["items", place, "system"]
            found = f"{item.system!r}{nearest(item.system, known)}"
            where, _ = placed([file], parts)
            key = ".".join(map(str, parts))
            yield InputError(where or f"{file}", key, found, f"a partition: {', '.join(known)}")


def _alike(folder: Path, groups: Mapping[str, PartitionGroup]) -> Iterator[InputError]:
    """Yield the hosts that cannot be told apart by the names that they report.

    Hosts with the connection ``local`` may share the name of this machine.
    """
    here = canonical(os.uname().nodename)
    names: dict[str, list[str]] = {}
    for group in groups.values():
        for host in group.all_hosts:
            further = (each for each in group.aliases.get(host, ()) if canonical(each) != here)
            names.setdefault(host, []).extend(further)
    yield from (alike_error(f"{folder}", "hosts", hosts) for hosts in clashes(names))
