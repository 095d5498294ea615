"""The check of the network that carried messages, on samples that the tests write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proofmark.common.input_limits import MAX_PROBE_BYTES
from proofmark.plan.step import Step
from proofmark.records.hosts import HostNames
from proofmark.records.network import NetworkCheck
from proofmark.runs.attempts import Attempt
from proofmark.runs.run_files import RunFiles
from proofmark.site.fabric import Network

MB = 10**6
START, END = "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:03:00Z"
MISSING = "the counters of the networks were not recorded"
FAST = Network(kind="ethernet", interfaces=["fast0"])


def sample(date: str, **megabytes: int) -> str:
    """Return the counters of interfaces, without the line ``end``; no time passes."""
    lines = [
        f"interface {name} 1 {count * MB} 0 -" for name, count in {"fast0": 0, **megabytes}.items()
    ]
    return "\n".join([f"sample {date} 1.0", *lines, ""])


def a_step(**changes: Any) -> Step:
    """Return a step that moves at least 100 MB."""
    return Step.model_construct(**{"id": "0001-fake", "network_bytes": 100 * MB, **changes})


def an_execution(**changes: Any) -> Attempt:
    fields: dict[str, Any] = {
        "number": 1,
        "path": "",
        "rc": 0,
        "host": "n1",
        "start": START,
        "end": END,
        "timed_out": False,
        "seconds": 60.0,
        "binding": b"",
        "job_attempt": "j1/attempt-1",
    }
    return Attempt(**{**fields, **changes})


class Job:
    """The samples of an attempt of a job."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.samples = run / "jobs/j1/attempt-1/network"

    def write(
        self,
        name: str = "1-0001-fake",
        host: str = "n1",
        dates: tuple[str, str] = (START, END),
        **megabytes: int,
    ) -> Path:
        """Write the samples before and after a step; `megabytes` moved meanwhile."""
        folder = self.samples / name
        folder.mkdir(parents=True, exist_ok=True)
        none = dict.fromkeys(megabytes, 0)
        (folder / f"{host}.before").write_text(sample(dates[0], **none) + "end\n")
        (folder / f"{host}.after").write_text(sample(dates[1], **megabytes) + "end\n")
        return folder

    def reason(
        self,
        step: Step | None = None,
        nodes: Sequence[str] = ("n1",),
        names: HostNames | None = None,
        *,
        required: bool = True,
        network: Network = FAST,
        **execution: Any,
    ) -> str:
        check = NetworkCheck(RunFiles(self.run), network, names or HostNames(), required=required)
        return check.invalid_reason(step or a_step(), nodes, an_execution(**execution))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def carried(node: str = "n1") -> str:
    return (
        f"{node}: slow0 (ethernet) carried 80.0 MB, and ethernet (fast0) 0.0 MB, of at least "
        "100.0 MB to and from the node"
    )


class TestShare:
    def test_the_intended_network(self, job: Job) -> None:
        """Control: every condition holds."""
        job.write(fast0=100)
        assert job.reason() == ""

    @pytest.mark.parametrize(("slow", "invalid"), [(49, False), (50, True), (80, True)])
    def test_another_network_carried_half_of_the_least_bytes(
        self, job: Job, slow: int, invalid: bool
    ) -> None:
        job.write(slow0=slow)
        assert bool(job.reason()) is invalid

    @pytest.mark.parametrize(("slow", "invalid"), [(99, False), (100, True)])
    def test_another_network_carried_a_tenth_of_the_intended_one(
        self, job: Job, slow: int, invalid: bool
    ) -> None:
        job.write(fast0=1000, slow0=slow)
        assert bool(job.reason()) is invalid

    def test_the_other_networks_count_together_and_the_largest_is_named(self, job: Job) -> None:
        job.write(a0=20, b0=30, c0=10)
        assert job.reason() == (
            "n1: b0 (ethernet) carried 30.0 MB, and ethernet (fast0) 0.0 MB, of at least "
            "100.0 MB to and from the node"
        )

    def test_the_bytes_of_the_intended_network_are_named(self, job: Job) -> None:
        job.write(fast0=70, slow0=60)
        assert ", and ethernet (fast0) 70.0 MB, of at least 100.0 MB" in job.reason()

    def test_each_node_is_named(self, job: Job) -> None:
        job.write(host="n1", slow0=80)
        job.write(host="n2", slow0=80)
        job.write(host="n3", fast0=80)
        nodes = ("n1", "n2", "n3")
        assert job.reason(nodes=nodes) == f"{carried('n1')}; {carried('n2')}"


class TestUnchecked:
    def test_a_step_whose_least_bytes_are_not_known(self, job: Job) -> None:
        job.write(slow0=80)
        assert job.reason() == carried()
        assert job.reason(a_step(network_bytes=0)) == ""

    @pytest.mark.parametrize("attempt", [None, ""])
    def test_an_execution_by_hand(self, job: Job, attempt: str | None) -> None:
        job.write(slow0=80)
        assert job.reason(job_attempt=attempt) == ""

    @pytest.mark.parametrize("attempt", ["j1/attempt-2", "j2/attempt-1"])
    def test_an_attempt_without_samples(self, job: Job, attempt: str) -> None:
        job.write(slow0=80)
        assert job.reason(job_attempt=attempt) == MISSING
        assert job.reason(job_attempt=attempt, required=False) == ""

    @pytest.mark.parametrize("attempt", ["../jobs/j1/attempt-1", "j1/attempt-1/x", "j1/attempt-x"])
    def test_a_name_that_is_no_attempt(self, job: Job, attempt: str) -> None:
        job.write(slow0=80)
        (job.run / "jobs/j1/attempt-x").symlink_to(job.run / "jobs/j1/attempt-1")
        assert job.reason(job_attempt=attempt) == MISSING

    def test_a_file_in_the_place_of_the_folder(self, job: Job) -> None:
        job.samples.parent.mkdir(parents=True)
        job.samples.write_text("")
        assert job.reason() == MISSING


class TestAround:
    """The samples around an execution: a job may execute a step several times."""

    @pytest.mark.parametrize(
        ("before", "after", "found"),
        [
            (START, END, True),
            (EARLY, LATE, True),
            (END, LATE, False),
            (EARLY, START, False),
            (LATE, EARLY, False),
        ],
    )
    def test_the_execution_is_between_the_samples(
        self, job: Job, before: str, after: str, found: bool
    ) -> None:
        job.write(dates=(before, after), slow0=80)
        assert job.reason() == (carried() if found else MISSING)

    def test_the_last_sample_before_the_step_counts(self, job: Job) -> None:
        folder = job.write(slow0=80)
        path = folder / "n1.before"
        late = sample(END, slow0=0).replace("1.0", "2.0")
        path.write_text(sample(EARLY, slow0=0) + late + "end\n")
        assert job.reason() == MISSING

    def test_the_last_sample_after_the_step_counts(self, job: Job) -> None:
        folder = job.write(slow0=80)
        path = folder / "n1.after"
        path.write_text(sample(EARLY, slow0=0) + sample(LATE, slow0=80) + "end\n")
        assert job.reason() == carried()

    def test_the_first_folder_by_number_is_used(self, job: Job) -> None:
        job.write("10-0001-fake", slow0=80)
        job.write("9-0001-fake", fast0=80)
        assert job.reason() == ""

    @pytest.mark.parametrize("name", ["1-0002-fake", "x-0001-fake", "0001-fake", "10001-fake"])
    def test_folders_of_other_steps_are_not_used(self, job: Job, name: str) -> None:
        job.write(name, slow0=80)
        assert job.reason() == MISSING
        job.write("2-0001-fake", fast0=80)
        assert job.reason() == ""

    def test_a_folder_without_samples_of_the_node_is_passed_over(self, job: Job) -> None:
        job.write("1-0001-fake", host="n2", fast0=80)
        assert job.reason() == MISSING
        job.write("2-0001-fake", slow0=80)
        assert job.reason() == carried()

    def test_samples_of_a_step_on_other_nodes_are_those_of_the_host(self, job: Job) -> None:
        """The clock is that of the node that started the ranks."""
        job.write(host="n1", dates=(EARLY, START), fast0=80)
        job.write(host="n2", dates=(START, END), slow0=80)
        assert job.reason(nodes=("n2",), host="n2") == carried("n2")
        assert job.reason(nodes=("n2",), host="n1") == MISSING


class TestHosts:
    def test_a_node_may_report_another_name(self, job: Job) -> None:
        job.write(host="login7", slow0=80)
        assert job.reason() == MISSING
        assert job.reason(names=HostNames({"n1": ["login7"]})) == carried()

    def test_a_node_without_samples(self, job: Job) -> None:
        folder = job.write(fast0=80)
        (folder / "n2.before").write_text("")
        reason = "n2: the counters of its networks were not recorded"
        assert job.reason(nodes=("n1", "n2")) == reason
        assert job.reason(nodes=("n1", "n2"), required=False) == ""


class TestDamage:
    @pytest.mark.parametrize("moment", ["before", "after"])
    @pytest.mark.parametrize("required", [True, False])
    def test_samples_of_the_first_node(self, job: Job, moment: str, required: bool) -> None:
        (job.write(fast0=80) / f"n1.{moment}").write_text("sample")
        reason = "the counters of the networks cannot be read: no line 'end'"
        assert job.reason(required=required) == reason

    @pytest.mark.parametrize("moment", ["before", "after"])
    @pytest.mark.parametrize("required", [True, False])
    def test_samples_of_another_node(self, job: Job, moment: str, required: bool) -> None:
        job.write(fast0=80)
        (job.write(host="n2", fast0=80) / f"n2.{moment}").write_text("sample")
        reason = "n2: the counters of its networks cannot be read: no line 'end'"
        assert job.reason(nodes=("n1", "n2"), required=required) == reason

    def test_a_long_reason_is_cut(self, job: Job) -> None:
        deep = Job(job.run / ("x" * 200))
        (deep.write(fast0=80) / "n1.before").unlink()
        start = "the counters of the networks cannot be read: "
        assert deep.reason().startswith(f"{start}[Errno 2] No such file or directory: ")
        assert len(deep.reason()) == len(start) + 200

    def test_a_file_that_is_too_large(self, job: Job) -> None:
        path = job.write(fast0=80) / "n1.after"
        path.write_text(path.read_text().replace("end\n", "\n" * MAX_PROBE_BYTES + "end\n"))
        assert job.reason().startswith("the counters of the networks cannot be read: ")
