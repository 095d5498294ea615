"""Installs the easystack of an environment with EasyBuild, where the site has it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from proofmark.common.command import run_command
from proofmark.common.errors import bad_input, nearest
from proofmark.software.build_process import Say, run
from proofmark.software.installed import Installed, Provided, find_programs, spellings
from proofmark.software.spack.lock_check import read_target

EASYCONFIGS = Path("environments/common/easyconfigs")
PLANNED = re.compile(r"^ \* \[(?P<state>.)\] (?P<file>.+) \(module: (?P<module>[^)]+)\)", re.M)
"""A line of ``eb --dry-run``; the state is ``x`` for what is installed."""

WIDE = "10000"
"""EasyBuild breaks its lines at ``COLUMNS``, 80 where nobody tells it."""


@dataclass(frozen=True)
class Module:
    """One module of the easystack."""

    name: str
    version: str
    module: str
    installed: bool


def read_plan(text: str) -> list[Module]:
    """Read what ``eb --easystack … --dry-run`` printed; dependencies come first."""
    found = {}
    for line in PLANNED.finditer(text):
        name, _, version = line["module"].partition("/")
        found[line["module"]] = Module(name, version, line["module"], line["state"] == "x")
    return list(found.values())


@dataclass(frozen=True)
class EasyBuild:
    """EasyBuild as it is called for one environment."""

    kit: Path
    arch: str
    prefix: Path

    def command(self, *words: str) -> list[str]:
        """Return the call of ``eb``.

        Raises:
            BadInput: there is no easystack for the environment, or no EasyBuild or module tool.
        """
        stack = self.kit / "environments" / self.arch / "easystack.yml"
        if not stack.is_file():
            there = sorted(p.parent.name for p in stack.parents[1].glob("*/easystack.yml"))
            raise bad_input(stack, "", "no such file", ", ".join(there))
        eb = shutil.which("eb")
        if eb is None:
            wants = "EasyBuild in PATH, or another provision_from"
            raise bad_input("eb", "", "no such command on the controller", wants)
        if not (os.environ.get("LMOD_CMD") or shutil.which("modulecmd")):
            raise bad_input("LMOD_CMD", "", "no module tool", "Lmod or environment modules, set up")
        call = [eb, f"--easystack={stack}", f"--robot={self.kit / EASYCONFIGS}"]
        target = spellings(self.kit / "environments").optarch.get(self.arch)
        if target is None:
            raise bad_input("programs.yml", f"optarch.{self.arch}", "nothing", "what gcc is told")
        call += [f"--prefix={self.prefix}", f"--optarch={target}"]
        if os.environ.get("LMOD_CMD"):
            call.append("--modules-tool=Lmod")
        return [*call, *words]

    def plan(self) -> list[Module]:
        """Return what the easystack needs, and what of it is there; nothing is built.

        Raises:
            BadInput: as `command`, or EasyBuild cannot resolve the easystack.
        """
        unbroken = {**os.environ, "COLUMNS": WIDE}
        done = run_command(self.command("--dry-run"), environment=unbroken)
        modules = read_plan(done.stdout)
        if done.returncode != 0 or not modules:
            last = " / ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
            raise bad_input("eb", "", last, "an easystack that EasyBuild can resolve")
        return modules

    def install(self, say: Say) -> None:
        """Build what is missing; what is there stays.

        Raises:
            BadInput: as `plan`, or a build failed.
            Stopped: SIGINT or SIGTERM came.
        """
        log = self.prefix / "logs" / f"{self.arch}.log"
        say(f"what EasyBuild prints: {log}")
        told: list[str] = []

        def read(line: str) -> None:
            told.append(line)
            if line.startswith("== processing ") or line.startswith("== building and installing "):
                say(line.removeprefix("== "))

        code = run(self.command("--rpath"), os.environ, log, read)
        if code:
            found = " / ".join(line for line in told if "ERROR" in line) or f"exit code {code}"
            again = f"a whole install; {log} has the rest, and the same command goes on"
            raise bad_input("eb", "", found, again)


def answer(
    easybuild: EasyBuild,
    modules: Collection[Module],
    programs: Mapping[str, Collection[str]],
    facts: Mapping[str, object],
) -> Installed:
    """Describe what is installed; ``{fact}`` in a program's spelling is a fact of the partition.

    Raises:
        BadInput: a package is not in the easystack, or a program is not there.
    """
    spelt = spellings(easybuild.kit / "environments").easybuild
    target = read_target(easybuild.kit / "environments" / easybuild.arch)
    by_name = {module.name: module for module in modules}
    packages = {}
    for name, wanted in programs.items():
        spelling = spelt.get(name)
        module = by_name.get(spelling.name) if spelling else None
        if spelling is None or module is None:
            found = f"nothing on {name!r}{nearest(name, spelt)}"
            raise bad_input("easystack", "", found, ", ".join(sorted(spelt)))
        prefix = easybuild.prefix / "software" / module.module
        files = {
            program: re.sub(r"\{(\w+)\}", lambda key: str(facts.get(key[1], key[0])), file)
            for program, file in spelling.programs.items()
        }
        packages[name] = Provided(
            version=module.version.partition("-")[0],
            spec=module.module,
            target=target,
            prefix=str(prefix),
            programs=find_programs(prefix, wanted, files),
        )
    return Installed(origin="easybuild", packages=packages)
