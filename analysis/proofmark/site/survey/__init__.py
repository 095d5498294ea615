"""What a scheduler and a node report about a site, and the inventory that follows from it."""
