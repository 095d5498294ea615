"""The programs that need more than rules of lines: one module with one class each.

The class is a subclass of `proofmark.cases.reader.spec.Program`. The name of the module is the
value of the key ``program`` of a block ``read:``.
"""
