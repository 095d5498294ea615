"""Fits figures of the model of a twin to the messages between two ranks of a real run.

The time of a message of n bytes in the model is its latency + n ÷ rate. The latency of a short
message contains the MPI library on both sides; that of a message with a rendezvous does not.
`one_way_s` is this formula; SimGrid has the same times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from proofmark.common.message import Message
from proofmark.common.text import measure
from proofmark.packages.twin.twin_files import (
    Distance,
    MeasuredFigures,
    ModelFit,
    Point,
    TwinFigure,
)
from proofmark.packages.twin.twin_model import (
    LINE_BYTES,
    READ_AND_WRITTEN,
    SWITCH_S,
    Bus,
    Interconnect,
    SourcedValue,
    copy_rate,
)
from proofmark.site.node.topology import Topology

SMALLEST_BYTES = 8
"""Messages up to this size have the latency. The first size of a program alone also contains the
set-up of its connection."""
LARGEST = 3
"""The number of sizes whose median is the rate."""
BUFFERS = 4
"""The buffers of a PingPong: each rank sends one and receives one."""
PASSES = 3
"""The short messages of a few bytes need the rate, and the rate needs their latency."""
ONE_WAY = {("PingPong", "t_avg"), ("Latency", "latency")}
"""The benchmarks of IMB and OSU whose metric is the time of one message."""
STREAMS = {("Uniband", "bandwidth"), ("Multiple Bandwidth / Message Rate", "bandwidth")}
"""The benchmarks of IMB and OSU whose metric is the rate of the messages of all pairs."""


@dataclass(frozen=True)
class FittedLine:
    """Messages of one distance: their latency in seconds, and their rate in bytes/s or None."""

    latency_s: float
    rate: float | None


def one_way_s(known: Interconnect, size: float, hop_s: float = 0.0) -> float:
    """Return the time of a message of `size` bytes between two cores, in seconds.

    Args:
        hop_s: the latency of the link between their sockets; 0 inside a socket.
    """
    line_s = known.line_s.value + hop_s
    rate = copy_rate(known, line_s)
    if hop_s:
        rate = min(rate, known.socket.bytes_per_s.value)
    sides = 0 if size >= known.eager_bytes.value else 2
    return sides * known.software_s.value + line_s + size / rate


def fit(measured: MeasuredFigures, known: Interconnect, cache: float) -> ModelFit:
    """Return the figures of the model that follow from the messages between two ranks of a run.

    Inside a socket, the latency gives the time in the MPI library, and the rate gives the cache
    lines in flight: the time of a cache line is that of the table. Messages between two sockets
    give the time of a cache line too, from the ratio of both rates.

    Args:
        cache: the bytes of the last cache of a core; 0 if they are not known.
    """
    messages = [each for each in measured.figures if (each.benchmark, each.metric) in ONE_WAY]
    used: dict[Point, None] = {}
    near = _line(messages, "socket", known, cache, used)
    if near is None:
        return ModelFit(run=measured.run, notes=(Message("fit-no-pingpong"),))
    far = _line(messages, "other-socket", known, cache, used)
    of_node, notes = _of_node(near, far, known)
    fitted = ModelFit(run=measured.run, **of_node)
    between, more = _between_nodes(measured, calibrated(known, fitted), used)
    update = {**between, "points": tuple(used), "notes": (*notes, *more)}
    return fitted.model_copy(update=update)


def cache_bytes(topology: Topology) -> int:
    """Return the size of the last cache of a core; 0 if the topology has no caches."""
    last = max((cache.level for cache in topology.caches), default=0)
    return min((cache.bytes for cache in topology.caches if cache.level == last), default=0)


def calibrated(known: Interconnect, fitted: ModelFit) -> Interconnect:
    """Return `known` with the fitted figures in place of its own."""

    def new(old: SourcedValue, value: float | None) -> SourcedValue:
        return old if value is None else SourcedValue(value=value, source=fitted.source)

    socket = Bus(
        latency_s=new(known.socket.latency_s, fitted.socket_latency_s),
        bytes_per_s=new(known.socket.bytes_per_s, fitted.socket_bytes_per_s),
    )
    adapter = known.adapter
    if (fitted.link_bytes_per_s or 0.0) > adapter.bytes_per_s.value:
        faster = new(adapter.bytes_per_s, fitted.link_bytes_per_s)
        adapter = adapter.model_copy(update={"bytes_per_s": faster})
    update = {
        "line_s": new(known.line_s, fitted.line_s),
        "lines_in_flight": new(known.lines_in_flight, fitted.lines_in_flight),
        "software_s": new(known.software_s, fitted.software_s),
        "socket": socket,
        "adapter": adapter,
    }
    return known.model_copy(update=update)


def _of_node(
    near: FittedLine, far: FittedLine | None, known: Interconnect
) -> tuple[Mapping[str, float], tuple[Message, ...]]:
    """Return the fitted figures of the links inside a node, and notes about the fit."""
    line_s = known.line_s.value
    notes: list[Message] = []
    found: dict[str, float] = {}
    if far:
        measured_hop_s = far.latency_s - near.latency_s
        slower = near.rate / far.rate if near.rate and far.rate else 0.0
        if measured_hop_s > 0 and slower > 1 and measured_hop_s / (slower - 1) < near.latency_s:
            line_s = measured_hop_s / (slower - 1)
            found |= {"line_s": line_s, "socket_latency_s": measured_hop_s}
        else:
            notes.append(Message("fit-like-sockets"))
        if far.rate and far.rate > known.socket.bytes_per_s.value:
            found["socket_bytes_per_s"] = far.rate
    if line_s >= near.latency_s:
        # A message needs at least one cache line: half of its latency is in the library.
        line_s = found["line_s"] = near.latency_s / 2
    found["software_s"] = (near.latency_s - line_s) / 2
    if near.rate:
        found["lines_in_flight"] = near.rate * line_s * READ_AND_WRITTEN / LINE_BYTES
    else:
        notes.append(Message("fit-no-rate"))
    return found, tuple(notes)


def _between_nodes(
    measured: MeasuredFigures, known: Interconnect, used: dict[Point, None]
) -> tuple[Mapping[str, float], tuple[Message, ...]]:
    """Return the fitted figures of the fabric, and notes about the fit."""
    messages = [each for each in measured.figures if (each.benchmark, each.metric) in ONE_WAY]
    far = [each for each in messages if each.distance == "node"]
    inside_s = 2 * known.software_s.value + known.line_s.value
    short = [each for each in far if _size(each) <= SMALLEST_BYTES]
    found: dict[str, float] = {}
    notes: list[Message] = []
    start_s = inside_s
    if short:
        start_s = latency_s = median(_si(each) - 2 * SWITCH_S * each.levels for each in short)
        adapters_s = latency_s - inside_s - 2 * known.adapter.latency_s.value
        if adapters_s > 0:
            found["adapters_s"] = adapters_s
            used.update(dict.fromkeys(each.point for each in short))
        else:
            notes += [Message("fit-fast-message"), Message("fit-no-latency")]
    rates = dict(_rates(far, lambda _: start_s - 2 * known.software_s.value, known))
    streams = [
        each
        for each in measured.figures
        if (each.benchmark, each.metric) in STREAMS and each.distance == "node"
    ]
    largest = sorted(streams, key=_size)[-1:]
    if largest or rates:
        # Several pairs fill a link; one message at a time need not.
        found["link_bytes_per_s"] = _si(largest[0]) if largest else median(rates.values())
        used.update(dict.fromkeys([each.point for each in largest] or rates))
    return found, tuple(notes)


def _line(
    messages: Iterable[TwinFigure],
    distance: Distance,
    known: Interconnect,
    cache: float,
    used: dict[Point, None],
) -> FittedLine | None:
    """Return latency and rate of the messages with `distance`, and add their points to `used`.

    The latency is the median of the smallest sizes. The rate is the median of the largest sizes
    that fit into the cache. None if there is no short message.
    """
    chosen = [each for each in messages if each.distance == distance]
    short = [each for each in chosen if _size(each) <= SMALLEST_BYTES]
    if not short:
        return None
    fitting = [each for each in chosen if not cache or BUFFERS * _size(each) <= cache]
    slowness, rates = 0.0, dict[Point, float]()
    for _ in range(PASSES):
        latency_s = median(_si(each) - slowness * _size(each) for each in short)
        start_s = _start_s(latency_s, min(known.line_s.value, latency_s / 2), known)
        rates = dict(_rates(fitting, start_s, known))
        slowness = 1 / median(rates.values()) if rates else 0.0
    used.update(dict.fromkeys([*(each.point for each in short), *rates]))
    return FittedLine(latency_s, 1 / slowness if slowness else None)


def _start_s(latency_s: float, line_s: float, known: Interconnect) -> Callable[[float], float]:
    """Return a function from the size of a message to its latency."""
    return lambda size: latency_s if size < known.eager_bytes.value else line_s


def _rates(
    messages: Sequence[TwinFigure], start_s: Callable[[float], float], known: Interconnect
) -> Iterator[tuple[Point, float]]:
    """Yield the rate of each of the largest messages, with its point."""
    large = [each for each in messages if _size(each) >= known.eager_bytes.value]
    for each in sorted(large, key=_size)[-LARGEST:]:
        seconds = _si(each) - start_s(_size(each))
        if seconds > 0:
            yield each.point, _size(each) / seconds


def _size(figure: TwinFigure) -> float:
    return float(figure.parameters.get("bytes", 0))


def _si(figure: TwinFigure) -> float:
    """Return the value of a figure in its SI unit: seconds or bytes/s."""
    return figure.value * measure(figure.unit)[1]
