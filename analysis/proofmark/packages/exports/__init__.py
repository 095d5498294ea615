"""Exports a run for other programs: Node Health Check, JUnit, a submission of HPL.

May import: every room.
"""

from __future__ import annotations

from proofmark.common.plugins import PluginTable

PLUGINS: PluginTable = {
    "proofmark.report.exports": {
        "junit": "junit:Junit",
        "hpl": "submission:HplSubmission",
        "nhc": "nhc:NodeHealthCheck",
    },
}
