"""The rails of a node that are missing, down or slow, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import multimode

from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.judge.references.derived import active_ports
from proofmark.site.hardware_limits import lanes_of, pcie_bytes_per_s
from proofmark.site.installed_parts import LEAST_NODES, RATE_TOLERANCE, Parts, commonest
from proofmark.site.message_ports import name_of
from proofmark.site.node.facts import NodeFacts
from proofmark.site.rails import Rail, rails_of


def rail_faults(
    nodes: Mapping[str, NodeFacts], declared: Parts, hardware: Mapping[str, str]
) -> dict[str, tuple[Message, ...]]:
    """Return the faults of the rails of each node.

    A rail must be there if the inventory names it. If nothing is declared, a rail must be there if
    most like nodes have it active, and a card without an active port is down if
    another card of the same model is active. A slot that is slower than that of almost all like
    nodes is a fault.

    Args:
        nodes: the facts of the nodes of a partition.
        declared: the parts that the inventory states.
        hardware: what was ordered for each node.
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
            if faults := (*_faults(rails, needed), *_slow_slots(rails, slots)):
                found[host] = faults
    return found


def _usual_slots(group: Mapping[str, Mapping[str, Rail]]) -> dict[str, str]:
    """Return the link of the slot of each rail that almost all nodes have; empty if none is."""
    links: dict[str, list[str]] = {}
    for rails in group.values():
        for name, rail in rails.items():
            links.setdefault(name, []).append(rail.link)
    return {name: commonest(each) or "" for name, each in links.items()}


def _slow_slots(rails: Mapping[str, Rail], usual: Mapping[str, str]) -> Iterator[Message]:
    """Yield the rails whose slot carries less than that of most nodes."""
    for name, rail in rails.items():
        own, least = (pcie_bytes_per_s(text) for text in (rail.link, usual[name]))
        if own and least and own < (1 - RATE_TOLERANCE) * least:
            yield Message("rail-slot", rail=name, found=rail.link, accepted=usual[name])


def narrow_slots(nodes: Mapping[str, NodeFacts]) -> Iterator[Message]:
    """Yield the slots with fewer lanes than their card. A limit of the slot hides what it costs."""
    narrow: dict[Message, list[str]] = {}
    for host, facts in nodes.items():
        for port in active_ports(facts):
            found, best = port.link or "", port.link_best or ""
            if lanes_of(found) < lanes_of(best):
                message = Message("slot-narrow", rail=name_of(port), found=found, accepted=best)
                narrow.setdefault(message, []).append(host)
    for message, hosts in narrow.items():
        yield Message("slot-narrow-on", nodes=folded(hosts), text=message)


def _usual(group: Mapping[str, Mapping[str, Rail]]) -> dict[str, float]:
    """Return the usual rate of each rail that most of the nodes have active."""
    if len(group) < LEAST_NODES:
        return {}
    active: list[tuple[str, Rail]] = []
    for rails in group.values():
        active += [(name, each) for name, each in rails.items() if each.active]
    count = Counter(name for name, _ in active)
    return {
        # Of equally frequent rates the fastest is usual: the slower rails are then named.
        name: max(multimode(rail.gbit_per_s for of, rail in active if of == name))
        for name, nodes in count.items()
        if 2 * nodes > len(group)
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


def _slow(rail: Rail, rate: float) -> bool:
    return 0 < rail.gbit_per_s < (1 - RATE_TOLERANCE) * rate


def _faults(rails: Mapping[str, Rail], needed: Mapping[str, float]) -> Iterator[Message]:
    for name, rate in needed.items():
        rail = rails.get(name)
        if rail is None:
            yield Message("rail-missing", rail=name)
        elif not rail.active:
            yield Message("rail-down", rail=name, numa=_numa(rail), state=rail.state or "–")
        elif _slow(rail, rate):
            rates = {"found": f"{rail.gbit_per_s:g}", "accepted": f"{rate:g}"}
            yield Message("rail-slow", rail=name, numa=_numa(rail), **rates)


def _numa(rail: Rail) -> str:
    return "–" if rail.numa is None else f"{rail.numa}"
