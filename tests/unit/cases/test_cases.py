"""Case files and suites: refused files, names that refer to others, and one file as a benchmark."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.kit import FAKE, Kit
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import ROOT

from proofmark.cases.loading import load_benchmarks
from proofmark.common.errors import BadInput
from proofmark.common.expressions import render

SOURCE: dict[str, Any] = {"metric": "rate", "kind": "floor", "source": "s", "at_least": 0.5}


def refusal(kit: Kit) -> str:
    with pytest.raises(BadInput) as error:
        kit.benchmarks()
    return str(error.value)


def test_the_kits_cases_are_valid() -> None:
    benchmarks = shipped_benchmarks()
    assert {"hpcc", "imb-pingpong", "imb-collectives", "fio-cache"} <= set(
        benchmarks.members("quick")
    )
    assert {"quick", "rehearsal"} <= set(benchmarks.suites)


def test_btio_runs_the_programs_that_the_recipe_builds() -> None:
    recipe = ROOT / "spack-repo/spack_repo/proofmark/packages/npb/package.py"
    (built,) = (
        ast.literal_eval(line.value)
        for line in ast.parse(recipe.read_text()).body
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "PROGRAMS"
    )
    case = shipped_benchmarks().case("npb-btio")
    for subtype, end in built.items():
        names = {"class_": "A", "subtype": subtype}
        program = render(case.program, names, file="npb-btio.yml", key="program")
        assert program == f"bt.A.x.{end}"


def test_a_case_joins_its_suites_and_its_id_is_its_file(kit: Kit) -> None:
    kit.case("other", suites={})
    assert list(kit.benchmarks().cases) == ["fake", "other"]
    assert list(kit.benchmarks().members("quick")) == ["fake"]


@pytest.mark.fault("unknown-case")
def test_an_unknown_case_is_refused_with_the_nearest(kit: Kit) -> None:
    assert kit.benchmarks().case("fake").title == "Fake"
    with pytest.raises(BadInput, match="benchmarks: case: found unknown case 'fke', did you mean"):
        kit.benchmarks().case("fke")


@pytest.mark.fault("unknown-suite")
def test_an_unknown_suite_is_refused_with_the_nearest(kit: Kit) -> None:
    assert kit.benchmarks().suite("quick").title == "Quick"
    with pytest.raises(BadInput, match=r"suites\.yml: suite: .*'quik', did you mean 'quick'\?"):
        kit.benchmarks().suite("quik")


@pytest.mark.fault("unknown-key")
def test_an_unknown_key_is_refused_with_file_line_and_the_nearest(kit: Kit) -> None:
    kit.benchmarks()
    path = kit.case(lanch="mpi")
    line = path.read_text(encoding="utf-8").splitlines().index("lanch: mpi") + 1
    assert f"{path}:{line}: lanch: found unknown key, did you mean 'launch'?" in refusal(kit)


@pytest.mark.parametrize(
    ("expression", "found", "accepted"),
    [
        ("{max2(cores)}", "'max2', which is not defined, did you mean 'max'?", "max, floor"),
        ("{cores", "'{cores'", "a closing brace for each opening one"),
        ("{cores +}", "'cores +' (invalid syntax)", "an expression in braces"),
    ],
)
def test_an_expression_that_no_machine_can_compute_is_refused(
    kit: Kit, expression: str, found: str, accepted: str
) -> None:
    """An unclosed brace was a text, and the others made each suite of the case idle."""
    path = kit.case(let={"size": expression})
    said = refusal(kit)
    line = path.read_text(encoding="utf-8").splitlines().index(f"  size: '{expression}'") + 1
    assert said.startswith(f"{path}:{line}: let.size: found {found}; accepted: ")
    assert accepted in said.partition("accepted")[2]
    kit.case(let={"size": "{max(cores, 2)}"})  # the control
    kit.benchmarks()


@pytest.mark.parametrize("name", ["other.yaml", "Other.yml", "an other.yml"])
def test_a_file_whose_name_is_no_name_of_a_case_is_refused(kit: Kit, name: str) -> None:
    path = kit.case("other", suites={})
    kit.benchmarks()
    path.rename(path.with_name(name))
    assert f"{name}: found the name {name!r}; accepted: a name of a-z, 0-9 and -" in refusal(kit)


def test_mistakes_of_several_files_are_named_together(kit: Kit) -> None:
    kit.case("one", lanch="mpi")
    kit.case("two", drop=["title"])
    message = refusal(kit)
    assert "one.yml" in message
    assert "two.yml" in message


def test_an_unreadable_file_causes_no_mistakes_in_other_files(kit: Kit) -> None:
    kit.case("borrower", read={"same_as": "fake"})
    kit.case("fake", lanch="mpi")
    assert "borrower.yml" not in refusal(kit)
    (kit.cases / "suites.yml").unlink()
    kit.case("fake")
    assert refusal(kit).startswith(f"{kit.cases}/suites.yml: found No such file")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sweep": {"sise": 1}}, "sweep.sise: found an axis that nothing uses: 'sise', did you"),
        (
            {"suites": {"quick": {"sweep": {"sise": 1}}}},
            "suites.quick.sweep.sise: found an axis that nothing uses: 'sise', did you mean 'size'",
        ),
        (
            {"suites": {"quik": {}}},
            "suites.quik: found unknown suite 'quik', did you mean 'quick'",
        ),
        (
            {"read": {"same_as": "fak"}},
            "read.same_as: found a case without rules in its key read:",
        ),
        ({"metrics": {}}, "metrics: found no key for a metric that is read: 'rate'"),
        ({"launch": "ssh"}, "launch: found 'ssh'; accepted: mpi, threads, process, counted"),
        ({"cost": {}}, "cost.seconds: found nothing"),
        ({"cost": {"seconds": float("inf")}}, "cost.seconds: found inf; accepted: "),
        ({"inputs": {"a/b": "x"}}, "inputs.a/b: found 'a/b'"),
        ({"inputs": {"run.sh": "x"}}, "inputs.run.sh: found 'x'; accepted: another name"),
        ({"inputs": {"stdout": "x"}}, "inputs.stdout: found 'x'; accepted: another name"),
        ({"output": "rc"}, "output: found 'rc'; accepted: another name"),
        ({"environment": {"A B": 1}}, "environment.A B: found 'A B'"),
        ({"sweep": {"ranks": {"cores": None}}}, "sweep.ranks: found {cores} without quotes"),
    ],
)
def test_a_case_that_cannot_work_is_refused(
    kit: Kit, changes: dict[str, Any], expected: str
) -> None:
    kit.case(**changes)
    assert expected in refusal(kit)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({}, "exactly one of value, against and rule"),
        ({"value": 1, "against": {"metric": "rate"}}, "exactly one of value, against and rule"),
        ({"value": 1, "at_least": None}, "at_least, at_most or both"),
        (
            {"value": 1, "kind": "expected"},
            "system: found nothing; accepted: a system if kind is expected and rule is no",
        ),
        ({"value": float("nan")}, "references.0.value: found nan"),
        ({"value": 0}, "references.0.value: found 0"),
        ({"value": 1, "at_most": -1}, "references.0.at_most: found -1"),
        ({"value": 1, "at_lest": 1}, "did you mean 'at_least'?"),
        ({"value": 1, "metric": "rat"}, "references.0.metric: found unknown metric 'rat', did you"),
        ({"value": 1, "where": {"sise": 1}}, "references.0.where: found unknown parameter 'sise'"),
        ({"against": {"metric": "rte"}}, "references.0.against.metric: found unknown metric 'rte'"),
        ({"against": {"metric": "rate", "case": "fak"}}, "against.case: found unknown case 'fak'"),
        ({"against": {"metric": "rate", "where": {"x": 1}}}, "against.where: found unknown param"),
        (
            {"against": {"metric": "rate", "times": "{rnks}"}},
            "times: found unknown parameter",
        ),
        ({"against": {"metric": "rate", "times": "ranks"}}, "against.times: found 'ranks'"),
    ],
)
def test_a_reference_that_could_never_judge_is_refused(
    kit: Kit, reference: dict[str, Any], expected: str
) -> None:
    kit.case(references=[{**SOURCE, **reference}])
    assert expected in refusal(kit)


@pytest.mark.parametrize(
    "reference",
    [
        {"value": 1},
        {"value": 1, "where": {"size": 2, "benchmark": "FAKE", "placement": "close", "ranks": 4}},
        {"against": {"metric": "rate", "where": {"size": 1}, "times": "{max(size, ranks)}"}},
        {"against": {"metric": "rate", "case": "other"}},
    ],
)
def test_a_reference_by_parameters_of_results_is_accepted(
    kit: Kit, reference: dict[str, Any]
) -> None:
    kit.case("other", read={"same_as": "fake"})
    kit.case(references=[{**SOURCE, **reference}])
    assert kit.benchmarks().case("fake").references


def test_same_as_uses_the_reader_of_the_other_case(kit: Kit) -> None:
    kit.case("other", read={"same_as": "fake"})
    benchmarks = kit.benchmarks()
    assert benchmarks.case("other").read == benchmarks.case("fake").read


@pytest.mark.parametrize("source", ["hpcc", "fio-cache"])
def test_copying_a_file_makes_a_new_benchmark(tmp_path: Path, source: str) -> None:
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks")
    folder = tmp_path / "benchmarks"
    shutil.copy(folder / f"{source}.yml", folder / "brand-new.yml")
    benchmarks = load_benchmarks(folder)
    copy, origin = benchmarks.case("brand-new"), benchmarks.case(source)
    uses = {name: use for name, use in origin.suites.items() if name != source}
    assert copy.suites == {**uses, "brand-new": origin.suites[source]}
    assert copy.model_copy(update={"suites": origin.suites}) == origin
    assert "brand-new" in benchmarks.members("quick")


def test_the_fake_case_is_unchanged_by_yaml(kit: Kit) -> None:
    text = (kit.cases / "fake.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text) == FAKE


def test_a_case_is_a_suite_of_its_own_with_the_uses_of_an_acceptance(kit: Kit) -> None:
    benchmarks = kit.benchmarks()
    assert "fake" not in benchmarks.suites and "fake" not in benchmarks.listed()
    assert [*benchmarks.members("fake")] == ["fake"]
    uses = benchmarks.case("fake").suites
    assert uses["fake"] == uses["quick"]
    assert benchmarks.suite("fake").required_metrics == []
