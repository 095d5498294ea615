"""Estimates of run times: against values computed by hand, and the rules of the programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.common.network_time import (
    ACHIEVED,
    ALL,
    COLLECTIVES,
    IMB_EXCESS,
    IMB_VOLUMES_MB,
    collective_messages,
    collective_s,
    collective_times,
    fitting,
    imb_repetitions,
    imb_s,
    imb_sample_s,
    message_times,
    round_trips,
    start_s,
)

LINK = 12.5e9
COUNTS = st.integers(min_value=1, max_value=10_000)
NAMES = st.sampled_from(COLLECTIVES)


def test_an_alltoall_is_bounded_by_the_link_of_a_node() -> None:
    """64 KNL nodes of 68 ranks: a node sends 68 × 4,284 blocks of 64 KiB, 1.53 s at wire speed."""
    wire = 68 * (4352 - 68) * 65536 / LINK
    assert wire == pytest.approx(1.527, abs=0.001)
    estimate = collective_s("alltoall", 65536, 4352, 64, 68, LINK)
    assert wire / ACHIEVED < estimate < 2 * wire / ACHIEVED
    assert collective_s("Alltoallv", 65536, 4352, 64, 68, LINK) == estimate


def test_ranks_on_one_node_do_not_use_the_link() -> None:
    slow, fast = (collective_s("alltoall", 2**20, 64, 1, 64, link) for link in (1e3, 1e12))
    assert slow == fast


def test_the_slower_distribution_of_the_ranks_counts() -> None:
    """64 ranks fill one node of 16, or are four on each: then the link carries 4 × 60 blocks."""
    estimate = collective_s("alltoall", 2**20, 64, 16, 64, 1e9)
    assert estimate > 4 * 60 * 2**20 / (ACHIEVED * 1e9)


def test_all_collectives_together_take_the_sum() -> None:
    each = [collective_s(name, 4096, 128, 4, 32, LINK) for name in COLLECTIVES]
    assert collective_s(ALL, 4096, 128, 4, 32, LINK) == sum(each)


def test_a_barrier_is_a_reduction_of_nothing() -> None:
    barrier = collective_s("barrier", 2**20, 4352, 64, 68, LINK)
    assert barrier == collective_s("allreduce", 0, 4352, 64, 68, LINK)


def test_nodes_start_their_ranks_at_the_same_time() -> None:
    """564,740 ranks on 8,305 KNL nodes start in minutes; one after the other they need hours."""
    assert start_s(68 * 8305) > 3600 * 3
    assert start_s(68) < start_s(68 * 8305, 8305) < 600
    assert start_s(68, 1) == start_s(68)


@pytest.mark.parametrize(
    ("name", "ranks", "link"), [("scan", 2, 1.0), ("bcast", 0, 1.0), ("bcast", 2, 0.0)]
)
def test_what_cannot_be_estimated(name: str, ranks: int, link: float) -> None:
    assert collective_s("bcast", 1, 2, 1, 2, 1.0) > 0
    with pytest.raises(ValueError, match=r"no collective|must be positive"):
        collective_s(name, 1, ranks, 1, 2, link)


@given(NAMES, st.integers(0, 2**22), st.integers(2, 5000), st.integers(1, 64), st.integers(1, 128))
def test_more_bytes_take_no_less_time_and_a_faster_link_no_more(
    name: str, size: int, ranks: int, nodes: int, cores: int
) -> None:
    at = collective_s(name, size, ranks, nodes, cores, LINK)
    assert 0 < at <= collective_s(name, 2 * size, ranks, nodes, cores, LINK)
    assert at >= collective_s(name, size, ranks, nodes, cores, 2 * LINK)


def test_pairs_share_the_link() -> None:
    (one,), (four,) = (message_times([2**22], pairs, 2, 1e9) for pairs in (1, 4))
    assert one == pytest.approx(2**22 / (ACHIEVED * 1e9))
    assert four == 4 * one
    assert message_times([2**22], 4, 1, 1e9) == message_times([2**22], 1, 1, 1e3)
    (there_and_back,) = round_trips([2**22], 2, 1e9)
    assert there_and_back == pytest.approx(2 * one, rel=0.01)


@given(st.lists(st.floats(1e-6, 1e4), min_size=1), st.floats(0.1, 1e4), COUNTS)
def test_repetitions_fit_into_the_budget(times: list[float], budget: float, most: int) -> None:
    count = fitting(times, budget, most, 3)
    assert 3 <= count <= max(3, most)
    assert count == 3 or count * sum(times) <= budget * (1 + 1e-9)
    assert count >= most or (count + 1) * sum(times) > budget * (1 - 1e-9)


def test_imb_repeats_a_size_as_often_as_its_volume_allows() -> None:
    """200 repetitions, 1 MiB: 200 of 1 KiB; 4 of 256 KiB with 4 warm-ups; one sample first."""
    assert imb_s([1e-6], [1024], 200, 1) == pytest.approx(1e-6 * (1 + 20 + 200 + 200))
    assert imb_s([10.0], [2**18], 200, 1) == pytest.approx(10 * (1 + 4 + 4) + 11)
    assert imb_s([10.0], [2**21], 200, 1) == pytest.approx(10 * (1 + 1 + 1))
    assert imb_s([0.001], [0], 200, 1) == pytest.approx(0.001 * (1 + 20 + 200 + 200))


@given(NAMES, st.integers(0, 22), st.integers(2, 4096), st.integers(1, 64), st.floats(1e8, 5e10))
def test_imb_measures_all_sizes_within_the_budget_or_a_multiple_of_the_least(
    name: str, largest: int, ranks: int, nodes: int, link: float
) -> None:
    sizes = [0, *(2**power for power in range(largest + 1))]
    times = collective_times(name, sizes, ranks, nodes, 64, link)
    count, volume = imb_repetitions(times, sizes, 60.0, 200)
    assert 1 <= count <= 200
    assert volume in IMB_VOLUMES_MB
    least = imb_s(times, sizes, 1, 1)
    assert imb_s(times, sizes, count, volume) <= max(60, IMB_EXCESS * least)


@given(st.integers(0, 22), st.integers(0, 22), st.floats(60, 1e6))
def test_imb_skips_no_size_within_the_limit_of_the_step(one: int, other: int, limit: float) -> None:
    """IMB gives up after max(doublings - 1, 1) × the value of -time."""
    smallest, largest = sorted((one, other))
    sample = imb_sample_s(limit, smallest, largest)
    assert max(largest - smallest - 1, 1) * sample >= limit


@pytest.mark.parametrize(
    ("collective", "messages"),
    [
        ("Bcast", 7),
        ("Allreduce", 8 * 3),
        ("Allgather", 8 * 3),
        ("barrier", 8 * 3),
        ("Alltoall", 8 * 7),
        ("alltoallv", 8 * 7),
        ("all", 7 + 2 * 8 * 3 + 2 * 8 * 7),
    ],
)
def test_a_collective_operation_has_the_messages_of_its_algorithm(
    collective: str, messages: int
) -> None:
    assert collective_messages(collective, 8) == messages


def test_an_unknown_collective_has_no_messages() -> None:
    with pytest.raises(ValueError, match="no collective 'Scan'"):
        collective_messages("Scan", 2)
