"""Nodes under load for hours and days: jobs and failures counted, and figures that become worse.

May import: every room.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Mapping

from proofmark.cli.command import Parser, above_zero
from proofmark.common.plugins import PluginTable
from proofmark.common.printed_command import CallVariable

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(|d|h|min|s)", re.ASCII)
_PER_DAY = {"": 1, "d": 1, "h": 24, "min": 1440, "s": 86400}
_NUMBER = r"[0-9]{1,6}(?:\.[0-9]{1,20})?"
_LASTS = re.compile(rf"{_NUMBER}(?:d|h|min|s)?")


def _no_days(text: str) -> str:
    return "" if _LASTS.fullmatch(text) else "days, or a number with h, min or s: 14, 36h, 20min"


VARIABLES: Mapping[str, CallVariable] = {
    "stability_days": CallVariable("str", _LASTS, of_plan=True, mistake=_no_days),
    "stability_load": CallVariable("float", re.compile(_NUMBER), of_plan=True),
}
"""The variables of a call that the package adds."""

MESSAGES: Mapping[str, str] = {
    "left-load-size": "jobs of {nodes} nodes: more than the load leaves ({usable:node|nodes})",
    "stability-counts": "{hours} of {wanted} h; jobs: {started} started, {finished} finished, "
    "{invalid} INVALID, {running} running, failed: {failed}",
    "stability-unseen": "nobody looked at the nodes for {unseen} of {hours} h",
    "stability-not-seen": "nobody looked at the nodes in {hours} h, or the scheduler told no state",
    "stability-lines": "{file}: {count:line is|lines are} no look at the nodes, or not in order: "
    "{lines}",
    "stability-damaged": "the history of jobs is damaged: {text}",
    "stability-weaker": "the run was not that of the contract: {text}",
    "stability-term": "{name}: {found}; the contract: {agreed}",
    "stability-ahead": "stability: {hours} h with {load} % of {nodes} nodes busy: about {jobs} "
    "jobs and {node_hours} node-hours a day; nodes of a job: {sizes}; the time begins again after "
    "a failure by: {causes}",
    "stability-no-item": "stability: no item of the contract limits failures, so that the run is "
    "not judged",
    "stability-impossible": "item {number} cannot be met in this time",
    "stability-risk": "item {number} is met with at most {most} failures: a machine with {good} "
    "expected failures is refused with {producer} % (producer's risk), one with {bad} is accepted "
    "with {consumer} % (consumer's risk)",
    "stability-risk-jobs": "item {number} is met with at most {most} failures of {jobs} jobs: a "
    "machine with {good} expected failures is refused with {producer} % (producer's risk), one "
    "with {bad} is accepted with {consumer} % (consumer's risk)",
    "since-start": "{ratio} × the first {minutes} minutes of the run; a repeat has a noise of "
    "{noise} %, and a change of {least} % counts",
    "first-minutes": "the first {minutes} minutes of the run",
    "sensor-changed": "{metric} {before} → {after} {unit}",
}
"""The messages of the package: the code of each, and its English template."""

PLUGINS: PluginTable = {
    "proofmark.common.package_keys": {
        "contract.yml": "terms:ContractKeys",
    },
    "proofmark.common.message_table": {
        "stability": ":MESSAGES",
    },
    "proofmark.site.extra_vars": {
        "stability": ":VARIABLES",
    },
    "proofmark.cli.options": {
        "plan stability": ":stability_options",
    },
    "proofmark.plan.kinds": {
        "stability": "stability_run:StabilityRun",
    },
    "proofmark.jobs.scripts": {
        "stability": "stability_jobs:StabilityJobs",
    },
    "proofmark.judge.additions": {
        "over_time": "over_time:OverTimeJudge",
    },
    "proofmark.judge.judging": {
        "stability": "tally:StabilityJudge",
    },
    "proofmark.report.additions": {
        "over_time": "over_time:OverTimePage",
        "stability": "stability_counts:StabilityPage",
    },
}


def stability_options(parser: Parser) -> None:
    """Add the terms of the run to `parser`."""
    note = "of the suite stability: its duration, in days, or as 36h or 90min"
    parser.add_argument("--stability-days", type=_days, metavar="DAYS", help=note)
    note = "of the suite stability: the share of the nodes that jobs use (default: 0.9)"
    parser.add_argument("--stability-load", type=_share, metavar="SHARE", help=note)


def _days(text: str) -> float | None:
    """Return a duration in days. It is None if the text is empty."""
    from proofmark.packages.stability.terms import MAX_DAYS  # it imports pydantic

    match = _DURATION.fullmatch(text)
    days = float(match[1]) / _PER_DAY[match[2]] if match else 0.0
    if text and not 0 < days <= MAX_DAYS:
        raise ArgumentTypeError(f"{text!r}: accepted: days, or a duration as 36h or 90min")
    return days if text else None


def _share(text: str) -> float | None:
    """Return a share of the nodes. It is None if the text is empty."""
    return above_zero(1.0)(text) if text else None
