"""The operating system of a lock: its name in Spack, and the original of a rebuild."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import shipped_data

OS_RELEASE = Path("/etc/os-release")
_OF_DISTRO = {"opensuse-leap": "opensuse"}
"""Names of systems in the package distro, which Spack asks, by their ID (`NORMALIZED_OS_ID`)."""


class Rebuild(StrictModel):
    """How rebuilds of one operating system are recognised; ``data/rebuilds.yml`` explains it."""

    original: str
    platform: str
    like: str


@cache
def _rebuilds() -> tuple[Rebuild, ...]:
    return shipped_data("proofmark.software", "rebuilds.yml", tuple[Rebuild, ...])


@dataclass(frozen=True)
class OperatingSystem:
    """An operating system under the names of Spack: ``rhel`` and ``9``."""

    id: str
    version: str

    @property
    def name(self) -> str:
        """The name in Spack, which is the name of the folder of a lock."""
        return self.id + self.version


def operating_system(os_release: str) -> OperatingSystem:
    """Return the operating system of an ``/etc/os-release``; of a rebuild, its original.

    Raises:
        BadInput: the text has no system, or no version.
    """
    release = _assignments(os_release.splitlines())
    system, version = release.get("ID"), release.get("VERSION_ID")
    if not system or not version:
        raise bad_input(OS_RELEASE, "ID, VERSION_ID", str(release), "both keys")
    major = version.partition(".")[0]
    for rebuild in _rebuilds():
        if platform := re.fullmatch(rebuild.platform, release.get("PLATFORM_ID", "")):
            return OperatingSystem(rebuild.original, platform[1])
        if rebuild.like in release.get("ID_LIKE", "").split():
            return OperatingSystem(rebuild.original, major)
    # As the package distro and Spack name it: openSUSE Leap 15.6 is opensuse15.
    name = _OF_DISTRO.get(system, system).replace("-", "")
    return OperatingSystem(name, version if system == "ubuntu" else major)


def _assignments(lines: Iterable[str]) -> dict[str, str]:
    """Return the variables of ``os-release``, whose values are quoted as in a shell."""
    found: dict[str, str] = {}
    for line in lines:
        name, sign, value = line.strip().partition("=")
        with suppress(ValueError):  # a quotation mark without its partner
            if sign and re.fullmatch("[A-Z0-9_]+", name):
                found[name] = " ".join(shlex.split(value))
    return found


def write_release(folder: Path, system: OperatingSystem) -> None:
    """Write the ``os-release`` that Spack reads with `release_variables`.

    So Spack gives specs on a rebuild the name of the original.
    """
    release = folder / "release" / "os-release"
    release.parent.mkdir(parents=True, exist_ok=True)
    release.write_text(f"ID={system.id}\nVERSION_ID={system.version}\n", encoding="utf-8")


def release_variables(folder: Path) -> dict[str, str]:
    """Return the variable with which Spack reads the ``os-release`` of `write_release`.

    Spack has a copy of the Python package distro, which reads it in the folder UNIXCONFDIR.
    """
    return {"UNIXCONFDIR": str(folder / "release")}


def this_system() -> OperatingSystem:
    """Return the operating system of the controller."""
    return operating_system(OS_RELEASE.read_text(encoding="utf-8"))
