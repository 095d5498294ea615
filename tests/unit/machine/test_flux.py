"""The back end of Flux, with the messages of flux-core 0.88; `test_real_flux.py` has a real one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote

import pytest
from tests.fixtures.kit import make_kit

from proofmark.jobs.step_script import launcher_of_step
from proofmark.machine.outcome import NodeError
from proofmark.machine.preflight import _version
from proofmark.machine.scheduler import QueueLimits, SchedulerError, SchedulerUnavailable, scheduler
from proofmark.machine.schedulers.flux import Flux
from proofmark.packages.survey.answers import ListedNode
from proofmark.packages.survey.listings import FluxNodes
from proofmark.runs.job_folder import State
from proofmark.site.execution import LaunchSettings

Answer = Callable[..., None]
flux = scheduler("flux")
STARTING = (
    "flux-batch: ERROR: [Errno 38] No service matching job-ingest.submit is registered",
    "flux-batch: ERROR: [Errno 38] Function not implemented",
    "flux-batch: ERROR: Unable to connect to Flux: ENOENT: No such file or directory",
    "flux-jobs: ERROR: [Errno 104] Connection reset by peer",
)
UNKNOWN = "flux-cancel: ERROR: ƒ23: unknown job id"
ENDED = "flux-cancel: ERROR: ƒ23: job is inactive"


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Return a function that sets what a command prints that begins with its first argument."""
    cases: list[str] = []

    def answer(words: str, printed: str = "", error: str = "") -> None:
        ends = (
            f"printf '%s\\n' {quote(printed)}" if not error else f"echo {quote(error)} >&2; exit 1"
        )
        cases.append(f'case "$*" in {quote(words)}*) {ends}; exit ;; esac')
        script = tmp_path / "flux"
        script.write_text("\n".join(["#!/bin/sh", *cases, 'echo "what: $*" >&2', "exit 2", ""]))
        script.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return answer


@pytest.mark.parametrize("message", STARTING)
def test_an_instance_that_starts_or_stops_is_asked_again(
    answers: Answer, tmp_path: Path, message: str
) -> None:
    answers("batch", error=message)
    answers("jobs", error=message)
    with pytest.raises(SchedulerUnavailable):
        flux.submit(tmp_path / "job.sh", None)  # type: ignore[arg-type]
    with pytest.raises(SchedulerUnavailable):
        flux.states(["f23"])


@pytest.mark.parametrize(
    ("message", "listed", "refused"),
    [
        (ENDED, "f23|CD|16|||", False),
        (UNKNOWN, "", False),
        ("flux-cancel: ERROR: ƒ23: guests can only cancel their own jobs", "f23|R|16|||", True),
        ("flux-cancel: ERROR: ƒ23: guests can only cancel their own jobs", "f9|R|16|||", True),
    ],
)
def test_only_a_job_that_still_runs_cannot_be_cancelled(
    answers: Answer, message: str, listed: str, refused: bool
) -> None:
    answers("cancel f23", error=message)
    answers("cancel f24")
    if listed:
        answers("jobs", listed)
    else:
        answers("jobs", error="JobID f23 unknown")
    if refused:
        with pytest.raises(SchedulerError, match="guests can only"):
            flux.cancel(["f23", "f24"])
    else:
        flux.cancel(["f23", "f24"])


def test_a_stopped_queue_and_the_words_of_a_person_are_named(answers: Answer) -> None:
    answers("queue status", "batch: Scheduling is stopped: a | fan\ndebug: Scheduling is started")
    answers(
        "jobs",
        "f1|S|16|batch||\nf2|S|16|debug||\nf3|S|0|batch||\nf4|R|16|batch||\n"
        "f5|CA|16|debug|cancel|maintenance | at noon",
    )
    states = flux.states(["f1", "f2", "f3", "f4", "f5"])
    assert {job: (status.state, status.reason) for job, status in states.items()} == {
        "f1": (State.UNAVAILABLE, "S batch: Scheduling is stopped: a | fan"),
        "f2": (State.WAITING, "S"),
        "f3": (State.HELD, "S"),
        "f4": (State.RUNNING, "R"),
        "f5": (State.CANCELLED, "CA cancel maintenance | at noon"),
    }


def test_queues_have_their_limits() -> None:
    printed = "batch*|enabled|started|3600.0|4\ndebug|disabled|stopped|inf|inf\n"
    assert Flux().queue_limits(lambda *_: printed) == {
        "batch": QueueLimits(
            default=True, max_walltime_s=3600, max_nodes=4, source="flux queue list"
        ),
        "debug": QueueLimits(closed="disabled, stopped", source="flux queue list"),
    }
    (only,) = Flux().queue_limits(lambda *_: "|enabled|started|inf|inf\n").items()
    assert only == ("", QueueLimits(default=True, source="flux queue list"))


@pytest.mark.parametrize("reasons", ["n2|bad | DIMM\nn[3-4]|", ""])
def test_a_drained_node_has_its_reason(answers: Answer, reasons: str) -> None:
    answers("resource list", "free|n1\nallocated|\ndown|n[2-3]")
    if reasons:
        answers("resource drain", reasons)
    words = ["down drained bad | DIMM", "down drained"] if reasons else ["down", "down"]
    assert flux.nodes(["n1", "n2", "n3"]) == {"n1": "idle", "n2": words[0], "n3": words[1]}


@pytest.mark.parametrize(
    ("printed", "outcome"),
    [
        ("commands:    0.88.0\nlibflux-core: 0.88.0", ""),
        ("commands:    0.61.0", ""),
        ("commands:    1.0.0", ""),
        ("commands:    \t\t0.61.0-rc1\nlibflux-core:\t\t0.61.0-rc1", ""),
        ("commands:    \t\t0.61.2-35-gabc1234", ""),
        ("commands:    \t\tv0.101.0", ""),
        ("commands:    0.60.0", "TOO_OLD"),
        ("commands:    0.60.0-61-g0abc\nbuild-options:\t+hwloc.api==2.8.0", "TOO_OLD"),
        ("commands:    abc1234\nbuild-options:\t+hwloc.api==2.8.0+zmq==4.3.4", "NO_ANSWER"),
        ("FLUX_URI:  ssh://10.77.0.1/run/1.2\nbroker: 0.88.0", "NO_ANSWER"),
        ("nothing", "NO_ANSWER"),
    ],
)
def test_preflight_needs_a_version(
    answers: Answer, tmp_path: Path, printed: str, outcome: str
) -> None:
    answers("--version", printed)
    found = _version(make_kit(tmp_path / "kit").site(scheduler="flux"))
    assert [each.outcome for each in found] == ([outcome] if outcome else [])
    assert all(each.outcome not in ("OK", "NOT_NEEDED") for each in found)


R = (
    '{"version": 1, "execution": {"R_lite": [{"rank": "0,2", "children": {"core": "0-3"}},'
    ' {"rank": "1", "children": {"core": "0-1", "gpu": "0"}}], "nodelist": ["b1,a[1-2]"]}}'
)


def test_init_lists_the_nodes() -> None:
    def ask(*words: str) -> str:
        return R if "R" in words else "batch,debug|b1,a1\n|a2\n"

    assert FluxNodes().nodes(ask) == [
        ListedNode("b1", ("cores=4",), groups=("batch", "debug")),
        ListedNode("a1", ("cores=2", "gpus=1"), groups=("batch", "debug")),
        ListedNode("a2", ("cores=4",)),
    ]
    alike = [("b1", ("cores=4",)), ("a2", ("cores=2", "gpus=1")), ("a1", ("cores=4",))]
    turned = FluxNodes().nodes(lambda *words: ask(*words).replace("a[1-2]", "a[2,1]"))
    assert [(node.name, node.kind) for node in turned] == alike
    for damaged in ("", "{}", "[]", R.replace("b1,a[1-2]", "a1"), R.replace('"0,2"', '"x"')):
        with pytest.raises(NodeError):
            FluxNodes().nodes(lambda *_, text=damaged: text)


@pytest.mark.parametrize(
    ("of_mpi", "of_site", "chosen"),
    [("hydra", "", "flux"), ("openmpi", "", "openmpi"), ("hydra", "pals", "pals")],
)
def test_flux_run_starts_the_ranks_of_an_mpi_that_speaks_its_protocol(
    tmp_path: Path, of_mpi: str, of_site: str, chosen: str
) -> None:
    kit = make_kit(tmp_path)
    kit.case(launch="mpi", sweep={"size": 1, "ranks": 2})
    kit.program("echo")
    (step,) = kit.plan().steps()
    (package,) = kit.software(launcher=of_mpi).packages.values()
    settings = LaunchSettings(launcher=of_site)
    assert launcher_of_step(step, package, settings, flux.replaced_launchers) == chosen
