"""Programs that are compiled against SimGrid's SMPI, for the twin of a partition."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from proofmark.packages.twin.smpi import build, missing_programs, releases
from proofmark.site.inventory import Site
from proofmark.software.build_process import Say
from proofmark.software.installed import Installed
from proofmark.software.provider import Provider


class TwinPrograms(Provider):
    """Programs that are compiled against SimGrid's SMPI."""

    def missing(self) -> list[str]:
        """Return the packages that are not compiled."""
        request = self.request
        return missing_programs(request.kit / "environments", request.programs, request.prefixes)

    def install(self, say: Say) -> Installed:
        """Compile the packages from the releases of their projects.

        Raises:
            BadInput: a source is not available, or cannot be compiled.
        """
        request = self.request
        environments, mirror = request.kit / "environments", request.sources.mirror
        packages = {
            name: build(environments, name, request.prefixes, mirror, say)
            for name in request.programs
        }
        return Installed(origin="twin", packages=packages)

    @classmethod
    def packages(cls, kit: Path, site: Site) -> Collection[str]:
        """Return the packages whose sources are known."""
        return releases(kit / "environments").keys()

    @classmethod
    def programs(cls, kit: Path, site: Site) -> Mapping[str, Collection[str]]:
        """Return, for each package, the names of its compiled programs."""
        known = releases(kit / "environments")
        return {package: release.programs.keys() for package, release in known.items()}
