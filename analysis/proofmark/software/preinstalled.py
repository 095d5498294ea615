"""Programs that the site has already: it names them in its inventory, the role looks at them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from proofmark.common.errors import BadInput, InputError, nearest
from proofmark.site.partition import Preinstalled
from proofmark.software.installed import Installed, Provided

KEPT_OUT = ("_", "SHLVL", "PWD", "OLDPWD")
"""What a shell changes by itself."""


def preinstalled(
    named: Mapping[str, Preinstalled],
    programs: Mapping[str, Collection[str]],
    loaded: Mapping[str, str],
) -> Installed:
    """Return what the site says that it has of the packages in `programs`.

    `loaded` is, by package, what its modules change in the environment, as
    `modules.sh` printed it.

    Raises:
        BadInput: the site does not name a package.
    """
    mistakes = [
        InputError(
            "partition.preinstalled",
            name,
            f"nothing on {name!r}{nearest(name, named)}",
            ", ".join(named) or "prefix or programs of it",
        )
        for name in programs
        if name not in named
    ]
    if mistakes:
        raise BadInput(*mistakes)
    packages = {name: _provided(named[name], programs[name], loaded.get(name)) for name in programs}
    return Installed(origin="preinstalled", packages=packages)


def _provided(named: Preinstalled, programs: Collection[str], loaded: str | None) -> Provided:
    prefix = PurePosixPath(named.prefix)
    paths = {name: str(prefix / named.programs.get(name, f"bin/{name}")) for name in programs}
    return Provided(
        version=named.version,
        spec=" ".join(named.modules),
        target=named.target,
        prefix=named.prefix,
        programs=paths,
        environment={**changes(loaded or ""), **named.environment},
    )


def changes(text: str) -> dict[str, str]:
    """Return the variables that are new or other after the line ``=== loaded``, but functions."""
    before, _, after = text.partition("=== loaded\n")
    old, new = _variables(before), _variables(after)
    return {
        name: value
        for name, value in new.items()
        if old.get(name) != value and name not in KEPT_OUT and "%%" not in name
    }


def _variables(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, sign, value in pairs if sign and name.replace("_", "").isalnum()}
