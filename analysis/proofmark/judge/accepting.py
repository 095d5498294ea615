"""Accepts a run as a baseline of its partition."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from proofmark.common.errors import bad_input
from proofmark.judge.baseline.changes import capacity_of, node_states
from proofmark.judge.baseline.circumstances import Circumstances
from proofmark.judge.ending import MEANING
from proofmark.judge.verdict import Verdict
from proofmark.site.adopted import IMPORTED
from proofmark.site.baseline import COLUMNS, AcceptedRun, Baseline, refuse_predicted

ACCEPTABLE = {0: "PASS", 4: "UNJUDGED"}
"""The exit codes of verdicts that can be accepted; the second one only with a reason."""


@dataclass(frozen=True)
class Acceptance:
    """What the person who accepts a run states, and who signed it.

    Attributes:
        name: of the baseline.
        when: the time of the acceptance.
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


def accepted_baseline(
    run: str, verdict: Verdict, values: pl.DataFrame, about: Circumstances, stated: Acceptance
) -> Baseline:
    """Return a baseline of one run, without the digest of its figures.

    Args:
        run: the id of the run.
        verdict: of the run.
        values: of the run (`proofmark.judge.baseline.table`).
        about: its nodes and programs.
        stated: what the person who accepts it states.

    Raises:
        BadInput: the figures are predicted, the verdict is FAIL or INVALID, a reason or a label is
            missing, or the run has no figure that can be compared.
    """
    for origin in sorted({each.origin for each in verdict.results.aggregates.records.measurands}):
        refuse_predicted("RUN", origin)
    code = verdict.exit_code()
    if code not in ACCEPTABLE:
        raise bad_input("RUN", "verdict", MEANING[code], "PASS, or UNJUDGED with --reason")
    if code and not stated.reason:
        raise bad_input("--reason", "", "nothing", "the reason to accept an UNJUDGED run")
    origin = _origin(set(values["origin"].unique()), stated)
    capacities = {host: capacity_of(facts) for host, facts in about.nodes.items()}
    return Baseline(
        name=stated.name,
        site=about.site.name,
        partition=about.site.partition_name,
        origin=origin,
        label=stated.label,
        runs=(
            AcceptedRun.model_validate(
                {
                    "run": run,
                    "accepted": stated.when,
                    "signer": stated.signer,
                    "checksums": stated.checksums,
                    "verdict": ACCEPTABLE[code],
                    "reason": stated.reason,
                    "libraries": about.libraries(),
                }
            ),
        ),
        nodes=node_states(about.traits(), capacities),
        figures=NO_DIGEST,
    )


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
