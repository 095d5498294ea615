"""Expressions in braces in a case file, and arithmetic with the numbers of an output.

``"{cores}"`` gives an int and ``"-n {ranks} -b {MiB}"`` a text, from the facts of the machine. An
`Arithmetic` has numbers alone. It is read once and computed for each row of an output. It takes a
tenth of the time.
"""

from __future__ import annotations

import ast
import math
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from simpleeval import (
    EvalWithCompoundTypes,
    FunctionNotDefined,
    InvalidExpression,
    NameNotDefined,
)

from proofmark.common import network_time
from proofmark.common.errors import bad_input, nearest
from proofmark.common.grouping import flat

_BRACES = re.compile(r"\{([^{}]+)\}")
UNITS: Mapping[str, int] = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
GRID_RATIO, SMALL_GRID = 4, 16
"""The largest ratio Q / P of a usable grid of processes, and the number of ranks up to which any
grid is usable."""
LONGEST = 100_000
"""Maximum length of a list. An error such as ``upto(memory_bytes)`` must not fill the memory."""


def doubling(first: float, last: float) -> list[int]:
    """Return first, 2·first, 4·first, … up to and including `last`."""
    if first < 1 or first != int(first):
        raise ValueError(f"doubling starts at {first}; it must be a whole number from 1")
    # first · 2^k ≤ last is equivalent to 2^k ≤ ⌊last ÷ first⌋.
    return [int(first) << step for step in range(max(0, int(last // first)).bit_length())]


def lines(values: Sequence[Any]) -> str:
    """Return a text with one value per line; an input of a program can be one."""
    return "".join(f"{value}\n" for value in values)


def doubling_to(first: float, last: float) -> list[int]:
    """Return first, 2·first, 4·first, … up to `last`, and `last` itself.

    A sweep up to all nodes of a partition includes all of them: 2, 4, … 4096, 8192, 8305. The list
    is empty if `last` is smaller than `first`.
    """
    return _with_last(doubling(first, last), last)


def quadrupling_to(first: float, last: float) -> list[int]:
    """Return first, 4·first, 16·first, … up to `last`, and `last` itself."""
    return _with_last(doubling(first, last)[::2], last)


def _with_last(values: list[int], last: float) -> list[int]:
    return values if not values or values[-1] == int(last) else [*values, int(last)]


def upto(last: int) -> list[int]:
    """Return 1, 2, … `last`."""
    return [*_counting(int(last))]


def squares(last: int) -> list[int]:
    """Return the square numbers from 1 up to and including `last`."""
    return [root * root for root in _counting(math.isqrt(int(last)))]


def _counting(last: int) -> range:
    if last > LONGEST:
        raise ValueError(f"a list of {last} numbers; it may have at most {LONGEST}")
    return range(1, last + 1)


def multiple(value: float, of: int) -> int:
    """Return the largest multiple of `of` up to `value`, and at least `of`."""
    return max(1, int(value // of)) * of


def grid(ranks: int) -> list[int]:
    """Return P and Q with P ≤ Q and P × Q = `ranks`, as square as possible (HPL, TUNING)."""
    if ranks < 1 or ranks != int(ranks):
        raise ValueError(f"a grid of {ranks} ranks; their number must be a whole number from 1")
    rows = next(p for p in range(math.isqrt(int(ranks)), 0, -1) if ranks % p == 0)
    return [rows, int(ranks) // rows]


def divisors(number: int) -> list[int]:
    """Return the divisors of `number`, the smallest first."""
    if number < 1 or number != int(number):
        raise ValueError(f"the divisors of {number}; it must be a whole number from 1")
    return [each for each in _counting(int(number)) if number % each == 0]


def ranks_inside(domain_cores: Sequence[int], threads: int) -> int:
    """Return the number of ranks of `threads` cores that domains with these cores hold.

    No rank has cores of two domains.
    """
    return sum(cores // threads for cores in domain_cores)


def agreed(items: Sequence[Mapping[str, Any]], name: str, usual: float) -> list[Any]:
    """Return the values that the items of a contract state for a parameter, each once.

    Args:
        items: the conditions of the items for the case (``items`` of an expression).
    """
    return list(dict.fromkeys(where.get(name, usual) for where in items))


def gridded(nodes: int, ranks_per_node: int) -> int:
    """Return the largest number of nodes, up to `nodes`, whose ranks form a usable grid P × Q.

    A grid is usable if Q is at most `GRID_RATIO` × P, or if it is small. The broadcast of a panel
    along a row of Q processes and the exchange of rows along a column of P are then of similar cost
    (HPL, TUNING).
    8,301 ranks have only the grid 3 × 2767, so 8,300 are used, as 83 × 100. If no number of nodes
    has a usable grid, all nodes are used: one node with 26 ranks has the grid 2 × 13.

    Raises:
        ValueError: `nodes` is less than 1.
    """
    if int(nodes) < 1:
        raise ValueError(f"a grid on {nodes} nodes; accepted: a whole number of nodes from 1")
    for count in range(int(nodes), 0, -1):
        rows, columns = grid(count * ranks_per_node)
        if columns <= GRID_RATIO * rows or rows * columns <= SMALL_GRID:
            return count
    return int(nodes)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "doubling": doubling,
    "doubling_to": doubling_to,
    "quadrupling_to": quadrupling_to,
    "lines": lines,
    "upto": upto,
    "squares": squares,
    "multiple": multiple,
    "grid": grid,
    "divisors": divisors,
    "gridded": gridded,
    "ranks_inside": ranks_inside,
    "agreed": agreed,
    "len": len,
    "min": min,
    "max": max,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "log2": math.log2,
    "int": int,
    "sum": sum,
    "start_s": network_time.start_s,
    "collective_times": network_time.collective_times,
    "message_times": network_time.message_times,
    "round_trips": network_time.round_trips,
    "fitting": network_time.fitting,
    "imb_repetitions": network_time.imb_repetitions,
    "imb_s": network_time.imb_s,
    "imb_sample_s": network_time.imb_sample_s,
    "collective_messages": network_time.collective_messages,
}


_TABLE: Mapping[str, Callable[..., Any]] = EvalWithCompoundTypes(
    functions=dict(FUNCTIONS)
).functions
"""The functions of an expression, with those that simpleeval adds."""
_OF_THREAD = threading.local()

_COMPUTING_FAILED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
    Warning,
)


def evaluate(expression: str, names: Mapping[str, Any], *, file: object, key: str) -> Any:
    """Return the value of one expression (without its braces) over `names`.

    Raises:
        BadInput: the expression is malformed, it has an unknown name, or its value is not a number,
            a text or a list of these.
    """
    try:
        name = expression.strip()
        value = names[name] if name in names else _computed(expression, names)
    except (NameNotDefined, FunctionNotDefined) as error:
        is_name = isinstance(error, NameNotDefined)
        word = error.name if is_name else error.func_name
        words = [*names, *UNITS] if is_name else [*FUNCTIONS]
        found = f"{word!r}, which is not defined{nearest(word, words)}"
        raise bad_input(file, key, found, ", ".join(words)) from None
    except (InvalidExpression, *_COMPUTING_FAILED) as error:
        raise bad_input(file, key, f"{expression!r} ({error})", "a computable value") from None
    if not all(map(_is_scalar, value if isinstance(value, list) else [value])):
        accepted = "finite numbers, texts or lists of them"
        raise bad_input(file, key, f"{expression!r}, which is {value!r}", accepted)
    return value


def _computed(expression: str, names: Mapping[str, Any]) -> Any:
    """Return the value of `expression`; five of six of a check were computed before."""
    used = tuple(name for name in _names_of(expression) if name in names)
    values = [names[name] for name in used]
    if not all(isinstance(value, (str, int, float)) for value in values):
        return _evaluated(expression, {**UNITS, **names})
    value = _evaluated_once(expression, used, *values)
    return [*value] if isinstance(value, list) else value


@lru_cache(maxsize=1 << 14, typed=True)
def _evaluated_once(expression: str, names: tuple[str, ...], *values: float | str) -> Any:
    """Return the value of `expression`. With other types of the same values it is another one."""
    return _evaluated(expression, {**UNITS, **dict(zip(names, values, strict=True))})


def _evaluated(expression: str, names: Mapping[str, Any]) -> Any:
    """Return the value of `expression`, by an evaluator that earlier expressions used.

    Its construction takes longer than most expressions. An error may leave it changed: then it is
    not used again.
    """
    evaluator = vars(_OF_THREAD).pop("evaluator", None) or EvalWithCompoundTypes()
    # A lambda changes the table of functions: the evaluation gets a copy.
    evaluator.functions, evaluator.names = dict(_TABLE), names
    value = evaluator.eval(expression, _parsed(expression))
    _OF_THREAD.evaluator = evaluator
    return value


@lru_cache(maxsize=4096)
def _parsed(expression: str) -> ast.stmt:
    """Return the syntax tree of `expression`. A cache keeps it, because a sweep reuses the text.

    Raises:
        InvalidExpression, SyntaxError, Warning: it is no single expression.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # simpleeval warns of a second expression, and ignores it
        tree: ast.stmt = EvalWithCompoundTypes.parse(expression)
    if not isinstance(tree, ast.Expr):
        raise InvalidExpression("a statement is no expression")
    return tree


@lru_cache(maxsize=4096)
def _names_of(expression: str) -> tuple[str, ...]:
    """Return the names in `expression`, functions included."""
    nodes = ast.walk(_parsed(expression))
    return tuple(sorted({node.id for node in nodes if isinstance(node, ast.Name)}))


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


def render(value: Any, names: Mapping[str, Any], *, file: object, key: str) -> Any:
    """Replace every ``{expression}`` in `value`, also in lists. A single one keeps its type.

    Raises:
        BadInput: see `evaluate`.
    """
    if isinstance(value, list):
        return [render(item, names, file=file, key=key) for item in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    if whole := _BRACES.fullmatch(value):
        return evaluate(whole[1], names, file=file, key=key)

    def text(match: re.Match[str]) -> str:
        return str(evaluate(match[1], names, file=file, key=key))

    return _BRACES.sub(text, value)


def names_in(value: Any) -> frozenset[str]:
    """Return the identifiers in the expressions of `value`."""
    if isinstance(value, list):
        return frozenset().union(*map(names_in, value))
    return _identifiers(value) if isinstance(value, str) else frozenset()


@lru_cache(maxsize=4096)
def _identifiers(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", " ".join(_BRACES.findall(text))))


def flaws(value: str) -> Iterator[tuple[str, str]]:
    """Yield what no machine can compute in the expressions of `value`, and what is accepted."""
    if value.count("{") != value.count("}"):
        yield repr(value), "a closing brace for each opening one"
    for text in _BRACES.findall(value):
        try:
            nodes = ast.walk(ast.parse(text.strip(), mode="eval"))
        except SyntaxError as error:
            yield f"{text!r} ({error.msg})", "an expression in braces"
            continue
        for node in nodes:
            function = node.func if isinstance(node, ast.Call) else None
            if isinstance(function, ast.Name) and function.id not in _TABLE:
                hint = nearest(function.id, FUNCTIONS)
                yield f"{function.id!r}, which is not defined{hint}", ", ".join(FUNCTIONS)


def variables_in(value: Any) -> set[str]:
    """Return the names that the expressions of `value` read, without functions and units.

    The expressions have no `flaws`.
    """
    expressions = _BRACES.findall(value) if isinstance(value, str) else []
    nodes = flat(ast.walk(ast.parse(text.strip(), mode="eval")) for text in expressions)
    return {node.id for node in nodes if isinstance(node, ast.Name)} - {*FUNCTIONS, *UNITS}


Numbers = Mapping[str, float]
_ARITHMETIC = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub),
    *(ast.BinOp, ast.UnaryOp, ast.Name, ast.Load),
)
"""The syntax of an arithmetic, beside its numbers."""


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
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{expression!r}: {error.msg}") from None
    names: set[str] = set()
    for node in ast.walk(tree.body):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            node.value = float(node.value)  # powers of floats have an end
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif not isinstance(node, _ARITHMETIC):
            accepted = "numbers, names, + - * / ** and parentheses"
            raise ValueError(f"{expression!r}; accepted: {accepted}")
    code = compile(tree, "<arithmetic>", "eval")
    units = {"__builtins__": {}, **{name: float(unit) for name, unit in UNITS.items()}}
    return Arithmetic(frozenset(names - UNITS.keys()), lambda numbers: eval(code, units, numbers))
