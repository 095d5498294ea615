"""Plans: the expansion of sweeps, costs, digests, and refused cases."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import FAKE, Kit, item, make_kit

from proofmark.common.errors import BadInput
from proofmark.plan.expansion import content_digest
from proofmark.plan.plan import Plan, Step

LIMIT: dict[str, Any] = {
    **{"case": "fake", "metric": "rate", "source": "s"},
    **{"value": 1, "unit": "MB/s", "at_least": 1},
}


def steps(kit: Kit, **changes: Any) -> list[Step]:
    kit.case(**changes)
    return list(kit.plan().steps())


def refusal(kit: Kit, **changes: Any) -> str:
    kit.case(**changes)
    with pytest.raises(BadInput) as error:
        kit.plan()
    return str(error.value).replace(f"{kit.folder}/", "")


class TestExpansion:
    def test_the_last_axis_varies_fastest_and_the_suite_replaces_an_axis(self, kit: Kit) -> None:
        found = steps(
            kit,
            sweep={"tasks": [1, 2], "size": [7, 8, 9]},
            arguments=["{tasks}", "{size}"],
            suites={"quick": {"sweep": {"size": [3, "{cores + 2}"]}}},
        )
        assert [step.arguments for step in found] == [
            ["1", "3"],
            ["1", "4"],
            ["2", "3"],
            ["2", "4"],
        ]

    def test_symbolic_axes_use_the_facts_of_the_machine(self, kit: Kit) -> None:
        kit.case(sweep={"size": "{doubling(1, 2 * cores)}"})
        sizes = [[step.parameters["size"] for step in kit.plan(cores=n).steps()] for n in (1, 4)]
        assert sizes == [[1, 2], [1, 2, 4, 8]]

    def test_where_leaves_points_out_and_let_computes_from_earlier_letters(self, kit: Kit) -> None:
        found = steps(
            kit,
            sweep={"size": "{upto(5)}"},
            let={"half": "{size / 2}", "whole": "{half == floor(half)}"},
            where="{whole}",
            inputs={"in.txt": "{half} of {size}\n", "lone": "{size}", "none": "{lines([])}"},
        )
        assert [step.parameters for step in found] == [{"size": 2}, {"size": 4}]
        assert [step.derived["half"] for step in found] == [1, 2]
        assert found[1].inputs == {"in.txt": "2.0 of 4\n", "lone": "4"}

    def test_ids_are_numbered_and_name_what_varies(self, kit: Kit) -> None:
        kit.case("other", sweep={"size": 1})
        found = [step.id for step in kit.plan().steps()]
        assert found == ["0001-fake-1", "0002-fake-2", "0003-other"]

    def test_ids_are_unique_and_safe_as_names_of_folders(self, kit: Kit) -> None:
        found = steps(kit, sweep={"size": ["../x", "a b", "'\"$(id)", "x" * 200, "é"]})
        names = [step.id for step in found]
        assert len(set(names)) == 5
        assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for name in names)
        assert max(map(len, names)) <= 100

    def test_repeats_come_one_after_another(self, kit: Kit) -> None:
        kit.suites(quick={"title": "Quick", "repeats": 2})
        found = [(step.repeat, step.parameters["size"]) for step in kit.plan().steps()]
        assert found == [(1, 1), (1, 2), (2, 1), (2, 2)]

    def test_repeats_of_a_use_run_one_after_another_in_each_repeat_of_the_suite(
        self, kit: Kit
    ) -> None:
        kit.suites(quick={"title": "Quick", "repeats": 2})
        kit.case("other", sweep={"size": 7})
        kit.case(suites={"quick": {"repeats": 2}})
        found = [(each.case, each.repeat, each.parameters["size"]) for each in kit.plan().steps()]
        once = [("fake", 1, 1), ("fake", 1, 2), ("fake", 2, 1), ("fake", 2, 2), ("other", 1, 7)]
        again = [("fake", 3, 1), ("fake", 3, 2), ("fake", 4, 1), ("fake", 4, 2), ("other", 2, 7)]
        assert found == once + again

    def test_a_keyword_of_python_is_an_axis_with_an_underscore(self, kit: Kit) -> None:
        found = steps(kit, sweep={"class_": ["a"], "size": 1}, arguments=["{size}", "{class_}"])
        assert found[0].parameters == {"size": 1, "class": "a"}

    def test_ranks_get_the_cpus_of_their_placement(self, kit: Kit) -> None:
        (found,) = steps(kit, launch="mpi", sweep={"size": 1, "ranks": "{cores}"})
        assert found.cpus == [(0, (0,)), (0, (1,))]
        assert found.placement == "close"

    def test_threads_get_the_cpus_of_one_rank(self, kit: Kit) -> None:
        (found,) = steps(kit, launch="threads", sweep={"size": 1, "threads": 2})
        assert found.cpus == [(0, (0, 1))]

    def test_steps_of_one_set_of_nodes_are_one_job(self, kit: Kit) -> None:
        kit.case("other")
        (group,) = kit.plan().groups
        (job,) = group.jobs
        assert len(job.steps) == 4

    def test_costs_add_up(self, kit: Kit) -> None:
        kit.case(cost={"seconds": "{60 * size}", "bytes": "{size * GiB}"})
        totals = kit.plan().totals
        assert (totals.wall_s, totals.node_hours, totals.jobs, totals.steps) == (180, 0.05, 1, 2)
        assert (totals.bytes, totals.scratch_peak_bytes) == (3 << 30, 2 << 30)

    def test_the_default_time_limit_is_ten_times_the_cost_plus_a_minute(self, kit: Kit) -> None:
        assert [step.timeout for step in steps(kit, cost={"seconds": 6})] == [120, 120]
        assert [step.timeout for step in steps(kit, timeout="{10 * size}")] == [10, 20]


class TestRefusals:
    @pytest.mark.fault("empty-sweep")
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            (
                {"sweep": {"size": "{doubling(8, 4)}"}},
                "fake.yml: sweep.size: found '{doubling(8, 4)}', which gives no point",
            ),
            (
                {"suites": {"quick": {"sweep": {"size": []}}}},
                "fake.yml: suites.quick.sweep.size: found [], which gives no point",
            ),
            (
                {"where": "{size > 2}"},
                "fake.yml: where: found a condition that no point of the sweep of quick satisfies",
            ),
        ],
    )
    def test_a_sweep_that_expands_to_nothing(
        self, kit: Kit, changes: dict[str, Any], expected: str
    ) -> None:
        assert len(steps(kit)) == 2
        assert refusal(kit, **changes).startswith(f"benchmarks/{expected}")

    @pytest.mark.fault("placement-too-large")
    @pytest.mark.parametrize(
        ("launch", "sweep", "needs", "holds"),
        [
            ("mpi", {"ranks": 3}, "3 ranks × 1 thread", "at most 2 ranks × 1 thread"),
            ("threads", {"threads": 3}, "1 rank × 3 threads", "ranks of at most 2 threads"),
        ],
    )
    def test_a_placement_that_the_machine_cannot_hold(
        self, kit: Kit, launch: str, sweep: dict[str, int], needs: str, holds: str
    ) -> None:
        message = refusal(kit, launch=launch, sweep={"size": 1, **sweep})
        expected = "benchmarks/fake.yml: placement close: found a request for "
        assert message.startswith(f"{expected}{needs}")
        assert f"; accepted: {holds}" in message
        assert kit.plan(cores=3).totals.steps == 1

    def test_a_suite_that_no_case_joins(self, kit: Kit) -> None:
        assert "quick: found a suite that no case joins" in refusal(kit, suites={})

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"where": "size > 1"}, "where: found 'size > 1'; accepted: a comparison in braces"),
            ({"where": "{size}"}, "where: found '{size}'; accepted: a comparison in braces"),
            (
                {"sweep": {"size": 1, "ranks": "two"}},
                "sweep.ranks: found 'two'; accepted: a number",
            ),
            (
                {"sweep": {"size": 1, "ranks": 1.5}},
                "sweep.ranks: found 1.5; accepted: a whole numb",
            ),
            ({"sweep": {"size": 1, "ranks": 0}}, "sweep.ranks: found 0; accepted: a number from 1"),
            ({"sweep": {"size": 1, "nodes": 0}}, "sweep.nodes: found 0; accepted: a number from 1"),
            ({"sweep": {"size": 1, "nodes": 2}}, "sweep.nodes: found 2 nodes; accepted: at most 1"),
            ({"cost": {"seconds": "a"}}, "cost.seconds: found 'a'; accepted: a number from 0"),
            ({"cost": {"seconds": "{-size}"}}, "cost.seconds: found -1; accepted: a number from 0"),
            ({"cost": {"seconds": 1, "bytes": 0.5}}, "cost.bytes: found 0.5; accepted: a whole"),
            ({"timeout": 0}, "timeout: found 0; accepted: a number from 1"),
            ({"arguments": ["{size}", "{sise}"]}, "arguments: found 'sise'"),
            ({"let": {"a": "{b}"}}, "let.a: found 'b'"),
            (
                {"launch": "threads", "sweep": {"size": 1, "ranks": 2}},
                "sweep.ranks: found 2 ranks; accepted: 1: the case has threads, not ranks",
            ),
            (
                {"launch": "mpi", "sweep": {"size": 1, "placement": "cloze"}},
                "placement: found 'cloze', did you mean 'close'?",
            ),
        ],
    )
    def test_what_cannot_be_computed_or_run(
        self, kit: Kit, changes: dict[str, Any], expected: str
    ) -> None:
        assert refusal(kit, **changes).startswith(f"benchmarks/fake.yml: {expected}")

    @pytest.mark.parametrize(
        ("wrong", "expected"),
        [
            ({"case": "fke"}, "items.0.case: found unknown case 'fke', did you mean"),
            ({"metric": "rat"}, "items.0.metric: found unknown metric 'rat', did you"),
            ({"where": {"x": 1}}, "items.0.where: found unknown parameter 'x'"),
            (
                {"unit": None},
                "items.0.unit: found no unit of the value; accepted: a unit",
            ),
            (
                {"unit": "us"},
                "items.0.unit: found us; accepted: a unit that converts to",
            ),
            (
                {"at_least": None, "at_most": 1},
                "items.0: found only at_most, and higher values of rate are better; "
                "accepted: at_least",
            ),
        ],
    )
    def test_a_contract_limit_that_applies_to_no_result(
        self, kit: Kit, wrong: dict[str, Any], expected: str
    ) -> None:
        kit.plan(site=kit.site([item(**LIMIT)]))
        with pytest.raises(BadInput) as error:
            kit.plan(site=kit.site([item(**{**LIMIT, **wrong})]))
        assert str(error.value).startswith(f"inventory/here/contract.yml: {expected}")


class TestDigest:
    def test_it_does_not_depend_on_where_the_checkout_is(self, tmp_path: Path) -> None:
        digests = set()
        for name in ("here", "there"):
            kit = make_kit(tmp_path / name)
            site = make_kit(tmp_path / name / "same").site()
            moved = site.model_copy(
                update={
                    "partition": site.partition.model_copy(
                        update={"scratch": site.partition.scratch.model_copy(update={"path": "/s"})}
                    )
                }
            )
            digests.add(kit.plan(site=moved).digest)
        assert len(digests) == 1

    @given(st.randoms(use_true_random=False))
    def test_it_does_not_depend_on_the_order_of_keys(self, order: random.Random) -> None:
        content = {"b": [1, {"d": 1, "c": None}], "a": {"x": 1.5, "y": "é"}, "c": 3}
        assert content_digest(shuffled(content, order)) == content_digest(content)

    def test_it_does_not_depend_on_the_order_of_keys_in_a_file(self, kit: Kit) -> None:
        digest = kit.plan().digest
        path = kit.cases / "fake.yml"
        backwards = dict(reversed(FAKE.items()))
        path.write_text(yaml.safe_dump(backwards, sort_keys=False), encoding="utf-8")
        assert kit.plan().digest == digest

    @pytest.mark.parametrize(
        "changes",
        [
            {"title": "Other"},
            {"arguments": ["{size}", "-x"]},
            {"sweep": {"size": [1, 3]}},
            {"timeout": 5},
            {"references": [{"metric": "rate", "kind": "floor", "source": "s", "value": 1,
                             "at_least": 1}]},
        ],
    )  # fmt: skip
    def test_it_depends_on_the_content_of_a_case(self, kit: Kit, changes: dict[str, Any]) -> None:
        digest = kit.plan().digest
        kit.case(**changes)
        assert kit.plan().digest != digest

    def test_it_depends_on_the_facts_of_the_partition(self, kit: Kit) -> None:
        site = kit.site()
        other = site.partition.model_copy(update={"family_level": 0.02})
        changed = site.model_copy(update={"partition": other})
        assert kit.plan(site=changed).digest != kit.plan(site=site).digest

    def test_it_depends_on_the_contract(self, kit: Kit) -> None:
        """Another limit makes another run: a run keeps the contract that it was sealed with."""
        limited, other = (kit.site([item(**{**LIMIT, "value": value})]) for value in (1, 2))
        digests = {kit.plan(site=site).digest for site in (kit.site(), limited, other)}
        assert len(digests) == 3

    def test_a_plan_survives_its_file(self, kit: Kit) -> None:
        kit.case(launch="mpi", sweep={"size": [1, 1.5, "x"]}, let={"odd": "{size == 1}"})
        plan = kit.plan()
        text = json.dumps(plan.model_dump(mode="json"))
        assert Plan.model_validate_json(text) == plan


def shuffled(content: Any, order: random.Random) -> Any:
    """Return the content with the keys of all dictionaries in another order."""
    if isinstance(content, list):
        return [shuffled(item, order) for item in content]
    if not isinstance(content, dict):
        return content
    keys = list(content)
    order.shuffle(keys)
    return {key: shuffled(content[key], order) for key in keys}
