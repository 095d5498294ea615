"""The models of a case's `read:` block: the rules by which the program's output is read.

`engine` applies them. A block has rules for text (`text:`), a program that reads its documents of
JSON (`program:`), or both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Discriminator, Tag, model_validator

from proofmark.cases.reader.program import PROGRAMS, Program
from proofmark.cases.reader.spec_text import TextSpec
from proofmark.cases.reader.spec_types import Agreement, Pattern, check_known
from proofmark.common.strict_model import StrictModel

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
            yield "read.text.require", "a line of every whole output, no_end, or a program"

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


class SameAs(StrictModel):
    """The output is read by the rules of another case.

    Attributes:
        same_as: the other case.
        own_line: a line that only outputs of this case have. `adopt` recognises the case by it, and
            never proposes a case without one.
    """

    same_as: str
    own_line: Pattern | None = None


def _kind(block: object) -> str:
    given = block if isinstance(block, Mapping) else getattr(block, "model_fields_set", ())
    return "SameAs" if "same_as" in given else "ReadSpec"


ReadBlock = Annotated[
    Annotated[ReadSpec, Tag("ReadSpec")] | Annotated[SameAs, Tag("SameAs")], Discriminator(_kind)
]
"""The value of `read:`. One of the two models is chosen before validation, so that a mistake is
reported for one model only."""
