"""Scripts of steps and jobs: written once, completely, and only with installed programs."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import written_verdict
from tests.fixtures.kit import Kit, carried_out, make_kit, snapshot, steps_of

from proofmark.common.errors import BadInput
from proofmark.common.files import write_atomic
from proofmark.jobs.execute import execute
from proofmark.jobs.job_request import BatchQueue
from proofmark.jobs.scripts import Scripts, write_scripts
from proofmark.jobs.step_script import LaunchSite, step_script
from proofmark.judge.judging import judge_run
from proofmark.runs import start as runs
from proofmark.runs.run import Run, leave_out, open_run


def script(kit: Kit, provided: dict[str, Any] | None = None, **case: Any) -> str:
    kit.case(**{"sweep": {"size": 1}, **case})
    (step,) = kit.plan().steps()
    return step_script(step, LaunchSite(kit.software(**(provided or {}))), "/scratch/run/step")


class TestWriting:
    def test_every_step_and_job_gets_its_script(self, kit: Kit) -> None:
        kit.case(inputs={"in.txt": "size {size} in {scratch}\n"})
        run = kit.run()
        for number, step in enumerate(steps_of(run), start=1):
            scratch = kit.folder / "scratch" / run.id / step.name
            assert (step / "in.txt").read_text() == f"size {number} in {scratch}\n"
            assert f"SCRATCH={shlex.quote(str(scratch))}\n" in (step / "run.sh").read_text()
        (job,) = (run.folder / "workdir/jobs").glob("*/job.sh")
        assert "'\n0001-fake-1\n0002-fake-2\n'\n" in job.read_text()

    def test_a_written_script_is_not_changed(self, kit: Kit) -> None:
        run = kit.run()
        before = snapshot(run.folder / "workdir/steps")
        site, elsewhere = LaunchSite(kit.software(version="2")), Path("/elsewhere")
        write_scripts(run.folder, run.plan, Scripts(site, elsewhere, BatchQueue("none")))
        assert snapshot(run.folder / "workdir/steps") == before

    def test_a_script_that_could_not_be_written_is_written_later(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(path: Path, text: str) -> None:
            if path.name == "run.sh":
                path.with_name("run.sh.new").write_text(text[:40])
                raise OSError(28, "No space left on device")
            write_atomic(path, text)

        with monkeypatch.context() as patch:
            patch.setattr("proofmark.runs.run_files.write_private", full)
            with pytest.raises(OSError, match="No space"):
                kit.run(run_id="mine")
        run = kit.run(run_id="mine")
        for step in steps_of(run):
            assert (step / "run.sh").read_text().endswith('exit "$RC"\n')

    def test_the_scripts_are_valid_posix_shell(self, kit: Kit) -> None:
        place = kit.folder / 'it\'s a "run" of $HOME'
        place.mkdir()
        other = make_kit(place)
        other.case(arguments=["{size}", "it's", '"', "$x", "`y`", "\n"])
        run = other.run()
        scripts = [
            *run.folder.glob("workdir/steps/*/run.sh"),
            *run.folder.glob("workdir/jobs/*/job.sh"),
        ]
        assert len(scripts) == 3
        for path in scripts:
            subprocess.run(["dash", "-n", path], check=True)
        # The steps differ in an argument only.
        subprocess.run(["shellcheck", "--severity=warning", *scripts[1:]], check=True)


VARIANT: dict[str, Any] = {
    "sweep": {"blas_kernel": ["own", "right"], "size": [1, 2]},
}


class TestRepeatedCommands:
    """Steps of two variants whose environments are equal."""

    def run(self, kit: Kit, right: dict[str, str]) -> Run:
        kit.case(**VARIANT)
        return kit.run(kit.software(variants={"blas_kernel": {"own": {}, "right": right}}))

    def test_variants_that_differ_are_both_run(self, kit: Kit) -> None:
        run = self.run(kit, {"KERNEL": "right"})
        assert run.plan.not_needed == {}
        execute(run, "none", lambda line: None)
        coverage = judge_run(run).coverage
        assert (coverage.measured, coverage.expected, coverage.not_needed) == (4, 4, ())

    def test_the_second_of_two_equal_variants_is_not_run_and_listed(self, kit: Kit) -> None:
        run = self.run(kit, {})
        lines: list[str] = []
        execute(run, "none", lines.append)
        verdict = judge_run(run)
        coverage = verdict.coverage
        assert (coverage.measured, coverage.expected) == (2, 2)
        assert [each.message for each in coverage.not_needed] == [
            "0003-fake-right-1: NOT NEEDED: runs the command of 0001-fake-own-1: "
            "blas_kernel right is own",
            "0004-fake-right-2: NOT NEEDED: runs the command of 0002-fake-own-2: "
            "blas_kernel right is own",
        ]
        assert {result.record.parameters["blas_kernel"] for result in verdict.results} == {"own"}
        assert not (run.folder / "workdir/steps" / "0003-fake-right-1").exists()
        assert not any("right" in line for line in lines)
        assert open_run(run.folder) == run

    def test_repeated_commands_are_determined_once_per_run(self, kit: Kit) -> None:
        run = self.run(kit, {})
        assert leave_out(run, {}) == run

    def test_a_run_is_finished_without_the_steps_that_are_not_needed(self, kit: Kit) -> None:
        run = carried_out(self.run(kit, {}))
        written_verdict(run)
        assert runs._unfinished(run.folder.parent, run.plan.digest) is None


class TestScripts:
    def test_the_case_overrides_the_environment(self, kit: Kit) -> None:
        package = {
            "environment": {"A": "package", "B": "package", "C": "package"},
            "variants": {"blas_kernel": {"good": {"B": "variant", "C": "variant"}}},
        }
        text = script(
            kit,
            package,
            sweep={"size": 1, "blas_kernel": "good"},
            environment={"C": "case {size}", "D": "{scratch}"},
        )
        exports = [line for line in text.splitlines() if line.startswith("export ")]
        expected = ["A=package", "B=variant", "C='case 1'", "D=/scratch/run/step"]
        assert [line.removeprefix("export ") for line in exports][:4] == expected

    def test_a_step_without_a_scratch_makes_none(self, kit: Kit) -> None:
        assert "SCRATCH=''\n" in script(kit)
        assert "SCRATCH=/scratch/run/step\n" in script(kit, cost={"seconds": 1, "bytes": 1})
        assert "SCRATCH=/scratch/run/step\n" in script(kit, arguments=["{size}", "{scratch}"])

    def test_the_second_line_describes_the_step(self, kit: Kit) -> None:
        second = script(kit).splitlines()[1]
        assert second == "# fake: repeat 1, ranks 1, threads 1, placement none, size 1"

    @pytest.mark.parametrize(
        ("provided", "case", "expected"),
        [
            ({}, {"package": "fke"}, "no package 'fke', did you mean 'fake'"),
            ({}, {"program": "fak"}, "no program 'fak' in fake, did you mean"),
            (
                {"variants": {"blas_kernel": {"good": {}}}},
                {"sweep": {"size": 1, "blas_kernel": "god"}},
                "blas_kernel 'god', did you mean 'good'?; accepted: good",
            ),
        ],
    )
    def test_a_missing_package_program_or_variant_is_named(
        self, kit: Kit, provided: dict[str, Any], case: dict[str, Any], expected: str
    ) -> None:
        with pytest.raises(BadInput) as error:
            script(kit, provided, **case)
        assert str(error.value).startswith(f"software.json: 0001-fake: found {expected}")
