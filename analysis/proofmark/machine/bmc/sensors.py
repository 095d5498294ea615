"""Power and temperature of a node by Redfish: its BMC measures them beside the operating system.

Sources: DMTF DSP0266 and the schemas Power, Thermal (until 2020), EnvironmentMetrics,
ThermalSubsystem and ThermalMetrics (DSP2046). **Not tried on hardware.**
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from proofmark.machine.bmc.bmc_model import Host
from proofmark.machine.bmc.client import ConnectionPool, RedfishConnection
from proofmark.machine.bmc.collection import path_of_member, read_members
from proofmark.machine.bmc.json_body import Part
from proofmark.machine.bmc.systems import SYSTEMS
from proofmark.machine.outcome import NodeError, Outcome

CHASSIS = "/redfish/v1/Chassis"
POWER, TEMPERATURE = "watts", "celsius"
LIMITS = {POWER: (0.0, 1e6), TEMPERATURE: (-100.0, 200.0)}
OF_NODE = ("", "Blade", "Enclosure", "RackMount", "Sled", "StandAlone")
"""The types of a chassis whose power is that of a node; a card or a module is a part of one."""
NO_SENSOR = ("Absent", "Disabled", "UnavailableOffline", "StandbyOffline")
"""States of a sensor whose value means nothing."""
MISSING = (404, 405, 501)

Source = tuple[str, str, str]
"""A quantity, the kind of a resource and its path."""


@dataclass
class BmcSensors:
    """Reads the sensors of BMCs; the paths of a node's resources are looked for once."""

    pool: ConnectionPool
    _sources: dict[Host, list[Source]] = field(default_factory=dict)

    def read(self, host: Host) -> dict[str, float]:
        """Return the power in W and the temperature of the hottest processor in °C of `host`.

        A quantity that its BMC does not measure is left out.

        Raises:
            NodeError: the BMC does not answer, or measures neither.
        """
        values: dict[str, float] = {}
        with self.pool.connection(host.address) as bmc:
            known = self._sources.get(host, [])
            for source in known or _sources(bmc, host):
                if source[0] in values:
                    continue
                value = _READERS[source[:2]](_body(bmc, source[2]))
                if value is not None:
                    values[source[0]] = value
                    if not known:
                        self._sources.setdefault(host, []).append(source)
        if not values:
            self._sources.pop(host, None)
            raise NodeError(Outcome.UNEXPECTED, f"{CHASSIS}: no power and no temperature")
        return values


def _body(bmc: RedfishConnection, path: str) -> Part:
    """Return a resource; an empty one if the BMC links to it and does not have it."""
    response = bmc.request("GET", path, accept=(200, *MISSING))
    return response.body if response.status == 200 else Part(path, {})


def _sources(bmc: RedfishConnection, host: Host) -> Iterator[Source]:
    """Yield the resources with sensors of a node: the newer kind of each before the older one."""
    system, chassis = _of_node(bmc, host)
    for each in chassis:
        if each.text("ChassisType") in OF_NODE:
            for kind in ("EnvironmentMetrics", "Power"):
                yield from _linked(each, POWER, kind)
    for each in chassis:
        if each.content.get("ThermalSubsystem") is not None:
            subsystem = _body(bmc, each.link("ThermalSubsystem"))
            yield from _linked(subsystem, TEMPERATURE, "ThermalMetrics")
        yield from _linked(each, TEMPERATURE, "Thermal")
    if system.content.get("Processors") is None:
        return
    for member in read_members(bmc, system.link("Processors")):
        processor = _body(bmc, path_of_member(member))
        if processor.text("ProcessorType") in ("", "CPU"):
            yield from _linked(processor, TEMPERATURE, "EnvironmentMetrics")


def _linked(part: Part, quantity: str, kind: str) -> Iterator[Source]:
    if part.content.get(kind) is not None:
        yield quantity, kind, part.link(kind)


def _of_node(bmc: RedfishConnection, host: Host) -> tuple[Part, list[Part]]:
    """Return the system of a node and its chassis, by the links between them.

    A BMC without these links is read only if all of its chassis are those of one system.

    Raises:
        NodeError: UNEXPECTED: the BMC has several systems, and does not state which is the node's.
    """
    response = bmc.request("GET", SYSTEMS, accept=(200, *MISSING))
    members = read_members(bmc, SYSTEMS) if response.status == 200 else []
    systems = [path_of_member(each).rstrip("/") for each in members]
    found = [_body(bmc, path) for path in systems]
    # A system without a BIOS is a part of a node, such as a board of accelerators.
    whole = [each for each in found if each.content.get("Bios") is not None] or found
    own = [each for each in found if each.place.rpartition("/")[2] == host.system]
    bodies = own if host.system else whole
    listed = [path_of_member(each).rstrip("/") for each in read_members(bmc, CHASSIS)]
    system = bodies[0] if len(bodies) == 1 else Part(SYSTEMS, {})
    linked = [path_of_member(each) for each in system.part("Links").items("Chassis")]
    if linked:
        return system, [_body(bmc, path) for path in linked]
    chassis = [_body(bmc, path) for path in listed]
    of_system = [
        each
        for each in chassis
        if system.place
        in [
            path_of_member(link).rstrip("/") for link in each.part("Links").items("ComputerSystems")
        ]
    ]
    if of_system:
        return system, of_system
    named = [each for each in chassis if host.system and each.text("Id") == host.system]
    if named:
        return system, named
    nodes = [each for each in chassis if each.text("ChassisType") in OF_NODE]
    if len(whole) > 1 or (not systems and len(nodes) > 1):
        text = f"the BMC has {len(systems)} systems and {len(nodes)} chassis of nodes"
        add = f"{text}, and no link says which are those of {host.node}: set firmware.system"
        raise NodeError(Outcome.UNEXPECTED, add)
    return system, chassis


def _environment_power(body: Part) -> float | None:
    return _number(body.part("PowerWatts"), "Reading", POWER)


def _environment_temperature(body: Part) -> float | None:
    return _number(body.part("TemperatureCelsius"), "Reading", TEMPERATURE)


def _power(body: Part) -> float | None:
    readings = (_number(item, "PowerConsumedWatts", POWER) for item in body.items("PowerControl"))
    return next((each for each in readings if each is not None), None)


def _thermal_metrics(body: Part) -> float | None:
    return _hottest(body.items("TemperatureReadingsCelsius"), "Reading")


def _thermal(body: Part) -> float | None:
    return _hottest(body.items("Temperatures"), "ReadingCelsius")


def _hottest(items: list[Part], key: str) -> float | None:
    def of_processors() -> Iterator[float]:
        for item in items:
            value = _number(item, key, TEMPERATURE)
            if item.text("PhysicalContext") in ("CPU", "CPUSubsystem") and value is not None:
                yield value

    return max(of_processors(), default=None)


_READERS: dict[tuple[str, str], Callable[[Part], float | None]] = {
    (POWER, "EnvironmentMetrics"): _environment_power,
    (POWER, "Power"): _power,
    (TEMPERATURE, "ThermalMetrics"): _thermal_metrics,
    (TEMPERATURE, "Thermal"): _thermal,
    (TEMPERATURE, "EnvironmentMetrics"): _environment_temperature,
}


def _number(part: Part, key: str, quantity: str) -> float | None:
    """Return the value of a sensor; None if it measures nothing.

    A node that answers takes power: 0 W is no measurement. 0 °C is none either.

    Raises:
        NodeError: UNEXPECTED: it is no possible value.
    """
    value = part.content.get(key)
    if value is None or part.part("Status").text("State") in NO_SENSOR:
        return None
    low, high = LIMITS[quantity]
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not known or not math.isfinite(value) or not low <= value <= high:
        found = f"{part.place}: {key}: found {value!r}"[:200]
        raise NodeError(Outcome.UNEXPECTED, f"{found}; accepted: {low:g} to {high:g}")
    return float(value) or None
