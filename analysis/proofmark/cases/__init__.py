"""Benchmarks: case files, suites, and the rules and the engine that read a program's output.

May import: common.
"""
