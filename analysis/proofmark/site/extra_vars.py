"""The variables of Ansible that a user of the playbooks may set, and those that are internal.

An extra variable (``-e``) replaces facts, registered results and the variables of plays and roles.
So each name that is not documented is refused. A variable of the inventory replaces defaults, and
stands for a fact that is not set yet. So the internal names are refused there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from proofmark.common.errors import InputError, nearest
from proofmark.common.plugins import installed
from proofmark.common.printed_command import (
    NAME,
    PATH,
    CallVariable,
    Part,
    without,
)
from proofmark.common.translation import LANGUAGES

_BOOL = re.compile(r"(?i:true|false)")


def moment(text: str) -> datetime | None:
    """Return a time with its zone; None if `text` is none."""
    try:
        made = datetime.fromisoformat(text)
    except ValueError:
        return None
    return made if made.tzinfo else None


MOMENT = "a time with its zone, 2026-12-01T18:00:00Z"


def _no_language(text: str) -> str:
    return "" if text in LANGUAGES else ", ".join(LANGUAGES)


def _no_moment(text: str) -> str:
    return "" if moment(text) else MOMENT


def _no_file(text: str) -> str:
    return "" if Path(text).expanduser().is_file() else "a file that exists"


_OWN: Mapping[str, CallVariable] = {
    "suite": CallVariable("str", NAME),
    "repeats": CallVariable("int", re.compile(r"[0-9]{1,6}"), of_plan=True),
    "run_id": CallVariable("str", NAME),
    "fresh": CallVariable("bool", _BOOL),
    "fail_fast": CallVariable("bool"),
    "strict": CallVariable("bool"),
    "language": CallVariable("str", mistake=_no_language),
    "provision_from": CallVariable("str", NAME, of_plan=True),
    "scratch_dir": CallVariable("path", PATH, of_plan=True),
    "baseline": CallVariable("str", NAME, of_plan=True),
    "accept_unjudged": CallVariable("bool", _BOOL, of_plan=True),
    "signing_key": CallVariable("path", mistake=_no_file),
    "proofmark_runs": CallVariable("path"),
    "confirm_reboot": CallVariable("bool", _BOOL),
    "mode": CallVariable("str"),
    "take_over": CallVariable("bool"),
    "window_ends": CallVariable("str", mistake=_no_moment),
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


_MEANT = {"case": "suite", "cases": "suite"}
"""Names that people try for another one: a case is measured as a suite of its own."""
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
    given: Mapping[str, Any], connection: Collection[str], kit: Path
) -> Iterator[InputError]:
    """Yield a mistake for each extra variable that is not documented, or has another type.

    Args:
        kit: the folder whose `roles/` have the options that an inventory may set.
    """
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

    variables = call_variables()
    known = {*variables, *connection, INTERPRETER} - OF_ONE_HOST
    names = sorted(map(str, given))
    for name in filter(variables.__contains__, names):
        kind, value = variables[name].type, given[name]
        checked = ArgumentSpecValidator({name: {"type": kind}}).validate({name: value})
        accepted = KINDS[kind] if checked.error_messages else variables[name].mistake(f"{value}")
        if accepted and value != "":
            yield InputError(f"-e {name}", "", repr(value), accepted)
    if rest := given.get(_WITHOUT_NAME):
        yield InputError("-e", "", f"{rest!r} without a name", "-e 'NAME=\"two words\"'")
    unknown = [name for name in names if name not in known and name != _WITHOUT_NAME]
    settings = _options_of_roles(kit) if unknown else {}
    for name in [*unknown]:
        if name in settings:
            accepted = "this name in the inventory, for example in group_vars/<partition>/"
            yield InputError(f"-e {name}", "", "a setting of the site", accepted)
            unknown.remove(name)
    if unknown:
        hint = nearest(_MEANT.get(unknown[0], unknown[0]), variables)
        found = f"{'an unknown variable' if len(unknown) == 1 else 'unknown variables'}{hint}"
        accepted = f"{', '.join(variables)}, and variables of connections (ansible_user)"
        yield InputError(f"-e {', '.join(unknown)}", "", found, accepted)


def internal_names(kit: Path) -> frozenset[str]:
    """Return the names that the playbooks and roles of `kit` set, except documented ones.

    These are facts, registered results, variables of plays, tasks, loops and roles, and the options
    of roles whose default is that of the play: its run, its inventory, its limit. A site may set
    other options of roles in its inventory.
    """
    names: set[str] = set()
    for file in chain(kit.glob("playbooks/**/*.yml"), kit.glob("roles/*/tasks/*.yml")):
        names.update(_names_in(_read(file)))
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
