"""The judges of nodes: each yields the faults of nodes that no figure has.

The rails of a node can be missing, down or slow. The parts of a node can be unlike: NUMA domains,
sockets and rails. A dead memory channel of 24 takes 4 % of the bandwidth of a node, and a third of
the bandwidth of a domain with three channels. The parts of one node are alike, so that no other
node is needed. Two names can be one machine, and results can be too good for a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median, multimode

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import ALL_RAILS, DOMAIN, PART_AXES, RAIL
from proofmark.common.files import moment_of
from proofmark.common.grouping import gathered
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of, hosts_of_nodes
from proofmark.common.text import whole_number
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.change_limits import compared_metric
from proofmark.judge.diagnosis.copied_outputs import copied_outputs
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.critical_values import LEAST_NODES as LEAST_LIKE_NODES
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.fleet.populations import LIKE_NODES
from proofmark.judge.references.derived import active_ports
from proofmark.judge.references.judgement import ByReference
from proofmark.judge.stated_parts import NodeFaults, Statements, ordered_hardware, part_faults
from proofmark.records.columns import VIRTUAL, Record
from proofmark.runs.nodes import Node, ProbedNodes
from proofmark.site.hardware_limits import lanes_of, pcie_bytes_per_s, port_bound
from proofmark.site.installed_parts import LEAST_NODES, RATE_TOLERANCE, Parts, declared_parts
from proofmark.site.node.counters import CounterChange, ErrorRule, bits_per_s, meaning_of, rule_of
from proofmark.site.node.facts import HostFacts, NodeFacts
from proofmark.site.node.provenance import NodeProvenance
from proofmark.site.rails import Rail, name_of, rails_of


def rail_faults(nodes: HostFacts, declared: Parts, hardware: Mapping[str, str]) -> NodeFaults:
    """Return the faults of the rails of each node.

    A rail must be there if the inventory names it. If nothing is declared, a rail must be there if
    most like nodes have it active, and a card without an active port is down if
    another card of the same model is active. A port with a link waits for the subnet manager until
    it is active. A slot that is slower than that of almost all like nodes is a fault.
    """
    alike: dict[str, dict[str, dict[str, Rail]]] = {}
    for host, facts in nodes.items():
        alike.setdefault(hardware[host], {})[host] = rails_of(facts)
    found: dict[str, tuple[Message, ...]] = {}
    named = dict(zip(declared.adapters or (), declared.rails or (), strict=False))
    for group in alike.values():
        usual = {} if named or declared.rails else _usual(group)
        slots = _usual_slots(group)
        for host, rails in group.items():
            if declared.rails:
                needed = named or _short(rails, declared.rails)
            else:
                needed = _like_cards(rails) | usual
            needed = _without_manager(rails) | needed
            if faults := (*_faults(rails, needed), *_slow_slots(rails, slots)):
                found[host] = faults
    return found


def _usual_slots(group: Mapping[str, Mapping[str, Rail]]) -> dict[str, str]:
    """Return the link of the slot of each rail that more than half of the nodes reach.

    It is empty if fewer than `LEAST_NODES` nodes have the rail.
    """
    every = chain.from_iterable(rails.items() for rails in group.values())
    links = gathered((name, rail.link) for name, rail in every)
    found = {}
    for name, each in links.items():
        each.sort(key=lambda link: pcie_bytes_per_s(link) or 0, reverse=True)
        found[name] = each[len(each) // 2] if len(each) >= LEAST_NODES else ""
    return found


def _slow_slots(rails: Mapping[str, Rail], usual: Mapping[str, str]) -> Iterator[Message]:
    """Yield the rails whose slot carries less than that of most nodes."""
    for name, rail in rails.items():
        own, least = (pcie_bytes_per_s(text) for text in (rail.link, usual[name]))
        if own and least and own < (1 - RATE_TOLERANCE) * least:
            yield Message("rail-slot", rail=name, found=rail.link, accepted=usual[name])


_NARROW = re.compile(r"\(1X |SDR\)")
"""The rate of a port of InfiniBand that has one of its lanes, or none of the faster speeds. Errors
of a cable leave it so."""


def narrow_slots(nodes: HostFacts) -> Iterator[Message]:
    """Yield slots and ports that give less than their card can have. A limit of them hides this.

    Fewer lanes count always; a lower speed of a slot counts if the port is faster.
    """
    narrow: dict[Message, list[str]] = {}
    for host, facts in nodes.items():
        for port in active_ports(facts):
            found, best = port.link or "", port.link_best or ""
            gives, could = (pcie_bytes_per_s(text) or 0.0 for text in (found, best))
            bound = port_bound(port.rate or "", port.layer) or 0.0
            if lanes_of(found) < lanes_of(best) or 0 < gives < min(could, bound):
                message = Message("slot-narrow", port=name_of(port), found=found, accepted=best)
                narrow.setdefault(message, []).append(host)
            if port.layer == "InfiniBand" and _NARROW.search(port.rate or ""):
                message = Message("port-narrow", port=name_of(port), found=port.rate or "")
                narrow.setdefault(message, []).append(host)
    for message, hosts in narrow.items():
        key = "partition.node.rails.rate"
        yield Message("slot-narrow-on", nodes=folded(hosts), text=message, key=key)


def _usual(group: Mapping[str, Mapping[str, Rail]]) -> dict[str, float]:
    every = chain.from_iterable(rails.items() for rails in group.values())
    rates = gathered((name, rail.gbit_per_s) for name, rail in every if rail.active)
    return {
        # Of equally frequent rates the fastest is usual: the slower rails are then named.
        name: max(multimode(of))
        for name, of in rates.items()
        if 2 * len(of) > len(group) >= LEAST_NODES
    }


def _short(rails: Mapping[str, Rail], rates: Sequence[float]) -> dict[str, float]:
    """Return all rails of a node with too few or too slow rails, with the declared rate."""
    good = sum(rail.active and not _slow(rail, rates[0]) for rail in rails.values())
    return dict.fromkeys(rails, rates[0]) if good < len(rates) else {}


def _like_cards(rails: Mapping[str, Rail]) -> dict[str, float]:
    """Return the rails of cards without an active port, of the model of a card that has one."""
    working = {rail.card for rail in rails.values() if rail.is_fabric and rail.card[0]}
    models = {model for model, _ in working}
    return {
        name: 0.0
        for name, rail in rails.items()
        if rail.card[1] and rail.card[0] in models and rail.card not in working
    }


def _without_manager(rails: Mapping[str, Rail]) -> dict[str, float]:
    """Return the ports that have a link, and that no subnet manager has made active."""
    waiting = ("INIT", "ARMED")
    return {name: 0.0 for name, rail in rails.items() if rail.state.endswith(waiting)}


def _slow(rail: Rail, rate: float) -> bool:
    return 0 < rail.gbit_per_s < (1 - RATE_TOLERANCE) * rate


def _faults(rails: Mapping[str, Rail], needed: Mapping[str, float]) -> Iterator[Message]:
    for name, rate in needed.items():
        rail = rails.get(name)
        numa = "–" if rail is None or rail.numa is None else f"{rail.numa}"
        if rail is None:
            yield Message("rail-missing", rail=name)
        elif not rail.active:
            yield Message("rail-down", rail=name, numa=numa, state=rail.state or "–")
        elif _slow(rail, rate):
            rates = {"found": f"{rail.gbit_per_s:g}", "accepted": f"{rate:g}"}
            yield Message("rail-slow", rail=name, numa=numa, **rates)


LEAST_PAIRS = 2
"""The node alone is named if at least this number of its pairs is slow on a rail."""
LEAST_RATIOS, SPREADS = 6, 6
"""A slow part is below the others by more than `SPREADS` standard deviations, if the spread of the
parts of all nodes is known from at least `LEAST_RATIOS` of them."""
NORMAL = 1.4826
"""The standard deviation ÷ the median absolute deviation of a normal distribution."""
LEAST_PEERS = 4
"""The least number of figures of one rail that show what is usual for this rail."""


@dataclass(frozen=True)
class _Figure:
    """A figure of a part.

    `alike` has its traits without the node and the part. `better` and `middle` are the best of its
    values and their middle, as rates: a time is the reciprocal of one.
    """

    record: Record
    part: str
    better: float
    middle: float
    alike: tuple[object, ...]


def unlike_parts(figures: Aggregates, benchmarks: Benchmarks) -> NodeFaults:
    """Return the slow parts of each node.

    All values of a slow part are worse than the median of the like parts of the same node, by more
    than the material change of the metric and the spread of such parts. A rail that is as slow on
    most nodes is usual. A rail is slow on a node if it is slow in all of its pairs; if a pair is
    the only one of both nodes, both are named.
    """
    slow: dict[tuple[str, str, str], dict[str, Message]] = {}
    pairs: dict[tuple[str, str, str], set[str]] = {}
    for each, message in _compared(figures, benchmarks):
        for host in hosts_of(each.record.node):
            key = (host, each.record.case, each.part)
            pairs.setdefault(key, set()).add(each.record.node)
            if message:
                slow.setdefault(key, {}).setdefault(each.record.node, message)
    accused = [key for key, of in slow.items() if of.keys() == pairs[key]]
    sure = {key for key in accused if len(pairs[key]) >= LEAST_PAIRS}
    found: dict[str, list[Message]] = {}
    for key in accused:
        host, *what = key
        others = set(hosts_of_nodes(pairs[key])) - {host}
        # The other end of all of its slow pairs explains them.
        if key in sure or not any((other, *what) in sure for other in others):
            found.setdefault(host, []).append(next(iter(slow[key].values())))
    return {host: tuple(dict.fromkeys(messages)) for host, messages in found.items()}


def _compared(
    figures: Aggregates, benchmarks: Benchmarks
) -> Iterator[tuple[_Figure, Message | None]]:
    pools = gathered((each.alike, each) for each in _of_parts(figures, benchmarks))
    for pool in pools.values():
        about = compared_metric(benchmarks, pool[0].record.case, pool[0].record.metric)
        of_node = gathered((each.record.node, each) for each in pool)
        of_part = gathered((each.part, each.middle) for each in pool)
        compared, usual = list[_Figure](), list[float]()
        for each in pool:
            rest = [one.middle for one in of_node[each.record.node] if one is not each]
            if rest:
                compared.append(each)
                usual.append(median(rest))
        ratios = np.array([each.middle for each in compared]) / usual
        spread = NORMAL * float(np.median(abs(ratios - np.median(ratios)))) if compared else 0.0
        noise = SPREADS * spread if len(compared) >= LEAST_RATIOS else 0.0
        least = 1 - max(about.material_change if about else 1.0, noise)
        for each, middle in zip(compared, usual, strict=True):
            peers = of_part[each.part] if RAIL in each.record.parameters else []
            typical = len(peers) >= LEAST_PEERS and each.better >= least * median(peers)
            ratio, others = each.better / middle, len(of_node[each.record.node]) - 1
            yield each, _message(each, ratio, others) if ratio < least and not typical else None


def _of_parts(figures: Aggregates, benchmarks: Benchmarks) -> Iterator[_Figure]:
    measurands = figures.records.measurands
    chosen = [any(f'"{axis}"' in each.parameters for axis in PART_AXES) for each in measurands]
    least, greatest = figures.ranges
    mask = figures.valid & np.array(chosen, dtype=bool)[figures.measurand] & (least > 0)
    for figure in np.flatnonzero(mask).tolist():
        record = figures.record(figure)
        axis = DOMAIN if DOMAIN in record.parameters else RAIL
        part = str(record.parameters.get(axis, ""))
        about = compared_metric(benchmarks, record.case, record.metric)
        if about is None or part in ("", ALL_RAILS):
            continue
        low, high = float(least[figure]), float(greatest[figure])
        rates = (1 / low, 1 / high) if about.better == "lower" else (low, high)
        # Domains may have different numbers of cores.
        dropped = {*PART_AXES, "threads", "ranks", "pairs"}
        rest = sorted((k, v) for k, v in record.parameters.items() if k not in dropped)
        kind = part.partition("-")[0] if axis == DOMAIN else RAIL
        names = (record.case, record.benchmark, record.metric, record.mode, record.placement)
        yield _Figure(
            record=record,
            part=part,
            better=max(rates),
            middle=sum(rates) / 2,
            alike=(*names, kind, *rest),
        )


def _message(figure: _Figure, ratio: float, others: int) -> Message:
    kind, _, number = figure.part.partition("-")
    code = {"numa": "place-numa", "socket": "place-socket"}.get(kind, "place-rail")
    return Message(
        "part-slow",
        part=Message(code, number=number if DOMAIN in figure.record.parameters else figure.part),
        case=figure.record.case,
        metric=figure.record.metric,
        ratio=f"{ratio:.2g}",
        others=others,
    )


def error_faults(nodes: ProbedNodes) -> NodeFaults:
    """Return the errors of each node that are more than its rules accept, in all of its jobs."""
    found = {host: (*_before(node), *_during(node)) for host, node in nodes.items()}
    return {host: messages for host, messages in found.items() if messages}


def _during(node: Node) -> Iterator[Message]:
    """Yield the counters that rose too much while jobs ran."""
    jobs = [job.provenance for job in node.jobs]
    first: dict[str, tuple[CounterChange, NodeProvenance]] = {}
    events: dict[str, int] = {}
    for job in jobs:
        for change in job.changes:
            rule = rule_of(change.name)
            if rule is not None and (rise := _events(rule, change)) > 0:
                first.setdefault(change.name, (change, job))
                events[change.name] = events.get(change.name, 0) + rise
    hours = sum(map(_hours, jobs)) if first else 0.0
    for name, (change, job) in first.items():
        rule = rule_of(name)
        assert rule is not None
        limit = rule.limit(hours, bits_per_s(name, job.facts, job.before.values))
        if events[name] > limit:
            total = change if rule.falls else change.model_copy(update={"difference": events[name]})
            yield Message(
                "errors-judged",
                text=total.message,
                hours=f"{hours:.2g}",
                allowed=f"{limit:.0f}",
                source=rule.source,
            )


def _events(rule: ErrorRule, change: CounterChange) -> int:
    """Return the number of errors; 0 if the counter was reset or is gone."""
    if not rule.falls:
        return change.difference or 0
    before, after = whole_number(change.before), whole_number(change.after)
    return 0 if before is None or after is None else before - after


def _hours(job: NodeProvenance) -> float:
    """Return the time between the two readings of a job."""
    if job.after is None:
        return 0.0
    took = moment_of(job.after.date) - moment_of(job.before.date)
    return max(0.0, took.total_seconds() / 3600)


def _before(node: Node) -> Iterator[Message]:
    """Yield the counters that were too high before the first job, since the node started."""
    if not node.jobs:
        return
    reading = node.jobs[0].provenance.before
    for name, value in reading.values.items():
        rule = rule_of(name)
        count = whole_number(value)
        if rule is None or not rule.before or count is None:
            continue
        if reading.uptime_s is None and rule.hours:
            continue  # a number without a time is no rate
        hours = (reading.uptime_s or 0.0) / 3600
        if count > (limit := rule.limit(hours, 0.0)):
            place = reading.places.get(name.rpartition("/")[0], "")
            yield Message(
                "errors-before",
                text=meaning_of(name),
                counter=f"{name} {place}".strip(),
                found=int(value),
                hours=f"{hours:.2g}" if reading.uptime_s else "?",
                allowed=f"{limit:.0f}",
                source=rule.source,
            )


def node_faults(
    evidence: Evidence, stated: Mapping[str, Statements], fleet: Fleet, judged: ByReference
) -> Iterator[NodeFaults]:
    """Yield what each judge finds."""
    figures, benchmarks, facts = evidence.figures, evidence.benchmarks, evidence.facts
    yield part_faults(facts, stated)
    yield rail_faults(facts, declared_parts(evidence.node), ordered_hardware(facts, stated))
    yield unlike_parts(figures, benchmarks)
    yield error_faults(evidence.probes)
    yield same_machines(facts, min(evidence.origins, default=""))
    yield copied_outputs(evidence.records, benchmarks)
    yield from evidence.faults
    yield too_good(figures, benchmarks, fleet, judged)
    yield above_nominal(figures, judged)


TOO_GOOD = 1.5
"""A node that is this much better than the median of its peers is not like them."""
CERTAIN = 6.0
"""Its distance from the median in spreads (MAD × 1.4826), to which better nodes add little."""
ABOVE_NOMINAL = 1.05
"""Memory bandwidth ÷ that of its modules. At most a twelfth of the arrays is in the caches."""
OWN, OF_CHASSIS = "board_serial", "product_serial"
"""Keys of SMBIOS: the number of the board of one node; one that nodes of a chassis can share."""
PLACEHOLDERS = frozenset(
    {
        *("", "none", "not specified", "unknown", "n/a", "na", "empty", "oem", "invalid"),
        *("to be filled by o.e.m.", "default string", "system serial number", "serial number"),
        *("base board serial number", "chassis serial number", "0123456789", "123456789"),
        *("1234567890", "not available", "not applicable"),
    }
)
"""Numbers that firmware prints in place of a serial number."""


def same_machines(nodes: HostFacts, origin: str) -> NodeFaults:
    """Return the nodes that are one machine with another node.

    They have one boot id, one number of a board, or one product number that nothing else tells
    apart: nodes of one chassis share it, and have boards and boots of their own. Virtual nodes of
    one machine share all of them.
    """
    found: dict[str, list[Message]] = {}
    sharing = {} if origin in VIRTUAL else gathered(_identities(nodes))
    for (key, value, *_), hosts in sharing.items():
        for host in hosts if len(hosts) > 1 else ():
            message = Message("same-machine", key=key, value=value, nodes=folded(hosts))
            found.setdefault(host, []).append(message)
    return found


def _identities(nodes: HostFacts) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what belongs to one machine, and the node that has it.

    It is a key, its value, and what must be equal as well.
    """
    for host, facts in nodes.items():
        boot = "" if facts.container else facts.boot_id or ""
        board, product = (serial_of(facts, key) for key in (OWN, OF_CHASSIS))
        if boot:
            yield ("boot_id", boot), host
        if board:
            yield (OWN, board), host
        if product and product != facts.firmware.get("chassis_serial"):
            yield (OF_CHASSIS, product, board, boot), host


def serial_of(facts: NodeFacts, key: str = OWN) -> str:
    """Return a serial number of SMBIOS; empty if the firmware prints none of its own."""
    value = facts.firmware.get(key, "").strip()
    return value if value.lower() not in PLACEHOLDERS and len(set(value)) > 1 else ""


def _within_expected(judged: ByReference) -> set[int]:
    """Return the figures that are not above a value that was computed from the hardware."""
    figures: set[int] = set()
    for each, judgements in judged.items():
        if each.reference.rule:
            figures |= {at for at, one in judgements if one.ratio is not None and one.ratio <= 1}
    return figures


def too_good(
    figures: Aggregates, benchmarks: Benchmarks, fleet: Fleet, judged: ByReference
) -> NodeFaults:
    """Return the nodes with a rate far above that of their peers, and above what is expected.

    Rates of storage are left out: the load of others decides on them. So are those of virtual
    nodes, which share the cores of one machine.
    """
    found: dict[str, list[Message]] = {}
    possible = _within_expected(judged)
    for at, of in enumerate(fleet.figures):
        limit = of.fleet_limit
        storage = benchmarks.case(of.record.case).writes is not None
        # A fleet whose spread hides a slow node can have one that is too good.
        few = limit.nodes < LEAST_LIKE_NODES or limit.centre <= 0 or of.record.origin in VIRTUAL
        if few or of.better != "higher" or of.members != LIKE_NODES or storage:
            continue
        ratios = fleet.median[fleet.of == at] / limit.centre
        least = max(TOO_GOOD - 1, CERTAIN * NORMAL * float(np.median(np.abs(ratios - 1))))
        for figure in np.flatnonzero(fleet.of == at)[ratios > 1 + least].tolist():
            if figure in possible:
                continue
            ratio = float(fleet.median[figure]) / limit.centre
            name = of.reason("too-good", ratio, metric=f"{of.record.case} {of.record.metric}")
            for host in hosts_of(figures.node_of(figure)):
                found.setdefault(host, []).append(name)
    return found


def above_nominal(figures: Aggregates, judged: ByReference) -> NodeFaults:
    """Return the nodes whose memory is faster than its modules."""
    found: dict[str, tuple[Message, ...]] = {}
    for each, judgements in judged.items():
        if each.reference.rule != "memory_bandwidth":
            continue
        for figure, judgement in judgements:
            if judgement.ratio is not None and judgement.ratio > ABOVE_NOMINAL:
                message = Message(
                    "above-nominal",
                    metric=f"{each.case} {each.reference.metric}",
                    ratio=f"{judgement.ratio:.3g}",
                    source=judgement.source,
                )
                for host in hosts_of(figures.node_of(figure)):
                    found[host] = (message,)
    return found
