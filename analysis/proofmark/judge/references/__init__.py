"""What a figure is held against, and how: contract, published, derived and expected figures."""
