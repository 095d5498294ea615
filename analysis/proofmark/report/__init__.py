"""Shows a judged run: the page and exports; works offline.

May import: judge and the rooms below it; never machine or jobs.
"""
