"""The command ``telemetry``: power and temperature of the nodes by their BMCs during a run.

A BMC measures them beside the operating system, and Redfish has them. Sources: DMTF DSP0266 and the
schemas Power, Thermal (until 2020), EnvironmentMetrics, ThermalSubsystem, ThermalMetrics and Sensor
(DSP2046). **Not tried on hardware**; tried on the resources of public dumps
(``tests/emulators/bmc/trees.yml``).
"""

from __future__ import annotations

import json
import re
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from proofmark.cli.command import Command, credentials_argument, run_argument, site_arguments
from proofmark.cli.inputs import credentials_of, site_of_run
from proofmark.common.errors import bad_input
from proofmark.common.files import open_to_append
from proofmark.common.progress_lines import say
from proofmark.machine.bmc.back_end import Host
from proofmark.machine.bmc.client import (
    SYSTEMS,
    ConnectionPool,
    ConnectionSettings,
    RedfishConnection,
    one_member,
    read_members,
)
from proofmark.machine.bmc.https import BodyPart, tls_context
from proofmark.machine.modes.rollout import firmware_of, hosts_of
from proofmark.machine.outcome import NodeError, Outcome, fan_out, split
from proofmark.runs.run import Run, open_run
from proofmark.runs.run_files import RunFiles
from proofmark.runs.samples import MAX_BMC_BYTES
from proofmark.runs.state import is_locked

CHASSIS = "/redfish/v1/Chassis"
POWER, TEMPERATURE = "watts", "celsius"
LIMITS = {POWER: (0.0, 1e6), TEMPERATURE: (-100.0, 200.0)}
NODES = ("", "Blade", "Drawer", "Enclosure", "Other", "RackMount", "Shelf", "Sled", "StandAlone")
"""The types of a chassis whose power is that of a node; a card or a module is a part of one."""
PROCESSOR = ("CPU", "CPUSubsystem")
OF_PROCESSOR = re.compile(r"(?<![A-Z])CPU_?\d*(?![A-Z])")
WHOLE = ("", "Chassis", "Intake", "PowerSubsystem", "PowerSupply", "SystemBoard")
"""The contexts of a power that is that of a node; AMI reports Intake for all sensors."""
MEASURES = ("", "Enabled", "Degraded")
"""States of a sensor whose value counts."""
ALL_ONES = 65535
"""What a BMC sends for a value of 16 bits that it does not have."""
DISTANCES = ("Delta", "Headroom")
"""Bases of a reading that is a distance to another temperature."""
DISTANCE_NAME = "TempLimit"
"""In the Id of a sensor of NVIDIA's Grace that shows the distance to its limit."""
DECIMAL = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
MISSING = (404, 405, 501)
AGAIN_S = 900.0
"""Seconds until a BMC without figures is searched again: it may have fifty chassis."""

Source = tuple[str, str]
"""The kind of a resource, a key of `_READERS`, and its path."""
Search = tuple[str, Callable[[], Iterator[Source]]]
"""A quantity, and a function that yields sources of one rank; it may send requests."""


@dataclass
class BmcSensors:
    """Reads the sensors of BMCs; the paths of a node's resources are looked for once."""

    pool: ConnectionPool
    _sources: dict[Host, dict[str, list[Source]]] = field(default_factory=dict)
    _again: dict[Host, float] = field(default_factory=dict)

    def read(self, host: Host) -> dict[str, float]:
        """Return the power in W and the temperature of the hottest processor in °C of `host`.

        A quantity that its BMC does not measure is left out.

        Raises:
            NodeError: the BMC does not answer, or measures neither.
        """
        values: dict[str, float] = {}
        if time.monotonic() >= self._again.get(host, 0.0):
            with self.pool.connection(host.address) as bmc:
                if host in self._sources:
                    for quantity, sources in self._sources[host].items():
                        values |= _highest(quantity, _values(bmc, sources))
                else:
                    values = self._search(bmc, host)
            if not values:
                self._sources.pop(host, None)
                self._again[host] = time.monotonic() + AGAIN_S
        if not values:
            raise NodeError(Outcome.UNEXPECTED, f"{CHASSIS}: no power and no temperature")
        return values

    def _search(self, bmc: RedfishConnection, host: Host) -> dict[str, float]:
        """Return the figures of the first resources that have a value, and keep their paths."""
        values: dict[str, float] = {}
        used: dict[str, list[Source]] = {}
        for quantity, find in _searches(bmc, host):
            if quantity in values:
                continue
            found = _values(bmc, list(dict.fromkeys(find())))
            values |= _highest(quantity, found)
            used |= {quantity: [*found]} if found else {}
            if len(values) == len(LIMITS):
                break
        if used:
            self._sources[host] = used
        return values


def _values(bmc: RedfishConnection, sources: list[Source]) -> dict[Source, float]:
    found = {(kind, path): _READERS[kind](_body(bmc, path)) for kind, path in sources}
    return {source: value for source, value in found.items() if value is not None}


def _highest(quantity: str, values: dict[Source, float]) -> dict[str, float]:
    return {quantity: max(values.values())} if values else {}


def _body(bmc: RedfishConnection, path: str) -> BodyPart:
    """Return a resource; an empty one if the BMC links to it and does not send it."""
    with one_member(bmc, CHASSIS, []):
        response = bmc.request("GET", path, accept=(200, *MISSING))
        if response.status == 200:
            return response.body
    return BodyPart(path, {})


def _searches(bmc: RedfishConnection, host: Host) -> Iterator[Search]:
    """Yield where to search: the nearest chassis first, the newer kind before the older one."""
    systems, found = _of_node(bmc, host)
    for chassis in found:
        for each in chassis:
            yield POWER, partial(_power_sources, bmc, each, systems)
        yield TEMPERATURE, partial(_thermal_metrics_sources, bmc, chassis)
        yield TEMPERATURE, partial(_thermal_sources, chassis)
    yield TEMPERATURE, partial(_processor_sources, bmc, systems)


def _power_sources(
    bmc: RedfishConnection, chassis: BodyPart, systems: list[BodyPart]
) -> Iterator[Source]:
    """Yield the first resource with the power of a node; a part can show that of its system."""
    # A rack is the chassis of many nodes; Cisco's CIMC gives this type to that of its one system.
    only = chassis.text("ChassisType") == "Rack" and len(_systems_of(chassis)) == 1
    whole = only or chassis.text("ChassisType") in NODES
    if whole:
        for source in _linked(chassis, "EnvironmentMetrics", "PowerWatts"):
            if _values(bmc, [source]):
                yield source
                return
    for source in _linked(chassis, "Power", "Power"):
        controls = _body(bmc, source[1]).items("PowerControl")
        places = {each.place for each in systems}
        if whole or any(places & set(_paths(each.items("RelatedItem"))) for each in controls):
            yield source


def _thermal_metrics_sources(bmc: RedfishConnection, chassis: list[BodyPart]) -> Iterator[Source]:
    for each in chassis:
        for _, path in _linked(each, "ThermalSubsystem", ""):
            for kind, metrics in _linked(_body(bmc, path), "ThermalMetrics", "ThermalMetrics"):
                for item in _body(bmc, metrics).items("TemperatureReadingsCelsius"):
                    if _context(item) in PROCESSOR:
                        yield _sensor_of(bmc, item, (kind, metrics))


def _thermal_sources(chassis: list[BodyPart]) -> Iterator[Source]:
    for each in chassis:
        yield from _linked(each, "Thermal", "Thermal")


def _processor_sources(bmc: RedfishConnection, systems: list[BodyPart]) -> Iterator[Source]:
    for system in systems:
        for _, path in _linked(system, "Processors", ""):
            for processor in read_members(bmc, path, key="ProcessorType"):
                if processor.text("ProcessorType") in ("", "CPU"):
                    for source in _linked(processor, "EnvironmentMetrics", "TemperatureCelsius"):
                        item = _body(bmc, source[1]).part("TemperatureCelsius")
                        yield _sensor_of(bmc, item, source)


def _sensor_of(bmc: RedfishConnection, item: BodyPart, source: Source) -> Source:
    """Return the sensor whose value `item` repeats; `source` if the BMC does not show it.

    Only the sensor states whether its value is a temperature or the distance to a limit.
    """
    path = item.path("DataSourceUri")
    return ("Sensor", path) if path and _body(bmc, path).content else source


def _linked(part: BodyPart, key: str, kind: str) -> Iterator[Source]:
    with suppress(NodeError):  # it has no such link
        yield kind, part.link(key)


def _paths(links: list[BodyPart]) -> list[str]:
    return [path.rstrip("/") for link in links if (path := link.path("@odata.id"))]


def _of_node(bmc: RedfishConnection, host: Host) -> tuple[list[BodyPart], Iterator[list[BodyPart]]]:
    """Return the systems of a node and its chassis, by the links between them.

    A system without a BIOS is a part of a node, such as a board of accelerators or of processors.
    """
    response = bmc.request("GET", SYSTEMS, accept=(200, *MISSING))
    members = read_members(bmc, SYSTEMS, key="Links") if response.status == 200 else []
    found = [BodyPart(each.place.rstrip("/"), each.content) for each in members]
    whole = [each for each in found if each.content.get("Bios") is not None] or found
    own = [each for each in found if each.place.rpartition("/")[2] == host.system]
    bodies = own if host.system else whole
    systems = bodies if len(bodies) == 1 else []
    if systems == whole:
        systems = [*systems, *(each for each in found if each not in whole)]
    others = [each for each in whole if each not in systems]
    return systems, _chassis_of(bmc, host, systems, others)


def _chassis_of(
    bmc: RedfishConnection, host: Host, systems: list[BodyPart], others: list[BodyPart]
) -> Iterator[list[BodyPart]]:
    """Yield the chassis of a node: those to which it links, then those that link to it.

    A chassis that several nodes share has the figures of none of them. A BMC without links is read
    only if all of its chassis are those of one node.

    Args:
        systems: the system of the node and its parts; empty if it is not known.

    Raises:
        NodeError: UNEXPECTED: the BMC has several systems, and does not state which is the node's.
    """
    own = {each.place for each in systems}
    foreign = {each.place for each in others}
    taken = set()
    for each in others:
        taken.update(_paths(each.part("Links").items("Chassis")))
    read: dict[str, BodyPart] = {}
    for system in systems[:1]:
        for path in _paths(system.part("Links").items("Chassis")):
            read[path] = _body(bmc, path)
    linked = [
        each
        for path, each in read.items()
        if each.content and path not in taken and not foreign & _systems_of(each)
    ]
    if linked:
        yield linked
    listed = read_members(bmc, CHASSIS, key="ChassisType")
    chassis = [each for each in listed if each.place.rstrip("/") not in read]
    of_system = [
        each for each in chassis if own & _systems_of(each) and not foreign & _systems_of(each)
    ]
    if of_system:
        yield of_system
    if linked or of_system:
        return
    if named := [each for each in chassis if host.system and each.text("Id") == host.system]:
        yield named
        return
    nodes = [each for each in chassis if each.text("ChassisType") in NODES]
    if others or (not own and len(nodes) > 1):
        text = f"the BMC has {len(own) + len(others)} systems and {len(nodes)} chassis of nodes"
        add = f"{text}, and no link says which are those of {host.node}: set firmware.system"
        raise NodeError(Outcome.UNEXPECTED, add)
    yield chassis


def _systems_of(chassis: BodyPart) -> set[str]:
    return set(_paths(chassis.part("Links").items("ComputerSystems")))


def _power(body: BodyPart) -> float | None:
    items = body.items("PowerControl")
    values = _numbers(items, "PowerConsumedWatts", POWER, lambda item: _context(item) in WHOLE)
    return next(iter(values), None)


def _hottest(items: list[BodyPart], key: str) -> float | None:
    # On a DGX, AMI's firmware gives each sensor the context Intake. Others give none. Then only the
    # names differ.
    named = len(items) > 1 and len({*map(_context, items)}) == 1

    def of_processor(item: BodyPart) -> bool:
        known = _context(item) in PROCESSOR
        return known or (named and bool(OF_PROCESSOR.search(item.text("Name"))))

    return max(_numbers(items, key, TEMPERATURE, of_processor), default=None)


def _context(item: BodyPart) -> str:
    return f"{item.content.get('PhysicalContext') or ''}"


def _numbers(
    items: list[BodyPart], key: str, quantity: str, counts: Callable[[BodyPart], bool]
) -> list[float]:
    """Return the values of the sensors that count; one of another form measures nothing."""
    values: list[float] = []
    for item in items:
        with suppress(NodeError):
            value = _number(item, key, quantity) if counts(item) else None
            values += [] if value is None else [value]
    return values


def _sensor(body: BodyPart) -> float | None:
    """Return the value of a sensor; None for the distance to a limit.

    A limit below and none above belongs to a distance: a processor cannot be too cold.
    """
    limits = [
        name
        for name, value in body.part("Thresholds").content.items()
        if isinstance(value, dict) and value.get("Reading") is not None
    ]
    below = bool(limits) and all(name.startswith("Lower") for name in limits)
    distance = body.text("ReadingBasis") in DISTANCES or DISTANCE_NAME in body.text("Id")
    return None if below or distance else _number(body, "Reading", TEMPERATURE)


_READERS: dict[str, Callable[[BodyPart], float | None]] = {
    "PowerWatts": lambda body: _number(body.part("PowerWatts"), "Reading", POWER),
    "Power": _power,
    "Sensor": _sensor,
    "ThermalMetrics": lambda body: _hottest(body.items("TemperatureReadingsCelsius"), "Reading"),
    "Thermal": lambda body: _hottest(body.items("Temperatures"), "ReadingCelsius"),
    "TemperatureCelsius": lambda body: _number(
        body.part("TemperatureCelsius"), "Reading", TEMPERATURE
    ),
}


def _number(part: BodyPart, key: str, quantity: str) -> float | None:
    """Return the value of a sensor; None if it measures nothing, as one of a BMC's marks for that.

    A node that answers takes power: 0 W is no measurement. 0 °C is none either. Some BMCs send a
    number as a text.
    """
    value = part.content.get(key)
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        value = float(value)
    if part.part("Status").text("State") not in MEASURES or not isinstance(value, (int, float)):
        return None
    low, high = LIMITS[quantity]
    known = low <= value <= high and value != ALL_ONES and not isinstance(value, bool)
    return float(value) or None if known else None


EVERY_S = 60.0
WAIT_S = 0.5
NODES_OF_A_LOOK = 1000
"""For each further thousand nodes the pause between two looks is as long again."""


def arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to `parser`."""
    run_argument(parser)
    site_arguments(parser)
    credentials_argument(parser)
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--once", action="store_true", help="read once, also if the run does not run")
    when.add_argument(
        "--until-stopped",
        action="store_true",
        help="wait for the run and read while it runs, until a signal; a playbook uses it",
    )


def run(options: Namespace) -> int:
    """Read the sensors of the BMCs of a run every minute until the run ends; return 0.

    A BMC that fails is only counted. With ``--until-stopped``, a partition without Redfish BMCs and
    missing credentials are no errors: a line is printed.

    Raises:
        BadInput: the partition has no Redfish BMCs, or the credentials cannot be used.
    """
    opened = open_run(options.folder)
    # The addresses of the BMCs get a password. The inventory has those of today, and not the run.
    site = site_of_run(options, opened)
    firmware = firmware_of(site)
    given = credentials_of(options)
    if firmware.back_end != "redfish":
        found = f"back_end {firmware.back_end}"
        if options.until_stopped:
            say(f"BMCs: no figures of power and temperature: {found}")
            return 0
        raise bad_input(site.facts, "partition.firmware.back_end", found, "redfish")
    if options.until_stopped and not given.user:
        say("BMCs: no figures of power and temperature: no user of the BMCs is given")
        return 0
    settings = ConnectionSettings(
        tls_context(firmware.ca, verify=firmware.verify_tls),
        firmware.port,
        given,
        firmware.timeout_s,
        1,
        firmware.auth == "session",
    )
    sensors = BmcSensors(ConnectionPool(settings))
    nodes = set(opened.plan.nodes())
    hosts = [host for node, host in hosts_of(site, firmware).items() if node in nodes]
    answered = -1
    for begin in _times(opened, EVERY_S * -(-len(hosts) // NODES_OF_A_LOOK), options):
        good, bad = split(fan_out(hosts, sensors.read, firmware.max_parallel))
        failed = Counter(str(failure.outcome.name) for failure in bad.values())
        values = {host.node: value for host, value in good.items()}
        whole = append_look(opened.files, begin, values, dict(failed))
        if len(good) != answered or not whole:
            answered = len(good)
            note = "" if whole else "; the file is full"
            say(f"BMCs: {answered} of {len(hosts)} answered{note}")
        if not whole:
            break
    return 0


def _times(run: Run, pause: float, options: Namespace) -> Iterator[float]:
    """Yield the time of each look."""
    if options.once:
        yield time.time()
        return
    due = 0.0
    while (runs := is_locked(run.folder)) or options.until_stopped:
        if runs and time.time() >= due:
            due = time.time() + pause
            yield due - pause
        time.sleep(WAIT_S)


COMMANDS = {
    "telemetry": Command(
        run,
        "telemetry runs/latest-nurion -i inventory/nurion --credentials -",
        arguments,
    )
}


def append_look(
    files: RunFiles,
    time: float,
    nodes: Mapping[str, Mapping[str, float]],
    failed: Mapping[str, int],
) -> bool:
    """Add one look; return False if the file is full.

    Raises:
        BadInput: the file is a link, is not a regular file, or cannot be opened.
    """
    line = json.dumps({"time": round(time), "nodes": nodes, "failed": failed}, sort_keys=True)
    files.bmc_telemetry.parent.mkdir(exist_ok=True)
    with open_to_append(files.bmc_telemetry) as file:
        if file.tell() + len(line) >= MAX_BMC_BYTES:
            return False
        file.write(f"{line}\n")
    return True
