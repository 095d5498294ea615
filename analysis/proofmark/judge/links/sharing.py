"""How flows share the links of a fabric: max-min fairness."""

from __future__ import annotations

import numpy as np

from proofmark.judge.links.paths import NONE
from proofmark.records.columns import Floats, Numbers

_EQUAL = 1 + 1e-9
"""Rates within this factor are equal: their difference is one of rounding."""


def fair_rates(paths: Numbers, capacity: Floats) -> Floats:
    """Return the max-min fair rate of each flow.

    The rates of all flows rise together. A flow stops when a link of it is full (progressive
    filling: D. Bertsekas and R. Gallager, "Data Networks", 2nd edition, 1992, section 6.5.2).

    Args:
        paths: the links of each flow, of shape (flows, links of a path), `NONE` for no link.
        capacity: the rate of each link; infinite if it does not limit any flow.

    Returns:
        The rates, of shape (flows,), in the unit of `capacity`.
    """
    used, inverse = np.unique(paths, return_inverse=True)
    local = inverse.reshape(paths.shape)
    absent = used == NONE
    free = np.where(absent, np.inf, capacity[used]).astype(np.float64)
    rates = np.full(len(paths), np.inf)
    active = np.arange(len(paths))
    while len(active):
        links = local[active]
        count = np.bincount(links.ravel(), minlength=len(used))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(count > 0, free / count, np.inf)
        share[absent] = np.inf
        least = share[links].min(axis=1)
        lowest = least.min()
        if not np.isfinite(lowest):
            break
        stops = least <= lowest * _EQUAL
        rates[active[stops]] = lowest
        filled = np.bincount(links[stops].ravel(), minlength=len(used))
        free = np.maximum(free - lowest * filled, 0.0)
        active = active[~stops]
    return rates


def flows_on(paths: Numbers, links: int) -> Numbers:
    """Return the number of flows on each of `links` links; shape (links,)."""
    return np.bincount(paths[paths != NONE], minlength=links)
