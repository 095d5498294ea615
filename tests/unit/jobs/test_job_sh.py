"""The script of a job: a loop over steps that a signal stops and that can be continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.fixtures.kit import Kit, ends, execution, make_kit, snapshot, steps_of, until
from tests.processes import running

from proofmark.judge.judging import judge_run
from proofmark.machine.scheduler_commands import one_by_one
from proofmark.machine.schedulers.none import NoScheduler
from proofmark.runs.nodes import probed_nodes
from proofmark.runs.run import Run
from proofmark.runs.run_files import write_scripts_of

SLOW = 'echo "size $1"; [ "$1" != 2 ] || [ -e "$GO" ] || sleep 100; echo "rate 100"; echo END'
"""The program of three steps; the step of size 2 waits for the file $GO."""

STOP_SIGNALS = [
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP),
    signal.SIGALRM,  # Flux at a time limit
    signal.SIGUSR1,  # Grid Engine with a soft limit: queue_conf(5), s_rt
    signal.SIGUSR2,  # LSF at a time limit, ten minutes before it kills: Command Reference, bsub -W
    signal.SIGXCPU,  # Grid Engine with a soft limit: queue_conf(5), s_cpu and s_vmem
]
"""What schedulers send to the processes of a job before they kill them."""


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    made = make_kit(tmp_path)
    made.case(sweep={"size": [1, 2, 3]}, environment={"GO": str(tmp_path / "go")})
    made.program(SLOW)
    return made


def job(run: Run) -> Path:
    """Return the folder of the run's only job."""
    (folder,) = (run.folder / "workdir/jobs").glob("*-*")
    return folder


def start(run: Run, shell: str = "dash") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [shell, str(job(run) / "job.sh")], stderr=subprocess.PIPE, text=True, cwd="/"
    )


def let_probes_end(run: Run) -> None:
    """Give the probe of a job that was told to end the time of a loaded machine."""
    script = job(run) / "job.sh"
    text = script.read_text(encoding="utf-8")
    for bound, longer in (("\tbounded 20 ", "\tbounded 250 "), (" sleep 10 &", " sleep 250 &")):
        assert text.count(bound) == 1
        text = text.replace(bound, longer)
    script.write_text(text, encoding="utf-8")


def finish(run: Run) -> tuple[int, str]:
    with running(start(run)) as process:
        _, messages = process.communicate(timeout=600)
    return process.returncode, messages


def test_all_steps_run_in_order(kit: Kit) -> None:
    (kit.folder / "go").touch()
    run = kit.run()
    assert finish(run) == (0, "")
    assert ends(run) == ["0", "0", "0"]
    starts = [
        json.loads((execution(step) / "when.json").read_text())["start"] for step in steps_of(run)
    ]
    assert starts == sorted(starts)
    host = os.uname().nodename
    notes = {path.name for path in (job(run) / "attempt-1").iterdir()}
    assert notes == {f"{host}.before", f"{host}.after", "finished", "exit"}
    assert (job(run) / "attempt-1" / "exit").read_text() == "0\n"


def test_a_step_records_its_attempt_and_boot(kit: Kit) -> None:
    """A step that is started by hand has no attempt."""
    run = kit.run()
    with running(start(run)) as process:
        until(lambda: (steps_of(run)[1] / "unfinished-1" / "started").exists())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=600)
    (kit.folder / "go").touch()
    assert finish(run) == (0, "")
    first, _, last = steps_of(run)
    subprocess.run(["dash", str(first / "run.sh")], check=True, timeout=600)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    recorded = [
        json.loads((folder / "when.json").read_text())
        for folder in (execution(first), execution(last), execution(first, 2))
    ]
    assert [each["boot"] for each in recorded] == [boot] * 3
    name = job(run).name
    assert [each["attempt"] for each in recorded] == [f"{name}/attempt-1", f"{name}/attempt-2", ""]


def test_a_step_that_fails_does_not_stop_the_job(kit: Kit) -> None:
    kit.program('[ "$1" != 2 ]')
    run = kit.run()
    assert finish(run) == (0, "")
    assert ends(run) == ["0", "1", "0"]


def test_finished_steps_are_not_run_again(kit: Kit) -> None:
    (kit.folder / "go").touch()
    run = kit.run()
    assert finish(run)[0] == 0
    before = snapshot(run.folder / "workdir/steps")
    assert finish(run)[0] == 0
    assert snapshot(run.folder / "workdir/steps") == before
    assert (job(run) / "attempt-2" / "finished").exists()


@pytest.mark.parametrize(
    ("number", "shell"),
    [*((number, "dash") for number in STOP_SIGNALS), (signal.SIGTERM, "busybox")],
)
def test_a_signal_stops_the_job_and_the_next_start_continues(
    kit: Kit, number: signal.Signals, shell: str
) -> None:
    run = kit.run()
    shells = {"busybox": kit.folder / "sh", "dash": Path("/usr/bin/dash")}
    shells["busybox"].symlink_to("/usr/bin/busybox")
    second = steps_of(run)[1]
    let_probes_end(run)
    with running(start(run, str(shells[shell]))) as process:
        out = second / "unfinished-1" / "stdout"
        until(lambda: out.exists() and out.read_text() != "")
        first = snapshot(steps_of(run)[0])
        process.send_signal(number)
        assert process.wait(300) == 143
    assert ends(run) == ["0", None, None]
    assert list(steps_of(run)[2].glob("*/started")) == []
    assert not (job(run) / "attempt-1" / "finished").exists()
    assert (job(run) / "attempt-1" / f"{os.uname().nodename}.after").exists()
    (kit.folder / "go").touch()
    assert finish(run)[0] == 0
    assert ends(run) == ["0", "0", "0"]
    assert snapshot(steps_of(run)[0]) == first
    assert (second / "unfinished-1" / "stdout").read_text() == "size 2\n"


@pytest.mark.fault("job-cancelled")
def test_a_job_that_is_killed_at_once_keeps_the_figures_of_its_finished_steps(kit: Kit) -> None:
    """No scheduler warns it. Until a probe follows, nothing accepts the node; the next one does."""
    run = kit.run()
    second = steps_of(run)[1]
    command = ["dash", f"{job(run) / 'job.sh'}"]
    with running(subprocess.Popen(command, start_new_session=True)) as process:
        out = second / "unfinished-1" / "stdout"
        until(lambda: out.exists() and out.read_text() != "")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)
    assert {path.suffix for path in (job(run) / "attempt-1").iterdir()} == {".before"}
    verdict = judge_run(run)
    assert [each.code for each in verdict.conditions.open_stages] == ["NOT_PROBED"]
    assert verdict.counts["INVALID"] == 0 < verdict.counts["UNJUDGED"]
    (kit.folder / "go").touch()
    assert finish(run)[0] == 0
    assert judge_run(run).conditions.open_stages == ()
    assert ends(run) == ["0", "0", "0"]


OTHER_NODE = """unshare --uts sh -c '
hostname "$1"
case $2 in *--probe*) [ ! -e {folder}/dead ] || exit 1 ;; esac
eval "exec $2"' sh "$node" """
"""Runs a script under the name of a node. With the file `dead` it starts no probe."""


@pytest.mark.root
@pytest.mark.parametrize("dead", [False, True], ids=["starts", "starts-nothing"])
@pytest.mark.fault("job-cancelled")
def test_a_stop_leaves_the_finished_steps_of_all_nodes_proven(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, dead: bool
) -> None:
    """Some schedulers start no process on a node any more after they were told to end the job."""
    here = os.uname().nodename
    nodes = (here, "node2")
    monkeypatch.setattr(NoScheduler, "header", lambda _, request: [])
    line = OTHER_NODE.format(folder=kit.folder)
    monkeypatch.setattr(NoScheduler, "fan_out", lambda _, request: one_by_one(nodes, line))
    kit.case(
        suites={"quick": {"scope": "each-node", "sweep": {"size": [1, 2]}}},
        environment={"GO": str(kit.folder / "go")},
    )
    run = kit.run(site=kit.site(hosts=nodes))
    let_probes_end(run)
    first, second = (step.name for step in steps_of(run))
    steps = run.folder / "workdir/steps"
    with running(start(run)) as process:
        outputs = [steps / second / node / "unfinished-1/stdout" for node in nodes]
        until(lambda: all(path.exists() and path.read_text() for path in outputs))
        if dead:
            (kit.folder / "dead").touch()
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 143
    assert {path.name for path in (job(run) / "attempt-1").glob("*.after")} == {
        f"{node}.after" for node in nodes
    }
    assert [execution(steps / first / node).exists() for node in nodes] == [True, True]
    assert {host: node.damaged for host, node in probed_nodes(run).items()} == {
        here: (),
        "node2": (),
    }


@pytest.mark.parametrize("apart_ms", [16, pytest.param(0.5, marks=pytest.mark.soak)])
def test_a_signal_at_any_moment_leaves_a_job_that_can_continue(kit: Kit, apart_ms: float) -> None:
    (kit.folder / "go").touch()
    run = kit.run()
    for number in range(round(160 / apart_ms)):
        with running(start(run)) as process:
            time.sleep(number * apart_ms / 1000)
            process.terminate()
            _, messages = process.communicate(timeout=300)
            assert process.returncode in (143, -signal.SIGTERM, 0), messages
    assert finish(run)[0] == 0
    assert ends(run) == ["0", "0", "0"]


def test_a_step_without_a_result_stops_the_job_and_is_named(kit: Kit) -> None:
    run = kit.run()
    broken = steps_of(run)[1]
    (broken / "run.sh").write_text("exit 0\n")
    code, messages = finish(run)
    assert code == 74
    assert messages.endswith(f"step {broken.name} left no result; stopping\n")
    assert ends(run) == ["0", None, None]


def test_a_node_that_cannot_be_probed_is_not_measured(kit: Kit) -> None:
    run = kit.run()
    write_scripts_of(run.folder, {"probe.sh": "exit 1\n"})
    assert finish(run)[0] == 74
    assert ends(run) == [None, None, None]


@pytest.mark.parametrize("shell", ["dash", "busybox"])
@pytest.mark.parametrize(
    ("ended", "other", "probes"), [(False, True, 1), (True, True, 0), (False, False, 0)]
)
def test_a_process_that_stays_probes_its_node_when_the_job_is_stopped(
    kit: Kit, shell: str, ended: bool, other: bool, probes: int
) -> None:
    """Not after the end of the job, and not on the node whose job script probes it."""
    run = kit.run()
    (kit.folder / "sh").symlink_to("/usr/bin/busybox")
    notes, begun = job(run) / "attempt-1", kit.folder / "begun"
    notes.mkdir()
    if ended:
        (notes / "finished").touch()
    # A second signal comes while the node is probed.
    probe = run.folder / "workdir/probe.sh"
    probe.write_text(f": >{begun}\nsleep 1\n{probe.read_text()}")
    first = "another" if other else os.uname().nodename
    program = {"busybox": f"{kit.folder / 'sh'}", "dash": "dash"}[shell]
    command = [program, str(job(run) / "job.sh"), "--stay", str(notes), first]
    with running(subprocess.Popen(command)) as process:
        if other:
            until(lambda: "sleep" in children(process.pid))
            process.send_signal(signal.SIGTERM)
        if probes:
            until(begun.exists)
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert len(list(notes.glob("*.after"))) == len(list(notes.glob("*.after*"))) == probes


def children(process: int) -> str:
    """Return the command lines of the processes that `process` has started."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return " ".join(Path(f"/proc/{child}/cmdline").read_text() for child in found)
