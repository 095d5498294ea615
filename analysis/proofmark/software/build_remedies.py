"""What to do about the first error of a build."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import PurePath

import yaml
from pydantic import RootModel

from proofmark.common.strict_model import StrictModel
from proofmark.software.first_error import FirstError, Kind


class SystemPackage(StrictModel):
    """Packages of Debian and RHEL, and what a build finds in them.

    ``data/system_packages.yml`` explains the fields.
    """

    debian: tuple[str, ...]
    rhel: tuple[str, ...]
    headers: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    finds: tuple[str, ...] = ()
    instead: str = ""


class _Table(RootModel[tuple[SystemPackage, ...]]):
    """The content of ``data/system_packages.yml``."""


@cache
def system_packages() -> tuple[SystemPackage, ...]:
    """Return the packages that the kit knows."""
    text = (files("proofmark.software") / "data/system_packages.yml").read_text(encoding="utf-8")
    return _Table.model_validate(yaml.safe_load(text)).root


def package_with(error: FirstError) -> SystemPackage | None:
    """Return the package with what `error` names; None if the kit knows none."""
    return next((each for each in system_packages() if _has(each, error)), None)


def _has(package: SystemPackage, error: FirstError) -> bool:
    name = error.name
    match error.kind:
        case Kind.HEADER_MISSING:
            return name in package.headers
        case Kind.MODULE_MISSING:
            return name.lower().removesuffix(".mod") in package.headers
        case Kind.LIBRARY_MISSING:
            return name in package.libraries
        case Kind.SYMBOL_MISSING:
            return bool(name) and name.startswith(package.symbols)
        case Kind.TOOL_MISSING | Kind.COMPILER_MISSING:
            return PurePath(name).name in package.tools
        case Kind.PACKAGE_MISSING:
            return name in package.finds
        case _:
            return False


_ADVICE = {
    Kind.NO_SPACE: "free space, or another folder (provision_prefixes)",
    Kind.KILLED: "more memory, or fewer processes of a build (provision_jobs=1)",
    Kind.HEADER_MISSING: "the header {name}",
    Kind.MODULE_MISSING: "the module {name}, made by this Fortran compiler",
    Kind.LIBRARY_MISSING: "the library {name}",
    Kind.SYMBOL_MISSING: "a library with {name} in the call of the linker",
    Kind.TOOL_MISSING: "the program {name}",
    Kind.COMPILER_MISSING: "a {name} compiler",
    Kind.COMPILER_FAILS: "a {name} compiler that works (see config.log)",
    Kind.PACKAGE_MISSING: "the package {name}",
    Kind.CONFIGURE_ERROR: "what configure requires",
    Kind.CMAKE_ERROR: "what CMake requires",
    Kind.COMPILE_ERROR: "sources that this compiler accepts",
    Kind.COMMAND_ERROR: "a command that succeeds",
}


def what_to_do(error: FirstError) -> str:
    """Return what the build needs, with the packages of Debian and RHEL if the kit knows them."""
    return "; ".join(_parts(error))


def _parts(error: FirstError) -> Iterator[str]:
    yield _ADVICE[error.kind].format(name=error.name)
    if package := package_with(error):
        yield f"Debian: {' '.join(package.debian)}"
        yield f"RHEL: {' '.join(package.rhel)}"
        if package.instead:
            yield f"or {package.instead}"
