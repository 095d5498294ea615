"""Symbolic values: what they compute, and how they refuse what cannot be computed."""

from __future__ import annotations

from itertools import pairwise
from math import isqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.common.errors import BadInput
from proofmark.common.expressions import (
    GRID_RATIO,
    LONGEST,
    SMALL_GRID,
    doubling,
    doubling_to,
    evaluate,
    grid,
    gridded,
    lines,
    multiple,
    names_in,
    quadrupling_to,
    render,
    squares,
    upto,
)

counts = st.integers(1, 10**15)


def value(text: str, **names: Any) -> Any:
    return render(text, names, file="x.yml", key="sweep.a")


def refusal(text: str, **names: Any) -> str:
    with pytest.raises(BadInput) as error:
        value(text, **names)
    return str(error.value)


@given(counts, counts)
def test_doubling_stops_at_the_last_power_that_fits(first: int, last: int) -> None:
    found = doubling(first, last)
    assert all(two == 2 * one for one, two in pairwise(found))
    if last < first:
        assert found == []
    else:
        assert found[0] == first
        assert found[-1] <= last < 2 * found[-1]


@given(counts, st.integers(0, 60))
def test_doubling_includes_its_end(first: int, steps: int) -> None:
    assert doubling(first, first << steps)[-1] == first << steps
    assert len(doubling(first, (first << steps) - 1)) == steps


@given(counts, counts)
def test_quadrupling_includes_its_first_and_last_value(first: int, last: int) -> None:
    found = quadrupling_to(first, last)
    assert all(two == 4 * one for one, two in pairwise(found[:-1]))
    assert all(one < two <= 4 * one for one, two in pairwise(found))
    assert found[:1] == ([first] if last >= first else [])
    assert found[-1:] == ([last] if last >= first else [])


@given(st.lists(counts))
def test_lines_can_be_read_back(values: list[int]) -> None:
    assert [int(line) for line in lines(values).splitlines()] == values


@given(counts, counts)
def test_doubling_to_adds_the_last_number(first: int, last: int) -> None:
    """2, 4, … 4096, 8192, 8305: a sweep up to all nodes includes all nodes."""
    found = doubling_to(first, last)
    assert found[: len(doubling(first, last))] == doubling(first, last)
    assert found == sorted(set(found))
    assert found[-1:] == ([last] if last >= first else [])


@given(st.integers(1, 10_000), st.integers(1, 72))
def test_a_gridded_number_of_nodes_is_the_largest_with_a_usable_grid(
    nodes: int, ranks_per_node: int
) -> None:
    def usable(count: int) -> bool:
        rows, columns = grid(count * ranks_per_node)
        return columns <= GRID_RATIO * rows or rows * columns <= SMALL_GRID

    found = gridded(nodes, ranks_per_node)
    assert not any(usable(count) for count in range(found + 1, nodes + 1))
    if not usable(found):
        assert found == nodes
        assert not any(usable(count) for count in range(1, nodes))


@pytest.mark.parametrize(
    ("nodes", "per_node", "found"),
    [(8305, 1, 8305), (8301, 1, 8300), (132, 2, 132), (11, 1, 11), (1, 26, 1)],
)
def test_few_nodes_are_left_out_of_a_grid(nodes: int, per_node: int, found: int) -> None:
    assert gridded(nodes, per_node) == found


@given(st.integers(-5, 2000))
def test_upto_counts(last: int) -> None:
    assert upto(last) == [number for number in range(1, 2001) if number <= last]


@given(st.integers(0, 5000))
def test_squares_are_all_squares_up_to_the_last(last: int) -> None:
    assert squares(last) == [
        number for number in range(1, last + 1) if isqrt(number) ** 2 == number
    ]


@given(st.integers(1, 20_000))
def test_grid_is_the_squarest(ranks: int) -> None:
    rows, columns = grid(ranks)
    assert rows * columns == ranks
    assert rows <= columns
    assert not any(ranks % better == 0 for better in range(rows + 1, isqrt(ranks) + 1))


@given(st.floats(0, 1e12), st.integers(1, 10_000))
def test_multiple_is_the_largest_that_fits(limit: float, of: int) -> None:
    found = multiple(limit, of)
    assert found % of == 0
    assert found <= limit < found + of or (limit < of and found == of)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{cores}", 2),
        ("{cores * 2}", 4),
        ("{2 * MiB}", 2**21),
        ("{doubling(2, 8)}", [2, 4, 8]),
        ("{'a' if cores == 2 else 'b'}", "a"),
        ("-n {cores} -b {KiB}", "-n 2 -b 1024"),
        ("plain", "plain"),
        ("{grid(cores * 3)[1]}", 3),
        ("{cores >= 2}", True),
    ],
)
def test_lone_expressions_keep_their_type(text: str, expected: object) -> None:
    found = value(text, cores=2)
    assert found == expected
    assert type(found) is type(expected)


def test_lists_are_rendered_item_by_item() -> None:
    assert render(["{cores}", 7, "x{cores}"], {"cores": 2}, file="", key="") == [2, 7, "x2"]


def test_an_unknown_name_comes_with_the_nearest_right_word() -> None:
    said = refusal("{coers}", cores=2)
    assert said.startswith("x.yml: sweep.a: found 'coers'")
    assert "did you mean 'cores'?" in said
    assert "doubling" not in said  # a function is no name


def test_an_unknown_function_comes_with_the_nearest_right_word() -> None:
    assert "did you mean 'doubling'?" in refusal("{doublin(1, 2)}")


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0",
        "grid(0)",
        "grid(2.5)",
        "doubling(0, 4)",
        "doubling(1.5, 6)",
        "sqrt(-1)",
        "(-8) ** 0.5",  # a complex number
        "1e308 * 10",  # infinity
        "10 ** 400 / 3",
        "upto('a')",
        "upto(10 ** 12)",  # would fill the memory
        "squares(1e30)",
        "'a' * 10 ** 9",
        "9 ** 9 ** 9",
        "1 +",
        "1; 2",  # the second would be ignored
        "a = 1",
        "min",  # a function, not a value
        "(1, 2)",
        "[[1]]",
        "().__class__",
        "__import__('os')",
        "lambda: 1",
        "-" * 5000 + "1",
    ],
)
def test_what_gives_no_value_is_refused_with_its_place(expression: str) -> None:
    assert refusal("{" + expression + "}").startswith("x.yml: sweep.a: found ")


def test_lists_have_a_longest() -> None:
    assert len(upto(LONGEST)) == LONGEST
    with pytest.raises(ValueError, match="at most"):
        upto(LONGEST + 1)


@given(st.text(st.sampled_from("a1 +-*/()[]{}.,'\"=<>%:;!~"), max_size=25))
def test_any_text_gives_a_value_or_a_refusal(text: str) -> None:
    try:
        found = evaluate(text, {"a": 3}, file="x.yml", key="k")
    except BadInput as error:
        assert error.mistakes[0].file == "x.yml"
    else:
        assert isinstance(found, (str, int, float, list))


def test_names_are_found_in_all_braces() -> None:
    assert names_in(["{a + min(b, 1)}", "x{c}y", 3, "no"]) == {"a", "min", "b", "c"}
