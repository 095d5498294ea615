"""The engine of a `text:` block: from lines to readings.

`TextRun` is one run of a program in a text, while it is read. `Rows` are its rows outside of
tables, and the lines elsewhere that confirm or refuse them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from proofmark.cases.reader.aborted import messages_in
from proofmark.cases.reader.builder import Notes, ProgramRun, ReadingBuilder, UnreadLines
from proofmark.cases.reader.command_line import StartedCommand
from proofmark.cases.reader.rules import (
    ClassifiedLine,
    Complaint,
    ContextRule,
    Hit,
    Keys,
    Role,
    RowRule,
    TableRule,
    TextSpec,
)
from proofmark.cases.reader.settings import of_command
from proofmark.cases.reader.spec import ReadSpec
from proofmark.cases.reader.table import OpenTable
from proofmark.cases.reader.values import Parameter, measured, shorten
from proofmark.common.message import NOTHING, Message

Match = re.Match[str]

_RESULTS: frozenset[Role] = frozenset({"row", "key"})

_NO_VALUE: frozenset[Role] = frozenset(
    {"required", "closes", "end", "rejected", "failed", "refuse", "complaint", "foreign"}
)
"""The roles of lines from which no value is read."""

_OPENERS: frozenset[Role] = frozenset({"fact", "context", "header", "row", "key"})


@dataclass
class Rows:
    """The rows of one rule in one run.

    Attributes:
        waiting: the readings of the last row, until its check is read.
        parameters: of the last row.
        confirmed: whether the check of the last row was read.
        seen: number of rows.
        counted: number of rows that the program reports.
    """

    rule: RowRule
    notes: Notes
    waiting: list[ReadingBuilder] = field(default_factory=list)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    confirmed: bool = False
    seen: int = 0
    counted: int | None = None

    def broken(self, problem: Message) -> None:
        """Add INVALID readings for a row that cannot be read."""
        for metric in self.rule.metrics:
            self.notes.unread(metric, problem)

    def finish(self) -> None:
        """Check the rows after the last line of the run."""
        self._settle()
        problems = self.notes.run.problems
        if self.rule.count and self.counted is None:
            problems.append(Message("reader-no-count"))
        elif self.counted not in (None, self.seen):
            counted = f"{self.counted}"
            problems.append(Message("reader-other-count", rows=self.seen, counted=counted))

    def _settle(self) -> None:
        """Add a problem to the last row if its check is missing."""
        if self.rule.confirm and not self.confirmed:
            for builder in self.waiting:
                builder.problems.append(Message("reader-unconfirmed"))
        self.waiting, self.confirmed = [], False

    def row(self, begins: Match) -> None:
        """Read a line that `begins` matches."""
        self._settle()
        self.seen += 1
        match = self.rule.match.fullmatch(begins.string)
        problems: list[Message] = []
        parameters = self.notes.typed(match.groupdict(), problems) if match else {}
        if not match or problems:
            self.broken(Message("reader-broken-line", line=shorten(begins.string)))
            return
        self.parameters = parameters
        for metric in self.rule.metrics:
            self.waiting.append(self.notes.measure(metric, match[metric], parameters, ()))

    def confirm(self, match: Match) -> None:
        """Record that the last row is confirmed; read the metrics of its first such line."""
        for metric in self.rule.confirmed if self.waiting and not self.confirmed else ():
            check = self.notes.measure(metric, match[metric], self.parameters, ())
            problem = Message("reader-check", metric=metric, word=shorten(match[metric]))
            for builder in self.waiting if check.problems else ():
                builder.problems.append(problem)
            self.waiting.append(check)
        self.confirmed = True

    def refuse(self, match: Match) -> None:
        """Make the last row INVALID."""
        self.confirmed = True  # its check was read; the result is no
        for builder in self.waiting:
            builder.problems.append(Message("reader-contains", words=shorten(match.string)))

    def count(self, match: Match) -> None:
        """Read a line with the number of rows."""
        # A longer number is cut to nine digits; no number of rows is equal to it.
        self.counted = int(match["count"][:9])


class TextRun:
    """The state of one run of a program while it is read."""

    def __init__(self, spec: ReadSpec, rules: TextSpec, request: StartedCommand | None) -> None:
        self._spec, self._program = spec, spec.of_program
        self._started = self._request = request
        self._next_request = request
        self._next_settings: dict[str, Parameter] = {}  # those of its command line
        self.mixed = NOTHING  # why the output is a mixture
        self.closed = False
        self._doubts: dict[Message, Iterable[str]] = {}  # problem → metrics of the figures
        self._closed_table: OpenTable | None = None
        self._benchmark_known = spec.benchmark is not None
        self._rules = rules
        self._notes = Notes(spec.types, spec.aside)
        self._seen: set[str] = set()  # names of `require`, patterns of `reject`
        self._banner = False  # whether the line `starts` was read
        self._measured = 0  # the number of readings before the header
        self._titled = False  # whether a context line names the next table
        self.foreign = ""  # another format or program that the output belongs to
        # Titles of `rows` and `keys` whose table is open; None is the banner.
        self._under: set[re.Pattern[str] | None] = {None}
        self.table: OpenTable | None = None
        self._strays = UnreadLines()
        self._rows = [Rows(rule, self._notes) for rule in rules.rows]

    def following(self) -> TextRun:
        """Return the next run in the same output."""
        run = TextRun(self._spec, self._rules, self._started)
        run._request = self._next_request
        run._notes.settings = self._next_settings
        run.foreign = self.foreign
        return run

    @property
    def only_facts(self) -> bool:
        """Whether nothing but facts was read, and no banner."""
        nothing = not (self._banner or self._notes.run.builders or self._seen or self.table)
        return nothing and bool(self._notes.run.facts)

    def ends_before(self, roles: Set[Role]) -> bool:
        """Return whether a line of `roles` is of the next run, which may be of another program."""
        if "foreign" in roles and self._notes.run.builders and not self.foreign:
            return True
        return self.closed and not roles.isdisjoint(_OPENERS)

    def ruled(self, line: ClassifiedLine) -> None:
        """Read a line that a rule matches."""
        self._strays.end()
        if line.starts:
            self._banner, self.foreign = True, ""
        start = len(self._notes.run.builders)
        if "context" in line.roles:
            self._measured = start
        for role, subject, match in line.hits:
            _ACTIONS[role](self, subject, match)
        if len(self._notes.run.builders) > start and line.hits[0].role in _RESULTS:
            self._notes.row_read(start)

    def setting(self, line: str) -> None:
        """Record the settings in a line of the header."""
        if not (self._banner or self._rules.untitled) or self._measured < len(
            self._notes.run.builders
        ):
            return
        if found := self._rules.settings_in(line, self._spec.no_setting):
            self._notes.settings = {**self._notes.settings, **found}

    def stray(self, line: str) -> None:
        """Add an INVALID reading for a line outside of any table that looks like a row."""
        for table, row in self._rules.strays:
            if row.fullmatch(line):
                problem = Message("reader-row-outside", line=shorten(line))
                if self._rules.once == "rows":
                    self.mixed = Message("mixed-row")
                    self._strays.end()  # each row has its own reading
                closed = self._closed_table
                if closed and closed.rule is table and closed.take_stray(line, problem):
                    self._strays.end()
                else:
                    metric = table.metric_of(line.split())
                    self._strays.line(problem, partial(self._notes.unread, metric), metric)

    def last(self, raw: str) -> None:
        """Read a last line without a line end. It is INVALID if it may be incomplete."""
        line = self._rules.classify(raw)
        if line.ruled and all(map(self._is_whole, line.hits)):
            self.ruled(line)
        elif self.table and not line.ruled and self.table.is_whole(raw):
            self.table.take(line.text)
        elif line.text:
            self._cut(line.text)

    def _is_whole(self, hit: Hit) -> bool:
        """Return whether a line is whole as far as its rule reads it, although its end is missing.

        It is if the rule takes no value from it, or if the rule ends with a fixed word.
        """
        row = (
            self._rules.rows[hit.subject]
            if isinstance(hit.subject, int) and hit.role == "row"
            else None
        )
        pattern, text = row.match if row else hit.match.re, hit.match.string
        ends = pattern.fullmatch(text) and not pattern.fullmatch(text[:-1])
        return hit.role in _NO_VALUE or bool(ends)

    def _cut(self, line: str) -> None:
        """Add INVALID readings for a line that may be incomplete."""
        problem = Message("reader-cut", line=shorten(line))
        if self.table:
            self.table.broken(line, problem)
        for rows in self._rows:
            if rows.rule.begins.fullmatch(line) and rows.rule.under in self._under:
                rows.broken(problem)
        for keys in self._rules.keys:
            match = keys.match.fullmatch(line) if keys.under in self._under else None
            if match and (quantity := keys.quantity(match)):
                self._notes.unread(quantity.metric, problem)

    def finish(self, problems: Iterable[Message]) -> ProgramRun:
        """Check the run as a whole and return it."""
        rules, run = self._rules, self._notes.run
        self._end_table()
        run.problems += problems
        if rules.starts and not (self._banner or rules.untitled):
            run.problems.append(Message("reader-no-banner"))
        missing = [name for name in rules.require if name not in self._seen]
        missing = [] if missing and self._has_requested_rows() else missing
        run.problems += [Message("reader-no-line", line=repr(name)) for name in missing]
        for rows in self._rows:
            rows.finish()
        self._check_doubts()
        if self.foreign:
            run.problems.clear()
            run.builders.clear()
            problem = Message("reader-foreign", program=self.foreign)
            self._notes.unread(rules.first_metric, problem)
            return run
        self._select()
        run.settle(self._program.facts(run.facts))
        if run.builders:
            metrics = {builder.metric for builder in run.builders} | run.unset
            for metric in rules.expected:
                if metric not in metrics:
                    self._notes.unread(metric, Message("reader-no-metric", metric=metric))
        self._check_sizes()
        if rules.once == "rows":
            self._check_distinct()
        for builder in run.builders if rules.needs else ():
            known = {*run.facts, *builder.parameters}
            if builder.benchmark or self._benchmark_known:
                known.add("benchmark")
            if not builder.problems:
                lacking = (name for name in rules.needs if name not in known)
                builder.problems += [Message("reader-no-parameter", name=name) for name in lacking]
        return run

    def _has_requested_rows(self) -> bool:
        """Return whether all requested rows prove the end instead of the lines of `require`."""
        if not (self._rules.command and self._request):
            return False
        return self._program.has_requested_rows(self._request, self._notes.run.builders)

    def _select(self) -> None:
        """Leave out the metrics that the command line does not select; add the missing ones."""
        run = self._notes.run
        if not (self._rules.command and self._request and run.builders):
            return
        selected = self._program.selected_metrics(self._request)
        if selected is None:
            return
        run.builders = [each for each in run.builders if each.metric in selected]
        found = {each.metric for each in run.builders}
        for metric in self._spec.metrics:
            if metric in selected - found:
                self._notes.unread(metric, Message("reader-no-metric", metric=metric))

    def _check_sizes(self) -> None:
        run, sized = self._notes.run, self._program.sized
        if not (self._rules.command and sized):
            return
        if self._request:
            if problem := self._program.missing_sizes(self._request, run.builders):
                run.problems.append(problem)
        else:
            run.unproven = any(sized in each.parameters for each in run.builders)

    def _check_distinct(self) -> None:
        known = set()
        for builder in self._notes.run.builders:
            key = (builder.metric, builder.benchmark, *builder.parameters.items())
            if builder.value is not None and key in known:
                self.mixed = self.mixed or Message("mixed-values", metric=builder.metric)
            known.add(key)

    def _check_doubts(self) -> None:
        """Apply the complaints whose figures are known only at the end of the run."""
        run = self._notes.run
        if self._notes.doubts:
            self._notes.doubt_last_row()
        for problem, metrics in self._doubts.items():
            concerned = [builder for builder in run.builders if builder.metric in metrics]
            for builder in concerned:
                builder.problems.append(problem)
            if not concerned:
                run.problems.append(problem)

    def _command(self, _: None, match: Match) -> None:
        words = match["command"].split()
        found = of_command(words, self._spec.no_setting)
        request = self._started or StartedCommand(words)
        if self._notes.run.builders:
            self._next_request, self._next_settings = request, found
        else:
            self._notes.settings = {**self._notes.settings, **found}
            self._request = request
            self._notes.exact |= self._program.exact_sizes(StartedCommand(words))

    def _complaint(self, rule: Complaint, match: Match) -> None:
        notes = self._notes
        if rule.unless in notes.sticky or rule.unless in notes.run.facts:
            return
        problem = Message("reader-contains", words=shorten(match.string))
        if rule.metrics:
            self._doubts[problem] = rule.metrics
        elif problem not in notes.doubts:
            notes.doubts.append(problem)

    def _close(self, _: None, match: Match) -> None:
        self.closed = True

    def _fact(self, _: None, match: Match) -> None:
        run, groups = self._notes.run, match.groupdict()
        run.node = groups.get("node") or run.node
        for name, value in self._notes.typed(groups, run.problems).items():
            if run.facts.setdefault(name, value) != value:
                two = {"first": run.facts[name], "second": value}
                run.problems.append(Message("reader-two-values", name=name, **two))

    def _context(self, rule: ContextRule, match: Match) -> None:
        self._end_table()
        self._closed_table = None
        self._titled = self._titled or rule.titles
        notes, groups = self._notes, match.groupdict()
        for name in rule.resets:
            notes.sticky.pop(name, None)
        notes.benchmark = groups.get("benchmark") or notes.benchmark
        notes.sticky |= notes.typed(groups, notes.run.problems)

    def _header(self, table: TableRule, match: Match) -> None:
        self._end_table()
        if self._closed_table and self._rules.once == "rows":
            self.mixed = Message("mixed-headers")
        if not self._titled and any(rule.titles for rule in self._rules.context):
            self._notes.benchmark = None
        self._titled = False
        titles = match.groupdict().get("titles") or match.string
        self.table = OpenTable(table, titles, self._notes)
        self.table.above = match.string

    def _ended(self, _: None, match: Match) -> None:
        self._end_table()

    def _end_table(self) -> None:
        if self.table:
            self.table.close()
            self._closed_table = self.table
        self.table = None

    def _title(self, title: re.Pattern[str], match: Match) -> None:
        self._under.add(title)

    def _untitle(self, title: re.Pattern[str], match: Match) -> None:
        self._under.discard(title)

    def _is_foreign(self, name: str, match: Match) -> None:
        self.foreign = self.foreign or name

    def _key(self, keys: Keys, match: Match) -> None:
        quantity = keys.quantity(match) if keys.under in self._under else None
        if quantity is None:
            return
        if keys.not_run and keys.not_run.fullmatch(match["value"].strip()):
            self._notes.run.unset.add(quantity.metric)
            return
        if keys.least_seconds is None:
            problems: list[Message] = []
            parameters = self._notes.typed(match.groupdict(), problems)
            self._notes.measure(quantity.metric, match["value"].strip(), parameters, problems)
            return
        seconds, problem = measured(match["value"].strip())
        if seconds is not None and seconds < keys.least_seconds:
            times = {"seconds": f"{seconds:g}", "least": f"{keys.least_seconds:g}"}
            problem = Message("reader-short", metric=quantity.metric, **times)
        if problem:
            self._doubts[problem] = [quantity.metric]

    def _required(self, name: str, _: Match) -> None:
        if name in self._seen and self._rules.once:
            self.mixed = Message("mixed-lines", line=repr(name))
        self._seen.add(name)

    def _row(self, number: int, match: Match) -> None:
        if self._rows[number].rule.under in self._under:
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
            problem = Message("reader-contains", words=shorten(match.string))
            self._notes.run.problems.append(problem)

    def _failed(self, _: None, match: Match) -> None:
        self._end_table()
        notes, groups = self._notes, match.groupdict()
        notes.benchmark = groups.get("benchmark") or notes.benchmark
        notes.sticky.clear()
        parameters = notes.typed(groups, [])
        problem = Message("reader-contains", words=shorten(match.string))
        notes.unread(self._rules.first_metric, problem, parameters)


_ACTIONS: Mapping[Role, Callable[[TextRun, Any, Match], None]] = {
    "fact": TextRun._fact,
    "context": TextRun._context,
    "header": TextRun._header,
    "end": TextRun._ended,
    "row": TextRun._row,
    "confirm": TextRun._confirm,
    "refuse": TextRun._refuse,
    "count": TextRun._count,
    "key": TextRun._key,
    "required": TextRun._required,
    "rejected": TextRun._rejected,
    "failed": TextRun._failed,
    "command": TextRun._command,
    "complaint": TextRun._complaint,
    "closes": TextRun._close,
    "title": TextRun._title,
    "untitle": TextRun._untitle,
    "foreign": TextRun._is_foreign,
}


def read_text(
    spec: ReadSpec, rules: TextSpec, text: str, request: StartedCommand | None
) -> list[ProgramRun]:
    """Return the program runs in `text`, one `ProgramRun` each."""
    *lines, cut = text.split("\n")
    current = TextRun(spec, rules, request)
    runs = [current]
    begins = [0]  # the first line of each run
    started = False
    classify, ruled = rules.classify, rules.gate.fullmatch
    for number, raw in enumerate(lines):
        if current.table and not ruled(row := raw.rstrip()):
            current.table.take(row)  # rows differ: a cache would not help
            if rules.settings and row.lstrip()[:1].isalpha():
                current.setting(row)
            continue
        line = classify(raw)
        if not line.ruled:
            if line.text and rules.settings:
                current.setting(line.text)
            if line.text and rules.strays:
                current.stray(line.text)
            continue
        if line.starts or current.ends_before(line.roles):
            if current.only_facts and line.starts:
                pass  # facts stand before the banner of this run
            elif started or current.closed or current.foreign:
                current = current.following()
                runs.append(current)
                begins.append(number)
            elif line.starts:
                begins[-1] = number  # what stands before the first banner is not of the program
            started = True
        current.ruled(line)
        if rules.settings:
            current.setting(line.text)
    current.last(cut)
    ends = [*begins[1:], len(lines) + 1]
    lines = [*lines, cut] if (words := messages_in(text)) else []
    parts = (lines[first:end] for first, end in zip(begins, ends, strict=True))
    finished = [
        run.finish(messages_in("\n".join(part)) if words else ())
        for run, part in zip(runs, parts, strict=True)
    ]
    for problem in dict.fromkeys(run.mixed for run in runs if run.mixed):
        for each in finished:
            each.problems.append(Message("reader-mixed", problem=problem))
    return finished
