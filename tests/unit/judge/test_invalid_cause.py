"""The code of the cause of an INVALID figure."""

from __future__ import annotations

import pytest

from proofmark.judge.invalid_cause import InvalidCause, invalid_cause
from proofmark.records.columns import Execution
from proofmark.report.remedies import of_invalid


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("exit code 1: No space left on device", InvalidCause.NO_SPACE),
        ("n1: edac/ue_count +1", InvalidCause.ERROR_COUNTERS),
        ("exit code 127 (xhpl not found)", InvalidCause.NO_PROGRAM),
        ("timed out after 60 s (limit 60 s)", InvalidCause.NO_END),
        ("file system of /scratch did not answer", InvalidCause.FILE_SYSTEM),
        ("n1: mode snc4 is not proven", InvalidCause.MODE),
        ("rank 3 ran on CPU 4", InvalidCause.BINDING),
        ("5 GB/s is above the physical bound", InvalidCause.IMPOSSIBLE),
        ("the counters of the networks are missing", InvalidCause.NETWORK),
        ("the end of the output is missing", InvalidCause.OTHER),
        ("disturbed: the end of another program's text", InvalidCause.OTHER),
        ("", InvalidCause.OTHER),
    ],
)
def test_a_reason_has_a_code(reason: str, cause: InvalidCause) -> None:
    assert invalid_cause(reason, [Execution("s", 1, 1)]) is cause


def test_a_disturbance_is_known_by_the_execution_not_by_its_text() -> None:
    for execution in (Execution("s", 1, 1, disturbed="x y"), Execution("s", 1, 1, unsteady="x y")):
        assert invalid_cause("x y", [execution]) is InvalidCause.DISTURBED


def test_each_cause_has_its_own_advice() -> None:
    advice = {cause: of_invalid(cause) for cause in InvalidCause}
    assert len({*advice.values()}) == len(InvalidCause)
    assert "Stop these processes" in advice[InvalidCause.DISTURBED]
