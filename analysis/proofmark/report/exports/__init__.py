"""The formats of ``proofmark export`` for tables and submissions: one format in one module."""
