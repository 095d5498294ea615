"""Proofmark: from a cluster's raw benchmark outputs to an acceptance verdict."""

__version__ = "0.1.0"
RELEASES = (__version__,)
"""All releases, the newest last: the headings of CHANGELOG.md. `verify` knows no other kit."""
