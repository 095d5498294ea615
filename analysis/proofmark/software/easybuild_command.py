"""Checks the command ``eb`` of the controller, before EasyBuild ends with a message of its own."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.common.command import run_command
from proofmark.common.errors import BadInput, InputError

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
