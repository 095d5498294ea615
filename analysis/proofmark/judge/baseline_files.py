"""The file of a baseline: a run that the site accepts, and its figures as items of a contract."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import ConfigDict, PlainSerializer, PlainValidator

from proofmark.cases.case import TELEMETRY
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import (
    ALONE,
    DATE,
    DISTANCE,
    FILE_SYSTEM,
    LAYOUT_AXES,
    LOAD,
    MEASURED,
    NAMING_AXES,
    PART_AXES,
)
from proofmark.common.errors import bad_input
from proofmark.common.nodesets import folded, hosts_of_nodes
from proofmark.common.shared_models import StrictModel
from proofmark.judge.baseline import Circumstances, node_states
from proofmark.judge.judging import read_and_judge
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.site.accepted_baseline import (
    COLUMNS,
    AcceptedNodes,
    AcceptedRun,
    Baseline,
    ProgramTrait,
    refuse_predicted,
)
from proofmark.site.contract_document import ContractItem
from proofmark.site.installed_parts import parts_to_accept
from proofmark.site.inventory import Site
from proofmark.software.software import software_of

ACCEPTABLE = (0, 4)
"""The exit codes of verdicts that can be accepted; other words than PASS only with a reason."""


def _as_table(value: Any) -> pl.DataFrame:
    """Return the figures of an answer, a table or its JSON, with the columns `COLUMNS`.

    Raises:
        ValueError: it is no such table.
    """
    if isinstance(value, pl.DataFrame):
        return value
    try:
        return pl.read_json(str(value).encode(), schema=pl.Schema(COLUMNS))
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"no table of figures: {error}") from None


@dataclass(frozen=True)
class Acceptance:
    """What the person who accepts a run states, and who signed it.

    Attributes:
        checksums: SHA-256 of the signed checksums.
        reason: why a run is accepted whose verdict is UNJUDGED.
        label: who made the figures, if this kit did not.
    """

    name: str
    when: datetime
    signer: str
    checksums: str
    reason: str = ""
    label: str = ""


class JudgedFigures(StrictModel):
    """What a baseline takes from a run. The owner of the folder of the run can write all of it."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    origin: str
    origins: list[str]
    code: int
    word: str
    libraries: tuple[tuple[ProgramTrait, str], ...]
    nodes: tuple[AcceptedNodes, ...]
    figures: Annotated[
        pl.DataFrame, PlainValidator(_as_table), PlainSerializer(pl.DataFrame.write_json)
    ]


def judged_figures(run: Run) -> JudgedFigures:
    """Judge `run`, and return what a baseline takes from it."""
    _, verdict = read_and_judge(run)
    site = site_of(run)
    nodes = {host: node.newest for host, node in nodes_of(run).items() if node.jobs}
    about = Circumstances(site, nodes, software_of(run))
    aggregates = verdict.results.aggregates
    parts = {host: parts_to_accept(facts) for host, facts in about.nodes.items()}
    return JudgedFigures(
        origin=site.partition.origin,
        origins=sorted({each.origin for each in aggregates.records.measurands}),
        code=verdict.exit_code(),
        word=verdict.headline().word,
        libraries=tuple(about.libraries().items()),
        nodes=node_states(about.traits(), parts),
        figures=about.values(aggregates, benchmarks_of(run)).select(*COLUMNS),
    )


def accepted_baseline(
    run: str, judged: JudgedFigures, site: Site, stated: Acceptance
) -> tuple[Baseline, pl.DataFrame]:
    """Return a baseline of one run, without the digest of its figures, and the figures.

    Raises:
        BadInput: the figures are predicted, the verdict is FAIL or INVALID, a reason or a label is
            missing, the run has no figure that can be compared, or a node is not one of `site`.
    """
    for origin in (judged.origin, *judged.origins):
        refuse_predicted("RUN", origin)
    code = judged.code
    if code not in ACCEPTABLE:
        raise bad_input(
            "RUN", "verdict", judged.word, "PASS, or another one without a fault and with --reason"
        )
    verdict: Literal["PASS", "UNJUDGED"] = "PASS" if judged.word == "PASS" else "UNJUDGED"
    if verdict != "PASS" and not stated.reason:
        raise bad_input("--reason", "", "nothing", "the reason to accept a run that is no PASS")
    figures = judged.figures.with_columns(run=pl.lit(run))
    origin = _origin(set(figures["origin"].unique()), judged.origin, stated)
    hosts = set(hosts_of_nodes(state.nodes for state in judged.nodes))
    if others := sorted(hosts - {*site.hosts}):
        raise bad_input("RUN", "nodes", folded(others), f"hosts of {site.partition_name}")
    accepted = AcceptedRun(
        run=run,
        accepted=stated.when,
        signer=stated.signer,
        checksums=stated.checksums,
        verdict=verdict,
        reason=stated.reason,
        libraries=judged.libraries,
    )
    made = Baseline(
        name=stated.name,
        site=site.name,
        partition=site.partition_name,
        origin=origin,
        label=stated.label,
        runs=(accepted,),
        nodes=judged.nodes,
        figures=NO_DIGEST,
    )
    return made, figures


NO_DIGEST = "not written yet"


def _origin(origins: Collection[str], own: str, stated: Acceptance) -> str:
    """Return the origin of all figures of a run.

    Args:
        own: that of figures of the kit on this partition. Figures of another one need a label.
    """
    if len(origins) != 1:
        found = ", ".join(sorted(origins)) or "no figure that can be compared"
        raise bad_input("RUN", "origin", found, "figures of one origin")
    (origin,) = origins
    if origin != own and not stated.label:
        raise bad_input("--label", "", "nothing", f"who made the figures of the {origin} run")
    if origin == own and stated.label:
        accepted = "only for figures that this kit did not make"
        raise bad_input("--label", "", f"a run of the origin {origin}", accepted)
    return origin


def extended(
    old: Baseline, figures: pl.DataFrame, added: Baseline, values: pl.DataFrame
) -> tuple[Baseline, pl.DataFrame]:
    """Return the baseline `old` with the run of `added`, and the figures of all its runs.

    The state of the nodes is that of the new run. A node that it lacks keeps its state.

    Raises:
        BadInput: the origins or labels differ, or the run is in the baseline.
    """
    for key in ("origin", "label"):
        known, new = getattr(old, key), getattr(added, key)
        if known != new:
            raise bad_input("RUN", key, repr(new), f"{known!r}, as in the baseline {old.name}")
    if twice := {each.run for each in old.runs} & {each.run for each in added.runs}:
        found = f"{', '.join(twice)}: in the baseline {old.name}"
        raise bad_input("RUN", "", found, "another run")
    states = {**old.states(), **added.states()}
    nodes = node_states(
        {host: state.traits for host, state in states.items()},
        {host: state.parts for host, state in states.items()},
    )
    together = old.model_copy(update={"runs": (*old.runs, *added.runs), "nodes": nodes})
    return together, pl.concat([figures, values.select(*COLUMNS)])


OF_THE_SITE = frozenset((*PART_AXES, *LAYOUT_AXES, *NAMING_AXES, DISTANCE, FILE_SYSTEM, LOAD, DATE))
"""Parameters whose values name parts of a site: its switches, file systems, adapters and uses."""
LARGEST_TOLERANCE = 0.15
"""An accepted figure may be worse by the least change that matters, and by no more than 15 %."""


LEVEL = ("case", "metric", "unit", "benchmark", "placement", "mode", "parameters")
"""What the accepted values have in common that are one item of a contract."""


def contract_items(
    baseline: Baseline, figures: pl.DataFrame, benchmarks: Benchmarks
) -> list[dict[str, Any]]:
    """Return an item of a contract for each accepted figure that names no part of its site.

    ``where`` has the parameters in which the figures of a metric differ, and those that an item of
    the metric would have otherwise (`judged_with`): a size that follows from the memory is in none.

    Raises:
        BadInput: no figure is left.
    """
    median_of = pl.col("value").median()
    nodes = figures.group_by(*LEVEL, "node", maintain_order=True).agg(median_of)
    accepted: dict[tuple[str, str, str], list[tuple[dict[str, Any], float]]] = {}
    for *key, parameters, value in nodes.group_by(LEVEL, maintain_order=True).agg(median_of).rows():
        name, metric, unit, *others = key
        case, traits = benchmarks.cases.get(name), json.loads(parameters)
        about = case.metrics.get(metric) if case and case.writes is None else None
        if about is None or about.same_digits or OF_THE_SITE & traits.keys() or metric in TELEMETRY:
            continue
        traits |= dict(zip(LEVEL[3:], others, strict=False))
        accepted.setdefault((name, metric, unit), []).append((traits, value))
    newest = baseline.runs[-1]
    source = f"baseline {baseline.name}, accepted {newest.accepted:%Y-%m-%d}"
    items: list[dict[str, Any]] = []
    for (name, metric, unit), figures_of in accepted.items():
        varied = {
            trait
            for trait in set[str]().union(*(traits for traits, _ in figures_of))
            if len({traits.get(trait) for traits, _ in figures_of}) > 1
        }
        about = benchmarks.cases[name].metrics[metric]
        tolerance = min(about.material_change, LARGEST_TOLERANCE)
        limit = {"at_most": 1 + tolerance}
        if about.better == "higher":
            limit = {"at_least": 1 - tolerance}
        usual = {MEASURED: ALONE, **about.judged_with}
        for traits, value in figures_of:
            where: dict[str, Any] = {
                trait: each
                for trait, each in sorted(traits.items())
                if trait in varied or usual.get(trait, each) != each
            }
            mode = {"mode": where.pop("mode")} if "mode" in varied else {}
            item = {
                "number": f"accepted-{len(items) + 1}",
                "text": f"{name}: {about.what}",
                "source": f"{baseline.label}, {source}" if baseline.label else source,
                "case": name,
                "metric": metric,
                "where": where,
                **mode,
                "value": value,
                "unit": unit,
                **limit,
            }
            ContractItem.model_validate(item)
            items.append(item)
    if not items:
        raise bad_input(baseline.name, "figures", "none for another site", "a figure of a node")
    return items
