"""Accepts a run as a baseline of its partition."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import ConfigDict, PlainSerializer, PlainValidator

from proofmark.common.errors import bad_input
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of_nodes
from proofmark.common.strict_model import StrictModel
from proofmark.judge.baseline.changes import capacity_of, node_states
from proofmark.judge.baseline.comparison import Circumstances
from proofmark.judge.judging import read_and_judge
from proofmark.judge.references.typical import accepted_programs
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.site.accepted_baseline import (
    COLUMNS,
    AcceptedNodes,
    AcceptedPrograms,
    AcceptedRun,
    Baseline,
    refuse_predicted,
)
from proofmark.site.hardware import IMPORTED
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
        signer: the principal that signed the run.
        checksums: SHA-256 of the signed checksums.
        reason: why a run is accepted whose verdict is UNJUDGED.
        label: who made the figures of an imported run.
    """

    name: str
    when: datetime
    signer: str
    checksums: str
    reason: str = ""
    label: str = ""


class JudgedFigures(StrictModel):
    """What a baseline takes from a run. The owner of the folder of the run can write all of it.

    Attributes:
        origin: of the partition of the run.
        origins: of its figures.
        code: the exit code of its verdict.
        word: its verdict in a word.
        libraries: the traits of the programs and their libraries, each with its value.
        programs: what decides the figures of the programs, by the value of the column ``program``.
        network: the technology between its nodes, as the site states it; else empty.
        nodes: the state of its nodes.
        figures: their values, with the columns `COLUMNS`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    origin: str
    origins: list[str]
    code: int
    word: str
    libraries: tuple[tuple[Message, str], ...]
    programs: dict[str, AcceptedPrograms]
    network: str
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
    capacities = {host: capacity_of(facts) for host, facts in about.nodes.items()}
    return JudgedFigures(
        origin=site.partition.origin,
        origins=sorted({each.origin for each in aggregates.records.measurands}),
        code=verdict.exit_code(),
        word=verdict.headline().word,
        libraries=tuple(about.libraries().items()),
        programs=accepted_programs(about.software),
        network=site.partition.fabric.network.kind if site.partition.fabric.network else "",
        nodes=node_states(about.traits(), capacities),
        figures=about.values(aggregates, benchmarks_of(run)).select(*COLUMNS),
    )


def accepted_baseline(
    run: str, judged: JudgedFigures, site: Site, stated: Acceptance
) -> tuple[Baseline, pl.DataFrame]:
    """Return a baseline of one run, without the digest of its figures, and the figures.

    Args:
        stated: what the person who accepts it states.

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
    origin = _origin(set(figures["origin"].unique()), stated)
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
        programs=judged.programs,
        network=judged.network,
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


def _origin(origins: Collection[str], stated: Acceptance) -> str:
    """Return the origin of all figures of a run, which must be labelled if it is imported."""
    if len(origins) != 1:
        found = ", ".join(sorted(origins)) or "no figure that can be compared"
        raise bad_input("RUN", "origin", found, "figures of one origin")
    (origin,) = origins
    if origin == IMPORTED and not stated.label:
        raise bad_input("--label", "", "nothing", "who made the figures of the imported run")
    if origin != IMPORTED and stated.label:
        raise bad_input("--label", "", f"a run of the origin {origin}", "only for imported runs")
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
        {host: state.capacity for host, state in states.items()},
    )
    together = old.model_copy(update={"runs": (*old.runs, *added.runs), "nodes": nodes})
    return together, pl.concat([figures, values.select(*COLUMNS)])
