"""The command ``lock``: the lock of an environment of the kit, or of a site."""

from __future__ import annotations

import os
import platform
import shutil
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.cases.vocabulary import Scalar
from proofmark.cli.inputs import inventory_of
from proofmark.cli.install import ready, system_of
from proofmark.cli.output import print_line
from proofmark.common.errors import BadInput, InputError, bad_input, refuse
from proofmark.common.files import write_atomic
from proofmark.common.kit import kit_folder
from proofmark.common.processes import environment_of, run_command
from proofmark.common.progress_lines import say, while_working
from proofmark.common.text import counted
from proofmark.site.inventory import Inventory, read_sites
from proofmark.software.installed import module_variables, spellings
from proofmark.software.spack.installation import SpackInstallation
from proofmark.software.spack.lock_check import (
    check,
    load_mapping,
    read_spack_yaml,
)
from proofmark.software.spack.lock_file import Lock, abstract_specs, lock_changes, read_lock
from proofmark.software.spack.lock_make import (
    copied_environment,
    hashes_of_lock,
    make,
)
from proofmark.software.spack.site_choice import (
    TOOLS,
    SiteParts,
    choose_blas,
    choose_compiler,
    choose_mpi,
    environment_text,
    find_tools,
    lacking_wrappers,
    programs_of_choice,
    site_environment,
    wanted_blas,
)
from proofmark.software.spack.site_parts import (
    SitePart,
    find_blas,
    find_file_systems,
    find_mpis,
    with_build,
)

FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
"""Folders of programs of a system."""

ALL = "all"
"""The name that means each environment with a lock."""

DIFFERENT = 1
"""The exit code if a lock differs from the pinned recipes."""

ROOT = Path("/")

TOOLSETS = "opt/rh/gcc-toolset-*/*/usr/bin"
"""The newer compilers of RHEL, which are in no PATH until a user enables one."""

LINES = 3
"""The number of lines of a failed module that a message repeats."""


def lock(options: Namespace) -> int:
    """Write the lock of an environment, or of a site; or compare it with the pinned recipes."""
    kit, system = kit_folder(), system_of(options)
    inventory = inventory_of(options) if options.inventory else None
    site = inventory.folder if inventory else None
    if site is None and options.find:
        raise bad_input("-i", "", "nothing", "the folder of a site, whose lock is made")
    locks = site.resolve() / "locks" if site else kit / "environments"
    names = [options.arch]
    if options.arch == ALL:
        names = sorted(path.parents[1].name for path in locks.glob(f"*/{system}/spack.lock"))
        if not names:
            raise bad_input(locks, ALL, f"no lock of {system}", "an environment with a lock")
    spack = ready(options, kit)
    if options.compare:
        different = sum(_compare(kit, locks / name / system, spack) for name in names)
        return DIFFERENT if different else 0
    mistakes: list[InputError] = []
    for name in names:
        try:
            _write(options, inventory, locks / name / system, spack)
        except BadInput as error:  # the other locks are made all the same
            mistakes += error.mistakes
    refuse(mistakes)
    return 0


def _write(
    options: Namespace, inventory: Inventory | None, folder: Path, spack: SpackInstallation
) -> None:
    """Write the lock in `folder`, which is of the site with this inventory, or of the kit."""
    kit, (name, system), path = kit_folder(), folder.parts[-2:], folder / "spack.lock"
    before = _earlier(path)
    if inventory is None:
        make(kit, folder.parent / "spack.yaml", folder, spack)
    elif options.find and not _find(options, inventory, folder, spack):
        say(f"{path} stays: it was made from these parts, recipes and pins")
        print_line(f"{path}")
        return
    else:
        source = folder / "spack.yaml"
        read_spack_yaml(source)
        make(kit, source, folder, spack)
        made = read_lock(path)
        built = sorted(spec.label for spec in made.missing(made.roots, ()))
        say(f"{counted(len(built), 'package')} to build: {', '.join(built)}")
        refuse(check(kit, name, system, folder.parents[1]))
    _print_written(path, before)


def _earlier(path: Path) -> Lock | None:
    """Return the lock that is replaced; None if there is none, or it is damaged."""
    try:
        return read_lock(path) if path.is_file() else None
    except BadInput:
        return None


def _print_written(path: Path, before: Lock | None) -> None:
    """Print the path of a lock, and say what differs from the lock that it replaced."""
    print_line(f"{path}")
    changes = lock_changes(before, read_lock(path)) if before else {}
    if before and not changes:
        say("every package is as before")
    for package, (old, new) in changes.items():
        if old != new:
            say(f"{package}: {', '.join(old) or 'none'} before, {', '.join(new) or 'none'} now")
    if again := [package for package, (old, new) in changes.items() if old == new]:
        say(f"the same version, built again: {', '.join(again)}")


def _compare(kit: Path, folder: Path, spack: SpackInstallation) -> int:
    """Print how the specs of a lock differ from the pinned recipes; return how many do."""
    lock_file = folder / "spack.lock"
    read_lock(lock_file)
    of_kit = folder.parents[1] == kit / "environments"
    source = (folder.parent if of_kit else folder) / "spack.yaml"
    with copied_environment(kit, source, folder, spack) as copied:
        shutil.copy(lock_file, copied.folder / "spack.lock")
        hashes = hashes_of_lock(copied)
    wrong = [each for each in hashes if each.difference]
    for each in wrong:
        print_line(f"{lock_file}: {each.label}: {each.difference}")
    print_line(f"{lock_file}: {len(hashes) - len(wrong)} of {len(hashes)} specs are equal")
    return len(wrong)


def _find(options: Namespace, inventory: Inventory, folder: Path, spack: SpackInstallation) -> bool:
    """Find the parts of the site, print them, and write ``spack.yaml``.

    Returns:
        whether the lock has to be made: the parts changed, or there is no current lock.
    """
    kit, (arch, system) = kit_folder(), folder.parts[-2:]
    environment = read_spack_yaml(kit / "environments" / arch / "spack.yaml")
    variables = _module_variables(kit, options.module)
    folders = _absolute(variables["PATH"]) if "PATH" in variables else [*FOLDERS]
    given = programs_of_choice(options.mpi)
    of_mpi = [str(given)] if given else []
    of_mpi += [*folders, *_absolute(os.environ.get("PATH", ""))]
    wanted = wanted_blas(environment)
    mpis = [
        with_build(ROOT, each, environment_of("python", variables))
        for each in find_mpis(ROOT, platform.machine(), of_mpi, options.module)
    ]
    libraries = find_blas(ROOT)
    _print("MPI", mpis)
    _print("BLAS", libraries)
    mpi = choose_mpi(mpis, options.mpi)
    if mpi:
        refuse(lacking_wrappers(ROOT, mpi, spellings(kit / "environments").mpi_wrappers))
    blas = choose_blas(libraries, wanted, options.blas)
    toolsets = [f"{path}" for path in sorted(ROOT.glob(TOOLSETS))]
    with while_working("searching build tools with spack external find"):
        tools = find_tools(spack, [*folders, *toolsets])
    _print("tools", tools.tools)
    compilers = kit / f"environments/common/compilers-{system}.yaml"
    known = load_mapping(compilers)["packages"]["gcc"]["externals"] if compilers.is_file() else []
    compiler = choose_compiler(tools.compilers, known[0] if known else None, options.compiler)
    for name, part in (("MPI", mpi), ("BLAS", blas)):
        say(f"chosen {name}: {f'{part.spec} in {part.prefix}' if part else 'built by Spack'}")
    if blas is None:
        why = "as asked" if options.blas else "no library that was found is one"
        say(f"built from its source: {wanted}: {why}")
    if lacking := sorted({*TOOLS} - {each.package for each in tools.tools}):
        say(f"not found, and built from their sources where needed: {', '.join(lacking)}")
    scratches, facts = _of_partitions(inventory, arch)
    parts = SiteParts(mpi, blas, tools.tools, compiler, scratches, find_file_systems(ROOT), facts)
    if mpi is None:
        say(_drivers_line(environment, parts))
    folder.mkdir(parents=True, exist_ok=True)
    source, made = folder / "spack.yaml", folder / "spack.lock"
    text = environment_text(arch, system, site_environment(environment, parts))
    if source.is_file() and source.read_text(encoding="utf-8") == text and _current(kit, folder):
        return False
    made.unlink(missing_ok=True)  # it is of other parts: a stopped solver leaves none
    write_atomic(source, text)
    say(f"wrote {source}")
    return True


def _current(kit: Path, folder: Path) -> bool:
    """Return whether the lock in `folder` is one of the recipes, pins and rules of now."""
    arch, system = folder.parts[-2:]
    try:
        return not check(kit, arch, system, folder.parents[1])
    except BadInput:
        return False


def _drivers_line(environment: Mapping[str, Any], parts: SiteParts) -> str:
    """Return the line about the drivers of files of the MPI that Spack builds."""
    scratches = ", ".join(sorted(parts.scratches)) or "no declared type"
    required = environment["packages"].get("mpi", {}).get("require", [])
    if all(each.package != "openmpi" for each in abstract_specs(required)):
        return f"drivers of files: those that the environment requires; scratch: {scratches}"
    lacking = "".join(f"; {each}: no headers on this system" for each in parts.without_headers)
    return f"drivers of files: {', '.join(parts.drivers)}; scratch: {scratches}{lacking}"


def _of_partitions(inventory: Inventory, arch: str) -> tuple[set[str], dict[str, Scalar]]:
    """Return what the partitions that use an environment state about its programs.

    It is the types of their scratches, and the facts in which they agree.
    """
    scratches, facts = set[str](), list[set[tuple[str, Scalar]]]()
    has_hosts = inventory.source.is_file() or any(inventory.folder.glob("hosts*"))
    for site in read_sites(inventory, "all")[0] if has_hosts else ():
        if site.partition.environment == arch:
            scratches |= {each.type for each in site.partition.scratches.values() if each.type}
            facts.append({*site.partition.facts.items()})
    return scratches, dict(set.intersection(*facts)) if facts else {}


def _print(title: str, parts: Iterable[SitePart]) -> None:
    lines = [
        f"  {part.spec}: {part.file or part.prefix}{f' ({part.problem})' if part.problem else ''}"
        for part in parts
    ]
    for line in (f"found {title}:", *(lines or ["  none"])):
        say(line)


def _module_variables(kit: Path, modules: Sequence[str]) -> dict[str, str]:
    """Return the variables that loading the modules sets or changes.

    Raises:
        BadInput: a module cannot be loaded.
    """
    if not modules:
        return {}
    script = kit / "roles/provision/files/modules.sh"
    done = run_command(["sh", str(script), *modules], environment=environment_of("module"))
    if done.returncode:
        errors = " / ".join(done.stderr.split("\n")[:LINES]).strip(" /") or "no message"
        raise bad_input("--module", " ".join(modules), errors, "modules of a login shell")
    variables, _secrets = module_variables(done.stdout)
    return variables


def _absolute(path: str) -> list[str]:
    """Return the folders of a PATH, without those that depend on the current folder."""
    return [folder for folder in path.split(os.pathsep) if folder.startswith("/")]
