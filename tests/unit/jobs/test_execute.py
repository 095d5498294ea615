"""Execution of a run: its lock, its progress, signals, continuation, and full disks."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.fixtures.kit import (
    SOUND,
    Kit,
    ends,
    execution,
    left_behind,
    make_kit,
    snapshot,
    steps_of,
    until,
)
from tests.forks import tool
from tests.processes import running

from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute, summary
from proofmark.judge.judging import judge_run
from proofmark.runs.run import Run
from proofmark.runs.run_files import write_scripts_of
from proofmark.runs.state import is_locked, lock

WAITING = (
    'echo "size $1"; while [ "$1" = 2 ] && [ ! -e "$GO" ]; do sleep 0.05; done; '
    'echo "rate 100"; echo END'
)
"""The program of three steps; the step of size 2 waits for the file $GO."""
DAEMON = "setsid sh -c 'trap \"\" TERM; while :; do sleep 300; done' & "


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    made = make_kit(tmp_path)
    made.case(sweep={"size": [1, 2, 3]}, environment={"GO": str(tmp_path / "go")})
    made.program(DAEMON + WAITING)
    return made


@contextmanager
def begun(run: Run) -> Iterator[subprocess.Popen[str]]:
    """Start `proofmark stage execute` and wait until it is in the second step."""
    process = subprocess.Popen(
        [tool("proofmark"), "stage", "execute", str(run.folder)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    out = steps_of(run)[1] / "unfinished-1" / "stdout"
    with running(process):
        until(lambda: out.exists() and out.read_text() != "")
        yield process


class TestWhole:
    def test_all_steps_run_and_the_progress_is_reported(self, kit: Kit) -> None:
        (kit.folder / "go").touch()
        run, messages = kit.run(), list[str]()
        execute(run, "none", messages.append)
        assert ends(run) == ["0", "0", "0"]
        assert messages[-1] == "3/3 steps"
        assert summary(run).startswith("3/3 steps done, 0 failed (exit code not 0), ")
        assert summary(run).endswith(" in total")
        assert left_behind(f"PROOFMARK_STEP={run.folder}") == []

    def test_a_finished_run_is_not_run_again(self, kit: Kit) -> None:
        (kit.folder / "go").touch()
        run = kit.run()
        execute(run, "none", lambda line: None)
        before = snapshot(run.folder / "workdir/steps") | snapshot(run.folder / "workdir/jobs")
        execute(run, "none", lambda line: None)
        assert (
            snapshot(run.folder / "workdir/steps") | snapshot(run.folder / "workdir/jobs") == before
        )

    def test_an_unknown_scheduler_is_refused_with_the_names_of_all(self, kit: Kit) -> None:
        with pytest.raises(BadInput, match=r"scheduler: found 'nome', did you mean 'none'\?"):
            execute(kit.run(), "nome", lambda line: None)

    def test_the_error_of_a_failed_job_has_the_cause_and_the_free_space(self, kit: Kit) -> None:
        run = kit.run()
        write_scripts_of(run.folder, {"probe.sh": "echo 'the probe is broken' >&2; exit 1\n"})
        with pytest.raises(BadInput) as error:
            execute(run, "none", lambda line: None)
        messages = str(error.value)
        assert "exit code 74; the probe is broken; " in messages
        assert f"free in {run.folder}" in messages
        assert not is_locked(run.folder)


class TestOneAtATime:
    @pytest.mark.fault("same-run-id")
    def test_a_run_in_use_is_refused_and_not_changed(self, kit: Kit) -> None:
        (kit.folder / "go").touch()
        run = kit.run()
        with lock(run.folder):
            before = snapshot(run.folder)
            with pytest.raises(BadInput) as error:
                execute(run, "none", lambda line: None)
            with pytest.raises(BadInput):
                kit.run(run_id=run.id)
            assert snapshot(run.folder) == before
        assert f"{run.id}: in use by process {os.getpid()} on " in str(error.value)
        execute(run, "none", lambda line: None)
        assert ends(run) == ["0", "0", "0"]

    def test_the_lock_ends_with_its_process(self, kit: Kit) -> None:
        run = kit.run()
        code = "import os, sys; from pathlib import Path"
        code += "\nfrom proofmark.runs.state import lock"
        code += "\nwith lock(Path(sys.argv[1])): print(flush=True); sys.stdin.read()"
        command = [sys.executable, "-c", code, str(run.folder)]
        pipe = subprocess.PIPE
        with running(subprocess.Popen(command, stdin=pipe, stdout=pipe)) as holder:
            assert holder.stdout
            holder.stdout.readline()
            assert is_locked(run.folder)
            holder.kill()
        assert not is_locked(run.folder)

    def test_is_locked_writes_nothing(self, kit: Kit) -> None:
        run = kit.run()
        before = snapshot(run.folder)
        assert not is_locked(run.folder)
        assert snapshot(run.folder) == before


class TestInterrupted:
    @pytest.mark.parametrize(
        "number",
        [
            pytest.param(signal.SIGINT, marks=pytest.mark.fault("interrupt-sigint")),
            pytest.param(signal.SIGTERM, marks=pytest.mark.fault("interrupt-sigterm")),
        ],
    )
    def test_a_signal_leaves_no_child_and_the_same_command_continues(
        self, kit: Kit, number: signal.Signals
    ) -> None:
        run = kit.run()
        first = steps_of(run)[0]
        with begun(run) as process:
            done = snapshot(first)
            process.send_signal(number)
            _, messages = process.communicate(timeout=300)
        assert process.returncode == 130
        again = f"proofmark stage execute {shlex.quote(str(run.folder))}"
        *_, last = messages.splitlines()
        assert last == f"proofmark: stopped by {number.name}; this continues: {again}"
        states = judge_run(run).coverage.stopped
        assert "its own command was stopped and cancelled it: stopped by" in states[0]
        assert left_behind(f"PROOFMARK_STEP={run.folder}") == []
        assert ends(run) == ["0", None, None]
        (kit.folder / "go").touch()
        execute(run, "none", lambda line: None)
        assert ends(run) == ["0", "0", "0"]
        assert snapshot(first) == done
        assert (steps_of(run)[1] / "unfinished-1" / "stdout").read_text() == "size 2\n"

    def test_further_signals_change_nothing(self, kit: Kit) -> None:
        run = kit.run()
        with begun(run) as process:
            for _ in range(5):
                process.send_signal(signal.SIGINT)
                time.sleep(0.02)
            process.communicate(timeout=300)
        assert process.returncode == 130
        assert left_behind(f"PROOFMARK_STEP={run.folder}") == []

    def test_sigkill_leaves_no_child(self, kit: Kit) -> None:
        run = kit.run()
        with begun(run) as process:
            process.kill()
            process.communicate(timeout=300)
        until(lambda: left_behind(f"PROOFMARK_STEP={run.folder}") == [], pause_s=0.1)
        until(lambda: left_behind(str(run.folder)) == [], pause_s=0.1)
        (kit.folder / "go").touch()
        execute(run, "none", lambda line: None)
        assert ends(run) == ["0", "0", "0"]

    def test_without_a_signal_the_same_run_ends_by_itself(self, kit: Kit) -> None:
        """Control: no fault is injected."""
        run = kit.run()
        with begun(run) as process:
            (kit.folder / "go").touch()
            process.communicate(timeout=300)
        assert process.returncode == 0
        assert ends(run) == ["0", "0", "0"]
        assert left_behind(f"PROOFMARK_STEP={run.folder}") == []


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 2 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(place)], check=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.root
@pytest.mark.fault("disk-full")
class TestFullDisks:
    WRITES = 'head -c "$1" /dev/zero >"$2/file" && sync "$2/file" && echo "size $1" && '

    def test_a_full_scratch_makes_the_step_invalid_and_the_run_continues(
        self, kit: Kit, small: Path
    ) -> None:
        kit.case(
            sweep={"size": [1000, 4_000_000, 2000]},
            arguments=["{size}", "{scratch}"],
            cost={"seconds": 1, "bytes": "{size}"},
        )
        kit.program(self.WRITES + 'echo "rate 100" && echo END')
        (kit.folder / "scratch").symlink_to(small)
        run = kit.run()
        execute(run, "none", lambda line: None)
        results = {r.record.step[5:]: r for r in judge_run(run).results}
        assert results["fake-4000000"].verdict == "INVALID"
        assert "No space left on device" in results["fake-4000000"].reason
        assert results["fake-1000"].verdict == results["fake-2000"].verdict == "UNJUDGED"
        assert list(small.iterdir()) == []

    def test_a_scratch_without_inodes_makes_the_step_invalid(self, kit: Kit, small: Path) -> None:
        kit.case(sweep={"size": 1}, cost={"seconds": 1, "bytes": 1})
        kit.program()
        (kit.folder / "scratch").symlink_to(small)
        subprocess.run(["mount", "-o", "remount,nr_inodes=1", str(small)], check=True)
        run = kit.run()
        execute(run, "none", lambda line: None)
        (result,) = judge_run(run).results
        assert (result.verdict, run.folder.exists()) == ("INVALID", True)
        assert "No space left on device" in result.reason

    @pytest.mark.parametrize("fills", ["stdout", "folder"])
    def test_a_full_run_folder_stops_the_job_and_the_same_command_continues(
        self, kit: Kit, small: Path, fills: str
    ) -> None:
        small_kit = Kit(small)
        for name in ("benchmarks", "programs"):
            (small / name).symlink_to(kit.folder / name)
        full = {"stdout": "head -c 4000000 /dev/zero", "folder": f"cat /dev/zero >{small}/fill"}
        kit.program(f'[ "$1" != 2 ] || [ -e "$GO" ] || {full[fills]}; {SOUND}')
        run = small_kit.run()
        with pytest.raises(BadInput) as error:
            execute(run, "none", lambda line: None)
        assert "exit code 74; " in str(error.value)
        assert re.search(r" (0 B|4\.0 KiB) free in ", str(error.value))
        assert ends(run) == ["0", None, None]
        assert left_behind(f"PROOFMARK_STEP={run.folder}") == []
        first = snapshot(steps_of(run)[0])
        (kit.folder / "go").touch()
        subprocess.run(["mount", "-o", "remount,size=9m", str(small)], check=True)
        execute(run, "none", lambda line: None)
        assert ends(run) == ["0", "0", "0"]
        assert snapshot(steps_of(run)[0]) == first
        assert {result.verdict for result in judge_run(run).results} == {"UNJUDGED"}

    def test_with_free_space_no_step_is_invalid(self, kit: Kit, small: Path) -> None:
        """Control: no fault is injected."""
        kit.case(
            sweep={"size": [1000, 2000]},
            arguments=["{size}", "{scratch}"],
            cost={"seconds": 1, "bytes": "{size}"},
        )
        kit.program(self.WRITES + 'echo "rate 100" && echo END')
        (kit.folder / "scratch").symlink_to(small)
        run = kit.run()
        execute(run, "none", lambda line: None)
        assert [result.verdict for result in judge_run(run).results] == ["UNJUDGED"] * 2
        when = json.loads((execution(steps_of(run)[0]) / "when.json").read_text())
        assert when["timed_out"] is False
