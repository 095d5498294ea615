"""The comparison of a run with the copy of the baseline in its folder.

A baseline stores the nodes and programs of a run beside its figures, and compares them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from proofmark.cases.suite import Benchmarks
from proofmark.common.grouping import gathered
from proofmark.common.message import Message, Term, joined
from proofmark.common.nodesets import folded
from proofmark.common.text import percent
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.change_limits import (
    FIGURE,
    OWN,
    QUANTITY,
    Limits,
    limits_of,
    programs_of,
    values_table,
)
from proofmark.judge.confidence import possible_repeats, repeats_agree, repeats_needed, too_noisy
from proofmark.judge.fleet.populations import Kinds
from proofmark.judge.references.judgement import Bounds, Judgement
from proofmark.judge.stated_parts import (
    Traits,
    differences,
    hardware_kind,
    machine_traits,
    of_node,
    software_traits,
    traits_of,
)
from proofmark.records.columns import Floats, Mask, Numbers
from proofmark.site.accepted_baseline import AcceptedNodes, Baseline, ProgramTrait, read_baseline
from proofmark.site.installed_parts import Parts, usual_parts, usual_processor
from proofmark.site.inventory import Site
from proofmark.site.node.facts import HostFacts
from proofmark.site.node.parts import MountedFileSystem, mount_of
from proofmark.software.software import Software


@dataclass(frozen=True)
class NodeChange:
    """A difference since the newest accepted run: a candidate cause of slower figures.

    Attributes:
        nodes: the node set on which it changed; empty for the software of the run.
    """

    what: Message
    before: str
    after: str
    nodes: str = ""

    def __str__(self) -> str:
        where = f" on {self.nodes}" if self.nodes else ""
        return f"{self.what}: {self.before or '–'} → {self.after or '–'}{where}"


def accepted_parts(baseline: Baseline, hosts: HostFacts) -> dict[str, Parts]:
    """Return the parts that each node had in the newest accepted run.

    For a node that was not in it: what most nodes with its processor had, or most nodes if none had
    it.
    """
    states = baseline.states()
    alike = gathered((each.parts.processor or "", each.parts) for each in states.values())
    usual = {model: replace(usual_parts(each), nics=None) for model, each in alike.items()}
    every = [*chain.from_iterable(alike.values())]
    of_all = replace(usual_parts(every), nics=None, processor=usual_processor(every))
    return {
        host: states[host].parts if host in states else usual.get(facts.cpu_model, of_all)
        for host, facts in hosts.items()
    }


def node_states(
    traits: Mapping[str, Traits], parts: Mapping[str, Parts]
) -> tuple[AcceptedNodes, ...]:
    """Return the state of all nodes; nodes with the same state share one entry."""
    alike = gathered(
        ((own, tuple(sorted(traits[host].items()))), host) for host, own in parts.items()
    )
    return tuple(
        AcceptedNodes(nodes=folded(hosts), parts=own, traits=dict(traits[hosts[0]]))
        for (own, _), hosts in alike.items()
    )


def changes(
    baseline: Baseline, traits: Mapping[str, Traits], libraries: Mapping[ProgramTrait, str]
) -> tuple[NodeChange, ...]:
    """Return what differs since the newest accepted run: nodes, and packages that both runs use.

    Args:
        libraries: the result of `judge.stated_parts.software_traits` for the run.
    """
    states = baseline.states()
    nodes: dict[tuple[Message, str, str], list[str]] = {}
    for host, now in traits.items():
        if host not in states:
            continue
        for what, before, after in differences(states[host].traits, now):
            nodes.setdefault((of_node(what), before, after), []).append(host)
    used = {trait.package for trait in libraries}
    known = baseline.runs[-1].libraries
    accepted = {trait: value for trait, value in known if trait.package in used}
    software = differences(accepted, libraries)
    return (
        *(NodeChange(what.text, before, after) for what, before, after in software),
        *(NodeChange(*key, folded(hosts)) for key, hosts in nodes.items()),
    )


KIND = "baseline"
LEAST_CHANGE = 0.02
"""A change of less than 2 % is accepted at any noise."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Figures that were compared with one part of the baseline.

    Attributes:
        largest: the largest change (logarithm) that is accepted; NaN if the noise is not known.
        proved: whether the programs of the figures are known. Without that no figure passes.
        again: mask of the figures that are worse, and whose repeats do not show it; None: of none.
    """

    with_what: str
    limits: Limits
    largest: Floats
    proved: bool = True
    again: Mask | None = None

    @cached_property
    def visible(self) -> Floats:
        """The change that would be seen, as a part of the value; NaN if the noise is not known."""
        found = self.limits.visible(self.largest)
        return np.where(self.limits.lower, np.expm1(found), -np.expm1(-found))

    @cached_property
    def worse(self) -> Mask:
        """Mask of the figures that are worse than the baseline by more than their noise."""
        found: Mask = self.limits.change > self.largest
        return found if self.again is None else found & ~self.again

    @cached_property
    def better(self) -> Mask:
        """Mask of the figures that are better than the baseline by more than their noise."""
        return -self.limits.change > self.largest

    @cached_property
    def passed(self) -> Mask:
        """Mask of the figures that are not worse, and of which a material change would be seen."""
        enough: Mask = self.limits.change <= self.largest
        return self.proved & enough & (self.visible <= self.limits.material)

    def judgement(self, place: int, source: str) -> Judgement:
        """Return the judgement of the figure at `place` of the arrays."""
        limits = self.limits
        reference, largest = float(limits.reference[place]), float(self.largest[place])
        lower = bool(limits.lower[place])
        ratio = math.exp((1 if lower else -1) * limits.change[place])
        compared = {
            "ratio": f"{ratio:.3g}",
            "name": Term(self.with_what),
            "value": f"{reference:.6g}",
        }
        if math.isnan(largest):
            reason = Message("baseline-once", **compared)
            return Judgement(KIND, source, "UNJUDGED", reason, reference, ratio)
        reason = Message(
            "baseline-noise",
            noise=percent(float(limits.noise[place])),
            change=percent(float(self.visible[place])),
            **compared,
        )
        visible, needed = float(self.visible[place]), float(self.needed[place])
        missed = bool(limits.change[place] > largest)
        outcome = "FAIL" if missed else "PASS" if self.passed[place] else "UNJUDGED"
        if not self.proved and outcome != "FAIL":
            reason = joined((reason, Message("baseline-no-program")))
        elif outcome == "UNJUDGED":
            noise = too_noisy(visible, float(limits.material[place]), needed)
            reason = Message("baseline-noisy", noise=noise, **compared)
        elif self.better[place]:
            reason = joined((reason, Message("improved")))
        bounds = Bounds(at_most=math.exp(largest)) if lower else Bounds(math.exp(-largest))
        judged = Judgement(
            *(KIND, source, outcome, reason, reference, ratio, *bounds),
            visible=visible,
            repeats_needed=possible_repeats(needed),
        )
        return judged.open() if missed and not self.worse[place] else judged

    @cached_property
    def needed(self) -> Floats:
        """With how many repeats of the run a material change would be seen (`repeats_needed`)."""
        limits = self.limits
        wanted = np.where(limits.lower, np.log1p(limits.material), -np.log1p(-limits.material))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = wanted / limits.visible(self.largest)
        return repeats_needed(ratio, limits.error**2, limits.per_repeat, limits.repeats)


@dataclass(frozen=True, eq=False)
class BaselineComparison:
    """The comparison of a run with a baseline.

    Attributes:
        unmeasured: the number of figures of the baseline, of the cases and nodes of the run, that
            the run does not have.
        changes: what differs between the newest accepted run and this one.
    """

    baseline: Baseline
    parts: tuple[Compared, ...]
    figures: int
    other_program: int
    other_hardware: int
    unknown: int
    unmeasured: int
    changes: tuple[NodeChange, ...] = ()

    @property
    def source(self) -> Message:
        """The source of the judgements."""
        *earlier, newest = (each.run for each in self.baseline.runs)
        of = {"name": self.baseline.name, "run": newest}
        if earlier:
            return Message("baseline-runs", count=len(earlier), **of)
        return Message("baseline-run", **of)

    @cached_property
    def _places(self) -> dict[int, list[tuple[Compared, int]]]:
        places: dict[int, list[tuple[Compared, int]]] = {}
        for part in self.parts:
            for place, figure in enumerate(part.limits.figure.tolist()):
                places.setdefault(figure, []).append((part, place))
        return places

    def judge(self, figure: int) -> tuple[Judgement, ...]:
        """Return the judgements of a figure; none if the baseline does not have it."""
        found = self._places.get(figure, ())
        return tuple(part.judgement(place, self.source) for part, place in found)

    def noise(self, figure: int) -> tuple[float, float] | None:
        """Return the noise of one value, as a part of it, and its degrees of freedom.

        It is the first that any part knows; None if none does.
        """
        for part, place in self._places.get(figure, ()):
            noise, freedom = (float(a[place]) for a in (part.limits.noise, part.limits.freedom))
            if not math.isnan(noise) and freedom > 0:
                return noise, freedom
        return None

    def outcome(self, name: str) -> Numbers:
        """Return the figures with an outcome in any part.

        It is ``worse``, ``again``, ``passed`` or ``better``.
        """
        masks = ((part, getattr(part, name)) for part in self.parts)
        found = [part.limits.figure[mask] for part, mask in masks if mask is not None]
        return np.unique(np.concatenate([*found, np.zeros(0)])).astype(np.int64)

    @cached_property
    def visible_change(self) -> float:
        """The median of the changes that would be seen, as a part of a value; NaN if none is."""
        changes = np.concatenate([np.zeros(0), *(part.visible for part in self.parts)])
        known = changes[~np.isnan(changes)]
        return float(np.median(known)) if len(known) else math.nan

    @property
    def failures(self) -> int:
        """The number of judgements that are FAIL."""
        return sum(int(part.worse.sum()) for part in self.parts)

    @property
    def judgements(self) -> int:
        """The number of judgements of all figures."""
        return sum(len(part.limits.figure) for part in self.parts)

    @cached_property
    def compared(self) -> Numbers:
        """The figures that the baseline has too."""
        return np.array(sorted(self._places), dtype=np.int64)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "name": self.baseline.name,
            "label": self.baseline.label,
            "runs": [each.run for each in self.baseline.runs],
            "compared": len(self.compared),
            "worse": len(self.outcome("worse")),
            "passed": len(np.setdiff1d(self.outcome("passed"), self.outcome("worse"))),
            "improved": len(self.outcome("better")),
            "other_program": self.other_program,
            "other_hardware": self.other_hardware,
            "unknown": self.unknown,
            "unmeasured": self.unmeasured,
            "changes": [vars(each) for each in self.changes],
        }


def compare_with_baseline(
    run: pl.DataFrame,
    baseline: Baseline,
    accepted: pl.DataFrame,
    figures: int,
    family_level: float,
    changes: tuple[NodeChange, ...] = (),
) -> BaselineComparison:
    """Return the comparison of a run with a baseline.

    Args:
        run: the values of the run (`proofmark.judge.change_limits`).
        family_level: probability that any figure of an unchanged machine fails.
        changes: what differs between the newest accepted run and this one.
    """
    own, peers = limits_of(run, accepted)
    of_parts = (("the same node in the baseline", own), ("the like nodes in the baseline", peers))
    tests = sum(int((limits.freedom > 0).sum()) for _, limits in of_parts)
    parts = tuple(
        Compared(
            name,
            limits,
            np.maximum(
                limits.largest(family_level, tests),
                np.where(limits.lower, math.log1p(LEAST_CHANGE), -math.log1p(-LEAST_CHANGE)),
            ),
            proved=not baseline.label,
        )
        for name, limits in of_parts
    )
    known = np.unique(np.concatenate([part.limits.figure for part in parts]))
    left = run.filter(~pl.col(FIGURE).is_in(known.tolist())).unique(FIGURE)
    same_program = left.join(accepted, on=[*QUANTITY, "program"], how="semi")
    rest = left.join(accepted, on=[*QUANTITY, "program"], how="anti")
    same_hardware = rest.join(accepted, on=[*QUANTITY, "kind"], how="semi")
    planned = accepted.join(run, on=["case", "node"], how="semi")
    return BaselineComparison(
        baseline,
        parts,
        figures,
        *(len(same_hardware), len(same_program), len(rest) - len(same_hardware)),
        len(planned.join(run, on=list(OWN), how="anti").unique(list(OWN))),
        changes,
    )


def _with_open(part: Compared, figures: Aggregates) -> Compared:
    """Return a comparison with the worse figures whose repeats do not show it."""
    limits, again = part.limits, np.zeros(len(part.largest), dtype=bool)
    for place in np.flatnonzero(part.worse).tolist():
        figure, level = int(limits.figure[place]), float(limits.reference[place])
        below, values = not limits.lower[place], [*figures.undisturbed(figure).values()]
        limit = level * math.exp(-part.largest[place] if below else part.largest[place])
        if len(values) > 1 or figures.alone(figure):
            again[place] = not repeats_agree(values, limit, level, below=below)
    return replace(part, again=again)


@dataclass(frozen=True)
class Circumstances:
    """The nodes, programs and site of a run; `nodes` are the facts of each node."""

    site: Site
    nodes: HostFacts
    software: Software

    def traits(self) -> dict[str, dict[str, str]]:
        """Return configuration, location and scratch file system of each node."""
        folder = self.site.partition.scratch.path
        settings = {
            host: {**machine_traits(facts), **_mounted(facts.mounts, folder)}
            for host, facts in self.nodes.items()
        }
        places = {host: self.site.location(host) for host in self.nodes if host in self.site.hosts}
        return traits_of(settings, places)

    def libraries(self) -> dict[ProgramTrait, str]:
        """Return the versions of the programs and of their libraries."""
        return software_traits(self.software)

    def values(self, figures: Aggregates, benchmarks: Benchmarks) -> pl.DataFrame:
        """Return the values of the run (`proofmark.judge.change_limits`)."""
        # A signature accepts the hardware that it saw.
        found = {host: hardware_kind(facts) for host, facts in self.nodes.items()}
        kinds = Kinds(found, self.site.distance)
        return values_table(figures, benchmarks, kinds, programs_of(self.software))


def _mounted(mounts: Sequence[MountedFileSystem], folder: str) -> dict[str, str]:
    """Return the mount that contains `folder` as a trait; nothing if it is not known."""
    if (mount := mount_of(folder, mounts)) is None:
        return {}
    return {"scratch": f"{mount.kind} {mount.source} at {mount.target} ({mount.options})"}


@dataclass(frozen=True)
class BaselineOfRun:
    """The baseline in `folder`, for a run with these circumstances."""

    folder: Path
    about: Circumstances

    @cached_property
    def _content(self) -> tuple[Baseline, pl.DataFrame]:
        return read_baseline(self.folder)

    def parts(self) -> dict[str, Parts]:
        """Return the parts that each node of the run had in the baseline.

        Raises:
            BadInput: the baseline is damaged.
        """
        return accepted_parts(self._content[0], self.about.nodes)

    def compare(
        self, figures: Aggregates, benchmarks: Benchmarks, family_level: float
    ) -> BaselineComparison:
        """Return the comparison of the figures of the run.

        Args:
            benchmarks: the cases; their metrics state whether higher or lower is better.
            family_level: probability that any figure of an unchanged machine fails.

        Raises:
            BadInput: the baseline is damaged.
        """
        baseline, accepted = self._content
        values = self.about.values(figures, benchmarks)
        since = changes(baseline, self.about.traits(), self.about.libraries())
        found = compare_with_baseline(values, baseline, accepted, len(figures), family_level, since)
        return replace(found, parts=tuple(_with_open(each, figures) for each in found.parts))
