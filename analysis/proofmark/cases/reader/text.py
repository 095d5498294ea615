"""The engine of a `text:` block: from lines to readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from proofmark.cases.reader.builder import Notes, ProgramRun, UnreadLines
from proofmark.cases.reader.rows import Match, Rows
from proofmark.cases.reader.spec import ReadSpec
from proofmark.cases.reader.spec_table import Table
from proofmark.cases.reader.spec_text import Context, Keys, Line, Role, TextSpec
from proofmark.cases.reader.table import OpenTable
from proofmark.cases.reader.values import shorten

# Messages of launchers and resource managers that ended a run. No benchmark prints them.
_ABORTED = (
    "MPI_ABORT was invoked",
    "noticed that process rank",
    "exited with non-zero status",
    "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "slurmstepd: error: ***",
    "srun: error:",
    "Segmentation fault",
)


def read_text(spec: ReadSpec, rules: TextSpec, text: str) -> list[ProgramRun]:
    """Return the program runs in `text`, one `ProgramRun` each."""
    *lines, cut = text.split("\n")
    current = _TextRun(spec, rules)
    runs = [current]
    started = False
    classify, ruled = rules.classify, rules.gate.fullmatch
    for raw in lines:
        if current.table and not ruled(row := raw.rstrip()):
            current.table.take(row)  # rows differ: a cache would not help
            continue
        line = classify(raw)
        if not line.ruled:
            if rules.stray_tables and line.text:
                current.stray(line.text)
            continue
        if line.starts:
            if started:
                current = _TextRun(spec, rules)
                runs.append(current)
            started = True
        current.ruled(line)
    current.cut(cut.rstrip())
    aborted = [f"the output contains {words!r}" for words in _ABORTED if words in text]
    return [run.finish(aborted) for run in runs]


class _TextRun:
    """The state of one run of a program while it is read."""

    def __init__(self, spec: ReadSpec, rules: TextSpec) -> None:
        self._benchmark_known = spec.benchmark is not None
        self._rules = rules
        self._notes = Notes(spec.parameters)
        self._seen: set[str] = set()  # names of `require`, patterns of `reject`
        self.table: OpenTable | None = None
        self._strays = UnreadLines()
        self._rows = [Rows(rule, self._notes) for rule in rules.rows]

    def ruled(self, line: Line) -> None:
        """Read a line that a rule matches."""
        self._strays.end()
        for role, subject, match in line.hits:
            _ACTIONS[role](self, subject, match)

    def stray(self, line: str) -> None:
        """Add an INVALID reading for a line outside of any table that looks like a row."""
        for table in self._rules.stray_tables:
            if table.stray and table.stray.fullmatch(line):
                problem = f"a row outside of any table: {shorten(line)}"
                self._strays.line(problem, partial(self._notes.unread, table.first_metric))

    def cut(self, line: str) -> None:
        """Add INVALID readings for a last line without a line end: it may be incomplete."""
        if not line:
            return
        problem = f"the last line is cut: {shorten(line)}"
        if self.table:
            self.table.broken(line, problem)
        for rows in self._rows:
            if rows.rule.begins.fullmatch(line):
                rows.broken(problem)
        for keys in self._rules.keys:
            if (match := keys.match.fullmatch(line)) and (quantity := keys.quantity(match)):
                self._notes.unread(quantity.metric, problem)

    def finish(self, problems: Iterable[str]) -> ProgramRun:
        """Check the run as a whole and return it."""
        rules, run = self._rules, self._notes.run
        self._end_table()
        run.problems += problems
        missing = [name for name in rules.require if name not in self._seen]
        run.problems += [f"no line {name!r}: truncated, or a check failed" for name in missing]
        for rows in self._rows:
            rows.finish()
        if run.builders:
            metrics = {builder.metric for builder in run.builders}
            for metric in rules.expected:
                if metric not in metrics:
                    self._notes.unread(metric, f"no value of {metric} found")
        for builder in run.builders if rules.needs else ():
            known = {*run.facts, *builder.parameters}
            if builder.benchmark or self._benchmark_known:
                known.add("benchmark")
            if not builder.problems:
                builder.problems += [f"no line has its {n}" for n in rules.needs if n not in known]
        return run

    def _fact(self, _: None, match: Match) -> None:
        run, groups = self._notes.run, match.groupdict()
        run.node = groups.get("node") or run.node
        for name, value in self._notes.typed(groups, run.problems).items():
            if run.facts.setdefault(name, value) != value:
                run.problems.append(f"two values of {name}: {run.facts[name]} and {value}")

    def _context(self, rule: Context, match: Match) -> None:
        self._end_table()
        notes, groups = self._notes, match.groupdict()
        for name in rule.resets:
            notes.sticky.pop(name, None)
        notes.benchmark = groups.get("benchmark") or notes.benchmark
        notes.sticky |= notes.typed(groups, notes.run.problems)

    def _header(self, table: Table, match: Match) -> None:
        self._end_table()
        titles = match.groupdict().get("titles") or match.string
        self.table = OpenTable(table, titles, self._notes)

    def _ended(self, _: None, match: Match) -> None:
        self._end_table()

    def _end_table(self) -> None:
        if self.table:
            self.table.close()
        self.table = None

    def _key(self, keys: Keys, match: Match) -> None:
        if quantity := keys.quantity(match):
            problems: list[str] = []
            parameters = self._notes.typed(match.groupdict(), problems)
            self._notes.measure(quantity.metric, match["value"].strip(), parameters, problems)

    def _required(self, name: str, _: Match) -> None:
        self._seen.add(name)

    def _row(self, number: int, match: Match) -> None:
        self._rows[number].row(match)

    def _confirm(self, number: int, match: Match) -> None:
        self._rows[number].confirm(match)

    def _refuse(self, number: int, match: Match) -> None:
        self._rows[number].refuse(match)

    def _count(self, number: int, match: Match) -> None:
        self._rows[number].count(match)

    def _rejected(self, _: None, match: Match) -> None:
        pattern = match.re.pattern
        if pattern not in self._seen:  # thousands of ranks may print the same line
            self._seen.add(pattern)
            self._notes.run.problems.append(f"the output contains {shorten(match.string)}")

    def _failed(self, _: None, match: Match) -> None:
        self._end_table()
        notes, groups = self._notes, match.groupdict()
        notes.benchmark = groups.get("benchmark") or notes.benchmark
        notes.sticky.clear()
        parameters = notes.typed(groups, [])
        problem = f"the output contains {shorten(match.string)}"
        notes.unread(self._rules.first_metric, problem, parameters)


_ACTIONS: Mapping[Role, Callable[[_TextRun, Any, Match], None]] = {
    "fact": _TextRun._fact,
    "context": _TextRun._context,
    "header": _TextRun._header,
    "end": _TextRun._ended,
    "row": _TextRun._row,
    "confirm": _TextRun._confirm,
    "refuse": _TextRun._refuse,
    "count": _TextRun._count,
    "key": _TextRun._key,
    "required": _TextRun._required,
    "rejected": _TextRun._rejected,
    "failed": _TextRun._failed,
}
