"""The optional packages: subjects beside the mission, each in a folder that can be removed.

`PLUGINS` of a package lists what it adds to the kinds of plug-ins of the core: by the group of the
kind, the name of each plug-in and its class, ``module:Class`` in the folder of the package.

May import: all rooms. A room imports no package, and a package imports no other package.
"""
