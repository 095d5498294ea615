"""The nodes of a run on which a stage works: those of a rolling run that are up now."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from proofmark.common.errors import BadInput
from proofmark.common.nodesets import folded
from proofmark.common.progress_lines import say
from proofmark.machine.scheduler import (
    IDLE,
    SchedulerError,
    SchedulerUnavailable,
    is_closed,
    scheduler,
)
from proofmark.runs.run import Run
from proofmark.site.inventory import Site


def present(run: Run, site: Site, nodes: Sequence[str], begun: Collection[str] = ()) -> list[str]:
    """Return `nodes`; of a rolling run, those that `site` selects and that are not down.

    A node that is down or drained waits. All are up if the scheduler does not answer.

    Args:
        run: the run.
        site: the partition under the limit.
        nodes: nodes of the run.
        begun: nodes that this run has drained itself. They are returned, too.
    """
    if not run.plan.rolling:
        return list(nodes)
    chosen, own = [n for n in nodes if n in site.hosts], site.partition.queue.reservation
    try:
        asked = scheduler(site.partition.scheduler, site.partition.queue)
        states = asked.nodes(chosen) if chosen else {}
    except (SchedulerUnavailable, SchedulerError, BadInput):
        states = {}
    waiting = [n for n in chosen if is_closed(states.get(n, IDLE), own) and n not in begun]
    if waiting:
        say(f"{folded(waiting)}: down or drained; the rolling run waits for them")
    return [node for node in chosen if node not in waiting]
