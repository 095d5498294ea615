"""Words that a line must not break."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.report.render import MAX_WORD_ANY_SCREEN, unbroken


@given(st.text(max_size=200))
def test_the_text_stays_the_same(text: str) -> None:
    html = unbroken(text)
    assert unescape(re.sub(r"</?(span|wbr)[^>]*>", "", html)) == text


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("rknl0007", "rknl0007"),
        ("knl[0001-0042]", '<span class="w">knl[0001-0042]</span>'),
        ("0003-imb-pingpong of n1", '<span class="w">0003-imb-pingpong</span> of n1'),
        ("a < b", "a &lt; b"),
    ],
)
def test_a_short_word_is_in_one_line(text: str, html: str) -> None:
    assert unbroken(text) == html


def test_a_path_breaks_after_a_slash_only() -> None:
    html = unbroken("latest/workdir/steps/0003-imb-pingpong/run.sh")
    assert html.startswith('<span class="w long"><span class="w">latest/</span><wbr>')
    assert '<span class="w">0003-imb-pingpong/</span><wbr><span class="w">run.sh</span>' in html


def test_a_long_word_without_a_separator_breaks_anywhere() -> None:
    assert unbroken("f" * 64) == f'<span class="any"><span class="any">{"f" * 64}</span></span>'


@given(st.text(alphabet="ab-/,[]01", min_size=1, max_size=MAX_WORD_ANY_SCREEN))
def test_each_short_word_has_no_place_to_break(word: str) -> None:
    html = unbroken(word)
    assert "<wbr>" not in html
    assert html.startswith('<span class="w">') or not re.search(r"[-/]", word)
