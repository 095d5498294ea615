"""The metrics of a case, and the limits with which its results are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from proofmark.cases.vocabulary import (
    MEASURED,
    PART_AXES,
    RAIL,
    TOGETHER,
    Braces,
    Name,
    Parameters,
    Slug,
    Text,
)
from proofmark.common.errors import KeyMistake
from proofmark.common.shared_models import StrictModel

HardwareRule = Literal[
    "rpeak_nominal", "rpeak_avx", "memory_bandwidth", "link_bandwidth", "link_latency"
]
"""A limit that is computed from the hardware of a node."""
TypicalRule = Literal["typical_hpl", "typical_triad", "typical_bandwidth"]
"""What healthy hardware of this kind reaches elsewhere, by the tables of ``site/data``."""
Rule = HardwareRule | TypicalRule
Kind = Literal["contract", "expected", "floor"]
"""``contract`` is of the buyer. ``expected`` is what this hardware reaches elsewhere. Below a
``floor`` something is broken: a figure that misses it is FAIL, one that meets it is UNJUDGED."""


UNIT_OF: Mapping[Rule, str] = {
    "rpeak_nominal": "GFlop/s",
    "rpeak_avx": "GFlop/s",
    "memory_bandwidth": "GB/s",
    "link_bandwidth": "GB/s",
    "link_latency": "us",
    "typical_hpl": "GFlop/s",
    "typical_triad": "GB/s",
    "typical_bandwidth": "GB/s",
}
"""The unit of the value of each rule."""
TYPICAL: tuple[Rule, ...] = get_args(TypicalRule)


UNIVERSAL = "universal"
"""The bound of a metric for which no fact of the hardware gives a closer one: that of its unit."""


NOISE = 0.05
"""The standard deviation of one repeat, as a part of the value, of a metric that states none."""
MATERIAL, MATERIAL_LATENCY = 0.1, 0.2
"""The least change, as a part of a value, that matters: of most metrics, and of a latency."""
LATENCY_UNITS = ("us", "usec")


class Metric(StrictModel):
    """A quantity that a case measures, in the unit that its program prints.

    Attributes:
        bound: the largest value that is physically possible if higher is better, else the smallest.
            It is in the base unit of ``unit`` (byte/s, flop/s, s; 1 for 100 %): a number, an
            expression over the ceilings of the nodes and the values of the step, or `UNIVERSAL`.
        type: ``digits`` for a result of computation: it is not a speed, and each run of the same
            program prints the same digits. ``extreme`` for a value such as the longest of many
            times: like nodes differ much in it, so that they are not compared. ``one-way`` for the
            rate of a pair of nodes whose data flow only from the first node to the second.
        judged_with: the labels with which a figure shows how good the machine is. A figure with
            other values is compared only with floors, and with a limit whose ``where`` names them.
        noise: the standard deviation of one repeat, as a part of the value. It judges a figure that
            was measured once and has no like nodes and no baseline.
    """

    unit: str
    better: Literal["higher", "lower"]
    bound: Annotated[float, Field(ge=0)] | Braces | Literal["universal"]
    what: Text
    type: Literal["usual", "digits", "extreme", "one-way"] = "usual"
    judged_with: Parameters = {}
    noise: Annotated[float, Field(ge=0, lt=1)] = NOISE

    @property
    def same_digits(self) -> bool:
        """Whether each run of the same program prints the same digits."""
        return self.type == "digits"

    @property
    def peers(self) -> bool:
        """Whether like nodes have like values."""
        return self.type != "extreme"

    @property
    def one_way(self) -> bool:
        """Whether the data flow only from the first node to the second."""
        return self.type == "one-way"

    @property
    def material_change(self) -> float:
        """The least change that matters, as a part of the value."""
        return MATERIAL_LATENCY if self.unit in LATENCY_UNITS else MATERIAL


class Against(StrictModel):
    """A result of the same run that is the reference of another result.

    Attributes:
        metric: of the reference result.
        case: of the reference result; None is the case of the judged result.
        where: parameters of the reference result.
        times: a factor for the reference value.
    """

    metric: Name
    case: Slug | None = None
    where: Parameters = {}
    times: float | Braces = 1.0


class Reference(StrictModel):
    """A limit with which a result is compared.

    Exactly one of ``value``, ``against`` and ``rule`` gives the reference value.

    Attributes:
        kind: what it may say of a figure (`Kind`).
        source: the document that the reference comes from.
        where: parameters of the results that are compared.
        system: the partition that the reference is valid for; None is any.
        mode: the firmware mode that the reference is valid for; None is any.
        value: a number in ``unit``.
        unit: of ``value``; the default is that of the metric.
        against: another result of the same run.
        rule: a value that is computed from the hardware of the node, or is typical of it. A typical
            value has its own tolerance.
        all_cores: whether it is only for results with one thread on each core of the node.
        at_least: the smallest accepted ratio measured ÷ reference.
        at_most: the largest accepted ratio measured ÷ reference.
    """

    metric: Name
    kind: Kind
    source: Text
    where: Parameters = {}
    system: str | None = None
    mode: Slug | None = None
    value: float | None = Field(default=None, gt=0)
    unit: str | None = None
    against: Against | None = None
    rule: Rule | None = None
    all_cores: bool = False
    at_least: float | None = Field(default=None, gt=0)
    at_most: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if sum(each is not None for each in (self.value, self.against, self.rule)) != 1:
            raise ValueError("exactly one of value, against and rule")
        if self.unit is not None and self.value is None:
            raise KeyMistake("only accepted together with value", "unit")
        if self.rule in TYPICAL:
            if self.kind != "expected" or self.bounded:
                raise KeyMistake("only accepted if kind is expected, without bounds", "rule")
            return self
        if not self.bounded:
            raise ValueError("at_least, at_most or both")
        if self.kind == "expected" and self.system is None:
            raise KeyMistake("a system if kind is expected and rule is no typical value", "system")
        return self

    @property
    def bounded(self) -> bool:
        """Whether it has a bound of its own."""
        return self.at_least is not None or self.at_most is not None

    def accepts(self, traits: Mapping[str, object], judged_with: Mapping[str, object]) -> bool:
        """Return whether figures with these traits and this `Metric.judged_with` are compared.

        Pairs that measured together may share links, and a part of a node is no node. Only a
        reference whose ``where`` has `MEASURED`, or the part, is for their figures. The rate of a
        link is that of each rail, and that of all rails follows from it.
        """
        needed = {} if self.kind == "floor" else judged_with
        if traits.get(MEASURED) == TOGETHER and MEASURED not in self.where:
            return False
        parts = {*PART_AXES} & traits.keys() - self.where.keys()
        if parts and not (parts == {RAIL} and self.rule == "link_bandwidth"):
            return False
        return all(
            name in self.where or traits.get(name, value) == value for name, value in needed.items()
        )
