"""What a benchmark is: its file, its suites, and the rules and the engine that read its output.

May import: common.
"""
