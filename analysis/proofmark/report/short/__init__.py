"""The summary of a run: the two pages that are signed, as HTML and as PDF."""
