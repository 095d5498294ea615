"""Lists the external programs that the repository calls.

Shell text and Python are read from their syntax trees. In Python the arguments of a function that
starts processes are a command, and so is a list that holds an option.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath
from typing import Any

Word = str | None
"""A word of a command; None if it is known only at run time."""

BUILT_IN = frozenset(
    {".", ":", "[", "alias", "bg", "break", "cd", "command", "continue", "echo", "eval", "exec"}
    | {"exit", "export", "false", "fg", "getopts", "hash", "jobs", "kill", "local", "printf", "pwd"}
    | {"read", "readonly", "return", "set", "shift", "test", "times", "trap", "true", "type"}
    | {"ulimit", "umask", "unalias", "unset", "wait"}
)
SHELLS = frozenset({"bash", "dash", "sh"})
NAME = re.compile(r"/?[a-z][a-z0-9_+.-]*(/[a-z0-9_+.-]+)*")
OURS = (".awk", ".c", ".sh", ".yml")
"""Endings of files of the kit, which are not programs of the machine."""
STARTS = frozenset({"Popen", "check_call", "check_output", "run", "run_command", "which"})
"""Functions that take a command, or the name of a program."""
OWN_STARTS = {
    **{"_batch": 0, "ask": 0, "ask_scheduler": 0, "call": 0},
    **{"built": 0, "command": 0, "daemon": 0, "inside": 0, "on": 1, "_in_clusters": 0},
}
"""Functions of this repository that take the words of a command: the index of the first word."""
TEXT_TAKERS = {"_shell": 1, "service": 1, "shell": 1}
"""Functions of this repository that take shell text: which argument it is."""
SHELL_FUNCTIONS = {"bounded": 1, "have": 0, "output": 2, "run_tool": 1, "tool": 0, "whole_file": 2}
"""Functions of the kit's scripts that run one of their words: how many words stand before it."""
GENERATED = frozenset(
    {"launch", "on_all", "rank_cpus", "json_text", "report_scratch", "watch_scratch"}
    | {"set_layout", "print_layout", "report_layout"}
    | {"alive", "end_sampler", "is_disturbed", "judge_noise", "process_facts"}
    | {"sample_node", "start_sampler", "ask_ipmi", "find_sensors", "centiseconds"}
    | {"end_process", "report_load", "start_load", "keeps_files"}
    | {"answers", "leave_scratch", "make_scratch", "report_files", "try_files"}
)
"""Functions that another part of a generated script defines."""


@dataclass(frozen=True)
class Carrier:
    """A program that runs another program, and the form of its command line.

    Attributes:
        valued: options whose value is the next word.
        before: the number of words between the options and the command.
        text: the option whose value is shell text.
    """

    valued: frozenset[str] = frozenset()
    before: int = 0
    text: str = ""


CARRIERS: Mapping[str, Carrier] = {
    "command": Carrier(),
    "env": Carrier(),
    "exec": Carrier(),
    "nsenter": Carrier(frozenset({"-t"})),
    "numactl": Carrier(),
    "setpriv": Carrier(frozenset({"--pdeathsig"})),
    "setsid": Carrier(),
    "su": Carrier(text="-c"),
    "taskset": Carrier(before=1),
    "unshare": Carrier(),
    "xargs": Carrier(),
    **{shell: Carrier(text="-c") for shell in SHELLS},
}


def named(words: Sequence[Word]) -> Iterator[str]:
    """Yield the program that `words` call, and the programs that it calls by its arguments."""
    if not words or not NAME.fullmatch(words[0] or "") or (words[0] or "").endswith(OURS):
        return
    program = PurePath(words[0] or "").name
    yield program
    if program not in CARRIERS:
        return
    carrier, rest = CARRIERS[program], list(words[1:])
    if carrier.text:
        if carrier.text in rest[:-1]:
            # A part that is inserted at run time may be syntax.
            with suppress(SyntaxError):
                yield from in_shell(rest[rest.index(carrier.text) + 1] or "")
        return
    while rest and ((word := rest[0] or "").startswith("-") or "=" in word):
        rest = rest[2 if rest[0] in carrier.valued else 1 :]
    yield from named(rest[carrier.before :])


def functions_of(text: str) -> set[str]:
    """Return the names of the functions that a shell file defines at the start of a line."""
    return set(re.findall(r"^(\w+)\(\)", text, re.MULTILINE))


def in_shell(text: str, elsewhere: Collection[str] = ()) -> Iterator[str]:
    """Yield the programs that shell text calls; the functions `elsewhere` are defined in another.

    Raises:
        SyntaxError: a shell cannot read the text.
    """
    done = subprocess.run(
        ["shfmt", "--to-json"], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SyntaxError(f"{done.stderr.strip()} in {text!r}")
    tree = json.loads(done.stdout)
    nodes = list(_nodes(tree))
    functions = {node["Name"]["Value"] for node in nodes if node.get("Type") == "FuncDecl"}
    for node in nodes:
        if node.get("Type") != "CallExpr":
            continue
        words = [_literal(word) for word in node.get("Args", ())]
        if words and words[0] in functions and words[0] in SHELL_FUNCTIONS:
            words = words[1 + SHELL_FUNCTIONS[words[0]] :]
        known = BUILT_IN | GENERATED | functions | {*elsewhere}
        yield from (name for name in named(words) if name not in known)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for branch in tree:
            yield from _nodes(branch)


def _literal(word: Mapping[str, Any]) -> Word:
    """Return a word of the shell, or None if the shell expands a part of it."""
    parts = [
        part
        for outer in word["Parts"]
        for part in (outer.get("Parts", ()) if outer["Type"] == "DblQuoted" else [outer])
    ]
    if any(part["Type"] not in ("Lit", "SglQuoted") for part in parts):
        return None
    return "".join(part.get("Value", "") for part in parts)


MAY_CALL = re.compile(
    r"[\"']-|#!/bin/|\b(?:" + "|".join((*STARTS, *OWN_STARTS, *TEXT_TAKERS)) + r")\((?!\))"
)
"""What a file has that calls a program: an option, the text of a script, a call of a starter."""
NAMING = (ast.List, ast.Tuple, ast.Constant, ast.JoinedStr, ast.Call)
"""The kinds of nodes that may name a program."""
Values = Mapping[str, Sequence[ast.expr]]
"""The expressions that are assigned to a name."""


def in_python(text: str, *, sent: bool = False) -> Iterator[str]:
    """Yield the programs that a Python file calls; with `sent` those in the text that it sends."""
    if not MAY_CALL.search(text):
        return  # a syntax tree takes longer than all the rest
    for nodes, values in _scopes(text):
        for node in nodes:
            commands = _sent(node, values) if sent else _commands(node, values)
            for words in commands:
                yield from named(words)


@lru_cache(maxsize=1)
def _scopes(text: str) -> list[tuple[list[ast.AST], Values]]:
    """Return the nodes of a file that may name a program, outside and inside each function.

    A file is asked twice, and its syntax tree is the cost.
    """
    outer: list[ast.AST] = [ast.parse(text)]
    functions: list[list[ast.AST]] = []
    for node in outer:  # it grows
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append([*ast.walk(each)])
            else:
                outer.append(each)
    parts = {
        part
        for nodes in (outer, *functions)
        for node in nodes
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    shared = _assigned(outer, {})
    scopes = [(outer, shared), *((nodes, _assigned(nodes, shared)) for nodes in functions)]
    return [
        ([node for node in nodes if isinstance(node, NAMING) and node not in parts], values)
        for nodes, values in scopes
    ]


def _assigned(nodes: Iterable[ast.AST], outside: Values) -> Values:
    """Return the expressions assigned to each name; for a loop, its elements."""
    assigned: dict[str, list[ast.expr]] = {}
    loops: list[tuple[str, ast.expr]] = []
    for node in nodes:
        match node:
            case ast.Assign([ast.Name(name)], value):
                assigned.setdefault(name, []).append(value)
            case ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                assigned.setdefault(name, []).append(value)
            case ast.For(ast.Name(name), values) | ast.comprehension(ast.Name(name), values):
                loops.append((name, values))
            case ast.arg(name):
                assigned.setdefault(name, [])
    for name, values in loops:
        if isinstance(values, ast.Name):
            shown = assigned.get(values.id) or outside.get(values.id, ())
        else:
            shown = [values]
        assigned.setdefault(name, []).extend(each for one in shown for each in _elements(one))
    return {**outside, **assigned}


def _commands(node: ast.AST, values: Values) -> Iterator[list[Word]]:
    if isinstance(node, ast.List | ast.Tuple):
        words = _words(node.elts, values)
        if any((word or "").startswith("-") for word in words[1:]):
            yield words
    if isinstance(node, ast.Constant | ast.JoinedStr):
        text = _text(node) or ""
        if text.startswith("#!/bin/"):
            yield ["sh", "-c", text]
    if not isinstance(node, ast.Call) or not node.args:
        return
    name = _called(node)
    if name in OWN_STARTS:
        first, *rest = [*node.args[OWN_STARTS[name] :], ast.Constant(None)]
        for value in _values_of(first, values):
            yield _words([value, *rest], values)
    elif name in STARTS:
        for value in _values_of(node.args[0], values):
            yield _words(_elements(value) or [value], values)


def _sent(node: ast.AST, values: Values) -> Iterator[list[Word]]:
    if not isinstance(node, ast.Call) or (name := _called(node)) not in TEXT_TAKERS:
        return
    for argument in node.args[TEXT_TAKERS[name] :][:1]:
        for value in _values_of(argument, values):
            yield ["sh", "-c", _text(value)]


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _words(
    nodes: Iterable[ast.expr], values: Values, seen: frozenset[str] = frozenset()
) -> list[Word]:
    words: list[Word] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            # A name may be assigned a list with its earlier elements.
            name = {node.value.id} if isinstance(node.value, ast.Name) else set()
            display = next(iter(_values_of(node.value, values, seen)), None)
            words += _words(_elements(display), values, seen | name)
        else:
            words.append(next((_text(value) for value in _values_of(node, values)), None))
    return words


def _values_of(
    node: ast.expr, values: Values, seen: frozenset[str] = frozenset()
) -> list[ast.expr]:
    """Return the possible values of an expression, as far as this file defines them."""
    match node:
        case ast.Name(name) if name not in seen:
            bound = values.get(name, ())
            return [value for one in bound for value in _values_of(one, values, seen | {name})]
        case ast.IfExp(_, one, other):
            return _values_of(one, values, seen) + _values_of(other, values, seen)
        case ast.BoolOp(_, several):
            return [value for one in several for value in _values_of(one, values, seen)]
        case ast.BinOp(left):
            return _values_of(left, values, seen)
    return [node]


def _elements(node: ast.expr | None) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.List | ast.Tuple) else []


def _text(node: ast.expr) -> Word:
    """Return a string, with a question mark for each inserted part."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "?" for part in node.values)
        return "".join(map(str, parts))
    return None
