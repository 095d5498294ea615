"""Talks to the live machine: nodes, BMCs, firmware modes, scratch, schedulers.

May import: runs and the rooms below it.
"""
