"""The programs of a plan before they are installed, and ``software.json`` from their probes.

Before an installation, the inventory and the environment state the programs. The role `provision`
installs the packages of ``environments/<environment>/system.yml`` and probes their programs: the
folders, the BLAS, the changes by modules. For all other providers the run's ``installed.json`` is
read in place of ``system.yml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from proofmark.cases.vocabulary import Slug
from proofmark.common.errors import bad_input
from proofmark.common.files import read_json, write_atomic, write_private
from proofmark.common.processes import passed_on
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import load
from proofmark.plan.plan import Plan
from proofmark.runs.identity import add_input
from proofmark.runs.run import Run, site_of
from proofmark.site.inventory import Site
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.software.environments import Source, System, file_of_system, sources_of
from proofmark.software.installed import (
    Installed,
    Provided,
    Spelling,
    program_path,
    spellings,
    with_facts,
)
from proofmark.software.program import LAUNCHERS, Program, parse_programs, unprobed
from proofmark.software.provider import SYSTEM
from proofmark.software.software import Package, Software, package_of
from proofmark.software.spack.installation import this_system
from proofmark.software.spack.lock_file import asked_beside
from proofmark.software.spack.mpi_and_blas import lock_at, unchosen_variants, virtuals_of


def packages_of_system(
    sources: Mapping[str, Source],
    prefixes: Mapping[str, str],
    pins: Mapping[str, str],
    programs: Mapping[str, Sequence[Program]],
) -> Installed:
    """Return the packages of the distribution or of pip, whose versions the probes have.

    Args:
        prefixes: the folder into which pip installed, by package.

    Raises:
        BadInput: a program was not probed, or the folder of pip is missing in `prefixes`.
    """
    packages: dict[str, Provided] = {}
    for name, source in sources.items():
        if (source.pip or source.own) and name not in prefixes:
            raise bad_input("prefix", name, "nothing", "the folder into which it was installed")
        prefix = prefixes.get(name, "")
        used = _probed(name, source.paths(prefix), programs.get(name, ()))
        owner = next(iter(used.values())).package or ""
        version = prefix.rpartition("-")[2] if source.own else owner.partition(" ")[2]
        distribution = [f"{source.pip.distribution}=={pins[name]}"] if source.pip else []
        packages[name] = Provided(
            version=pins[name] if source.pip else version,
            spec=" ".join([*source.apt, *distribution]),
            prefix=prefix,
            programs=source.paths(prefix),
            environment=source.variables(prefix),
        )
    return Installed(origin=SYSTEM, packages=packages)


def installed_software(
    installed: Installed, programs: Mapping[str, Sequence[Program]], facts: NodeFacts
) -> Software:
    """Return the software of a run from its packages and the probed programs, by package.

    Raises:
        BadInput: a program of a package was not probed.
    """
    packages = {}
    for name, provided in installed.packages.items():
        used = _probed(name, provided.programs, programs.get(name, ()))
        packages[name] = package_of(used, facts, installed.origin, provided)
    return Software(packages=packages)


def _probed(name: str, paths: Mapping[str, str], programs: Sequence[Program]) -> dict[str, Program]:
    probed = {Path(program.name).name: program for program in programs}
    for program, path in paths.items():
        if Path(path).name not in probed:
            probes = ", ".join(probed) or "no program"
            raise bad_input(f"probes of {name}", program, probes, f"a probe of {path}")
    return {program: probed[Path(path).name] for program, path in paths.items()}


class ProgramProbe(StrictModel):
    """The output of ``probe-program.sh`` for one package.

    `prefix` is the folder into which pip installed the package; empty if another tool did.
    """

    output: str
    prefix: str = ""


class ProgramProbes(StrictModel):
    """The output of ``probe.sh`` on the node, and of ``probe-program.sh`` for each package."""

    node: str
    packages: dict[Slug, ProgramProbe]


def provide_software(
    run: Run, environments: Path, probes: ProgramProbes, *, by_installed: bool = False
) -> None:
    """Write ``software.json`` of `run`, and write the probes that it is made from into the run.

    Args:
        by_installed: whether to read the run's ``installed.json``, else ``system.yml``.

    Raises:
        BadInput: a probe or a file is wrong or missing, the programs differ from those of the
            run.
    """
    facts = parse_probe(probes.node, "probe of the node")
    programs = {
        name: parse_programs(probe.output, f"{name}.probe")
        for name, probe in probes.packages.items()
    }
    if by_installed:
        installed = read_json(run.files.installed, Installed)
    else:
        prefixes = {name: probe.prefix for name, probe in probes.packages.items() if probe.prefix}
        installed = _of_system(run, environments, prefixes, programs)
    software = installed_software(installed, programs, facts)
    launch = site_of(run).partition.launch
    packages = {name: each.with_variables(launch) for name, each in software.packages.items()}
    software = Software(packages=packages, passed_on=passed_on())
    target = run.files.software
    if target.exists():
        _check_unchanged(run, read_json(target, Software), software)
        add_input(run.folder, target)  # an earlier call may have been stopped before it
        return
    folder = run.files.program_probes
    folder.mkdir(exist_ok=True)
    for name, probe in probes.packages.items():
        write_atomic(folder / f"{name}.probe", probe.output)
    write_atomic(folder / "node.facts", probes.node)
    write_private(target, software.model_dump_json(indent=1) + "\n")
    add_input(run.folder, target)


def _of_system(
    run: Run,
    environments: Path,
    prefixes: Mapping[str, str],
    programs: Mapping[str, Sequence[Program]],
) -> Installed:
    file = file_of_system(environments, site_of(run).partition.environment)
    sources = sources_of(file, sorted({step.package for step in run.plan.programs()}))
    pins = {
        name: _pinned(environments.parent / source.pip.lock, source.pip.distribution)
        for name, source in sources.items()
        if source.pip
    }
    return packages_of_system(sources, prefixes, pins, programs)


def _pinned(lock: Path, distribution: str) -> str:
    """Return the version of `distribution` in a lock of hashes."""
    try:
        text = lock.read_text(encoding="utf-8")
    except OSError as error:
        raise bad_input(lock, "", error.strerror or "unreadable", "a lock of hashes") from None
    pin = re.search(rf"^{re.escape(distribution)}==(\S+)", text, re.MULTILINE)
    if pin is None:
        raise bad_input(lock, distribution, "no such distribution", f"a pin of {distribution}")
    return pin[1]


def _check_unchanged(run: Run, before: Software, now: Software) -> None:
    """Raise BadInput if the programs changed: all results of a run must be of the same programs."""
    if before.environment_hash == now.environment_hash:
        return
    changed = [
        name
        for name, package in now.packages.items()
        if name not in before.packages
        or before.packages[name].environment_hash != package.environment_hash
    ]
    found = f"programs or libraries of {', '.join(changed)} that changed since {run.id} was started"
    accepted = "the same programs, or fresh=true for a new run"
    raise bad_input("software.json", "", found, accepted)


PREFIX = "@PREFIX@"
"""Stands for a folder of a package, or of its MPI, that only an installation knows.

A shell needs no quotes for it.
"""
PREINSTALLED = "preinstalled"
SPACK = "spack"
ASSUMED_MPI = "openmpi"
EASYBUILD_MPI = "openmpi"
"""The MPI of EasyBuild's toolchains foss and gompi (docs.easybuild.io, "Common toolchains")."""
_FAMILY = re.compile(r"openmpi|mvapich|mpich|\bimpi|intel(?=[^,]*mpi)", re.IGNORECASE)


Stated = tuple[Mapping[str, str], Mapping[str, str], str]
"""The known paths by program, the known variables, and the family of the MPI or ""."""


def planned_software(kit: Path, site: Site, plan: Plan) -> tuple[Software, list[str]]:
    """Return the programs of `plan`, and a line for each fact of them that is not known yet.

    Folders that only an installation knows are `PREFIX`. The origin may lack programs of the plan.

    Raises:
        BadInput: a file of the environment is wrong.
    """
    packages, unknown = {}, []
    parallel = {step.package for step in plan.programs() if step.launch == "mpi"}
    chosen = {step.package for step in plan.programs() if step.variants}
    for name, programs in plan.packages().items():
        paths, environment, family = _stated(kit / "environments", site, name, programs)
        if name not in parallel:
            family = ""
        elif not family and not site.partition.launch.launcher:
            family = ASSUMED_MPI
            unknown.append(f"{name}: the MPI, which a probe reads; {family} is assumed")
        entry = site.partition.preinstalled.get(name)
        if entry and entry.modules and site.partition.provision_from == PREINSTALLED:
            unknown.append(f"{name}: the variables of the modules {', '.join(entry.modules)}")
        if name in chosen:
            unknown.append(f"{name}: the variables that select the kernel of its BLAS")
        packages[name] = Package(
            origin=site.partition.provision_from,
            version="",
            prefix=PREFIX,
            launcher=LAUNCHERS.get(family, "plain"),
            environment=dict(environment),
            programs={
                each: unprobed(each, paths.get(each, f"{PREFIX}/bin/{each}"), family)
                for each in programs
            },
        )
    if site.partition.provision_from == SPACK:
        unknown += _unchosen(kit, site, packages)
    return Software(packages=packages), unknown


def _unchosen(kit: Path, site: Site, packages: Iterable[str]) -> list[str]:
    """Return a line for what nobody chose of what decides a measurement; nothing without a lock."""
    lock = lock_at(kit, site.inventory, site.partition.environment, this_system().name)
    return [*map(str, unchosen_variants(lock, lock.roots.keys() & {*packages}))] if lock else []


def _stated(environments: Path, site: Site, package: str, programs: Iterable[str]) -> Stated:
    partition = site.partition
    folder, origin = environments / partition.environment, partition.provision_from
    if origin == PREINSTALLED and (entry := partition.preinstalled.get(package)):
        words = ",".join([*entry.modules, entry.prefix, *entry.environment])
        paths = {name: program_path(entry, name) for name in programs}
        return paths, entry.environment, _family(words)
    if origin == SYSTEM:
        system = load(file_of_system(environments, partition.environment), System)
        if source := system.packages.get(package):
            return source.paths(PREFIX), source.variables(PREFIX), source.mpi
    if origin in (SPACK, "easybuild"):
        known = getattr(spellings(environments), origin).get(package, Spelling()).programs
        facts = partition.facts
        paths = {name: f"{PREFIX}/bin/{with_facts(file, facts)}" for name, file in known.items()}
        return paths, {}, _spack_mpi(folder, site) if origin == SPACK else EASYBUILD_MPI
    return {}, {}, ""


def _spack_mpi(folder: Path, site: Site) -> str:
    """Return the family of the MPI of the lock; without a lock, of what its `spack.yaml` asks."""
    lock = lock_at(folder.parents[1], site.inventory, folder.name, this_system().name)
    if lock:
        return _family(",".join(each.name for each in virtuals_of(lock, "mpi")))
    files = [*sorted((site.inventory / "locks" / folder.name).glob("*/spack.yaml"))]
    asked = asked_beside(files[0].parent if files else folder)
    return _family(f"{asked.get('mpi', {}).get('require', '')}")


def _family(words: str) -> str:
    """Return the family of the MPI that `words` name; empty if they name none."""
    found = _FAMILY.search(words)
    name = found[0].lower() if found else ""
    return {"impi": "intel"}.get(name, name)
