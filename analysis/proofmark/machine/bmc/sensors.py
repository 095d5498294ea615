"""Power and temperature of a node by Redfish: its BMC measures them beside the operating system.

Sources: DMTF DSP0266 and the schemas Power, Thermal (until 2020), EnvironmentMetrics,
ThermalSubsystem and ThermalMetrics (DSP2046). **Not tried on hardware.**
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from proofmark.machine.bmc.bmc_model import Host
from proofmark.machine.bmc.client import ConnectionPool, RedfishConnection
from proofmark.machine.bmc.json_body import Part
from proofmark.machine.outcome import NodeError, Outcome

CHASSIS = "/redfish/v1/Chassis"
MOST_CHASSIS = 4
"""The largest number of chassis of a BMC that are looked at: a request for each of them."""
POWER, TEMPERATURE = "watts", "celsius"
LIMITS = {POWER: (0.0, 1e6), TEMPERATURE: (-100.0, 200.0)}


@dataclass
class BmcSensors:
    """Reads the sensors of BMCs; the paths of a BMC's resources are asked for once."""

    pool: ConnectionPool
    _paths: dict[str, dict[str, str]] = field(default_factory=dict)

    def read(self, host: Host) -> dict[str, float]:
        """Return the power in W and the temperature of the hottest processor in °C of `host`.

        A quantity that its BMC does not measure is left out.

        Raises:
            NodeError: the BMC does not answer, or measures neither.
        """
        with self.pool.connection(host.address) as bmc:
            paths = self._paths.get(host.address) or _paths_of(bmc)
            self._paths[host.address] = paths
            bodies = {kind: bmc.get(path).body for kind, path in paths.items()}
        values: dict[str, float] = {}
        for kind, body in bodies.items():
            found = _READERS[kind](body)
            if found is not None:
                values.setdefault(POWER if kind in _OF_POWER else TEMPERATURE, found)
        if not values:
            raise NodeError(Outcome.UNEXPECTED, f"{CHASSIS}: no power and no temperature")
        return values


def _paths_of(bmc: RedfishConnection) -> dict[str, str]:
    """Return the paths of the resources with sensors, by kind."""
    paths: dict[str, str] = {}
    for member in bmc.get(CHASSIS).body.items("Members")[:MOST_CHASSIS]:
        chassis = bmc.get(member.path("@odata.id")).body
        for kind in ("EnvironmentMetrics", "Power", "Thermal"):
            if chassis.content.get(kind) is not None:
                paths.setdefault(kind, chassis.link(kind))
        if chassis.content.get("ThermalSubsystem") is not None and "ThermalMetrics" not in paths:
            subsystem = bmc.get(chassis.link("ThermalSubsystem")).body
            if subsystem.content.get("ThermalMetrics") is not None:
                paths["ThermalMetrics"] = subsystem.link("ThermalMetrics")
    # The newer resource replaces the older one.
    for newer, older in (("EnvironmentMetrics", "Power"), ("ThermalMetrics", "Thermal")):
        if newer in paths:
            paths.pop(older, None)
    return paths


def _environment_power(body: Part) -> float | None:
    return _number(body.part("PowerWatts"), "Reading", POWER)


def _power(body: Part) -> float | None:
    readings = (
        _number(item, "PowerConsumedWatts", POWER) for item in body.items("PowerControl")[:1]
    )
    return next(readings, None)


def _thermal_metrics(body: Part) -> float | None:
    return _hottest(body.items("TemperatureReadingsCelsius"), "Reading")


def _thermal(body: Part) -> float | None:
    return _hottest(body.items("Temperatures"), "ReadingCelsius")


def _hottest(items: list[Part], key: str) -> float | None:
    def of_processors() -> Iterator[float]:
        for item in items:
            value = _number(item, key, TEMPERATURE)
            if item.text("PhysicalContext") == "CPU" and value is not None:
                yield value

    return max(of_processors(), default=None)


_READERS = {
    "EnvironmentMetrics": _environment_power,
    "Power": _power,
    "ThermalMetrics": _thermal_metrics,
    "Thermal": _thermal,
}
_OF_POWER = ("EnvironmentMetrics", "Power")


def _number(part: Part, key: str, quantity: str) -> float | None:
    """Return the value of a sensor; None if it is absent.

    Raises:
        NodeError: UNEXPECTED: it is no possible value.
    """
    value = part.content.get(key)
    if value is None:
        return None
    low, high = LIMITS[quantity]
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not known or not math.isfinite(value) or not low <= value <= high:
        found = f"{part.place}: {key}: found {value!r}"[:200]
        raise NodeError(Outcome.UNEXPECTED, f"{found}; accepted: {low:g} to {high:g}")
    return float(value)
