"""The rates of links, from the texts of the kernel."""

from __future__ import annotations

import pytest

from proofmark.site.hardware_limits import (
    ETHERNET,
    EthernetLimit,
    LaneLimit,
    ethernet,
    link,
    links,
    port_bound,
)

LANES = (1, 2, 4, 8, 12)


def text_of(shown_gbit: float, lanes: int, speed: str) -> str:
    """Return the text of rate_show() in drivers/infiniband/core/sysfs.c of Linux."""
    tenths = round(shown_gbit * 10) * lanes
    name = f" {speed}" if speed else ""
    return f"{tenths // 10}{'.5' if tenths % 10 else ''} Gb/sec ({lanes}X{name})"


@pytest.mark.parametrize(
    ("rate", "bytes_per_s"),
    [
        ("2.5 Gb/sec (1X SDR)", 2.5e8),
        ("10 Gb/sec (4X SDR)", 1e9),
        ("20 Gb/sec (4X DDR)", 2e9),
        ("40 Gb/sec (4X QDR)", 4e9),
        ("40 Gb/sec (4X FDR10)", 5e9),
        ("56 Gb/sec (4X FDR)", 6.818e9),
        ("100 Gb/sec (4X EDR)", 12.5e9),
        ("100 Gb/sec (2X HDR)", 12.5e9),
        ("200 Gb/sec (4X HDR)", 25e9),
        ("200 Gb/sec (2X NDR)", 25e9),
        ("100 Gb/sec (1X NDR)", 12.5e9),
        ("400 Gb/sec (4X NDR)", 50e9),
        ("800 Gb/sec (4X XDR)", 100e9),
        ("400 Gb/sec (2X XDR)", 50e9),
        ("100 Gb/sec (4X)", 12.5e9),
    ],
)
def test_the_rate_of_a_port(rate: str, bytes_per_s: float) -> None:
    found = link(rate)
    assert found is not None and found.bytes_per_s == pytest.approx(bytes_per_s)
    assert found.source and found.latency_source
    assert found.latency_s is not None and 1e-7 < found.latency_s < 1e-5


def test_each_speed_has_all_widths_of_the_kernel() -> None:
    for row in links().lanes:
        for count in LANES:
            found = link(text_of(row.shown_gbit, count, row.speed))
            assert found and found.bytes_per_s == pytest.approx(count * row.lane_bytes_per_s)


def test_data_are_never_faster_than_the_signal() -> None:
    for row in links().lanes:
        assert 0.7 < row.lane_bytes_per_s * 8 / 1e9 / row.shown_gbit <= 1


@pytest.mark.parametrize(
    "rate", ["", "100 Gb/sec", "100 Gb/sec (4X HDR)", "300 Gb/sec (3X NDR)", "1 Gb/sec (4X EDRX)"]
)
def test_another_text_is_unknown(rate: str) -> None:
    assert link(rate) is None


@pytest.mark.parametrize(
    ("rate", "bytes_per_s"),
    [
        ("10 Gb/sec (1X QDR)", 1.25e9),
        ("10 Gb/sec (1X FDR10)", 1.25e9),
        ("25 Gb/sec (1X EDR)", 3.125e9),
        ("40 Gb/sec (4X QDR)", 5e9),
        ("50 Gb/sec (2X EDR)", 6.25e9),
        ("50 Gb/sec (1X HDR)", 6.25e9),
        ("100 Gb/sec (4X EDR)", 12.5e9),
        ("100 Gb/sec (2X HDR)", 12.5e9),
        ("200 Gb/sec (4X HDR)", 25e9),
        ("200 Gb/sec (2X NDR)", 25e9),
        ("400 Gb/sec (8X HDR)", 50e9),
        ("400 Gb/sec (4X NDR)", 50e9),
        ("800 Gb/sec (8X NDR)", 100e9),
        ("800 Gb/sec (4X XDR)", 100e9),
    ],
)
def test_a_port_of_ethernet_has_the_rate_of_ethernet(rate: str, bytes_per_s: float) -> None:
    """The names are those of translate_eth_proto_oper() of the driver mlx5 of Linux."""
    found = link(rate, ETHERNET)
    assert found is not None and found.bytes_per_s == bytes_per_s
    assert found.source.startswith("IEEE 802.3")


@pytest.mark.parametrize(
    "megabits", [10_000, 25_000, 40_000, 50_000, 100_000, 200_000, 400_000, 800_000]
)
def test_an_interface_of_ethernet(megabits: int) -> None:
    found = ethernet(megabits)
    assert found is not None and found.bytes_per_s == megabits * 1e6 / 8


def test_slingshot_is_ethernet() -> None:
    names = {name: row.megabits for row in links().ethernet for name in row.names}
    assert (names["Slingshot 10"], names["Slingshot 11"]) == (100_000, 200_000)


def test_an_unusual_speed_of_ethernet_has_no_row() -> None:
    assert ethernet(2500) is None
    assert link("2.5 Gb/sec (1X SDR)", ETHERNET) is None


@pytest.mark.parametrize(
    ("rate", "layer", "bytes_per_s"),
    [
        ("40 Gb/sec (4X QDR)", "InfiniBand", 4e9),
        ("40 Gb/sec (4X QDR)", ETHERNET, 5e9),
        ("200 Gb/sec", None, 25e9),
        ("300 Gb/sec (3X NDR)", None, 37.5e9),
        ("1600 Gb/sec (4X GDR)", None, 200e9),
        ("2.5 Gb/sec (1X SDR)", ETHERNET, 0.3125e9),
        ("0 Gb/sec (4X)", None, None),
        ("9 Tb/sec", None, None),
        ("", None, None),
    ],
)
def test_a_rate_without_a_row_is_bound_by_its_number(
    rate: str, layer: str | None, bytes_per_s: float | None
) -> None:
    assert port_bound(rate, layer) == bytes_per_s


def test_each_row_has_a_source_and_a_date() -> None:
    rows: list[LaneLimit | EthernetLimit] = [*links().lanes, *links().ethernet]
    assert all(row.source and row.date for row in rows)
    assert all((row.latency_s is None) == (not row.latency_source) for row in rows)
    assert len({row.speed for row in links().lanes}) == len(links().lanes)
    assert len({row.megabits for row in links().ethernet}) == len(links().ethernet)


def test_mpi_is_never_faster_than_the_port() -> None:
    measured = [(each, row) for row in links().lanes for each in row.mpi]
    assert measured
    for each, row in measured:
        assert each.bytes_per_s and each.bytes_per_s <= each.lanes * row.lane_bytes_per_s
        assert each.latency_s is None or each.latency_s >= row.latency_s
        assert each.bytes_per_s / each.lanes / row.lane_bytes_per_s - each.tolerance > 0.7
    for port in links().ethernet:
        assert all((each.bytes_per_s or 0) <= port.bytes_per_s for each in port.mpi)


def test_a_virtual_machine_is_marked() -> None:
    for row in links().lanes:
        assert all(each.bare_metal is not each.system.startswith("Azure") for each in row.mpi)
