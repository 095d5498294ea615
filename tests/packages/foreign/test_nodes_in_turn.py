"""Logs of several nodes, of launchers and of Ansible: each figure belongs to the node that ran."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from tests.folders import BENCHMARKS, ROOT

from proofmark.cli.main import main
from proofmark.judge.judging import read_and_judge
from proofmark.packages.foreign import output_heads
from proofmark.packages.foreign.output_folder import HEAD
from proofmark.runs.run import open_run

SAMPLES = BENCHMARKS / "samples"
STREAM = (SAMPLES / "stream-5.10_N2000000_t2.txt").read_text()
HPL = (SAMPLES / "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt").read_text()
IOR = (SAMPLES / "ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt").read_text()
NODES = ("n01", "n02", "n03")
Values = Mapping[str, Mapping[str, float | None]]


def stream(place: int) -> str:
    """Return an output of STREAM whose Triad rate ends with `place`."""
    line = next(each for each in STREAM.splitlines() if each.startswith("Triad:"))
    words = line.split()
    return STREAM.replace(line, line.replace(words[1], f"{float(words[1]):.0f}.{place}"))


def after_banner(number: int, node: str) -> str:
    return f"Running on host: {node}\n{stream(number)}"


def as_list(number: int, node: str) -> str:
    """Return a result as ``debug: var=out.stdout_lines`` prints it."""
    lines = json.dumps(stream(number).splitlines(), indent=8)[:-1]
    return f'ok: [{node}] => {{\n    "out.stdout_lines": {lines}    ]\n}}\n'


def as_yaml(number: int, node: str) -> str:
    """Return a result as the callback with ``result_format=yaml`` prints it."""
    result = {"out": {"rc": 0, "stdout_lines": stream(number).splitlines()}}
    return f"ok: [{node}] => \n" + "".join(
        f"  {line}\n" for line in yaml.safe_dump(result, width=1000).splitlines()
    )


def in_one_line(number: int, node: str) -> str:
    """Return a result as ``ansible-playbook -v`` prints it."""
    text = stream(number)
    result = {"changed": True, "stdout": text, "stdout_lines": text.splitlines(), "stderr": ""}
    return f"changed: [{node}] => {json.dumps(result)}\n"


def as_text(number: int, node: str) -> str:
    """Return a result as ``debug: var=out.stdout`` prints it."""
    return f'ok: [{node}] => {{\n    "out.stdout": {json.dumps(stream(number))}\n}}\n'


def ad_hoc(number: int, node: str) -> str:
    """Return a result as ``ansible -m command`` prints it."""
    return f"{node} | CHANGED | rc=0 >>\n{stream(number)}"


FORMS = [after_banner, as_list, as_yaml, in_one_line, as_text, ad_hoc]


@pytest.fixture
def values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Values]:
    """Return a function that adopts files and returns the valid Triad or other rates by node."""
    monkeypatch.setenv("PROOFMARK_KIT", str(ROOT))
    monkeypatch.chdir(tmp_path)

    def adopted(metric: str, **files: str) -> Values:
        folder = tmp_path / "logs"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        assert main(["adopt", "logs", "--accept", "--runs", "runs", "--run-id", "one"]) == 0
        found: dict[str, dict[str, float | None]] = {}
        records, _ = read_and_judge(open_run(Path("runs/one")))
        for each in records:
            if each.metric == metric:
                found.setdefault(each.node, {})[each.step] = each.value if each.valid else None
        return found

    return adopted


@pytest.mark.fault("nodes-in-one-log")
@pytest.mark.parametrize("form", FORMS)
def test_each_node_of_a_log_has_its_own_figure(
    form: Callable[[int, str], str], values: Callable[..., Values]
) -> None:
    log = "".join(form(number, node) for number, node in enumerate(NODES, 1))
    found = values("triad", log=log)
    assert {node: len(of_node) for node, of_node in found.items()} == dict.fromkeys(NODES, 1)
    for number, node in enumerate(NODES, 1):
        (value,) = found[node].values()
        assert value is not None
        assert f"{value:.1f}".endswith(f".{number}")


@pytest.mark.parametrize("form", FORMS)
def test_the_log_of_a_node_is_that_of_the_node(
    form: Callable[[int, str], str], values: Callable[..., Values]
) -> None:
    """The control."""
    found = values("triad", log=form(4, "n07"))
    assert [*found] == ["n07"]


@pytest.mark.fault("nodes-in-one-log")
def test_a_program_that_prints_its_node_divides_its_log(values: Callable[..., Values]) -> None:
    runs = [IOR.replace("Linux vm", f"Linux {node}") for node in NODES]
    assert len(set(runs)) == len(NODES)
    assert [*values("write", log="".join(runs))] == [*NODES]


@pytest.mark.fault("nodes-in-one-log")
def test_programs_of_several_nodes_stay_with_their_nodes(values: Callable[..., Values]) -> None:
    log = "".join(f"Running on host: {node}\n{STREAM}{HPL}" for node in NODES)
    assert [*values("rmax", log=log)] == [*NODES]


@pytest.mark.parametrize(
    "before",
    [
        "SLURM_NODELIST=n[01-02]\nRunning on host: n01\n",
        "Running on host: n01\nSLURM_NODELIST=n[01-02]\n",
    ],
)
def test_a_job_of_several_nodes_is_one_measurement(
    before: str, values: Callable[..., Values]
) -> None:
    """The control: its first node is one of its nodes."""
    assert [*values("rmax", log=f"{before}{HPL}")] == ["n[01-02]"]


@pytest.mark.parametrize("hosts", [("n02", "n01"), ("n01", "n02", "n01", "n02")])
def test_hosts_of_the_processes_of_each_run_are_one_measurement(
    hosts: tuple[str, ...], values: Callable[..., Values]
) -> None:
    """The control: the processes print their hosts in any order, before each of two runs."""
    log = "".join(f"Hostname: {host}\n" for host in hosts) + HPL
    again = "".join(f"Hostname: {host}\n" for host in reversed(hosts)) + STREAM
    assert [*values("rmax", log=f"{log}{again}")] == ["n[01-02]"]


@pytest.mark.fault("nodes-in-one-log")
def test_pairs_in_turn_stay_pairs(values: Callable[..., Values]) -> None:
    first = f"Hostname: n01\nHostname: n02\n{HPL}"
    assert [*values("rmax", log=f"{first}Hostname: n03\nHostname: n04\n{HPL}")] == [
        "n[01-02]",
        "n[03-04]",
    ]


@pytest.mark.fault("nodes-in-one-log")
def test_the_list_of_a_job_does_not_hide_its_nodes(values: Callable[..., Values]) -> None:
    log = "".join(after_banner(number, node) for number, node in enumerate(NODES, 1))
    assert [*values("triad", log=f"SLURM_NODELIST=n[01-03]\n{log}")] == [*NODES]


@pytest.mark.parametrize("between", ["{stream}Running on host: {node}\n", "{list}{log}"])
def test_runs_that_nothing_tells_apart_are_left_over(
    between: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The node stands behind its run; or each line of a list names one node of the job."""
    monkeypatch.setenv("PROOFMARK_KIT", str(ROOT))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    listed = "".join(f"Hostname: {node}\n" for node in NODES)
    log = after_banner(0, "n01")
    parts = []
    for node in NODES:
        parts.append(between.format(stream=STREAM, node=node, list=listed, log=log))
        listed, log = "", after_banner(1, "n03" if node == "n02" else "n02")
    (tmp_path / "logs/log").write_text("".join(parts))
    (tmp_path / "logs/n04").write_text(STREAM)
    assert main(["adopt", "logs"]) == 0
    assert (
        "left over, adopt-nodes-mixed: outputs of n[01-03] in one file" in capsys.readouterr().out
    )


@pytest.mark.parametrize("tag", ["[1,0]<stdout>:", "[job,0]<stdout>: ", "0: ", "[0] "])
def test_a_launcher_that_tags_its_lines_hides_no_banner(
    tag: str, values: Callable[..., Values]
) -> None:
    lines = "".join(f"{tag}{line}\n" for line in after_banner(1, "n05").splitlines())
    assert [*values("triad", log=lines)] == ["n05"]


@pytest.mark.parametrize("kilobytes", [100, 3000])
def test_a_banner_behind_other_lines_is_found(
    kilobytes: int, values: Callable[..., Values]
) -> None:
    noise = "the compiler prints a line\n" * (kilobytes * 40)
    assert [*values("triad", log=f"{noise}{after_banner(1, 'n06')}")] == ["n06"]


def test_a_log_that_is_cut_between_nodes_is_left_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the begin that is looked at other nodes can follow."""
    monkeypatch.setattr(output_heads, "HEAD", HEAD // 64)
    monkeypatch.setattr("proofmark.packages.foreign.output_folder.HEAD", HEAD // 64)
    monkeypatch.setenv("PROOFMARK_KIT", str(ROOT))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    log = "".join(after_banner(number, f"n{number:02d}") for number in range(100))
    assert len(log) > HEAD // 64
    (tmp_path / "logs/log").write_text(log)
    assert main(["adopt", "logs"]) == 3
