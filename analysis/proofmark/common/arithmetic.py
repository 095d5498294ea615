"""Arithmetic with named numbers: an expression is read once and computed for each row of an output.

`proofmark.common.expressions` has functions, lists and texts as well. It takes ten times as long.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from proofmark.common.expressions import UNITS

Numbers = Mapping[str, float]
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


class Arithmetic(NamedTuple):
    """An expression.

    Attributes:
        compute: its value for the numbers of these names, which are `float`. It raises
            ArithmeticError if there is none; the root of a negative number is complex.
    """

    names: frozenset[str]
    compute: Callable[[Numbers], float]


@lru_cache(maxsize=1024)
def arithmetic(expression: str) -> Arithmetic:
    """Return the arithmetic in `expression`: numbers, names, ``+ - * / **`` and parentheses.

    Raises:
        ValueError: it has something else.
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{expression!r}: {error.msg}") from None
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return Arithmetic(frozenset(names - UNITS.keys()), _compute(tree))


def _compute(node: ast.expr) -> Callable[[Numbers], float]:
    match node:
        case ast.Constant(value=int() | float() as value):
            number = float(value)  # powers of floats have an end
            return lambda numbers: number
        case ast.Name(id=name) if name in UNITS:
            unit = float(UNITS[name])
            return lambda numbers: unit
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            first, second, of = _compute(left), _compute(right), _OPERATORS[type(sign)]
            return lambda numbers: of(first(numbers), second(numbers))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            positive = _compute(operand)
            return lambda numbers: -positive(numbers)
    accepted = "numbers, names, + - * / ** and parentheses"
    raise ValueError(f"{ast.unparse(node)!r}; accepted: {accepted}")
