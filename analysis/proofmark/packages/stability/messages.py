"""The messages of the package: the code of each, and its English template."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "left-load-size": "jobs of {nodes} nodes: more than the load leaves ({usable} nodes)",
    "stability-counts": "{hours} of {wanted} h; jobs: {started} started, {finished} finished, "
    "{invalid} INVALID, {running} running, failed: {failed}",
    "stability-unseen": "nobody looked at the nodes for {unseen} of {hours} h",
    "stability-not-seen": "nobody looked at the nodes in {hours} h, or the scheduler told no state",
    "stability-lines": "{file}: {count} lines are no look at the nodes, or not in order: {lines}",
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
}
