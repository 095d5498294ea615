"""From a baseline of this site to the file for others: which figures go in, and which never do."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

import polars as pl
from pydantic import ValidationError

from proofmark.cases.suite import Benchmarks
from proofmark.cases.telemetry import TELEMETRY
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
from proofmark.common.nodesets import hosts_of
from proofmark.runs.format import this_kit
from proofmark.site.accepted_baseline import (
    AcceptedFigure,
    AcceptedNodes,
    Baseline,
    BaselineElsewhere,
    Programs,
    StatedModel,
    identifying,
    model_of,
    texts_of_figure,
)
from proofmark.site.partition import PREDICTED

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

    Args:
        figures: of these runs, with the columns of a baseline.
        hosts: each name of the hosts of the site, in small letters (`names_of_hosts`).
        label: who made the figures, as the site states it.

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
            tuple(str(row[name]) for name in SETTING),
            len(of_nodes),
            network,
            _key_of(made.models, model, "node"),
            _key_of(made.programs, stated, stated.package),
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
    """Return the one model of the nodes of a figure, or why there is none."""
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
    """Return a figure of the file, or why it is not in it."""
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
