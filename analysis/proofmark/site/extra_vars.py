"""The variables of Ansible that a user may set, those that are internal, and slips in their files.

An extra variable (``-e``) replaces facts, registered results and the variables of plays and roles.
So each name that is not documented is refused. A variable of the inventory replaces defaults, and
stands for a fact that is not set yet. So the internal names are refused there.

Ansible passes over some slips in the files of an inventory, or only warns of them: they are
refused. A variable that is nearly one of the kit or of Ansible is named: it may be the site's own.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from proofmark.common.errors import InputError, nearest
from proofmark.common.files import text_or_empty
from proofmark.common.input_limits import MAX_YAML_BYTES
from proofmark.common.kit import kit_folder
from proofmark.common.plugins import installed
from proofmark.common.printed_command import NAME, PATH, CallVariable, Part, setting, without
from proofmark.common.translation import LANGUAGES
from proofmark.common.yaml_models import composed, line_of, pairs_in
from proofmark.site.choice import BESIDE_HOSTS

_BOOL = re.compile(r"(?i:true|false)")


def moment(text: str) -> datetime | None:
    """Return a time with its zone; None if `text` is none."""
    try:
        made = datetime.fromisoformat(text)
    except ValueError:
        return None
    return made if made.tzinfo else None


MOMENT = "a time with its zone, 2026-12-01T18:00:00Z"


_OWN: Mapping[str, CallVariable] = {
    "suite": CallVariable("str", NAME),
    "repeats": CallVariable("int", re.compile(r"[0-9]{1,6}"), of_plan=True),
    "run_id": CallVariable("str", NAME),
    "fresh": CallVariable("bool", _BOOL),
    "fail_fast": CallVariable("bool"),
    "strict": CallVariable("bool"),
    "language": CallVariable(
        "str", mistake=lambda text: "" if text in LANGUAGES else ", ".join(LANGUAGES)
    ),
    "provision_from": CallVariable("str", NAME, of_plan=True),
    "scratch_dir": CallVariable(
        "path",
        PATH,
        of_plan=True,
        mistake=lambda text: "" if text.startswith(("/", "~")) else "an absolute path",
    ),
    "baseline": CallVariable("str", NAME, of_plan=True),
    "accept_unjudged": CallVariable("bool", _BOOL, of_plan=True),
    "signing_key": CallVariable(
        "path",
        mistake=lambda text: "" if Path(text).expanduser().is_file() else "a file that exists",
    ),
    "proofmark_runs": CallVariable("path"),
    "confirm_reboot": CallVariable("bool", _BOOL),
    "mode": CallVariable("str", stage="mode"),
    "take_over": CallVariable("bool"),
    "window_ends": CallVariable("str", mistake=lambda text: "" if moment(text) else MOMENT),
    "bmc_user": CallVariable("str"),
    "bmc_password": CallVariable("str"),
}


@cache
def call_variables() -> Mapping[str, CallVariable]:
    """Return the documented extra variables of the playbooks by name, also of packages.

    They state what one call does. A setting of a site is an option of a role. It stands in the
    inventory.

    A printed command has only values with the form `CallVariable.literal` of their variable: each
    is the whole text. Ansible evaluates a value of ``-e``, decodes its backslashes, and splits it
    at blanks that have no quotes. No form has a brace, a backslash, a quote, ``=``, ``#``, ``$`` or
    a control character.
    """
    variables = dict(_OWN)
    for point in installed(__name__).values():
        variables |= point.load()
    return variables


_MEANT = ("case", "cases")
"""Names that people try: a case is measured as a suite of its own."""
TRUTH = "true, false, yes, no, on, off, 1 or 0"
KINDS = {
    "bool": TRUTH,
    "boolean": TRUTH,
    "float": "a number",
    "int": "a whole number",
    "integer": "a whole number",
    "path": "a path",
    "str": "a text",
    "string": "a text",
}
"""The types of Ansible's argument specs and options in words."""
PORT = "a port: a whole number from 1 to 65535"
OF_ONE_HOST = frozenset({"ansible_host", "ansible_ssh_host", "inventory_hostname"})
"""Variables that would give every node the address of one."""
INTERPRETER = "ansible_python_interpreter"
_OF_PLAY = re.compile(r"plan_run|ansible_(inventory|limit)")
"""Variables of the play in the default of an option."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_WITHOUT_NAME = "_raw_params"
"""Ansible's name of the words of ``-e NAME=word word`` after the first one."""
_OF_MODULES = ("name", "groups", "cacheable")
"""Parameters of the modules that set variables."""
_SETS = ("ansible.builtin.set_fact", "ansible.builtin.add_host")


def literal_variable(name: str, value: str) -> Part:
    """Return the option ``-e NAME=VALUE`` of a printed command, which Ansible takes literally.

    An unknown name, and a value without the form of its name, is left out.
    """
    known = call_variables().get(name)
    if known is None or known.literal is None or not known.literal.fullmatch(value):
        return without("-e", name)
    return Part(f"{name}={shlex.quote(value)}", "-e")  # Ansible splits the value like a shell


def refused_extra_variables(
    given: Mapping[str, Any], connection: Collection[str], kit: Path, stages: Collection[str]
) -> Iterator[InputError]:
    """Yield a mistake for each extra variable that is not documented, or has another type.

    Args:
        kit: the folder whose `roles/` have the options that an inventory may set.
        stages: those of the playbook, which reads no variable of another playbook alone.
    """
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

    variables = call_variables()
    known = {*variables, *connection, INTERPRETER} - OF_ONE_HOST
    names = sorted(map(str, given))
    for name in filter(variables.__contains__, names):
        kind, value, stage = variables[name].type, given[name], variables[name].stage
        if stage and stage not in stages:
            accepted = f"playbooks/{stage}.yml, which alone reads it"
            yield InputError(f"-e {name}", "", f"{value!r} for another playbook", accepted)
        checked = ArgumentSpecValidator({name: {"type": kind}}).validate({name: value})
        accepted = KINDS[kind] if checked.error_messages else variables[name].mistake(f"{value}")
        if accepted and value != "":
            yield InputError(f"-e {name}", "", repr(value), accepted)
    if rest := given.get(_WITHOUT_NAME):
        yield InputError("-e", "", f"{rest!r} without a name", "-e 'NAME=\"two words\"'")
    unknown = [name for name in names if name not in known and name != _WITHOUT_NAME]
    settings = _options_of_roles(kit) if unknown else {}
    for name in [*unknown]:
        found, accepted = "a setting of the site", "this name in the inventory, for example in "
        accepted += "group_vars/<partition>/"
        if name in _MEANT:
            found = repr(given[name])
            accepted = f"{setting('suite', given[name])}: each case is a suite of its name"
        if name in settings or name in _MEANT:
            yield InputError(f"-e {name}", "", found, accepted)
            unknown.remove(name)
    if unknown:
        hint = nearest(unknown[0], variables)
        found = f"{'an unknown variable' if len(unknown) == 1 else 'unknown variables'}{hint}"
        accepted = f"{', '.join(variables)}, and variables of connections (ansible_user)"
        yield InputError(f"-e {', '.join(unknown)}", "", found, accepted)


def internal_names(kit: Path) -> frozenset[str]:
    """Return the names that the playbooks and roles of `kit` set, except documented ones.

    These are facts, registered results, variables of plays, tasks, loops and roles, and the options
    of roles whose default is that of the play: its run, its inventory, its limit. A site may set
    other options of roles in its inventory.
    """
    files = chain(kit.glob("playbooks/**/*.yml"), kit.glob("roles/*/tasks/*.yml"))
    names = set[str]().union(*(_names_in(_read(file)) for file in files))
    for file in kit.glob("roles/*/vars/*.yml"):
        names.update(_read(file))
    options = _options_of_roles(kit).items()
    names.update(name for name, value in options if _OF_PLAY.search(str(value)))
    return frozenset(filter(_NAME.fullmatch, names - call_variables().keys() - {INTERPRETER}))


def refused_of_inventory(names: Iterable[str], kit: Path) -> Iterator[InputError]:
    """Yield a mistake for each of `names`, variables of the inventory, that is an internal name."""
    for name in sorted(internal_names(kit).intersection(names)):
        accepted = "another name; the playbooks use this one"
        yield InputError("the inventory", name, "a variable", accepted)


def _options_of_roles(kit: Path) -> dict[str, Any]:
    """Return the options of the roles with their defaults."""
    options = {}
    for file in kit.glob("roles/*/defaults/*.yml"):
        options.update(_read(file))
    return options


@cache
def setting_types(kit: Path) -> Mapping[str, str]:
    """Return the type of each variable that an inventory may state for the kit, by name."""
    types = {name: each.type for name, each in call_variables().items()}
    for file in kit.glob("roles/*/meta/argument_specs.yml"):
        for entry in _read(file)["argument_specs"].values():
            types |= {name: each["type"] for name, each in entry.get("options", {}).items()}
    return types


def _read(file: Path) -> Any:
    return yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)


class _Loader(yaml.CSafeLoader):
    """Reads the tag of Ansible for a text that is no template."""


_Loader.add_constructor("!unsafe", lambda loader, node: f"{node.value}")


def _names_in(node: Any) -> Iterator[str]:
    """Yield the names that plays and tasks set."""
    if isinstance(node, list):
        for each in node:
            yield from _names_in(each)
        return
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key == "vars" or key in _SETS:
            yield from (each for each in value if key == "vars" or each not in _OF_MODULES)
            # The value of such a variable is the name of a fact.
            yield from (str(value[each]) for each in value if str(each).endswith("_fact"))
        elif key in ("register", "loop_var", "index_var"):
            yield str(value)
        yield from _names_in(value)


ENDINGS = ("", ".yml", ".yaml", ".json")
"""The endings of the files of variables that Ansible reads (``YAML_VALID_EXTENSIONS``)."""
OF_VARIABLES = ("group_vars", "host_vars")
"""The folders of variables of an inventory."""
_IN_GROUP = ("hosts", "vars", "children")
_NUMBERS = {"int": int, "integer": int, "float": float}
_OF_NODES: Mapping[type[yaml.Node], str] = {
    yaml.SequenceNode: "a list",
    yaml.MappingNode: "a mapping",
}
_NEAR = 0.8
"""The likeness of two names of which one is a slip of the other (`difflib`)."""
_NEAR_IN_ROLE = 0.6
"""The same, for a name that begins with that of a role of the kit."""
_NEAR_FILE = 0.7
"""The same, for the name of a file of variables."""
_RANGE = re.compile(r"""^\s*(?:-\s+)?["']?([\w.-]*\[[^\]\s"'{]*\]?[\w.-]*)""")
"""A host with a range, at the begin of a line."""


class Variable(NamedTuple):
    """A variable of an inventory: ``file:line``, its name, the node of its value.

    Attributes:
        owner: the group or host of the file of variables; empty in another file.
        folder: one of `OF_VARIABLES`, in which this file is; empty for another file.
    """

    place: str
    name: str
    value: yaml.Node
    owner: str = ""
    folder: str = ""


def misnamed(inventory: Path) -> Iterator[InputError]:
    """Yield the files that nothing reads because of their names, and ranges that are none."""
    beside = {name.partition(".")[0]: name for name in (*BESIDE_HOSTS, *OF_VARIABLES)}
    for each in sorted(inventory.iterdir()) if inventory.is_dir() else (inventory,):
        alike = get_close_matches(each.name.partition(".")[0].lower(), beside, 1, 0.85)
        right = beside[alike[0]] if alike else each.name
        if right != each.name and each.suffix.lower() in (*ENDINGS, ".txt"):
            yield InputError(f"{each}", "", "a file that nothing reads", right)
        elif each.is_file() and right not in BESIDE_HOSTS:
            lines = text_or_empty(each, MAX_YAML_BYTES).splitlines()
            for number, line in enumerate(lines, start=1):
                host = _RANGE.match(line)
                if host and (accepted := _range_mistake(host[1])):
                    yield InputError(f"{each}:{number}", "hosts", host[1], accepted)


def _range_mistake(host: str) -> str:
    """Return what is accepted in place of a range of hosts; empty if it is right."""
    if host.count("[") != host.count("]"):
        return f"a range in brackets: {host.rstrip(':')}]"
    for inside in re.findall(r"\[([^\]]*)\]", host):
        if re.fullmatch(r"\d+(-\d+|,[\d,-]+)", inside):
            return f"a range with a colon: {host.replace('-', ':')}"
        first, _, last = inside.partition(":")
        if first.isdecimal() and last.isdecimal() and int(first) > int(last):
            return f"the smaller number first: {host.replace(inside, f'{last}:{first}')}"
    return ""


def _variables(node: yaml.Node | None, file: Path) -> Iterator[Variable]:
    for key, value in pairs_in(node):
        yield Variable(line_of(file, key), f"{key.value}", value)


def _of_group(node: yaml.Node, name: str, file: Path) -> Iterator[Variable | InputError]:
    """Yield the variables in a group of an inventory and of its hosts, and its wrong keys."""
    for key, value in pairs_in(node):
        place = line_of(file, key)
        if key.value == "vars":
            yield from _variables(value, file)
        elif key.value in _IN_GROUP and isinstance(value, yaml.SequenceNode):
            yield InputError(place, f"{name}.{key.value}", "a list", "a mapping: NAME: for each")
        elif key.value == "hosts":
            for host, own in pairs_in(value):
                if re.search(r"[\s,](?![^\[]*\])", f"{host.value}"):
                    where, found = line_of(file, host), repr(host.value)
                    yield InputError(where, f"{name}.hosts", found, ONE_HOST)
                yield from _variables(own, file)
        elif key.value == "children":
            for child, group in pairs_in(value):
                yield from _of_group(group, f"{child.value}", file)
        elif get_close_matches(f"{key.value}", _IN_GROUP):
            found = f"unknown key{nearest(f'{key.value}', _IN_GROUP)}"
            yield InputError(place, f"{name}.{key.value}", found, ", ".join(_IN_GROUP))


def _files(inventory: Path) -> Iterator[Path]:
    folder = inventory if inventory.is_dir() else inventory.parent
    for name in OF_VARIABLES:
        below = sorted((folder / name).rglob("*"))
        yield from (file for file in below if file.suffix in ENDINGS and file.is_file())
    for each in sorted(folder.iterdir()) if inventory.is_dir() else [inventory]:
        read = each.suffix in (*ENDINGS, ".ini") and each.name not in BESIDE_HOSTS
        if read and each.is_file() and not os.access(each, os.X_OK):
            yield each


def _stated(inventory: Path) -> Iterator[Variable | InputError]:
    """Yield each variable in the YAML files of an inventory, and each wrong key of a group."""
    for file in _files(inventory):
        above = [place for place, name in enumerate(file.parts) if name in OF_VARIABLES]
        if above:
            folder, owner = file.parts[above[-1]], file.parts[above[-1] + 1]
            owner = owner.removesuffix(file.suffix)
            node = composed(file)
            if isinstance(node, yaml.SequenceNode):
                yield InputError(f"{file}:1", "", "a list", "a mapping: NAME: VALUE")
            for each in _variables(node, file):
                yield each._replace(owner=owner, folder=folder)
        elif groups := pairs_in(composed(file)):
            for key, group in groups:
                yield from _of_group(group, f"{key.value}", file)
        elif file.suffix in ("", ".ini"):
            yield from _of_ini(file)


_NO_HOST = re.compile(r",|:$")
_SECTION = re.compile(r"\[([^\]\s:]+)(?::(\w+))?\]")
_OF_INI = re.compile(r"(\w+)\s*=\s*('[^']*'|\"[^\"]*\"|\S*)")


def _of_ini(file: Path) -> Iterator[Variable | InputError]:
    """Yield the variables in a file of hosts in the form of INI, and its wrong lines."""
    lines = [line.strip() for line in text_or_empty(file, MAX_YAML_BYTES).splitlines()]
    groups = {match[1] for match in map(_SECTION.match, lines) if match and match[2] != "vars"}
    name, kind = "", "hosts"
    for number, line in enumerate(lines, start=1):
        place = f"{file}:{number}"
        if section := _SECTION.match(line):
            name, kind = section[1], section[2] or "hosts"
            if kind not in _IN_GROUP:
                found = f"[{name}:{kind}]{nearest(kind, _IN_GROUP)}"
                yield InputError(place, name, found, "[GROUP], [GROUP:children] or [GROUP:vars]")
        elif line.startswith(("#", ";")) or not line:
            continue
        elif kind == "children" and line not in groups:
            found = f"{line!r}, a group without a section{nearest(line, groups)}"
            yield InputError(
                place, f"{name}.children", found, f"a group: {', '.join(sorted(groups))}"
            )
        elif kind == "hosts" and _NO_HOST.search(re.sub(r"\[[^\]]*\]", "", line.split()[0])):
            yield InputError(place, f"{name}.hosts", repr(line), ONE_HOST)
        else:
            for key, value in _OF_INI.findall(line):
                text = yaml.ScalarNode("tag:yaml.org,2002:str", value.strip("'\""))
                yield Variable(place, key, text)


ONE_HOST = "one host on a line, or a range as node[01:64]"


def at_variables(inventory: Path, mistakes: Iterable[InputError]) -> Iterator[InputError]:
    """Yield mistakes in variables, each with the place of the first one of its name."""
    every = [each for each in _stated(inventory) if isinstance(each, Variable)]
    for mistake in mistakes:
        places = (f"{each.place}: {mistake.file}" for each in every if each.name == mistake.key)
        yield replace(mistake, file=next(places, mistake.file))


def encrypted(inventory: Path) -> Iterator[InputError]:
    """Yield the files of an inventory that ansible-vault has encrypted."""
    accepted = "the password of ansible-vault: ANSIBLE_VAULT_PASSWORD_FILE=FILE, or in a play -J"
    for file in _files(inventory):
        if text_or_empty(file, MAX_YAML_BYTES).startswith("$ANSIBLE_VAULT"):
            yield InputError(f"{file}", "", "an encrypted file, and no password for it", accepted)


def split_facts(manager: Any, variable: str, parent: str) -> Iterator[InputError]:
    """Yield the files of variables of one partition that define `variable` besides another one.

    Ansible does not join dictionaries: that of one file replaces that of the other one.

    Args:
        manager: Ansible's ``InventoryManager``.
        variable: the name of the variable, a dictionary.
        parent: the group whose children are the partitions.
    """
    top = manager.groups.get(parent)
    every = chain.from_iterable(map(_stated, map(Path, manager._sources)))
    stated = [v for v in every if isinstance(v, Variable) and v.folder == OF_VARIABLES[0]]
    for group in top.child_groups if top else ():
        names = {group.name, *(each.name for each in group.get_ancestors())}
        places = [v.place for v in stated if v.name == variable and v.owner in names]
        if len(places) > 1:
            found = f"defined in {len(places)} files; Ansible reads one of them"
            accepted = f"one file with the key {variable}; another one is {', '.join(places[1:])}"
            yield InputError(places[0], variable, found, accepted)


def mistakes_in(inventory: Path, types: Mapping[str, str]) -> Iterator[InputError]:
    """Yield the wrong keys of groups, and the known variables with a value of another type.

    Args:
        types: of the variables of Ansible that decide how a host is reached.
    """
    every = {**types, **setting_types(kit_folder())}
    for each in _stated(inventory):
        if isinstance(each, InputError):
            yield each
        elif each.name == "partition" and each.folder == OF_VARIABLES[1]:
            accepted = "group_vars/PARTITION: a partition is what its nodes have in common"
            yield InputError(each.place, each.name, "facts of one host", accepted)
        elif accepted := _accepted(each.value, every, each.name):
            found = _OF_NODES.get(type(each.value)) or repr(each.value.value)
            yield InputError(each.place, each.name, found, accepted)


def _accepted(node: yaml.Node, types: Mapping[str, str], name: str) -> str:
    """Return what is accepted in place of the value of a variable; empty if it may be right."""
    kind, plain = types.get(name, ""), node.tag.startswith("tag:yaml.org")
    if not plain or not node.value or "{" in node.value:
        return ""
    if not isinstance(node, yaml.ScalarNode):
        return KINDS.get(kind, "")
    if kind in ("bool", "boolean"):
        return "" if node.value.lower() in re.split(r", | or ", TRUTH) else TRUTH
    try:
        number = _NUMBERS.get(kind, str)(node.value)
    except ValueError:
        return KINDS[kind]
    is_port = kind in _NUMBERS and name.endswith("_port")
    return PORT if is_port and number not in range(1, 65536) else ""


def near_variables(inventory: Path, known: Collection[str]) -> Iterator[InputError]:
    """Yield each variable that is nearly one of `known`, or has the prefix of a role of the kit."""
    roles = tuple(f"{folder.name}_" for folder in kit_folder().glob("roles/*"))

    @cache  # thousands of hosts have the same names
    def near(name: str) -> list[str]:
        likeness = _NEAR_IN_ROLE if name.startswith(roles) else _NEAR
        return [] if name in known else get_close_matches(name, known, 1, likeness)

    for each in _stated(inventory):
        if isinstance(each, Variable) and (close := near(each.name)):
            accepted = "a name of the kit or of Ansible, or another one of the site's own"
            found = f"no variable that is read, did you mean {close[0]!r}?"
            yield InputError(each.place, each.name, found, accepted)


def of_nothing(inventory: Path, names: Mapping[str, Collection[str]]) -> Iterator[InputError]:
    """Yield the files of variables whose group or host differs from an existing one by letters.

    Args:
        names: the groups and the hosts, by the name of the folder of their variables.
    """
    for folder, known in names.items():
        for each in sorted((inventory / folder).glob("*")):
            name = each.name.removesuffix(each.suffix) if each.suffix in ENDINGS else each.name
            close = get_close_matches(name, known, 1, _NEAR_FILE) if name not in known else []
            if close and _DIGITS.sub("", close[0]) != _DIGITS.sub("", name):
                yield InputError(f"{each}", "", f"variables of no {folder[:-5]}", close[0])


_DIGITS = re.compile(r"\d+")
