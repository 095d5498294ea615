"""The rates of links, from the texts of the kernel."""

from __future__ import annotations

import pytest

from proofmark.site.hardware_limits import lanes, link

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
    assert found.source and found.latency_source and 1e-7 < found.latency_s < 1e-5


def test_each_speed_has_all_widths_of_the_kernel() -> None:
    for row in lanes():
        for count in LANES:
            found = link(text_of(row.shown_gbit, count, row.speed))
            assert found and found.bytes_per_s == pytest.approx(count * row.lane_bytes_per_s)


def test_data_are_never_faster_than_the_signal() -> None:
    for row in lanes():
        assert 0.7 < row.lane_bytes_per_s * 8 / 1e9 / row.shown_gbit <= 1


@pytest.mark.parametrize(
    "rate", ["", "100 Gb/sec", "100 Gb/sec (4X HDR)", "300 Gb/sec (3X NDR)", "1 Gb/sec (4X EDRX)"]
)
def test_another_text_is_unknown(rate: str) -> None:
    assert link(rate) is None
