"""The request to a provider: programs, their sources, and the folder of the installation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proofmark.site.partition import Preinstalled, Toolchain


@dataclass(frozen=True)
class Sources:
    """Sources of Spack and of what it installs; None is the public address.

    Attributes:
        spack: the site's own checkout of Spack, at the pinned commit.
        packages: the site's own checkout of spack-packages, at the pinned commit.
        bundle: an unpacked bundle; nothing then comes from the network.
        cache: a folder with a build cache, signed by `key`.
        key: the file with the public key of the site.
        upstream: whether the addresses of the recipes are asked too, if `bundle` or `mirror` is
            given.
    """

    spack: Path | None = None
    packages: Path | None = None
    bundle: Path | None = None
    mirror: Path | None = None
    cache: Path | None = None
    key: Path | None = None
    upstream: bool = False

    @property
    def offline(self) -> bool:
        """Whether the sources of programs come from `bundle` and `mirror` only."""
        return bool(self.bundle or self.mirror) and not self.upstream


@dataclass(frozen=True)
class ProvisionRequest:
    """The programs that are needed, and the inputs of a provider.

    Attributes:
        kit: the checkout of Proofmark.
        arch: the environment's folder in ``environments/``.
        programs: the programs that are needed, by package.
        prefixes: the folder under which programs are installed.
        sources: the sources of Spack; EasyBuild reads only its mirror.
        site_locks: the folder of the site's own locks, ``<arch>/<os>/spack.lock``.
        bundle: the file of a bundle, for an installation without a network.
        toolchain: the compiler, MPI and BLAS of EasyBuild's programs.
        jobs: the number of processes of a build; 0 is the default of the builder.
        facts: the facts of the partition, for the names of programs.
        preinstalled: the packages that the inventory names, by package.
        module_output: the output of ``modules.sh``, by package.
    """

    kit: Path
    arch: str
    programs: Mapping[str, Collection[str]]
    prefixes: Path
    sources: Sources = field(default_factory=Sources)
    site_locks: Path | None = None
    bundle: Path | None = None
    toolchain: Toolchain = Toolchain.FOSS
    jobs: int = 0
    facts: Mapping[str, object] = field(default_factory=dict)
    preinstalled: Mapping[str, Preinstalled] = field(default_factory=dict)
    module_output: Mapping[str, str] = field(default_factory=dict)
