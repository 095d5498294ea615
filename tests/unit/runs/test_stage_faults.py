"""The faults of stages that start no job, and the commands that repeat a play."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from tests.fixtures.report_run import made_run, reported

from proofmark.cli.main import main
from proofmark.common.errors import (
    BadInput,
    InputError,
    NodeFailure,
    note_failed_nodes,
    take_failed_nodes,
)
from proofmark.judge.ending import ending, failed_nodes
from proofmark.judge.headline import SANITY
from proofmark.judge.judging import judge_run
from proofmark.packages.exports.junit import suite_of
from proofmark.runs.journal import Journal
from proofmark.runs.play_variables import acceptance_command, restore_command, write_play_variables
from proofmark.runs.run import Run, enter_mode, open_run, site_of
from proofmark.runs.run_files import RunFiles
from proofmark.runs.stage_faults import LONGEST, MAX_FAULTS_KEPT, noting_faults, read_stage_faults

EACH_STAGE = pytest.mark.rest("one stage of nodes and one of a mode are in make test")
OTHERS = ("unmount", "mode snc4/flat", "scratch", "programs")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run, which no test changes."""
    return made_run(tmp_path_factory.mktemp("original")).folder


@pytest.fixture
def run(tmp_path: Path, original: Path) -> Iterator[Run]:
    """Yield a finished run; no node of an earlier test is noted."""
    take_failed_nodes()
    yield open_run(shutil.copytree(original, tmp_path / original.name, symlinks=True))
    take_failed_nodes()


def kept(run: Run) -> list[tuple[str, str, str, str]]:
    return [(each.stage, each.nodes, each.code, each.text) for each in read_stage_faults(run)]


def test_of_many_faults_the_first_are_kept(tmp_path: Path) -> None:
    with noting_faults(tmp_path, "scratch"):
        for number in range(MAX_FAULTS_KEPT + 2):
            note_failed_nodes({f"n{number}": NodeFailure(f"{number}", "NO_ANSWER")})
    (path,) = RunFiles(tmp_path).stage_faults.iterdir()
    texts = [each["text"] for each in json.loads(path.read_text())]
    assert texts == [f"{number}" for number in range(MAX_FAULTS_KEPT)]
    take_failed_nodes()


def test_a_stage_without_a_fault_has_no_file(run: Run) -> None:
    """Control: no fault is injected."""
    with noting_faults(run.folder, "scratch"):
        pass
    assert kept(run) == [] and not run.files.stage_faults.exists()
    assert "stage_faults" not in judge_run(run).head()


def test_noted_nodes_and_raised_errors_are_kept_until_the_stage_succeeds(run: Run) -> None:
    note_failed_nodes({"localhost": NodeFailure("of an earlier stage", "NO_ANSWER")})
    with noting_faults(run.folder, "mode snc4/flat"):
        note_failed_nodes({"localhost": NodeFailure("by another run", "HELD")})
    mistake = InputError(
        "/scratch", "", "on the root file system", "another one", nodes="localhost"
    )
    coded = InputError(
        "/scratch", "", "no route", "a node that answers", "UNREACHABLE", nodes="localhost"
    )
    whole = InputError("firmware", "ca", "unreadable", "a file")
    with pytest.raises(BadInput), noting_faults(run.folder, "scratch"):
        raise BadInput(mistake, coded, whole)
    assert kept(run) == [
        ("mode snc4/flat", "localhost", "HELD", "by another run"),
        (
            *("scratch", "localhost", "REFUSED"),
            "/scratch: found on the root file system; accepted: another one",
        ),
        ("scratch", "localhost", "UNREACHABLE", "/scratch: no route"),
        ("scratch", "localhost", "REFUSED", "firmware: ca: found unreadable; accepted: a file"),
    ]
    assert take_failed_nodes() == {"localhost": NodeFailure("of an earlier stage", "NO_ANSWER")}
    with noting_faults(run.folder, "scratch"):
        pass
    assert [stage for stage, *_ in kept(run)] == ["mode snc4/flat"]


def test_foreign_texts_are_one_short_line_and_foreign_nodes_are_all_nodes(run: Run) -> None:
    with noting_faults(run.folder, "scratch"):
        note_failed_nodes({"elsewhere": NodeFailure("\x1b[31m" + "x\n" * LONGEST, "DENIED")})
    ((_, nodes, code, text),) = kept(run)
    assert (nodes, code) == ("localhost", "DENIED")
    assert text.isprintable() and len(text) <= LONGEST


def test_a_folder_that_cannot_be_written_does_not_end_a_restore(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run.files.stage_faults.touch()  # a file, where the folder should be
    with noting_faults(run.folder, "restore"):
        note_failed_nodes({"localhost": NodeFailure("no", "DENIED")})
    assert "the run has no copy of these faults" in capsys.readouterr().err
    with noting_faults(run.folder.with_name("removed"), "restore"):
        note_failed_nodes({"localhost": NodeFailure("no", "DENIED")})


@pytest.mark.parametrize("text", ["{", "[{}]", '[{"stage": 1}]'])
def test_a_damaged_file_is_refused(run: Run, text: str) -> None:
    run.files.stage_faults.mkdir()
    (run.files.stage_faults / "scratch.json").write_text(text)
    with pytest.raises(BadInput, match=r"scratch\.json"):
        read_stage_faults(run)


def test_a_fault_is_in_every_form_of_the_verdict(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with noting_faults(run.folder, "scratch"):
        note_failed_nodes({"localhost": NodeFailure("no response within 1 s", "NO_ANSWER")})
    verdict, page = reported(run)
    line = "localhost: scratch: NO_ANSWER: no response within 1 s"
    assert verdict.head()["stage_faults"] == [
        {
            "stage": "scratch",
            "nodes": "localhost",
            "code": "NO_ANSWER",
            "text": "no response within 1 s",
        }
    ]
    assert json.loads(run.files.verdict.read_text())["stage_faults"]
    assert "Failures outside the jobs" in page and "NO_ANSWER" in page
    assert "Solve the cause on these nodes. Then run the same command again." in page
    assert f"worst: {line}" in ending(verdict, "report.html", "runs/r")[1]
    assert failed_nodes(verdict, run.plan)["localhost"] == line.partition(": ")[2]
    main(["verdict", f"{run.folder}"])
    assert line in capsys.readouterr().out


def test_a_node_that_is_not_restored_has_the_command_of_the_restore(run: Run) -> None:
    with noting_faults(run.folder, "restore"):
        note_failed_nodes({"localhost": NodeFailure("drained by others", "HELD")})
    _, page = reported(run)
    assert restore_command(run, site_of(run)) in unescape(re.sub("<[^>]*>", "", page))


@pytest.mark.fault("stage-failed-after-the-jobs")
@pytest.mark.parametrize(
    "stage",
    ["restore", "scratch of mode a", *(pytest.param(each, marks=EACH_STAGE) for each in OTHERS)],
)
def test_a_run_with_a_stage_that_failed_is_no_pass(
    run: Run, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """All figures are PASS. The stage that succeeds later takes its fault away."""
    assert judge_run(run).headline().word in (SANITY, "PASS")
    with noting_faults(run.folder, stage):
        note_failed_nodes({"localhost": NodeFailure("the BMC does not answer", "NO_ANSWER")})
    verdict, _ = reported(run)
    assert (verdict.headline().word, verdict.exit_code()) == ("UNJUDGED", 4)
    assert verdict.coverage.measured == verdict.coverage.expected
    assert main(["report", "--json", f"{run.folder}"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["exit_code"] == 4
    first, worst, following = printed.err.splitlines()[-3:]
    assert first.startswith("UNJUDGED: ")
    assert worst.startswith(f"worst: localhost: {stage}: NO_ANSWER: the BMC does not answer")
    assert "next: Solve the cause on these nodes" in following
    (case,) = suite_of(verdict).findall("testcase[@classname='stage']")
    assert case.get("name") == "localhost"
    assert str(case[0].get("message")).startswith(f"{stage}: ") and case[0].tag == "skipped"
    assert main(["verdict", f"{run.folder}"]) == 4
    with noting_faults(run.folder, stage):
        pass
    assert main(["stage", "collect", f"{run.folder}"]) == 0
    assert main(["verdict", f"{run.folder}"]) == judge_run(run).exit_code() == 0


@pytest.mark.fault("stage-failed-after-the-jobs")
@pytest.mark.parametrize("damaged", [False, True])
def test_a_restore_that_was_killed_is_found_in_the_journal(run: Run, damaged: bool) -> None:
    """No stage reported a fault. The journal of a restored node is the control."""
    run.files.journal.mkdir()
    journal = Journal(run.folder, "localhost")
    journal.result("drain", address="")
    journal.result("open")
    assert judge_run(run).exit_code() == 0
    journal.intent("drain", address="")
    if damaged:
        journal.path.write_text("{\n", encoding="utf-8")
    answer = judge_run(run)
    (fault,) = answer.conditions.stage_faults
    assert (fault.stage, fault.nodes, fault.code) == ("restore", "localhost", "NOT_RESTORED")
    assert (answer.headline().word, answer.exit_code()) == ("UNJUDGED", 4)
    with noting_faults(run.folder, "restore"):
        note_failed_nodes({"localhost": NodeFailure("no", "NO_ANSWER")})
    (fault,) = judge_run(run).conditions.stage_faults
    assert fault.code == "NO_ANSWER", "the stage says more"


class TestCommands:
    def test_the_extra_variables_of_the_plan_are_kept(self, run: Run) -> None:
        site = site_of(run)
        plain = acceptance_command(run, site, inventory="/etc/my site")
        assert shlex.split(plain)[:6] == [
            *("ansible-playbook", "acceptance.yml", "-i"),
            "/etc/my site",
            *("-l", site.limit),
        ]
        assert plain.endswith(f"-e suite={run.plan.suite} -e run_id={run.id}")
        write_play_variables(run, {"repeats": "3", "scratch_dir": "/a b/c"})
        words = shlex.split(acceptance_command(run, site))
        assert words[-6:] == [
            *("-e", "repeats=3", "-e", "scratch_dir='/a b/c'", "-e", f"run_id={run.id}")
        ]
        fresh = acceptance_command(run, site, fresh="true")
        assert "run_id" not in fresh and fresh.endswith("-e fresh=true")

    def test_the_usual_folder_of_inventories_is_short(self, run: Run) -> None:
        site = site_of(run).model_copy(update={"inventory": Path("/kit/inventory/nurion")})
        site = site.model_copy(update={"name": "nurion"})
        assert " -i inventory/nurion " in acceptance_command(run, site)

    def test_entered_modes_need_the_confirmation_again(self, run: Run) -> None:
        site = site_of(run)
        assert "confirm_reboot" not in acceptance_command(run, site)
        enter_mode(run.folder, run.plan.current_mode)
        assert "confirm_reboot" not in acceptance_command(open_run(run.folder), site)
        enter_mode(run.folder, "snc4-flat")
        command = acceptance_command(open_run(run.folder), site)
        assert "-e confirm_reboot=true" in command
        verdict = judge_run(run)
        coverage = replace(verdict.coverage, measured=verdict.coverage.expected - 1)
        last = ending(replace(verdict, coverage=coverage), "r", "runs/r", again=command)[2]
        assert command in last

    def test_the_restore_is_always_confirmed(self, run: Run) -> None:
        words = f"-e run_id={run.id} -e confirm_reboot=true"
        assert restore_command(run, site_of(run)).endswith(words)
