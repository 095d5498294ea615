"""The file of a baseline: a run that the site accepts, and the export for other sites."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean, median, stdev
from typing import Annotated, Any, Literal, NamedTuple

import polars as pl
from pydantic import ConfigDict, PlainSerializer, PlainValidator, ValidationError

from proofmark.cases.case import TELEMETRY
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import (
    DATE,
    DISTANCE,
    FILE_SYSTEM,
    HINTS,
    LAYOUT_AXES,
    LOAD,
    NAMING_AXES,
    PART_AXES,
)
from proofmark.common.errors import bad_input
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of, hosts_of_nodes
from proofmark.common.shared_models import StrictModel
from proofmark.judge.baseline import Circumstances, capacity_of, node_states
from proofmark.judge.judging import read_and_judge
from proofmark.judge.references.typical import accepted_programs
from proofmark.runs.identity import this_kit
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.site.accepted_baseline import (
    COLUMNS,
    AcceptedFigure,
    AcceptedNodes,
    AcceptedPrograms,
    AcceptedRun,
    Baseline,
    BaselineElsewhere,
    Programs,
    StatedModel,
    StoredTrait,
    identifying,
    model_of,
    refuse_predicted,
    texts_of_figure,
)
from proofmark.site.inventory import Site
from proofmark.site.partition import PREDICTED
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
    """What a baseline takes from a run. The owner of the folder of the run can write all of it.

    Attributes:
        programs: what decides the figures of the programs, by the value of the column ``program``.
        network: the technology between its nodes, as the site states it; else empty.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    origin: str
    origins: list[str]
    code: int
    word: str
    libraries: tuple[tuple[StoredTrait, str], ...]
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
        {host: state.capacity for host, state in states.items()},
    )
    together = old.model_copy(update={"runs": (*old.runs, *added.runs), "nodes": nodes})
    return together, pl.concat([figures, values.select(*COLUMNS)])


MEASURED_ORIGIN = "measured"
OF_THE_SITE = frozenset(
    (*PART_AXES, *LAYOUT_AXES, *NAMING_AXES, DISTANCE, FILE_SYSTEM, HINTS, LOAD, DATE)
)
"""Parameters whose values name parts of a site: its switches, file systems, adapters and uses."""
SETTING = ("case", "benchmark", "metric", "unit", "mode", "placement", "parameters")
"""The columns that figures with the same settings have in common."""


class _Key(NamedTuple):
    """What figures have in common that become one figure of the file."""

    setting: tuple[str, ...]
    nodes: int
    network: str
    model: str
    programs: str


@dataclass
class Exported:
    """The content of the file, and how many figures are not in it, by the reason."""

    content: BaselineElsewhere
    left_out: Counter[Message] = field(default_factory=Counter)


@dataclass
class _Models:
    """The models of nodes and programs of the file, by their keys."""

    models: dict[str, StatedModel] = field(default_factory=dict)
    programs: dict[str, Programs] = field(default_factory=dict)


def exported(
    baseline: Baseline,
    figures: pl.DataFrame,
    benchmarks: Benchmarks,
    hosts: Collection[str],
    label: str = "",
) -> Exported:
    """Return what a baseline has for other sites.

    Raises:
        BadInput: the figures are not measured by the kit, a run was accepted by an earlier version,
            the label names a host, or no figure is left.
    """
    if baseline.origin != MEASURED_ORIGIN:
        accepted = f"a baseline of figures that are {MEASURED_ORIGIN}"
        raise bad_input(baseline.name, "origin", baseline.origin or PREDICTED, accepted)
    for run in baseline.runs:
        if not run.programs:
            found = f"no programs of {run.run}: an earlier version accepted it"
            accepted = "runs that this version accepts: baseline accept --replace"
            raise bad_input(baseline.name, "runs", found, accepted)
    if (told := identifying(label, hosts)) is not None:
        raise bad_input("--label", "", f"{label!r}: {told}", "a name that is no host and no path")
    made, left = _Models(), Counter[Message]()
    values: dict[_Key, dict[str, list[float]]] = {}
    states = baseline.states()
    runs = {run.run: run for run in baseline.runs}
    for row in figures.iter_rows(named=True):
        if reason := _no_export(row, benchmarks):
            left[reason] += 1
            continue
        run = runs[row["run"]]
        programs = run.programs.get(row["program"])
        of_nodes = [states.get(host) for host in hosts_of(row["node"])]
        model = _model(of_nodes, hosts)
        if programs is None or isinstance(model, Message):
            left[model if isinstance(model, Message) else Message("export-programs")] += 1
            continue
        try:
            stated = Programs(**programs.model_dump())
        except ValidationError:
            left[Message("export-text")] += 1
            continue
        if any(identifying(text, hosts) for text in _texts_of_programs(stated)):
            left[Message("export-identity")] += 1
            continue
        network = run.network if len(of_nodes) > 1 else ""
        key = _Key(
            setting=tuple(str(row[name]) for name in SETTING),
            nodes=len(of_nodes),
            network=network,
            model=_key_of(made.models, model, "node"),
            programs=_key_of(made.programs, stated, stated.package),
        )
        values.setdefault(key, {}).setdefault(row["node"], []).append(row["value"])
    content: list[AcceptedFigure] = []
    for key, of_key in values.items():
        figure = _figure(key, of_key, hosts)
        if isinstance(figure, Message):
            left[figure] += sum(map(len, of_key.values()))
        else:
            content.append(figure)
    if not content:
        why = "; ".join(f"{reason} ({count})" for reason, count in left.most_common(3))
        raise bad_input(baseline.name, "figures", f"none for other sites: {why}", "a figure")
    newest = baseline.runs[-1]
    used_models = {each.model for each in content}
    used_programs = {each.programs for each in content}
    return Exported(
        BaselineElsewhere(
            format=1,
            label=label,
            kit=this_kit().version,
            accepted=newest.accepted.date(),
            verdict=newest.verdict,
            models={name: each for name, each in made.models.items() if name in used_models},
            programs={name: each for name, each in made.programs.items() if name in used_programs},
            figures=tuple(content),
        ),
        left,
    )


def _no_export(row: Mapping[str, Any], benchmarks: Benchmarks) -> Message | None:
    """Return why a figure is not for other sites; None if it can be."""
    case = benchmarks.cases.get(row["case"])
    if case is None or row["metric"] not in case.metrics or row["metric"] in TELEMETRY:
        return Message("export-case")
    if case.writes is not None:
        return Message("export-file-system")
    if OF_THE_SITE & json.loads(row["parameters"]).keys():
        return Message("export-part")
    return None


def _model(states: Sequence[AcceptedNodes | None], hosts: Collection[str]) -> StatedModel | Message:
    models: dict[StatedModel, None] = {}
    for state in states:
        if state is None or not (name := state.traits.get("processor")):
            return Message("export-hardware")
        try:
            model = model_of(name, state.capacity)
        except ValidationError:
            return Message("export-text")
        if identifying(model.processor, hosts) or identifying(model.virtual, hosts):
            return Message("export-identity")
        models[model] = None
    if len(models) != 1:
        return Message("export-mixed")
    return next(iter(models))


def _key_of(known: dict[str, Any], content: StatedModel | Programs, name: str) -> str:
    """Return the key of a model or of programs in the file; new ones get the next one."""
    for key, each in known.items():
        if each == content:
            return key
    same = sum(key.rpartition("-")[0] == name for key in known)
    key = f"{name}-{same + 1}"
    known[key] = content
    return key


def _texts_of_programs(programs: Programs) -> Iterator[str]:
    yield from (programs.version, programs.blas, programs.kernel, programs.mpi)
    yield from programs.transport.values()


def _figure(
    key: _Key, values: Mapping[str, Sequence[float]], hosts: Collection[str]
) -> AcceptedFigure | Message:
    medians = [median(each) for each in values.values()]
    middle = median(medians)
    repeats = min(map(len, values.values()))
    within = [stdev(each) / fmean(each) for each in values.values() if len(each) > 1]
    setting = dict(zip(SETTING, key.setting, strict=True))
    try:
        figure = AcceptedFigure(
            model=key.model,
            programs=key.programs,
            nodes=key.nodes,
            network=key.network,
            settings=json.loads(setting.pop("parameters")),
            value=middle,
            measured=len(medians),
            repeats=repeats,
            spread_nodes=stdev(medians) / middle if len(medians) > 1 else None,
            spread_repeats=median(within) if within and repeats > 1 else None,
            **setting,
        )
    except ValidationError:
        return Message("export-text")
    if any(identifying(text, hosts) for _, text in texts_of_figure(figure)):
        return Message("export-identity")
    return figure
