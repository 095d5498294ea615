"""A step with its point, before it is a step of a plan, and the number of nodes that it uses.

The point relates steps of one plan to each other. ``-l`` or ``nodes_per_job`` may select fewer
nodes than a case uses. The figures of the largest steps are then not the figures of the whole
partition (docs/design/cases.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from proofmark.cases.case import Scope, SuiteUse
from proofmark.cases.vocabulary import Scalar
from proofmark.common.expressions import names_in, render
from proofmark.common.message import Message
from proofmark.plan.step import Step
from proofmark.plan.sweep import Point, Sweep
from proofmark.site.inventory import Site


@dataclass(frozen=True)
class Draft:
    """A step and its point.

    Attributes:
        number: the number of this use in its suite, from 0.
        axes: the values of the swept axes.
    """

    step: Step
    use: SuiteUse
    number: int
    axes: Mapping[str, Scalar]

    def changed(self, **keys: Any) -> Draft:
        """Return the draft with other values of these keys of its step."""
        return replace(self, step=self.step.model_copy(update=keys))


def axes_of(sweep: Sweep, point: Point) -> dict[str, Scalar]:
    """Return the values of the axes that the case or its use sweeps.

    An axis that ``let`` computes, as ranks from nodes, follows from the others and is left out.
    """
    computed = {*sweep.case.let, *sweep.use.let}
    swept = {*sweep.case.sweep, *sweep.use.sweep} - computed
    values = {axis: point.values[axis] for axis in point.axes if axis in swept}
    return {axis: value for axis, value in values.items() if not isinstance(value, list)}


WHOLE = 0.9
"""A sweep uses the whole partition if its largest step has at least this share of the nodes. HPL
leaves out a few nodes: the ranks of all nodes may form no usable grid."""


def fits_a_job(nodes: int, site: Site) -> bool:
    """Return whether one job of the site may have this number of nodes."""
    limit = site.partition.nodes_per_job
    return limit is None or nodes <= limit or nodes == site.partition.queue.all_nodes


def most_nodes(site: Site) -> int:
    """Return the largest number of the selected nodes that one job may have."""
    nodes, limit = len(site.hosts), site.partition.nodes_per_job
    return nodes if limit is None or fits_a_job(nodes, site) else min(nodes, limit)


def of_a_job(sweep: Sweep) -> list[Point]:
    """Return the points of a sweep without those between `nodes_per_job` and all nodes.

    A sweep up to all nodes passes the limit of a job before its end, if only the job on all nodes
    may exceed it. The points that are left out are added to ``sweep.left_out``.
    """
    points = list(sweep.points())
    if sweep.site.partition.queue.all_nodes is None:
        return points  # `Sweep.symbols` has the limit as the number of nodes
    fitting = []
    for point in points:
        if fits_a_job(nodes := point.count("nodes"), sweep.site):
            fitting.append(point)
        else:
            sweep.left_out[Message("left-together", nodes=nodes)] += 1
    return fitting


def intended_nodes(sweep: Sweep) -> int:
    """Return the nodes of the largest step of a use on its whole partition.

    The result is 0 if the use is not one of the whole partition: its number of nodes does not
    follow from that of the partition, or is a small part of it.

    Raises:
        BadInput: the number of nodes cannot be computed.
    """
    hosts = len(sweep.site.partition_hosts or sweep.site.hosts)
    if sweep.use.scope != "job":
        return hosts
    nodes = {**sweep.case.sweep, **sweep.use.sweep}.get("nodes")
    if "nodes" not in names_in(nodes):
        return 0
    value = render(nodes, {**sweep.symbols, "nodes": hosts}, file=sweep.file, key="sweep.nodes")
    most = max(map(int, value)) if isinstance(value, list) else int(value)
    return most if most >= WHOLE * hosts else 0


def fewer_nodes(intended: Mapping[tuple[str, Scope], int], steps: Sequence[Step]) -> dict[str, int]:
    """Return the intended nodes of each case whose steps have fewer.

    Args:
        intended: the result of `intended_nodes` by case and scope of the use.
        steps: all steps of the plan. Nodes that measure alone or in pairs may be in several steps,
            one for each job. If only one instance is planned, it has the scope ``job``.
    """
    together: dict[str, int] = {}
    apart: dict[tuple[str, Scope], set[str]] = {}
    for step in steps:
        if step.scope == "job":
            together[step.case] = max(together.get(step.case, 0), len(step.nodes))
        else:
            apart.setdefault((step.case, step.scope), set()).update(step.nodes)
    fewer: dict[str, int] = {}
    for (case, scope), most in intended.items():
        planned = len(apart.get((case, scope), ())) or together.get(case, most)
        if planned < most:
            fewer[case] = max(most, fewer.get(case, 0))
    return fewer
