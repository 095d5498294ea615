"""Events of the machine: traits of nodes and programs that differ between two runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.judge.shared_traits import differences, of_node, of_package
from proofmark.judge.trend.past_run import PastRun


@dataclass(frozen=True)
class Event:
    """One change of one trait, on one or several nodes, between two runs.

    Attributes:
        trait: the name of the trait; of a program with the name of its package.
        old, new: its values; empty if the trait is absent.
        nodes: the nodes, sorted; empty for a program.
        before: the number of the last run with the old value.
        after: the number of the first run with the new value.
    """

    trait: Message
    old: str
    new: str
    nodes: tuple[str, ...]
    before: int
    after: int

    @property
    def where(self) -> str:
        """The nodes as a folded list."""
        return folded(self.nodes) if self.nodes else ""

    def within(self, first: int, last: int) -> bool:
        """Return whether the event may have happened between the runs `first` and `last`."""
        return self.before < last and self.after > first

    def concerns(self, hosts: Collection[str]) -> bool:
        """Return whether the event happened on one of `hosts`, or to a program."""
        return not self.nodes or any(host in hosts for host in self.nodes)


def events_of(runs: Sequence[PastRun], numbers: Iterable[int]) -> list[Event]:
    """Return the events of the runs with `numbers`, in the order of time.

    A node is compared with the previous run that has its facts. Equal changes of several nodes
    between the same runs are one event.
    """
    last: dict[str, tuple[int, Mapping[str, str]]] = {}
    packages: dict[str, tuple[int, Mapping[Message, str]]] = {}
    found: dict[tuple[Message, str, str, int, int], list[str]] = {}
    for number in numbers:
        for host, node in runs[number].hosts.items():
            if host in last:
                before, old = last[host]
                for trait, *values in differences(old, node.traits):
                    key = (of_node(trait), values[0], values[1], before, number)
                    found.setdefault(key, []).append(host)
            last[host] = number, node.traits
        for name, traits in runs[number].software.values():
            if name in packages:
                before, known = packages[name]
                for part, *values in differences(known, traits):
                    key = (of_package(name, part), values[0], values[1], before, number)
                    found.setdefault(key, [])
            packages[name] = number, traits
    events = [
        Event(trait, old, new, tuple(sorted(hosts)), before, after)
        for (trait, old, new, before, after), hosts in found.items()
    ]
    return sorted(events, key=lambda each: (each.after, not each.nodes, each.trait))
