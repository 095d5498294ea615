"""What each BMC vendor calls the abstract settings of a mode, one file ``<vendor>.yml`` each.

The names of attributes come from public mockups, registries and manuals, which each file names.
"""
