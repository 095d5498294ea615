"""Lookup: the options of ansible-playbook that leave out tasks of a stage, or stages between."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

from ansible import context
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: refused_options
author: Proofmark authors
version_added: 0.1.0
short_description: Options of ansible-playbook that leave out tasks of a stage
description:
  - A stage needs all of its tasks, and the stages of a play follow each other without a gap. A play
    that does nothing would end with exit code 0.
  - With C(--tags) and C(--skip-tags) a user selects stages by their names.
  - Options that only list or check the syntax of a play are not refused.
options:
  _terms:
    description: The stages of the playbook, in their order.
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- ansible.builtin.assert:
    that: query('proofmark.kit.refused_options', 'plan', 'build', 'run') | length == 0
"""

RETURN = """
_list:
  description: One message for each refused option or selection.
  type: list
"""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible ships no types
    """The lookup `proofmark.kit.refused_options`."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Return a message for each option of the command line that is refused."""
        given = context.CLIARGS
        # Ansible then sets tags of its own.
        if any(given.get(option) for option in ("listhosts", "listtags", "listtasks", "syntax")):
            return []
        tags, skipped = given.get("tags") or ("all",), given.get("skip_tags") or ()
        task = given.get("start_at_task")
        whole = "accepted: not this option, because a stage needs all of its tasks"
        refused = [f"--start-at-task: found {task}; {whole}"] if task else []
        return refused + refused_selection([str(term) for term in terms], tags, skipped)


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
