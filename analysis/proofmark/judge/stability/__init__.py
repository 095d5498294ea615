"""Counts the jobs of a stability run, and judges the terms of the contract by them."""
