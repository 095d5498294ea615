"""Build tools and compilers of a system, found by Spack itself at its pinned commit."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from proofmark.common.errors import bad_input
from proofmark.common.processes import of_spack, run_command
from proofmark.software.spack.lock_make import Checkouts
from proofmark.software.spack.site_parts import SitePart

TOOLS = (
    *("autoconf", "automake", "libtool", "m4", "perl", "pkgconf", "gmake", "file", "python"),
    *("diffutils", "findutils", "gettext", "tar", "sed", "cmake"),
)
"""Programs that only a build uses."""

ARCHIVE = Path("/usr/share/aclocal/ax_prog_cc_mpi.m4")
"""A file of autoconf-archive, which has no program by which Spack could find it."""


@dataclass(frozen=True)
class FoundTools:
    """Build tools, and the entries of `externals` of gcc."""

    tools: tuple[SitePart, ...]
    compilers: tuple[Mapping[str, Any], ...]


def find_tools(checkouts: Checkouts, folders: Sequence[str]) -> FoundTools:
    """Run ``spack external find`` with the folders of programs `folders`.

    Raises:
        BadInput: Spack failed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "system").mkdir()
        variables = of_spack({**checkouts.variables(folder), "PATH": ":".join(folders)})
        words = ["external", "find", "gcc", *TOOLS]
        done = run_command(checkouts.command(*words), environment=variables)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise bad_input("spack external find", "", last, "build tools")
        packages = folder / "user/packages.yaml"
        text = packages.read_text(encoding="utf-8") if packages.is_file() else "packages: {}"
    return read_found(text, _archive_version())


def read_found(text: str, archive: str = "") -> FoundTools:
    """Return the tools and compilers of a ``packages.yaml`` of Spack, the newest of each tool.

    Args:
        archive: the version of the system's autoconf-archive; empty if it has none.
    """
    packages = yaml.load(text, Loader=yaml.CSafeLoader)["packages"]
    tools = [
        max(parts, key=lambda part: [int(number) for number in re.findall(r"\d+", part.version)])
        for name, entry in sorted(packages.items())
        if name in TOOLS and (parts := list(_parts(name, entry)))
    ]
    if archive:
        tools.append(SitePart("autoconf-archive", archive, "/usr", file=str(ARCHIVE)))
    compilers = packages.get("gcc", {}).get("externals", [])
    return FoundTools(tuple(tools), tuple(compilers))


def _parts(name: str, entry: Mapping[str, Any]) -> Iterator[SitePart]:
    for external in entry["externals"]:
        match = re.match(r"[\w-]+@=?([\w.]+)(.*)", str(external["spec"]))
        if match:
            yield SitePart(name, match[1], str(external["prefix"]), match[2].strip())


def _archive_version() -> str:
    if not ARCHIVE.is_file():
        return ""
    for command in (
        ["dpkg-query", "-W", "-f", "${Version}", "autoconf-archive"],
        ["rpm", "-q", "--qf", "%{VERSION}", "autoconf-archive"],
    ):
        if shutil.which(command[0]):
            done = run_command(command)
            if done.returncode == 0:
                return archive_version(done.stdout)
    return ""


def archive_version(package: str) -> str:
    """Return Spack's version of the version of a package: 2022.09.03 of ``20220903-3``."""
    digits = re.match(r"(\d{4})\.?(\d{2})\.?(\d{2})", package)
    return ".".join(digits.groups()) if digits else ""


def choose_compiler(
    found: Sequence[Mapping[str, Any]], kit: Mapping[str, Any] | None, choice: str
) -> Mapping[str, Any] | None:
    """Return the entry of the gcc to use; None for the one that the kit's file names.

    Args:
        found: the entries that Spack found.
        kit: the kit's entry for this operating system; None if the kit has none.
        choice: ``gcc@<version>`` or a prefix; empty if the site chooses none.

    Raises:
        BadInput: the choice is not found, there is no gcc, or there are several.
    """
    listed = "; ".join(f"{each['spec']} ({each['prefix']})" for each in found) or "none"
    usable = [each for each in found if _version(each) and "fortran" in str(each["spec"])]
    if choice:
        usable = [each for each in found if choice in (f"gcc@{_version(each)}", each["prefix"])]
    elif kit and any(_same(each, kit) for each in usable):
        return None
    if len(usable) != 1:
        raise bad_input("--compiler", choice, listed, "one gcc with C, C++ and Fortran")
    return None if kit and _same(usable[0], kit) else usable[0]


def _version(entry: Mapping[str, Any]) -> str:
    match = re.match(r"gcc@=?([\d.]+)", str(entry["spec"]))
    return match[1] if match else ""


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (_version(one), one["prefix"]) == (_version(other), other["prefix"])
