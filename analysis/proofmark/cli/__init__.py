"""The command line: it parses the arguments, calls one function and returns the exit code.

May import: every room.
"""
