"""The records of a run, and the reading of the files of one step with boundary values."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import reports_of, seal, write_execution
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import FAKE, make_kit
from tests.folders import PROBES
from tests.unit.records.test_conditions import NODE

from proofmark.cases.reference import Metric
from proofmark.cases.suite import Benchmarks
from proofmark.common.files import moment_of
from proofmark.common.message import Message
from proofmark.common.processes import parallel_map
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.plan.plan import Step
from proofmark.records import read
from proofmark.records.columns import Record, Records
from proofmark.records.run_facts import RunParts
from proofmark.runs.nodes import JobOnNode, Node
from proofmark.runs.run import Decisions, Run, add_decisions
from proofmark.site.inventory import Site
from proofmark.site.node.provenance import node_provenance
from proofmark.site.partition import Partition
from proofmark.software.software import Software

HIGHER = {"unit": "MB/s", "better": "higher", "what": "a"}

MESSAGE = {"rate": {**HIGHER, "bound": "{message_s * 1000000000000000}"}}
"""The bound is 2 MB/s inside a node, and 10 MB/s between nodes."""

FIRMWARE: dict[str, Any] = {
    "firmware": {"back_end": "manual"},
    "modes": {"flat": {"topology": NODE.format(94)}},
    "current_mode": "flat",
}

WHY = Message("writer-failed", step="0000-other", problem="it failed")

RATES = {f"n{number}": 100.0 + number for number in range(4)}


@dataclass
class Bench:
    """A run of one step whose ranks are not bound."""

    run: Run
    benchmarks: Benchmarks
    site: Site
    software: Software
    step: Step

    def records(
        self,
        *,
        mode: str = "current",
        step: Mapping[str, Any] | None = None,
        case: Mapping[str, Any] | None = None,
        nodes: Mapping[str, Node] | None = None,
        **partition: Any,
    ) -> Records:
        """Return the records of the step with the changes `step` and `case`."""
        (group,) = self.run.plan.groups
        (job,) = group.jobs
        planned = self.step.model_copy(update=step or {})
        jobs = [job.model_copy(update={"steps": [planned], "nodes": planned.nodes})]
        groups = [group.model_copy(update={"mode": mode, "jobs": jobs})]
        run = replace(self.run, plan=self.run.plan.model_copy(update={"groups": groups}))
        cases = {"fake": self.benchmarks.case("fake").model_copy(update=case or {})}
        facts = {**self.site.partition.model_dump(), **partition}
        site = self.site.model_copy(update={"partition": Partition.model_validate(facts)})
        benchmarks = self.benchmarks.model_copy(update={"cases": cases})
        reports = {**reports_of(run), **(nodes or {})}
        return read.read_run(RunParts(run, benchmarks, site, self.software, reports))

    def write(self, rate: object = 100, host: str = "n1", name: str = "", **how: Any) -> Path:
        """Write an execution of the step in the folder `name`, and return the folder."""
        folder = self.run.files.step(self.step.id).folder / name
        output = how.pop("output", f"size 1\nrate {rate}\nEND\n")
        outputs = {} if output is None else {"stdout": output}
        write_execution(folder, host, outputs, **how)
        return folder / f"execution-{how.get('number', 1)}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bench]:
    """Return one bench for each kind of case: plain, with a node, copy or bound in its output."""
    named: dict[str, Any] = copy.deepcopy(FAKE["read"])
    named["facts"] = [r"size (?P<size>\d+)", r"on (?P<node>\S+)"]
    copies: dict[str, Any] = copy.deepcopy(FAKE["read"])
    copies["parameters"] = {"size": "int", "pair": "int"}
    copies["keys"] = {r"(?P<key>rate) (?P<value>\S+)(?: of pair (?P<pair>\d+))?": {"rate": "rate"}}
    words: dict[str, Any] = copy.deepcopy(FAKE["read"])
    words["parameters"] = {"size": "word"}
    kinds: dict[str, dict[str, Any]] = {
        "plain": {},
        "named": {"read": named},
        "message": {"metrics": MESSAGE},
        "memory": {"metrics": {"rate": {**HIGHER, "bound": "{memory}"}}},
        "copies": {"read": copies},
        "words": {"read": words},
    }
    benches = {}
    for kind, changes in kinds.items():
        kit = make_kit(tmp_path_factory.mktemp(kind))
        kit.case(sweep={"size": 1}, **changes)
        run = kit.run()
        (step,) = run.plan.steps()
        step = step.model_copy(update={"nodes": ["n1"], "cpus": []})
        benches[kind] = Bench(run, kit.benchmarks(), kit.site(), kit.software(), step)
    return benches


@pytest.fixture
def bench(made: dict[str, Bench], tmp_path: Path, request: pytest.FixtureRequest) -> Bench:
    """Return the bench of a kind, plain unless `of_kind` names another, without executions."""
    chosen = made[getattr(request, "param", "plain")]
    return replace(chosen, run=replace(chosen.run, folder=tmp_path / "run"))


def of_kind(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bench", [kind], indirect=True)


def only(records: Sequence[Record]) -> Record:
    (record,) = records
    return record


def node(host: str, *, jobs: int = 1) -> Node:
    """Return a node with the report of a node of two Xeon Gold 6148."""
    text = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
    report = node_provenance(text, None, host)
    job = JobOnNode(job="j", attempt=1, steps=("0001-fake",), provenance=report)
    return Node(host=host, jobs=(job,) * jobs)


class TestStep:
    def test_each_execution_has_its_records(self, bench: Bench) -> None:
        for number in (1, 2, 3):
            bench.write(rate=number, number=number)
        records = bench.records(mode="flat")
        assert [(each.attempt, each.value) for each in records] == [(1, 1), (2, 2), (3, 3)]
        first = records[0]
        assert (first.step, first.node, first.mode) == (bench.step.id, "n1", "flat")
        assert (first.case, first.benchmark, first.metric) == ("fake", "FAKE", "rate")
        assert (first.valid, first.reason, first.unit) == (True, "", "MB/s")
        assert first.parameters == {"size": 1}
        assert records.executions[2].attempt == 3

    def test_each_instance_has_its_records(self, bench: Bench) -> None:
        for number, host in enumerate(("n1", "n2", "n3"), start=1):
            bench.write(rate=number, host=host, name=host)
        step = {"scope": "each-node", "nodes": ["n1", "n2", "n3"]}
        records = bench.records(step=step)
        assert [(each.node, each.value) for each in records] == [("n1", 1), ("n2", 2), ("n3", 3)]
        assert [each.step for each in records] == [f"{bench.step.id}/n{n}" for n in (1, 2, 3)]
        assert all(each.valid for each in records)

    def test_a_pair_is_one_node_set(self, bench: Bench) -> None:
        bench.write(name="n1+n2")
        bench.write(name="n3+n4", host="n4")
        step = {"scope": "each-pair", "nodes": ["n1", "n2", "n3", "n4"]}
        first, second = bench.records(step=step)
        assert (first.node, first.valid) == ("n[1-2]", True)
        assert (second.node, second.reason) == ("n[3-4]", "ran on n4, planned on n3")

    @pytest.mark.parametrize(
        ("hosts", "shown"), [(["n1"], "n1"), (["n2", "n1"], "n[1-2]"), ([], "n1")]
    )
    def test_the_ranks_of_a_job_report_its_nodes(
        self, bench: Bench, hosts: list[str], shown: str
    ) -> None:
        binding = [{"rank": n, "host": host, "cpus": "0"} for n, host in enumerate(hosts)]
        bench.write(binding=binding)
        record = only(bench.records(step={"nodes": ["n1", "n2"]}))
        assert (record.node, record.valid) == (shown, True)

    @pytest.mark.parametrize(("nodes", "shown"), [(["n1"], "n1"), (["n1", "n2"], "n[1-2]")])
    def test_a_damaged_execution_has_the_planned_nodes(
        self, bench: Bench, nodes: list[str], shown: str
    ) -> None:
        folder = bench.write()
        (folder / "when.json").write_text("{")
        record = only(bench.records(step={"nodes": nodes}))
        assert (record.node, record.value, record.valid) == (shown, 100, False)
        assert record.reason.startswith("when.json is damaged: ")

    def test_a_damaged_execution_of_an_instance_has_its_node(self, bench: Bench) -> None:
        (bench.write(name="n2", host="n2") / "when.json").write_text("{")
        record = only(bench.records(step={"scope": "each-node", "nodes": ["n1", "n2"]}))
        assert record.node == "n2"

    def test_an_output_that_cannot_be_read_is_the_reason(self, bench: Bench) -> None:
        folder = bench.write(output=None)
        (folder / "stdout").unlink()
        (folder / "stdout").mkdir()
        record = only(bench.records())
        assert record.reason.startswith("stdout is damaged: ")
        (folder / "stdout").rmdir()
        assert "damaged" not in only(bench.records()).reason
        assert not only(bench.records()).valid

    def test_a_reason_of_the_execution_precedes_that_of_the_output(self, bench: Bench) -> None:
        bench.write(output="size 1\nrate 100\n", exit_code=3)
        record = only(bench.records())
        assert record.reason.startswith("exit code 3; ") and "END" in record.reason
        assert record.value == 100

    def test_a_reason_of_the_execution_precedes_another_parameter(self, bench: Bench) -> None:
        bench.write(output="size 7\nrate 100\nEND\n", exit_code=3)
        assert only(bench.records()).reason == "exit code 3"

    def test_the_conditions_of_the_node_count(self, bench: Bench) -> None:
        bench.write(boot="b")
        reason = only(bench.records(mode="flat", **FIRMWARE)).reason
        assert "n1: mode flat is not proven" in reason

    def test_both_nodes_of_a_step_have_their_conditions(self, bench: Bench) -> None:
        binding = [{"rank": n, "host": f"n{n + 1}", "cpus": "0"} for n in (0, 1)]
        bench.write(boot="b", binding=binding)
        step = {"nodes": ["n1", "n2"]}
        reason = only(bench.records(mode="flat", step=step, **FIRMWARE)).reason
        assert reason.count("mode flat is not proven") == 2


class TestParameters:
    @pytest.mark.parametrize(
        ("planned", "reason"),
        [
            (1, ""),
            (1.0, ""),
            ("1", ""),
            (2, "planned size 2, the output has 1"),
            ("1.0", "planned size 1.0, the output has 1"),
            ("x", "planned size x, the output has 1"),
        ],
    )
    def test_a_printed_parameter_must_be_as_planned(
        self, bench: Bench, planned: object, reason: str
    ) -> None:
        bench.write()
        record = only(bench.records(step={"parameters": {"size": planned}}))
        assert (record.reason, record.valid) == (reason, not reason)

    @of_kind("words")
    @pytest.mark.parametrize(("planned", "valid"), [(1, True), ("1", True), (2, False)])
    def test_a_printed_word_is_compared_as_text(
        self, bench: Bench, planned: object, valid: bool
    ) -> None:
        bench.write()
        assert only(bench.records(step={"parameters": {"size": planned}})).valid is valid

    def test_a_derived_value_must_be_as_planned(self, bench: Bench) -> None:
        bench.write()
        step = {"parameters": {"axis": 5}, "derived": {"size": 2}}
        record = only(bench.records(step=step))
        assert record.reason == "planned size 2, the output has 1"
        assert record.parameters == {"axis": 5, "size": 1}

    @pytest.mark.parametrize(
        ("launch", "ranks", "threads", "expected"),
        [
            ("process", 1, 1, {}),
            ("process", 2, 2, {"threads": 2}),
            ("mpi", 2, 1, {"ranks": 2}),
            ("mpi", 2, 2, {"ranks": 2, "threads": 2}),
            ("threads", 1, 1, {"threads": 1}),
        ],
    )
    def test_ranks_and_threads_are_parameters_of_their_launch(
        self, bench: Bench, launch: str, ranks: int, threads: int, expected: dict[str, int]
    ) -> None:
        bench.write()
        step = {"launch": launch, "ranks": ranks, "threads": threads}
        assert only(bench.records(step=step)).parameters == {"size": 1, **expected}

    def test_parameters_are_written_in_order(self, bench: Bench) -> None:
        bench.write()
        records = bench.records(step={"parameters": {"zone": 1, "axis": 2}})
        assert records.measurands[0].parameters == '{"axis": 2, "size": 1, "zone": 1}'


@of_kind("named")
class TestNodeInTheOutput:
    @pytest.mark.parametrize(
        ("named", "shown", "reason"),
        [
            ("n1", "n1", ""),
            ("n2", "n2", ""),
            ("n9", "n9", "the output names node 'n9', the step ran on n1, n2"),
            ("-x", "n1", "the output names node '-x', the step ran on n1, n2"),
        ],
    )
    def test_it_must_be_a_node_of_the_step(
        self, bench: Bench, named: str, shown: str, reason: str
    ) -> None:
        """The launcher ran on n1, the only rank on n2."""
        binding = [{"rank": 0, "host": "n2", "cpus": "0"}]
        bench.write(output=f"on {named}\nsize 1\nrate 1\nEND\n", binding=binding)
        record = only(bench.records(step={"nodes": ["n1", "n2"]}))
        assert (record.node, record.reason) == (shown, reason)

    def test_a_long_name_is_shortened(self, bench: Bench) -> None:
        bench.write(output=f"on {'x' * 99}\nsize 1\nrate 1\nEND\n")
        found = only(bench.records()).reason
        assert found == f"the output names node {'x' * 80!r}, the step ran on n1"

    def test_without_a_name_it_is_the_node_of_the_execution(self, bench: Bench) -> None:
        bench.write()
        record = only(bench.records())
        assert (record.node, record.reason) == ("n1", "")


class TestBounds:
    @of_kind("message")
    @pytest.mark.parametrize(
        ("step", "folder", "between"),
        [
            ({"nodes": ["n1"]}, "", False),
            ({"nodes": ["n1", "n2"]}, "", True),
            ({"nodes": ["n1", "n2", "n3"]}, "", True),
            ({"nodes": ["n1", "n2"], "scope": "each-node"}, "n1", False),
            ({"nodes": ["n1", "n2"], "scope": "each-pair"}, "n1+n2", True),
        ],
    )
    def test_messages_between_nodes_take_longer(
        self, bench: Bench, step: dict[str, Any], folder: str, between: bool
    ) -> None:
        bench.write(rate=5, name=folder)
        assert only(bench.records(step=step)).valid is between
        assert not only(bench.records(step=step, origin="emulated")).valid

    @of_kind("memory")
    def test_the_ceilings_are_those_of_the_nodes_that_reported(self, bench: Bench) -> None:
        """The memory of a node is 0.384 TB/s at most, that of an unknown one far more."""
        bench.write(rate=500_000)
        assert only(bench.records()).valid
        assert not only(bench.records(nodes={"n1": node("n1")})).valid
        unknown = bench.records(nodes={"n1": node("n1", jobs=0)})
        assert only(unknown).reason.startswith("the state of n1 is not proven")
        assert only(bench.records(nodes={"n2": node("n2")})).valid
        emulated = bench.records(nodes={"n1": node("n1")}, origin="emulated")
        assert only(emulated).valid

    @of_kind("memory")
    def test_the_ceilings_of_two_nodes_add_up(self, bench: Bench) -> None:
        bench.write(rate=500_000)
        nodes = {"n1": node("n1"), "n2": node("n2")}
        assert only(bench.records(step={"nodes": ["n1", "n2"]}, nodes=nodes)).valid

    @of_kind("memory")
    def test_an_instance_has_the_ceilings_of_its_own_nodes(self, bench: Bench) -> None:
        for host in ("n1", "n2"):
            bench.write(rate=500_000, host=host, name=host)
        step = {"nodes": ["n1", "n2"], "scope": "each-node"}
        found = bench.records(step=step, nodes={"n1": node("n1")})
        assert [each.valid for each in found] == [False, True]
        both = bench.records(step=step, nodes={"n1": node("n1"), "n2": node("n2")})
        assert [each.valid for each in both] == [False, False]


@of_kind("copies")
class TestCopies:
    RATE = Metric(unit="MB/s", better="higher", bound="{cache}", what="how fast")
    SPREAD = Metric(unit="%", better="lower", bound=0, what="range of the copies")
    CASE = {"concurrent": "{10.0}", "metrics": {"rate": RATE, "rate_spread": SPREAD}}

    def write(self, bench: Bench, ends: Sequence[float], copies: int = 2, **how: Any) -> Path:
        """Write an execution in which each copy measured for 10 s until its end."""
        parts = "".join(f"size 1\nrate {100 * n} of pair {n}\n" for n in range(1, copies + 1))
        folder = bench.write(output=f"{parts}END\n", **how)
        entries = [{"copy": n, "start": 0, "end": end} for n, end in enumerate(ends, start=1)]
        (folder / "copies.json").write_text(json.dumps(entries))
        seal(folder)
        return folder

    def without_times(self, bench: Bench, ends: Sequence[float], **how: Any) -> None:
        folder = self.write(bench, ends, **how)
        (folder / "copies.json").unlink()
        seal(folder)

    @pytest.mark.parametrize(("second_end", "valid"), [(20, True), (29, False)])
    def test_copies_must_measure_at_the_same_time(
        self, bench: Bench, second_end: float, valid: bool
    ) -> None:
        self.write(bench, [20, second_end])
        records = bench.records(case=self.CASE, step={"copies": 2})
        assert [each.metric for each in records] == ["rate", "rate", "rate_spread"]
        assert {each.valid for each in records} == {valid}
        assert valid or all("the 2 copies measured at the same time" in r.reason for r in records)

    def test_another_reason_precedes(self, bench: Bench) -> None:
        self.write(bench, [20, 29], exit_code=3)
        records = bench.records(case=self.CASE, step={"copies": 2})
        assert {each.reason for each in records} == {"exit code 3"}

    def test_one_copy_has_no_overlap_and_no_spread(self, bench: Bench) -> None:
        self.without_times(bench, [20], copies=1)
        assert only(bench.records(case=self.CASE, step={"copies": 1})).valid

    def test_copies_of_a_case_that_does_not_compare_them(self, bench: Bench) -> None:
        self.without_times(bench, [20, 20])
        assert [each.valid for each in bench.records(step={"copies": 2})] == [True, True]


class TestProcesses:
    @pytest.mark.parametrize(("size", "tasks"), [(1, [1, 1, 1]), (2, [2, 1]), (3, [3])])
    def test_a_process_reads_some_measurements_at_a_time(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch, size: int, tasks: list[int]
    ) -> None:
        seen: list[int] = []

        def recorded(work: Any, tasks: Any) -> Any:
            every = [*tasks]
            seen.extend(map(len, every))
            return parallel_map(work, every)

        monkeypatch.setattr(read, "SLICE", size)
        monkeypatch.setattr(read, "parallel_map", recorded)
        hosts = ["n1", "n2", "n3"]
        for host in hosts:
            bench.write(host=host, name=host)
        records = bench.records(step={"scope": "each-node", "nodes": hosts})
        assert [each.node for each in records] == hosts
        assert seen == tasks


@pytest.mark.parametrize("size", [1, 1000])
def test_a_step_that_was_not_run_is_invalid_once_for_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """The outputs in its folder are of no execution of the run."""
    monkeypatch.setattr(read, "SLICE", size)
    run = fleet_run(tmp_path, RATES)
    add_decisions(run.files, Decisions(not_run={"0001-fake": WHY}))
    verdict = judge_run(run)
    assert verdict.counts["INVALID"] == len(verdict.results) > 0
    assert {each.reason.main_code for each in verdict.results} == {WHY.code}
    assert verdict.exit_code() == 2


def sensed(folder: Path, megahertz: float) -> Verdict:
    """Return the verdict on a run in which a sensor of n1 showed this clock."""
    run: Run = fleet_run(folder, RATES)
    (execution,) = run.folder.glob("workdir/steps/0001-fake/n1/execution-1")
    line = {"host": "n1", "time": 1.8e9, "span": 60, "mhz": megahertz}
    (execution / "telemetry.jsonl").write_text(f"{json.dumps(line)}\n")
    seal(execution)
    return judge_run(run)


def test_a_node_has_the_power_that_its_bmc_stated_while_a_step_ran(tmp_path: Path) -> None:
    run: Run = fleet_run(tmp_path, RATES)
    (when,) = run.folder.glob("workdir/steps/0001-fake/n1/execution-1/when.json")
    about = json.loads(when.read_text())
    begin = moment_of(about["start"]).timestamp()
    run.files.bmc_telemetry.parent.mkdir()
    looks = ((begin - 1, 900), (begin, 100), (begin + about["seconds"], 300), (begin + 99, 900))
    lines = ({"time": time, "nodes": {"n1": {"watts": watts}}} for time, watts in looks)
    run.files.bmc_telemetry.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = (each.record for each in judge_run(run).results if each.record.metric == "node_power")
    assert [(each.node, each.value, each.unit, each.valid) for each in found] == [
        ("n1", 200, "W", True)
    ]


@pytest.mark.parametrize(("megahertz", "valid"), [(2400.0, True), (9000.0, False)])
def test_a_clock_above_that_of_any_processor_is_invalid(
    tmp_path: Path, megahertz: float, valid: bool
) -> None:
    results = [
        each for each in sensed(tmp_path, megahertz).results if "clock" in each.record.metric
    ]
    assert [each.record.valid for each in results] == [valid]
    if not valid:
        assert results[0].reason.main_code == "above-bound"
