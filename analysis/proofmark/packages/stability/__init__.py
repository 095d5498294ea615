"""A run of days that keeps nodes busy and counts jobs, failures and the time between them.

May import: every room.
"""

from __future__ import annotations

from proofmark.common.plugins import PluginTable

PLUGINS: PluginTable = {
    "proofmark.common.package_keys": {
        "contract.yml": "terms:ContractKeys",
    },
    "proofmark.common.message_table": {
        "stability": "messages:MESSAGES",
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
