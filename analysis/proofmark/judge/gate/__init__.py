"""Decides from a verdict which nodes return to service (docs/design/playbooks.md)."""
