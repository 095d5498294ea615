"""A provider: where the programs of a run come from if the playbooks do not install them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proofmark.common.plugins import Plugins
from proofmark.plan.plan import Plan
from proofmark.site.inventory import Site
from proofmark.software.installed import Installed
from proofmark.software.spack.installation import Sources

Say = Callable[[str], None]


@dataclass(frozen=True)
class ProvisionRequest:
    """What a run needs, and what a provider may use.

    Attributes:
        kit: the checkout.
        site: the run's.
        programs: the programs that the steps call, by package.
        prefixes: the folder under which programs are installed.
        sources: Spack's own checkouts, mirror and build cache.
        bundle: a bundle for an installation without a network.
        jobs: processes of a build; 0: the builder's choice.
        loaded: what the modules of a package change in the environment, by package.
    """

    kit: Path
    site: Site
    programs: Mapping[str, Collection[str]]
    prefixes: Path
    sources: Sources = field(default_factory=Sources)
    bundle: Path | None = None
    jobs: int = 0
    loaded: Mapping[str, str] = field(default_factory=dict)


class Provider(ABC):
    """Provides the programs of a request."""

    def __init__(self, request: ProvisionRequest) -> None:
        self.request = request

    @abstractmethod
    def missing(self) -> list[str]:
        """Return what has to be installed; installs nothing."""

    @abstractmethod
    def install(self, say: Say) -> Installed:
        """Install what is missing, and return what the run uses.

        Raises:
            BadInput: it cannot be installed.
            Stopped: SIGINT or SIGTERM came.
        """

    def modules(self) -> dict[str, Sequence[str]]:
        """Return the environment modules of each package; nothing if there are none."""
        return {}


PROVIDERS = Plugins(Provider, "proofmark.software.providers", "--from")
"""All providers; a site's own are entry points of this group."""


def programs_of(plan: Plan) -> dict[str, set[str]]:
    """Return the programs that the steps of `plan` call, by package."""
    programs: dict[str, set[str]] = {}
    for step in plan.steps():
        programs.setdefault(step.package, set()).add(step.program)
    return dict(sorted(programs.items()))
