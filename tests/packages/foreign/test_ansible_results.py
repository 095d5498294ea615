"""Texts that only look like results of Ansible: each is read as it is, and none is an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.packages.foreign.output_text import program_lines

DEEP = 200_000


@pytest.mark.parametrize(
    "text",
    [
        'ok: [n1] => {"stdout": }\n',
        'ok: [n1] => {"results": 5, "rc": 0, "stdout": 7}\n',
        f'ok: [n1] => {{"stdout": {"[" * DEEP}}}\n',
        '    "stdout_lines": [\n        "a \\q b",\n',
        '    "stdout_lines": [\n        "a \\u12 b",\n',
        '  "out.stdout": "a \\q\\n b"\n',
        "  stdout_lines:\n  - *a\n",
        "  stdout_lines:\n  - {a: [\n",
        "  stdout_lines:\n  - [a]\n",
    ],
    ids=range(9),
)
def test_a_damaged_result_is_unchanged(text: str) -> None:
    assert program_lines(text) == text


def test_a_damaged_line_hides_no_other_one() -> None:
    text = '"stdout_lines": [\n "a \\q",\n "b \\" c,",\n "d"\n]\n'
    assert program_lines(text) == '"stdout_lines": [\n "a \\q",\nb " c,\nd\n]\n'


@given(st.lists(st.sampled_from(['"', "\\", "\n", ",", "[", "{", "}", " ", "- ", "x", "=> "])))
def test_no_text_is_an_error(parts: list[str]) -> None:
    text = "".join(parts)
    for begin in (
        '"stdout_lines": [\n',
        "stdout_lines:\n",
        'ok: [n] => {"stdout": "',
        '"stdout": "',
    ):
        assert isinstance(program_lines(begin + text), str)
