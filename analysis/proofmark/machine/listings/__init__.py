"""How the nodes of each scheduler are listed: one module for each scheduler."""
