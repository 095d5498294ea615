"""Provides the programs of a plan and records what they are made of.

May import: runs and the rooms below it.
"""
