"""The page with the figures of all runs over time."""
