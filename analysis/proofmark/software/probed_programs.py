"""Programs that the site has installed; its inventory names them, and the role probes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from proofmark.common.errors import BadInput, InputError
from proofmark.common.message import Message
from proofmark.common.processes import is_secret
from proofmark.site.partition import Preinstalled
from proofmark.software.installed import Installed, Provided


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
            "no entry for this package",
            f"its prefix and version (entries: {', '.join(entries) or 'none'})",
        )
        for name in programs
        if name not in entries
    ]
    if mistakes:
        raise BadInput(*mistakes)
    packages = {
        name: _provided(name, entries[name], programs[name], module_output.get(name, ""))
        for name in programs
    }
    return Installed(origin="preinstalled", packages=packages)


def _provided(
    name: str, entry: Preinstalled, programs: Collection[str], module_output: str
) -> Provided:
    paths = {name: program_path(entry, name) for name in programs}
    variables, secrets = module_variables(module_output)
    hidden = sorted(set(secrets) - entry.environment.keys())
    findings = (
        [Message("modules-secret", package=name, variables=", ".join(hidden))] if hidden else []
    )
    return Provided(
        version=entry.version,
        spec=" ".join(entry.modules),
        target=entry.target,
        prefix=entry.prefix,
        programs=paths,
        environment={**variables, **entry.environment},
        findings=tuple(findings),
    )


def program_path(entry: Preinstalled, program: str) -> str:
    """Return the path of `program` of a package of the site."""
    return str(PurePosixPath(entry.prefix) / entry.programs.get(program, f"bin/{program}"))


def module_variables(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the variables that modules set or change, and the names of secrets among them.

    `text` is the output of ``modules.sh``. It has no values of secrets.
    """
    variables: dict[str, str] = {}
    secrets: list[str] = []
    for line in text.split("\n"):
        kind, _, rest = line.partition(" ")
        name, sign, value = rest.partition("=")
        if kind == "secret" or (kind == "set" and is_secret(name)):
            secrets.append(name)
        elif kind == "set" and sign:
            variables[name] = value.replace("\x01", "\n")
    return variables, secrets
