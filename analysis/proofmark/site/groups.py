"""The groups of partitions in an inventory and their variables, as Ansible resolves them.

`read_groups` reads an inventory with Ansible's library. In a play, the action plug-in of the kit
resolves the groups from the inventory of the play and hands them to the command
(`resolved_groups`), so that its options and passwords count.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, SecretStr, TypeAdapter

from proofmark.common.errors import BadInput, InputError, bad_input, nearest, refuse
from proofmark.common.files import text_or_empty
from proofmark.common.grouping import gathered
from proofmark.common.input_limits import MAX_YAML_BYTES
from proofmark.common.kit import ansible_constants, kit_folder
from proofmark.common.nodesets import folded
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import check_files, key_at, placed, shown
from proofmark.site.access import CONNECTION, Access, AnsibleAccess, access
from proofmark.site.choice import BESIDE_HOSTS, named_hosts, parts_of, selected
from proofmark.site.contract_document import CONTRACT
from proofmark.site.extra_vars import (
    at_variables,
    encrypted,
    misnamed,
    mistakes_in,
    near_variables,
    of_nothing,
    setting_types,
    split_facts,
)

MARK = "QUESTION:"
_COMMENT = re.compile(rf"^\s*#\s*{MARK}\s*(.+)$")
_KEY = re.compile(r"^(\s*)([\w.-]+):(.*)$")


def unanswered(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, str]]:
    """Yield the place and the text of each question in the values of `value`."""
    if isinstance(value, str):
        if value.startswith(MARK):
            yield place, value.removeprefix(MARK).strip()
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from unanswered(inner, (*place, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from unanswered(inner, (*place, number))


def keys_of(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the dotted key below ``partition`` and the text behind each key of YAML."""
    above: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        if found := _KEY.match(line):
            depth = len(found[1])
            above = [*(each for each in above if each[0] < depth), (depth, found[2])]
            key = ".".join(name for _, name in above).removeprefix("partition.")
            yield number, key, found[3]


def comments(inventory: Path) -> Iterator[tuple[str, str]]:
    """Yield ``file:line`` and the text of each question in the comments of an inventory.

    A question that begins with a key is answered once its file has the key, and the question of the
    contract once there is one.
    """
    for file in sorted(inventory.rglob("*.yml")):
        lines = text_or_empty(file, MAX_YAML_BYTES).splitlines()
        answered = {key for _, key, _ in keys_of(lines)}
        if (inventory / CONTRACT).exists():
            answered.add(Path(CONTRACT).stem)
        for number, line in enumerate(lines, start=1):
            match = _COMMENT.match(line)
            if match and match[1].partition(":")[0] not in answered:
                yield f"{file}:{number}", match[1]


TEMPLATES = ("{{", "{%", "{#")
"""Ansible evaluates a text that contains one of these."""
OVERRIDE = "#jinja2:"
"""A text that begins with it names other marks (Ansible, "Overriding Jinja2 variables")."""
BREAKS = "\x85\u2028\u2029"
"""YAML 1.1 ends a line at these characters, too. Only a text in double quotes keeps them."""
UNSAFE = "!unsafe"
"""The tag of a text that Ansible does not evaluate."""


class _Dumper(yaml.SafeDumper):
    """Tags texts that Ansible would evaluate."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    if is_template(text):
        return dumper.represent_scalar(UNSAFE, text, style='"')
    if any(mark in text for mark in BREAKS):
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
    return dumper.represent_str(text)


_Dumper.add_representer(str, _text)


def is_template(text: str) -> bool:
    """Return whether Ansible would evaluate `text` as a value of an inventory."""
    return text.startswith(OVERRIDE) or any(mark in text for mark in TEMPLATES)


def literal_yaml(value: Any, *, flow: bool = False, width: float = 10**6) -> str:
    """Return `value` as YAML whose texts are literals.

    Args:
        value: texts, numbers, truth values and None, and lists and mappings of them.
        width: the longest line, where YAML allows a break.
    """
    dumped: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=flow,
        sort_keys=False,
        width=width,
        allow_unicode=True,
    )
    return dumped


class HostVariables:
    """Reads variables of hosts.

    Hosts of one kind are in the same groups, and have the same variables in the files of hosts.
    A host is of no kind if anything else gives it variables: a file of ``host_vars``, another
    plug-in, or a fact.
    """

    def __init__(self, manager: Any, variables: Any, loader: Any, hosts: list[Any]) -> None:
        """Read from Ansible's ``InventoryManager``, ``VariableManager`` and ``DataLoader``.

        Args:
            hosts: those whose variables are read, as Ansible's ``Host``.
        """
        self._sources = manager._sources
        self._variables = variables
        self._loader = loader
        self._any_given = self._given(hosts)  # thousands of questions take longer than one
        self._kinds: dict[tuple[str, ...], tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        """The variables in the files of hosts, and all variables, of the first host of a kind."""

    def of(self, host: Any, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the variables of `host` in `names`. Their templates are filled in.

        Raises:
            AnsibleError: a variable cannot be templated.
        """
        scope = self._like(host)
        kept = {key: scope[key] for key in names if key in scope}
        if any("{" in str(value) for value in kept.values()):  # Templating is slow.
            from ansible.template import Templar

            scope = self._variables.get_vars(host=host)
            # Value by value: an error has the place of its own text.
            return dict(plain(kept, Templar(loader=self._loader, variables=scope).template))
        return dict(plain(kept))

    def _like(self, host: Any) -> Mapping[str, Any]:
        """Return the variables of a host of the kind of `host`, before they are templated."""
        if self._is_alone(host):
            own: Mapping[str, Any] = self._variables.get_vars(host=host)
            return own
        kind = tuple(group.name for group in host.groups)
        declared, merged = self._kinds.get(kind, ({}, {}))
        if not merged or declared != host.vars:
            declared, merged = host.vars, self._variables.get_vars(host=host)
            self._kinds[kind] = declared, merged
        return merged

    def _is_alone(self, host: Any) -> bool:
        """Return whether facts or plug-ins give variables to `host`."""
        of, name = self._variables, host.name
        remembered = name in of._vars_cache or name in of._nonpersistent_fact_cache
        if remembered or of._fact_cache.contains(name):
            return True
        return self._any_given and self._given([host])

    def _given(self, hosts: list[Any]) -> bool:
        """Return whether plug-ins give variables to one of `hosts`."""
        from ansible.vars.plugins import get_vars_from_inventory_sources, get_vars_from_path

        loader = self._loader
        beside = loader.get_basedir() if self._variables.safe_basedir else None
        return bool(
            get_vars_from_inventory_sources(loader, self._sources, hosts, "task")
            or (beside and get_vars_from_path(loader, beside, hosts, "task"))
        )


def plain(value: Any, filled: Callable[[str], Any] | None = None) -> Any:
    """Return `value` in the types of Python; `filled` fills in the templates of a text.

    Ansible's values are of subclasses with tags. The strict types of pydantic refuse them.
    """
    if filled and not isinstance(value, (dict, list, tuple, int, float)):  # a text, or of a vault
        return plain(filled(value))
    if isinstance(value, dict):
        return {str(key): plain(item, filled) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, filled) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


COMPUTE = "compute"
"""The parent group of all partitions. Plays target it."""
ALIASES = "proofmark_aliases"
"""The variable of a host with further names that it may report: one name, or a list."""
NO_HOST = "!all"
"""The pattern of no host."""
READS_GROUP_VARS = {
    "VARIABLE_PLUGINS_ENABLED": ("host_group_vars", "ansible.builtin.host_group_vars"),
    "VARIABLE_PRECEDENCE": ("groups_plugins_inventory",),
}
"""Settings of Ansible. Without one of these words, it does not read the folder ``group_vars``."""
PARTITION = "partition"
"""The variable of a group with the facts of the partition."""
TOOLCHAIN = "provision_toolchain"
"""The variable of a group with the toolchain of EasyBuild's programs."""


class PartitionGroup(StrictModel):
    """The group of a partition in the inventory.

    Attributes:
        hosts: the hosts under the limit.
        all_hosts: all hosts, in the inventory's order.
        partition: the templated variable ``partition`` of the first host under the limit, if there
            is one.
        toolchain: the templated variable `TOOLCHAIN` of this host, if there is one.
        local: whether all hosts are this machine.
        access: how the hosts are reached; None if the firmware's facts name the command.
        passwords: for sudo, by host. A run never stores them.
        aliases: further names that a host may report, by host.
        siblings: the names of all partitions of the inventory, also of those without hosts under
            the limit.
    """

    hosts: tuple[str, ...] = Field(min_length=1)
    all_hosts: tuple[str, ...]
    partition: Any = None
    toolchain: Any = None
    local: bool = False
    access: Access | None = None
    passwords: dict[str, str] = {}
    aliases: dict[str, list[str]] = {}
    siblings: tuple[str, ...] = ()

    def access_with_passwords(self) -> Access | None:
        """Return `access` with the passwords of its hosts."""
        if self.access is None or not self.passwords:
            return self.access
        ways = {}
        for host in self.hosts:
            password = SecretStr(self.passwords.get(host, ""))
            ways[host] = self.access.of(host).model_copy(update={"password": password})
        return access(ways)


NO_HOSTS = f"^({'|'.join(map(re.escape, BESIDE_HOSTS))})$".encode()
"""The files of a site that are no inventory, as in the ansible.cfg of the checkout."""
RESOLVED = TypeAdapter(dict[str, PartitionGroup])
"""Reads the groups that a play has resolved, by name."""


def read_groups(inventory: Path, limit: str) -> dict[str, PartitionGroup]:
    """Return the groups of the partitions that have hosts under `limit`, by name.

    Raises:
        BadInput: Ansible cannot read the inventory, it has no host or group of `limit`, or a host
            cannot be reached in its way.
    """
    check_files(inventory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        constants = ansible_constants()
        from ansible.cli import CLI
        from ansible.errors import AnsibleError
        from ansible.inventory import manager as of_ansible
        from ansible.parsing.dataloader import DataLoader
        from ansible.parsing.vault import AnsibleVaultError, VaultSecretsContext
        from ansible.plugins.loader import init_plugin_loader
        from ansible.utils.collection_loader import AnsibleCollectionConfig
        from ansible.vars.hostvars import HostVars
        from ansible.vars.manager import VariableManager

        # Whatever ansible.cfg is in use: a baseline is no text, and a warning about it may fail.
        if NO_HOSTS not in of_ansible.IGNORED_PATTERNS:
            of_ansible.IGNORED_PATTERNS.append(NO_HOSTS)
            joined = b"|".join((of_ansible.IGNORED.pattern, NO_HOSTS))
            of_ansible.IGNORED = re.compile(joined)
        if AnsibleCollectionConfig.collection_finder is None:
            init_plugin_loader()  # variables may contain lookups and filters
        _refuse_misnamed(inventory)
        loader = DataLoader()
        # As for acceptance.yml. Else Ansible reads group_vars of the current folder.
        loader.set_basedir(f"{kit_folder()}")
        try:
            identities = constants.DEFAULT_VAULT_IDENTITY_LIST
            # Passwords of ansible.cfg and of the environment; a command asks for none.
            secrets = CLI.setup_vault_secrets(
                loader,
                vault_ids=identities,
                auto_prompt=False,
                initialize_context=VaultSecretsContext.current(optional=True) is None,
            )
            loader.set_vault_secrets(secrets)
            manager = of_ansible.InventoryManager(
                loader=loader, sources=[os.path.normpath(inventory.absolute())]
            )
            _refuse_skipped(manager)  # `check_files` has read them before Ansible did
            apply_limit(manager, limit)
            variables = VariableManager(loader=loader, inventory=manager)
            # It adds itself to `variables`: a template may use the variables of another host.
            HostVars(inventory=manager, variable_manager=variables, loader=loader)
            return resolved_groups(manager, variables, loader)
        except AnsibleError as error:
            where, key, found = _place_of(error, inventory)
            if isinstance(error.__context__ or error, AnsibleVaultError):
                closed = InputError(where, key, found, "the password of ansible-vault")
                locked = [*encrypted(inventory)]
                raise BadInput(*locked or [closed]) from None
            accepted = "a value that Ansible can compute" if key else "a valid Ansible inventory"
            raise bad_input(where, key, found, accepted) from None


def _place_of(error: Any, inventory: Path) -> tuple[str, str, str]:
    """Return the file with the line, the key, and the text of an error of Ansible."""
    from ansible._internal._datatag._tags import Origin

    origin = Origin.get_tag(error.obj) if error.obj is not None else None
    if origin is None or origin.path is None:
        return f"{inventory}", "", f"{error}"
    file, line = Path(os.path.relpath(origin.path)), origin.line_num or 0
    file = file if not inventory.is_absolute() else Path(origin.path)
    return f"{file}:{line}", key_at(file, line), f"{shown(error.obj)}: {error}"


def _refuse_misnamed(inventory: Path) -> None:
    refuse([*misnamed(inventory), *mistakes_in(inventory, AnsibleAccess({}).types)])


def unread_group_vars() -> list[InputError]:
    """Return the settings of Ansible because of which it does not read ``group_vars``."""
    config = ansible_constants().config
    mistakes = []
    for name, words in READS_GROUP_VARS.items():
        value, origin = config.get_config_value_and_origin(name)
        if {*value}.isdisjoint(words):
            found, accepted = ",".join(value) or "nothing", f"a list with {words[0]}"
            mistakes.append(InputError(f"{origin}", name, found, accepted))
    return mistakes


def refuse_unread(manager: Any) -> None:
    """Refuse an inventory with a file, or facts of a partition, that Ansible does not read.

    Ansible names neither file nor line of a slip of YAML in the variables of a group. Without
    ``any_unparsed_is_failed`` in ansible.cfg it only warns of a file of hosts, and hosts are
    missing.

    Args:
        manager: Ansible's ``InventoryManager``.

    Raises:
        BadInput: it names each file.
    """
    for source in manager._sources:
        check_files(Path(source))
        _refuse_misnamed(Path(source))
    _refuse_skipped(manager)


def _refuse_skipped(manager: Any) -> None:
    """Refuse an inventory of which Ansible skipped a file, or facts of a partition."""
    read = {str(source) for source in manager._inventory.processed_sources}
    files: list[Path] = []
    mistakes: list[InputError] = []
    for source in map(Path, manager._sources):
        files += _inventory_files(source)
        names = {"group_vars": manager.groups, "host_vars": manager.hosts}
        folder = source if source.is_dir() else source.parent
        mistakes += of_nothing(folder, names)
    refuse(mistakes)
    found = "a file that Ansible cannot read"
    accepted = "an inventory; the warnings of Ansible state the reason"
    unread = (file for file in files if f"{file}" not in read)
    refuse(InputError(f"{file}", "", found, accepted) for file in unread)
    group = manager.groups.get(COMPUTE)
    if group is None or not group.get_hosts():
        about = f"{files[0] if files else manager._sources[0]}"
        found = "no host of this group" if group else "no such group"
        hint = "" if group else nearest(COMPUTE, manager.groups)
        accepted = f"hosts.yml with the groups {COMPUTE}, PARTITION and its hosts"
        raise bad_input(about, f"all.children.{COMPUTE}", f"{found}{hint}", accepted)
    if shared := [*_not_in_one_partition(group)]:
        key = f"all.children.{COMPUTE}"
        about = placed(files, key.split("."))[0] or f"{[*files, source][0]}"
        raise BadInput(*(InputError(about, key, *each) for each in shared))
    refuse(split_facts(manager, PARTITION, COMPUTE))


def _not_in_one_partition(compute: Any) -> Iterator[tuple[str, str]]:
    """Yield the hosts whose facts would be those of none or of the last of several partitions."""
    partitions: dict[str, list[str]] = {host.name: [] for host in compute.get_hosts()}
    for group in compute.child_groups:
        for host in group.get_hosts():
            partitions[host.name].append(group.name)
    kinds = gathered(
        (" and ".join(names) or "no partition", host)
        for host, names in partitions.items()
        if len(names) != 1
    )
    for where, hosts in kinds.items():
        yield f"{folded(hosts)} in {where}", "each host in one group below compute, its partition"


def odd_variables(inventory: Path) -> list[InputError]:
    """Return the variables of an inventory that are nearly one of the kit or of Ansible."""
    further = {variable for each in _settings_of_ansible() for variable in each}
    known = {ALIASES, PARTITION, *AnsibleAccess({}).types, *setting_types(kit_folder()), *further}
    return [*near_variables(inventory, known)]


def _settings_of_ansible() -> Iterator[list[str]]:
    """Yield the variables of each setting of Ansible, and of the shells of its connections."""
    from ansible.plugins.loader import shell_loader

    config = ansible_constants().config
    shell_loader.get("sh")
    for plugin in ((), ("shell", "sh")):
        for option in config.get_configuration_definitions(*plugin).values():
            yield [each["name"] for each in option.get("vars", ())]


def _inventory_files(path: Path) -> Iterator[Path]:
    """Yield the files that Ansible reads in an inventory, without those of the kit."""
    from ansible.inventory.manager import IGNORED

    if not path.is_dir():
        yield Path(os.path.normpath(path.absolute()))
        return
    for each in sorted(path.iterdir()):
        if not IGNORED.search(os.fsencode(each.name)) and each.name not in BESIDE_HOSTS:
            yield from _inventory_files(each)


def apply_limit(manager: Any, limit: str) -> None:
    """Limit Ansible's inventory to the hosts of the pattern `limit`.

    Ansible ignores a name that is neither a group nor a host with a warning, also if it excludes
    hosts (``knl:!dwon``). It takes the numbers of a node set as positions. Both differ here.

    Args:
        manager: Ansible's ``InventoryManager``.
        limit: the pattern of ``-l``.

    Raises:
        AnsibleError: a pattern of Ansible is wrong.
        BadInput: the mistakes of all parts.
    """
    groups, hosts = manager.groups, manager.hosts
    matches = []
    mistakes: list[InputError] = []

    def names(pattern: str) -> list[str]:
        found = manager.get_hosts(pattern, ignore_limits=True, ignore_restrictions=True)
        return [host.name for host in found]

    for part in parts_of(limit):
        pattern = part.lstrip("!&")
        try:
            named = named_hosts(pattern, groups, hosts)
        except BadInput as error:
            about = _about_site(manager)
            mistakes += (replace(each, accepted=each.accepted + about) for each in error.mistakes)
            continue
        matches.append((part, names(pattern) if named is None else named))
    refuse(mistakes)
    manager.subset(",".join(selected(matches, names("all"))) or NO_HOST)


def _about_site(manager: Any) -> str:
    """Return the name of the site and its partitions, for a mistake in a limit."""
    compute = manager.groups.get(COMPUTE)
    partitions = ", ".join(sorted(each.name for each in compute.child_groups)) if compute else ""
    source = Path(manager._sources[0]).resolve()
    folder = source if source.is_dir() else source.parent
    return f"; the site is {folder.name}, with the partitions {partitions}" if partitions else ""


def resolved_groups(
    manager: Any, variables: Any, loader: Any, keywords: Mapping[str, Any] | None = None
) -> dict[str, PartitionGroup]:
    """Return the groups of the partitions of Ansible's objects, under their limit, by name.

    Args:
        manager: Ansible's ``InventoryManager``.
        variables: its ``VariableManager``.
        loader: its ``DataLoader``.
        keywords: those of the task (`keywords_of`); None outside of a play.

    Raises:
        AnsibleError: a variable cannot be templated.
        BadInput: a host is reached in a way that the kit cannot use.
    """
    reader = AnsibleAccess(keywords)
    wanted = (*reader.names, ALIASES)
    compute = manager.groups.get(COMPUTE)
    partitions = compute.child_groups if compute else []
    # Not only the hosts of the running play.
    under_limit = manager.get_hosts(COMPUTE, ignore_restrictions=True) if compute else ()
    chosen = {host.name: host for host in under_limit}
    read = HostVariables(manager, variables, loader, [*under_limit])

    groups = {}
    for group in partitions:
        hosts = tuple(host.name for host in group.get_hosts())
        selected = tuple(host for host in hosts if host in chosen)
        if selected:
            own = read.of(chosen[selected[0]], (PARTITION, TOOLCHAIN))
            values = ((host, read.of(chosen[host], wanted)) for host in selected)
            try:
                made = _group(hosts, selected, own.get(PARTITION), reader, values)
            except BadInput as error:
                source = Path(manager._sources[0])
                raise BadInput(*at_variables(source, error.mistakes)) from None
            siblings = tuple(each.name for each in partitions)
            further = {"toolchain": own.get(TOOLCHAIN), "siblings": siblings}
            groups[group.name] = made.model_copy(update=further)
    return groups


def _group(
    hosts: tuple[str, ...],
    selected: tuple[str, ...],
    facts: Any,
    reader: AnsibleAccess,
    variables: Iterable[tuple[str, dict[str, Any]]],
) -> PartitionGroup:
    firmware = facts.get("firmware") if isinstance(facts, Mapping) else None
    named = isinstance(firmware, Mapping) and "remote_shell" in firmware
    settings = {}
    aliases = {}
    of_this_machine = []
    owners: dict[Any, str] = {}
    for host, values in variables:
        given = values.pop(ALIASES, [])
        own = [str(each) for each in (given if isinstance(given, list) else [given])]
        if named:
            local = values.get(CONNECTION) == "local"
        else:
            settings[host] = way = reader.of(host, values)
            local = way.local
            owner = owners.setdefault((way.host_name or host, way.port, way.options), host)
            if owner != host and not local:
                found = f"{way.host_name!r}, by which {owner} is reached too"
                raise bad_input(f"host {host}", "ansible_host", found, "another address")
        if local:
            of_this_machine.append(host)
            own.append(os.uname().nodename)
        if own:
            aliases[host] = own
    return PartitionGroup(
        hosts=selected,
        all_hosts=hosts,
        partition=facts,
        local=len(of_this_machine) == len(selected),
        access=access(settings) if settings else None,
        passwords={
            host: password
            for host, each in settings.items()
            if (password := each.password.get_secret_value())
        },
        aliases=aliases,
    )
