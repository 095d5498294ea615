"""The base class of providers: each installs the programs of a run, or finds them on the site."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from proofmark.common.errors import bad_input, nearest
from proofmark.common.plugins import Plugins
from proofmark.site.inventory import Site
from proofmark.software.installed import Installed, ProvisionRequest


class Provider(ABC):
    """Provides the programs of a request."""

    def __init__(self, request: ProvisionRequest) -> None:
        self.request = request

    @abstractmethod
    def missing(self) -> list[str]:
        """Return the specs or modules that `install` would install; change nothing."""

    @abstractmethod
    def install(self) -> Installed:
        """Install the missing programs and return the packages of the request.

        Raises:
            BadInput: a program cannot be installed.
            Stopped: this process received SIGINT or SIGTERM.
        """

    def modules(self) -> dict[str, Sequence[str]]:
        """Return the environment modules of each package; empty if the provider has none."""
        return {}

    @classmethod
    def packages(cls, kit: Path, site: Site) -> Collection[str] | None:
        """Return the packages that the provider can install or find for the partition of `site`.

        The names are those of the cases. Nothing is installed, and no node is reached. None if the
        provider cannot list them before an installation.

        Raises:
            BadInput: the environment of the partition does not have the files of the provider.
        """
        return None

    @classmethod
    def programs(cls, kit: Path, site: Site) -> Mapping[str, Collection[str]]:
        """Return the programs of the packages of which the provider has only some.

        The arguments are those of `packages`, which has returned names before.
        """
        return {}

    @classmethod  # noqa: B027
    def check_prefixes(cls, prefixes: Path) -> None:
        """Refuse a folder under which the provider cannot install; accept every folder by default.

        Raises:
            BadInput: the provider cannot install there.
        """


PROVIDERS = Plugins(Provider, "proofmark.software.providers", "provision_from")
"""All providers: those of the kit, and those of a site by entry points of this group."""


SYSTEM = "system"
"""The value of ``provision_from`` for packages of the distribution."""


def check_name(name: str) -> None:
    """Refuse a value of ``provision_from`` that no provider has.

    Raises:
        BadInput: no provider has the name `name`.
    """
    # The role installs the packages of ``system`` by itself.
    if name not in (names := [SYSTEM, *PROVIDERS.names()]):
        raise bad_input("provision_from", "", f"{name!r}{nearest(name, names)}", ", ".join(names))


def check_provider(name: str, prefixes: Path) -> None:
    """Refuse a value of ``provision_from`` that is not accepted.

    Raises:
        BadInput: no provider has the name `name`, its class cannot be imported, or it cannot
            install under `prefixes`.
    """
    check_name(name)
    if name != SYSTEM:
        PROVIDERS.get(name).check_prefixes(prefixes)


def packages_at(kit: Path, site: Site) -> Mapping[str, Collection[str] | None] | None:
    """Return the packages of the partition's provider; None if it cannot list them.

    The value of a package is its programs, or None if it has every program that a case names.

    Raises:
        BadInput: there is no such provider, or see `Provider.packages`.
    """
    from proofmark.software.environments import own_packages

    name, environment = site.partition.provision_from, site.partition.environment
    if name == SYSTEM:
        # Its models take time to import; most commands need only the names of the providers.
        from proofmark.software.environments import programs_of_system

        return programs_of_system(kit / "environments", environment)
    provider = PROVIDERS.get(name)
    packages = provider.packages(kit, site)
    if packages is None:
        return None
    own = own_packages(kit / "environments")
    return {**dict.fromkeys([*packages, *own]), **provider.programs(kit, site)}
