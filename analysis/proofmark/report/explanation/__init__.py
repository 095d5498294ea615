"""Explains a step: what it runs, where, with which inputs, and what its verdict depends on."""
