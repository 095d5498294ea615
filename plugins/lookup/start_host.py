"""Lookup: the host of the first play of a stage, if nothing of the command line is refused."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from ansible import constants, context
from ansible.plugins.loader import filter_loader
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display
from ansible.utils.vars import load_extra_vars

DOCUMENTATION = """
name: start_host
author: Proofmark authors
version_added: 0.1.0
short_description: The host of the first play of a stage, if nothing is refused
description:
  - Fails if an option, a setting, an extra variable or the inventory is refused.
  - A stage needs all of its tasks, and the stages of a play follow each other without a gap. A play
    that does nothing would end with exit code 0.
  - With C(--tags) and C(--skip-tags) a user selects stages by their names.
  - An extra variable replaces facts and results. So only documented ones are accepted.
  - Options that only list or check the syntax of a play are not refused.
  - An acceptance without a suite, on a site with a contract, is C(proofmark acceptance measure).
    The playbook runs once for each suite that the contract still needs. Then Ansible ends.
options:
  _terms:
    description: The stages of the playbook, in their order.
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Start
  hosts: "{{ query('proofmark.kit.start_host', 'plan', 'build', 'run') }}"
"""

RETURN = """
_list:
  description: One host of the limit.
  type: list
"""

KIT = Path(__file__).resolve().parents[2]
"""The checkout or collection with this file."""
REFUSED = 3
"""The exit code of bad input, as that of the command."""
INTERRUPTED = 99
"""The exit code of Ansible after Ctrl-C."""
ALL = {"plan", "report"}
"""The first and the last stage of an acceptance."""
NAMES_A_RUN = {"suite", "run_id", "rolling"}
"""The extra variables that name a suite, a run, or an acceptance node by node."""
ONLY_LISTS = ("listhosts", "listtags", "listtasks", "syntax")
LEAVES_OUT = {"start_at_task": "--start-at-task", "step": "--step"}
"""Options that leave out tasks of a stage."""
SETTINGS = {
    "TAGS_RUN": ((), "no value; the option --tags selects stages"),
    "TAGS_SKIP": ((), "no value; the option --skip-tags leaves out stages"),
    "DEFAULT_STRATEGY": (("linear", "ansible.builtin.linear"), "linear"),
    "ENABLE_TASK_DEBUGGER": ((), "false, because a debugger can leave out tasks"),
    "CACHE_PLUGIN": (("memory", "ansible.builtin.memory"), "memory, without facts of other plays"),
}
"""The accepted values of settings of Ansible that could change the result, and their text."""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible ships no types
    """The lookup `proofmark.kit.start_host`."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Return one host of the limit; fail with a message for each refused input."""
        if only_lists():
            return ["all"]
        stages = [str(term) for term in terms]
        refused = [
            *refused_options(stages, context.CLIARGS),
            *refused_settings(),
            *self._refused_input(variables, stages),
        ]
        if refused:
            refuse("; ".join(refused))
        _show_chosen(variables["ansible_inventory_sources"][0])
        _prepare_workers()
        source = variables["ansible_inventory_sources"][0]
        if set(terms) >= ALL and _is_for_the_contract(source, load_extra_vars(self._loader)):
            sys.exit(_measure_contract(source))
        hosts: list[str] = variables["ansible_play_hosts_all"]
        return hosts[:1] or ["localhost"]

    def _refused_input(self, variables: Mapping[str, Any], stages: Sequence[str]) -> Iterator[str]:
        """Yield why the extra variables and the inventory are refused."""
        try:
            from proofmark.api import (
                BadInput,
                connection_variables,
                refuse_sources,
                refused_extra_variables,
            )
        except ImportError:
            message = f"{sys.executable}: found no Python package proofmark; accepted: a Python "
            message += f"with it; `pip install {KIT}`, in a checkout `make .venv`, installs it"
            refuse(message)
        extra = load_extra_vars(self._loader)
        known = connection_variables()
        yield from map(str, refused_extra_variables(extra, known, KIT, stages))
        sources = variables.get("ansible_inventory_sources") or ()
        config = str(variables.get("ansible_config_file") or "")
        try:
            refuse_sources([str(source) for source in sources], KIT, config)
        except BadInput as error:
            yield str(error)


def _prepare_workers() -> None:
    """Import the filters of the kit here, once; otherwise each worker that uses one imports them.

    A worker is a copy of this process. Its garbage collector need not look at what is present now.
    """
    filter_loader.get("proofmark.kit.bmc_names")
    gc.freeze()


def _show_chosen(source: str) -> None:
    """Print the name of the chosen site, if its link is the inventory."""
    path = Path(source)
    if path.is_symlink() and path.parent.resolve() == KIT:
        Display().display(f"site: {path.resolve().name}, the chosen one ({path.resolve()})")


def _is_for_the_contract(source: str, extra: Mapping[str, Any]) -> bool:
    """Return whether the command line names no suite, run or stage, and the site has a contract."""
    from proofmark.api import has_contract

    given = context.CLIARGS
    tags = set(given.get("tags") or ()) - {"all"} | set(given.get("skip_tags") or ())
    return not tags and NAMES_A_RUN.isdisjoint(extra) and has_contract(Path(source))


def _measure_contract(source: str) -> int:
    """Measure what the contract of a site needs, by this command line with each suite."""
    given = context.CLIARGS
    limit = ["-l", given["subset"]] if given.get("subset") else []
    check = ["--check"] if given.get("check") else []
    command = Path(sys.executable).parent / "proofmark"
    words = [f"{command}", "acceptance", "measure", "-i", source, *limit, *check]
    words += [f"--playbook={word}" for word in sys.argv[1:]]
    environment = {**os.environ, "PROOFMARK_KIT": f"{KIT}"}
    try:
        # Ansible keeps its streams from children that do not name them.
        ended = subprocess.run(words, env=environment, stdin=0, stdout=1, stderr=2, check=False)
    except KeyboardInterrupt:  # the command got it too, and has said how to continue
        return INTERRUPTED
    return ended.returncode


def refuse(message: str) -> NoReturn:
    """End Ansible with `message` alone; an exception of a keyword would have its own text first."""
    Display().error(message, wrap_text=False)
    sys.exit(REFUSED)


def only_lists() -> bool:
    """Return whether the command line only lists a play; Ansible then sets tags of its own."""
    return any(context.CLIARGS.get(option) for option in ONLY_LISTS)


def refused_options(stages: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    """Return why options are refused that leave out tasks, or stages between others.

    Args:
        stages: all stages of the playbook, in their order.
        given: the options of the command line.
    """
    whole = "accepted: not this option, because a stage needs all of its tasks"
    refused = [
        f"{option}: found {given[name]}; {whole}"
        for name, option in LEAVES_OUT.items()
        if given.get(name)
    ]
    tags, skipped = given.get("tags") or ("all",), given.get("skip_tags") or ()
    return refused + refused_selection(stages, tags, skipped)


def refused_settings() -> list[str]:
    """Return why settings of the environment or of ansible.cfg are refused."""
    refused = []
    for name, (values, accepted) in SETTINGS.items():
        value, origin = constants.config.get_config_value_and_origin(name)
        if value and value not in values:
            shown = ",".join(map(str, value)) if isinstance(value, list) else value
            where = f"{origin}".removeprefix("env: ")
            refused.append(f"{where}: found {name} {shown}; accepted: {accepted}")
    return refused


def refused_selection(
    stages: Sequence[str], tags: Collection[str], skipped: Collection[str]
) -> list[str]:
    """Return why the stages that an execution selects are refused; empty if they are accepted.

    Args:
        stages: all stages of the playbook, in their order.
        tags: the tags of ``--tags``; ``all`` without the option.
        skipped: the tags of ``--skip-tags``.
    """
    options = {"--tags": set(tags) - {"all"}, "--skip-tags": set(skipped)}
    found = " ".join(f"{name} {','.join(sorted(each))}" for name, each in options.items() if each)
    accepted = f"accepted: stages without a gap, of {', '.join(stages)}"
    unknown = sorted(set().union(*options.values()) - set(stages))
    if unknown:
        close = get_close_matches(unknown[0], stages, n=1)
        meant = f", did you mean {close[0]!r}?" if close else ""
        return [
            f"found {found}, where {unknown[0]!r} is no stage of the playbook{meant}; {accepted}"
        ]
    chosen = [
        at
        for at, stage in enumerate(stages)
        if ("all" in tags or stage in tags) and stage not in skipped
    ]
    if not chosen:
        return [f"found {found}, which selects no stage; {accepted}"]
    gap = [stages[at] for at in range(chosen[0], chosen[-1]) if at not in chosen]
    return [f"found {found}, which leaves out {', '.join(gap)}; {accepted}"] if gap else []
