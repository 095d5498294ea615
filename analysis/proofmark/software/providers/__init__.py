"""The providers that the kit has: one module and one class each.

The class is a subclass of `proofmark.software.provider.Provider`.
"""
