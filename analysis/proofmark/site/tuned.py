"""Facts of a partition that a search measured and a person accepted (docs/design/cases.md).

The variable `TUNED` of the group has them. They replace the facts of ``partition`` with the same
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter

from proofmark.cases.vocabulary import Name, Slug
from proofmark.common.strict_model import StrictModel
from proofmark.site.hardware import NODE
from proofmark.site.literals import is_template

TUNED = "partition_tuned"
"""The variable of a group with the accepted facts, by the case that measured them."""


def _literal(text: str) -> str:
    if is_template(text) or not text.isprintable():
        raise ValueError("a template of Ansible, or a character that is not printable")
    return text


Source = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_literal)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=100)]
"""A word without a special character of Ansible, of a shell and of a path."""


class Tuned(StrictModel):
    """Accepted facts; ``source`` has the run, its date and the figure.

    Both come from a run, which can be a copy that another person changed. A fact becomes a part of
    commands, also of commands of root: it is a number or a word.
    """

    source: Source
    facts: dict[Name, Word | int | float]


TUNED_OF_CASES = TypeAdapter(dict[Slug, Tuned])
"""Reads the variable `TUNED`."""


def with_tuned(raw: Any, tuned: Any) -> Any:
    """Return the variable ``partition`` with the facts of `tuned`, and their sources.

    A fact that was assumed is no longer one.

    Args:
        raw: the variable ``partition``.
        tuned: the variable `TUNED`; None if there is none.

    Raises:
        ValidationError: `tuned` is wrong.
    """
    if tuned is None:
        return raw
    accepted = TUNED_OF_CASES.validate_python(tuned)
    if not isinstance(raw, Mapping):
        return raw
    facts: dict[str, str | int | float] = {}
    for each in accepted.values():
        facts.update(each.facts)
    sources: dict[str, str] = {}
    for each in accepted.values():
        sources |= {name: each.source for name in each.facts}
    known = raw.get("facts", {})
    merged = {**raw, "facts": {**known, **facts} if isinstance(known, Mapping) else known}
    node = raw.get(NODE)
    if isinstance(node, Mapping):
        merged[NODE] = {**node, **_sources(node, sources)}
    return merged


def _sources(node: Mapping[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys ``assumed`` and ``sources`` of `node` after `sources` are known."""
    known, assumed = node.get("sources", {}), node.get("assumed", {})
    if not isinstance(known, Mapping) or not isinstance(assumed, Mapping):
        return {}
    names: set[str] = set()
    for fact in sources:
        names.update((fact, f"facts.{fact}"))
    return {
        "sources": {**known, **sources},
        "assumed": {key: why for key, why in assumed.items() if key not in names},
    }
