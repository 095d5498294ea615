"""Builds real schedulers from the releases of upstream, and runs the tests that need them."""
