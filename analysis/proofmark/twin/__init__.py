"""The twin of a partition: a model of its nodes and network, on which SimGrid runs MPI programs.

Its plug-ins register themselves by entry points. May import: every room but papers.
"""
