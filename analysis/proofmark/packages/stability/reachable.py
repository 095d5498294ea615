"""Items of the stability phase that no machine can meet in the time of the contract. Pure."""

from __future__ import annotations

from math import ceil

from proofmark.common.text import factor
from proofmark.packages.stability.sampling import CASE, mean_time_interval
from proofmark.site.contract_document import ContractItem, StabilityTerms

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
