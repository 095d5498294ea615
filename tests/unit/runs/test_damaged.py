"""A damaged file makes its own step or node INVALID; the rest of the run is judged."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import seal, written_verdict
from tests.fixtures.kit import Kit, end, execution, steps_of
from tests.unit.common.test_files import special
from tests.unit.records.test_records import HOST, write

from proofmark.cli.main import main
from proofmark.judge.verdict import Verdict
from proofmark.runs.attempts import attempts
from proofmark.runs.job_folder import (
    JobFolder,
    JobStatus,
    JobSubmission,
    State,
    last_state,
    stopped_jobs,
)
from proofmark.runs.nodes import nodes_of, probed_nodes
from proofmark.runs.run import Run

START, END = "2026-11-21T10:18:00Z", "2026-11-21T10:19:00Z"
PROBE = Path(__file__).parents[2] / "data" / "probe" / "live-kvm-zen3.txt"
KINDS = ("fifo", "folder", "socket", "device", "link", "sparse")
NODE = "localhost"
"""The name of the machine in the inventory. Its probes report `HOST`."""
RANK = {"rank": 0, "host": HOST, "cpus": "0-1"}


@contextmanager
def limited(seconds: int = 120) -> Iterator[None]:
    """Fail if the block does not end: a FIFO without a writer blocks for ever."""

    def expired(*_: object) -> None:
        pytest.fail(f"not ended within {seconds} s")

    previous = signal.signal(signal.SIGALRM, expired)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


@pytest.fixture
def run(kit: Kit) -> Run:
    """Give a finished run of two steps on one node, with its probes."""
    return finished(kit, 2)


def finished(kit: Kit, steps: int) -> Run:
    """Return a finished run of `steps` steps on one node, with its probes."""
    kit.case(sweep={"size": [*range(1, steps + 1)]})
    made = kit.run()
    for size, step in enumerate(steps_of(made), 1):
        write(step, stdout=f"size {size}\nrate 100\nEND\n")
    attempt = attempt_of(made)
    attempt.mkdir(parents=True)
    text = PROBE.read_text(encoding="utf-8").replace("hostname: vm", f"hostname: {HOST}")
    for name, time in (("before", START), ("after", END)):
        dated = re.sub(r"(?m)^\| date: .*", f"| date: {time}", text)
        (attempt / f"{HOST}.{name}").write_text(dated, encoding="utf-8")
    return made


def attempt_of(run: Run) -> Path:
    (job,) = (job for group in run.plan.groups for job in group.jobs)
    return run.files.job(job.id).folder / "attempt-1"


def folder_of(run: Run) -> JobFolder:
    (job,) = (job for group in run.plan.groups for job in group.jobs)
    return JobFolder(run, job)


def judged(run: Run) -> Verdict:
    """Run the commands that read the run; return its verdict."""
    with limited():
        for command in ("status", "stage execute"):
            assert main([*command.split(), str(run.folder)]) == 0
        assert main(["stage", "collect", str(run.folder)]) in (
            0,
            1,
        )  # 1: a node did not prove its state
        return written_verdict(run)


def reasons(verdict: Verdict) -> list[str]:
    """Return the reason of the INVALID figure of each step in order; empty if it is valid."""
    return [each.reason if each.verdict == "INVALID" else "" for each in verdict.results]


def test_a_whole_run_is_judged(run: Run) -> None:
    """Control: no fault is injected."""
    assert reasons(judged(run)) == ["", ""]


def damage(step: Path, name: str, content: str | bytes) -> None:
    path = execution(step) / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    seal(path.parent)


@pytest.mark.fault("file-special")
@pytest.mark.parametrize("name", ["stdout", "rc", "when.json", "binding.json"])
def test_what_is_no_regular_file_makes_its_step_invalid(kit: Kit, name: str) -> None:
    """Each step but the last has another kind of file."""
    run = finished(kit, len(KINDS) + 1)
    for step, kind in zip(steps_of(run), KINDS, strict=False):
        path = execution(step) / name
        path.unlink()
        special(path, kind)
    *damaged, last = reasons(judged(run))
    assert len(damaged) == len(KINDS)
    assert all(f"{name} is damaged: " in reason for reason in damaged), damaged
    assert last == ""


WHEN = {"start": START, "end": END, "seconds": 1.0, "host": HOST, "timed_out": False}
CONTENTS: list[tuple[str, str | bytes]] = [
    ("when.json", "[" * 200_000),
    ("when.json", json.dumps(WHEN | {"seconds": 0}).replace(": 0,", ": 1e999,")),
    ("when.json", json.dumps(WHEN | {"seconds": float("nan")})),
    ("when.json", json.dumps(WHEN | {"start": "yesterday"})),
    ("when.json", json.dumps(WHEN | {"host": "n[0-99999999]"})),
    ("when.json", json.dumps(WHEN | {"host": "@all"})),
    ("when.json", json.dumps(WHEN | {"host": "x\nproofmark: PASS"})),
    ("when.json", json.dumps(WHEN | {"busy_ticks": 1, "stolen_ticks": 1, "own_ticks": 10**400})),
    ("when.json", b"\0" * 100),
    ("binding.json", "[" * 200_000),
    ("binding.json", json.dumps([RANK | {"cpus": "0-999999999"}])),
    ("binding.json", json.dumps([RANK | {"host": "@all"}])),
    ("binding.json", json.dumps([RANK | {"host": "n[0-999999999]"}])),
    ("binding.json", json.dumps([RANK | {"host": "a;id"}])),
    ("binding.json", json.dumps([RANK]).replace(": 0", f": {'9' * 5000}")),
    ("binding.json", b"\xff\xfe"),
    ("rc", "9" * 5000),
    ("rc", b"\xff"),
]


@pytest.mark.fault("file-content-damaged")
def test_a_damaged_content_makes_its_step_invalid(kit: Kit) -> None:
    run = finished(kit, len(CONTENTS) + 1)
    for step, (name, content) in zip(steps_of(run), CONTENTS, strict=False):
        damage(step, name, content)
    *damaged, last = reasons(judged(run))
    for (name, _), reason in zip(CONTENTS, damaged, strict=True):
        assert reason.startswith(f"{name} is damaged: ")
        assert reason.isprintable()
    assert last == ""


@pytest.mark.fault("value-infinite")
def test_a_damaged_execution_belongs_to_no_attempt_of_a_job(run: Run) -> None:
    """Its times are not known: no probe proves the state of a node in them."""
    step = next(iter(run.plan.steps()))
    (node,) = probed_nodes(run).values()
    (whole,) = attempts(run.files.step(step.id).folder)
    assert node.jobs[0].covers(step.id, replace(whole, job_attempt=None, boot_id=None))
    damage(run.files.step(step.id).folder, "when.json", "{}")
    (damaged,) = attempts(run.files.step(step.id).folder)
    assert damaged.damage and not node.jobs[0].covers(step.id, damaged)
    assert (damaged.rc, damaged.timed_out) == (-1, False)


def test_a_value_that_is_no_finite_number_is_invalid(kit: Kit) -> None:
    values = ["1e999", "9" * 5000, "nan", "inf", "-1"]
    run = finished(kit, len(values) + 1)
    for size, (step, value) in enumerate(zip(steps_of(run), values, strict=False), 1):
        damage(step, "stdout", f"size {size}\nrate {value}\nEND\n")
    *damaged, last = reasons(judged(run))
    assert len(damaged) == len(values)
    assert all(damaged), damaged
    assert last == ""


def probe(run: Run, change: Callable[[bytes], bytes], name: str = "before") -> None:
    path = attempt_of(run) / f"{HOST}.{name}"
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.fault("probe-damaged")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("fifo", "before"), ("folder", "after"), ("sparse", "before"), ("rubbish", "after")),
        *(("rubbish", "before"), ("digits", "before"), ("digits", "after")),
    ],
)
def test_a_damaged_probe_makes_the_steps_of_its_node_invalid(
    run: Run, kind: str, name: str
) -> None:
    path = attempt_of(run) / f"{HOST}.{name}"
    if kind == "rubbish":
        path.write_text("rubbish\n=== end\n")
    elif kind == "digits":
        digits = b"| load/pid: " + b"9" * 5000
        probe(run, lambda text: text.replace(b"=== end", b"? " + digits + b"\n=== end"), name)
    else:
        path.unlink()
        special(path, kind)
    first, second = reasons(judged(run))
    assert f"attempt-1/{HOST}.{name} is damaged: " in first
    assert first == second


def test_a_byte_that_is_not_utf8_in_a_probe_is_replaced(run: Run) -> None:
    probe(run, lambda text: text.replace(b"=== os\n", b"=== os\n| caf\xe9\n"))
    assert reasons(judged(run)) == ["", ""]
    assert list(nodes_of(run)) == [NODE]


@pytest.mark.fault("node-file-damaged")
@pytest.mark.parametrize("change", [{"cores": -5}, {"sockets": 0}, {"memory_bytes": -1}, None])
def test_a_damaged_file_of_a_node_makes_its_steps_invalid(
    run: Run, change: dict[str, Any] | None
) -> None:
    made = probed_nodes(run)[NODE]
    run.files.nodes.mkdir()
    path = run.files.nodes / f"{NODE}.json"
    content = json.loads(made.model_dump_json())
    content["jobs"][0]["provenance"]["facts"] |= change or {}
    path.write_text(json.dumps(content) if change else "[" * 200_000)
    with limited():
        assert all(
            f"nodes/{NODE}.json is damaged: " in each for each in reasons(written_verdict(run))
        )


def test_a_file_of_another_node_proves_nothing(run: Run) -> None:
    made = probed_nodes(run)[NODE].model_copy(update={"host": "n9"})
    run.files.nodes.mkdir()
    (run.files.nodes / f"{NODE}.json").write_text(made.model_dump_json())
    ((host, node),) = nodes_of(run).items()
    assert (host, node.host, node.jobs) == (NODE, NODE, ())
    assert [each.problem for each in node.damaged] == [f"of another node than {NODE}"]


def test_an_execution_that_recorded_no_attempt_needs_a_probe(run: Run) -> None:
    for path in attempt_of(run).iterdir():
        path.unlink()
    (node,) = probed_nodes(run).values()
    assert (node.host, node.jobs, node.damaged[0].file[-7:]) == (NODE, (), ".before")


@pytest.mark.fault("history-damaged")
@pytest.mark.parametrize("middle", [b"", b"{\n", b"\xff\n", b"[" * 200_000 + b"\n", b"[]\n"])
def test_a_damaged_line_of_the_history_is_left_out(run: Run, middle: bytes) -> None:
    folder = folder_of(run)
    folder.not_run("none", "first")
    path = folder.ticket.with_name("history.jsonl")
    path.write_bytes(path.read_bytes() + middle + b'{"time": "2026')  # killed while it wrote
    folder.not_run("none", "second")
    assert [line["reason"] for line in folder.history()] == ["first", "second"]
    verdict = judged(run)
    assert reasons(verdict) == ["", ""]
    assert any("history.jsonl: damaged lines" in line for line in verdict.coverage.stopped)


def test_what_a_job_left_is_that_of_its_newest_attempt(run: Run) -> None:
    """An attempt before the submission says nothing about it."""
    folder, first = folder_of(run), attempt_of(run)
    second = first.with_name("attempt-2")
    second.mkdir()
    for attempt, code in ((first, "1"), (second, "7")):
        (attempt / "exit").write_text(code)
    submission = JobSubmission("none", "job", "", 1, "")
    assert folder.exit_code(submission) == 7
    later = replace(submission, attempts=2)
    assert folder.exit_code(later) is None and not folder.began(later)


def test_the_newest_nodes_that_a_job_lacks_are_named(run: Run) -> None:
    submission = JobSubmission("none", "job", "", 0, "")
    for nodes in ("n1: down", "n2: drained", ""):
        folder_of(run).append_event(submission, JobStatus(State.WAITING), without=nodes)
    (job,) = (each for each in stopped_jobs(run) if each.message.code == "job-without")
    assert (job.job, job.message.fields["nodes"]) == (
        folder_of(run).files.folder.name,
        "n2: drained",
    )


def test_the_last_state_of_a_job_is_its_newest(run: Run) -> None:
    """Each line has its own state and reason; a state without a reason is the state alone."""
    folder = folder_of(run)
    assert last_state(folder) == ""
    submission = folder.create("none", "p1")
    for state, why in (
        (State.WAITING, "Priority"),
        (State.RUNNING, ""),
        (State.CANCELLED, "by the operator"),
    ):
        folder.append_event(submission, JobStatus(state, why))
        assert last_state(folder) == (f"{state.value}: {why}" if why else state.value)
        newest = folder.history()[-1]
        assert newest.pop("time")
        wanted = {"scheduler": "none", "job": "p1", "state": state.name, "reason": why}
        assert newest == {**wanted, "without": "", "by_kit": ""}


@pytest.mark.fault("ticket-damaged")
@pytest.mark.parametrize("content", ["{", "[]", '{"id": 1}', "[" * 200_000])
def test_a_damaged_ticket_stops_its_own_job(run: Run, kit: Kit, content: str) -> None:
    folder = folder_of(run)
    submission = folder.create("none", "p1")
    folder.append_event(submission, JobStatus(State.WAITING))
    folder.ticket.write_text(content)
    shutil.rmtree(execution(steps_of(run)[0]))
    assert main(["stage", "execute", str(run.folder)]) == 0
    assert "ticket.json: found damaged" in folder.history()[-1]["reason"]
    assert end(steps_of(run)[0]) is None


def test_a_whole_ticket_is_read(run: Run) -> None:
    """Control: no fault is injected."""
    folder = folder_of(run)
    submission = folder.create("none", "p1")
    assert folder.submission() == submission
