"""The report of a node: hardware, settings, error counters and busy processes."""
