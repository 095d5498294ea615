"""The contract of a site, ``contract.yml`` beside its hosts."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from hashlib import sha256
from math import exp, inf, log
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from proofmark.cases.reference import Reference
from proofmark.cases.vocabulary import Slug, Text
from proofmark.common.errors import KeyMistake
from proofmark.common.grouping import flat
from proofmark.common.shared_models import StrictModel, with_package_keys
from proofmark.common.text import measure
from proofmark.common.yaml_models import load
from proofmark.site.ceilings import NOMINAL
from proofmark.site.hardware_limits import Positive

MOST_OF_A_RULE = 2.0
"""The largest share of a nominal or agreed value: both directions of a link."""
MOST_OF_A_FIGURE = 10.0
"""The largest quotient of two figures of a metric that differ in no number: with another kernel,
placement or layout."""
NOMINAL_RULES = ("memory_bandwidth", "rpeak_nominal")
"""No figure exceeds what they give by more than `NOMINAL`."""
CONTRACT = "contract.yml"
"""The file of the contract, beside the hosts of a site."""
Statistic = Literal["median", "best", "worst"]
"""Which repeat of a figure the limit is for."""
Phase = Literal["functionality", "performance", "stability"]
"""A phase of an acceptance."""
ItemNumber = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
NotNegative = Annotated[float, Field(ge=0)]


class Scatter(StrictModel):
    """The largest scatter of the repeats of a figure.

    Attributes:
        cov_percent: the coefficient of variation, the standard deviation ÷ the mean, in percent.
        runs: the number of repeats that it needs.
    """

    cov_percent: Annotated[float, Field(gt=0, lt=100)]
    runs: Annotated[int, Field(ge=3)]


class ItemTerms(StrictModel):
    """What each item of a contract has.

    Attributes:
        number: of the item in the document, unique in it.
        text: of the item.
        phase: of the acceptance that it belongs to; of an item with ``check`` or ``witnessed`` the
            default is ``functionality``.
        severity: a ``minor`` item that is missed is stated and fails no acceptance.
        system: the partition that it is for; without it, all partitions.
        nodes: the share of the measured nodes, or pairs of nodes, that must meet it.
    """

    number: ItemNumber
    text: Text
    phase: Phase = "performance"
    severity: Literal["mandatory", "minor"] = "mandatory"
    system: Slug | None = None
    nodes: Annotated[float, Field(gt=0, le=1)] = 1.0

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        bounds = {key: getattr(self, key, None) or 0.0 for key in ("at_least", "at_most")}
        for key, bound in bounds.items():
            if bound > (most := getattr(self, "most", MOST_OF_A_RULE)):
                raise KeyMistake(f"a share, at most {most:g}; 95 % is 0.95", key)
        if 0 < bounds["at_most"] < bounds["at_least"]:
            raise KeyMistake(f"at least {bounds['at_least']:g}, as at_least", "at_most")
        return self


class ContractItem(Reference, ItemTerms):
    """One item of a contract: a limit for one case, and the rule by which the parties apply it.

    Its ``source`` is the number of the item, if it states none.

    Attributes:
        case: the id of the case whose figures it limits.
        of: the repeat that is compared: the median of them, the best or the worst. The best is the
            furthest from the limit, on the accepted side.
        runs: the number of repeats that this needs.
        scatter: the largest scatter of the repeats.
    """

    # A contract has one kind of limit: its items do not state it.
    kind: ClassVar[Literal["contract"]] = "contract"  # type: ignore[misc]

    case: Slug
    of: Statistic = "median"
    runs: Annotated[int, Field(ge=1)] = 1
    scatter: Scatter | None = None

    @model_validator(mode="before")
    @classmethod
    def _source_is_the_item(cls, given: Any) -> Any:
        if isinstance(given, dict) and "number" in given:
            return {"source": f"contract item {given['number']}", **given}
        return given

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        if self.rule in NOMINAL_RULES and (self.at_least or 0) > NOMINAL:
            raise KeyMistake(f"at most {NOMINAL:g}, the largest share of {self.rule}", "at_least")
        if self.of != "median" and self.at_least is not None and self.at_most is not None:
            raise KeyMistake("with at_least and at_most only median", "of")
        return self

    @property
    def most(self) -> float:
        """The largest share. A figure of another size can be any multiple of its reference."""
        if self.against is None or isinstance(self.against.times, str):
            return MOST_OF_A_RULE
        numbers = any(not isinstance(each, str) for each in self.against.where.values())
        same = (self.against.metric, self.against.case or self.case) == (self.metric, self.case)
        return MOST_OF_A_FIGURE if same and not numbers else inf

    @property
    def runs_needed(self) -> int:
        """The number of repeats that its rules need."""
        return max(self.runs, self.scatter.runs if self.scatter else 1)


CheckName = Literal[
    "nodes",
    "processor",
    "sockets",
    "cores",
    "memory",
    "modules",
    "module-speed",
    "ecc",
    "bios",
    "firmware",
    "microcode",
    "kernel",
    "os",
    "drivers",
    "settings",
    "links",
    "ports",
    "clock",
    "mounts",
    "accelerators",
    "states",
]
"""What nodes report about themselves, and ``states`` what their scheduler says about them
(`proofmark.judge.node_checks`)."""
NUMBERS = ("nodes", "sockets", "cores", "memory", "modules", "ports", "clock", "accelerators")
"""The checks that compare a number."""
SEVERAL = ("firmware", "settings", "drivers", "links", "mounts")
"""The checks that compare several values."""


class OtherItem(ItemTerms):
    """An item that limits no figure of a case itself: no case measures it, in any mode."""

    case: ClassVar[str] = ""
    where: ClassVar[Mapping[str, Any]] = {}
    mode: ClassVar[None] = None
    runs_needed: ClassVar[int] = 1


class FunctionalItem(OtherItem):
    """An item that compares no figure."""

    phase: Phase = "functionality"


class CheckItem(FunctionalItem):
    """A functional item of a contract: what each node must report about itself.

    Attributes:
        check: what is compared. ``memory`` is in GiB, ``clock`` in s by chrony, others are counts.
        only: the one value of the check that is compared: the folder of a mount, whose whole size
            in GiB it is, a driver, or another name of `proofmark.judge.node_checks`.
        equal: whether each node must report what most nodes report.
        value: what each node must report.
        at_least: the least number.
        at_most: the largest number.
    """

    check: CheckName
    only: Text | None = None
    equal: Literal[True] | None = None
    value: float | Text | None = None
    at_least: NotNegative | None = None
    at_most: NotNegative | None = None
    most: ClassVar[float] = inf

    @model_validator(mode="after")
    def _has_a_rule(self) -> Self:
        bounds = self.at_least is not None or self.at_most is not None
        given = [bool(self.equal), self.value is not None, bounds]
        if sum(given) != 1:
            raise ValueError("one of equal, value, and at_least or at_most is needed")
        numbers = f"{', '.join(NUMBERS)}, mounts with only"
        if bounds and not self.is_number:
            raise KeyMistake(f"at_least and at_most with {numbers}", "check")
        if self.value is not None and isinstance(self.value, str) is self.is_number:
            raise KeyMistake(f"a number for {numbers}; for others a text", "value")
        if self.only is not None and self.check not in SEVERAL:
            raise KeyMistake(f"accepted with the check {', '.join(SEVERAL)}", "only")
        if self.check == "nodes" and self.equal:
            raise KeyMistake("not accepted with the number of nodes", "equal")
        return self

    @property
    def is_number(self) -> bool:
        """Whether it compares a number."""
        return self.check in NUMBERS or (self.check == "mounts" and self.only is not None)

    @property
    def metric(self) -> str:
        """What is compared."""
        return f"{self.check} {self.only}" if self.only else self.check


class WitnessedItem(FunctionalItem):
    """An item that a person sees: a delivery, a fail-over, the power, a document.

    Attributes:
        witnessed: what must be seen. A buyer or witness of the signers signs that it was.
    """

    witnessed: Text

    @property
    def metric(self) -> str:
        """What must be seen."""
        return self.witnessed


class AgreedNumber(StrictModel):
    """A number of a contract, and the accepted shares of it: keys of `Reference` too."""

    value: Positive
    unit: Text
    at_least: Positive | None = None
    at_most: Positive | None = None


class DerivedItem(OtherItem, AgreedNumber):
    """An item that follows from others: from the worst value that each of them shows.

    It states a value, and at least one accepted share of it.

    Attributes:
        derived: how. ``throughput`` is the sum of `weights` ÷ the sum of the times.
        items: the numbers of the items, each of which limits figures.
        weights: of each item, such as its number of jobs; without them, 1.
    """

    derived: Literal["sum", "geometric-mean", "throughput"]
    items: Annotated[list[ItemNumber], Field(min_length=1)]
    weights: list[Positive] = []

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("at_least or at_most is needed")
        if len({*self.items}) < len(self.items):
            raise KeyMistake("each item once, with its share in weights", "items")
        if self.weights and len(self.weights) != len(self.items):
            raise KeyMistake("one weight for each of items", "weights")
        if self.derived == "throughput" and not self.unit.endswith(("/s", "/h")):
            raise KeyMistake("a number per second or hour: jobs/h", "unit")
        return self

    @property
    def metric(self) -> str:
        """What is computed."""
        return f"{self.derived}: {', '.join(self.items)}"

    def of_values(self, values: Sequence[float]) -> float:
        """Return what follows from `values`, in base units and one for each of `items`."""
        weights = self.weights or [1.0] * len(values)
        if self.derived == "throughput":
            hour = 3600.0 if self.unit.endswith("/h") else 1.0
            return hour * sum(weights) / sum(values)
        pairs, size = [*zip(weights, values, strict=True)], measure(self.unit)[1]
        if self.derived == "sum":
            return sum(weight * value for weight, value in pairs) / size
        return exp(sum(weight * log(value) for weight, value in pairs) / sum(weights)) / size

    @property
    def of_unit(self) -> str:
        """The base unit of its items."""
        return measure("s" if self.derived == "throughput" else self.unit)[0]


def _kind(item: object) -> str:
    known = item if isinstance(item, Mapping) else getattr(item, "model_fields_set", ())
    for key in map(str, known):
        for near in get_close_matches(key, OF_KEYS, 1, _NEAR):  # the model refuses a slip
            return OF_KEYS[near]
    return ContractItem.__name__


_NEAR = 0.8
"""The likeness of two keys of which one is a slip of the other (`difflib`)."""


_KEY = re.compile(
    r"""(?P<name>[^\s*?!,"#]+)[ \t]+
    ((namespaces|valid-after|valid-before)="[^"]*"(,(valid-after|valid-before)="[^"]*")*[ \t]+)?
    (ssh|sk-ssh|ecdsa|sk-ecdsa)-[\w@.-]+[ \t]+(?P<key>[A-Za-z0-9+/]+={0,2})([ \t].*)?""",
    re.ASCII | re.VERBOSE,
)


def _one_key(line: str) -> str:
    if _KEY.fullmatch(line.strip()) is None:
        accepted = "one name and one public key; no pattern, list of names or cert-authority"
        raise ValueError(accepted)
    return line


Signer = Annotated[Text, AfterValidator(_one_key)]
"""A line of ALLOWED SIGNERS (ssh-keygen(1)) for one key of one party."""
Role = Literal["buyer", "supplier", "witness", "party"]
OF_KEYS = {"check": "CheckItem", "witnessed": "WitnessedItem", "derived": "DerivedItem"}
"""The keys that tell the kinds of items apart; a limit of figures has none of them."""
Item = ContractItem | CheckItem | WitnessedItem | DerivedItem
"""An item of a contract: a limit of figures, or a functional, witnessed or derived one."""
ReadItem = Annotated[
    Annotated[ContractItem, Tag("ContractItem")]
    | Annotated[CheckItem, Tag("CheckItem")]
    | Annotated[WitnessedItem, Tag("WitnessedItem")]
    | Annotated[DerivedItem, Tag("DerivedItem")],
    Discriminator(_kind),
]


@with_package_keys("contract.yml")
class Contract(StrictModel):
    """The document that the parties of an acceptance signed.

    Attributes:
        parties: the role of each party (``buyer``) and its name.
        signers: the keys of those who sign and waive, by their role. A list states no roles.
    """

    title: Text
    parties: Annotated[dict[Text, Text], Field(min_length=1)]
    signers: dict[Role, list[Signer]] = {}
    items: Annotated[list[ReadItem], Field(min_length=1)]

    @property
    def limits(self) -> dict[int, ContractItem]:
        """The items that limit figures, by their places among all items."""
        places = enumerate(self.items)
        return {place: item for place, item in places if isinstance(item, ContractItem)}

    @property
    def checks(self) -> list[CheckItem]:
        """The functional items."""
        return [item for item in self.items if isinstance(item, CheckItem)]

    @property
    def keys(self) -> dict[str, set[str]]:
        """The fingerprints of the keys of each signer, as ssh-keygen prints them."""
        found: dict[str, set[str]] = {}
        for match in filter(None, map(_KEY.fullmatch, map(str.strip, self.lines))):
            digest = sha256(b64decode(match["key"])).digest()
            fingerprint = f"SHA256:{b64encode(digest).decode().rstrip('=')}"
            found.setdefault(match["name"], set()).add(fingerprint)
        return found

    @property
    def lines(self) -> list[str]:
        """The lines of all signers."""
        return flat(self.signers.values())

    @property
    def who_sees(self) -> list[set[str]]:
        """Groups of signers: one of each must sign that it saw an item. The supplier is in none.

        Without roles each signer must.
        """
        signers = (*self.signers.get("buyer", ()), *self.signers.get("witness", ()))
        if "party" in self.signers:
            return [{name} for name in self.keys]
        return [{line.split()[0] for line in signers}]

    def who_waives(self, *, both: bool) -> list[set[str]]:
        """Return groups of signers: one of each must sign a waiver. The buyer gives up a right.

        Args:
            both: whether the supplier must sign, too. Without a buyer each signer must.
        """
        roles: tuple[Role, ...] = ("buyer", "supplier") if both else ("buyer",)
        groups = [{line.split()[0] for line in self.signers.get(role, ())} for role in roles]
        return [each for each in groups if each] if groups[0] else [{name} for name in self.keys]

    @field_validator("signers", mode="before")
    @classmethod
    def _without_roles(cls, given: Any) -> Any:
        return {"party": given} if isinstance(given, list) else given

    @model_validator(mode="after")
    def _one_signer_for_each_key(self) -> Self:
        every = Counter(key for keys in self.keys.values() for key in keys)
        if twice := [key for key, count in every.items() if count > 1]:
            raise KeyMistake(f"one name for each key: {', '.join(twice)} has two names", "signers")
        return self

    @model_validator(mode="after")
    def _numbers_are_unique(self) -> Self:
        seen: set[str] = set()
        limits = {item.number: item for item in self.limits.values()}
        for place, item in enumerate(self.items):
            if item.number in seen:
                accepted = f"each number once: the number {item.number} is there twice"
                raise KeyMistake(accepted, "items", place, "number")
            seen.add(item.number)
            if not isinstance(item, DerivedItem):
                continue
            if not limits.keys() >= {*item.items}:
                accepted = f"items that limit figures: {', '.join(sorted(limits)) or 'none'}"
                raise KeyMistake(accepted, "items", place, "items")
            units = {unit for of in item.items if (unit := limits[of].unit)}
            if any(measure(unit)[0] != item.of_unit for unit in units):
                raise KeyMistake(f"a unit of its items: {', '.join(units)}", "items", place, "unit")
        return self


def read_contract(inventory: Path) -> Contract | None:
    """Return the contract in the folder of a site; None if the site has none.

    Raises:
        BadInput: the file cannot be read or is wrong.
    """
    path = inventory / CONTRACT
    return load(path, Contract) if path.exists() else None
