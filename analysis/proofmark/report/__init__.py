"""Shows a judged run: the page; works offline.

May import: judge and the rooms below it; never machine or jobs.
"""
