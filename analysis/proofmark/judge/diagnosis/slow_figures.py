"""The figures that fail, by the node or the link that they accuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from proofmark.cases.vocabulary import PART_AXES
from proofmark.common.nodesets import hosts_of
from proofmark.judge.results import CONFIRMING, WITHIN_NOISE, Result


@dataclass(frozen=True)
class SlowFigure:
    """A figure that fails.

    Attributes:
        deviation: measured ÷ reference − 1, of the judgement that fails most.
    """

    result: Result
    deviation: float

    @property
    def name(self) -> str:
        """Return case, benchmark, metric, and the part of the node."""
        record = self.result.record
        parts = (f"{record.parameters.get(axis, '')}" for axis in PART_AXES)
        words = dict.fromkeys((record.case, record.benchmark, record.metric, *parts))
        return " ".join(filter(None, words))


def confirmed(slow: Iterable[SlowFigure]) -> bool:
    """Return whether enough undisturbed executions show that a node is slow.

    One of its figures is confirmed by its own executions. A figure with another node is confirmed
    together with those with further nodes.
    """
    results = [figure.result for figure in slow]
    pairs = (each for each in results if len(hosts_of(each.record.node)) > 1)
    certain = (each for each in pairs if each.retest_reason != WITHIN_NOISE)
    shown = set(chain.from_iterable(each.shown_by for each in certain))
    return not all(each.retest for each in results) or len(shown) >= CONFIRMING


def failures(
    results: Iterable[Result],
) -> tuple[dict[str, list[SlowFigure]], dict[str, list[SlowFigure]]]:
    """Return the figures that fail with a ratio, by node and by pair of nodes."""
    by_node: dict[str, list[SlowFigure]] = {}
    by_pair: dict[str, list[SlowFigure]] = {}
    for result in results:
        ratios = [
            judgement.ratio - 1
            for judgement in result.references
            if judgement.outcome == "FAIL" and judgement.ratio is not None
        ]
        if not ratios:
            continue
        slow = SlowFigure(result, max(ratios, key=abs))
        hosts = hosts_of(result.record.node)
        if len(hosts) == 1:
            by_node.setdefault(hosts[0], []).append(slow)
        elif len(hosts) == 2:
            by_pair.setdefault(result.record.node, []).append(slow)
    return by_node, by_pair


def wrong_digits(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Return the results that fail without a ratio, by the node that computed alone."""
    by_node: dict[str, list[Result]] = {}
    for result in results:
        hosts = hosts_of(result.record.node)
        no_ratio = any(each.outcome == "FAIL" and each.ratio is None for each in result.references)
        if no_ratio and len(hosts) == 1:
            by_node.setdefault(hosts[0], []).append(result)
    return by_node


def attribute_links(
    names: Iterable[str],
    by_node: dict[str, list[SlowFigure]],
    by_pair: Mapping[str, list[SlowFigure]],
) -> tuple[tuple[str, SlowFigure], ...]:
    """Attribute slow links to a node if all of its links are slow; return the other slow links.

    `by_node` gets the attributed figures. A node with a single link is not accused.
    """
    if not by_pair:
        return ()
    pairs: dict[str, set[str]] = {}
    for name in names:
        hosts = hosts_of(name)
        if len(hosts) == 2:
            for host in hosts:
                pairs.setdefault(host, set()).add(name)
    all_slow = {host for host, of in pairs.items() if len(of) > 1 and of <= by_pair.keys()}
    links = []
    for pair, slow in by_pair.items():
        bad = [host for host in hosts_of(pair) if host in all_slow or host in by_node]
        for host in bad:
            if host in all_slow:
                by_node.setdefault(host, []).extend(slow)
        if not bad:
            links.append((pair, max(slow, key=lambda figure: abs(figure.deviation))))
    return tuple(links)
