"""Conditions of cases that do not hold, in words: what there is, and what is needed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from proofmark.common.expressions import evaluate, variables_in

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
    ast.GtE: "at least {}",
    ast.Gt: "more than {}",
    ast.LtE: "at most {}",
    ast.Lt: "less than {}",
    ast.Eq: "{}",
    ast.NotEq: "another value",
}


def unmet(condition: str, names: Mapping[str, Any], file: str) -> str:
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

    return "; ".join(_words(part, value) for part in parts if not value(part))


def _words(part: ast.expr, value: Callable[[ast.expr], Any]) -> str:
    """Return one part of a condition in words."""
    match part:
        case ast.Compare(ast.Name(name), [operator], [other]) if type(operator) in NEEDED:
            needed = NEEDED[type(operator)].format(_text(value(other)))
            found = _text(value(part.left))
            return f"{NAMES.get(name, f'facts.{name}')} is {found}, and {needed} is needed"
        case ast.Compare(other, [ast.In()], [ast.Name(name)]):
            return f"{NAMES.get(name, f'facts.{name}')} has no {_text(value(other))}"
    values = {
        NAMES.get(name, f"facts.{name}"): _text(value(ast.Name(name)))
        for name in sorted(variables_in(f"{{{ast.unparse(part)}}}"))
    }
    named = (f"{name} is {text}" for name, text in values.items())
    return f"the case is not for this: {', '.join(named)}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "empty"
    return str(value)
