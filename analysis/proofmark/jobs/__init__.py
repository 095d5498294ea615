"""Writes the scripts of jobs and steps; submits, monitors and repeats jobs.

May import: machine, software and the rooms below them.
"""
