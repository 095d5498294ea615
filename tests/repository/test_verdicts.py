"""The texts of whole verdicts: each belongs to a test, and what differs is seen."""

from __future__ import annotations

from tests.folders import ROOT
from tests.verdicts import FOLDER, WIDTH, file_of, lines, plain, stored

from proofmark.common.message import Message


def test_each_text_is_that_of_a_test() -> None:
    files = [*FOLDER.iterdir()]
    assert files
    for file in files:
        assert stored(file)
        for test in stored(file):
            path, *_, name = test.partition("[")[0].split("::")
            assert file_of(test) == file
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), test


def test_a_message_is_its_code_with_its_values() -> None:
    message = Message("output", problem="broken")
    stated = {"text": message, **message.as_json("reason"), "share": 1 / 3, "no": (), "off": False}
    broken = {"output": {"problem": "broken"}}
    found = {"reason_code": "output", "reason_fields": {"problem": "broken"}, "share": 0.333333}
    assert plain(stated) == {"text": broken, **found}


def test_each_member_is_in_a_line_that_fits() -> None:
    value = {"few": 1, "more": ["x" * 50, {"y": "z" * 50}], "last": {"a": 2}}
    assert [*lines(value, " ")] == [
        " few: 1",
        f" more: [{'x' * 50}, {{y: {'z' * 50}}}]",
        " last: {a: 2}",
    ]
    nested = [*lines({"all": {"each": ["w" * WIDTH, "v"]}}, "")]
    assert nested == ["all:", "  each:", f"    - {'w' * WIDTH}", "    - v"]
