"""Which nodes are bad, and the likely cause of each."""
