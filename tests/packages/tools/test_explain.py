"""``explain``: each row follows from the plan, the cases, the site or the results."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import written_verdict
from tests.fixtures.kit import examples, item
from tests.fixtures.report_run import made_run
from tests.fixtures.shipped import shipped_benchmarks, shipped_site

from proofmark.cases.suite import Benchmarks
from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.packages.foreign import adopted_outputs
from proofmark.packages.tools import requirements
from proofmark.packages.tools.explain import explain
from proofmark.packages.tools.planned_step import ExplainedRow, Explanation
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import step_named
from proofmark.records import (
    execution_checks,
    measured_step,
    read,
    run_facts,
    step_records,
)
from proofmark.runs.run import Run
from proofmark.runs.start import RunInputs, start_or_continue
from proofmark.site.machines import machines_of

LIMIT = {
    "case": "hpcc",
    "metric": "hpl_rmax",
    "value": 1,
    "unit": "Gflops",
    "at_least": 1,
    "source": "the contract",
}
PLANS = (("nurion", "knl", "p1"), ("nurion", "knl", "tune"), ("example-epyc", "epyc", "node"))
LOCAL = re.compile(r"[a-z]\w*_error|invalid_reason|not_run|read_before|Conditions|StepBounds")
"""The names of checks that a module of the reader has itself."""
KEYS = ("command", "where", "inputs", "needs", "outputs", "references", "conditions", "again")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("explained")
    run = made_run(folder, limits=[item(**LIMIT)])
    written_verdict(run)
    return run


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Runs of shipped suites on shipped inventories; no step has a result."""
    benchmarks: Benchmarks = shipped_benchmarks()
    runs = []
    for name, limit, suite in PLANS:
        site = shipped_site(name, limit)
        machines, probe = machines_of(site)
        made = make_plan(benchmarks, suite, site, machines)
        root = tmp_path_factory.mktemp(suite)
        runs.append(start_or_continue(root, RunInputs(made, benchmarks, site, probe))[0])
    return runs


def rows(found: Explanation, key: str) -> list[ExplainedRow]:
    (section,) = (each for each in found.sections if each.key == key)
    return list(section.rows)


def of_case(run: Run, case: str) -> str:
    return next(step.id for step in run.plan.steps() if step.case == case)


def test_the_references_are_those_that_judged(run: Run) -> None:
    """Each judgement in verdict.json has a row of its kind and metric."""
    step = of_case(run, "hpcc")
    results = json.loads(run.files.verdict.read_text())["results"]
    judged = {
        f"{each['kind']}: {result['metric']}"
        for result in results
        if result["case"] == "hpcc"
        for each in result["references"]
        if each["kind"] in ("contract", "derived", "published")
    }
    shown = {row.name for row in rows(explain(run, step), "references")}
    assert "contract: hpl_rmax" in judged
    assert judged <= shown


def test_a_figure_has_its_value_and_its_verdict(run: Run) -> None:
    found = rows(explain(run, of_case(run, "hpcc")), "results")
    (rmax,) = (row for row in found if row.name.startswith("hpl_rmax"))
    assert "Gflops" in rmax.value
    assert rmax.source.startswith(("PASS", "1 PASS", "FAIL", "1 FAIL"))


def test_an_axis_has_the_sweep_as_its_source(run: Run) -> None:
    found = {row.name: row for row in rows(explain(run, of_case(run, "hpcc")), "inputs")}
    assert found["time limit"].value
    assert "of the case" in found["ranks"].source or "of the suite" in found["ranks"].source


@given(data=st.data())
@examples(0.2)
def test_any_step_of_a_shipped_suite_can_be_explained(planned: list[Run], data: Any) -> None:
    run = data.draw(st.sampled_from(planned))
    step = data.draw(st.sampled_from(list(run.plan.steps())))
    found = explain(run, step.id)
    assert all(rows(found, key) for key in KEYS)
    sources = {row.name: row.source for row in rows(found, "inputs")}
    assert all(sources[name] for name in (*step.recorded, *step.derived))
    assert [row.value for row in rows(found, "results")] == ["waiting"]


def test_a_step_is_found_by_its_number_and_its_beginning(run: Run) -> None:
    steps = list(run.plan.steps())
    step = steps[0]
    for word in (step.id, step.id[:-1]):
        same = [each for each in steps if each.id.startswith(word)]
        if len(same) == 1:
            assert step_named(word, steps, run.id) == step
    with pytest.raises(BadInput, match="did you mean"):
        step_named(f"{step.id}x", steps, run.id)
    with pytest.raises(BadInput, match="ids begin with"):
        step_named("0", steps, run.id)


@pytest.mark.core("the package works")
def test_the_command_takes_a_run_and_a_step_in_three_forms(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    step = of_case(run, "hpcc")
    texts = set()
    for words in (
        [step, "--run", f"{run.folder}"],
        [f"{run.folder}", step],
        [f"{run.folder}/workdir/steps/{step}"],
    ):
        assert main(["explain", *words, "--json"]) == 0
        texts.add(capsys.readouterr().out)
    assert len(texts) == 1
    assert json.loads(texts.pop())["step"] == step
    assert main(["explain", "nothing", "--run", f"{run.folder}"]) == 3


NO_CONDITION = {
    "Disturbance",
    "Executed",
    "ExecutionChecks",
    "Instance",
    "KindReader",
    "MeasuredStep",
    "Numbers",
    "Record",
    "RunFacts",
    "RunParts",
    "run_parts",
    "StepRecords",
    "UNDISTURBED",
    "read_output_file",
    "ValueBounds",
    "NO_VALUE",
    "VIRTUAL",
    "Execution",
    "Measurand",
    "RecordBatch",
    "RecordBuilder",
    "Records",
    "Scalar",
    "intern",
    "spread",
    "bmc_readings",
    "sensor_readings",
    "FILE",
    "file_system_reason",
}
"""Imports of the reader that are no condition, or that only complete the reason of another one."""
READER = (adopted_outputs, execution_checks, measured_step, read, run_facts, step_records)
"""The modules that read and check executions."""
SAME = {"tick_reason": "noise_reason"}
"""Checks that another check replaces for outputs of earlier versions."""


def test_each_check_of_the_reader_is_a_condition() -> None:
    used: set[str] = set()
    for module in READER:
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                if (node.module or "").startswith("proofmark.records."):
                    used |= {name.name for name in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef) and LOCAL.fullmatch(node.name):
                used.add(node.name)
    checks = {SAME.get(name, name) for name in used - NO_CONDITION}
    source = ast.parse(Path(requirements.__file__).read_text(encoding="utf-8"))
    named = {
        node.args[2].value
        for node in ast.walk(source)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Requirement"
        and isinstance(node.args[2], ast.Constant)
    }
    assert checks <= named
    assert named <= checks | {"read_output", "_contradiction"}
