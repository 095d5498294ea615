"""Packages of the distribution for a plan, and the run's ``software.json`` from their probes.

The role `provision` installs the packages of ``environments/<environment>/system.yml`` and probes
their programs. This module makes ``software.json`` from the probes. For all other providers it
reads the run's ``installed.json`` in place of ``system.yml``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofmark.cases.vocabulary import Slug
from proofmark.common.errors import bad_input
from proofmark.common.files import read_json, write_private, write_whole
from proofmark.common.message import Message
from proofmark.common.strict_model import StrictModel
from proofmark.plan.plan import Plan
from proofmark.runs.format import add_input
from proofmark.runs.run import Run, site_of
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.software.installed import Installed
from proofmark.software.program import Program, parse_programs
from proofmark.software.software import Package, PackageSource, Software, package_of
from proofmark.software.system_file import Source, sources_of


def make_software(
    sources: Mapping[str, Source],
    prefixes: Mapping[str, str],
    pins: Mapping[str, str],
    programs: Mapping[str, Sequence[Program]],
    facts: NodeFacts,
) -> Software:
    """Return the software of a run from the probes of programs of the distribution or of pip.

    Args:
        sources: the entries of ``system.yml``, by package.
        prefixes: the folder into which pip installed, by package.
        pins: the version of the distribution that pip installed, by package.
        facts: the node that was probed.

    Raises:
        BadInput: a program was not probed, or the folder of pip is missing in `prefixes`.
    """
    packages: dict[str, Package] = {}
    for name, source in sources.items():
        if (source.pip or source.own) and name not in prefixes:
            raise bad_input("prefix", name, "nothing", "the folder into which it was installed")
        prefix = prefixes.get(name, "")
        probed = {Path(program.name).name: program for program in programs.get(name, ())}
        used = _probed(name, source.paths(prefix), probed)
        owner = next(iter(used.values())).package or ""
        if source.own:
            owner = f"{name} {prefix.rpartition('-')[2]}"
        distribution = [f"{source.pip.distribution}=={pins[name]}"] if source.pip else []
        packages[name] = package_of(
            used,
            facts,
            PackageSource(
                origin="system",
                version=pins[name] if source.pip else owner.partition(" ")[2],
                spec=" ".join([*source.apt, *distribution]),
            ),
            source.variables(prefix),
        )
    return Software(packages=packages)


def installed_software(
    installed: Installed, programs: Mapping[str, Sequence[Program]], facts: NodeFacts
) -> Software:
    """Return the software of a run from ``installed.json`` and the probed programs, by package.

    Raises:
        BadInput: a program of a package was not probed.
    """
    packages = {}
    for name, provided in installed.packages.items():
        probed = {Path(program.name).name: program for program in programs.get(name, ())}
        used = _probed(name, provided.programs, probed)
        package = package_of(
            used,
            facts,
            PackageSource(
                installed.origin, provided.version, spec=provided.spec, hash=provided.hash
            ),
            provided.environment,
        )
        findings = (*provided.findings, *package.findings)
        update = {
            "target": provided.target,
            "site_parts": provided.site_parts,
            "findings": findings,
            "built": provided.built,
        }
        packages[name] = package.model_copy(update=update)
    return Software(packages=packages)


def _probed(
    name: str, paths: Mapping[str, str], probed: Mapping[str, Program]
) -> dict[str, Program]:
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
        probes: the probes of the programs and of the node.
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
        software = installed_software(installed, programs, facts)
    else:
        prefixes = {name: probe.prefix for name, probe in probes.packages.items() if probe.prefix}
        software = _system_software(run, environments, prefixes, programs, facts)
    launch = site_of(run).partition.launch
    packages = {name: each.with_variables(launch) for name, each in software.packages.items()}
    software = Software(packages=packages)
    target = run.files.software
    if target.exists():
        _check_unchanged(run, read_json(target, Software), software)
        add_input(run.folder, target)  # an earlier call may have been stopped before it
        return
    folder = run.files.program_probes
    folder.mkdir(exist_ok=True)
    for name, probe in probes.packages.items():
        write_whole(folder / f"{name}.probe", probe.output)
    write_whole(folder / "node.facts", probes.node)
    write_private(target, software.model_dump_json(indent=1) + "\n")
    add_input(run.folder, target)


def without_romio(plan: Plan, software: Software) -> dict[str, Message]:
    """Return the steps with hints whose Open MPI has no ROMIO, each with the reason.

    Without its own component for files, such an Open MPI opens none. An MPI whose drivers are
    unknown is tried: the step fails, if it has none.
    """
    found = {}
    for step in plan.hinted():
        program = software.packages[step.package].programs[step.program]
        drivers = program.mpi.drivers if program.mpi and program.mpi.family == "openmpi" else ()
        if drivers and not any(each.startswith("romio:") for each in drivers):
            part = f"its Open MPI with {', '.join(drivers)}"
            found[step.id] = Message("hints-without-romio", part=part)
    return found


def _system_software(
    run: Run,
    environments: Path,
    prefixes: Mapping[str, str],
    programs: Mapping[str, Sequence[Program]],
    facts: NodeFacts,
) -> Software:
    file = environments / site_of(run).partition.environment / "system.yml"
    sources = sources_of(file, sorted({step.package for step in run.plan.programs()}))
    pins = {
        name: _pinned(environments.parent / source.pip.lock, source.pip.distribution)
        for name, source in sources.items()
        if source.pip
    }
    return make_software(sources, prefixes, pins, programs, facts)


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
