"""The head of a page, and the font of its Korean plots."""
