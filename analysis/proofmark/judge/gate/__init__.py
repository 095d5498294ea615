"""Decides from a verdict which nodes return to service (ADR 0105)."""
