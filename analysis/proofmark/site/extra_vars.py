"""The variables of Ansible that a user of the playbooks may set, and those that are internal.

An extra variable (``-e``) replaces facts, registered results and the variables of plays and roles.
So each name that is not documented is refused. A variable of the inventory replaces defaults, and
stands for a fact that is not set yet. So the internal names are refused there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from proofmark.common.errors import InputError, nearest
from proofmark.common.printed_command import NAME, Part, auto_repeats, without

EXTRA_VARIABLES: Mapping[str, str] = {
    "suite": "str",
    "repeats": "int",
    "rolling": "str",
    "stability_days": "str",
    "stability_load": "float",
    "run_id": "str",
    "fresh": "bool",
    "fail_fast": "bool",
    "strict": "bool",
    "language": "str",
    "baseline": "str",
    "expected": "path",
    "accept_unjudged": "bool",
    "signing_key": "path",
    "proofmark_runs": "path",
    "scratch_dir": "path",
    "confirm_reboot": "bool",
    "mode": "str",
    "take_over": "bool",
    "window_ends": "str",
    "bmc_user": "str",
    "bmc_password": "str",
    "provision_from": "str",
    "gate_accept_unjudged": "bool",
    "gate_whole_partition": "bool",
    "gate_node_hours": "float",
}
"""The documented extra variables of the playbooks, with the types of argument specs.

They state what one call does. A setting of a site is an option of a role. It stands in the
inventory.
"""
_BOOL = re.compile(r"(?i:true|false)")
_PATH = re.compile(r"[\w.~/][\w.~/+@%:,-]*(?: [\w.~/][\w.~/+@%:,-]*)*")
LITERALS: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("suite", "run_id", "provision_from", "baseline"), NAME),
    **dict.fromkeys(("scratch_dir", "expected"), _PATH),
    **dict.fromkeys(("fresh", "accept_unjudged", "confirm_reboot"), _BOOL),
    "repeats": re.compile(r"[0-9]{1,6}|auto(?::[0-9]{1,6})?"),
    "rolling": re.compile(r"(?i:true|false|node|rack)"),
    "stability_days": re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,20})?(?:d|h|min|s)?"),
    "stability_load": re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,20})?"),
}
"""The variables that a printed command may have, and their values: each is the whole text.

Ansible evaluates a value of ``-e``, decodes its backslashes, and splits it at blanks that have no
quotes. No form has a brace, a backslash, a quote, ``=``, ``#``, ``$`` or a control character.
"""
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

    A name that is not in `LITERALS`, and a value without the form of its name, is left out.
    """
    form = LITERALS.get(name)
    if form is None or not form.fullmatch(value):
        return without("-e", name)
    return Part(f"{name}={shlex.quote(value)}", "-e")  # Ansible splits the value like a shell


def refused_extra_variables(
    given: Mapping[str, Any], connection: Collection[str], kit: Path
) -> Iterator[InputError]:
    """Yield a mistake for each extra variable that is not documented, or has another type.

    Args:
        connection: the variables of Ansible's connections.
        kit: the folder whose `roles/` have the options that an inventory may set.
    """
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

    known = {*EXTRA_VARIABLES, *connection, INTERPRETER} - OF_ONE_HOST
    names = sorted(map(str, given))
    for name in filter(EXTRA_VARIABLES.__contains__, names):
        if name == "repeats" and auto_repeats(str(given[name])):
            continue
        spec = {name: {"type": EXTRA_VARIABLES[name]}}
        if ArgumentSpecValidator(spec).validate({name: given[name]}).error_messages:
            yield InputError(
                f"-e {name}", "", repr(given[name]), f"the type {EXTRA_VARIABLES[name]}"
            )
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
        hint = nearest(unknown[0], EXTRA_VARIABLES)
        found = f"{'an unknown variable' if len(unknown) == 1 else 'unknown variables'}{hint}"
        accepted = f"{', '.join(EXTRA_VARIABLES)}, and variables of connections (ansible_user)"
        yield InputError(f"-e {', '.join(unknown)}", "", found, accepted)


def internal_names(kit: Path) -> frozenset[str]:
    """Return the names that the playbooks and roles of `kit` set, except documented ones.

    These are facts, registered results, variables of plays, tasks, loops and roles, and the options
    of roles whose default is that of the play: its run, its inventory, its limit. A site may set
    other options of roles in its inventory.
    """
    files = [*kit.glob("playbooks/**/*.yml"), *kit.glob("roles/*/tasks/*.yml")]
    names: set[str] = set()
    for file in files:
        names.update(_names_in(_read(file)))
    for file in kit.glob("roles/*/vars/*.yml"):
        names.update(_read(file))
    options = _options_of_roles(kit)
    names.update(name for name, value in options.items() if _OF_PLAY.search(str(value)))
    return frozenset(filter(_NAME.fullmatch, names - EXTRA_VARIABLES.keys() - {INTERPRETER}))


def refused_of_inventory(names: Iterable[str], kit: Path) -> Iterator[InputError]:
    """Yield a mistake for each of `names`, variables of the inventory, that is an internal name."""
    for name in sorted(internal_names(kit).intersection(names)):
        accepted = "another name; the playbooks use this one"
        yield InputError("the inventory", name, "a variable", accepted)


def _options_of_roles(kit: Path) -> dict[str, Any]:
    """Return the options of the roles with their defaults."""
    options: dict[str, Any] = {}
    for file in kit.glob("roles/*/defaults/*.yml"):
        options.update(_read(file))
    return options


def _read(file: Path) -> Any:
    return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


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
