"""Errors, expressions, units, node sets, files and processes: nothing of benchmarks or machines.

May import: nothing of proofmark.
"""
