"""Installs the easystack of the kit for an environment, with the EasyBuild of the site."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.common.processes import run_command
from proofmark.software.build_failure import error_of_build, read_failure, read_log, refused
from proofmark.software.build_process import Say, complete_installation, run
from proofmark.software.easystack import EASYCONFIGS, easybuild_command, easystack_of, entries_of
from proofmark.software.installed import (
    Installed,
    Provided,
    find_programs,
    spellings,
    with_facts,
)
from proofmark.software.request import Toolchain
from proofmark.software.spack.lock_check import read_target
from proofmark.software.target import gcc_flags

PLANNED = re.compile(r"^ \* \[(?P<state>.)\] (?P<file>.+) \(module: (?P<module>[^)]+)\)", re.M)
"""A line of ``eb --dry-run``; the state is ``x`` if the module is installed."""

SYSTEM_TOOLCHAIN = ("--try-toolchain=GCC,system", "--disable-map-toolchains")
"""Options that replace the toolchain of each easyconfig by the gcc of the site."""

WIDE = "10000"
"""EasyBuild breaks its lines at ``COLUMNS``, by default at 80."""


@dataclass(frozen=True)
class Module:
    """One module of the easystack; `module` is its full name, ``HPL/2.3-foss-2023b``."""

    name: str
    version: str
    module: str
    installed: bool


def read_plan(text: str) -> list[Module]:
    """Return the modules in the output of ``eb --easystack … --dry-run``, dependencies first."""
    modules = {}
    for line in PLANNED.finditer(text):
        name, _, version = line["module"].partition("/")
        modules[line["module"]] = Module(name, version, line["module"], line["state"] == "x")
    return list(modules.values())


@dataclass(frozen=True)
class EasyBuildInstallation:
    """The modules that EasyBuild installs for the environment `arch`.

    Attributes:
        kit: the checkout of Proofmark.
        arch: the environment.
        root: the folder of all installations of EasyBuild.
        toolchain: the compiler, MPI and BLAS.
        sources: a folder of sources; None: only downloads.
        jobs: the number of processes of a build; 0: one for each core.
        wanted: the packages to install, by the names of the cases; empty: all of the easystack.
    """

    kit: Path
    arch: str
    root: Path
    toolchain: Toolchain = Toolchain.FOSS
    sources: Path | None = None
    jobs: int = 0
    wanted: frozenset[str] = frozenset()

    @property
    def prefix(self) -> Path:
        """The folder of the modules. Each target has its own: their modules have equal names."""
        return self.root / self.arch

    @property
    def target(self) -> str:
        """Archspec's name of the processor.

        Raises:
            BadInput: there is no such environment.
        """
        return read_target(self.kit / "environments" / self.arch)

    def packages(self) -> list[str]:
        """Return the packages of the easystack, by the names of the cases; EasyBuild is not called.

        Raises:
            BadInput: the environment has no target, or the easystack is wrong.
        """
        read_target(self.kit / "environments" / self.arch)  # refuses an unknown environment
        return list(entries_of(self.kit))

    def command(self, easystack: Path, *words: str) -> list[str]:
        """Return the command line of ``eb`` for `easystack` with the arguments `words`.

        Raises:
            BadInput: the environment has no target, gcc does not know it, or see
                `easybuild_command`.
        """
        system = self.toolchain is Toolchain.SYSTEM
        gcc = system_gcc() if system else spellings(self.kit / "environments").easybuild_gcc
        downloads = self.prefix / "sources"
        return [
            *easybuild_command(os.environ),
            f"--easystack={easystack}",
            f"--robot={self.kit / EASYCONFIGS}",
            f"--prefix={self.prefix}",
            f"--installpath={self.prefix}",
            f"--sourcepath={downloads}" + (f":{self.sources.resolve()}" if self.sources else ""),
            f"--optarch=GCC:{gcc_flags(self.target, gcc)}",
            *(SYSTEM_TOOLCHAIN if system else ()),
            *([f"--parallel={self.jobs}"] if self.jobs else ()),
            *words,
        ]

    def modules(self) -> list[Module]:
        """Return the modules of the easystack; build nothing.

        Raises:
            BadInput: see `command`; or EasyBuild cannot resolve the easystack.
        """
        with easystack_of(self.kit, self.wanted) as stack:
            done = run_command(self.command(stack, "--dry-run"), environment=_wide())
        modules = read_plan(done.stdout)
        if done.returncode != 0 or not modules:
            last = " / ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
            raise bad_input("eb", "", last, "an easystack that EasyBuild can resolve")
        return modules

    def install(self, say: Say) -> None:
        """Build the missing modules; installed modules stay.

        Raises:
            BadInput: see `command`; or a build failed.
            Stopped: this process received SIGINT or SIGTERM.
        """
        log = self.prefix / "logs/easybuild.log"
        say(f"output of EasyBuild: {log}")
        lines: list[str] = []

        def read(line: str) -> None:
            lines.append(line)
            if line.startswith("== processing ") or line.startswith("== building and installing "):
                say(line.removeprefix("== "))

        outputs = self.prefix / "tmp"
        with easystack_of(self.kit, self.wanted) as stack:
            command = self.command(stack, "--rpath", f"--tmpdir={outputs}")
            code = run(command, _wide(), log, read)
        if not code:
            return
        failure = read_failure(lines)
        if failure is None:
            raise bad_input("eb", "", f"exit code {code}", complete_installation(log))
        error = failure.log and error_of_build(failure.log, lambda path: read_log(path, outputs))
        raise refused("eb", failure, error or None, log)


def _wide() -> dict[str, str]:
    return {**os.environ, "COLUMNS": WIDE}


def system_gcc() -> str:
    """Return the version of the ``gcc`` of the controller, ``12.2.0``.

    Raises:
        BadInput: there is none.
    """
    gcc = shutil.which("gcc")
    done = gcc and run_command([gcc, "-dumpfullversion"])
    if not done or done.returncode != 0:
        raise bad_input("gcc", "", "no such command on the controller", "the gcc of the site")
    return done.stdout.strip()


def installed_packages(
    easybuild: EasyBuildInstallation,
    modules: Collection[Module],
    programs: Mapping[str, Collection[str]],
    facts: Mapping[str, object],
) -> Installed:
    """Return the installed packages.

    Args:
        easybuild: the installation.
        modules: all its modules.
        programs: the programs that are needed, by package.
        facts: the facts of the partition; ``{fact}`` in the name of a program is replaced by one.

    Raises:
        BadInput: a package is not in the easystack, or a program is missing.
    """
    known = spellings(easybuild.kit / "environments").easybuild
    by_name = {module.name: module for module in modules}
    packages = {}
    for name, names in programs.items():
        spelling = known.get(name)
        module = by_name.get(spelling.name) if spelling else None
        if spelling is None or module is None:
            found = f"no package {name!r}"
            raise bad_input("easystack", "", found, ", ".join(sorted(known)))
        prefix = easybuild.prefix / "software" / module.module
        files = {name: with_facts(file, facts) for name, file in spelling.programs.items()}
        packages[name] = Provided(
            version=module.version.partition("-")[0],
            spec=module.module,
            target=easybuild.target,
            prefix=str(prefix),
            programs=find_programs(prefix, names, files),
        )
    return Installed(origin="easybuild", packages=packages)
