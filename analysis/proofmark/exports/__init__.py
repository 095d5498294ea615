"""Exports a run for other programs: Node Health Check, InfluxDB, Prometheus, ReFrame's logs.

The formats are plug-ins of the entry points ``proofmark.report.exports``.

May import: all other rooms except papers and twin.
"""
