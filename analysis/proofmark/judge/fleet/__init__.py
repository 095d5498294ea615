"""Nodes held against their fellows: who is slow, by how much, and what the slow ones share."""
