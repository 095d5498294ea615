"""The Ansible inventory of a site. Ansible's own library reads it, so that both always agree."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from proofmark.common.errors import BadInput, InputError, bad_input, nearest
from proofmark.common.nodesets import ACCEPTED, HostName, Nodes, is_name
from proofmark.common.strict_model import RenamedKeys
from proofmark.common.yaml_models import accepted_keys, check_files, placed, unknown_key
from proofmark.site.firmware import SSH, Firmware
from proofmark.site.partition import Partition
from proofmark.site.questions import unanswered
from proofmark.site.ssh import VARIABLES, SshAccess, ssh_access, ssh_options

COMPUTE = "compute"
"""The parent group of all partitions. Plays target it."""
ALIASES = "proofmark_aliases"
"""The variable of a host with further names that it may report: one name, or a list."""


class Site(RenamedKeys):
    """The hosts of one partition under a limit, and how they are reached.

    Attributes:
        name: of the site.
        limit: the host pattern of ``-l``.
        hosts: the hosts of the partition that the limit selects.
        connection: Ansible's connection plug-in (``ssh``, ``local``).
        remote_shell: the command that runs ``sh -s`` on a node. The name of the node replaces
            ``{node}``.
        ssh: the settings of each host, if that command is the usual ssh.
        partition_hosts: all hosts of the partition, in the inventory's order. Switch levels are
            computed from their numbers.
        aliases: further names that a host may report, by host: the variable `ALIASES` of the host,
            and the name of this machine for a host with the connection ``local``.
    """

    RENAMED = {"reach": "remote_shell"}

    name: str
    inventory: Path
    limit: str
    partition_name: str
    partition: Partition
    hosts: tuple[HostName, ...]
    connection: str
    remote_shell: list[str] = [*SSH]
    ssh: SshAccess | None = None
    partition_hosts: Nodes = []
    aliases: dict[str, list[str]] = {}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Numbers of the partition's hosts, from 0, by host."""
        hosts = self.partition_hosts or self.hosts
        return {host: number for number, host in enumerate(hosts)}

    def location(self, host: str) -> dict[str, str]:
        """Return the switch of each level, and the rack, of `host`."""
        return self.partition.fabric.location(self._numbers[host], host)

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


def choose_inventory(given: Sequence[str], environment: Mapping[str, str] = os.environ) -> Path:
    """Return the inventory that ``-i`` or ``PROOFMARK_SITE`` names.

    Raises:
        BadInput: no site or more than one site is named, or the folder does not exist.
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
        names = sorted(p.name for p in path.parent.glob("*") if p.is_dir())
        hint = nearest(path.name, names)
        raise bad_input("-i", "", f"no inventory {path}{hint}", ", ".join(names) or "a folder")
    return path


def load_site(
    inventory: Path, limit: str, overrides: Mapping[str, str | None] | None = None
) -> Site:
    """Return the site with the hosts and the partition that `limit` selects.

    Args:
        inventory: the folder of the site.
        limit: a host pattern of Ansible.
        overrides: the extra variables ``provision_from`` and ``scratch_dir``. A variable that is
            None leaves the value of the inventory.

    Raises:
        BadInput: the limit selects no host or hosts of several partitions, or the partition's
            facts are wrong.
    """
    sites = load_sites(inventory, limit, overrides)
    if len(sites) != 1:
        names = [site.partition_name for site in sites]
        several = f"{limit!r}: hosts of {', '.join(names)}"
        raise bad_input("-l", "", several, "hosts of exactly one partition")
    return sites[0]


def load_sites(
    inventory: Path, limit: str, overrides: Mapping[str, str | None] | None = None
) -> list[Site]:
    """Return one site for each partition that `limit` selects, in the inventory's order.

    Raises:
        BadInput: the limit selects no host, or the facts of a partition are wrong. It holds the
            mistakes of all partitions.
    """
    sites, mistakes = read_sites(inventory, limit, overrides)
    if mistakes:
        raise BadInput(*mistakes)
    if not sites:
        raise bad_input("-l", "", f"{limit!r}: no host", "hosts of a partition")
    return sites


def read_sites(
    inventory: Path,
    limit: str,
    overrides: Mapping[str, str | None] | None = None,
    broken: list[Site] | None = None,
) -> tuple[list[Site], list[InputError]]:
    """Return the sites whose facts are right, and the mistakes of the others.

    Each site that has wrong facts is appended to `broken` without these facts, so that the caller
    can look for further mistakes in it.

    Raises:
        BadInput: Ansible cannot read the inventory.
    """
    sites: list[Site] = []
    mistakes: list[InputError] = []

    def site_of(name: str, group: _PartitionGroup, partition: Partition) -> Site:
        return Site(
            name=inventory.name,
            inventory=inventory,
            limit=limit,
            partition_name=name,
            partition=partition,
            hosts=group.hosts,
            connection=group.variables.get("ansible_connection", "ssh"),
            remote_shell=_remote_shell(group.variables, partition.firmware),
            ssh=_ssh(group, partition.firmware),
            partition_hosts=list(group.all_hosts),
            aliases=group.aliases,
        )

    for name, group in _read_with_ansible(inventory, limit).items():
        file = inventory / "group_vars" / name
        names = [(name, host) for host in group.all_hosts]
        for host, aliases in group.aliases.items():
            names += ((f"{host}.{ALIASES}", alias) for alias in aliases)
        if odd := [(key, each) for key, each in names if not is_name(each)]:
            mistakes += (InputError(f"{inventory}", key, repr(each), ACCEPTED) for key, each in odd)
            continue
        if "partition" not in group.variables:
            mistakes.append(InputError(str(file), "partition", "nothing", "the partition's facts"))
            continue
        raw = _override(group.variables["partition"], overrides or {})
        questions = dict(unanswered(raw))
        mistakes += (_question(file, place, text) for place, text in questions.items())
        if questions:
            raw = _without(raw, {place[0] for place in questions if place})
        try:
            partition = Partition.model_validate(raw)
        except ValidationError as error:
            mistakes += (_mistake(file, item) for item in error.errors())
            if broken is not None and (right := _without_wrong_facts(raw, error)):
                broken.append(site_of(name, group, right))
            continue
        if not questions:
            sites.append(site_of(name, group, partition))
        elif broken is not None:
            broken.append(site_of(name, group, partition))
    return sites, mistakes


def _question(facts: Path, place: tuple[str | int, ...], text: str) -> InputError:
    """Return the error of a required key whose value is a question of ``proofmark init``."""
    file, _ = placed(variable_files(facts), ["partition", *place])
    key = ".".join(["partition", *map(str, place)])
    accepted = "the answer in place of the text"
    return InputError(file or str(facts), key, f"the question: {text}", accepted)


_PLACEHOLDERS: Mapping[str, Any] = {
    "hardware": "discovered",
    "environment": "local",
    "scheduler": "none",
    "provision_from": "system",
    "scratch": {"path": "/"},
}
"""Values of the required facts, for a partition in which these facts are wrong."""


def _without_wrong_facts(raw: Any, error: ValidationError) -> Partition | None:
    """Return a partition of the facts that `error` does not name; None if they are not one."""
    wrong = {item["loc"][0] for item in error.errors() if item["loc"]}
    try:
        return Partition.model_validate(_without(raw, wrong) if wrong else _PLACEHOLDERS)
    except ValidationError:
        return None


def _without(raw: Any, wrong: Collection[Any]) -> dict[str, Any]:
    """Return the facts of `raw` without the keys `wrong`; required keys have placeholders."""
    right = raw.items() if isinstance(raw, dict) else ()
    return {**_PLACEHOLDERS, **{key: value for key, value in right if key not in wrong}}


def variable_files(folder: Path) -> list[Path]:
    """Return the files from which Ansible reads the variables of the group of `folder`."""
    return [folder.with_suffix(".yml"), *sorted(folder.glob("*.yml"))]


def _mistake(facts: Path, item: ErrorDetails) -> InputError:
    """Return an error of pydantic with the file and line of its key."""
    key = ".".join(["partition", *map(str, item["loc"])])
    file, existing = placed(variable_files(facts), ["partition", *item["loc"]])
    if existing:
        key = f"{existing}.{item['loc'][-1]}" if item["type"] == "missing" else existing
    file = file or f"{facts}"
    if item["type"] == "extra_forbidden":
        words = accepted_keys(Partition, item["loc"])
        found = unknown_key(str(item["loc"][-1]), words)
        return InputError(str(file), key, found, f"one of {', '.join(words)}")
    found = "nothing" if item["type"] == "missing" else repr(item["input"])
    return InputError(str(file), key, found, item["msg"])


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


class _PartitionGroup(NamedTuple):
    """The group of a partition in the inventory.

    Attributes:
        hosts: the hosts under the limit.
        all_hosts: all hosts, in the inventory's order.
        variables: the templated variables of the first host under the limit.
        ssh: the templated variables of ssh by host, if the hosts are reached by the usual ssh.
        aliases: further names that a host may report, by host.
    """

    hosts: tuple[str, ...]
    all_hosts: tuple[str, ...]
    variables: dict[str, Any]
    ssh: dict[str, dict[str, Any]]
    aliases: dict[str, list[str]]


def _read_with_ansible(inventory: Path, limit: str) -> dict[str, _PartitionGroup]:
    """Return the groups of the partitions that have hosts under `limit`, by name."""
    check_files(inventory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from ansible.errors import AnsibleError
        from ansible.inventory.manager import InventoryManager
        from ansible.parsing.dataloader import DataLoader
        from ansible.plugins.loader import init_plugin_loader
        from ansible.template import Templar
        from ansible.utils.collection_loader import AnsibleCollectionConfig
        from ansible.vars.hostvars import HostVars
        from ansible.vars.manager import VariableManager

        if AnsibleCollectionConfig.collection_finder is None:
            init_plugin_loader()  # variables may contain lookups and filters
        loader = DataLoader()
        groups: dict[str, _PartitionGroup] = {}
        try:
            manager = InventoryManager(loader=loader, sources=[str(inventory)])
            compute = manager.groups.get(COMPUTE)
            partitions = {
                group.name: tuple(host.name for host in group.get_hosts())
                for group in (compute.child_groups if compute else ())
            }
            manager.subset(limit)
            chosen = {host.name: host for host in manager.get_hosts(COMPUTE) if compute}
            variables = VariableManager(loader=loader, inventory=manager)
            # It adds itself to `variables`: a template may use the variables of another host.
            HostVars(inventory=manager, variable_manager=variables, loader=loader)
            templar = Templar(loader=loader)

            def host_values(name: str) -> dict[str, Any]:
                scope = variables.get_vars(host=chosen[name])
                names = (*VARIABLES, _CONNECTION, ALIASES)
                kept = {key: scope[key] for key in names if key in scope}
                if any("{" in str(value) for value in kept.values()):  # Templating is slow.
                    templar.available_variables = scope
                    kept = templar.template(kept)
                return dict(_plain(kept))

            for name, hosts in partitions.items():
                selected = tuple(host for host in hosts if host in chosen)
                if not selected:
                    continue
                scope = variables.get_vars(host=chosen[selected[0]])
                kept = {key: scope[key] for key in _PARTITION_VARIABLES if key in scope}
                values = _plain(Templar(loader=loader, variables=scope).template(kept))
                usual = _is_usual_ssh(values)
                of_hosts = {host: host_values(host) for host in selected}
                aliases = _aliases(of_hosts)
                groups[name] = _PartitionGroup(
                    selected, hosts, values, of_hosts if usual else {}, aliases
                )
        except AnsibleError as error:
            raise bad_input(inventory, "", str(error), "a valid Ansible inventory") from None
    return groups


_CONNECTION = "ansible_connection"


def _aliases(of_hosts: Mapping[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Return the further names that each host may report, and remove their variables."""
    names: dict[str, list[str]] = {}
    for host, values in of_hosts.items():
        given = values.pop(ALIASES, [])
        listed = [str(each) for each in given] if isinstance(given, list) else [str(given)]
        listed += [os.uname().nodename] if values.pop(_CONNECTION, "") == "local" else []
        if listed:
            names[host] = listed
    return names


_PARTITION_VARIABLES = (
    "partition",
    _CONNECTION,
    "ansible_ssh_executable",
    "ansible_become",
    *VARIABLES,
)


def _is_usual_ssh(variables: Mapping[str, Any]) -> bool:
    """Return whether Ansible would reach the hosts by the program ``ssh``.

    A program of ``ansible_ssh_executable`` may have its own ``-F``; a second one would replace it.
    """
    executable = variables.get("ansible_ssh_executable") or SSH[0]
    return variables.get("ansible_connection") != "local" and executable == SSH[0]


def _shell(variables: Mapping[str, Any]) -> str:
    return "sudo -n sh -s" if variables.get("ansible_become") else "sh -s"


def _ssh(group: _PartitionGroup, firmware: Firmware | None) -> SshAccess | None:
    custom = firmware and "remote_shell" in firmware.model_fields_set
    return None if custom or not group.ssh else ssh_access(_shell(group.variables), group.ssh)


def _remote_shell(variables: Mapping[str, Any], firmware: Firmware | None) -> list[str]:
    """Return the remote shell of the firmware's facts, or else the one that Ansible would use."""
    if firmware and "remote_shell" in firmware.model_fields_set:
        return firmware.remote_shell
    shell = _shell(variables)
    if variables.get("ansible_connection") == "local":
        return shell.split()
    user, port = variables.get("ansible_user"), variables.get("ansible_port")
    return [
        str(variables.get("ansible_ssh_executable") or SSH[0]),
        *SSH[1:-2],
        *ssh_options(variables),
        *(["-p", str(port)] if port else []),
        f"{user}@{{node}}" if user else "{node}",
        shell,
    ]


def _plain(value: Any) -> Any:
    """Return `value` without Ansible's tagged subclasses, which pydantic's strict types refuse."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value
