"""The plots that the kit has: one module and one class each.

The class is a subclass of `proofmark.report.plot.Plot`.
"""
