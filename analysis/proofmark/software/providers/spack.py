"""Programs that Spack builds from the lock of an environment."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from proofmark.site.inventory import Site
from proofmark.software.installed import Installed, ProvisionRequest
from proofmark.software.provider import Provider
from proofmark.software.spack.install import choose_lock, install, missing_specs
from proofmark.software.spack.installation import check_path, this_system
from proofmark.software.spack.lock_check import read_target


class Spack(Provider):
    """Programs that Spack builds from the lock of an environment."""

    def missing(self) -> list[str]:
        """Return the specs of the lock that are not installed, as name and version."""
        return [spec.label for spec in missing_specs(self.request, this_system().name)]

    @classmethod
    def packages(cls, kit: Path, site: Site) -> Collection[str]:
        """Return the packages of the lock from which this controller would install.

        Raises:
            BadInput: see `choose_lock`; or the environment has no ``spack.yaml``.
        """
        arch, locks = site.partition.environment, site.inventory / "locks"
        read_target(kit / "environments" / arch)  # refuses an unknown environment
        request = ProvisionRequest(kit, arch, {}, kit, site_locks=locks)
        return choose_lock(request, this_system().name).lock.roots.keys()

    @classmethod
    def check_prefixes(cls, prefixes: Path) -> None:
        """Refuse a folder whose path is too long for Spack, or has a blank.

        Raises:
            BadInput: it is too long, or has a blank.
        """
        check_path(prefixes)

    def install(self) -> Installed:
        """Install the missing specs of the lock and return the packages of the request.

        Raises:
            BadInput: the lock is stale, a source or signature is missing, or a build failed.
            Stopped: this process received SIGINT or SIGTERM.
        """
        return install(self.request, this_system().name)
