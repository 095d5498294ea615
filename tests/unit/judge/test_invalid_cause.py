"""The cause of an INVALID figure, by the codes of its reason."""

from __future__ import annotations

import pytest

from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.message_table import MESSAGES
from proofmark.judge.results import CODES, InvalidCause, invalid_cause

FULL = Message("scratch-full-on", problem="No space left on device", nodes="n1")
EXIT = Message("exit-code", code=1)
TWICE = Message("rank-twice", rank=1, times=2)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        (Message("no-space", code=1, message="No space left on device"), InvalidCause.NO_SPACE),
        (
            joined([EXIT, Message("scratch-failed", folder="/s", problems=(FULL,))]),
            InvalidCause.NO_SPACE,
        ),
        (Message("counter-rose", text="x", counter="edac/ue", rise=1), InvalidCause.ERROR_COUNTERS),
        (Message("no-program", code=127, program="xhpl"), InvalidCause.NO_PROGRAM),
        (Message("timed-out", seconds="60", limit=60), InvalidCause.TIME_LIMIT),
        (Message("scratch-empty", folder="/s"), InvalidCause.FILE_SYSTEM),
        (Message("mode-without-boot", node="n1", mode="snc4"), InvalidCause.MODE),
        (TWICE, InvalidCause.BINDING),
        (Message("load-binding", case="fio", problem=TWICE), InvalidCause.BINDING),
        (
            Message("above-bound", metric="m", value="5", bound="4", source="s"),
            InvalidCause.IMPOSSIBLE,
        ),
        (Message("disturbed", text="x"), InvalidCause.DISTURBED),
        (Message("output", problem="disturbed: the text of another program"), InvalidCause.OTHER),
        (NOTHING, InvalidCause.OTHER),
    ],
)
def test_a_reason_has_a_cause(reason: Message, cause: InvalidCause) -> None:
    assert invalid_cause(reason) is cause


def test_counters_that_were_not_recorded_do_not_show_another_network() -> None:
    """The advice is not about the settings of the MPI: the used network is not known."""
    cause = invalid_cause(Message("node-networks-unrecorded", node="n1"))
    assert cause is InvalidCause.NETWORK_UNPROVEN
    assert "counters" in cause.text


def test_each_cause_has_its_own_advice() -> None:
    texts = {each.text for each in InvalidCause}
    assert len(texts) == len(InvalidCause)
    assert not [text for text in texts if text.endswith(".")], "the edges add the full stop"


def test_each_code_is_that_of_a_message_and_has_one_cause() -> None:
    codes = [code for known in CODES.values() for code in known]
    assert {*codes} <= MESSAGES.keys()
    assert len(codes) == len({*codes})
