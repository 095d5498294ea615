"""The readers of the outputs of programs: one module with one class for each program.

The class is a subclass of `proofmark.cases.reader.spec.Program`. The name of the module is the
value of the key ``program`` of a block ``read:``.
"""
