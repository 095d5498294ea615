"""The nodes of a rolling run by rack: accepted, waiting, failed; and since when peers judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from proofmark.common.message import localized
from proofmark.common.nodesets import folded
from proofmark.common.translation import N_, _, translated
from proofmark.judge.verdict import Verdict
from proofmark.packages.service.rolling_nodes import RollingState
from proofmark.report.additions import AddedSection, Addition, RunAddition
from proofmark.report.page import Block, Cell, Section, numeric, titled
from proofmark.report.sections.main_figures import MAIN_FIGURES
from proofmark.runs.run import Run

STANDINGS = {
    "accepted": N_("accepted"),
    "waiting": N_("waiting"),
    "failed": N_("failed"),
    "unjudged": N_("measured, not judged"),
}
"""The titles of the columns, by standing."""
REST = N_("The complete list is in verdict.json.")


@dataclass(frozen=True)
class NodesByRack(RunAddition):
    """The section of one rolling run."""

    state: RollingState

    def sections(self) -> Iterable[AddedSection]:
        """Return the nodes by rack, behind the main figures."""
        state = self.state
        blocks = (_racks(state), *_reasons(state), *_peers(state))
        section = Section("rolling", _("Rolling acceptance"), blocks)
        return (AddedSection(section, after=MAIN_FIGURES),)


class RollingPage(Addition):
    """Adds the nodes by rack to the page of a rolling run."""

    def of_run(self, run: Run, verdict: Verdict) -> RunAddition | None:
        """Return the nodes of a rolling run; None for any other run."""
        state = verdict.of_kind
        return NodesByRack(state) if isinstance(state, RollingState) else None


def _racks(state: RollingState) -> Block:
    text = _(
        "{nodes}. A node that is down or drained waits. It is no failure, and it is not accepted."
    ).format(nodes=localized(state.label))
    rows = [
        (Cell(rack, "strong"), *(_nodes(standings.get(each, [])) for each in STANDINGS))
        for rack, standings in state.racks().items()
    ]
    columns = (_("Rack"), *map(translated, STANDINGS.values()))
    caption = _("Nodes by rack")
    shown = titled(caption, columns, rows, rest=translated(REST))
    return Block(titles=(caption,), paragraphs=(text,), tables=(shown,))


def _nodes(nodes: list[str]) -> Cell:
    """Return a bar of one mark for each node, their number and their names."""
    bar = f"{'■' * min(len(nodes), 40)} {len(nodes)}" if nodes else "–"
    return Cell(bar, details=(folded(nodes),) if nodes else ())


def _reasons(state: RollingState) -> Iterator[Block]:
    rows = [
        (
            Cell(each.node, "strong"),
            translated(STANDINGS[each.standing]),
            Cell(each.reason, "reason"),
        )
        for each in state.nodes
        if each.standing != "accepted"
    ]
    if rows:
        caption = _("Nodes that are not accepted")
        columns = (_("Node"), _("State"), _("Reason"))
        listed = titled(caption, columns, rows, rest=translated(REST))
        yield Block(titles=(caption,), tables=(listed,))


def _peers(state: RollingState) -> Iterator[Block]:
    rows = [
        (Cell(e.figure, "strong"), str(e.nodes), str(e.needed or "–"), e.time or _("not yet"))
        for e in state.peers
    ]
    if rows:
        caption = _("Comparison with like nodes")
        text = _(
            "Like nodes judge a figure from the time when enough of them were measured. Before "
            "this time no comparison with like nodes judges."
        )
        columns = (
            _("Figure"),
            numeric(_("Like nodes measured")),
            numeric(_("With so many nodes")),
            _("Since"),
        )
        listed = titled(caption, columns, rows, rest=translated(REST))
        yield Block(titles=(caption,), paragraphs=(text,), tables=(listed,))
