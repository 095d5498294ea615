"""Where programs come from when they are built, or are there already: one module an origin.

Each ends in the same thing, an `Installed`: which packages, with which programs, in which prefix.
"""
