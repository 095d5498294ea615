"""Conditions of cases that do not hold, in words: what there is, and what is needed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from proofmark.common.expressions import evaluate, variables_in
from proofmark.common.message import Message, joined

NAMES = {
    "nodes": "the number of nodes",
    "cores": "the number of cores",
    "sockets": "the number of sockets",
    "numa": "the number of NUMA domains with cores",
    "domain_cores": "the number of cores of each NUMA domain",
    "domain_threads": "the number of threads of a rank inside a NUMA domain",
    "l3_threads": "the number of threads of a rank inside a cache of level 3",
    "node_parts": "the list of NUMA domains and sockets of a node with several",
    "rail_count": "the number of rails of a node",
    "threads_per_core": "the number of hardware threads of a core",
    "memories": "the kinds of memory",
    "memory_bytes": "the memory in bytes",
    "layout_axes": "the layout that the file system of scratch can set",
    "storage_targets": "partition.scratch.storage_targets",
    "provision_from": "partition.provision_from",
}
"""The names of expressions in words; the others are facts of the partition."""
NEEDED: Mapping[type[ast.cmpop], str] = {
    ast.GtE: "unmet-least",
    ast.Gt: "unmet-more",
    ast.LtE: "unmet-most",
    ast.Lt: "unmet-less",
    ast.Eq: "unmet-value",
    ast.NotEq: "unmet-other",
}
"""The codes of comparisons that do not hold."""


def unmet(condition: str, names: Mapping[str, Any], file: str) -> Message:
    """Return which parts of `condition` do not hold, with the values that they have.

    Args:
        condition: an expression in braces whose value is false.
        names: the values of its names.
        file: the file of the case, for messages.

    Raises:
        BadInput: a part cannot be computed.
    """
    whole = ast.parse(condition.strip().removeprefix("{").removesuffix("}").strip(), mode="eval")
    body = whole.body
    parts = body.values if isinstance(body, ast.BoolOp) and isinstance(body.op, ast.And) else [body]

    def value(part: ast.expr) -> Any:
        return evaluate(ast.unparse(part), names, file=file, key="when")

    return joined(_message(part, value) for part in parts if not value(part))


def _message(part: ast.expr, value: Callable[[ast.expr], Any]) -> Message:
    """Return the message of one part of a condition."""
    match part:
        case ast.Compare(ast.Name(name), [operator], [other]) if type(operator) in NEEDED:
            values = {"found": _text(value(part.left)), "needed": _text(value(other))}
            return Message(NEEDED[type(operator)], name=_words(name), **values)
        case ast.Compare(other, [ast.In()], [ast.Name(name)]):
            return Message("unmet-has", name=_words(name), needed=_text(value(other)))
    named = (
        f"{_words(name)} is {_text(value(ast.Name(name)))}"
        for name in sorted(variables_in(f"{{{ast.unparse(part)}}}"))
    )
    return Message("unmet-names", names=", ".join(named))


def _words(name: str) -> str:
    return NAMES.get(name, f"facts.{name}")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "empty"
    return str(value)
