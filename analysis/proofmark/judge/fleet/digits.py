"""Like nodes by what they computed: the digits that they share, and the hosts that pairs connect.

HPL with the same program, matrix, process grid, threads and BLAS kernel prints the same residual in
every run. A build whose sums depend on timing does not. Therefore the digits of a node are judged
only if repeats prove that the build is reproducible.

The hardware of nodes is unknown if this kit did not execute the run. A sweep of pairs measures the
hosts of one machine against each other. Hosts of another sweep may be another machine: a slower one
is no fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from proofmark.cases.suite import Benchmarks
from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.populations import Kinds, like_nodes
from proofmark.judge.references.judgement import PEERS, Judgement

Repeats = Mapping[int, tuple[float, ...]]
"""The values of each figure of like nodes, one for each execution."""


DIGITS_ALIKE, DIGITS_WRONG = "digits-alike", "digits-wrong"
"""The codes of judgements of digits that are, or are not, those of like nodes."""


@dataclass(frozen=True)
class Digits:
    """The digits of like nodes.

    Attributes:
        value: the value that more than half of the nodes have in all executions; None if there is
            none.
        proven: whether more than half of the repeated nodes are constant, and one of them has
            `value`.
    """

    nodes: int
    value: float | None
    agreeing: int
    repeated: int
    constant: int
    proven: bool


def digits_of(repeats: Repeats) -> Digits:
    """Return the digits that the figures of like nodes share."""
    alike = [values for values in repeats.values() if len(set(values)) == 1]
    constant = [values for values in alike if len(values) > 1]
    repeated = sum(len(values) > 1 for values in repeats.values())
    value, agreeing = None, 0
    if alike:
        ((commonest, count),) = Counter(values[0] for values in alike).most_common(1)
        if 2 * count > len(repeats):
            value, agreeing = commonest, count
    witness = any(value in values for values in constant)
    proven = witness and 2 * len(constant) > repeated
    return Digits(
        nodes=len(repeats),
        value=value,
        agreeing=agreeing,
        repeated=repeated,
        constant=len(constant),
        proven=proven,
    )


def judge_digits(
    figures: Aggregates, benchmarks: Benchmarks, kinds: Kinds
) -> Iterator[tuple[int, Judgement]]:
    """Yield each figure whose metric has ``same_digits``, with its judgement.

    A node is named if the digits of any execution differ from those of most nodes. Digits that
    agree are no acceptance: they stay UNJUDGED.

    Args:
        kinds: the hardware of the nodes; nodes of like hardware are compared.
    """
    for members in like_nodes(figures, benchmarks, kinds, same_digits=True):
        repeats = {figure: figures.values(figure) for figure in members.tolist()}
        digits = digits_of(repeats)
        for figure, values in repeats.items():
            yield figure, _judgement(digits, values)


def _judgement(digits: Digits, values: tuple[float, ...]) -> Judgement:
    source, nodes = Message("peers", nodes=digits.nodes), digits.nodes
    wrong = list(dict.fromkeys(value for value in values if value != digits.value))
    outcome = "UNJUDGED"
    repeats = {"constant": digits.constant, "repeated": digits.repeated}
    if digits.value is None:
        reason = Message("digits-unlike", nodes=nodes)
    elif not digits.proven:
        reason = Message("digits-unproven", agreeing=digits.agreeing, nodes=nodes, **repeats)
    elif wrong:
        outcome = "FAIL"
        listed = ", ".join(f"{value:.9g}" for value in wrong)
        runs = sum(value != digits.value for value in values)
        reason = Message(
            DIGITS_WRONG,
            runs=runs,
            executions=len(values),
            values=listed,
            agreeing=digits.agreeing,
            nodes=nodes,
            digits=f"{digits.value:.9g}",
            **repeats,
        )
    else:
        reason = Message(DIGITS_ALIKE, agreeing=digits.agreeing, nodes=nodes)
    return Judgement(PEERS, source, outcome, reason, value=digits.value)


def kinds_of_groups(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return the kind of each host of `groups`, as a text."""
    kinds: dict[str, str] = {}
    for hosts in groups:
        kinds |= dict.fromkeys(hosts, f"measured together: {folded(hosts)}")
    return kinds


def unlike_groups(groups: Sequence[Sequence[str]]) -> Iterable[Message]:
    """Yield the question whether the hosts of `groups` are alike."""
    if groups:
        hosts = "; ".join(folded(each) for each in groups)
        yield Message("groups-unknown", count=len(groups), groups=hosts)
