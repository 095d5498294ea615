"""The history of the figures of a machine over many runs."""
