"""The report lists disturbed executions, and the steps that were not needed."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.fixtures.finished import judged, seal
from tests.fixtures.kit import Kit, carried_out, execution, make_kit, steps_of

from proofmark.common.files import write_atomic
from proofmark.judge.judging import judge_run
from proofmark.report.render import view
from proofmark.report.run_data import gather
from proofmark.report.sections.signed_sheets import next_steps
from proofmark.runs.run import Run

NODE = {
    "host": "n1", "seconds": 4000.0, "rank_seconds": 4000.0, "cpus": 1, "ranks_s": 1640.0,
    "others_s": 2200.0, "steal_s": 0.0, "worst_steal_s": 0.0, "worst_delay_s": 2280.0,
    "burst": 0.6, "burst_others": 0.6, "others": [{"name": "stress", "seconds": 2160.0}],
}  # fmt: skip


def text_of(run: Run) -> str:
    page = view(gather(run, judged(run)))
    return re.sub(r"\s+", " ", json.dumps(page, default=str))


def staged(folder: Path, *, disturbed: bool) -> Run:
    kit: Kit = make_kit(folder)
    kit.case(sweep={"size": 1})
    run = carried_out(kit.run())
    (step,) = steps_of(run)
    if disturbed:
        write_atomic(execution(step) / "noise.json", json.dumps([NODE]))
        seal(execution(step))
    return run


def test_a_disturbed_execution_is_listed_with_its_cause(tmp_path: Path) -> None:
    text = text_of(staged(tmp_path, disturbed=True))
    assert "Disturbed executions" in text
    assert "execution 1: disturbed: the ranks got 41 % of their CPUs; a thread waited 57 %" in text
    assert "other processes: stress (54 % of a CPU)" in text


def test_the_next_step_names_the_processes_and_the_command_of_the_run(tmp_path: Path) -> None:
    run = staged(tmp_path, disturbed=True)
    data = gather(run, judge_run(run))
    (step,) = (each for each in next_steps(data) if each.word == "INVALID")
    assert step.problem == "Figures of fake were disturbed by stress (54 % of a CPU)"
    assert step.action.startswith("Stop ")
    assert step.action.endswith(". Then the same command repeats only the disturbed steps.")
    assert step.command.endswith(f" -e suite=quick -e run_id={run.id}")


def test_an_undisturbed_run_lists_none(tmp_path: Path) -> None:
    assert "Disturbed executions" not in text_of(staged(tmp_path, disturbed=False))
