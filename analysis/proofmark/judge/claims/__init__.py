"""The plug-ins with claims are entry points of this group; the kit has those of its papers."""
