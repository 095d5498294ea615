"""Proofmark: from a cluster's raw benchmark outputs to an acceptance verdict."""

__version__ = "0.1.0"
