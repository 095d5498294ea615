"""The programs whose outputs are read, and the models of the key `read:` of a case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Annotated, Literal

from pydantic import Discriminator, Tag, ValidationError, model_validator
from pydantic.json_schema import SkipJsonSchema

from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.command_line import StartedCommand
from proofmark.cases.reader.rules import Agreement, Keys, Pattern, Quantity, TextSpec, check_known
from proofmark.cases.reader.values import Parameter
from proofmark.common.message import NOTHING, Message
from proofmark.common.plugins import Plugins
from proofmark.common.strict_model import StrictModel


@dataclass(frozen=True)
class Item:
    """One measurement in a document.

    Attributes:
        values: metric → its place in the document, for a reason, and the value at this place.
        parameters: parameter → the value at its place; None: the document does not have it.
        settings: the options of the measurement.
        problems: why its figures are INVALID.
    """

    values: Mapping[str, tuple[str, object]]
    parameters: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    problems: Sequence[str] = ()


class Program:
    """A program without documents of JSON, which requests no rows. Each method accepts any input.

    Attributes:
        units: metric → unit of its documents; empty: it prints none.
        keys: the keys that each document has. `adopt` recognises a document by them.
        stated: the parameters that each document has.
        numbered: the parameter that numbers the readings of one metric, from 0, if a document has
            no numbers.
        refused: lines beside a document that make its figures INVALID.
        sized: the parameter of rows whose sizes prove the end of an output.
    """

    units: Mapping[str, str] = {}
    keys: tuple[str, ...] = ()
    stated: frozenset[str] = frozenset()
    numbered: str = ""
    refused: tuple[re.Pattern[str], ...] = ()
    sized: str = ""

    def rules(self) -> ReadSpec:
        """Return how its output is read.

        Raises:
            ValueError: it only reads the documents of a case that has rules of its own.
        """
        raise ValueError("the program has no rules of its own")

    def is_own(self, document: object) -> bool:
        """Return whether the program printed `document`."""
        return all(truth(at(document, key)) for key in self.keys)

    def is_partial(self, document: object) -> bool:
        """Return whether `document` is a report of a program that still runs."""
        return False

    def problems(self, document: object) -> Iterator[str]:
        """Yield why all figures of `document` are INVALID."""
        yield from ()

    def items(self, document: object) -> Iterator[Item]:
        """Yield the measurements in `document`."""
        yield from ()

    def exact_sizes(self, request: StartedCommand) -> Mapping[str, int]:
        """Return the sizes in a command line, by parameter. The program may print them rounded."""
        return {}

    def has_requested_rows(
        self, request: StartedCommand, builders: Iterable[ReadingBuilder]
    ) -> bool:
        """Return whether the readings are all that was requested: the program has ended."""
        return False

    def selected_metrics(self, request: StartedCommand) -> set[str] | None:
        """Return the metrics that `request` selects; None: all."""
        return None

    def facts(self, printed: Mapping[str, Parameter]) -> Mapping[str, Parameter]:
        """Return the values of a run that count instead of what it printed, or that it lacks."""
        return {}

    def missing_sizes(self, request: StartedCommand, builders: Sequence[ReadingBuilder]) -> Message:
        """Return which requested size has no row; `NOTHING` if all have one."""
        return NOTHING


PROGRAMS = Plugins(Program, "proofmark.cases.reader.programs", "a case", "read.program")
"""The programs that rules alone cannot read."""


def at(value: object, *keys: str) -> object:
    """Return the value below `keys` in a document; None if it has none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def truth(value: object) -> bool:
    """Return whether a document has a value: 0 is one; null, false and an empty value are none."""
    return value is not None and value is not False and value not in ("", [], {})


def first_of(*values: object) -> object:
    """Return the first of `values` that is not empty, else the last one."""
    return next((value for value in values if truth(value)), values[-1])


def words_of(value: object) -> str:
    """Return a text of a document; an empty text for another value."""
    return value if isinstance(value, str) else ""


ParameterType = Literal["int", "real", "word", "lower", "size", "suffixed"]

_NO_RULES = ("context.resets", "needs", "complaints.unless")
"""The keys of `text` that name parameters and find none."""
DOCUMENT = re.compile(r"\{.*")
"""The first line of a JSON document."""
_FIELDS = ("benchmark", "node")  # groups that are fields of a `Reading`, not parameters


class ReadSpec(StrictModel):
    """How the output of a case's program is read.

    Attributes:
        finds: the name of a result in the output, for the reason if there is no result.
        benchmark: the name of the benchmark, if the program does not print it.
        parameters: every parameter that a reading may have → its type: `int`; `real`; `word`;
            `lower`, a word in lower case; `size`, as in `16 MiB` or `262144 bytes`, in bytes;
            `suffixed`, as in `16m`, powers of 1024, or as in `16MiB`, powers of 1000 (as fio and
            its manual, `kb_base`), in bytes.
        aside: numbers of the output that only `agree` and the program use → `int` or `suffixed` if
            it is exact, `printed` if its last digit is rounded.
        no_setting: options and names in `settings` that other rules read, or that change no figure.
        agree: numbers of one row that determine each other.
        program: what rules cannot state of the program: its documents of JSON, and the rows that
            its command line requests. `fio`, `ior`, `mdtest`, `npb`, `osu`, or that of a
            package.
        text: rules for printed text.
    """

    finds: str
    benchmark: str | None = None
    parameters: Mapping[str, ParameterType] = {}
    aside: Mapping[str, Literal["int", "printed", "suffixed"]] = {}
    no_setting: tuple[str, ...] = ()
    agree: tuple[Agreement, ...] = ()
    program: str | None = None
    text: TextSpec | None = None

    @model_validator(mode="after")
    def _names(self) -> ReadSpec:
        if self.program is not None:
            check_known([self.program], PROGRAMS.names(), "program", "program")
        if not self.text and not self.of_program.units:
            raise ValueError("text is required, or a program that prints JSON")
        words = {*self.types, *_FIELDS}
        if self.text:
            for where, names in self.text.groups():
                check_known(names, words, f"text.{where}", "parameter of this block")
            for where, names in self.text.metric_names():
                check_known(names, self.metrics, where, "metric of this block")
        agreed = [rule.metric for rule in self.agree]
        check_known(agreed, self.metrics, "agree", "metric of this block")
        numbers: set[str] = set()
        for rule in self.agree:
            for each in rule.expressions:
                numbers.update(each.names)
        check_known(sorted(numbers), {*self.metrics, *self.types}, "agree", "number of this block")
        return self

    @cached_property
    def of_program(self) -> Program:
        """What `program` names; without it a program that needs rules only."""
        return PROGRAMS.get(self.program)() if self.program else Program()

    def lacking(self) -> Iterator[tuple[str, str]]:
        """Yield each key of a proof that the rules lack, with what is accepted."""
        text = self.text
        if text and text.starts is None:
            yield "read.text.starts", "the banner of the program; untitled if some print none"
        if text and not (text.require or text.no_end or self.of_program.sized):
            yield "read.text.require", "a line of every whole output"

    @cached_property
    def begins(self) -> tuple[re.Pattern[str], ...]:
        """The lines that begin an output, or the results of one that can lack a banner."""
        found = list(self.text.begins()) if self.text else []
        return (*found, DOCUMENT) if self.of_program.units else tuple(found)

    @cached_property
    def stated(self) -> frozenset[str]:
        """The parameters that the rules find in each whole output."""
        groups = self.text.groups() if self.text else ()
        found: set[str] = set()
        for where, names in groups:
            if where not in _NO_RULES:
                found.update(names)
        if stated := self.of_program.stated:
            found = found & stated if self.text else {*stated}
        return frozenset(found & self.parameters.keys())

    @cached_property
    def types(self) -> Mapping[str, str]:
        """The type of each parameter and of each number of `aside`."""
        return {**self.parameters, **self.aside}

    @cached_property
    def metrics(self) -> Mapping[str, str]:
        """Metric → unit of all metrics that the rules can read, in the order of the rules."""
        pairs = list(self.text.yields()) if self.text else []
        pairs += self.of_program.units.items()
        units: dict[str, str] = {}
        for metric, unit in pairs:
            if units.setdefault(metric, unit) != unit:
                raise ValueError(f"metric {metric!r} in two units: {units[metric]!r}, {unit!r}")
        return units


class FormerRules(ReadSpec):
    """The rules of a program in a case of an earlier release: a run has a copy of its cases."""


class OwnKeys(StrictModel):
    """Lines of the form key and value; `match` has the groups `key` and `value`.

    Attributes:
        match: the line.
        metrics: key → its quantity.
    """

    match: Pattern
    metrics: Mapping[str, Quantity]


class OwnText(StrictModel):
    """The lines of the output. Each pattern must match a whole line without its trailing blanks.

    Attributes:
        starts: the banner, the line that begins a run of the program. A run without it is INVALID.
        untitled: some versions of the program print no line `starts`.
        facts: lines anywhere in a run whose groups are parameters of the whole run.
        keys: the lines with the values.
        require: name for the reason → a line that every run must have (an end marker, a validation
            line). Without it all readings of the run are INVALID.
        reject: lines that make all readings of a run INVALID.
    """

    starts: Pattern | None = None
    untitled: bool = False
    facts: tuple[Pattern, ...] = ()
    keys: tuple[OwnKeys, ...]
    require: Mapping[str, Pattern] = {}
    reject: tuple[Pattern, ...] = ()


class OwnRules(StrictModel):
    """The output of a site's own benchmark is read by these rules.

    Attributes:
        finds: the name of a result in the output, for the reason if there is no result.
        benchmark: the name of the benchmark; the id of the case without it.
        parameters: every parameter that a reading may have → its type: `int`; `real`; `word`;
            `lower`, a word in lower case; `size`, as in `16 MiB` or `262144 bytes`, in bytes;
            `suffixed`, as in `16m`, powers of 1024, or as in `16MiB`, powers of 1000, in bytes.
    """

    finds: str
    benchmark: str | None = None
    parameters: Mapping[str, ParameterType] = {}
    text: OwnText

    @model_validator(mode="after")
    def _readable(self) -> OwnRules:
        try:
            _ = self.rules
        except ValidationError as error:
            raise ValueError("; ".join(each["msg"] for each in error.errors())) from None
        return self

    @cached_property
    def rules(self) -> ReadSpec:
        """The same rules for the reader."""
        return ReadSpec.model_validate(self.model_dump(exclude_unset=True))


class OfProgram(StrictModel):
    """The output is read by the reader of a program.

    Attributes:
        program: a module of `cases/reader/programs`, or a program of an installed package.
    """

    program: str

    @model_validator(mode="after")
    def _has_rules(self) -> OfProgram:
        check_known([self.program], PROGRAMS.names(), "program", "program")
        rules_of(self.program)
        return self


class SameAs(StrictModel):
    """The output is read as that of another case.

    Attributes:
        same_as: the other case.
        own_line: a line that only outputs of this case have. `adopt` recognises the case by it, and
            never proposes a case without one.
    """

    same_as: str
    own_line: Pattern | None = None


@cache
def rules_of(program: str) -> ReadSpec:
    """Return the rules of a program.

    Raises:
        ValueError: see `Program.rules`.
    """
    return PROGRAMS.get(program)().rules()


def _kind(block: object) -> str:
    if not isinstance(block, Mapping):
        return type(block).__name__
    if "same_as" in block:
        return "SameAs"
    if "program" in block and "finds" not in block:
        return "OfProgram"
    text = block.get("text")
    lines = text.get("keys") if isinstance(text, Mapping) else ()
    parts: list[tuple[object, type[StrictModel], type[StrictModel]]]
    parts = [(block, ReadSpec, OwnRules), (text, TextSpec, OwnText)]
    parts += [(each, Keys, OwnKeys) for each in (lines if isinstance(lines, Sequence) else ())]
    for part, former, own in parts:
        names = {*part} if isinstance(part, Mapping) else set()
        if names & former.model_fields.keys() - own.model_fields.keys():
            return "FormerRules"
    return "OwnRules"


ReadBlock = Annotated[
    Annotated[OfProgram, Tag("OfProgram")]
    | Annotated[SameAs, Tag("SameAs")]
    | Annotated[OwnRules, Tag("OwnRules")]
    | SkipJsonSchema[Annotated[FormerRules, Tag("FormerRules")]],
    Discriminator(_kind),
]
"""The value of `read:`. One of the models is chosen before validation, so that a mistake is
reported for one model only."""
