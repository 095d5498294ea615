"""Patterns of the addresses of BMCs."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.common.expressions import render
from proofmark.packages.survey.answers import nodes_of_bmc, pattern_of


@given(
    base=st.integers(int(IPv4Address("10.0.0.0")), int(IPv4Address("10.0.255.0"))),
    numbers=st.sets(st.integers(0, 250), min_size=2, max_size=4),
)
def test_the_pattern_gives_the_address_of_every_node(base: int, numbers: set[int]) -> None:
    expected = [str(IPv4Address(base + number)) for number in range(251)]
    pattern = pattern_of({number: expected[number] for number in numbers})
    if pattern:
        names = {"node": "n1", "number": 0}
        for number in range(max(numbers) + 1):
            names["number"] = number
            assert str(render(pattern, names, file="f", key="bmc")) == expected[number]
    else:
        last = base + max(numbers)
        assert base // 65536 != last // 65536


@pytest.mark.parametrize(
    "samples",
    [
        {0: "10.0.0.1"},
        {0: "10.0.0.1", 5: "10.0.0.7"},
        {0: "10.0.0.1", 1: ""},
        {0: "10.0.0.1", 1: "fe80::2"},
        {300: "0.0.0.1", 301: "0.0.0.2"},
    ],
)
def test_other_addresses_have_no_pattern(samples: dict[int, str]) -> None:
    assert pattern_of(samples) == ""


@pytest.mark.parametrize(
    ("size", "numbers", "first"),
    [(2, (0, 4, 7), "10.0.0.9"), (2, (1, 250, 499), "10.0.0.200"), (4, (0, 8, 15), "10.0.0.1")],
)
def test_several_nodes_behind_one_bmc(size: int, numbers: tuple[int, ...], first: str) -> None:
    expected = {n: str(IPv4Address(first) + n // size) for n in range(max(numbers) + 1)}
    samples = {number: expected[number] for number in numbers}
    assert nodes_of_bmc(samples) == size
    pattern = pattern_of(samples)
    for number, address in expected.items():
        names: dict[str, str | int] = {"node": "n1", "number": number}
        assert str(render(pattern, names, file="f", key="bmc")) == address


def test_two_nodes_of_one_blade() -> None:
    assert nodes_of_bmc({0: "10.0.0.1", 1: "10.0.0.1"}) == 2
    assert pattern_of({0: "10.0.0.1", 1: "10.0.0.1"}) == "10.0.0.{number // 2 + 1}"
    assert nodes_of_bmc({0: "10.0.0.1", 1: "10.0.0.2"}) == 1
