"""Ranks, threads and memory with another binding than planned make a measurement INVALID."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fixtures.kit import SYMBOLS, Kit, carried_out, execution, make_kit, steps_of, topology
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import ROOT

from proofmark.cases.case import SuiteUse
from proofmark.cases.reader.engine import read_output
from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan, Step, host_numa_domains, host_rank_cpus
from proofmark.plan.rank_cpus import RankCpus
from proofmark.records import binding
from proofmark.records.binding import BindingCheck, HostNames, binding_error
from proofmark.runs.attempts import BindingReport, RankReport, read_binding
from proofmark.site.machines import Machine
from proofmark.site.partition import Partition

HERE = os.uname().nodename

OPENMP = """
#include <stdio.h>
int main(void) {
  int size = 0;
#pragma omp parallel
#pragma omp atomic
  size++;
  printf("size %d\\nrate 100\\nEND\\n", size);
}
"""

RANKS = [(0, "0"), (0, "1"), (1, "0"), (1, "1")]

NODES = ("n1", "n2")

FIRST = '{"rank": 0, "host": "n1", "cpus": "0"}'

SECOND = '{"rank": 1, "host": "n2", "cpus": "1"}'

BOTH = ("n1", "n2")


def openmp_program(kit: Kit) -> None:
    """Replace the program of the kit by an OpenMP program of two threads."""
    source = kit.folder / "fake.c"
    source.write_text(OPENMP)
    program = kit.folder / "programs" / "fake"
    subprocess.run(["gcc", "-fopenmp", "-o", program, source], check=True)


def without(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace `command` in PATH by a program that exits 0 and binds nothing."""
    fake = folder / "bin" / command
    fake.parent.mkdir()
    does = {"taskset": "exit 0", "numactl": 'shift; exec "$@"'}[command]
    fake.write_text(f"#!/bin/sh\n{does}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")


@pytest.mark.fault("rank-elsewhere")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
def test_a_rank_that_was_not_bound(
    kit: Kit, injected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.case(launch="mpi", sweep={"size": 1})
    if injected:
        without("taskset", kit.folder, monkeypatch)
    (record,) = kit.records(carried_out(kit.run()))
    assert record.valid is not injected
    assert injected == record.reason.startswith("rank 0 ran on CPUs 0-")
    assert injected == record.reason.endswith(", planned on 0")


@pytest.mark.fault("thread-elsewhere")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
def test_threads_on_each_others_cpus(kit: Kit, injected: bool) -> None:
    openmp_program(kit)
    kit.case(launch="threads", sweep={"size": 2, "threads": 2})
    run = kit.run()
    (folder,) = steps_of(run)
    if injected:
        script = (folder / "run.sh").read_text()
        swapped = script.replace("OMP_PLACES='{0},{1}'", "OMP_PLACES='{1},{0}'")
        assert swapped != script
        (folder / "run.sh").write_text(swapped)
    execute(run, "none", lambda line: None)
    (record,) = kit.records(run)
    assert record.reason == ("thread 0 ran on CPUs 1, planned on 0" if injected else "")
    assert record.valid is not injected
    bound = json.loads((execution(folder) / "binding.json").read_text())
    assert [entry["cpus"] for entry in bound if "rank" in entry] == ["0-1"]
    assert {entry["thread"] for entry in bound if "thread" in entry} == {0, 1}


@pytest.mark.fault("memory-elsewhere")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
def test_memory_that_was_not_bound(
    kit: Kit, injected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit = replace(kit, mcdram=True)
    kit.case(launch="mpi", sweep={"size": 1, "memory": "ddr"})
    if injected:
        without("numactl", kit.folder, monkeypatch)
    (record,) = kit.records(carried_out(kit.run()))
    expected = "rank 0 had the memory policy default, planned bind:0" if injected else ""
    assert (record.reason, record.valid) == (expected, not injected)


@pytest.mark.fault("btio-not-square")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
def test_a_plan_for_a_number_of_ranks_that_is_no_square(kit: Kit, injected: bool) -> None:
    benchmarks = shipped_benchmarks()
    use = SuiteUse(sweep={"ranks": 6 if injected else 4, "class_": "A"})
    case = benchmarks.case("npb-btio").model_copy(update={"suites": {"full": [use]}})
    benchmarks = benchmarks.model_copy(update={"cases": {"npb-btio": case}})
    machine = Machine({**SYMBOLS, "cores": 8}, topology(8))
    if not injected:
        made = make_plan(benchmarks, "full", kit.site(), machine)
        assert [step.ranks for step in made.steps()] == [4]
        return
    with pytest.raises(BadInput, match=r"npb-btio.yml: constraints: .*ranks 6.*: a square"):
        make_plan(benchmarks, "full", kit.site(), machine)


@pytest.mark.fault("btio-not-square")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
def test_a_number_of_ranks_that_is_no_square(injected: bool) -> None:
    reader = shipped_benchmarks().case("npb-btio").reader()
    name = "npb-3.4.3_bt.W_full_n3_refused.txt" if injected else "npb-3.4.3_bt.W_full_n4.txt"
    text = (ROOT / "benchmarks" / "samples" / name).read_text()
    assert any(row.valid for row in read_output(reader, "npb-btio", text)) is not injected


def reported(
    ranks: Sequence[tuple[str, str]], memory: str, threads: Sequence[tuple[int, str]] = ()
) -> BindingReport:
    """Return the report of ranks, each with its host and CPUs, and of threads of the host n1."""
    entries = [
        {"rank": rank, "host": host, "cpus": cpus, "memory": memory}
        for rank, (host, cpus) in enumerate(ranks)
    ]
    entries += [{"thread": thread, "host": "n1", "cpus": cpus} for thread, cpus in threads]
    return read_binding(entries)


class TestBindingError:
    def step(self, launch: str = "mpi", **changes: Any) -> Any:
        (step,) = make_plan_of(launch).steps()
        cpus = [RankCpus(node, (int(cpu),)) for node, cpu in RANKS]
        return step.model_copy(update={"nodes": list(NODES), "cpus": cpus, **changes})

    def error(
        self,
        where: Sequence[tuple[str, str]],
        threads: Sequence[tuple[int, str]] = (),
        memory: str = "default",
        **changes: Any,
    ) -> str:
        return binding_error(self.step(**changes), NODES, reported(where, memory, threads))

    RIGHT = (("n1", "0"), ("n1", "1"), ("n2", "0"), ("n2", "1"))

    def test_the_planned_binding_is_valid(self) -> None:
        assert self.error(self.RIGHT) == ""
        assert self.error([(f"{host}.site.org", cpus) for host, cpus in self.RIGHT]) == ""

    @pytest.mark.parametrize(
        ("where", "reason"),
        [
            (("2:0", "2:1", "1:0", "1:1"), "rank 0 ran on n2, planned on n1"),
            (("1:0", "2:1", "2:0", "1:1"), "rank 1 ran on n2, planned on n1"),
            (("1:0", "1:1", "1:0", "1:1"), "rank 2 ran on n1, planned on n2"),
            (("1:0", "1:0", "2:0", "2:1"), "rank 1 ran on CPUs 0, planned on 1"),
            (("1:0", "1:1", "2:0"), "3 of 4 ranks reported their binding"),
        ],
    )
    def test_the_first_rank_with_another_binding_is_reported(
        self, where: Sequence[str], reason: str
    ) -> None:
        ranks = [(f"n{node}", cpu) for node, cpu in (each.split(":") for each in where)]
        assert self.error(ranks) == reason

    @pytest.mark.fault("undeclared-alias")
    @pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
    def test_another_name_of_a_node_must_be_declared(self, injected: bool) -> None:
        names = HostNames({} if injected else {"n1": ["n1-ib.site.org"], "n2": ["n2-ib"]})
        ranks = [("n1-ib", "0"), ("n1", "1"), ("n2-ib", "0"), ("n2-ib", "1")]
        reason = binding_error(self.step(), NODES, reported(ranks, "default"), names=names)
        assert reason == ("ran on n1-ib, planned on n[1-2]" if injected else "")

    def test_a_name_is_accepted_only_for_its_node(self) -> None:
        names = HostNames({"n1": ["one"], "n2": ["two"]})
        swapped = [("two", "0"), ("two", "1"), ("one", "0"), ("one", "1")]
        reason = binding_error(self.step(), NODES, reported(swapped, "default"), names=names)
        assert reason == "rank 0 ran on two, planned on n1"

    @pytest.mark.parametrize(
        ("node", "reported_name", "may"),
        [
            ("n1", "n1", True),
            ("n1", "n1.site", True),
            ("n1.site", "one.site", True),
            ("n1", "ib", True),
            ("n2", "ib", True),
            ("n1", "n1.far.net", True),
            ("n1.site", "n1.far.net", True),
            ("n1", "n1.other", False),
            ("n1", "two", False),
            ("n2", "n1.far.net", False),
            ("n3", "n1", False),
            ("n4", "n4", True),
            ("n4", "n4.other", False),
            ("n4", "n1", False),
        ],
    )
    def test_a_node_may_report_each_of_its_names(
        self, node: str, reported_name: str, may: bool
    ) -> None:
        """Two nodes have the name ``ib`` in networks of their own; ``n4`` is not known."""
        further = {"n1": ["one.site", "ib.rack1", "n1.far.net"], "n2": ["two", "ib.rack2"]}
        names = HostNames(further, hosts=["n1", "n2", "n3"], domain="site")
        assert names.accepts(node, reported_name) is may

    @pytest.mark.fault("rank-reported-twice")
    @pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
    def test_a_rank_that_reports_twice_is_invalid(self, injected: bool) -> None:
        """The number of reports is right."""
        entries = [
            {"rank": rank, "host": host, "cpus": cpus, "memory": "default"}
            for rank, (host, cpus) in enumerate(self.RIGHT)
        ]
        if injected:
            entries[3] = entries[0]
        reason = binding_error(self.step(), NODES, read_binding(entries))
        assert reason == ("rank 0 reported its binding 2 times" if injected else "")

    @pytest.mark.parametrize("rank", [-1, 4, 10**9])
    def test_a_rank_that_was_not_planned_is_invalid(self, rank: int) -> None:
        entries = [
            {"rank": number, "host": host, "cpus": cpus, "memory": "default"}
            for number, (host, cpus) in zip([0, 1, 2, rank], self.RIGHT, strict=True)
        ]
        reason = binding_error(self.step(), NODES, read_binding(entries))
        assert reason == f"rank {rank} is not one of the 4 planned ranks"

    @pytest.mark.parametrize("host", ["n3", "other", "n", "n11"])
    def test_hosts_are_compared_without_a_planned_binding(self, host: str) -> None:
        step = self.step(cpus=[])
        assert binding_error(step, NODES, reported([("n1", "0-1")], "default")) == ""
        reason = binding_error(step, NODES, reported([("n1", "0-1"), (host, "0-1")], "default"))
        assert reason == f"ran on {host}, planned on n[1-2]"

    @pytest.mark.parametrize(
        ("memory", "right"),
        [("bind:1", True), ("bind:0-1", False), ("prefer:1", False), ("", False)],
    )
    def test_memory_must_come_from_the_planned_domains(self, memory: str, right: bool) -> None:
        assert (self.error(self.RIGHT, memory=memory, membind=[1]) == "") is right
        assert self.error(self.RIGHT, memory=memory) == ""  # without planned domains

    @pytest.mark.parametrize(
        ("reports", "reason"),
        [
            ([(0, "4"), (1, "6"), (0, "4")], ""),
            ([(0, "4"), (1, "4")], "thread 1 ran on CPUs 4, planned on 6"),
            ([(0, "4-6"), (1, "6")], "thread 0 ran on CPUs 4-6, planned on 4"),
            ([(0, "4")], "1 of 2 threads reported their CPU"),
            ([], "0 of 2 threads reported their CPU"),
            ([(0, "4"), (1, "6"), (2, "4")], "thread 2 is not one of the 2 planned threads"),
        ],
    )
    def test_each_thread_must_be_on_its_planned_cpu(
        self, reports: list[tuple[int, str]], reason: str
    ) -> None:
        step = self.step("threads", cpus=[RankCpus(0, (4, 6))])
        assert binding_error(step, NODES, reported([("n1", "4,6")], "default", reports)) == reason

    def test_virtual_nodes_are_compared_with_the_host_cpu_map(self) -> None:
        table = (0, 0, 1)
        step = self.step(cpus=[RankCpus(0, (0, 1)), RankCpus(1, (4,))], membind=[3])
        assert host_rank_cpus(step, table) == [(0, (0, 0)), (1, (1,))]
        assert host_numa_domains(step, table) == [0]
        right = reported([("n1", "0"), ("n2", "1")], "bind:0")
        assert binding_error(step, NODES, right, table) == ""
        wrong = reported([("n1", "0"), ("n2", "0")], "bind:0")
        assert binding_error(step, NODES, wrong, table) == "rank 1 ran on CPUs 0, planned on 1"


def make_plan_of(launch: str) -> Plan:
    with tempfile.TemporaryDirectory() as folder:
        kit = make_kit(Path(folder))
        kit.case(launch=launch, sweep={"size": 1})
        return kit.plan()


def test_a_binding_without_a_memory_policy_is_read() -> None:
    report = read_binding([{"rank": 0, "host": "n", "cpus": "0-1"}])
    assert report == BindingReport(["n"], [RankReport(0, RankCpus(0, (0, 1)), "")], [])


def test_host_cpus_are_for_virtual_nodes_only() -> None:
    facts: dict[str, Any] = {
        "environment": "local",
        "scheduler": "none",
        "provision_from": "system",
        "scratch": {"path": "/s"},
        "host_cpus": [0, 1],
    }
    assert Partition(**facts, origin="emulated").host_cpus
    with pytest.raises(ValidationError, match="only where origin is emulated"):
        Partition(**facts)


def step_of(launch: str = "mpi", **changes: Any) -> Step:
    """Return a step of a rank on CPU 0 of its first node, and one on CPU 1 of its second."""
    (step,) = make_plan_of(launch).steps()
    cpus = [RankCpus(0, (0,)), RankCpus(1, (1,))]
    return step.model_copy(update={"nodes": list(BOTH), "cpus": cpus, **changes})


def written(*entries: str) -> bytes:
    """Return the entries as step.sh writes them."""
    return ("[\n" + "\n,".join(entries) + "\n]\n").encode()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that gets each binding that is read, because it is not in the cache."""
    made: list[object] = []

    def recorded(entries: Any) -> Any:
        made.append(entries)
        return read_binding(entries)

    monkeypatch.setattr(binding, "read_binding", recorded)
    return made


class TestCache:
    def test_like_bindings_of_other_nodes_are_read_once(self, reads: list[object]) -> None:
        check = BindingCheck(step_of(), None)
        for nodes in (BOTH, ("n3", "n4"), ("x1.site", "x2.site")):
            names = [node.partition(".")[0] for node in nodes]
            text = written(FIRST.replace("n1", names[0]), SECOND.replace("n2", names[1]))
            assert check.invalid_reason(nodes, text) == ""
        assert len(reads) == 1

    def test_the_order_of_the_ranks_is_irrelevant(self, reads: list[object]) -> None:
        check = BindingCheck(step_of(), None)
        assert check.invalid_reason(BOTH, written(FIRST, SECOND)) == ""
        assert check.invalid_reason(BOTH, written(SECOND, FIRST)) == ""
        assert len(reads) == 1

    def test_a_wrong_binding_is_reported_each_time(self, reads: list[object]) -> None:
        check = BindingCheck(step_of(), None)
        for _ in range(3):
            reason = check.invalid_reason(BOTH, written(FIRST, SECOND.replace('"1"', '"0"')))
            assert reason == "rank 1 ran on CPUs 0, planned on 1"
        assert len(reads) == 3

    def test_a_full_cache_takes_no_further_binding(
        self, reads: list[object], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A binding has two keys."""
        monkeypatch.setattr(binding, "_CACHE_SIZE", 2)
        check = BindingCheck(step_of(cpus=[]), None)
        for _ in range(2):
            assert check.invalid_reason(["n1"], written(FIRST)) == ""
        assert len(reads) == 1
        for _ in range(2):
            assert check.invalid_reason(["n2"], written(SECOND)) == ""
        assert len(reads) == 3

    def test_an_alias_of_one_node_is_not_accepted_for_another(self) -> None:
        check = BindingCheck(step_of(cpus=[]), None, HostNames({"n1": ["ib1"]}))
        text = written(FIRST.replace("n1", "ib1"))
        assert check.invalid_reason(["n1"], text) == ""
        assert check.invalid_reason(["n2"], text) == "ran on ib1, planned on n2"

    @pytest.mark.parametrize("hosts", [["n1"], ["n1", "n2"]])
    def test_a_name_within_another_text_is_not_cached(self, hosts: Sequence[str]) -> None:
        check = BindingCheck(step_of(cpus=[]), None)
        text = written(FIRST.replace("n1", "n1.site"), *([SECOND] if len(hosts) > 1 else []))
        assert check.invalid_reason(hosts, text) == ""
        others = ["n3", *hosts[1:]]
        assert check.invalid_reason(others, text).startswith("ran on n1.site, planned on n")
        longer = written(FIRST.replace("n1", "n1x"))
        assert check.invalid_reason(hosts, longer).startswith("ran on n1x, planned on n")

    def test_a_name_that_looks_like_a_place_is_not_accepted(self) -> None:
        """The cache has ``@0`` in the place of the first host."""
        check = BindingCheck(step_of(cpus=[]), None)
        assert check.invalid_reason(["n1"], written(FIRST)) == ""
        reason = check.invalid_reason(["n1"], written(FIRST.replace("n1", "@0")))
        assert reason.startswith("binding.json is damaged: ")

    @pytest.mark.parametrize(
        ("head", "tail", "valid"),
        [
            ("[\n{", "\n\n]]", False),
            ("{\n[", "}\n]\n", False),
            ("[\n ", "}\n]\n", False),
            ("[\n{", "}\n\n]\n", True),
            ("[\n\n{", "}\n]\n", True),
        ],
    )
    def test_damage_is_found_although_the_whole_file_is_cached(
        self, head: str, tail: str, valid: bool
    ) -> None:
        check = BindingCheck(step_of(), None)
        good = written(FIRST, SECOND)
        assert check.invalid_reason(BOTH, good) == ""
        other = f"{head}{good.decode()[3:-4]}{tail}"
        reason = check.invalid_reason(BOTH, other.encode())
        assert reason.partition(": ")[0] == ("" if valid else "binding.json is damaged")

    def test_entries_with_lists_are_not_divided(self) -> None:
        """Parts of one entry in another order are damage, not another order of entries."""
        check = BindingCheck(step_of(cpus=[RankCpus(0, (0,))]), None)
        parts = (f'{FIRST[:-1]}, "more": [{{"x": 1}}', '{"x": 2}]}')
        assert check.invalid_reason(["n1"], written(*parts)) == ""
        reason = check.invalid_reason(["n1"], written(*reversed(parts)))
        assert reason.startswith("binding.json is damaged: ")

    def test_a_missing_name_is_damage(self) -> None:
        check = BindingCheck(step_of(cpus=[]), None)
        assert check.invalid_reason(["n1"], written(FIRST)) == ""
        reason = check.invalid_reason(["n1"], written(FIRST.replace('"n1"', "")))
        assert reason.startswith("binding.json is damaged: ")

    def test_without_declared_names_each_node_has_its_own(self) -> None:
        assert BindingCheck(step_of(), None).names.wrong_host(BOTH, ["n2"]) == ""


class TestThreads:
    def error(
        self, reports: Sequence[tuple[int, str]], cpus: tuple[int, ...], launch: str = "threads"
    ) -> str:
        """Return the error of one rank on n1 whose threads report their CPUs."""
        listed = ",".join(map(str, cpus))
        entries: list[dict[str, object]] = [{"rank": 0, "host": "n1", "cpus": listed}]
        entries += [{"thread": thread, "host": "n1", "cpus": text} for thread, text in reports]
        step = step_of(launch, cpus=[RankCpus(0, cpus)])
        return BindingCheck(step, None).invalid_reason(["n1"], json.dumps(entries).encode())

    @pytest.mark.fault("negative-thread")
    @pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
    def test_a_thread_with_a_negative_number_is_invalid(self, injected: bool) -> None:
        reports = [(0, "4"), (-1 if injected else 1, "6")]
        expected = "thread -1 is not one of the 2 planned threads" if injected else ""
        assert self.error(reports, (4, 6)) == expected

    def test_a_single_thread_need_not_report(self) -> None:
        assert self.error([], (4,)) == ""
        assert self.error([(0, "9")], (4,)) == ""
        assert self.error([], (4, 6)) == "0 of 2 threads reported their CPU"

    def test_only_a_program_of_threads_must_report_them(self) -> None:
        assert self.error([], (4, 6), "mpi") == ""

    @pytest.mark.parametrize(
        ("reports", "reason"),
        [
            ([(0, "4"), (1, "6"), (1, "7"), (2, "8")], "thread 1 ran on CPUs 7, planned on 6"),
            ([(0, "4"), (0, "4-5"), (1, "6"), (2, "8")], "thread 0 ran on CPUs 4-5, planned on 4"),
            ([(1, "6"), (2, "8")], "2 of 3 threads reported their CPU"),
            ([(2, "8"), (1, "6"), (0, "4")], ""),
        ],
    )
    def test_each_report_of_a_thread_counts(
        self, reports: Sequence[tuple[int, str]], reason: str
    ) -> None:
        assert self.error(reports, (4, 6, 8)) == reason


class TestRanks:
    def error(self, entries: Sequence[dict[str, object]], **changes: Any) -> str:
        check = BindingCheck(step_of(**changes), None)
        return check.invalid_reason(BOTH, json.dumps(list(entries)).encode())

    def rank(self, rank: int, host: str, cpus: str, memory: str = "default") -> dict[str, object]:
        return {"rank": rank, "host": host, "cpus": cpus, "memory": memory}

    @pytest.mark.fault("unreadable-memory-policy")
    @pytest.mark.parametrize(
        ("memory", "shown"),
        [
            ("bind:3", ""),
            ("bind:x", "bind:x"),
            ("bind:", "bind:"),
            ("bind:2", "bind:2"),
            ("bind:3,4", "bind:3,4"),
            ("prefer:3", "prefer:3"),
            ("", "unknown"),
        ],
    )
    def test_memory_of_other_domains_is_invalid(self, memory: str, shown: str) -> None:
        entries = [self.rank(0, "n1", "0", memory), self.rank(1, "n2", "1", "bind:3")]
        expected = f"rank 0 had the memory policy {shown}, planned bind:3" if shown else ""
        assert self.error(entries, membind=[3]) == expected

    def test_the_lowest_repeated_rank_is_named(self) -> None:
        entries = [self.rank(rank, "n1", "0") for rank in (1, 0, 1, 0, 0)]
        assert self.error(entries) == "rank 0 reported its binding 3 times"

    def test_a_repeated_rank_is_wrong_without_a_planned_binding(self) -> None:
        entries = [self.rank(0, "n1", "0"), self.rank(0, "n1", "0")]
        assert self.error(entries, cpus=[]) == "rank 0 reported its binding 2 times"

    def test_the_lowest_wrong_rank_is_named(self) -> None:
        """The entries are in the order in which the ranks wrote them."""
        entries = [self.rank(1, "n2", "5"), self.rank(0, "n1", "7")]
        assert self.error(entries) == "rank 0 ran on CPUs 7, planned on 0"

    def test_planned_cpus_and_domains_are_listed_in_order(self) -> None:
        cpus = [RankCpus(0, (10, 2, 2)), RankCpus(1, (1,))]
        entries = [self.rank(0, "n1", "3"), self.rank(1, "n2", "1")]
        assert self.error(entries, cpus=cpus) == "rank 0 ran on CPUs 3, planned on 2,10"
        entries = [self.rank(0, "n1", "2,10"), self.rank(1, "n2", "1")]
        reason = self.error(entries, cpus=cpus, membind=[10, 2])
        assert reason == "rank 0 had the memory policy default, planned bind:2,10"
