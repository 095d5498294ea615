"""The command line: arguments in, one function called, exit code out.

May import: every room.
"""
