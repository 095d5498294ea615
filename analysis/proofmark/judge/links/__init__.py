"""The slow elements of a fabric, from the measurements of many pairs of its nodes."""
