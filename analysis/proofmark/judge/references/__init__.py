"""Comparison of a figure with its references: contract, published, derived and expected limits."""
