"""Programs that EasyBuild builds from the easystack of the kit, with the EasyBuild of the site."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from proofmark.common.errors import BadInput, InputError, bad_input, nearest, refuse
from proofmark.common.kit import result_folder
from proofmark.common.printed_command import PrintedCommand
from proofmark.common.processes import environment_of, run_command
from proofmark.common.progress_lines import say
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import load
from proofmark.site.groups import TOOLCHAIN
from proofmark.site.inventory import Site
from proofmark.site.partition import Toolchain
from proofmark.software.build_failure import read_failure, refused
from proofmark.software.build_process import run
from proofmark.software.installed import (
    Installed,
    Provided,
    ProvisionRequest,
    find_programs,
    spellings,
    with_facts,
)
from proofmark.software.provider import Provider
from proofmark.software.spack.lock_check import read_target
from proofmark.software.spack.mpi_and_blas import (
    DEFAULT_BLAS,
    LIBBLAS,
    linked_file,
    loaded_libraries,
    other_blas,
    outside_blas,
)
from proofmark.software.target import controller_gcc, gcc_flags, guard

EASYCONFIGS = Path("environments/common/easyconfigs")

EASYSTACK = Path("environments/common/easystack.yml")

OLDEST = 5
"""The oldest major version: earlier ones do not know ``max_parallel`` of an easyconfig."""

AS_ROOT = "EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES"
"""The variable by which root accepts that EasyBuild installs as root."""

PROBE = """\
import sys
sys.path[:] = filter(None, sys.path)
from easybuild.tools.version import VERSION
print(VERSION)
"""

MODULE_TOOLS = {
    "LMOD_CMD": ("--modules-tool=Lmod",),
    "MODULES_CMD": ("--modules-tool=EnvironmentModules", "--module-syntax=Tcl"),
}
"""The options of ``eb`` by the variable that each module tool sets: Lmod, Environment Modules."""

PLANNED = re.compile(r"^ \* \[(?P<state>.)\] (?P<file>.+) \(module: (?P<module>[^)]+)\)", re.M)
"""A line of ``eb --dry-run``; the state is ``x`` if the module is installed."""

SYSTEM_TOOLCHAIN = ("--try-toolchain=GCC,system", "--disable-map-toolchains")
"""Options that replace the toolchain of each easyconfig by the gcc of the site."""

STEPS = ("== processing ", "== building and installing ")
"""The begins of the lines of ``eb`` that name a package."""

HPL = "hpl"
"""The package with a BLAS."""

COLUMNS = "10000"
"""EasyBuild breaks its lines at ``COLUMNS``, by default at 80."""


class Code(StrEnum):
    """Why EasyBuild installs nothing on this controller."""

    NO_EASYBUILD = "NO_EASYBUILD"
    """No usable EasyBuild: the command, its version or its Python."""
    NO_MODULE_TOOL = "NO_MODULE_TOOL"
    """Neither Lmod nor Environment Modules is set up in this shell."""
    AS_ROOT = "AS_ROOT"
    """Root has not accepted that EasyBuild installs as root."""
    NO_COMPILER = "NO_COMPILER"
    """The toolchain of the system has no gcc."""
    OLD_COMPILER = "OLD_COMPILER"
    """The gcc of the toolchain does not know the processor."""


class EasyStack(StrictModel):
    """An easystack: a list of easyconfigs."""

    easyconfigs: list[str]


def easyconfigs_of(kit: Path, wanted: Collection[str] = ()) -> dict[str, str]:
    """Return the easyconfigs of the packages `wanted`, by package; empty: of all packages.

    Raises:
        BadInput: the easystack of the checkout `kit` is wrong, or lacks a package.
    """
    names = load(kit / EASYSTACK, EasyStack).easyconfigs
    known = {
        package: name
        for package, spelling in spellings(kit / "environments").easybuild.items()
        for name in names
        if name.startswith(f"{spelling.name}-")
    }
    if unknown := sorted({*wanted} - known.keys()):
        found = f"no package {unknown[0]!r}{nearest(unknown[0], known)}"
        raise bad_input(EASYSTACK, "", found, ", ".join(sorted(known)))
    return {package: name for package, name in known.items() if package in (wanted or known)}


def own_environment(kit: Path) -> Path:
    """Return the folder of the EasyBuild that `make easybuild` installs; create nothing."""
    return result_folder(kit, ".provision") / "easybuild/venv"


def easybuild_variables(kit: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` with the EasyBuild of `make easybuild` in PATH, unless it has one."""
    own, path = own_environment(kit) / "bin", environment.get("PATH", "")
    if shutil.which("eb", path=path) or not (own / "eb").is_file():
        return {**environment}
    return {**environment, "PATH": f"{own}{os.pathsep}{path}", "EB_PYTHON": f"{own / 'python'}"}


def easybuild_command(environment: Mapping[str, str], user: int | None = None) -> list[str]:
    """Return the path of ``eb`` and its options for the module tool.

    Args:
        user: the number of the user who starts it; None: that of this process.

    Raises:
        BadInput: names all that is missing: the command, its version, a module tool, or the consent
            of root.
    """
    mistakes = []
    program = shutil.which("eb", path=environment.get("PATH"))
    if program is None:
        accepted = "EasyBuild in PATH, or another provision_from"
        found = "no such command on the controller"
        missing = InputError("eb", "", found, accepted, Code.NO_EASYBUILD)
        mistakes.append(replace(missing, command=PrintedCommand("make", "easybuild")))
    elif not (version := easybuild_version(environment)):
        accepted, code = "a Python in PATH or EB_PYTHON that imports easybuild", Code.NO_EASYBUILD
        mistakes.append(InputError("eb", "Python", "none that has EasyBuild", accepted, code))
    elif int(version.partition(".")[0]) < OLDEST:
        accepted, code = f"{OLDEST}.0 or later", Code.NO_EASYBUILD
        mistakes.append(InputError("eb", "version", version, accepted, code))
    tools = [options for name, options in MODULE_TOOLS.items() if environment.get(name)]
    if not tools:
        names = ", ".join(MODULE_TOOLS)
        accepted = "Lmod, or Environment Modules 4.3 or later, set up in this shell"
        mistakes.append(InputError(names, "", "no module tool", accepted, Code.NO_MODULE_TOOL))
    if (os.geteuid() if user is None else user) == 0 and not environment.get(AS_ROOT):
        accepted = f"another user, or {AS_ROOT}=1"
        found = "root, which EasyBuild refuses"
        mistakes.append(InputError("eb", "user", found, accepted, Code.AS_ROOT))
    if program is None or mistakes:
        raise BadInput(*mistakes)
    return [program, *tools[0]]


def easybuild_version(environment: Mapping[str, str]) -> str:
    """Return the version in the Python that ``eb`` starts, by the order of its script."""
    named = (environment.get(name) for name in ("EB_PYTHON", "EB_INSTALLPYTHON"))
    for name in filter(None, (*named, "python3", "python")):
        python = shutil.which(name, path=environment.get("PATH"))
        done = python and run_command([python, "-c", PROBE], environment=environment)
        if done and (version := re.match(r"\d+\.\S+", done.stdout)):
            return version[0]
    return ""


@dataclass(frozen=True)
class Module:
    """One module of the easystack; `module` is its full name, ``HPL/2.3-foss-2023b``."""

    name: str
    version: str
    module: str
    installed: bool


def read_plan(text: str) -> list[Module]:
    """Return the modules in the output of ``eb … --dry-run``, dependencies first."""
    modules = {}
    for line in PLANNED.finditer(text):
        name, _, version = line["module"].partition("/")
        modules[line["module"]] = Module(name, version, line["module"], line["state"] == "x")
    return list(modules.values())


class EasyBuild(Provider):
    """Programs that EasyBuild builds from the easystack of the kit, in a folder for each target.

    The modules of two targets have equal names.
    """

    @property
    def prefix(self) -> Path:
        """The folder of the modules."""
        return self.request.prefixes / "easybuild" / self.request.arch

    @property
    def target(self) -> str:
        """Archspec's name of the processor.

        Raises:
            BadInput: there is no such environment.
        """
        return read_target(self.request.kit / "environments" / self.request.arch)

    @classmethod
    def packages(cls, kit: Path, site: Site) -> Collection[str]:
        """Return the packages of the easystack.

        Raises:
            BadInput: the environment has no target, the easystack is wrong, or see
                `refuse_controller`.
        """
        arch, toolchain = site.partition.environment, site.toolchain
        read_target(kit / "environments" / arch)  # refuses an unknown environment
        packages = easyconfigs_of(kit)
        cls(ProvisionRequest(kit, arch, {}, kit, toolchain=toolchain)).refuse_controller()
        return packages

    def missing(self) -> list[str]:
        """Return the modules of the easystack that are not installed."""
        return [module.module for module in self._planned if not module.installed]

    def install(self) -> Installed:
        """Build the missing modules and return the packages of the request.

        Raises:
            BadInput: the easystack cannot be resolved, a build failed, or a program is missing.
            Stopped: this process received SIGINT or SIGTERM.
        """
        if not self.missing():
            return self._installed(self._planned)
        self.build()
        return self._installed(self.planned())

    @cached_property
    def _planned(self) -> Sequence[Module]:
        return self.planned()  # cached: EasyBuild needs seconds for it

    def variables(self) -> dict[str, str]:
        """Return the variables of ``eb``, which reads no configuration of the user or of /etc."""
        files = f"{self.prefix / 'no-configuration'}"
        own = {"COLUMNS": COLUMNS, "XDG_CONFIG_HOME": files, "XDG_CONFIG_DIRS": files}
        return easybuild_variables(self.request.kit, environment_of("eb", own))

    def gcc_options(self) -> str:
        """Return the options of the gcc of the toolchain for the target.

        Raises:
            BadInput: the environment has no target, or this gcc does not know it.
        """
        of_site = self.request.toolchain is Toolchain.SYSTEM
        of_kit = spellings(self.request.kit / "environments").easybuild_gcc
        gcc = controller_gcc() if of_site else of_kit
        if not gcc:
            found, code = "no such command on the controller", Code.NO_COMPILER
            raise BadInput(InputError("gcc", "", found, "the gcc of the site", code))
        try:
            return gcc_flags(self.target, gcc)
        except BadInput as error:
            (mistake,) = error.mistakes
            accepted = f"{mistake.accepted}, in PATH"
            if not of_site:
                accepted += (
                    f", and {TOOLCHAIN}: {Toolchain.SYSTEM} in the inventory, which takes it"
                )
            code = Code.OLD_COMPILER
            raise BadInput(replace(mistake, accepted=accepted, code=code)) from None

    def refuse_controller(self) -> None:
        """Refuse a controller on which `command` cannot be made.

        Raises:
            BadInput: it has all reasons.
        """
        mistakes: list[InputError] = []
        for check in (lambda: easybuild_command(self.variables()), self.gcc_options):
            try:
                check()
            except BadInput as error:
                mistakes += error.mistakes
        refuse(mistakes)

    def command(self, *words: str) -> list[str]:
        """Return the command line of ``eb`` for the packages, with the arguments `words`.

        Raises:
            BadInput: the environment has no target, gcc does not know it, or see
                `easybuild_command` and `easyconfigs_of`.
        """
        request, mirror = self.request, self.request.sources.mirror
        downloads = self.prefix / "sources"
        return [
            *easybuild_command(self.variables()),
            *(f"{name}.eb" for name in easyconfigs_of(request.kit, request.programs).values()),
            f"--robot={request.kit / EASYCONFIGS}",
            f"--prefix={self.prefix}",
            f"--installpath={self.prefix}",
            f"--sourcepath={downloads}" + (f":{mirror.resolve()}" if mirror else ""),
            f"--optarch=GCC:{self.gcc_options()}",
            *(SYSTEM_TOOLCHAIN if request.toolchain is Toolchain.SYSTEM else ()),
            *([f"--parallel={request.jobs}"] if request.jobs else ()),
            *words,
        ]

    def planned(self) -> list[Module]:
        """Return the modules of the easystack; build nothing.

        Raises:
            BadInput: see `command`; or EasyBuild cannot resolve the easystack.
        """
        done = run_command(self.command("--dry-run"), environment=self.variables())
        modules = read_plan(done.stdout)
        if done.returncode != 0 or not modules:
            last = " / ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
            raise bad_input("eb", "", last, "easyconfigs that EasyBuild can resolve")
        return modules

    def build(self) -> None:
        """Build the missing modules; installed modules stay.

        Raises:
            BadInput: see `command`; or a build failed.
            Stopped: this process received SIGINT or SIGTERM.
        """
        log = self.prefix / "logs/easybuild.log"
        say(f"output of EasyBuild: {log}")

        def report() -> None:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            steps = [line for line in lines if line.startswith(STEPS)]
            say((steps or ["EasyBuild begins"])[-1].removeprefix("== "))

        outputs = self.prefix / "tmp"
        command = self.command("--rpath", f"--tmpdir={outputs}")
        done = run(command, self.variables(), log, report)
        report()
        if done.returncode:
            failure = read_failure(done.stdout.splitlines())
            raise refused("eb", failure, done.returncode, outputs, log)

    def _installed(self, modules: Collection[Module]) -> Installed:
        """Return the installed packages of the request.

        Raises:
            BadInput: a package is not in the easystack, or a program is missing or of another
                target.
        """
        known = spellings(self.request.kit / "environments").easybuild
        by_name = {module.name: module for module in modules}
        packages = {}
        for name, names in self.request.programs.items():
            spelling = known.get(name)
            module = by_name.get(spelling.name) if spelling else None
            if spelling is None or module is None:
                found = f"no package {name!r}"
                raise bad_input("easystack", "", found, ", ".join(sorted(known)))
            prefix = self.prefix / "software" / module.module
            facts = self.request.facts
            files = {each: with_facts(file, facts) for each, file in spelling.programs.items()}
            paths = find_programs(prefix, names, files)
            refuse(guard(self.target, map(Path, paths.values())))
            packages[name] = Provided(
                version=module.version.partition("-")[0],
                spec=module.module,
                target=self.target,
                prefix=str(prefix),
                programs=paths,
            )
        if HPL in packages:
            self._check_blas(packages[HPL].programs.values())
        return Installed(origin="easybuild", packages=packages)

    def _check_blas(self, programs: Iterable[str]) -> None:
        """Refuse programs that load another BLAS than the toolchain gave to the linker.

        Raises:
            BadInput: it names each such program and its library.
        """
        mistakes: list[InputError] = []
        for program in programs:
            libraries = loaded_libraries(program)
            if self.request.toolchain is Toolchain.FOSS:
                mistakes += outside_blas(program, libraries, self.prefix)
            else:
                link = os.environ.get(LIBBLAS) or DEFAULT_BLAS
                mistakes += other_blas(program, libraries, linked_file(link))
        refuse(mistakes)
