"""The command ``lock``: the lock of an environment of the kit, or of a site."""

from __future__ import annotations

import os
import platform
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path

from proofmark.cli.command import ArgumentUse, Command
from proofmark.cli.install import lock_arguments, ready, spack_arguments, system_of
from proofmark.cli.output import print_line
from proofmark.cli.site import inventory_of
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import write_whole
from proofmark.common.kit import kit_folder
from proofmark.common.processes import run_command
from proofmark.common.progress_lines import say, while_working
from proofmark.software.probed_programs import module_variables
from proofmark.software.spack.lock_check import check, load_mapping, read_spack_yaml
from proofmark.software.spack.lock_file import read_lock
from proofmark.software.spack.lock_make import Checkouts, make, make_from
from proofmark.software.spack.site_choice import KIT, choose_blas, choose_mpi, wanted_blas
from proofmark.software.spack.site_environment import (
    SiteParts,
    environment_text,
    site_environment,
)
from proofmark.software.spack.site_parts import SitePart, find_blas, find_mpis
from proofmark.software.spack.site_tools import choose_compiler, find_tools

FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
"""Folders of programs of a system."""

ROOT = Path("/")

TOOLSETS = "opt/rh/gcc-toolset-*/*/usr/bin"
"""The newer compilers of RHEL, which are in no PATH until a user enables one."""

LINES = 3
"""The number of lines of a failed module that a message repeats."""


def _arguments(parser: ArgumentParser) -> None:
    lock_arguments(parser, "the system of the lock; it must be this one")
    spack_arguments(parser)
    site = parser.add_argument_group("a lock of the site of -i, with what the site has")
    site.add_argument(
        "--find", action="store_true", help="find MPI, BLAS, gcc, tools; write spack.yaml"
    )
    site.add_argument("--mpi", default="", help=f"package, path of one that was found, or {KIT}")
    site.add_argument("--blas", default="", help=f"package, path of one that was found, or {KIT}")
    site.add_argument("--compiler", default="", help="gcc@VERSION or its prefix")
    site.add_argument(
        "--module", action="append", default=[], help="an environment module of the MPI; repeatable"
    )


def lock(options: Namespace) -> int:
    """Write the lock of an environment, or of a site."""
    kit, system = kit_folder(), system_of(options)
    site = inventory_of(options).folder if options.inventory else None
    if site is None and options.find:
        raise bad_input("-i", "", "nothing", "the folder of a site, whose lock is made")
    installation = ready(options, kit)
    spack, packages, python = installation.spack, installation.packages, installation.python
    checkouts = Checkouts(spack, packages, python, installation.index)
    if site is None:
        print_line(f"{make(kit, options.arch, system, checkouts) / 'spack.lock'}")
        return 0
    folder = site.resolve() / "locks" / options.arch / system
    if options.find and not _find(options, kit, folder, checkouts):
        say(f"{folder / 'spack.lock'} stays: it was made from these parts, recipes and pins")
        print_line(f"{folder / 'spack.lock'}")
        return 0
    source = folder / "spack.yaml"
    read_spack_yaml(source)
    make_from(kit, source, folder, checkouts)
    made = read_lock(folder / "spack.lock")
    built = sorted(spec.label for spec in made.missing(made.roots, ()))
    say(f"{len(built)} packages to build: {', '.join(built)}")
    if mistakes := check(kit, options.arch, system, folder.parents[1]):
        raise BadInput(*mistakes)
    print_line(f"{folder / 'spack.lock'}")
    return 0


def _find(options: Namespace, kit: Path, folder: Path, checkouts: Checkouts) -> bool:
    """Find the parts of the site, print them, and write ``spack.yaml``.

    Returns:
        whether the lock has to be made: the parts changed, or there is no current lock.
    """
    arch, system = folder.parts[-2:]
    environment = read_spack_yaml(kit / "environments" / arch / "spack.yaml")
    folders = _program_folders(kit, options.module)
    wanted = wanted_blas(environment)
    mpis = find_mpis(ROOT, platform.machine(), folders, options.module)
    libraries = find_blas(ROOT)
    _print("MPI", mpis)
    _print("BLAS", libraries)
    mpi = choose_mpi(mpis, options.mpi)
    blas = choose_blas(libraries, wanted, options.blas)
    toolsets = [f"{path}" for path in sorted(ROOT.glob(TOOLSETS))]
    with while_working("searching build tools with spack external find"):
        tools = find_tools(checkouts, [*folders, *toolsets])
    _print("tools", tools.tools)
    compilers = kit / f"environments/common/compilers-{system}.yaml"
    known = load_mapping(compilers)["packages"]["gcc"]["externals"] if compilers.is_file() else []
    compiler = choose_compiler(tools.compilers, known[0] if known else None, options.compiler)
    for name, part in (("MPI", mpi), ("BLAS", blas)):
        say(f"chosen {name}: {f'{part.spec} in {part.prefix}' if part else 'built by Spack'}")
    if blas is None:
        say(f"BLAS of the environment: {wanted.package} threads={wanted.threads}")
    parts = SiteParts(mpi, blas, tools.tools, compiler)
    folder.mkdir(parents=True, exist_ok=True)
    source, made = folder / "spack.yaml", folder / "spack.lock"
    text = environment_text(arch, system, site_environment(environment, parts))
    if source.is_file() and source.read_text(encoding="utf-8") == text and _current(kit, folder):
        return False
    made.unlink(missing_ok=True)  # it is of other parts: a stopped solver leaves none
    write_whole(source, text)
    say(f"wrote {source}")
    return True


def _current(kit: Path, folder: Path) -> bool:
    """Return whether the lock in `folder` is one of the recipes, pins and rules of now."""
    arch, system = folder.parts[-2:]
    try:
        return not check(kit, arch, system, folder.parents[1])
    except BadInput:
        return False


def _print(title: str, parts: Iterable[SitePart]) -> None:
    lines = [
        f"  {part.spec}: {part.file or part.prefix}{f' ({part.problem})' if part.problem else ''}"
        for part in parts
    ]
    for line in (f"found {title}:", *(lines or ["  none"])):
        say(line)


def _program_folders(kit: Path, modules: Sequence[str]) -> list[str]:
    """Return the folders of programs after loading modules, or those of the system.

    Raises:
        BadInput: a module cannot be loaded.
    """
    if not modules:
        return list(FOLDERS)
    script = kit / "roles/provision/files/modules.sh"
    done = run_command(["sh", str(script), *modules])
    if done.returncode:
        errors = " / ".join(done.stderr.split("\n")[:LINES]).strip(" /") or "no message"
        raise bad_input("--module", " ".join(modules), errors, "modules of a login shell")
    variables, _secrets = module_variables(done.stdout)
    path = variables.get("PATH", os.pathsep.join(FOLDERS))
    return [folder for folder in path.split(os.pathsep) if folder.startswith("/")]


USES = (ArgumentUse(("--mpi", "--blas", "--compiler", "--module"), beside=("--find",)),)
"""The options that would be ignored beside others."""

COMMANDS = {"lock": Command(lock, "lock knl", _arguments, uses=USES)}
