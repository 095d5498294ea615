"""The rules for hardware errors: how many events of a counter a sound node may have."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from pydantic import Field

from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.site.hardware_limits import shown_gbit
from proofmark.site.node.facts import NodeFacts

DEVIATIONS = 5
"""Standard deviations of a Poisson number that are accepted above a bit error ratio."""
FASTEST_GT = 32.0
"""GT/s of a lane up to PCI Express 5.0. Later ones correct errors, and have another ratio."""
_PORT = re.compile(r"infiniband/(?P<adapter>[^/]+)/ports/(?P<port>\d+)/")


class ErrorRule(StrictModel):
    """How many events of one counter a sound node may have; see ``error_rules.yml``."""

    counters: tuple[str, ...]
    allowed: float = Field(ge=0)
    hours: float | None = Field(default=None, gt=0)
    bit_error_ratio: float | None = Field(default=None, gt=0, lt=1)
    falls: bool = False
    before: bool = False
    source: str = Field(min_length=1)

    def limit(self, hours: float, bits_per_s: float) -> float:
        """Return the largest number of events in `hours` on a link of `bits_per_s`."""
        if self.hours:
            return self.allowed * max(1.0, hours / self.hours)
        expected = (self.bit_error_ratio or 0.0) * bits_per_s * hours * 3600
        return max(self.allowed, expected + DEVIATIONS * math.sqrt(expected))


@lru_cache(maxsize=1)
def error_rules() -> tuple[ErrorRule, ...]:
    """Return the rules, in the order in which they are tried."""
    return shipped_data("proofmark.site.node", "error_rules.yml", tuple[ErrorRule, ...])


@lru_cache(maxsize=4096)
def rule_of(counter: str) -> ErrorRule | None:
    """Return the rule of a counter; None if its events are information."""
    return next(
        (
            rule
            for rule in error_rules()
            if any(fnmatchcase(counter, pattern) for pattern in rule.counters)
        ),
        None,
    )


def bits_per_s(counter: str, facts: NodeFacts, values: Mapping[str, str]) -> float:
    """Return the bits/s of the link of a counter; 0 if they are not known.

    Args:
        values: the counters of the node, with the state of its PCIe links.
    """
    kind, _, rest = counter.partition("/")
    device = rest.partition("/")[0]
    if kind == "net":
        return next((1e6 * (nic.megabits or 0) for nic in facts.nics if nic.name == device), 0.0)
    if kind == "pcie":
        speed = re.match(
            r"(\d{1,3}(?:\.\d)?) GT/s", values.get(f"pcie/{device}/current_link_speed", "")
        )
        width = values.get(f"pcie/{device}/current_link_width", "")
        known = speed is not None and width.isdecimal() and float(speed[1]) <= FASTEST_GT
        return 1e9 * float(speed[1]) * int(width) if speed and known else 0.0
    port = _PORT.match(counter)
    rates = (
        shown_gbit(each.rate or "")
        for each in facts.ports
        if port and (each.adapter, each.port) == (port["adapter"], port["port"])
    )
    return 1e9 * (next(rates, None) or 0.0)
