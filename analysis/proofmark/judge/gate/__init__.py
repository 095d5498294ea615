"""Decides from a verdict which nodes return to service (docs/design/gate.md)."""
