"""The experiments of papers P1 … P5: their claims, their figures, and what they published.

Its plug-ins register themselves by entry points. May import: report and the rooms below it.
"""
