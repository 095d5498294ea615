"""Modes of the machine: changed by a journaled state machine, proven in the operating system.

drain → original → stage → reset → down → up → verified → open, run, and once more to restore.
"""
