"""Names and values in the files of an inventory that Ansible passes over, or only warns of.

A mistake is refused. A variable that is nearly one of the kit or of Ansible is named: it may be the
site's own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from proofmark.common.errors import InputError, nearest
from proofmark.common.files import text_or_empty
from proofmark.common.input_limits import MAX_YAML_BYTES
from proofmark.common.kit import kit_folder
from proofmark.common.yaml_models import composed
from proofmark.site.choice import BESIDE_HOSTS
from proofmark.site.extra_vars import setting_types

ENDINGS = ("", ".yml", ".yaml", ".json")
"""The endings of the files of variables that Ansible reads (``YAML_VALID_EXTENSIONS``)."""
OF_VARIABLES = ("group_vars", "host_vars")
"""The folders of variables of an inventory."""
_IN_GROUP = ("hosts", "vars", "children")
_NUMBERS = {"int": int, "integer": int, "float": float}
_TRUTH = "true, false, yes, no, on, off, 1 or 0"
_KINDS = {"int": "a whole number", "integer": "a whole number", "float": "a number"}
_NEAR = 0.8
"""The likeness of two names of which one is a slip of the other (`difflib`)."""
_NEAR_IN_ROLE = 0.6
"""The same, for a name that begins with that of a role of the kit."""
_NEAR_FILE = 0.7
"""The same, for the name of a file of variables."""
_RANGE = re.compile(r"""^\s*(?:-\s+)?["']?([\w.-]*\[[^\]\s"'{]*\]?[\w.-]*)""")
"""A host with a range, at the begin of a line."""


class Variable(NamedTuple):
    """A variable of an inventory: ``file:line``, its name, and the node of its value."""

    place: str
    name: str
    value: yaml.Node


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


def _pairs(node: yaml.Node | None) -> list[tuple[Any, Any]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _variables(node: yaml.Node | None, file: Path) -> Iterator[Variable]:
    for key, value in _pairs(node):
        yield Variable(f"{file}:{key.start_mark.line + 1}", f"{key.value}", value)


def _of_group(node: yaml.Node, name: str, file: Path) -> Iterator[Variable | InputError]:
    """Yield the variables in a group of an inventory and of its hosts, and its wrong keys."""
    for key, value in _pairs(node):
        place = f"{file}:{key.start_mark.line + 1}"
        if key.value == "vars":
            yield from _variables(value, file)
        elif key.value in _IN_GROUP and isinstance(value, yaml.SequenceNode):
            yield InputError(place, f"{name}.{key.value}", "a list", "a mapping: NAME: for each")
        elif key.value == "hosts":
            for _, own in _pairs(value):
                yield from _variables(own, file)
        elif key.value == "children":
            for child, group in _pairs(value):
                yield from _of_group(group, f"{child.value}", file)
        elif get_close_matches(f"{key.value}", _IN_GROUP):
            found = f"unknown key{nearest(f'{key.value}', _IN_GROUP)}"
            yield InputError(place, f"{name}.{key.value}", found, ", ".join(_IN_GROUP))


def _files(inventory: Path) -> Iterator[Path]:
    folder = inventory if inventory.is_dir() else inventory.parent
    for each in OF_VARIABLES:
        yield from sorted((folder / each).rglob("*.y*ml"))
    beside = sorted(folder.glob("*.y*ml")) if inventory.is_dir() else [inventory]
    yield from (each for each in beside if each.name not in BESIDE_HOSTS)


def _stated(inventory: Path) -> Iterator[Variable | InputError]:
    """Yield each variable in the YAML files of an inventory, and each wrong key of a group."""
    for file in _files(inventory):
        if any(folder in file.parts for folder in OF_VARIABLES):
            yield from _variables(composed(file), file)
            continue
        for key, group in _pairs(composed(file)):
            yield from _of_group(group, f"{key.value}", file)


def mistakes_in(inventory: Path, types: Mapping[str, str]) -> Iterator[InputError]:
    """Yield the wrong keys of groups, and the known variables with a value of another type.

    Args:
        types: of the variables of Ansible that decide how a host is reached.
    """
    for each in _stated(inventory):
        if isinstance(each, InputError):
            yield each
        elif accepted := _accepted(each.value, {**types, **setting_types(kit_folder())}, each.name):
            yield InputError(each.place, each.name, repr(each.value.value), accepted)


def _accepted(node: yaml.Node, types: Mapping[str, str], name: str) -> str:
    """Return what is accepted in place of the value of a variable; empty if it may be right."""
    kind, plain = types.get(name, ""), node.tag.startswith("tag:yaml.org")
    if not plain or not isinstance(node, yaml.ScalarNode) or not node.value or "{" in node.value:
        return ""
    if kind in ("bool", "boolean"):
        return "" if node.value.lower() in re.split(r", | or ", _TRUTH) else _TRUTH
    try:
        _NUMBERS.get(kind, str)(node.value)
    except ValueError:
        return _KINDS[kind]
    return ""


def near_variables(inventory: Path, known: Collection[str]) -> Iterator[InputError]:
    """Yield each variable that is nearly one of `known`, or has the prefix of a role of the kit."""
    roles = tuple(f"{folder.name}_" for folder in kit_folder().glob("roles/*"))
    for each in _stated(inventory):
        if isinstance(each, Variable) and each.name not in known:
            likeness = _NEAR_IN_ROLE if each.name.startswith(roles) else _NEAR
            if close := get_close_matches(each.name, known, 1, likeness):
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
