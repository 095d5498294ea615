"""Errors, expressions, units, node sets, files, processes. It knows no benchmark and no machine.

May import: nothing of proofmark.
"""
