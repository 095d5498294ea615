"""Packages of the distribution: the content of system.yml, and software.json from probes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.fixtures.kit import local_site
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import ROOT

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.suite import members_from
from proofmark.common.errors import BadInput
from proofmark.common.files import read_json
from proofmark.common.message import Message
from proofmark.common.yaml_models import load
from proofmark.plan.expansion import make_plan
from proofmark.runs.run import Run
from proofmark.runs.start import RunInputs, start_or_continue
from proofmark.site.machines import Machine
from proofmark.site.node.facts import parse_probe
from proofmark.software.environments import System, system_needs
from proofmark.software.installed import Installed, Provided
from proofmark.software.program import parse_programs
from proofmark.software.provision import (
    ProgramProbes,
    installed_software,
    packages_of_system,
    provide_software,
)
from proofmark.software.software import Software

DATA = ROOT / "tests/data/probe"
LOCAL = ROOT / "environments/local/system.yml"
FACTS = (DATA / "live-kvm-zen3.txt").read_text(encoding="utf-8")
PREFIX = "/kit/.provision/impi-rt"


def program(name: str, path: str, version: str = "1.0-1") -> str:
    """Return the probe of a program without libraries."""
    return (
        "proofmark-probe 1 program\n"
        f"=== program\n| name: {path.rpartition('/')[2]}\n| path: {path}\n=== libraries\n"
        f"=== hashes\n| {'ab' * 32} {path}\n=== packages\n| {path}: {name} {version}\n"
        "=== blas\n! blas: no known BLAS is linked\n"
        "=== mpi\n! mpi: no known MPI is linked\n=== end\n"
    )


def system_file(folder: Path, text: str) -> Path:
    path = folder / "system.yml"
    path.write_text(text)
    return path


def test_the_local_environment_has_every_package_of_the_quick_suite() -> None:
    """A case of `quick` must run on any Debian with packages of apt and pip alone."""
    cases = members_from(shipped_benchmarks(), "quick", "system")
    assert {"hpcc", "fio-cache", "imb-pingpong"} <= cases.keys()
    packages = {case.package for case in cases.values()}
    sources = load(LOCAL, System).packages
    assert packages <= sources.keys()
    for case in cases.values():
        assert case.program in sources[case.package].programs
    for source in sources.values():
        if source.pip:
            assert f"\n{source.pip.distribution}==" in (ROOT / source.pip.lock).read_text()


def test_only_requested_packages_are_returned() -> None:
    (fio,) = system_needs(ROOT / "environments", "local", ["fio"], Path("/kit/.provision"))
    assert (fio.apt, fio.lock, fio.prefix, fio.programs) == (("fio",), "", "", ("/usr/bin/fio",))


def test_the_prefix_of_pip_is_inserted_into_paths_and_variables() -> None:
    (imb,) = system_needs(
        ROOT / "environments", "local", ["intel-mpi-benchmarks"], Path("/kit/.provision")
    )
    assert imb.prefix == PREFIX
    assert imb.programs == (f"{PREFIX}/bin/IMB-MPI1",)
    assert imb.environment["LD_LIBRARY_PATH"] == f"{PREFIX}/lib"
    assert "{" not in imb.model_dump_json().replace('{"', "")


def test_an_unknown_package_is_refused_with_the_file() -> None:
    """The plan names it: it is no typing error of the user, and no other name is offered."""
    with pytest.raises(BadInput, match=r"system\.yml: packages: found no package 'hpl'; ac"):
        system_needs(ROOT / "environments", "local", ["hpl"], Path("/x"))


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("{programs: {x: /bin/x}}", "a package needs apt, pip or both"),
        ("{apt: [xy], programs: {x: bin/x}}", "absolute path"),
        ("{apt: [xy], programs: {}}", "programs"),
        ("{apt: ['x; reboot'], programs: {x: /bin/x}}", "apt.0"),
        ("{apt: [xy], programs: {x: '{prefix}/x'}}", "needs pip"),
        (
            "{pip: {lock: a.txt, distribution: x}, programs: {x: '{prefx}/x'}}",
            r"\{prefx\}: only \{prefix\}",
        ),
        ("{pip: {lock: /a.txt, distribution: x}, programs: {x: '{prefix}/x'}}", "lock"),
        ("{apt: [xy], program: {x: /bin/x}, programs: {x: /bin/x}}", "did you mean 'programs'"),
    ],
)
def test_a_wrong_system_yml_is_refused(tmp_path: Path, source: str, complaint: str) -> None:
    file = system_file(tmp_path, f"packages:\n  some: {source}\n")
    with pytest.raises(BadInput, match=complaint) as raised:
        system_needs(file.parents[1], file.parent.name, ["some"], Path("/x"))
    assert f"{file}:2" in str(raised.value)


def make(probes: dict[str, str], prefixes: dict[str, str] | None = None) -> Software:
    sources = load(LOCAL, System).packages
    programs = {name: parse_programs(text, name) for name, text in probes.items()}
    installed = packages_of_system(
        {name: sources[name] for name in probes},
        {"intel-mpi-benchmarks": PREFIX} if prefixes is None else prefixes,
        {"intel-mpi-benchmarks": "2021.18.1"},
        programs,
    )
    return installed_software(installed, programs, parse_probe(FACTS, "facts"))


def test_the_version_is_that_of_the_package_manager() -> None:
    software = make(
        {
            "fio": program("fio", "/usr/bin/fio", "3.33-3"),
            "intel-mpi-benchmarks": program("none", f"{PREFIX}/bin/IMB-MPI1"),
        }
    )
    fio, imb = software.packages.values()
    assert (fio.origin, fio.version, fio.spec) == ("system", "3.33-3", "fio")
    assert (imb.version, imb.spec) == ("2021.18.1", "impi-rt==2021.18.1")
    assert imb.environment["I_MPI_ROOT"] == PREFIX
    assert imb.programs["IMB-MPI1"].path == f"{PREFIX}/bin/IMB-MPI1"


def test_a_recorded_hpcc_has_launcher_and_variants() -> None:
    text = (DATA / "program-hpcc-openblas.txt").read_text(encoding="utf-8")
    hpcc = make({"hpcc": text}).packages["hpcc"]
    assert hpcc.launcher == "openmpi"
    assert re.fullmatch(r"1\.5\.0-\S+", hpcc.version)
    assert hpcc.variants["blas_kernel"].keys() == {"as-installed", "right"}


@pytest.mark.fault("program-missing")
def test_a_program_without_a_probe_is_named() -> None:
    with pytest.raises(BadInput, match=r"probes of fio: fio: found fi; accepted: .*/usr/bin/fio"):
        make({"fio": program("fio", "/usr/bin/fi")})


@pytest.mark.fault("program-missing")
def test_a_missing_program_is_named() -> None:
    absent = (
        "proofmark-probe 1 program\n=== program\n| name: fio\n! program: no such program: fio\n"
    )
    with pytest.raises(BadInput, match="no such program: fio"):
        make({"fio": f"{absent}=== end\n"})


def test_a_package_of_pip_needs_its_prefix() -> None:
    with pytest.raises(BadInput, match="prefix: intel-mpi-benchmarks"):
        make({"intel-mpi-benchmarks": program("x", "/bin/IMB-MPI1")}, prefixes={})


CASE = """
title: x
package: fio
program: fio
launch: process
cost: {seconds: 1}
suites: {quick: {}}
metrics: {rate: {unit: MB/s, better: higher, bound: universal, what: x}}
read:
  finds: rate
  benchmark: x
  starts: x
  require: {END: END}
  keys: {'(?P<key>rate):(?P<value>.*)': {rate: rate}}
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run of one step that calls fio; its environment is in `tmp_path`."""
    benchmarks, environment = tmp_path / "benchmarks", tmp_path / "environments/local"
    benchmarks.mkdir()
    environment.mkdir(parents=True)
    (benchmarks / "x.yml").write_text(CASE)
    (benchmarks / "suites.yml").write_text("suites: {quick: {title: x}}\n")
    system_file(environment, "packages: {fio: {apt: [fio], programs: {fio: /usr/bin/fio}}}\n")
    cases = load_benchmarks(benchmarks)
    site = local_site(tmp_path / "local", tmp_path / "scratch")
    machine = Machine.from_facts(parse_probe(FACTS, "facts"), 1)
    plan = make_plan(cases, "quick", site, machine)
    return start_or_continue(tmp_path / "runs", RunInputs(plan, cases, site, FACTS))[0]


def probed(text: str) -> ProgramProbes:
    """Return the probes of a node with the programs of the package fio in `text`."""
    return ProgramProbes.model_validate({"node": FACTS, "packages": {"fio": {"output": text}}})


def provide(run: Run, tmp_path: Path, text: str) -> None:
    provide_software(run, tmp_path / "environments", probed(text))


def test_software_and_its_probes_are_written_into_the_run(run: Run, tmp_path: Path) -> None:
    text = program("fio", "/usr/bin/fio", "3.33-3")
    provide(run, tmp_path, text)
    software = read_json(run.folder / "software.json", Software)
    assert software.packages["fio"].version == "3.33-3"
    assert (run.folder / "software.json").stat().st_mode & 0o777 == 0o600
    assert "software.json" in json.loads(run.files.identity.read_text())["inputs"]
    assert (run.folder / "software/fio.probe").read_text() == text


def test_an_empty_probe_of_the_node_is_refused(run: Run, tmp_path: Path) -> None:
    probes = probed(program("fio", "/usr/bin/fio")).model_copy(update={"node": ""})
    with pytest.raises(BadInput, match="probe of the node"):
        provide_software(run, tmp_path / "environments", probes)
    assert not (run.folder / "software.json").exists()


def test_the_facts_are_those_of_the_probed_node(run: Run, tmp_path: Path) -> None:
    """A run on declared hardware has an empty probe."""
    (run.folder / "inputs/facts.probe").write_text("")
    provide(run, tmp_path, program("fio", "/usr/bin/fio"))
    assert (run.folder / "software.json").exists()
    assert (run.folder / "software/node.facts").read_text() == FACTS


def test_the_same_software_again_changes_no_file(run: Run, tmp_path: Path) -> None:
    text = program("fio", "/usr/bin/fio")
    provide(run, tmp_path, text)
    before = (run.folder / "software.json").stat()
    provide(run, tmp_path, text)
    assert (run.folder / "software.json").stat() == before


def test_changed_software_is_refused_and_changes_no_file(run: Run, tmp_path: Path) -> None:
    provide(run, tmp_path, program("fio", "/usr/bin/fio"))
    before = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    with pytest.raises(BadInput, match=r"libraries of fio that changed since .* was started"):
        provide(run, tmp_path, program("fio", "/usr/bin/fio", "3.34-1"))
    assert {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()} == before


def test_software_of_other_providers_is_read_from_installed_json(run: Run, tmp_path: Path) -> None:
    probes = probed(program("fio", "/opt/fio/bin/fio-3"))
    with pytest.raises(BadInput, match=r"installed\.json"):
        provide_software(run, tmp_path / "environments", probes, by_installed=True)
    provided = Provided(
        version="3.3",
        spec="fio@3.3 +libaio",
        hash="abc",
        target="power8le",
        prefix="/opt/fio",
        programs={"fio": "/opt/fio/bin/fio-3"},
        environment={"X": "1"},
        findings=(Message("derived", package="fio", parts=Message("derived-same")),),
    )
    installed = Installed(origin="spack", packages={"fio": provided})
    (run.folder / "installed.json").write_text(installed.model_dump_json())
    provide_software(run, tmp_path / "environments", probes, by_installed=True)
    package = read_json(run.folder / "software.json", Software).packages["fio"]
    assert (package.origin, package.hash, package.environment) == ("spack", "abc", {"X": "1"})
    assert package.programs["fio"].path == "/opt/fio/bin/fio-3"
    assert package.target == "power8le"
    assert package.findings == provided.findings
    assert [each.code for each in package.findings] == ["derived"]


def test_an_installed_program_without_a_probe_is_named(run: Run, tmp_path: Path) -> None:
    provided = Provided(version="3.3", prefix="/opt", programs={"fio": "/opt/bin/fio"})
    installed = Installed(origin="preinstalled", packages={"fio": provided})
    (run.folder / "installed.json").write_text(installed.model_dump_json())
    probes = ProgramProbes.model_validate({"node": FACTS, "packages": {}})
    with pytest.raises(BadInput, match=r"probes of fio: fio: .*/opt/bin/fio"):
        provide_software(run, tmp_path / "environments", probes, by_installed=True)


def test_a_release_of_the_mpirun_of_another_mpi_is_not_believed() -> None:
    says = "=== mpi\n| library: /usr/lib/libmpich.so\n| family: mpich\n| says: {}\n=== end\n"
    base = program("fake", "/opt/bin/fake").partition("=== mpi")[0]
    for said, version in (("mpirun (Open MPI) 4.1.4", None), ("Version: 4.0.2", "4.0.2")):
        (found,) = parse_programs(base + says.format(said), "fake.probe")
        assert found.mpi is not None and found.mpi.version == version
