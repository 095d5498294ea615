"""A run of days that keeps nodes busy and counts jobs, failures and the time between them.

May import: every room.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from proofmark.common.plugins import PluginTable
from proofmark.common.printed_command import CallVariable

_NUMBER = r"[0-9]{1,6}(?:\.[0-9]{1,20})?"
VARIABLES: Mapping[str, CallVariable] = {
    "stability_days": CallVariable("str", re.compile(rf"{_NUMBER}(?:d|h|min|s)?"), of_plan=True),
    "stability_load": CallVariable("float", re.compile(_NUMBER), of_plan=True),
}
"""The variables of a call that the package adds."""

PLUGINS: PluginTable = {
    "proofmark.common.package_keys": {
        "contract.yml": "terms:ContractKeys",
    },
    "proofmark.common.message_table": {
        "stability": "messages:MESSAGES",
    },
    "proofmark.site.extra_vars": {
        "stability": ":VARIABLES",
    },
    "proofmark.cli.options": {
        "plan stability": "command_line:stability_options",
    },
    "proofmark.plan.kinds": {
        "stability": "stability_run:StabilityRun",
    },
    "proofmark.jobs.scripts": {
        "stability": "stability_jobs:StabilityJobs",
    },
    "proofmark.judge.judging": {
        "stability": "tally:StabilityJudge",
    },
    "proofmark.report.additions": {
        "stability": "stability_counts:StabilityPage",
    },
}
