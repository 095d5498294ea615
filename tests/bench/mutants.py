"""Mutation testing: change one place of a module at a time, and run the tests that execute it.

  python -m tests.bench.mutants records/read.py judge/aggregate.py --tests tests/unit/records
      [--tier test] [--results FILE] [--budget SECONDS] [--again] [--only LINE,…] [--count]

Modules are paths below ``analysis/proofmark`` of the current folder, and may have the wildcard *.
A test that fails kills the mutant. The tests are collected once. Each mutant is a forked process
with the changed code in memory, so no file is edited; only a change outside of functions needs a
new import. The tests that execute the changed line run until the first one fails: first those that
killed other mutants, then the quickest. They are known from one traced run of each test file, which
is kept beside the results until the file or the module changes. Properties get few examples.

Decorators are not changed: they declare what a class or a cache is.

The results are lines of JSON. A mutant with a result is not run again; ``--again`` repeats those
that survived. ``tests/mutants.yml`` lists equivalent mutants: those that no test can kill.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import functools
import gc
import hashlib
import importlib
import importlib.machinery
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
import yaml

PACKAGE = Path("analysis/proofmark")
EQUIVALENT = Path("tests/mutants.yml")
EXAMPLES = 10
"""The number of examples of a property."""
LIBRARIES = ("hypothesis.strategies", "numpy", "polars", "pydantic", "rich.console")
"""They are imported before the first fork."""
SURVIVED, KILLED, NO_FUNCTION, BROKEN = 0, 1, 90, 91
"""Exit codes of the process of a mutant."""

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
PAIRS = (("any", "all"), ("min", "max"), ("minimum", "maximum"), ("startswith", "endswith"))
NAMES = {**dict(PAIRS), **{after: before for before, after in PAIRS}}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Mutant:
    """One change of a module.

    Attributes:
        module: the path of the module below the package.
        line, end: the first and the last line of the changed code; `statement` is the first line of
            its statement.
        text: the content of `line`.
        change: the code before and after the change.
        tree: the changed module.
        function: the outermost function around the change, as (qualified name, first line); None
            for code that runs at import.
    """

    module: str
    line: int
    end: int
    statement: int
    text: str
    change: str
    tree: ast.Module
    function: tuple[str, int] | None

    @property
    def key(self) -> tuple[str, int, str]:
        return self.module, self.line, self.change


class Mutator:
    """Makes the mutants of one module."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.tree = module, ast.parse(source)
        self.lines = source.splitlines()

    def mutants(self) -> Iterator[Mutant]:
        """Yield each mutant; equal changes of the same line are numbered."""
        seen: Counter[tuple[str, int, str]] = Counter()
        for mutant in self._of_body(self.tree, (), None):
            seen[mutant.key] += 1
            if seen[mutant.key] > 1:
                mutant.change += f" (number {seen[mutant.key]})"
            yield mutant

    def _of_body(
        self, node: ast.AST, names: tuple[str, ...], function: tuple[str, int] | None
    ) -> Iterator[Mutant]:
        """Yield the mutants of the statements of a module, a class or a function."""
        for statement in _statements(node):
            if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from self._of_definition(statement, names, function)
                continue
            yield from self._of_statement(statement, node, function)
            if not isinstance(statement, ast.If) or ast.unparse(statement.test) != "TYPE_CHECKING":
                yield from self._of_body(statement, names, function)

    def _of_definition(
        self,
        definition: ast.ClassDef | Function,
        names: tuple[str, ...],
        function: tuple[str, int] | None,
    ) -> Iterator[Mutant]:
        decorators = [ast.unparse(each) for each in definition.decorator_list]
        if "overload" in decorators:
            return
        within = (*names, definition.name)
        if not isinstance(definition, ast.ClassDef):
            for default in (*definition.args.defaults, *definition.args.kw_defaults):
                if default is not None:
                    yield from self._of_expression(default, definition, function)
            first = min([definition.lineno, *(d.lineno for d in definition.decorator_list)])
            function = function or (".".join(within), first)
        yield from self._of_body(definition, within, function)

    def _of_statement(
        self, statement: ast.stmt, parent: ast.AST, function: tuple[str, int] | None
    ) -> Iterator[Mutant]:
        if isinstance(statement, (ast.Import, ast.ImportFrom)) or _is_docstring(statement):
            return
        if function and _may_be_dropped(statement, parent):
            yield self._mutant(statement, ast.Pass(), statement, function)
        if isinstance(statement, ast.Return) and statement.value is not None:
            none = ast.Return(ast.Constant(None))
            if ast.unparse(statement.value) != "None":
                yield self._mutant(statement, none, statement, function)
        for _, value in ast.iter_fields(statement):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(statement, ast.AnnAssign) and each is statement.annotation:
                    continue
                if isinstance(each, ast.withitem):
                    each = each.context_expr
                if isinstance(each, ast.expr):
                    yield from self._of_expression(each, statement, function)
        if isinstance(statement, ast.AugAssign) and type(statement.op) in OPERATORS:
            new = copy.copy(statement)
            new.op = OPERATORS[type(statement.op)]()
            yield self._mutant(statement, new, statement, function)

    def _of_expression(
        self, root: ast.expr, statement: ast.stmt, function: tuple[str, int] | None
    ) -> Iterator[Mutant]:
        conditions = _conditions(root, statement)
        left_out = {*_compared_by_identity(root), *_assertions(root)}
        for node in ast.walk(root):
            if isinstance(node, ast.expr) and node not in left_out:
                for new in _expressions(node):
                    yield self._mutant(node, new, statement, function)
                if node in conditions and not isinstance(node, ast.Compare):
                    negated = ast.UnaryOp(ast.Not(), node)
                    yield self._mutant(node, negated, statement, function)
            elif isinstance(node, ast.comprehension):
                for condition in node.ifs:
                    yield self._mutant(condition, ast.Constant(True), statement, function)

    def _mutant(
        self, old: Any, new: ast.AST, statement: ast.stmt, function: tuple[str, int] | None
    ) -> Mutant:
        change = f"{ast.unparse(old)} -> {ast.unparse(new)}"
        tree = _replaced(self.tree, old, new)
        end = statement.lineno if old is statement and hasattr(old, "body") else old.end_lineno
        text = self.lines[old.lineno - 1].strip()
        line = statement.lineno
        return Mutant(self.module, old.lineno, end, line, text, change, tree, function)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from child.body


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _may_be_dropped(statement: ast.stmt, parent: ast.AST) -> bool:
    """Return whether the code without `statement` can differ, and does not surely crash."""
    if isinstance(statement, (ast.Expr, ast.Continue, ast.Break, ast.Raise, ast.AugAssign)):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    target = statement.targets[0]
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        return True
    read = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
    return isinstance(target, ast.Name) and (target.id in read or isinstance(parent, ast.If))


def _conditions(root: ast.expr, statement: ast.stmt) -> set[ast.expr]:
    """Return the expressions whose truth decides: of if, while, assert and filters."""
    found = {node.test for node in ast.walk(root) if isinstance(node, ast.IfExp)}
    if isinstance(statement, (ast.If, ast.While, ast.Assert)) and root is statement.test:
        found.add(root)
    for node in ast.walk(root):
        if isinstance(node, ast.comprehension):
            found.update(node.ifs)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found.discard(node)  # `not` is removed instead
    return found


def _compared_by_identity(root: ast.expr) -> set[ast.expr]:
    """Return the constants of `is` and `is not`; a change of the operator includes theirs."""
    compares = (node for node in ast.walk(root) if isinstance(node, ast.Compare))
    return {
        operand
        for compare in compares
        for operator, operand in zip(compare.ops, compare.comparators, strict=True)
        if isinstance(operator, (ast.Is, ast.IsNot)) and isinstance(operand, ast.Constant)
    }


def _assertions(root: ast.expr) -> set[ast.expr]:
    """Return the values of `strict`, with which `zip` and others only check their arguments."""
    keywords = (node for node in ast.walk(root) if isinstance(node, ast.keyword))
    return {keyword.value for keyword in keywords if keyword.arg == "strict"}


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the changed forms of one expression, without changes of its parts."""
    new: Any = copy.copy(node)
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                new.ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                yield copy.copy(new)
    elif isinstance(node, ast.BoolOp):
        for place in range(len(node.values)):
            rest = [*node.values[:place], *node.values[place + 1 :]]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        new.op = OPERATORS[type(node.op)]()
        yield new
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield ast.Name(NAMES[node.id], node.ctx)
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        new.attr = NAMES[node.attr]
        yield new
    elif isinstance(node, ast.Constant):
        for value in _constants(node.value):
            yield ast.Constant(value)


def _constants(value: object) -> tuple[str | float | bool, ...]:
    if isinstance(value, bool):
        return (not value,)
    if value is None:
        return (1,)
    if isinstance(value, int):
        return (0, 2) if value == 1 else (value + 1,)
    if isinstance(value, float):
        return (1.0,) if value == 0 else (2 * value,)
    return ("mutant",) if value == "" else ()


def _replaced(tree: ast.Module, old: ast.AST, new: ast.AST) -> ast.Module:
    """Return `tree` with `new` in the place of `old`; only the nodes above are copied."""

    def rebuilt(node: Any) -> Any:
        if node is old:
            return ast.copy_location(copy.copy(new), old) if isinstance(old, ast.expr) else located
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                changed = rebuilt(value)
            elif isinstance(value, list):
                changed = [rebuilt(each) if isinstance(each, ast.AST) else each for each in value]
                if all(after is before for after, before in zip(changed, value, strict=True)):
                    changed = value
            else:
                continue
            if changed is not value:
                node = copy.copy(node)
                setattr(node, name, changed)
                return node
        return node

    located = ast.copy_location(new, old)
    result: ast.Module = rebuilt(tree)
    return ast.fix_missing_locations(result)


Lines = dict[str, dict[str, list[int]]]
"""The executed lines of each module, by test."""


@dataclass
class Coverage:
    """The lines of the modules that each test executes; kept in one file per test file.

    Attributes:
        folder: the folder of the kept files.
        modules: the source of each module, by its path below the package.
        lines: the executed lines of each module, by test.
        seconds: the duration of each test.
    """

    folder: Path
    modules: dict[str, str]
    lines: Lines = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def known(self, file: str) -> bool:
        """Read what is kept about a test file, and return whether it covers all modules."""
        path = self._path(file)
        kept = json.loads(path.read_text()) if path.exists() else {}
        if any(digest(source) != kept.get(name) for name, source in self.modules.items()):
            return False
        self.seconds.update(kept["seconds"])
        self.lines.update(kept["lines"])
        return True

    def keep(self, file: str) -> None:
        content = {
            **{name: digest(source) for name, source in self.modules.items()},
            "seconds": {test: s for test, s in self.seconds.items() if _file(test) == file},
            "lines": {test: lines for test, lines in self.lines.items() if _file(test) == file},
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        self._path(file).write_text(json.dumps(content))

    def _path(self, file: str) -> Path:
        return self.folder / f"{file.replace('/', '.')}.{digest(Path(file).read_text())}.json"

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute the changed code.

        For code that runs at import: all tests of the files with a test that executes the module.
        """
        executed = {test: set(of.get(mutant.module, ())) for test, of in self.lines.items()}
        if mutant.function is None:
            files = {_file(test) for test, lines in executed.items() if lines}
            return [test for test in executed if _file(test) in files]
        for first, last in ((mutant.line, mutant.end), (mutant.statement, mutant.end)):
            wanted = set(range(first, last + 1))
            if found := [test for test, lines in executed.items() if lines & wanted]:
                return found
        return []


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _file(test: str) -> str:
    return test.partition("::")[0]


class Tracer:
    """Records the executed lines of the modules."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._names = {str((PACKAGE / name).absolute()): name for name in modules}
        self.executed: set[tuple[str, int]] = set()

    def __enter__(self) -> Tracer:
        self.executed = set()
        threading.settrace(self._call)
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:
        name = self._names.get(frame.f_code.co_filename)
        if name is None:
            return None

        def line(frame: FrameType, event: str, argument: object) -> Any:
            self.executed.add((name, frame.f_lineno))
            return line

        return line

    def lines(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for name, line in sorted(self.executed):
            found.setdefault(name, []).append(line)
        return found


class Trial:
    """Runs the mutants, and writes the result of each one."""

    def __init__(self, options: argparse.Namespace, modules: dict[str, str], scratch: str) -> None:
        self.options, self.scratch = options, scratch
        results: Path = options.results
        self.coverage = Coverage(results.parent / "mutants.coverage", modules)
        self._killers: Counter[tuple[str, str]] = Counter()
        self.done = read_results(results, modules)
        self.mutants = [
            mutant
            for module, source in modules.items()
            for mutant in Mutator(module, source).mutants()
            if not options.only or mutant.line in options.only
        ]

    def wanted(self, *, imported: bool) -> list[Mutant]:
        """Return the mutants without a result; `imported`: those that need a new import."""
        again = {None, "survived"} if self.options.again else {None}
        return [
            mutant
            for mutant in self.mutants
            if (mutant.function is None) == imported
            and self.done.get(mutant.key, {}).get("outcome") in again
        ]

    def selected(self, mutant: Mutant) -> list[str]:
        """Return the tests to run, within the budget: first those that killed other mutants."""
        seconds = self.coverage.seconds

        def order(test: str) -> tuple[int, float]:
            return -self._killers[mutant.module, test], seconds[test]

        chosen: list[str] = []
        budget: float = self.options.budget
        for test in sorted(self.coverage.tests_of(mutant), key=order):
            if chosen and budget < seconds[test]:
                continue
            budget -= seconds[test]
            chosen.append(test)
        return chosen

    def run(self, mutant: Mutant, work: Callable[[list[str], Callable[[str], None]], int]) -> None:
        """Run `work` in a forked process, and write the result.

        `work` gets the tests and a function that takes the name of the test that failed.
        """
        tests = self.selected(mutant)
        seconds = sum(self.coverage.seconds[test] for test in tests)
        begin = time.monotonic()
        outcome, killer = "survived", ""
        if tests:
            code, killer = _forked(lambda failed: work(tests, failed), 20 + 5 * seconds)
            if code == BROKEN:
                raise RuntimeError(f"{mutant.key}: {killer}")
            outcome = {SURVIVED: "survived", NO_FUNCTION: "no function"}.get(code, "killed")
        if killer:
            self._killers[mutant.module, killer] += 1
        result = {
            "module": mutant.module,
            "source": digest(self.coverage.modules[mutant.module]),
            "line": mutant.line,
            "text": mutant.text,
            "change": mutant.change,
            "outcome": outcome,
            "by": killer,
            "tests": len(tests),
            "seconds": round(time.monotonic() - begin, 2),
        }
        if outcome == "no function":
            mutant.function = None  # it is repeated with a new import
            return
        self.done[mutant.key] = result
        with self.options.results.open("a") as file:
            file.write(json.dumps(result) + "\n")

    def pytest(self, tests: Sequence[str], plugin: object) -> int:
        """Run pytest with few examples of properties, in this process."""
        arguments = ["-qxs", "-p", "no:cacheprovider", f"--basetemp={self.scratch}/tests"]
        rewritten = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of `LIBRARIES`
        tier = [f"--tier={self.options.tier}"] if self.options.tier else []
        plugins = [FewExamples(), plugin]
        return int(pytest.main([*arguments, *rewritten, *tier, *tests], plugins=plugins))

    def by_import(self, mutant: Mutant) -> None:
        """Run a mutant whose module is imported anew."""

        def work(tests: list[str], failed: Callable[[str], None]) -> int:
            path = str((PACKAGE / mutant.module).absolute())
            code = compiled(mutant, path)
            original = importlib.machinery.SourceFileLoader.get_code

            def get_code(loader: Any, fullname: str) -> CodeType | None:
                return code if loader.get_filename(fullname) == path else original(loader, fullname)

            setattr(importlib.machinery.SourceFileLoader, "get_code", get_code)  # noqa: B010
            watch = Watch(failed)
            return KILLED if self.pytest(tests, watch) or watch.count else SURVIVED

        self.run(mutant, work)


def compiled(mutant: Mutant, path: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(mutant.tree, path, "exec")


def _forked(work: Callable[[Callable[[str], None]], int], limit_s: float) -> tuple[int, str]:
    """Return the exit code of `work` in a forked process, and the text that it passes on.

    The process is killed after `limit_s` of CPU time, or three times that; the code is then -9.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        cpu = int(limit_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)

        def failed(test: str) -> None:
            os.write(write, f"{test}\n".encode())

        code = BROKEN
        try:
            code = work(failed)
        except BaseException:
            failed(repr(traceback.format_exc()))
        finally:
            os._exit(code)
    os.close(write)
    deadline = time.monotonic() + 3 * limit_s
    status = None
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.005)
    else:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # processes that the test left
    with os.fdopen(read, "rb") as pipe:
        os.set_blocking(read, False)
        text = (pipe.read() or b"").decode().partition("\n")[0]
    return os.waitstatus_to_exitcode(status or 0), text


class FewExamples:
    """Gives properties few examples, the same ones each time."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "mutants",
            max_examples=EXAMPLES,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=[*HealthCheck],
        )
        settings.load_profile("mutants")


class Watch:
    """Counts failed tests, and reports their names."""

    def __init__(self, failed: Callable[[str], None]) -> None:
        self.failed, self.count = failed, 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.count += 1
            self.failed(report.nodeid)


class Session:
    """A plug-in of pytest that runs tests of the session with each mutant."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._items: dict[str, pytest.Item] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        files = dict.fromkeys(map(_file, self._items))
        for file in files:
            if not self.trial.coverage.known(file):
                self._trace(file)
        functions = _functions(self.trial.coverage.modules)
        gc.freeze()
        mutants = self.trial.wanted(imported=False)
        for number, mutant in enumerate(mutants, 1):
            self.trial.run(mutant, functools.partial(self._mutated, mutant, functions))
            if number % 50 == 0:
                print(f"{number} of {len(mutants)} mutants", file=sys.stderr, flush=True)
        return True

    def _trace(self, file: str) -> None:
        """Trace the tests of a file in a forked process; failing tests are left out."""
        coverage = self.trial.coverage
        path = Path(self.trial.scratch) / "traced"
        tests = [test for test in self._items if _file(test) == file]

        def work(failed: Callable[[str], None]) -> int:
            bad: list[str] = []
            watch = Watch(bad.append)
            plugins = self._items[tests[0]].config.pluginmanager
            plugins.register(watch)
            for test, following in pairwise([*tests, None]):
                assert test is not None
                begin = time.monotonic()
                with Tracer(list(coverage.modules)) as tracer:
                    self._run(test, following)
                coverage.seconds[test] = round(time.monotonic() - begin, 4)
                coverage.lines[test] = tracer.lines()
            for test in bad:
                coverage.lines.pop(test, None)
            path.write_text(json.dumps([coverage.seconds, coverage.lines, bad]))
            return 0

        print(f"{file}: trace {len(tests)} tests", file=sys.stderr, flush=True)
        code, text = _forked(work, 900)
        if code:
            raise pytest.UsageError(f"{file}: the traced run ended with {code} {text}")
        seconds, lines, bad = json.loads(path.read_text())
        for test in bad:
            print(f"{test}: fails without a mutant, and is left out", file=sys.stderr, flush=True)
        coverage.seconds.update(seconds)
        coverage.lines.update(lines)
        coverage.keep(file)

    def _run(self, test: str, following: str | None) -> None:
        item, after = self._items[test], following and self._items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after or None)

    def _mutated(
        self,
        mutant: Mutant,
        functions: dict[tuple[str, str, int], list[Any]],
        tests: list[str],
        failed: Callable[[str], None],
    ) -> int:
        """Replace the code of a function, and run the tests until one fails."""
        path = str((PACKAGE / mutant.module).absolute())
        assert mutant.function is not None
        found = functions.get((path, *mutant.function))
        code = _code_of(compiled(mutant, path), mutant.function)
        if not found or code is None:
            return NO_FUNCTION
        for function in found:
            if isinstance(function, FunctionType):
                function.__code__ = code
            else:
                function.cache_clear()
        watch = Watch(failed)
        self._items[tests[0]].config.pluginmanager.register(watch)
        for test, following in pairwise([*tests, None]):
            assert test is not None
            self._run(test, following)
            if watch.count:
                return KILLED
        return SURVIVED


def _functions(modules: dict[str, str]) -> dict[tuple[str, str, int], list[Any]]:
    """Return the functions and the caches of functions by path, qualified name and first line."""
    paths = {str((PACKAGE / name).absolute()) for name in modules}
    found: dict[tuple[str, str, int], list[Any]] = {}
    gc.unfreeze()  # conftest.py freezes the objects of the collection, and no list has them then
    for each in gc.get_objects():
        function = each
        if type(each) is functools._lru_cache_wrapper:
            function = each.__wrapped__
        if isinstance(function, FunctionType) and function.__code__.co_filename in paths:
            code = function.__code__
            key = code.co_filename, code.co_qualname, code.co_firstlineno
            found.setdefault(key, []).append(each)
    return found


def _code_of(code: CodeType, function: tuple[str, int]) -> CodeType | None:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if (each.co_qualname, each.co_firstlineno) == function:
                return each
            if (deeper := _code_of(each, function)) is not None:
                return deeper
    return None


def read_results(path: Path, modules: dict[str, str]) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Return the last result of each mutant of the present modules."""
    lines = path.read_text().splitlines() if path.exists() else []
    results = [json.loads(line) for line in lines]
    return {
        (one["module"], one["line"], one["change"]): one
        for one in results
        if one["module"] in modules and one["source"] == digest(modules[one["module"]])
    }


def equivalent() -> list[dict[str, str]]:
    """Return the entries of ``tests/mutants.yml``: module, line, change, why."""
    if not EQUIVALENT.exists():
        return []
    entries: list[dict[str, str]] = yaml.safe_load(EQUIVALENT.read_text())["equivalent"]
    return entries


def summary(results: Sequence[dict[str, Any]], entries: Sequence[dict[str, str]]) -> str:
    """Return a table of the modules, the survivors, and the faults of the list of equivalents."""
    lines = [f"{'module':34} mutants killed equivalent survived  killed or equivalent"]
    survivors: list[str] = []
    places = {(entry["module"], entry["line"], entry["change"]): entry for entry in entries}
    used: set[tuple[str, str, str]] = set()
    for module in sorted({result["module"] for result in results}):
        counts: Counter[str] = Counter()
        for result in (each for each in results if each["module"] == module):
            key = module, result["text"], result["change"]
            outcome = result["outcome"]
            if key in places:
                used.add(key)
                if outcome == "killed":
                    survivors.append(f"{module}:{result['line']}: listed, but killed: {key[2]}")
                else:
                    outcome = "equivalent"
            counts[outcome] += 1
            if outcome == "survived":
                tests = f"{result['tests']} tests" if result["tests"] else "no test executes it"
                survivors.append(f"{module}:{result['line']}: {result['change']} ({tests})")
        total = counts.total()
        share = (total - counts["survived"]) / total
        lines.append(
            f"{module:34} {total:7} {counts['killed']:6} {counts['equivalent']:10} "
            f"{counts['survived']:8}  {share:.1%}"
        )
    modules = {result["module"] for result in results}
    survivors += [
        f"{EQUIVALENT}: no mutant is {key}"
        for key in places
        if key not in used and key[0] in modules
    ]
    return "\n".join([*lines, "", *survivors])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="+", help="paths below analysis/proofmark")
    parser.add_argument("--tests", nargs="+", default=["tests/unit"], help="files and folders")
    parser.add_argument("--tier", help="only the tests of a tier: test is that of make test")
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"), help="lines of JSON")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests per mutant")
    parser.add_argument("--again", action="store_true", help="repeat the mutants that survived")
    parser.add_argument("--only", help="lines of a module, for example 10,20-30")
    parser.add_argument("--count", action="store_true", help="only count the mutants")
    options = parser.parse_args(arguments)
    options.only = _line_numbers(options.only or "")
    options.results = options.results.absolute()
    top = str(Path.cwd())
    sys.path[:0] = [top, f"{top}/analysis"]
    os.environ["PYTHONPATH"] = f"{top}/analysis"
    sys.dont_write_bytecode = True
    files = sorted({path for name in options.modules for path in PACKAGE.glob(name)})
    modules = {str(path.relative_to(PACKAGE)): path.read_text() for path in files}
    if not modules:
        parser.error(f"found no module {options.modules} below {PACKAGE}")
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        trial = Trial(options, modules, scratch)
        if not options.count:
            _run(trial)
    if options.count:
        print(dict(Counter(mutant.module for mutant in trial.mutants)))
        return
    keys = {mutant.key for mutant in trial.mutants}
    done = read_results(options.results, modules)
    print(summary([result for key, result in done.items() if key in keys], equivalent()))


def _run(trial: Trial) -> None:
    """Run first the mutants of functions in a process with the collected tests, then the others."""

    def session() -> int:
        code = trial.pytest(trial.options.tests, Session(trial))
        left = [mutant.key for mutant in trial.mutants if mutant.function is None]
        state = [trial.coverage.seconds, trial.coverage.lines, left]
        (Path(trial.scratch) / "session").write_text(json.dumps(state))
        return code

    pid = os.fork()
    if pid == 0:
        code = BROKEN
        try:
            code = session()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if status:
        raise SystemExit(f"the session ended with {os.waitstatus_to_exitcode(status)}")
    seconds, lines, left = json.loads((Path(trial.scratch) / "session").read_text())
    trial.coverage.seconds, trial.coverage.lines = seconds, lines
    by_import = {tuple(key) for key in left}
    for mutant in trial.mutants:
        if mutant.key in by_import:
            mutant.function = None
    for mutant in trial.wanted(imported=True):
        trial.by_import(mutant)


def _line_numbers(text: str) -> set[int]:
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


if __name__ == "__main__":
    main()
