"""The easystack of the kit: the easyconfigs of the packages, for all environments."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from proofmark.common.errors import BadInput, InputError, bad_input, nearest
from proofmark.common.processes import run_command
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import load
from proofmark.software.installed import Spelling, spellings

EASYCONFIGS = Path("environments/common/easyconfigs")
EASYSTACK = Path("environments/common/easystack.yml")

Entry = str | dict[str, Any]
"""The name of an easyconfig; or this name with its options."""


class EasyStack(StrictModel):
    """An easystack: a list of easyconfigs. An easyconfig may have options."""

    easyconfigs: list[Entry]

    def by_package(self, known: Mapping[str, Spelling]) -> dict[str, Entry]:
        """Return the entries by package; `known` has EasyBuild's names of the packages."""
        names = [
            entry if isinstance(entry, str) else next(iter(entry)) for entry in self.easyconfigs
        ]
        return {
            package: entry
            for package, spelling in known.items()
            for name, entry in zip(names, self.easyconfigs, strict=True)
            if name.startswith(f"{spelling.name}-")
        }


def entries_of(kit: Path) -> dict[str, Entry]:
    """Return the entries of the easystack of the checkout `kit`, by package.

    Raises:
        BadInput: the easystack is wrong.
    """
    return load(kit / EASYSTACK, EasyStack).by_package(spellings(kit / "environments").easybuild)


@contextmanager
def easystack_of(kit: Path, wanted: Collection[str]) -> Iterator[Path]:
    """Make an easystack of the packages `wanted`, empty: all; it exists within the context.

    Raises:
        BadInput: a package is not in the easystack of the kit.
    """
    entries = entries_of(kit)
    if unknown := sorted(set(wanted) - entries.keys()):
        found = f"no package {unknown[0]!r}{nearest(unknown[0], entries)}"
        raise bad_input(EASYSTACK, "", found, ", ".join(sorted(entries)))
    chosen = [entry for name, entry in entries.items() if name in (wanted or entries)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / EASYSTACK.name
        path.write_text(yaml.safe_dump({"easyconfigs": chosen}))
        yield path


OLDEST = 5
"""The oldest major version: earlier ones do not know ``max_parallel`` of an easyconfig."""
AS_ROOT = "EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES"
"""The variable by which root accepts that EasyBuild installs as root."""
PROBE = """\
import importlib.util, json, sys
from easybuild.tools.version import VERSION
found = importlib.util.find_spec("yaml") is not None
print(json.dumps({"version": str(VERSION), "yaml": found, "python": sys.executable}))
"""
MODULE_TOOLS = {
    "LMOD_CMD": ("--modules-tool=Lmod",),
    "MODULES_CMD": ("--modules-tool=EnvironmentModules", "--module-syntax=Tcl"),
}
"""The options of ``eb`` by the variable that each module tool sets: Lmod, Environment Modules."""


@dataclass(frozen=True)
class EasyBuildPython:
    """The Python that ``eb`` starts: its path, EasyBuild's version, whether it has PyYAML."""

    python: str
    version: str
    yaml: bool


def easybuild_command(environment: Mapping[str, str], user: int | None = None) -> list[str]:
    """Return the path of ``eb`` and its options for the module tool.

    Args:
        environment: the variables that ``eb`` gets.
        user: the number of the user who starts it; None: that of this process.

    Raises:
        BadInput: names all that is missing: the command, its version, PyYAML, a module tool, or the
            consent of root.
    """
    mistakes = []
    program = shutil.which("eb", path=environment.get("PATH"))
    if program is None:
        accepted = "EasyBuild in PATH, or another provision_from"
        mistakes.append(InputError("eb", "", "no such command on the controller", accepted))
    else:
        mistakes += _mistakes(easybuild_python(environment))
    tools = [options for name, options in MODULE_TOOLS.items() if environment.get(name)]
    if not tools:
        names = ", ".join(MODULE_TOOLS)
        accepted = "Lmod, or Environment Modules 4.3 or later, set up in this shell"
        mistakes.append(InputError(names, "", "no module tool", accepted))
    if (os.geteuid() if user is None else user) == 0 and not environment.get(AS_ROOT):
        accepted = f"another user, or {AS_ROOT}=1"
        mistakes.append(InputError("eb", "user", "root, which EasyBuild refuses", accepted))
    if program is None or mistakes:
        raise BadInput(*mistakes)
    return [program, *tools[0]]


def easybuild_python(environment: Mapping[str, str]) -> EasyBuildPython | None:
    """Return the Python that ``eb`` starts, by the order of its script; None if it finds none."""
    named = (environment.get(name) for name in ("EB_PYTHON", "EB_INSTALLPYTHON"))
    for name in filter(None, (*named, "python3", "python")):
        python = shutil.which(name, path=environment.get("PATH"))
        done = python and run_command([python, "-c", PROBE], environment=environment)
        if done and done.returncode == 0:
            return EasyBuildPython(**json.loads(done.stdout))
    return None


def _mistakes(found: EasyBuildPython | None) -> list[InputError]:
    if found is None:
        accepted = "a Python in PATH or EB_PYTHON that imports easybuild"
        return [InputError("eb", "Python", "none that has EasyBuild", accepted)]
    mistakes = []
    if int(found.version.partition(".")[0]) < OLDEST:
        mistakes.append(InputError("eb", "version", found.version, f"{OLDEST}.0 or later"))
    if not found.yaml:
        accepted = f"PyYAML, which easystacks need: {found.python} -m pip install PyYAML"
        mistakes.append(InputError("eb", "Python", f"no PyYAML in {found.python}", accepted))
    return mistakes
