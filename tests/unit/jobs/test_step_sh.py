"""The script of a step, run by dash and by busybox."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import SOUND, Kit, execution, left_behind, make_kit, snapshot, until
from tests.folders import PACKAGE
from tests.processes import running

from proofmark.jobs.step_script import LaunchSite, step_script
from proofmark.site.node.cpu import cpu_list

DAEMON = "A=1 setsid env B=2 sh -c 'trap \"\" TERM; while :; do sleep 300; done' &"
"""A grandchild that ignores SIGTERM, with another session and another environment."""
LIMIT_S = 5
"""The time limit of programs that exceed it: a loaded machine starts them within it."""


@pytest.fixture(scope="module", params=["dash", "busybox"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a PATH whose `sh` is this shell; with busybox it has only busybox."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "busybox":
        subprocess.run(["busybox", "--install", "-s", folder], check=True)
        return str(folder)
    (folder / "sh").symlink_to("/usr/bin/dash")
    return f"{folder}:{os.environ['PATH']}"


@dataclass(frozen=True)
class Staged:
    """The folder of a step, and the PATH of the shell that runs it."""

    folder: Path
    path: str
    scratch: Path

    def start(
        self, script: str | None = None, cwd: Path | None = None, **variables: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", script or str(self.folder / "run.sh")],
            env={"PATH": self.path, "HOME": "/nowhere", **variables},
            cwd=cwd,
            stdin=subprocess.PIPE,  # never closed: a program that reads it would never end
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, script: str | None = None, cwd: Path | None = None, **variables: str) -> int:
        with running(self.start(script, cwd, **variables)) as process:
            process.wait(600)
        return process.returncode

    def text(self, name: str, number: int = 1) -> str:
        return (execution(self.folder, number) / name).read_text(encoding="utf-8")

    def json(self, name: str, number: int = 1) -> Any:
        return json.loads(self.text(name, number))

    def unfinished(self, name: str, number: int = 1) -> str:
        """Return the text of a file of an unfinished execution; empty if there is no file."""
        path = self.folder / f"unfinished-{number}" / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def names(self) -> set[str]:
        """Return the names of the folders of executions."""
        return {path.name for path in self.folder.iterdir() if path.is_dir()}

    def processes(self, patience: float = 60) -> list[str]:
        return left_behind(f"PROOFMARK_STEP={self.folder}/", patience)


def stage(
    folder: Path,
    path: str,
    program: str = SOUND,
    package: Mapping[str, Any] | None = None,
    **case: Any,
) -> Staged:
    """Write the only step of a case that starts `program` below `folder`."""
    kit: Kit = make_kit(folder)
    kit.program(program)
    kit.case(**{"sweep": {"size": 1}, **case})
    (step,) = kit.plan().steps()
    place, scratch = folder / "workdir/steps" / step.id, folder / "scratch" / "a run" / step.id
    place.mkdir(parents=True)
    for name, text in step.inputs.items():
        (place / name).write_text(text, encoding="utf-8")
    script = step_script(step, LaunchSite(kit.software(**(package or {}))), str(scratch))
    (place / "run.sh").write_text(script, encoding="utf-8")
    return Staged(place, path, scratch)


def wait_for_output(step: Staged, text: str, number: int = 1) -> None:
    until(lambda: text in step.unfinished("stdout", number))


class TestFinished:
    def test_a_sound_step_leaves_its_result(self, tmp_path: Path, shell: str) -> None:
        step = stage(tmp_path, shell, f"{SOUND}; echo oops >&2")
        before = time.time()
        assert step.run() == 0
        assert (step.text("rc"), step.text("stderr")) == ("0\n", "oops\n")
        assert step.text("stdout") == "size 1\nrate 100\nEND\n"
        when = step.json("when.json")
        assert when.keys() == {
            "start", "end", "seconds", "host", "timed_out",
            "busy_ticks", "stolen_ticks", "own_ticks", "attempt", "boot", "ended", "survivors",
        }  # fmt: skip
        assert 0 <= when["own_ticks"] <= 100 * (when["seconds"] + 1)
        assert 0 <= when["busy_ticks"] <= 100 * (os.cpu_count() or 1) * (when["seconds"] + 1)
        assert when["stolen_ticks"] >= 0
        assert when["timed_out"] is False
        assert when["host"] == os.uname().nodename
        assert 0 <= when["seconds"] <= time.time() - before + 0.1
        assert when["start"] <= when["end"]
        assert when["survivors"] == []
        assert {path.name for path in step.folder.iterdir()} == {"run.sh", "execution-1"}
        assert {path.name for path in execution(step.folder).iterdir()} == {
            "started", "stdout", "stderr", "rc", "when.json", "binding.json", "noise.json",
            "outputs.sha256",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("program", "code"),
        [("exit 3", 3), ("kill -KILL $$", 137), ("kill -TERM $$", 143), ("exit 74", 74)],
    )
    def test_the_exit_code_is_the_programs(
        self, tmp_path: Path, shell: str, program: str, code: int
    ) -> None:
        step = stage(tmp_path, shell, program)
        assert step.run() == code
        assert step.text("rc") == f"{code}\n"
        assert step.json("when.json")["timed_out"] is False

    def test_a_missing_program_has_exit_code_127(self, tmp_path: Path, shell: str) -> None:
        step = stage(tmp_path, shell)
        (tmp_path / "programs" / "fake").unlink()
        assert step.run() == 127
        assert step.text("rc") == "127\n"
        assert str(tmp_path / "programs" / "fake") in step.text("stderr")

    def test_the_program_gets_its_arguments_environment_and_inputs(
        self, tmp_path: Path, shell: str
    ) -> None:
        step = stage(
            tmp_path,
            shell,
            'printf "[%s]" "$@" "$WHAT"; cat in.txt',
            arguments=["a b", "$HOME", "it's", '"', "", "{size}", "*"],
            environment={"WHAT": "x 'y' $z"},
            inputs={"in.txt": "first\nsecond"},
        )
        assert step.run() == 0
        assert step.text("stdout") == "[a b][$HOME][it's][\"][][1][*][x 'y' $z]first\nsecond"

    def test_stdin_is_empty(self, tmp_path: Path, shell: str) -> None:
        step = stage(tmp_path, shell, "cat; echo END")
        assert step.run() == 0
        assert step.text("stdout") == "END\n"

    def test_processes_that_a_program_leaves_running_are_ended(
        self, tmp_path: Path, shell: str
    ) -> None:
        step = stage(tmp_path, shell, f"{DAEMON} sleep 0.2; echo END")
        assert step.run() == 0
        assert step.text("stdout") == "END\n"
        assert step.processes() == []

    def test_the_watchdog_ends_with_the_step(self, tmp_path: Path, shell: str) -> None:
        limit_s = 10**6 + os.getpid()  # no other process of this machine sleeps so long
        step = stage(tmp_path, shell, "exit 0", timeout=limit_s)
        for _ in range(5):
            assert step.run() == 0
        assert left_behind(f"PROOFMARK_STEP={tmp_path}") == []
        sleepers = subprocess.run(
            ["pgrep", "-f", f"sleep {limit_s}"], capture_output=True, check=False
        )
        assert sleepers.stdout == b""


class TestPlaces:
    @pytest.mark.parametrize("name", ['it\'s a "run" of $HOME', "a[b] (c)", "naïve ; &"])
    def test_any_name_of_a_folder_works(self, tmp_path: Path, shell: str, name: str) -> None:
        step = stage(tmp_path / name, shell, f"{DAEMON} {SOUND}", cost={"seconds": 1, "bytes": 9})
        assert [step.run(), step.run()] == [0, 0]
        assert step.text("rc") == step.text("rc", 2) == "0\n"
        assert step.text("stdout") == step.text("stdout", 2) == "size 1\nrate 100\nEND\n"
        assert step.processes() == []

    @pytest.mark.parametrize("script", ["run.sh", "./run.sh", "../0001-fake/run.sh"])
    def test_it_runs_by_a_relative_name(self, tmp_path: Path, shell: str, script: str) -> None:
        step = stage(tmp_path, shell)
        assert step.run(script, cwd=step.folder) == 0
        assert step.text("stdout").startswith("size 1")

    def test_cdpath_is_ignored(self, tmp_path: Path, shell: str) -> None:
        step = stage(tmp_path, shell)
        decoy = tmp_path / "decoy" / "workdir/steps" / "0001-fake"
        decoy.mkdir(parents=True)
        environment = {"CDPATH": str(tmp_path / "decoy")}
        assert step.run("workdir/steps/0001-fake/run.sh", cwd=tmp_path, **environment) == 0
        assert step.text("rc") == "0\n"
        assert list(decoy.iterdir()) == []


class TestScratch:
    @pytest.fixture
    def step(self, tmp_path: Path, shell: str) -> Staged:
        program = 'ls -A "$2"; echo x >"$2/file"; echo END'
        return stage(
            tmp_path,
            shell,
            program,
            arguments=["{size}", "{scratch}"],
            cost={"seconds": 1, "bytes": 2},
        )

    def test_the_scratch_exists_only_while_the_program_runs(self, step: Staged) -> None:
        assert step.run() == 0
        assert step.text("stdout") == "END\n"
        assert not step.scratch.exists()
        assert not step.scratch.parent.exists()  # the empty scratch folder of the run

    def test_files_of_other_steps_are_kept(self, step: Staged) -> None:
        other = step.scratch.parent / "other" / "file"
        other.parent.mkdir(parents=True)
        other.touch()
        assert step.run() == 0
        assert other.exists()

    def test_files_of_a_killed_execution_are_removed_first(self, step: Staged) -> None:
        step.scratch.mkdir(parents=True)
        (step.scratch / "stale").touch()
        assert step.run() == 0
        assert step.text("stdout") == "END\n"

    @pytest.mark.fault("scratch-removed-by-another-node")
    @pytest.mark.parametrize(("times", "code"), [(0, 0), (1, 0), (2, 0), (3, 73)])
    def test_another_node_may_remove_the_empty_folder_of_the_step(
        self, step: Staged, tmp_path: Path, times: int, code: int
    ) -> None:
        """`mkdir -p` makes two folders. The other node removes the first one `times` times."""
        tools = tmp_path / "tools"
        tools.mkdir()
        mkdir = tools / "mkdir"
        parent, calls = step.scratch.parent, tmp_path / "calls"
        mkdir.write_text(
            "#!/bin/sh\n"
            f'case $* in *"{step.scratch}") ;; *) exec /usr/bin/mkdir "$@" ;; esac\n'
            f"echo call >>{calls}\n"
            f'[ "$(grep -c call {calls})" -gt {times} ] && exec /usr/bin/mkdir "$@"\n'
            f'/usr/bin/mkdir -p "{parent}" && rmdir "{parent}"\n'
            'exec /usr/bin/mkdir "$2"\n'
        )
        mkdir.chmod(0o755)
        assert replace(step, path=f"{tools}:{step.path}").run() == code
        assert ("No such file" in step.text("stderr")) is (code != 0)

    def test_a_scratch_that_cannot_be_created_fails_the_step(self, step: Staged) -> None:
        step.scratch.parent.parent.mkdir()
        step.scratch.parent.write_text("a file, not a folder", encoding="utf-8")
        assert step.run() == 73
        assert step.text("rc") == "73\n"
        assert "Not a directory" in step.text("stderr")
        assert str(step.scratch.parent) in step.text("stderr")


class TestTimeLimit:
    def test_the_watchdog_ends_all_processes_of_the_program(
        self, tmp_path: Path, shell: str
    ) -> None:
        program = f"trap '' TERM; {DAEMON} echo on; while :; do sleep 100; done"
        step = stage(tmp_path, shell, program, timeout=LIMIT_S)
        began = time.monotonic()
        assert step.run() == 137
        assert time.monotonic() - began > LIMIT_S
        assert step.json("when.json")["timed_out"] is True
        assert step.json("when.json")["seconds"] >= LIMIT_S
        assert step.text("stdout") == "on\n"
        assert step.processes() == []

    def test_a_program_may_end_itself_after_sigterm(self, tmp_path: Path, shell: str) -> None:
        program = "trap 'echo bye; exit 9' TERM; sleep 100 & wait"
        step = stage(tmp_path, shell, program, timeout=LIMIT_S)
        assert step.run() == 9
        assert step.json("when.json")["timed_out"] is True
        assert step.text("stdout") == "bye\n"


SIGNALS = ["TERM", "INT", "HUP", "ALRM", "USR1", "USR2", "XCPU"]


@pytest.mark.parametrize("ignored", ["", "PIPE"])
def test_the_ticks_of_a_sampler_end_with_their_reader(
    tmp_path: Path, shell: str, ignored: str
) -> None:
    """Flux starts processes that ignore SIGPIPE; then a write fails instead."""
    text = (PACKAGE / "jobs/shell/noise.sh").read_text(encoding="utf-8")
    before = f"trap '' {ignored}\n" if ignored else ""
    script = f"{before}{text}\nROSTER={tmp_path}\nticks | read -r line"
    subprocess.run(["sh", "-c", script], env={"PATH": shell}, timeout=30, check=False)


class TestInterrupted:
    @pytest.mark.parametrize(
        ("shell", "word"),
        [*(("dash", word) for word in SIGNALS), ("busybox", "TERM"), ("busybox", "USR1")],
        indirect=["shell"],
    )
    def test_no_process_is_left_and_the_output_is_kept(
        self, tmp_path: Path, shell: str, word: str
    ) -> None:
        number = signal.Signals[f"SIG{word}"]
        program = f"{DAEMON} echo part; [ -e {tmp_path}/go ] && echo END || sleep 100"
        step = stage(tmp_path, shell, program, cost={"seconds": 1, "bytes": 2})
        with running(step.start()) as process:
            wait_for_output(step, "part")
            process.send_signal(number)
            assert process.wait(200) == 143
        assert step.processes() == []
        assert step.names() == {"unfinished-1"}
        assert not step.scratch.exists()
        (tmp_path / "go").touch()
        assert step.run() == 0
        assert step.text("stdout", 2) == "part\nEND\n"
        assert step.unfinished("stdout") == "part\n"
        assert step.unfinished("started") != ""
        assert step.unfinished("rc") == ""

    def test_each_interruption_has_its_own_folder(self, tmp_path: Path, shell: str) -> None:
        step = stage(tmp_path, shell, "echo $$; sleep 100")
        printed: list[str] = []
        for number in (1, 2, 3):
            with running(step.start()) as process:
                wait_for_output(step, "\n", number)
                process.terminate()
                process.wait(200)
            printed.append(step.unfinished("stdout", number))
        assert [step.unfinished("stdout", number) for number in (1, 2, 3)] == printed
        assert len(set(printed)) == 3
        assert step.names() == {"unfinished-1", "unfinished-2", "unfinished-3"}

    @pytest.mark.parametrize("apart_ms", [4, pytest.param(0.2, marks=pytest.mark.soak)])
    def test_a_signal_at_any_moment_leaves_a_step_that_can_be_run(
        self, tmp_path: Path, shell: str, apart_ms: float
    ) -> None:
        step = stage(tmp_path, shell, f"{DAEMON} {SOUND}; sleep 0.02")
        for number in range(round(60 / apart_ms)):
            with running(step.start()) as process:
                time.sleep(number * apart_ms / 1000)
                process.terminate()
                assert process.wait(200) in (143, -signal.SIGTERM, 0)
            assert step.processes() == []
        assert step.run() == 0
        ends = list(step.folder.glob("execution-*/rc"))
        assert ends
        assert all(path.read_text(encoding="utf-8") == "0\n" for path in ends)

    def test_a_running_step_is_not_started_a_second_time(self, tmp_path: Path, shell: str) -> None:
        waits = f"echo on; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo END"
        step = stage(tmp_path, shell, waits)
        with running(step.start()) as first:
            wait_for_output(step, "on")
            with running(step.start()) as second:
                _, messages = second.communicate(timeout=200)
            (tmp_path / "go").touch()
            assert second.returncode == 74
            assert messages == f"0001-fake: runs already, as process {first.pid}\n"
            assert first.wait(200) == 0
        assert step.text("stdout") == "on\nEND\n"
        assert step.names() == {"execution-1"}

    def test_processes_of_a_killed_script_are_ended_first(self, tmp_path: Path, shell: str) -> None:
        program = f"{DAEMON} echo part; [ -e {tmp_path}/go ] && echo END || sleep 100"
        step = stage(tmp_path, shell, program)
        with running(step.start()) as process:
            wait_for_output(step, "part")
            process.kill()
            process.wait(200)
        assert step.processes(patience=0) != []
        (tmp_path / "go").touch()
        assert step.run() == 0
        assert step.processes() == []
        assert step.unfinished("stdout") == "part\n"


class TestAgain:
    def test_a_finished_step_is_repeated_in_another_folder(
        self, tmp_path: Path, shell: str
    ) -> None:
        count = f'echo x >>"{tmp_path}/count"; wc -l <"{tmp_path}/count"; cat in.txt'
        step = stage(tmp_path, shell, count, inputs={"in.txt": "given\n"})
        assert step.run() == 0
        first = snapshot(step.folder)
        assert [step.run(), step.run()] == [0, 0]
        now = snapshot(step.folder)
        assert {name: now[name] for name in first} == first
        outputs = [step.text("stdout", number).split() for number in (1, 2, 3)]
        assert outputs == [["1", "given"], ["2", "given"], ["3", "given"]]
        for number in (2, 3):
            assert step.text("rc", number) == "0\n"
            assert step.json("when.json", number)["timed_out"] is False
            assert len(step.json("binding.json", number)) == 1

    def test_an_interrupted_repetition_has_no_result(self, tmp_path: Path, shell: str) -> None:
        step = stage(tmp_path, shell, f"echo part; [ ! -e {tmp_path}/wait ] || sleep 100")
        assert step.run() == 0
        first = snapshot(step.folder)
        (tmp_path / "wait").touch()
        with running(step.start()) as process:
            until(lambda: "part" in step.unfinished("stdout", 2))
            process.terminate()
            assert process.wait(200) == 143
        assert step.unfinished("rc", 2) == ""
        (tmp_path / "wait").unlink()
        assert step.run() == 0
        assert step.text("rc", 3) == "0\n"
        now = snapshot(step.folder)
        assert {name: now[name] for name in first} == first


class TestBinding:
    def test_a_rank_reports_its_allowed_cpus(self, tmp_path: Path, shell: str) -> None:
        step = stage(tmp_path, shell)
        assert step.run() == 0
        (bound,) = step.json("binding.json")
        assert (bound["rank"], bound["host"]) == (0, os.uname().nodename)
        assert cpu_list(bound["cpus"]) == os.sched_getaffinity(0)

    def test_threads_get_their_places_in_order(self, tmp_path: Path, shell: str) -> None:
        program = 'echo "$OMP_NUM_THREADS $OMP_PLACES $OMP_PROC_BIND"'
        sweep = {"size": 1, "threads": 2, "placement": "close"}
        step = stage(tmp_path, shell, program, launch="threads", sweep=sweep)
        assert step.run() == 0
        assert step.text("stdout") == "2 {0},{1} close\n"

    @pytest.mark.parametrize("name", ["plain", 'it\'s a "run"'])
    def test_ranks_of_open_mpi_run_on_the_planned_cpus(
        self, tmp_path: Path, shell: str, name: str
    ) -> None:
        ranks = min(2, len(os.sched_getaffinity(0)))
        program = 'echo "$OMPI_COMM_WORLD_RANK"; pwd >&2'
        # mpirun needs ssh or rsh in PATH, even for ranks on one node.
        step = stage_mpi(tmp_path / name, program, ranks, f"{shell}:{os.environ['PATH']}")
        assert step.run() == 0, step.text("stderr")
        assert sorted(step.text("stdout").split()) == [str(rank) for rank in range(ranks)]
        assert step.text("stderr").splitlines() == [f"{step.folder}/unfinished-1"] * ranks
        host = os.uname().nodename
        expected = [
            {"rank": rank, "host": host, "cpus": str(rank), "memory": "default"}
            for rank in range(ranks)
        ]
        assert step.json("binding.json") == expected

    def test_a_rank_that_is_killed_ends_the_step(self, tmp_path: Path) -> None:
        step = stage_mpi(tmp_path, '[ "$OMPI_COMM_WORLD_RANK" = 1 ] && kill -KILL $$; sleep 100', 2)
        assert step.run() == 137
        assert step.processes() == []

    def test_the_watchdog_ends_all_ranks(self, tmp_path: Path) -> None:
        step = stage_mpi(tmp_path, "trap '' TERM; while :; do sleep 100; done", 2, timeout=LIMIT_S)
        assert step.run() != 0
        assert step.json("when.json")["timed_out"] is True
        assert step.processes() == []


def stage_mpi(
    folder: Path, program: str, ranks: int, path: str = os.environ["PATH"], **case: Any
) -> Staged:
    """Write a step with the launcher openmpi; `path` has the shell of its ranks."""
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    assert mpirun, "openmpi-bin is missing: requirements/debian-dev.txt"
    package = {"launcher": "openmpi", "prefix": str(Path(mpirun).parents[1])}
    return stage(
        folder,
        path,
        program,
        package,
        launch="mpi",
        sweep={"size": 1, "ranks": ranks},
        **case,
    )


@pytest.mark.parametrize(
    "variable", ["SLURM_PROCID", "PMI_RANK", "PMIX_RANK", "MP_CHILD", "FLUX_TASK_RANK"]
)
def test_the_rank_variable_of_an_outer_launcher_is_ignored(
    tmp_path: Path, shell: str, variable: str
) -> None:
    step = stage(tmp_path, shell)
    assert step.run(None, None, **{variable: "5"}) == 0
    (bound,) = step.json("binding.json")
    assert bound["rank"] == 0
