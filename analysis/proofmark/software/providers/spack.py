"""Programs that Spack builds from the lock of an environment."""

from __future__ import annotations

from proofmark.software.installed import Installed
from proofmark.software.provider import Provider, Say
from proofmark.software.spack.install import Order, install, this_system, to_do


class Spack(Provider):
    """Programs that Spack builds from the lock of an environment."""

    def missing(self) -> list[str]:
        """Return the specs that are not installed."""
        return [spec.label for spec in to_do(self._order(), this_system())]

    def install(self, say: Say) -> Installed:
        """Install the specs of the lock."""
        return install(self._order(), this_system(), say)

    def _order(self) -> Order:
        request = self.request
        return Order(
            kit=request.kit,
            arch=request.site.partition.environment,
            programs=request.programs,
            prefixes=request.prefixes,
            sources=request.sources,
            site_locks=request.site.inventory / "locks",
            bundle=request.bundle,
            jobs=request.jobs,
        )
