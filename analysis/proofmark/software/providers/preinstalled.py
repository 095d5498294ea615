"""Programs that the site has already, as its inventory names them."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.software.installed import Installed
from proofmark.software.preinstalled import preinstalled
from proofmark.software.provider import Provider, Say


class OfTheSite(Provider):
    """Programs that the site has already."""

    def missing(self) -> list[str]:
        """Return nothing: the kit installs none of them."""
        return []

    def install(self, say: Say) -> Installed:
        """Return what the site names."""
        request = self.request
        return preinstalled(request.site.partition.preinstalled, request.programs, request.loaded)

    def modules(self) -> dict[str, Sequence[str]]:
        """Return the modules that the site names for the packages of the run."""
        named = self.request.site.partition.preinstalled
        return {name: list(named[name].modules) for name in self.request.programs if name in named}
