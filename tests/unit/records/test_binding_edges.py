"""Tests the check of the binding with boundary values, and the cache of its results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.records.test_binding import make_plan_of

from proofmark.plan.plan import Step
from proofmark.plan.rank_cpus import RankCpus
from proofmark.records import binding
from proofmark.records.binding import BindingCheck
from proofmark.records.hosts import HostNames
from proofmark.runs.binding_file import read_binding

FIRST = '{"rank": 0, "host": "n1", "cpus": "0"}'
SECOND = '{"rank": 1, "host": "n2", "cpus": "1"}'
BOTH = ("n1", "n2")


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
