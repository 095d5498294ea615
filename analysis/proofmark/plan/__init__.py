"""Expands a suite on a site into placed, costed and ordered steps; its functions are pure.

May import: site and the rooms below it.
"""
