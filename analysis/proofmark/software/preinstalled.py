"""Programs that the site has installed; its inventory names them, and the role probes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from proofmark.common.errors import BadInput, InputError, nearest
from proofmark.site.partition import Preinstalled
from proofmark.software.installed import Installed, Provided

SHELL_VARIABLES = ("_", "SHLVL", "PWD", "OLDPWD")
"""Variables that a shell changes without a command."""


def preinstalled(
    entries: Mapping[str, Preinstalled],
    programs: Mapping[str, Collection[str]],
    module_output: Mapping[str, str],
) -> Installed:
    """Return the packages in `programs` as the inventory describes them.

    Args:
        entries: ``partition.preinstalled``, by package.
        programs: the programs that are needed, by package.
        module_output: the output of ``modules.sh``, by package.

    Raises:
        BadInput: the inventory does not name a package.
    """
    mistakes = [
        InputError(
            "partition.preinstalled",
            name,
            f"no entry for this package{nearest(name, entries)}",
            f"its prefix and version (entries: {', '.join(entries) or 'none'})",
        )
        for name in programs
        if name not in entries
    ]
    if mistakes:
        raise BadInput(*mistakes)
    packages = {
        name: _provided(entries[name], programs[name], module_output.get(name, ""))
        for name in programs
    }
    return Installed(origin="preinstalled", packages=packages)


def _provided(entry: Preinstalled, programs: Collection[str], module_output: str) -> Provided:
    prefix = PurePosixPath(entry.prefix)
    paths = {name: str(prefix / entry.programs.get(name, f"bin/{name}")) for name in programs}
    return Provided(
        version=entry.version,
        spec=" ".join(entry.modules),
        target=entry.target,
        prefix=entry.prefix,
        programs=paths,
        environment={**changed_variables(module_output), **entry.environment},
    )


def changed_variables(text: str) -> dict[str, str]:
    """Return the variables that the modules set or change; shell functions are left out.

    `text` is the output of ``modules.sh``: all variables before and after ``=== loaded``.
    """
    before, _, after = text.partition("=== loaded\n")
    old, new = _variables(before), _variables(after)
    return {
        name: value
        for name, value in new.items()
        if old.get(name) != value and name not in SHELL_VARIABLES and "%%" not in name
    }


def _variables(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, sign, value in pairs if sign and name.replace("_", "").isalnum()}
