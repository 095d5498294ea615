"""From records to a verdict: aggregates, references, fleet, diagnosis, comparison.

It works offline. May import: records and the rooms below it; never machine or jobs.
"""
