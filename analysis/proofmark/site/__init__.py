"""The inventory of a site, and the reports of its nodes.

May import: cases and the rooms below it.
"""
