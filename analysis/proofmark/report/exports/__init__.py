"""Exports of a run: one module for the formats of one kind, and the list of all formats."""
