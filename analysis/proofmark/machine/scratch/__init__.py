"""The scratch folder on the nodes: how it is mounted, and what is required of it."""
