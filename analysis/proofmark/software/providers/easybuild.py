"""Programs that EasyBuild builds from the easystack of an environment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from proofmark.software.easybuild import EasyBuild as Builder
from proofmark.software.easybuild import Module, answer
from proofmark.software.installed import Installed
from proofmark.software.provider import Provider, Say


class EasyBuild(Provider):
    """Programs that EasyBuild builds from the easystack of an environment."""

    def missing(self) -> list[str]:
        """Return the modules that are not installed."""
        return [module.module for module in self._planned if not module.installed]

    def install(self, say: Say) -> Installed:
        """Build the modules that are missing."""
        modules = self._planned
        if self.missing():
            self._builder.install(say)
            modules = self._builder.plan()
        facts = self.request.site.partition.facts
        return answer(self._builder, modules, self.request.programs, facts)

    @cached_property
    def _builder(self) -> Builder:
        request = self.request
        arch = request.site.partition.environment
        return Builder(request.kit, arch, request.prefixes / "easybuild")

    @cached_property
    def _planned(self) -> Sequence[Module]:
        return self._builder.plan()  # EasyBuild resolves the easystack for seconds
