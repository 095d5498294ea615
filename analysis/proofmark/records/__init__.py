"""Turns the raw outputs of a run into records that are valid or INVALID; works offline.

May import: software and the rooms below it; never machine or jobs.
"""
