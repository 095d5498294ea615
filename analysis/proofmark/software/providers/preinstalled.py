"""Programs that the site has installed; its inventory names them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from proofmark.site.inventory import Site
from proofmark.software.installed import Installed, preinstalled
from proofmark.software.provider import Provider


class PreinstalledPrograms(Provider):
    """Programs that the site has installed."""

    def missing(self) -> list[str]:
        """Return an empty list: the kit installs none of these programs."""
        return []

    def install(self) -> Installed:
        """Return the packages that the inventory names; install nothing.

        Raises:
            BadInput: the inventory does not name a package of the request.
        """
        request = self.request
        return preinstalled(request.preinstalled, request.programs, request.module_output)

    @classmethod
    def packages(cls, kit: Path, site: Site) -> Collection[str]:
        """Return the packages that the inventory names."""
        return site.partition.preinstalled.keys()

    def modules(self) -> dict[str, Sequence[str]]:
        """Return the modules that the inventory names, by package of the request."""
        entries = self.request.preinstalled
        return {
            name: list(entries[name].modules) for name in self.request.programs if name in entries
        }
