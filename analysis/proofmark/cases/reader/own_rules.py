"""The key `read:` of a case: a program of the kit, or the short rules of a site's own benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, cached_property, partial
from importlib import import_module
from typing import Annotated

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from proofmark.cases.reader.programs import PROGRAMS
from proofmark.cases.reader.reader import ParameterType, Reader, TextRun, line, words
from proofmark.common.errors import KeyMistake, bad_input, nearest
from proofmark.common.grouping import flat
from proofmark.common.plugins import installed
from proofmark.common.shared_models import StrictModel


def _pattern(value: object) -> re.Pattern[str]:
    if isinstance(value, re.Pattern):
        return value
    if not isinstance(value, str):
        raise ValueError("a regular expression in quotes")
    try:
        return line(value)
    except re.error as error:
        raise ValueError(f"a regular expression: {error}") from None


Pattern = Annotated[
    re.Pattern[str],
    PlainValidator(_pattern),
    PlainSerializer(lambda pattern: pattern.pattern, return_type=str),
    WithJsonSchema({"type": "string", "format": "regex"}),
]


def _check_known(names: Iterable[str], known: Iterable[str], where: str, kind: str) -> None:
    """Raise ValueError for the first of `names` that is not one of `known`."""
    words = set(known)
    for name in names:
        if name not in words:
            found = f"{name!r} is not a {kind}{nearest(name, words)}"
            raise KeyMistake(f"{', '.join(sorted(words))}: {found}", where)


class OwnRules(StrictModel):
    """The output of a site's own benchmark is read by these rules.

    Each pattern must match a whole line without its trailing blanks.

    Attributes:
        finds: the name of a result in the output, for the reason if there is no result.
        benchmark: the name of the benchmark; the id of the case without it.
        parameters: every parameter that a reading may have → its type: `int`; `real`; `word`;
            `lower`, a word in lower case; `size`, as in `16 MiB` or `262144 bytes`, in bytes;
            `suffixed`, as in `16m`, powers of 1024, or as in `16MiB`, powers of 1000, in bytes.
        starts: the banner, the line that begins a run of the program. A run without it is INVALID.
        untitled: some versions of the program print no line `starts`.
        facts: lines anywhere in a run whose groups are parameters of the whole run.
        keys: the lines with the values, each with the groups `key` and `value` → the metric of each
            key. Its unit is that of the metric.
        require: name for the reason → a line that every run must have (an end marker, a validation
            line). Without it all readings of the run are INVALID.
        reject: lines that make all readings of a run INVALID.
    """

    finds: str
    benchmark: str | None = None
    parameters: Mapping[str, ParameterType] = {}
    starts: Pattern | None = None
    untitled: bool = False
    facts: tuple[Pattern, ...] = ()
    keys: Annotated[Mapping[str, Mapping[str, str]], Field(min_length=1)]
    require: Mapping[str, Pattern] = {}
    reject: tuple[Pattern, ...] = ()

    @model_validator(mode="after")
    def _readable(self) -> OwnRules:
        parameters, kind = {*self.parameters, "benchmark", "node"}, "parameter of this block"
        for fact in self.facts:
            _check_known(fact.groupindex, parameters, "facts", kind)
        for match, _ in self._lines:
            if missing := {"key", "value"} - match.groupindex.keys():
                raise ValueError(f"keys: {match.pattern!r} has no group {min(missing)!r}")
            _check_known(match.groupindex, {*parameters, "key", "value"}, "keys", kind)
        try:
            _ = self.reader({}).is_mark
        except re.error as error:
            raise ValueError(f"the patterns cannot be joined to one: {error}") from None
        return self

    @cached_property
    def _lines(self) -> list[tuple[re.Pattern[str], Mapping[str, str]]]:
        """The patterns of the lines with values, each with the metrics by their keys."""
        return [(_pattern(match), metrics) for match, metrics in self.keys.items()]

    def lacking(self) -> Iterable[tuple[str, str]]:
        """Yield each key of a proof that the rules lack, with what is accepted."""
        if self.starts is None:
            yield "read.starts", "the banner of the program; untitled if some print none"
        if not self.require:
            yield "read.require", "a line of every whole output"

    def reader(self, units: Mapping[str, str]) -> Reader:
        """Return the reader of the output; `units` are those of the metrics of the case."""
        found = flat(metrics.values() for _, metrics in self._lines)
        return Reader(
            finds=self.finds,
            benchmark=self.benchmark,
            parameters=self.parameters,
            # A metric that the case lacks has no unit: the check of the case names it.
            units={metric: units.get(metric, "") for metric in found},
            read=partial(_read_keys, self._lines),
            starts=self.starts,
            untitled=self.untitled,
            facts=self.facts,
            require=self.require,
            reject=self.reject,
        )


def _read_keys(every: Iterable[tuple[re.Pattern[str], Mapping[str, str]]], run: TextRun) -> None:
    for text in run.lines():
        for pattern, metrics in every:
            match = pattern.fullmatch(text)
            if match and (metric := metrics.get(match["key"].strip())):
                run.key(match, metric)


class OfProgram(StrictModel):
    """The output is read by the reader of a program.

    Attributes:
        program: a module of `cases/reader/programs`, or a program of an installed package.
    """

    program: str

    @model_validator(mode="after")
    def _has_rules(self) -> OfProgram:
        _check_known([self.program], program_names(), "program", "program")
        return self


class SameAs(StrictModel):
    """The output is read as that of another case.

    Attributes:
        same_as: the other case.
        own_line: a line that only outputs of this case have. It shows of which case an output is; a
            case without one is never proposed.
    """

    same_as: str
    own_line: Pattern | None = None


class FormerRules(StrictModel):
    """The rules of a program in a case of an earlier release: a run has a copy of its cases.

    Attributes:
        finds: the name of a result. The reader of the program has the same name.
        parameters: those that a reading had.
        agree: the rules by which the numbers of a row were compared; none without them.
    """

    model_config = ConfigDict(extra="ignore")

    finds: str
    parameters: Mapping[str, str] = {}
    agree: tuple[object, ...] = ()

    @model_validator(mode="after")
    def _of_program(self) -> FormerRules:
        former_reader(self.finds, frozenset())
        return self

    def reader_with(self, metrics: Iterable[str]) -> Reader:
        """Return the reader of the program, with the metrics of the case."""
        known = frozenset((*metrics, *self.parameters, *(["agree"] if self.agree else [])))
        return former_reader(self.finds, known)


_GROUP = "proofmark.cases.reader.programs"


def program_names() -> list[str]:
    """Return the programs of the kit and of installed packages."""
    return sorted({*PROGRAMS, *installed(_GROUP)})


@cache
def reader_of(program: str) -> Reader:
    """Return the reader of a program.

    Raises:
        BadInput: there is no such program, or a package has something else of this name.
    """
    if program in PROGRAMS:
        module, _, name = PROGRAMS[program].partition(":")
        found = getattr(import_module(f"{_GROUP}.{module}"), name)
    else:
        points = installed(_GROUP)
        if program not in points:
            known = program_names()
            problem = f"{program!r}{nearest(program, known)}"
            raise bad_input("a case", "read.program", problem, ", ".join(known))
        found = points[program].load()
    if not isinstance(found, Reader):
        raise bad_input("a case", "read.program", f"{program!r}: {found!r}", "a Reader")
    return found


@cache
def former_reader(finds: str, known: frozenset[str]) -> Reader:
    """Return the reader of a program without what a former case did not have.

    Args:
        known: the metrics and parameters of the case, and `agree` if it compared numbers.

    Raises:
        ValueError: no program has such a result.
    """
    for found in map(reader_of, program_names()):
        if found.finds == finds:
            return replace(
                found,
                units={name: unit for name, unit in found.units.items() if name in known},
                parameters={name: kind for name, kind in found.parameters.items() if name in known},
                agree=found.agree if "agree" in known else (),
                expects=tuple(name for name in found.expects if name in known),
                needs=tuple(name for name in found.needs if name in {*known, "benchmark"}),
            )
    raise ValueError(f"finds: {finds!r} is a result of no program of the kit")


_FORMER = frozenset(
    words(
        "aside no_setting agree program no_end foreign closes once command complaints context"
        " settings tables rows fails expects needs under not_run until least_seconds"
    )
)
"""The keys of the rules of programs in the cases of earlier releases."""


def _kind(block: object) -> str:
    if not isinstance(block, Mapping):
        return type(block).__name__
    if "same_as" in block:
        return "SameAs"
    if "program" in block and "finds" not in block:
        return "OfProgram"
    text = block.get("text")
    parts = [block, text, *(text.get("keys") or () if isinstance(text, Mapping) else ())]
    names = (name for part in parts if isinstance(part, Mapping) for name in part)
    return "OwnRules" if _FORMER.isdisjoint(names) else "FormerRules"


ReadBlock = Annotated[
    Annotated[OfProgram, Tag("OfProgram")]
    | Annotated[SameAs, Tag("SameAs")]
    | Annotated[OwnRules, Tag("OwnRules")]
    | SkipJsonSchema[Annotated[FormerRules, Tag("FormerRules")]],
    Discriminator(_kind),
]
"""The value of `read:`. One of the models is chosen before validation, so that a mistake is
reported for one model only."""
