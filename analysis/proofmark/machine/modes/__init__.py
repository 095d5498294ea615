"""Modes of nodes: a journaled state machine changes them, and the operating system proves them.

drain → original → stage → reset → down → up → verified → open, then the steps, and once more to
restore.
"""
