"""Comparison of like nodes: which are slow, and by how much."""
