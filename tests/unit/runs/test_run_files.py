from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.cases.vocabulary import PRINTED, STEP_FILES
from proofmark.common.rights import User
from proofmark.plan.step import StepInstance
from proofmark.runs import run_files
from proofmark.runs.attempts import last_words
from proofmark.runs.run import extends
from proofmark.runs.run_files import (
    TOP_RULES,
    Files,
    JobFiles,
    QueueFiles,
    RunFiles,
    SealRule,
    StepFiles,
    WorkFiles,
)

NODE_SCRIPTS = {"node.sh", "instances", "files.json"}
"""Files of the folder of a whole step, and of a failed execution; a program writes none there."""


@pytest.mark.parametrize("table", [RunFiles, WorkFiles, QueueFiles, StepFiles, JobFiles])
def test_no_two_rows_of_a_table_are_one_file(table: type[Files]) -> None:
    assert Counter(each.path for each in table.table().values()).most_common(1)[0][1] == 1
    files = table(Path("here"))
    for name, each in table.table().items():
        assert getattr(files, name) == Path("here", each.path)


def test_all_files_of_one_folder_have_its_rule() -> None:
    for each in RunFiles.table().values():
        assert TOP_RULES[each.path.partition("/")[0]] is each.rule, each
    by_place = {path for path, rule in TOP_RULES.items() if rule is None}
    assert by_place == {"workdir", "queue", "journal"}


def test_what_a_verdict_is_made_from_is_sealed() -> None:
    unsealed = {name for name, rule in TOP_RULES.items() if rule is SealRule.UNSEALED}
    evidence = {
        "run.json",
        "plan.json",
        "inputs",
        "workdir",
        "scripts",
        "queue",
        "journal",
        "software.json",
    }
    assert not unsealed & evidence
    assert {"verdict.json", "report.html", "evidence", "signed", "lock"} <= unsealed


def test_a_case_cannot_name_its_output_as_a_file_of_the_kit() -> None:
    own = {each.path for each in StepFiles.table().values()}
    assert own - NODE_SCRIPTS <= STEP_FILES | PRINTED


def test_the_folder_of_an_instance_is_its_text() -> None:
    files = RunFiles(Path("runs/a"))
    for text in ("0001-stream", "0001-stream/n1", "0002-p2p/n1+n2"):
        instance = StepInstance.parse(text)
        assert str(instance) == text
        assert files.step(str(instance)).folder == Path(
            "runs/a/workdir/steps", *filter(None, instance)
        )


@pytest.mark.parametrize("length", [159, 160, 161, 400])
def test_the_last_message_of_a_program_keeps_its_end(tmp_path: Path, length: int) -> None:
    """A message begins with a path and ends with the problem."""
    text = "".join(f"{number % 10}" for number in range(length))
    path = tmp_path / "stderr"
    path.write_text(f"first\n{text}\n----\n")
    assert last_words(path) == (text if length <= 160 else f"…{text[-159:]}")
    path.write_text("write: No space left on device\nand more\n")
    assert last_words(path) == "write: No space left on device"
    path.write_text("====\n\n")
    assert last_words(path) == ""


def decided(attempts: int) -> str:
    """Return the file of a run with one decision."""
    return json.dumps({"set_aside": {"0001-a": {"attempts": attempts, "reason": "a cable"}}})


@pytest.mark.parametrize(
    ("old", "new", "more"),
    [
        ("{}", "{}", True),
        ("{}", decided(1), True),
        (decided(1), decided(1), True),
        (decided(1), "{}", False),
        (decided(1), decided(2), False),
        ("{}", "{", False),
        ("{", "{}", False),
    ],
)
def test_decisions_are_only_added(old: str, new: str, more: bool) -> None:
    assert extends(old.encode(), new.encode()) is more


@pytest.mark.parametrize(
    ("work", "home", "place", "in_scratch"),
    [
        ("/shared/of all", "home", "/shared/of all", False),
        (None, "home", "home/proofmark", False),
        (None, "none", "scratch/proofmark", True),
        (None, "file", "scratch/proofmark", True),
    ],
)
def test_work_folders_are_in_the_named_folder_else_the_home_else_the_scratch(
    tmp_path: Path, work: str | None, home: str, place: str, in_scratch: bool
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "file").touch(0o755)
    scratch = SimpleNamespace(path=f"{tmp_path}/scratch")
    site: Any = SimpleNamespace(partition=SimpleNamespace(work=work, scratch=scratch))
    user = User("nobody", 65534, 65534, f"{tmp_path / home}")
    assert run_files._base(user, site) == (tmp_path / place, in_scratch)
