"""The twin: a real MPI program, compiled for SimGrid, on the generated model of a machine."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.report_run import page_of
from tests.folders import DATA, ROOT

from proofmark.cli.main import main
from proofmark.common.rights import this_user
from proofmark.judge.judging import judge_run, read_and_judge
from proofmark.judge.verdict import Verdict
from proofmark.packages.twin import twin_command as cli
from proofmark.packages.twin.calibration import one_way_s
from proofmark.packages.twin.platform import host_name, platform_xml, settings
from proofmark.packages.twin.smpi import simulator_version
from proofmark.packages.twin.twin_error import model_error_of
from proofmark.packages.twin.twin_files import ModelError
from proofmark.packages.twin.twin_model import Interconnect, copy_rate, interconnect_of, twin_model
from proofmark.report.words import number
from proofmark.runs.evidence import seal
from proofmark.runs.identity import write_identity
from proofmark.runs.job_folder import JobFolder, JobStatus, JobSubmission, State
from proofmark.runs.run import open_run
from proofmark.site.inventory import Site, load_site
from proofmark.site.machines import topology_of_mode
from proofmark.site.node.topology import Topology

PROGRAM = DATA / "twin"
FOLDER = "imb-1.0"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small MPI program, compiled for SimGrid."""
    folder = tmp_path_factory.mktemp("program")
    shutil.copytree(PROGRAM, folder, dirs_exist_ok=True)
    subprocess.run(["make", "-C", folder, "CC=smpicc", "IMB-MPI1"], check=True, capture_output=True)
    return folder / "IMB-MPI1"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs that the first simulation compiles."""
    return tmp_path_factory.mktemp("prefixes")


@pytest.fixture
def kit(tmp_path: Path, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kit whose suite is short, and whose source of IMB is the small program."""
    folder = tmp_path / "kit"
    (tmp_path / "prefixes").symlink_to(compiled)
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks")
    shutil.copytree(ROOT / "environments", folder / "environments")
    shutil.copytree(ROOT / "spack-repo", folder / "spack-repo")
    shutil.copy(ROOT / "galaxy.yml", folder)
    case = folder / "benchmarks/imb-collectives.yml"
    content = yaml.safe_load(case.read_text())
    short = {"nodes": 2, "ranks": [4], "collective": ["Bcast"], "placement": ["BD", "UA"]}
    for name in ("twin-p5", "p5"):
        content["suites"][name]["sweep"] |= short
    case.write_text(yaml.safe_dump(content, sort_keys=False))
    (tmp_path / "mirror").mkdir()
    archive = tmp_path / "mirror/imb.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(PROGRAM, FOLDER)
    change_source(folder, sha256=hashlib.sha256(archive.read_bytes()).hexdigest())
    monkeypatch.setenv("PROOFMARK_KIT", f"{folder}")
    return folder


def change_source(kit: Path, **changes: str) -> None:
    source = {
        "version": "1.0",
        "url": "https://127.0.0.1:9/imb.tar.gz",
        "folder": FOLDER,
        "make": ["CC=smpicc", "IMB-MPI1"],
        "programs": {"IMB-MPI1": "IMB-MPI1"},
    }
    packages = {"packages": {"intel-mpi-benchmarks": source | changes}}
    (kit / "environments/twin/sources.yml").write_text(yaml.safe_dump(packages))


def twin(kit: Path, *options: str, site: str = "p595", limit: str = "p595-01,p595-02") -> int:
    folder = kit.parent
    return main(
        [
            *("twin", "-i", f"{ROOT / 'inventory' / site}", "-l", limit),
            *("--suite", "twin-p5", "--runs", f"{folder / 'runs'}", "--run-id", "model"),
            *("--prefixes", f"{folder / 'prefixes'}", *options),
        ]
    )


def judged(kit: Path) -> Verdict:
    return read_and_judge(open_run(kit.parent / "runs/model"))[1]


def test_a_suite_is_simulated_and_continued(kit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ranks that fill one node need no network: they are faster than those on two nodes."""
    sources = ["--sources", f"{kit.parent / 'mirror'}"]
    assert twin(kit, *sources) == 0
    verdict = judged(kit)
    assert verdict.coverage.expected == len(verdict.coverage.missing) + 2
    assert not verdict.coverage.missing
    assert {result.verdict for result in verdict.results} == {"UNJUDGED"}
    assert {result.record.origin for result in verdict.results} == {"predicted"}
    nodes = {(each.record.placement, each.record.node) for each in verdict.results}
    assert nodes == {("BD", "p595-[01-02]"), ("UA", "p595-01")}
    times = {
        (each.record.placement, each.record.parameters["bytes"]): each.record.value or 0.0
        for each in verdict.results
        if each.record.metric == "t_max"
    }
    assert times["BD", 65536] > 2 * times["UA", 65536]
    assert error_of(kit.parent / "runs/model") is None
    page = page_of(open_run(kit.parent / "runs/model"), verdict)
    assert "The error of this model is not known: no real run was given" in page
    assert "Range by the error of the model" in page
    assert page.count(">not known<") >= len(verdict.results), "beside each figure"
    assert "cache line between two cores" in page
    assert "smpi/coll-selector" in page
    capsys.readouterr()
    assert twin(kit, *sources) == 0
    assert "continued" in capsys.readouterr().err
    assert twin(kit, *sources, "--selector", "ompi") == 3, "another selector is another run"
    assert "exists, with another plan" in capsys.readouterr().err
    assert twin(kit, *sources, "--selector", "ompi", "--run-id", "other") == 0
    runs = [f"{kit.parent / 'runs' / name}" for name in ("model", "other")]
    capsys.readouterr()
    assert main(["verdict", "--claims", *runs]) == 3, "two selectors are two models"
    assert "other: selector: found ompi; accepted: classic" in capsys.readouterr().err


def error_of(folder: Path) -> ModelError | None:
    """Return the error of the model of the run of a twin; None if it was given no real run."""
    run = open_run(folder)
    return model_error_of(run, judge_run(run).results)


@pytest.fixture
def real(kit: Path) -> Path:
    """A finished run that says it is of virtual nodes: its figures are those of a simulation."""
    assert twin(kit, "--sources", f"{kit.parent / 'mirror'}") == 0
    folder = kit.parent / "runs/model"
    content = json.loads((folder / "inputs/site.json").read_text())
    content["partition"]["origin"] = "emulated"
    seal_with(folder, json.dumps(content))
    return folder


def seal_with(folder: Path, site: str) -> None:
    """Seal the run as one that was started with this content of its file `site.json`."""
    shutil.rmtree(folder / "evidence")
    (folder / "inputs/site.json").write_text(site)
    write_identity(folder, this_user().name)
    seal(folder)


def test_the_error_of_a_twin_is_that_of_its_figures(
    kit: Path, real: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both runs are the same simulation: the error is 1. Without a PingPong nothing is fitted."""
    capsys.readouterr()
    assert twin(kit, "--measured", f"{real}") == 3, "another run"
    assert "exists, with another plan" in capsys.readouterr().err
    assert twin(kit, "--measured", f"{real}", "--run-id", "second") == 0
    second = kit.parent / "runs/second"
    error = error_of(second)
    assert error is not None
    assert (error.run, error.typical, error.fitted) == ("model", 1, 0)
    assert {row.metric for row in error.rows} == {"t_avg", "t_max", "t_min"}
    assert {(row.case, row.median, row.largest) for row in error.rows} == {
        ("imb-collectives", 1, 1)
    }
    run = open_run(second)
    page = page_of(run, read_and_judge(run)[1])
    assert "differ from run model by a factor of less than 1.00" in page
    for result in read_and_judge(run)[1].results:
        value = number(result.record.value)
        assert f"{value} … {value} {result.record.unit}" in page
    assert "no PingPong inside a socket: the figures of the table are not changed" in page
    # The figures were copied: the measured run is not read again.
    shutil.rmtree(real)
    assert error_of(second) == error


def test_a_run_that_cannot_be_compared_is_refused(
    kit: Path, real: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(folder: Path) -> str:
        capsys.readouterr()
        assert twin(kit, "--measured", f"{folder}", "--run-id", "second") == 3
        return capsys.readouterr().err

    assert "not a run" in refused(kit)
    text = (real / "inputs/site.json").read_text()
    seal_with(real, text.replace('"partition_name": "p595"', '"partition_name": "p690"'))
    message = refused(real)
    assert "partition: found p690 of the site p595" in message
    assert "accepted: a run of p595 of the site p595" in message
    seal_with(real, text.replace('"origin": "emulated"', '"origin": "predicted"'))
    assert "origin: found predicted; accepted: a run on real nodes" in refused(real)
    shutil.rmtree(next((real / "workdir/steps").glob("0002-*/execution-1")))
    seal_with(real, text)
    assert "steps: found 1 of 2 steps have a result; accepted: a finished run" in refused(real)


def test_cases_without_a_source_are_left_out(kit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("twin", "-i", f"{ROOT / 'inventory/p595'}", "-l", "p595", "--plan")
    assert main([*arguments, "--suite", "quick"]) == 0
    printed = capsys.readouterr().out
    assert "left out: ior: ior has no source for a simulation" in printed
    assert "imb-collectives" in printed


def test_a_case_without_the_source_of_its_program_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A release of OSU is known, but not the make of its collectives."""
    arguments = ("twin", "-i", f"{ROOT / 'inventory/nurion'}", "-l", "skl", "--plan", "--suite")
    assert main([*arguments, "links"]) == 0
    printed = capsys.readouterr().out
    assert "left out: osu-bibw: osu_bibw of osu-micro-benchmarks has no source" in printed
    assert "left out: osu-congestion: osu_alltoall of osu-micro-benchmarks has no source" in printed
    assert "osu-latency" in printed
    assert main([*arguments, "system"]) == 3
    assert "accepted: a case whose programs have a source" in capsys.readouterr().err


def test_the_local_machine_has_a_twin_if_its_processor_is_known(
    kit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its hardware is discovered, and so is its processor."""
    arguments = ("twin", "-i", f"{ROOT / 'inventory/local'}", "-l", "local", "--suite", "quick")
    monkeypatch.setattr(cli, "interconnect_of", lambda site, _: interconnect_of(site, "zen2"))
    assert main([*arguments, "--plan"]) == 0
    assert "imb-collectives" in capsys.readouterr().out
    monkeypatch.setattr(cli, "interconnect_of", lambda site, _: interconnect_of(site, "a64fx"))
    assert main([*arguments, "--plan"]) == 3
    assert "a64fx, which is not in twin/data/interconnects.yml" in capsys.readouterr().err


def test_virtual_nodes_have_a_twin(kit: Path) -> None:
    """Its nodes have no CPUs of the machine below them. The site is read again from the run."""
    arguments = ("twin", "-i", f"{ROOT / 'inventory/rehearsal'}", "-l", "rskl0001,rskl0002")
    case = kit / "benchmarks/imb-collectives.yml"
    content = yaml.safe_load(case.read_text())
    content["suites"]["twin-p5"]["sweep"]["placement"] = ["UA"]
    case.write_text(yaml.safe_dump(content, sort_keys=False))
    folder = kit.parent
    places = ["--runs", f"{folder / 'runs'}", "--prefixes", f"{folder / 'prefixes'}"]
    words = [*arguments, *places, "--suite", "twin-p5", "--run-id", "model"]
    assert main([*words, "--sources", f"{folder / 'mirror'}"]) == 0
    assert {result.verdict for result in judged(kit).results} == {"UNJUDGED"}


def test_each_selector_of_the_partition_can_be_chosen(
    kit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert twin(kit, "--plan", "--selector", "ompi") == 0
    assert "the simulation needs about " in capsys.readouterr().out
    assert twin(kit, "--plan", "--selector", "nccl") == 3
    assert "accepted: classic, mpich, ompi, mvapich2, impi" in capsys.readouterr().err


def test_a_source_that_is_not_available_is_named(
    kit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (kit.parent / "prefixes").unlink()
    assert twin(kit) == 3
    message = capsys.readouterr().err
    assert "intel-mpi-benchmarks: source: found not available: " in message
    assert "--sources" in message


def test_a_source_with_another_checksum_is_refused(
    kit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (kit.parent / "prefixes").unlink()
    change_source(kit, sha256="0" * 64)
    assert twin(kit, "--sources", f"{kit.parent / 'mirror'}") == 3
    assert f"accepted: {'0' * 64}" in capsys.readouterr().err
    assert not [*(kit.parent / "prefixes").glob("twin-*")]


def test_simulations_run_at_the_same_time(
    kit: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs are submitted before one of them ends. Their figures are those of one job.

    The order of the events counts: their times have whole seconds.
    """
    events: list[tuple[State, Path]] = []
    append_event = JobFolder.append_event

    def append(job: JobFolder, of: JobSubmission, status: JobStatus, **more: Any) -> None:
        events.append((status.state, job.log))
        append_event(job, of, status, **more)

    monkeypatch.setattr(JobFolder, "append_event", append)
    sources = ["--sources", f"{kit.parent / 'mirror'}"]
    assert twin(kit, *sources, "--jobs", "2") == 0
    states = [state for state, _ in events]
    before_an_end = {job for _, job in events[: states.index(State.ENDED)]}
    assert len(before_an_end) == len({job for _, job in events}) == 2
    figures = {(r.record.step, r.record.metric): r.record.value for r in judged(kit).results}
    assert twin(kit, *sources, "--jobs", "1", "--run-id", "one") == 0
    one = read_and_judge(open_run(kit.parent / "runs/one"))[1]
    assert {(r.record.step, r.record.metric): r.record.value for r in one.results} == figures
    capsys.readouterr()
    with pytest.raises(SystemExit, match="3"):
        twin(kit, *sources, "--jobs", "-1")
    assert "--jobs: found '-1'; accepted: a whole number from 0" in capsys.readouterr().err


def test_a_simulation_that_does_not_fit_into_the_memory_is_refused(
    kit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = kit / "benchmarks/imb-collectives.yml"
    content = yaml.safe_load(case.read_text())
    content["suites"]["twin-p5"]["let"]["largest_log2"] = 40
    case.write_text(yaml.safe_dump(content, sort_keys=False))
    assert twin(kit) == 3
    assert "a simulation that needs about 32.0 TiB" in capsys.readouterr().err
    assert not (kit.parent / "runs").exists()


@pytest.mark.parametrize("partition", ["tachyon1", "tachyon2", "p595"])
def test_simgrid_follows_the_model(partition: str, program: Path, tmp_path: Path) -> None:
    """The rate of a large message is that of the slowest link of its route."""
    site, topology, known = platform(partition, 2, tmp_path)
    first = topology.cores[0]
    near = next(core for core in topology.cores[1:] if core.socket == first.socket)
    far = next(core for core in topology.cores if core.socket != first.socket)
    line, hop = known.line_s.value, known.socket.latency_s.value
    places = {
        (site.hosts[0], near.pus[0]): copy_rate(known, line),
        (site.hosts[0], far.pus[0]): min(
            copy_rate(known, line + hop), known.socket.bytes_per_s.value
        ),
        (site.hosts[1], first.pus[0]): min(
            site.partition.fabric.link_bytes_per_s,
            known.adapter.bytes_per_s.value,
            copy_rate(known, line + hop),
        ),
    }
    for place, rate in places.items():
        assert largest_rate(program, tmp_path, [(site.hosts[0], first.pus[0]), place]) == (
            pytest.approx(rate, rel=0.03)
        )


@pytest.mark.parametrize("partition", ["tachyon1", "tachyon2", "p595"])
def test_simgrid_has_the_times_of_the_fit(partition: str, program: Path, tmp_path: Path) -> None:
    """A calibration assumes this formula. Messages of all sizes have its times inside a node."""
    site, topology, known = platform(partition, 1, tmp_path)
    first = topology.cores[0]
    hops = topology.socket_hops
    for other, hop_s in (
        (lambda core: core.socket == first.socket, 0.0),
        (
            lambda core: (
                hops.get((first.socket, core.socket), 1) == 1
                and core.book == first.book
                and core.socket != first.socket
            ),
            known.socket.latency_s.value,
        ),
    ):
        core = next(filter(other, topology.cores[1:]))
        places = [(site.hosts[0], first.pus[0]), (site.hosts[0], core.pus[0])]
        for size, seconds in times(program, tmp_path, places).items():
            assert seconds / 2 == pytest.approx(one_way_s(known, size, hop_s), rel=0.03), size


def platform(partition: str, nodes: int, folder: Path) -> tuple[Site, Topology, Interconnect]:
    """Write the platform file of the first `nodes` of a partition; return what it was made from."""
    inventory = ROOT / "inventory" / ("p595" if partition == "p595" else "tachyon")
    site = load_site(inventory, partition)
    topology = topology_of_mode(site, site.partition.current_mode)
    model = twin_model(site, topology, site.hosts[:nodes])
    known = model.interconnect
    text = platform_xml(model, settings(known, known.collectives[0], simulator_version()))
    (folder / "platform.xml").write_text(text)
    return site, topology, known


def largest_rate(program: Path, folder: Path, places: list[tuple[str, int]]) -> float:
    """Return the rate in bytes/s of a message of 4 MiB there and back."""
    return 2 * 2**22 / times(program, folder, places)[2**22]


def times(program: Path, folder: Path, places: list[tuple[str, int]]) -> dict[int, float]:
    """Return the seconds of a message there and back, by its size."""
    (folder / "hosts").write_text("".join(f"{host_name(*place)}\n" for place in places))
    words = ["smpirun", "-np", "2", "-platform", "platform.xml", "-hostfile", "hosts"]
    done = subprocess.run(
        [*words, program, "PingPong", "-msglog", "0:22"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    rows = re.findall(r"^ +(\d+) +20 +\S+ +\S+ +(\S+)$", done.stdout, re.MULTILINE)
    assert rows, done.stdout
    return {int(size): 1e-6 * float(time) for size, time in rows}
