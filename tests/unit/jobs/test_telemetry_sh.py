"""The sensors of a node as its sampler reads them, from trees of sysfs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.fixtures.sensors import Lines
from tests.fixtures.sensors import sense as sense_tree


@pytest.fixture(params=["mawk", "busybox awk"])
def sense(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Lines]:
    """Return a function that reads the sensors of a tree at some times, and changes it between."""
    return partial(sense_tree, tmp_path, awk=request.param)


RAPL = "class/powercap/intel-rapl:"


class TestEnergy:
    def test_packages_and_memory_are_added_and_a_counter_may_begin_again(
        self, sense: Callable[..., Lines]
    ) -> None:
        # 262143.32885 J is the range: from 262143 J to 1000 J these are 1000.32885 J.
        moved = {f"{RAPL}0/energy_uj": "1000000000", f"{RAPL}1/energy_uj": "507000000"}
        (line,) = sense("sensors-xeon", (10, {**moved, f"{RAPL}0:1/energy_uj": "101000000"}))
        assert line["rapl_w"] == pytest.approx((1000.32885 + 500 + 100) / 10, abs=0.01)

    def test_an_unreadable_counter_gives_no_power(self, sense: Callable[..., Lines]) -> None:
        (line,) = sense("sensors-epyc", (10, {}))
        assert "rapl_w" not in line
        assert line["acpi_w"] == 412

    def test_a_power_meter_counts_as_the_mean_of_its_looks(
        self, sense: Callable[..., Lines]
    ) -> None:
        meter = "class/hwmon/hwmon1/power1_average"
        (line,) = sense("sensors-epyc", (10, {}), (20, {meter: "312000000"}), interval=20)
        assert line["acpi_w"] == pytest.approx((412 + 312) / 2, abs=0.01)


@pytest.mark.parametrize(
    ("tree", "celsius"), [("sensors-xeon", 63), ("sensors-epyc", 54.2), ("sensors-arm", 47.5)]
)
def test_the_temperature_is_that_of_the_hottest_processor(
    sense: Callable[..., Lines], tree: str, celsius: float
) -> None:
    (line,) = sense(tree, (10, {}))
    assert line["celsius"] == pytest.approx(celsius, abs=0.06)


@pytest.mark.parametrize("value", ["-128000", "0", "127000", "255000"])
def test_a_sensor_that_gives_no_temperature_does_not_count(
    sense: Callable[..., Lines], tmp_path: Path, value: str
) -> None:
    (hot,) = sense("sensors-xeon", (10, {"class/hwmon/hwmon2/temp1_input": value}))
    assert 0 < hot["celsius"] <= 63


def test_a_sensor_with_a_fault_does_not_count(sense: Callable[..., Lines]) -> None:
    chip = "class/hwmon/hwmon2/temp1"
    (line,) = sense("sensors-xeon", (10, {f"{chip}_input": "99000", f"{chip}_fault": "1"}))
    assert line["celsius"] <= 63


def test_an_energy_that_does_not_rise_is_no_power(sense: Callable[..., Lines]) -> None:
    """Of a virtual machine, whose counter stays as it is."""
    (line,) = sense("sensors-xeon", (10, {}))
    assert "rapl_w" not in line


@pytest.mark.parametrize(("state", "watts"), [("activated", 220), ("deactivated", None)])
def test_a_power_reading_counts_while_it_is_active(
    sense: Callable[..., Lines], tmp_path: Path, state: str, watts: int | None
) -> None:
    reading = "    Instantaneous power reading:          220 Watts\n"
    text = f"\n{reading}    Power reading state is:                 {state}\n\n"
    (tmp_path / "ipmi").write_text(text)
    (line,) = sense("sensors-arm", (10, {}))
    assert line.get("ipmi_w") == watts


def test_a_sensor_that_is_absent_has_no_key(sense: Callable[..., Lines]) -> None:
    (line,) = sense("sensors-arm", (10, {}))
    assert line.keys() == {"host", "time", "span", "celsius"}


def test_a_node_without_sensors_writes_no_line(tmp_path: Path, sense: Callable[..., Lines]) -> None:
    (tmp_path / "empty").mkdir()
    assert sense(str(tmp_path / "empty"), (10, {}), (20, {})) == []


def test_clock_and_throttling_over_time(sense: Callable[..., Lines]) -> None:
    cpu = "devices/system/cpu/cpu"
    hot = {
        f"{cpu}0/cpufreq/scaling_cur_freq": "1200000",
        f"{cpu}1/thermal_throttle/core_throttle_count": "8",
        f"{cpu}0/thermal_throttle/package_throttle_count": "9",
    }
    first, second = sense("sensors-xeon", (10, {}), (20, hot))
    assert (first["mhz"], first["mhz_least"], first["throttled"]) == (
        pytest.approx(2400, 1e-3),
        2400,
        0,
    )
    assert second["mhz_least"] == 1200
    assert second["throttled"] == 5 + 2
    assert (first["time"], second["time"]) == (1700000010, 1700000020)


def test_the_file_is_bounded(sense: Callable[..., Lines]) -> None:
    lines = sense("sensors-arm", *((10.0 * number, {}) for number in range(1, 1300)))
    assert len(lines) < 850
    assert {line["span"] for line in lines[:399]} == {10}
    assert {line["span"] for line in lines[400:799]} == {20}
