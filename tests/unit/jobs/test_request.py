"""The time limit of a job."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.kit import make_kit

from proofmark.jobs.request import EXECUTIONS, request
from proofmark.site.execution import Queue


@pytest.mark.parametrize(("longest", "expected"), [(None, 600 + 3 * 2 * 110), (900, 900)])
def test_the_time_limit_includes_two_repeats_of_each_step(
    tmp_path: Path, longest: int | None, expected: int
) -> None:
    kit = make_kit(tmp_path)
    kit.case(cost={"seconds": 40}, timeout=50)
    (job,) = kit.plan().groups[0].jobs
    assert (EXECUTIONS, len(job.steps)) == (3, 2)
    limited = Queue() if longest is None else Queue(max_walltime_s=longest)
    assert request(job, "name", Path("log"), limited).seconds == expected
