"""The back end of Flux with a real flux-core, which `tests/emulators/flux-core.sh` builds."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.kit import Kit, end, execution, left_behind, make_kit, steps_of, until

from proofmark.jobs.execute import execute
from proofmark.jobs.job_request import BatchQueue
from proofmark.jobs.scripts import write_job
from proofmark.machine.scheduler import QueueLimits, SchedulerError, SchedulerUnavailable, scheduler
from proofmark.machine.schedulers.flux import Flux
from proofmark.packages.survey.listings import FluxNodes
from proofmark.runs.job_folder import State
from proofmark.runs.run import Run
from proofmark.site.execution import Queue

FLUX = shutil.which("flux")
HERE = os.uname().nodename
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(FLUX is None, reason="no flux-core is installed"),
]
flux = scheduler("flux")
SLOW = 'echo "size $1"; [ "$1" != 2 ] || [ -e "$GO" ] || sleep 100; echo "rate 100"; echo END'


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """Start an instance of one broker; the commands of the kit reach it."""
    told = tmp_path / "uri"
    script = f"echo $FLUX_URI >{told}.new && mv {told}.new {told}; sleep 600"
    command = ["flux", "start", "--test-size=1", "sh", "-c", script]
    with subprocess.Popen(command, start_new_session=True) as process:
        until(told.exists, 60)
        monkeypatch.setenv("FLUX_URI", told.read_text().strip())
        yield process
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    made = make_kit(tmp_path / "kit")
    made.case(sweep={"size": [1, 2]}, environment={"GO": f"{tmp_path}/go"})
    made.program(SLOW)
    return made


def submitted(kit: Kit, seconds: int = 0) -> tuple[Run, str, Path]:
    """Submit the only job of a run with a time limit; return it, its id and its folder."""
    run = kit.run(site=kit.site(hosts=(HERE,)))
    ((job,),) = (group.jobs for group in run.plan.groups)
    request = write_job(run.folder, job, BatchQueue("flux", Queue()))
    script = run.folder / "workdir/jobs" / job.id / "job.sh"
    if seconds:
        text = script.read_text()
        script.write_text(text.replace(f"={request.seconds}s", f"={seconds}s"))
    return run, flux.submit(script, request), script.parent


def ends_as(job: str, state: State) -> None:
    until(lambda: (status := flux.ended(job)) is not None and status.state is state, 120)


@pytest.mark.usefixtures("instance")
def test_a_run_ends(kit: Kit, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    site = kit.site(hosts=(HERE,))
    run = kit.run(site=site)
    messages: list[str] = []
    execute(run, "flux", messages.append)
    assert [end(step) for step in steps_of(run)] == ["0", "0"], messages


@pytest.mark.usefixtures("instance")
@pytest.mark.parametrize("how", ["time-limit", "cancel"])
def test_a_job_that_is_stopped_leaves_its_proofs_and_no_process(kit: Kit, how: str) -> None:
    run, job, folder = submitted(kit, 20 if how == "time-limit" else 0)
    second = steps_of(run)[1]
    out = second / "unfinished-1/stdout"
    until(lambda: out.exists() and out.read_text() != "")
    if how == "cancel":
        flux.cancel([job])
    ends_as(job, State.CANCELLED if how == "cancel" else State.TIME_LIMIT)
    until((folder / "attempt-1/exit").exists, 60)
    assert (folder / "attempt-1/exit").read_text() == "143\n"
    assert (folder / f"attempt-1/{HERE}.after").exists()
    assert execution(steps_of(run)[0]).exists()
    for variable in ("PROOFMARK_STEP", "PROOFMARK_HELPER"):
        assert left_behind(f"{variable}={run.folder}/", 30) == []


@pytest.mark.usefixtures("instance")
def test_a_job_that_ended_or_is_unknown_can_be_cancelled(kit: Kit, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    _, job, _ = submitted(kit)
    ends_as(job, State.ENDED_UNKNOWN)
    flux.cancel([job, "f123"])
    with pytest.raises(SchedulerError):
        flux.submit(tmp_path / "none.sh", None)  # type: ignore[arg-type]


@pytest.mark.usefixtures("instance")
def test_a_stopped_queue_and_the_words_of_a_cancel_are_named(kit: Kit) -> None:
    subprocess.run(["flux", "queue", "stop"], check=True)
    _, job, _ = submitted(kit)
    until(lambda: flux.states([job])[job].state is State.UNAVAILABLE)
    assert flux.states([job])[job].reason == "S Scheduling is stopped"
    subprocess.run(["flux", "cancel", "-m", "maintenance at noon", job], check=True)
    ends_as(job, State.CANCELLED)
    assert flux.states([job])[job].reason == "CA cancel maintenance at noon"


@pytest.mark.usefixtures("instance")
def test_nodes_and_reasons() -> None:
    assert flux.unfit() == ""
    assert flux.nodes([HERE, "other"]) == {HERE: "idle"}

    def ask(*command: str) -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    (node,) = FluxNodes().nodes(ask)
    assert (node.name, node.groups) == (HERE, ())
    assert Flux().queue_limits(ask) == {"": QueueLimits(default=True, source="flux queue list")}
    assert len(node.kind) >= 1 and node.kind[0].startswith("cores=")
    ask("flux", "resource", "drain", "0", "a | DIMM; see 12")
    assert flux.nodes([HERE]) == {HERE: "down drained a | DIMM; see 12"}


def test_an_instance_that_starts_or_stops_is_asked_again(
    instance: subprocess.Popen[bytes], kit: Kit
) -> None:
    subprocess.run(["flux", "module", "remove", "job-ingest"], check=True)
    with pytest.raises(SchedulerUnavailable, match="job-ingest"):
        submitted(kit)
    os.killpg(instance.pid, signal.SIGKILL)
    time.sleep(1)
    with pytest.raises(SchedulerUnavailable):
        flux.states(["f1"])
