"""What speaks to the controllers of machines: many at once, each act with a named outcome.

A back end is one module of `proofmark.machine.bmc.backends`; docs/backends.md says how to add one.
"""
