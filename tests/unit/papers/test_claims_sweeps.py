"""The suites of the papers, planned for their systems, are complete sweeps for all claims."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from tests.fixtures.sweeps import COLUMNS
from tests.unit.plan.test_papers import SYSTEMS, of

from proofmark.papers.all_claims import CLAIMS, answers
from proofmark.plan.plan import Step

KERNELS = ("copy", "scale", "add", "triad")


def printed(step: Step) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield benchmark, metric, unit and parameters of each figure that a step prints."""
    if step.case == "stream":
        for kernel in KERNELS:
            yield "STREAM", kernel, "MB/s", {"threads": step.threads}
    elif step.case == "hpl":
        yield "HPL", "rmax", "Gflops", {"n": step.derived["n"]}
    elif step.case == "ior":
        for operation in ("write", "read"):
            yield "IOR", operation, "MiB/s", {"tasks": step.ranks, "transfer_bytes": 2097152}
    elif step.case == "osu-bw":
        for power in range(23):
            yield "Bandwidth", "bandwidth", "MB/s", {"bytes": 2**power}
    elif step.case == "osu-contention":
        for pair in range(1, step.copies + 1):
            number = {"pair": pair} if step.copies > 1 else {}
            yield (
                "Bandwidth",
                "bandwidth",
                "MB/s",
                {"bytes": step.parameters["message_bytes"], **number},
            )
    elif step.case == "npb-btio":
        yield "BT", "io_time", "s", {"ranks": step.ranks}
    elif step.case == "imb-collectives":
        for power in range(int(step.derived["largest_log2"]) + 1):
            sizes = {"ranks": step.ranks, "bytes": 2**power}
            yield str(step.parameters["collective"]), "t_avg", "usec", sizes


def planned() -> pl.DataFrame:
    """Return three records of each figure of the plan of each paper; all values are 1."""
    rows = []
    for paper, system in SYSTEMS:
        for group in of(paper, system).groups:
            for step in (step for job in group.jobs for step in job.steps):
                for benchmark, metric, unit, parameters in printed(step):
                    row = {
                        "step": step.id,
                        "system": system,
                        "case": step.case,
                        "benchmark": benchmark,
                        "metric": metric,
                        "unit": unit,
                        "mode": group.mode,
                        "placement": step.placement,
                        "parameters": json.dumps({**step.parameters, **parameters}, sort_keys=True),
                    }
                    rows.append(row)
    table = pl.DataFrame(rows).with_columns(
        run=pl.lit("r"),
        attempt=pl.lit(1),
        partition=pl.lit("p"),
        node=pl.lit("n"),
        origin=pl.lit("measured"),
        value=pl.lit(1.0),
        repeat=pl.lit(1),
        environment_hash=pl.lit("e"),
        valid=pl.lit(True),
        reason=pl.lit(""),
    )
    return pl.concat([table.select(COLUMNS)] * 3)


@pytest.fixture(scope="module")
def words() -> dict[tuple[str, tuple[str, ...]], str]:
    return {
        (answer.claim.id, answer.claim.systems): f"{answer.word}: {answer.missing}"
        for answer in answers(planned())
    }


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.id}-{claim.systems[0]}")
def test_the_suite_of_a_paper_is_a_complete_sweep(
    words: dict[tuple[str, tuple[str, ...]], str], claim: Any
) -> None:
    word = words[claim.id, claim.systems]
    # Equal figures contradict most claims, but no point is missing.
    assert word.startswith(("holds", "does not hold")), word
