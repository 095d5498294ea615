"""The times of the executions of a run, for formats with time series."""

from __future__ import annotations

import numpy as np

from proofmark.records.columns import Floats, Records


def ends(records: Records) -> Floats:
    """Return the end of each execution in seconds since 1970; NaN if it is not known.

    Shape (executions,). It is the end by the clock of the node, else start + duration.
    """
    known = np.array([each.ended for each in records.executions], dtype=np.float64)
    begun = np.array([each.start for each in records.executions], dtype=np.float64)
    lasted = np.array([each.seconds for each in records.executions], dtype=np.float64)
    return np.where(np.isnan(known), begun + lasted, known)
