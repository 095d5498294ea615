"""Connections to the BMCs of nodes: many at once, each operation with a named outcome.

A back end is one class of `proofmark.machine.bmc.backends`; docs/design/nodes.md describes how to
add one.
"""
