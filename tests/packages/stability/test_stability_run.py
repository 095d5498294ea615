"""A stability run of an hour by a scaled clock, with planted failures of each cause."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from tests.fixtures.kit import SYMBOLS, Kit, make_kit, probe_script, topology
from tests.folders import ROOT

from proofmark.common.errors import Stopped
from proofmark.jobs import scripts
from proofmark.jobs.job_request import BatchQueue
from proofmark.jobs.scripts import Execution, Manner, Scripts, write_scripts
from proofmark.jobs.step_script import LaunchSite
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.machine.scheduler import IDLE, NodeState, NodeUse, Request, SchedulerError
from proofmark.machine.schedulers.none import NoScheduler
from proofmark.packages.stability.job_runs import job_runs
from proofmark.packages.stability.stability_counts import StabilityPage
from proofmark.packages.stability.stability_jobs import StabilityJobs
from proofmark.packages.stability.stability_plan import stability_plan
from proofmark.packages.stability.tally import JobTally
from proofmark.packages.stability.terms import StabilityTerms
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan
from proofmark.report.run_data import gather
from proofmark.report.sections import issues
from proofmark.runs import job_folder
from proofmark.runs.job_folder import JobStatus, State
from proofmark.runs.run import Run, open_run
from proofmark.site.contract_document import Contract
from proofmark.site.execution import LaunchSettings
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine

pytestmark = pytest.mark.root  # each job has the host name of its node

HOSTS = [f"n{number}" for number in range(1, 5)]
STEP_S = 120.0
"""The clock goes on by this time with each job: the hour of the run has 30 of them."""
PLANTED = {
    **{3: "program", 7: "program", 4: "file-system", 8: "file-system"},
    **{5: "fabric", 9: "fabric", 6: "node", 12: "node", 10: "scheduler", 11: "scheduler"},
    **{13: "unknown", 14: "unknown"},
}
"""The cause of each planted failure, by the number of the job."""
PROGRAM = """
n=${PWD#*/steps/}; n=${n%%-*}
case $n in
00003) exit 139;;
00007) echo "a.c:7: main: Assertion 'n > 0' failed." >&2; exit 134;;
00004) echo "write: Input/output error" >&2; exit 1;;
00008) echo "open: Stale file handle" >&2; exit 1;;
00005) echo "Transport retry count exceeded on mlx5_0:1/IB" >&2; exit 1;;
00009) echo "recv: Connection reset by peer" >&2; exit 1;;
esac
echo "size $1"; echo "rate 100"; echo END
"""
ENDS = {6: State.NODE_FAILED, 12: State.NODE_FAILED, 10: State.PREEMPTED, 13: State.TIME_LIMIT}
ENDS[14] = State.KILLED


class Cluster:
    """Four nodes with a scheduler whose clock is scaled, and which ends planted jobs."""

    def __init__(self, kit: Kit, patch: pytest.MonkeyPatch) -> None:
        self.kit, self.lines, self.names = kit, list[str](), dict[str, int]()
        self.now, self.submitted, self.down = time.time() - 10_000, 0, dict[str, NodeState]()
        self.stop_at, self.planted, self.ends = 0, PLANTED, ENDS
        submit, states = NoScheduler.submit, NoScheduler.states
        # Jobs of earlier rounds read probe.sh while the next round writes it again.
        probe = kit.folder / "fast-probe.sh"
        probe.write_text(probe_script())
        patch.setattr(scripts, "PROBE", probe)
        patch.setattr(job_folder, "_now", self._clock)
        patch.setattr("proofmark.packages.stability.stability_jobs.time.time", lambda: self.now)
        patch.setattr(NoScheduler, "header", lambda _, request: [])
        patch.setattr(NoScheduler, "fan_out", lambda _, request: ['on_all() { exec sh "$@"; }'])
        patch.setattr(NoScheduler, "nodes", lambda _, names: self._nodes(names))

        def on_node(scheduler: NoScheduler, script: Path, request: Request) -> str:
            number = int(request.log.parent.name.rpartition("-")[2])
            self.submitted, self.now = self.submitted + 1, self.now + STEP_S
            if number == 11 and self.planted:
                raise SchedulerError("Invalid account")
            if self.submitted == self.stop_at:
                os.kill(os.getpid(), signal.SIGTERM)
            named = script.with_name("on-node.sh")
            inside = f"hostname {request.nodes[0]}; sh {script}"
            if self.planted and number in ENDS:
                # A script that notes its end was not ended by a scheduler.
                inside += f"; find {script.parent} -name exit -delete"
            named.write_text(f"exec unshare --uts sh -c {quote(inside)}\n")
            job = submit(scheduler, named, request)
            self.names[job] = number
            if self.planted.get(number) == "node":
                self.down = {request.nodes[-1]: NodeState(NodeUse.DOWN, "not responding")}
            return job

        def ended(scheduler: NoScheduler, ids: Sequence[str]) -> Mapping[str, JobStatus]:
            found = states(scheduler, ids)
            return {job: self._status(self.names[job], each) for job, each in found.items()}

        patch.setattr(NoScheduler, "submit", on_node)
        patch.setattr(NoScheduler, "states", ended)

    def _clock(self) -> str:
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _nodes(self, names: Sequence[str]) -> Mapping[str, NodeState]:
        states = {name: self.down.get(name, IDLE) for name in names}
        if len(names) == len(HOSTS) and self.submitted > 14:
            self.down = {}
        return states

    def _status(self, number: int, status: JobStatus) -> JobStatus:
        if status.state.final and self.planted and number in ENDS:
            return JobStatus(ENDS[number], "planted")
        return status

    def site(self, **contract: Any) -> Site:
        site = self.kit.site(hosts=HOSTS)
        document = Contract.model_validate({"title": "T", "parties": {"buyer": "B"}, **contract})
        own = {"partition_hosts": HOSTS, "aliases": {}, "contract": document}
        return site.model_copy(update=own)

    def plan(self, site: Site, terms: StabilityTerms) -> Plan:
        machine = Machine({**SYMBOLS, "cores": 2, "nodes": len(HOSTS)}, topology(2))
        normal = make_plan(self.kit.benchmarks(), "stability", site, machine)
        return stability_plan(normal, HOSTS, terms)

    def call(self, site: Site, terms: StabilityTerms) -> Run:
        run = self.kit.run(site=site, plan=self.plan(site, terms))

        def prepare(part: Run) -> None:
            programs = LaunchSite(self.kit.software(), LaunchSettings(launcher="plain"), aliases={})
            scratch = Path(site.partition.scratch.path)
            write_scripts(part.folder, part.plan, Scripts(programs, scratch, BatchQueue("none")))

        asked = Execution(run, "none", self.lines.append, prepare, Manner.UNFINISHED)
        StabilityJobs().execute(asked)
        return open_run(run.folder)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    kit = make_kit(tmp_path)
    kit.program(PROGRAM)
    kit.suites(stability={"title": "Stability"})
    use = {"sweep": {"size": 1, "nodes": [1, 2]}}
    kit.case(suites={"stability": use}, cost={"seconds": 150})
    shutil.copyfile(ROOT / "benchmarks/stability.yml", kit.cases / "stability.yml")
    return Cluster(kit, monkeypatch)


def item(number: str, metric: str, **limit: Any) -> dict[str, Any]:
    unit = {"jobs_finished": "%", "mtbi": "h", "nodes_lost": "nodes"}.get(metric, "jobs")
    text = {"number": number, "text": f"item {number}", "phase": "stability", "unit": unit}
    return {**text, "case": "stability", "metric": metric, **limit}


SEEN = [
    item("7.5", "availability", value=99, unit="%", at_least=1),
    item("7.6", "mtbi", value=0.499, at_least=1),
    item("7.7", "hours", value=0.5, unit="h", at_least=1),
    item("7.8", "jobs_finished", value=95, at_least=1),
]
ITEMS = [
    item("7.1", "jobs_finished", value=95, at_least=1),
    item("7.2", "nodes_lost", value=2, at_most=1),
    item("7.3", "mtbi", value=0.05, at_least=1),
    item("7.4", "jobs_failed", value=1, at_most=1, where={"cause": "fabric"}),
]


def counted(verdict: Verdict) -> JobTally:
    assert isinstance(verdict.of_kind, JobTally)
    return verdict.of_kind


def page_of(run: Run, verdict: Verdict) -> str:
    added = StabilityPage().of_run(run, verdict)
    assert added is not None
    return repr([each.section for each in added.sections()])


def outcomes(verdict: Verdict) -> dict[str, str]:
    return {each.item.number: each.outcome for each in verdict.contract if each.item}


@pytest.mark.fault("stability-causes")
def test_twelve_planted_failures_and_an_interruption(cluster: Cluster) -> None:
    site, terms = cluster.site(items=ITEMS), StabilityTerms(days=1 / 24, load=1)
    cluster.stop_at = 17
    with pytest.raises(Stopped):
        cluster.call(site, terms)
    (folder,) = (cluster.kit.folder / "runs").glob("*Z-*")
    verdict = judge_run(open_run(folder))
    assert (counted(verdict).over, verdict.exit_code()) == (False, 2), "it is not over"
    assert not len(verdict.results)

    run = cluster.call(site, terms)
    assert run.folder == folder, "the same run goes on"
    verdict = judge_run(run)
    found = counted(verdict)
    assert {each.job.rpartition("-")[2].lstrip("0"): each.cause for each in found.failures} == {
        f"{number}": cause for number, cause in PLANTED.items()
    }
    assert found.failed == dict.fromkeys(found.failed, 2)
    assert (found.over, found.running, found.restarts) == (True, 0, 0)
    assert found.started == found.finished + 11, "the job that was refused did not start"
    assert found.hours == pytest.approx(1)
    assert found.interrupts == 10
    assert found.mtbi == pytest.approx(0.1)
    assert len(found.lost) == 2
    assert found.availability is not None
    assert 0.5 < found.availability < 1
    outcomes = {each.item.number: each.outcome for each in verdict.contract if each.item}
    assert outcomes == {"7.1": "FAIL", "7.2": "PASS", "7.3": "PASS", "7.4": "FAIL"}
    assert verdict.exit_code() == 1
    assert verdict.as_json()["stability"]["failed"]["node"] == 2
    run_data = gather(run, verdict)
    shown = page_of(run, verdict) + repr(issues.section(run_data))
    for words in ("Failed jobs by cause", "file system", "producer's risk", "lost a node: n"):
        assert words in shown

    # The kernel log of a node, in the time of a job whose program shows a cause of its own.
    program = next(each for each in found.failures if each.cause == "program")
    (after,) = run.files.job(program.job).folder.glob(f"attempt-*/{program.nodes[0]}.after")
    message = "[99999999.000000] mce: Uncorrected hardware memory error in user-access at 1234000"
    before = after.with_suffix(".before")
    before.write_text(before.read_text().replace("=== host\n", "=== host\n| uptime_s: 100.00\n"))
    text = after.read_text()
    assert text.count("=== busy\n") == 1
    after.write_text(text.replace("=== busy\n", f"=== kernel\n| {message}\n=== busy\n"))
    again = counted(judge_run(open_run(folder)))
    (same,) = [each for each in again.failures if each.job == program.job]
    assert same.cause == "node" and {*again.lost} == {*found.lost, program.nodes[0]}


def test_a_sound_machine_meets_the_terms(cluster: Cluster) -> None:
    cluster.kit.program()
    cluster.planted = {}
    run = cluster.call(cluster.site(items=ITEMS), StabilityTerms(days=0.5 / 24, load=0.5))
    verdict = judge_run(run)
    found = counted(verdict)
    assert sum(found.failed.values()) == 0
    assert found.interval[0] == pytest.approx(0.5 / 2.9957, rel=1e-3), "χ²(0.95; 2) is 5.9915"
    assert found.availability == 1
    assert verdict.exit_code() == 0
    assert verdict.headline().text.startswith("4 of 4 contract limits")
    assert found.seen.unseen == 0
    shown = page_of(run, verdict)
    assert "No interrupt in 0.5 h: the mean time between interrupts is at least 0.1669 h" in shown
    assert "with 95 % confidence" in shown and "Mean time between interrupts: " not in shown
    steps = [each for group in run.plan.groups for each in group.jobs]
    assert {len(each.nodes) for each in steps} == {1, 2}
    assert {node for each in steps for node in each.nodes} == set(HOSTS), "rounds rotate"


@pytest.mark.fault("stability-unseen")
def test_no_item_passes_on_what_nobody_saw(cluster: Cluster) -> None:
    """The machine is sound; then looks at the nodes and lines of histories are lost."""
    cluster.kit.program()
    cluster.planted = {}
    run = cluster.call(cluster.site(items=SEEN), StabilityTerms(days=0.5 / 24, load=0.5))
    verdict = judge_run(run)
    assert (set(outcomes(verdict).values()), verdict.exit_code()) == ({"PASS"}, 0)
    lines = run.files.node_states.read_bytes().splitlines(keepends=True)

    run.files.node_states.unlink()
    verdict = judge_run(run)
    assert (counted(verdict).availability, verdict.exit_code()) == (None, 2)
    assert set(outcomes(verdict).values()) == {"UNJUDGED"}, "the time is not over"

    silent = [{**json.loads(line), "unknown": HOSTS} for line in lines]
    run.files.node_states.write_text("".join(f"{json.dumps(line)}\n" for line in silent))
    verdict = judge_run(run)
    assert (counted(verdict).availability, verdict.exit_code()) == (None, 2)
    expected = {**dict.fromkeys(outcomes(verdict), "PASS"), "7.5": "INVALID"}
    assert outcomes(verdict) == expected
    (result,) = verdict.of("INVALID")
    assert result.reason.code == "stability-not-seen"

    first = job_runs(run)[0]
    until = first.started + 1200
    history = run.files.queued(first.job.id).history
    ended = datetime.fromtimestamp(first.ended, UTC), datetime.fromtimestamp(until, UTC)
    old, new = (f"{time:%Y-%m-%dT%H:%M:%SZ}" for time in ended)
    head, _, tail = history.read_text().rpartition(old)
    history.write_text(head + new + tail)
    times = [json.loads(line)["time"] for line in lines]
    before = [line for line, at in zip(lines, times, strict=True) if at <= first.started]
    after = [line for line, at in zip(lines, times, strict=True) if at > until]
    look = b'{"time": %f, "down": {}}\n' % until
    gap = [*before, b"\0damaged\n" * 2, look, *after]
    run.files.node_states.write_bytes(b"".join(gap))
    verdict = judge_run(run)
    found = counted(verdict)
    assert found.availability is not None
    assert 0 < found.availability < 0.5
    assert found.seen.up_when_seen == 1
    assert outcomes(verdict) == {**dict.fromkeys(expected, "UNJUDGED"), "7.8": "PASS"}
    assert verdict.exit_code() not in (0, 70)
    reasons = [message for each in verdict.results for message in each.reason.nested()]
    (about,) = {each.fields["unseen"] for each in reasons if each.code == "stability-unseen"}
    assert float(f"{about}") > 0
    assert [each.code for each in found.damaged] == ["stability-lines"]
    assert "2 lines" in page_of(run, verdict)

    run.files.node_states.write_bytes(b"".join(lines))
    history.write_text(history.read_text().replace('"time": "2', '"time": "in 2', 1))
    verdict = judge_run(run)
    assert outcomes(verdict)["7.8"] == "UNJUDGED"
    assert [each.fields["job"] for each in counted(verdict).damaged_jobs] == [first.job.id]
    assert verdict.exit_code() not in (0, 70)
