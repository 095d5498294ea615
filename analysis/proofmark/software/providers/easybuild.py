"""Programs that EasyBuild builds from the easystack of the kit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path

from proofmark.site.inventory import Site
from proofmark.software.build_process import Say
from proofmark.software.easybuild_modules import EasyBuildInstallation, Module, installed_packages
from proofmark.software.installed import Installed
from proofmark.software.provider import Provider


class EasyBuild(Provider):
    """Programs that EasyBuild builds from the easystack of the kit."""

    def missing(self) -> list[str]:
        """Return the modules of the easystack that are not installed."""
        return [module.module for module in self._modules if not module.installed]

    def install(self, say: Say) -> Installed:
        """Build the missing modules and return the packages of the request.

        Raises:
            BadInput: the easystack cannot be resolved, a build failed, or a program is missing.
            Stopped: this process received SIGINT or SIGTERM.
        """
        modules = self._modules
        if self.missing():
            self._easybuild.install(say)
            modules = self._easybuild.modules()
        request = self.request
        return installed_packages(self._easybuild, modules, request.programs, request.facts)

    @classmethod
    def packages(cls, kit: Path, site: Site) -> Collection[str]:
        """Return the packages of the easystack.

        Raises:
            BadInput: the environment has no target, or the easystack is wrong.
        """
        return EasyBuildInstallation(kit, site.partition.environment, kit).packages()

    @cached_property
    def _easybuild(self) -> EasyBuildInstallation:
        request = self.request
        return EasyBuildInstallation(
            request.kit,
            request.arch,
            request.prefixes / "easybuild",
            request.toolchain,
            request.sources.mirror,
            request.jobs,
            frozenset(request.programs),
        )

    @cached_property
    def _modules(self) -> Sequence[Module]:
        return self._easybuild.modules()  # cached: EasyBuild needs seconds for it
