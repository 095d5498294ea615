"""Programs from distribution packages: what has to be there, and what then was there.

``environments/<environment>/system.yml`` is data. The role `provision` installs what it names and
probes the programs; this module turns the probes into the run's ``software.json``. For the other
origins (`proofmark.software`) the run's ``installed.json`` stands in the place of that data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from proofmark.common.errors import bad_input, nearest
from proofmark.common.files import read_json
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import load
from proofmark.runs.run import Run, site_of
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.software.installed import Installed
from proofmark.software.program import Program, parse_programs
from proofmark.software.software import Package, Software, package_of

PREFIX = "{prefix}"
"""Stands in paths and variables for the folder into which pip installs."""

DebianName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]


class Pip(StrictModel):
    """A lock of hashes, relative to the checkout, and the distribution in it that is meant."""

    lock: str = Field(pattern=r"^[^/].*\.txt$")
    distribution: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")


class Source(StrictModel):
    """Where one package of the cases comes from; the keys are explained in ``system.yml``."""

    apt: tuple[DebianName, ...] = ()
    pip: Pip | None = None
    programs: dict[str, str] = Field(min_length=1)
    environment: dict[str, str] = {}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.apt and self.pip is None:
            raise ValueError("a package comes from apt, from pip or from both")
        for text in (*self.programs.values(), *self.environment.values()):
            if braces := set(re.findall(r"\{.*?\}", text)) - {PREFIX}:
                raise ValueError(f"{', '.join(sorted(braces))}: only {PREFIX} is replaced")
            if PREFIX in text and self.pip is None:
                raise ValueError(f"{text}: only what pip installs has a {PREFIX}")
        for path in self.programs.values():
            if not path.startswith(("/", f"{PREFIX}/")):
                raise ValueError(f"{path}: a program is named by its absolute path")
        return self

    def paths(self, prefix: str) -> dict[str, str]:
        """Return the programs' paths by the names that the cases use."""
        return {name: path.replace(PREFIX, prefix) for name, path in self.programs.items()}

    def variables(self, prefix: str) -> dict[str, str]:
        """Return the environment that every program of the package needs."""
        return {name: value.replace(PREFIX, prefix) for name, value in self.environment.items()}


class System(StrictModel):
    """A whole ``system.yml``."""

    packages: dict[str, Source]


class Need(StrictModel):
    """One package of a plan, as the role `provision` wants to know it.

    `lock` and `prefix` are empty where pip installs nothing.
    """

    package: str
    apt: tuple[str, ...]
    lock: str
    prefix: str
    programs: tuple[str, ...]
    environment: dict[str, str]


def system_needs(file: Path, packages: Iterable[str], prefixes: Path) -> list[Need]:
    """Return what `packages` need; pip's folders are ``<prefixes>/<distribution>``.

    Raises:
        BadInput: the file is wrong, or does not know a package.
    """
    needs = []
    for name, source in _sources(file, packages).items():
        prefix = f"{prefixes / source.pip.distribution}" if source.pip else ""
        need = Need(
            package=name,
            apt=source.apt,
            lock=source.pip.lock if source.pip else "",
            prefix=prefix,
            programs=tuple(source.paths(prefix).values()),
            environment=source.variables(prefix),
        )
        needs.append(need)
    return needs


def make_software(
    sources: Mapping[str, Source],
    prefixes: Mapping[str, str],
    pins: Mapping[str, str],
    programs: Mapping[str, Sequence[Program]],
    facts: NodeFacts,
) -> Software:
    """Describe the packages `sources` as they were found.

    `prefixes`, `pins` (version of what pip installed) and `programs` are by package.

    Raises:
        BadInput: a program of a package was not probed, or pip's folder is not told.
    """
    packages: dict[str, Package] = {}
    for name, source in sources.items():
        if source.pip and name not in prefixes:
            raise bad_input("--prefix", name, "nothing", "the folder into which pip installed it")
        prefix = prefixes.get(name, "")
        probed = {Path(program.name).name: program for program in programs.get(name, ())}
        found = _probed(name, source.paths(prefix), probed)
        owner = next(iter(found.values())).package or ""
        distribution = [f"{source.pip.distribution}=={pins[name]}"] if source.pip else []
        packages[name] = package_of(
            found,
            facts,
            "system",
            pins[name] if source.pip else owner.partition(" ")[2],
            spec=" ".join([*source.apt, *distribution]),
            environment=source.variables(prefix),
        )
    return Software(packages=packages)


def installed_software(
    installed: Installed, programs: Mapping[str, Sequence[Program]], facts: NodeFacts
) -> Software:
    """Describe the packages of another origin as they were found; `programs` are by package.

    Raises:
        BadInput: a program of a package was not probed.
    """
    packages = {}
    for name, provided in installed.packages.items():
        probed = {Path(program.name).name: program for program in programs.get(name, ())}
        found = _probed(name, provided.programs, probed)
        package = package_of(
            found,
            facts,
            installed.origin,
            provided.version,
            spec=provided.spec,
            build_hash=provided.hash,
            environment=provided.environment,
        )
        told = {
            "target": provided.target,
            "findings": (*provided.findings, *package.findings),
        }
        packages[name] = package.model_copy(update=told)
    return Software(packages=packages)


def _probed(
    name: str, paths: Mapping[str, str], probed: Mapping[str, Program]
) -> dict[str, Program]:
    for program, path in paths.items():
        if Path(path).name not in probed:
            seen = ", ".join(probed) or "no program"
            raise bad_input(f"probes of {name}", program, seen, f"a probe of {path}")
    return {program: probed[Path(path).name] for program, path in paths.items()}


def provide_software(
    run: Run,
    environments: Path,
    prefixes: Mapping[str, str],
    probes: Sequence[Path],
    *,
    by_installed: bool = False,
    node: Path | None = None,
) -> None:
    """Write ``software.json`` of `run`, and keep the probes it is made from.

    A probe's file is named after its package: ``hpcc.probe``. With `by_installed` the run's
    ``installed.json`` says what was provided, else the ``system.yml`` of the environment. `node` is
    what ``probe.sh`` printed on the node that was asked; None is the machine at hand, as the run
    knows it.

    Raises:
        BadInput: a file is wrong or missing, or the run began with other programs.
    """
    texts = {path.stem: path.read_text(encoding="utf-8", errors="replace") for path in probes}
    seen = node or run.files.facts_probe
    told = seen.read_text(encoding="utf-8", errors="replace")
    facts = parse_probe(told, seen.name)
    programs = {name: parse_programs(text, f"{name}.probe") for name, text in texts.items()}
    if by_installed:
        installed = read_json(run.files.installed, Installed)
        software = installed_software(installed, programs, facts)
    else:
        software = _system_software(run, environments, prefixes, programs, facts)
    target = run.files.software
    if target.exists():
        _refuse_other(run, read_json(target, Software), software)
        return
    kept = run.files.program_probes
    kept.mkdir(exist_ok=True)
    for name, text in texts.items():
        (kept / f"{name}.probe").write_text(text)
    (kept / "node.facts").write_text(told)
    fresh = target.with_suffix(".new")
    fresh.write_text(software.model_dump_json(indent=1) + "\n")
    fresh.rename(target)


def _system_software(
    run: Run,
    environments: Path,
    prefixes: Mapping[str, str],
    programs: Mapping[str, Sequence[Program]],
    facts: NodeFacts,
) -> Software:
    file = environments / site_of(run).partition.environment / "system.yml"
    sources = _sources(file, sorted({step.package for step in run.plan.steps()}))
    pins = {
        name: _pinned(environments.parent / source.pip.lock, source.pip.distribution)
        for name, source in sources.items()
        if source.pip
    }
    return make_software(sources, prefixes, pins, programs, facts)


def _sources(file: Path, packages: Iterable[str]) -> dict[str, Source]:
    known = load(file, System).packages
    for name in packages:
        if name not in known:
            found = f"nothing on the package {name!r}{nearest(name, known)}"
            raise bad_input(file, "packages", found, ", ".join(known))
    return {name: known[name] for name in packages}


def _pinned(lock: Path, distribution: str) -> str:
    """Return the version of `distribution` in a lock of hashes."""
    try:
        text = lock.read_text(encoding="utf-8")
    except OSError as error:
        raise bad_input(lock, "", error.strerror or "unreadable", "a lock of hashes") from None
    found = re.search(rf"^{re.escape(distribution)}==(\S+)", text, re.MULTILINE)
    if found is None:
        raise bad_input(lock, distribution, "no such distribution", f"a pin of {distribution}")
    return found[1]


def _refuse_other(run: Run, before: Software, now: Software) -> None:
    """Refuse to go on with other programs: figures of one run must belong together."""
    if before.environment_hash == now.environment_hash:
        return
    changed = [
        name
        for name, package in now.packages.items()
        if name not in before.packages
        or before.packages[name].environment_hash != package.environment_hash
    ]
    found = f"other programs or libraries of {', '.join(changed)} than {run.id} began with"
    raise bad_input("software.json", "", found, "the same ones, or fresh=true for a new run")
