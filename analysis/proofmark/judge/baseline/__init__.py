"""Comparison of a run with the accepted runs of its site."""
