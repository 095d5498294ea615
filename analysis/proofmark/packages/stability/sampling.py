"""Confidence of a mean time between interrupts, and the risks of both parties of a limit. Pure.

Interrupts are taken to come with a constant rate, one independent of the other, and jobs to fail
independently. A fixed-duration test that accepts up to c failures then has an operating
characteristic of Poisson (MIL-HDBK-781A, fixed-duration test plans); a share of n jobs has one of
the binomial distribution (sampling by attributes: ISO 2859-2, MIL-STD-105).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf

from proofmark.common.message import Message
from proofmark.common.text import factor, percent
from proofmark.packages.stability.stability_plan import jobs_a_day, sizes_of, test_of
from proofmark.packages.stability.terms import StabilityTerms
from proofmark.plan.plan import Plan
from proofmark.site.contract_document import ContractItem

CONFIDENCE = 0.9
"""Of the two-sided interval of a mean time."""
CASE = "stability"
_EDGE = 1e-9
"""A limit that a whole number of failures meets exactly is met."""


def mean_time_interval(hours: float, failures: int) -> tuple[float, float]:
    """Return the `CONFIDENCE` interval of a mean time between failures, in hours.

    Chi-square limits of a time-terminated test: 2 T / χ²(1 - t; 2 r + 2) and 2 T / χ²(t; 2 r)
    with the tail t (MIL-HDBK-781A; Epstein 1954). Without a failure the greater one is infinite.

    Args:
        hours: T, the duration of the test.
        failures: r, their number.
    """
    from scipy.special import chdtri

    tail = (1 - CONFIDENCE) / 2
    high = 2 * hours / float(chdtri(2 * failures, 1 - tail)) if failures else inf
    return 2 * hours / float(chdtri(2 * failures + 2, tail)), high


@dataclass(frozen=True)
class Risks:
    """The risks of the rule of an item.

    Attributes:
        most: the number of failures with which it is still met; negative: it cannot be met.
        jobs: the number of jobs of which that many may fail; 0 if not a share of jobs is limited.
        good, bad: the numbers of failures that are expected of a good and of a bad machine.
        producer: the probability that a good machine is refused.
        consumer: the probability that a bad machine is accepted.
    """

    number: str
    most: int
    jobs: int
    good: float
    bad: float
    producer: float
    consumer: float

    @property
    def message(self) -> Message:
        """The risks in words."""
        about: dict[str, str | int] = {
            "number": self.number,
            "most": self.most,
            "good": _number(self.good),
            "bad": _number(self.bad),
            "producer": _percent(self.producer),
            "consumer": _percent(self.consumer),
        }
        if self.most < 0:
            return Message("stability-impossible", number=self.number)
        if self.jobs:
            return Message("stability-risk-jobs", jobs=self.jobs, **about)
        return Message("stability-risk", **about)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _percent(share: float) -> str:
    return "< 0.01" if share < 1e-4 else "> 99.99" if share > 1 - 1e-4 else f"{100 * share:.3g}"


def risks_of(item: ContractItem, hours: float, jobs: int, good: float, bad: float) -> Risks | None:
    """Return the risks of an item. None: the item does not limit failures.

    Args:
        hours: the duration of the run.
        jobs: the number of its jobs, expected or counted.
        good: the failure rate of a good machine, as a multiple of the rate that the item allows.
        bad: that of a bad machine.
    """
    if item.case != CASE or item.value is None or hours <= 0:
        return None
    low, high = item.at_least, item.at_most
    if item.metric == "jobs_finished" and low is not None and jobs:
        allowed = max(0.0, jobs * (1 - low * item.value / 100))
        most = floor(allowed + _EDGE)
        return _of_jobs(item.number, most, jobs, good * allowed, bad * allowed)
    if item.metric in ("mtbi", "mtbi_low") and low is not None:
        allowed = hours / (low * item.value)
        most = floor(allowed + _EDGE) if allowed >= 1 else -1
        if item.metric == "mtbi_low":
            most = _most_with_low(hours, low * item.value)
    elif item.metric in ("interrupts", "jobs_failed", "nodes_lost") and high is not None:
        allowed = high * item.value
        most = floor(allowed + _EDGE)
    else:
        return None
    return _of_time(item.number, most, good * allowed, bad * allowed)


def ahead(plan: Plan, items: Sequence[ContractItem]) -> Iterator[Message]:
    """Yield what is known of a stability run before it: its load, its jobs, and its risks."""
    test = test_of(plan)
    assert test is not None
    sizes = [f"{size}" for size in reversed(sizes_of(test))]
    yield Message(
        "stability-ahead",
        hours=f"{test.hours:g}",
        load=percent(test.load),
        nodes=len(test.hosts),
        jobs=round(jobs_a_day(test)),
        node_hours=f"{plan.totals.node_hours / test.hours * 24:.4g}",
        sizes=", ".join(sizes),
        causes=", ".join(test.restart_on) or "–",
    )
    found = [risks_of(item, test.hours, plan.totals.jobs, test.good, test.bad) for item in items]
    yield from (each.message for each in found if each)
    if not any(found):
        yield Message("stability-no-item")


def _most_with_low(hours: float, wanted: float) -> int:
    """Return the most failures with which the least of the interval is `wanted`; -1: none."""
    found = -1
    while found < ceil(hours / wanted) and mean_time_interval(hours, found + 1)[0] >= wanted:
        found += 1
    return found


def _of_time(number: str, most: int, good: float, bad: float) -> Risks:
    """Return the risks if at most `most` failures are accepted, of `good` or `bad` expected."""
    from scipy.special import pdtr

    accepted = [float(pdtr(most, mean)) if most >= 0 else 0.0 for mean in (good, bad)]
    return Risks(number, most, 0, good, bad, 1 - accepted[0], accepted[1])


def _of_jobs(number: str, most: int, jobs: int, good: float, bad: float) -> Risks:
    """Return the same if each of `jobs` fails with the probability of the expected failures."""
    from scipy.special import bdtr

    shares = [min(1.0, mean / jobs) for mean in (good, bad)]
    accepted = [1.0 if most >= jobs else float(bdtr(most, jobs, share)) for share in shares]
    return Risks(number, most, jobs, good, bad, 1 - accepted[0], accepted[1])


HOURS = 24.0
"""Of a day."""


def best_reached(metric: str, terms: StabilityTerms) -> tuple[float, str] | None:
    """Return the figure of a machine without any interrupt, with its unit.

    None: the contract states no time, or a machine can reach any figure of the metric.
    """
    shares = {"jobs_finished": 100.0, "availability": 100.0, "load": 100 * terms.load}
    if metric in shares:
        return shares[metric], "%"
    if terms.days is None:
        return None
    hours = HOURS * terms.days
    times = {"mtbi": hours, "hours": hours, "mtbi_low": mean_time_interval(hours, 0)[0]}
    return (times[metric], "h") if metric in times else None


def unreachable(item: ContractItem, terms: StabilityTerms) -> tuple[str, str] | None:
    """Return what an item asks for and what can be met, if no machine can meet it; else None."""
    best = best_reached(item.metric, terms) if item.case == CASE else None
    if best is None or item.value is None or item.at_least is None:
        return None
    most, unit = best
    times = factor(item.unit or unit, unit)
    if times is None:  # the check of the item names the unit
        return None
    asked = item.at_least * item.value * times
    if asked <= most:
        return None
    found = f"{item.metric} of at least {asked:g} {unit}"
    if unit == "%":
        return found, f"at most {most:g} %: a machine without any interrupt reaches that"
    assert terms.days is not None  # else no time can be reached
    needed = ceil(terms.days * asked / most)
    return found, (
        f"at most {most:.4g} {unit}: a machine without any interrupt reaches that in "
        f"{terms.days:g} days; {needed} days are enough: stability.days"
    )
