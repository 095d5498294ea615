"""The plan of suite io: sizes and times, layouts of files and storage targets."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import make_kit
from tests.fixtures.shipped import shipped_benchmarks, shipped_site

from proofmark.common.errors import BadInput
from proofmark.plan.expansion import make_plan
from proofmark.plan.file_layout import FileLayout
from proofmark.plan.plan import Plan
from proofmark.plan.step import Step
from proofmark.site.file_systems import FileSystem, Scratch
from proofmark.site.machines import machines_of

TiB = 1 << 40


@cache
def plan(nodes: int = 132, suite: str = "io", **scratch: Any) -> Plan:
    """Return the plan of a suite on nodes of Nurion's SKL, with further facts of its scratch."""
    site = shipped_site("nurion", "skl")
    kept = site.partition.scratch.model_dump(exclude_unset=True)
    # A tuple can be a key of the cache, and is a list in an inventory.
    facts = {key: list(value) if type(value) is tuple else value for key, value in scratch.items()}
    partition = site.partition.model_copy(update={"scratch": Scratch(**{**kept, **facts})})
    site = site.model_copy(update={"partition": partition, "hosts": site.hosts[:nodes]})
    machines, _ = machines_of(site)
    return make_plan(shipped_benchmarks(), suite, site, machines)


def steps(made: Plan, test: str, case: str = "ior-easy") -> list[Step]:
    return [
        each for each in made.steps() if (each.case, each.parameters.get("test")) == (case, test)
    ]


def test_the_file_system_is_measured_from_one_node_to_all() -> None:
    made = plan()
    scaling = [1, 2, 4, 8, 16, 32, 64, 128]
    for case, first in (("ior-easy", 0), ("ior-hard", 1), ("mdtest", 0)):
        assert sorted({len(step.nodes) for step in steps(made, "scaling", case)}) == scaling[first:]
        assert {len(step.nodes) for step in steps(made, "all-nodes", case)} == {132}


def test_a_figure_of_all_nodes_exceeds_the_caches_of_the_servers() -> None:
    """A record whose files have fewer bytes is INVALID (docs/design/validity.md)."""
    made = plan(server_cache_bytes=TiB)
    for case in ("ior-easy", "ior-hard"):
        (step,) = steps(made, "all-nodes", case)
        assert step.writes and step.writes.bytes == TiB
        assert 1.99 * TiB <= step.bytes <= 2 * TiB
    assert "scratch.server_cache_bytes" not in made.assumed
    assert "caches of the servers" in plan().assumed["scratch.server_cache_bytes"]


def test_the_size_is_known_before_the_start() -> None:
    """Twice the memory of the clients, or what their links carry in the time of a measurement."""
    for step in plan().steps():
        if step.case == "ior-easy":
            memory = 2 * 192 * (1 << 30) * len(step.nodes)
            assert step.bytes <= memory * (1 + 1e-6)
            assert f"{step.derived['block_bytes']}" in step.arguments


def test_each_measurement_has_a_time_limit_and_three_iterations() -> None:
    for step in plan().steps():
        if step.case == "mdtest":
            assert step.parameters["iterations"] == 3
        if step.case == "mdtest" or step.parameters["test"] in ("for-other-job", "other-job"):
            continue
        words = step.arguments
        assert {"-D", "stoneWallingWearOut=1"} <= set(words)
        assert ("-C" in words) is (len(step.nodes) > 1 and step.scope == "job")
        verified = step.parameters["test"] == "verified"
        assert ("-R" in words) is ("-W" in words) is verified
        assert words[words.index("-i") + 1] == ("1" if verified else "3")


def test_another_job_on_other_nodes_reads_what_was_written() -> None:
    writing, reading = (steps(plan(), test) for test in ("for-other-job", "other-job"))
    assert len(writing) == len(reading) == 3  # instead of three iterations
    for one, other in zip(writing, reading, strict=True):
        assert (other.reads, one.kept) == (one.id, True)
        assert not set(one.nodes) & set(other.nodes)
        assert one.ranks == other.ranks and one.derived == other.derived
        amount = "stoneWallingStatusFile={scratch}/amount"
        assert amount in one.arguments and amount in other.arguments
        assert ("-w" in one.arguments, "-r" in one.arguments) == (True, False)
        assert ("-w" in other.arguments, "-r" in other.arguments) == (False, True)
        assert "-D" not in other.arguments


def test_a_client_is_measured_while_few_others_are() -> None:
    (step,) = steps(plan(), "client")
    assert (step.scope, len(step.nodes)) == ("each-node", 132)
    assert step.parameters["clients"] == 9  # on average: they start within 16 times the duration
    assert step.stagger == 16 * 45
    assert len(steps(plan(nodes=1), "client")) == 0


def test_the_io_of_all_nodes_at_once_has_their_number() -> None:
    (step,) = [each for each in plan(suite="node").steps() if each.case == "ior"]
    assert (step.scope, step.parameters["clients"]) == ("each-node", 132)


class TestLayouts:
    def test_each_storage_target_of_lustre_is_one_step(self) -> None:
        measured = steps(plan(storage_targets=(0, 1, 5)), "target")
        layouts = [step.layout for step in measured]
        assert layouts == [
            FileLayout(kind="lustre", values={"stripe_count": 1, "storage_target": target})
            for target in (0, 1, 5)
        ]
        assert [step.parameters["storage_target"] for step in measured] == [0, 1, 5]
        assert len(steps(plan(storage_targets=24), "target")) == 24

    def test_without_the_number_of_targets_none_is_compared(self) -> None:
        assert not steps(plan(), "target")
        assert any("storage_targets" in reason for reason in plan().left_out)

    @pytest.mark.parametrize(
        ("targets", "counts"), [(None, {1, 4, 16}), (4, {1, 4}), (24, {1, 4, 16})]
    )
    def test_no_file_needs_more_stripes_than_targets(
        self, targets: int | None, counts: set[int]
    ) -> None:
        made = plan(storage_targets=targets)
        layouts = [step.layout for step in steps(made, "stripes", "ior-hard")]
        assert {layout.values["stripe_count"] for layout in layouts if layout} == counts
        assert {layout.values["stripe_bytes"] for layout in layouts if layout} == {2**20, 2**24}

    @pytest.mark.parametrize("kind", ["gpfs", "nfs4", "ext4"])
    def test_a_file_system_without_stripes_has_no_such_steps(self, kind: str) -> None:
        made = plan(type=kind, storage_targets=4)
        assert not steps(made, "stripes") and not steps(made, "target")
        assert all(step.layout is None for step in made.steps())
        assert any("has no stripe_count" in reason for reason in made.left_out)


class TestAxes:
    """The axes in the sweep of any case."""

    def planned(self, folder: Path, kind: str | None, **axes: Any) -> Plan:
        kit = make_kit(folder)
        kit.case(sweep={"size": 1, **axes})
        site = kit.site()
        scratch = Scratch(path="/scratch", type=kind)
        further = FileSystem(name="striped", path="/other", type="lustre")
        changes = {"scratch": scratch, "file_systems": [further]}
        partition = site.partition.model_copy(update=changes)
        return kit.plan(site=site.model_copy(update={"partition": partition}))

    @pytest.mark.parametrize(
        ("kind", "axis", "reason"),
        [
            ("gpfs", "stripe_count", "stripe_count 4: gpfs; there is: no layout"),
            (None, "stripe_count", "stripe_count 4: the type of the scratch is not declared"),
            ("beegfs", "storage_target", "storage_target 4: beegfs; there is: stripe_count, "),
        ],
    )
    def test_a_layout_that_is_not_possible_is_left_out_with_the_reason(
        self, tmp_path: Path, kind: str | None, axis: str, reason: str
    ) -> None:
        made = self.planned(tmp_path, kind, **{axis: ["default", 4]})
        assert [step.layout for step in made.steps()] == [None]
        (left_out,) = made.left_out
        assert reason in left_out

    def test_the_file_system_of_the_point_decides(self, tmp_path: Path) -> None:
        made = self.planned(tmp_path, "gpfs", stripe_count=4, file_system="striped")
        (step,) = made.steps()
        assert step.layout == FileLayout(kind="lustre", values={"stripe_count": 4})

    @pytest.mark.parametrize(
        ("axis", "value"), [("stripe_count", 0), ("stripe_bytes", "1M"), ("storage_target", -1)]
    )
    def test_a_value_must_be_a_number(self, tmp_path: Path, axis: str, value: Any) -> None:
        with pytest.raises(BadInput, match=rf"sweep\.{axis}: found .*; accepted: default, or "):
            self.planned(tmp_path, "lustre", **{axis: value})
