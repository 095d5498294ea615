"""What a node is: its hardware, settings, error counters, and the programs it runs."""
