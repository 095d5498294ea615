"""Steps that read the files of other steps: order, nodes, kept files and interruptions."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import Kit, carried_out, end, make_kit, steps_of, until
from tests.forks import tool
from tests.processes import running

from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute, pick
from proofmark.judge.judging import judge_run
from proofmark.machine.scratch_checks import clean
from proofmark.runs.job_folder import JobFolder
from proofmark.runs.progress import progress
from proofmark.runs.run import Run, open_run, read_decisions

PROGRAM = """
cd "$3" || exit 9
[ "$2" != write ] || echo "$1" >data
echo "size $1"; [ "$(cat data)" != "$1" ] || echo "rate 100"; echo END
"""
"""Writes its size into a file, or reads a file that must have its size."""
WRITING = {"sweep": {"action": "write"}}
READING = {"reads": True, "sweep": {"action": "read"}}


def dependent(tmp_path: Path, program: str = PROGRAM, **changes: Any) -> Kit:
    kit = make_kit(tmp_path)
    kit.case(
        **{
            "sweep": {"size": [1, 2]},
            "arguments": ["{size}", "{action}", "{scratch}"],
            "suites": {"quick": [WRITING, READING]},
            **changes,
        }
    )
    kit.program(program)
    (tmp_path / "scratch").mkdir()
    return kit


def run_of(kit: Kit, *hosts: str, **how: Any) -> Run:
    return kit.run(site=kit.site(hosts=hosts or ("n1", "n2")), **how)


def files(kit: Kit) -> list[str]:
    """Return the paths of all files and folders in scratch."""
    return sorted(
        path.relative_to(kit.folder / "scratch").as_posix()
        for path in (kit.folder / "scratch").rglob("*")
    )


class TestPlan:
    def test_the_reader_has_the_same_point_in_another_job_on_another_node(
        self, tmp_path: Path
    ) -> None:
        plan = run_of(dependent(tmp_path)).plan
        steps = {step.id: step for step in plan.steps()}
        readers = [step for step in steps.values() if step.reads]
        assert len(readers) == 2
        for reader in readers:
            writer = steps[reader.reads]
            assert writer.parameters["size"] == reader.parameters["size"]
            assert (writer.nodes, reader.nodes, writer.kept) == (["n1"], ["n2"], True)
        assert [len(job.steps) for job in plan.groups[0].jobs] == [2, 2]

    def test_without_a_further_node_the_reader_is_left_out_with_the_reason(
        self, tmp_path: Path
    ) -> None:
        plan = run_of(dependent(tmp_path), "n1").plan
        assert [step.kept for step in plan.steps()] == [False, False]
        assert [each.code for each in plan.left_out] == ["left-readers"] * 2

    def test_kept_files_count_together(self, tmp_path: Path) -> None:
        kit = dependent(tmp_path, cost={"seconds": 1, "bytes": 10})
        totals = run_of(kit).plan.totals
        assert (totals.bytes, totals.scratch_peak_bytes) == (40, 30)

    @pytest.mark.parametrize(
        ("uses", "found"),
        [
            ([READING], "no use before it"),
            ([WRITING, READING, READING], "no use before it"),
            ([WRITING, {**READING, "repeats": 2}], "2"),
        ],
    )
    def test_a_mistake_is_refused(
        self, tmp_path: Path, uses: list[dict[str, Any]], found: str
    ) -> None:
        with pytest.raises(BadInput, match=re.escape(found)):
            dependent(tmp_path, suites={"quick": uses}).benchmarks()


class TestRun:
    def test_the_reader_gets_the_files_of_the_writer_and_nothing_is_left(
        self, tmp_path: Path
    ) -> None:
        kit = dependent(tmp_path)
        run = carried_out(run_of(kit))
        assert [end(step) for step in steps_of(run)] == ["0"] * 4
        assert judge_run(open_run(run.folder)).counts["INVALID"] == 0
        assert files(kit) == []

    @pytest.mark.fault("writer-fails")
    def test_the_reader_of_a_failed_writer_is_invalid_and_does_not_run(
        self, tmp_path: Path
    ) -> None:
        kit = dependent(tmp_path, '[ "$1 $2" != "1 write" ] || exit 5\n' + PROGRAM)
        run, messages = run_of(kit), list[str]()
        execute(run, "none", messages.append)
        (name, reason), *others = read_decisions(run.files).not_run.items()
        assert others == []
        assert "exit code 5" in reason
        assert f"{name}: {reason}" in messages
        assert end(run.files.step(name).folder) is None
        ended = open_run(run.folder)
        verdict = judge_run(ended)
        invalid = {result.record.step: result.record.reason for result in verdict.of("INVALID")}
        assert invalid[name].startswith(reason)
        assert verdict.exit_code() == 2
        assert progress(ended, active=False).done == 3
        assert files(kit) == []

    def test_no_writer_fails_in_the_control(self, tmp_path: Path) -> None:
        run = carried_out(run_of(dependent(tmp_path)))
        assert read_decisions(run.files).not_run == {}

    def test_the_writer_and_the_reader_are_not_run_again(self, tmp_path: Path) -> None:
        run = carried_out(run_of(dependent(tmp_path)))
        for step in run.plan.steps():
            with pytest.raises(BadInput, match="of two steps"):
                pick(run, [step.id])


@pytest.mark.rest("a kill between each two steps")
class TestInterruption:
    def killed(self, kit: Kit, run: Run, action: str) -> None:
        """Run `run` until the first step with `action` waits, then kill the controller and it."""
        process = subprocess.Popen(
            [tool("proofmark"), "stage", "execute", str(run.folder)],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        with running(process):
            until(lambda: (kit.folder / f"waits-{action}").exists())
            process.send_signal(signal.SIGTERM)
            process.wait()

    def kit(self, tmp_path: Path, action: str) -> Kit:
        waits = f"{{ touch {tmp_path}/waits-{action}; sleep 99; }}"
        wait = f'[ "$2" != {action} ] || [ -e "$GO" ] || {waits}\n'
        return dependent(tmp_path, wait + PROGRAM, environment={"GO": str(tmp_path / "go")})

    @pytest.mark.fault("killed-between-write-and-read")
    @pytest.mark.parametrize("action", ["write", "read"])
    def test_the_same_command_continues(self, tmp_path: Path, action: str) -> None:
        kit = self.kit(tmp_path, action)
        run = run_of(kit)
        self.killed(kit, run, action)
        kept = [name for name in files(kit) if name.endswith("/data")]
        assert len(kept) == (0 if action == "write" else 2)
        (kit.folder / "go").touch()
        execute(run, "none", lambda line: None)
        assert [end(step) for step in steps_of(run)] == ["0"] * 4
        assert files(kit) == []
        invalid = [result.record.reason for result in judge_run(open_run(run.folder)).of("INVALID")]
        assert len(invalid) == (0 if action == "write" else 1)
        assert all("page cache" in reason for reason in invalid)


class TestClean:
    def test_the_files_of_a_run_that_is_not_continued_are_removed(self, tmp_path: Path) -> None:
        kit = dependent(tmp_path)
        run = run_of(kit)
        (left := kit.folder / "scratch" / run.id / "0001-fake").mkdir(parents=True)
        (left / "data").touch()
        (kit.folder / "scratch" / "other").mkdir()
        assert clean(open_run(run.folder), kit.site(hosts=("n1", "n2"))) == ["n1"]
        assert files(kit) == ["other"]
        assert clean(open_run(run.folder), kit.site(hosts=("n1", "n2"))) == []

    def test_a_run_whose_job_may_run_is_refused(self, tmp_path: Path) -> None:
        kit = dependent(tmp_path)
        run = run_of(kit)
        JobFolder(run, run.plan.groups[0].jobs[0]).create("slurm", "name")
        with pytest.raises(BadInput, match="may still be in the queue"):
            clean(open_run(run.folder), kit.site(hosts=("n1", "n2")))
