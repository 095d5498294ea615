"""Exports a run for other programs: Node Health Check, InfluxDB, Prometheus, ReFrame's logs.

May import: every room.
"""

from __future__ import annotations

from proofmark.common.plugins import PluginTable

PLUGINS: PluginTable = {
    "proofmark.report.exports": {
        "influx": "influx:InfluxDb",
        "nhc": "nhc:NodeHealthCheck",
        "perflog": "perflog:Perflog",
        "prometheus": "prometheus:Prometheus",
    },
}
