"""Each execution of a step has its own folder, ends all of its processes and is of a known host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.fixtures.finished import judged
from tests.fixtures.kit import (
    OUTPUT,
    Kit,
    end,
    execution,
    kit_with,
    left_behind,
    steps_of,
    until,
)
from tests.processes import proc_files, running

from proofmark.jobs.execute import execute
from proofmark.runs.attempts import attempts
from proofmark.runs.job_folder import unfinished
from proofmark.runs.progress import progress
from proofmark.runs.run import Run

HERE = os.uname().nodename
NODE = "localhost"
"""The name of this machine in the inventory."""
OTHER = "another-host"
SHELLS = {"dash": ["/usr/bin/dash"], "busybox": ["/usr/bin/busybox", "sh"]}
WITHOUT_CGROUPS = (
    "for each in /sys/fs/cgroup/unified /sys/fs/cgroup; do"
    ' [ ! -e "$each/cgroup.controllers" ] || umount "$each" || exit 90; done; "$@"; exit "$?"'
)


def stray(kit: Kit) -> str:
    """Return a command that starts a process with another session and environment than the step."""
    return f"setsid env -i {kit.folder}/stray 300 &"


def hanging(kit: Kit) -> str:
    """Return commands that print a line. They then sleep if the file `go` does not exist."""
    return f"echo on; [ -e {kit.folder}/go ] || sleep 100"


@pytest.fixture(params=sorted(SHELLS))
def shell(request: pytest.FixtureRequest) -> list[str]:
    return SHELLS[request.param]


kit = kit_with(sweep={"size": 1})


def on_other_host(command: Sequence[str]) -> list[str]:
    """Return `command` on a machine with the name `OTHER` and the same file systems."""
    named = f'hostname {OTHER} && exec "$@"'
    return ["unshare", "--uts", "sh", "-c", named, "sh", *command]


def without_cgroups(command: Sequence[str]) -> list[str]:
    """Return `command` where no cgroup can be created, with its own processes."""
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [*namespaces, "sh", "-c", WITHOUT_CGROUPS, "sh", *command]


def call(command: Sequence[str]) -> int:
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False, timeout=300).returncode


@pytest.mark.root
class TestAnotherHost:
    """The program prints a good rate on `OTHER` and a bad rate on the planned node."""

    @pytest.fixture
    def run(self, kit: Kit) -> Run:
        kit.program(
            f'echo "size 1"; [ "$(uname -n)" != {OTHER} ] || '
            '{ echo "rate 900"; echo END; exit; }; '
            f'until [ -e "{kit.folder}/go" ]; do sleep 0.05; done; echo "rate 100"; echo END'
        )
        return kit.run()

    @pytest.mark.fault("step-by-hand-on-another-host")
    @pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
    def test_a_second_host_does_not_change_a_running_execution(
        self, kit: Kit, run: Run, shell: list[str], injected: bool
    ) -> None:
        (step,) = steps_of(run)
        command = [*shell, str(step / "run.sh")]
        with running(subprocess.Popen([*command, "--job"], stdin=subprocess.DEVNULL)) as process:
            until(lambda: list(step.glob("unfinished-1/stdout")) != [])
            if injected:
                assert call(on_other_host(command)) == 0
            (kit.folder / "go").touch()
            assert process.wait(300) == 0
        assert [record.value for record in [*kit.records(run)] if record.valid] == [100]
        foreign = [record for record in [*kit.records(run)] if not record.valid]
        assert [(each.node, each.value, each.reason) for each in foreign] == (
            [(OTHER, 900, f"ran on {OTHER}, planned on localhost")] if injected else []
        )
        (result,) = judged(run).results
        assert (result.verdict, result.record.node, result.values) == ("UNJUDGED", NODE, (100,))

    def test_an_execution_only_on_another_host_is_invalid(self, run: Run) -> None:
        (step,) = steps_of(run)
        assert call(on_other_host(["sh", str(step / "run.sh")])) == 0
        (result,) = judged(run).results
        assert (result.verdict, result.record.node) == ("INVALID", OTHER)
        assert result.reason == f"ran on {OTHER}, planned on localhost"

    @pytest.mark.fault("job-skips-step-of-another-host")
    @pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
    def test_a_job_runs_a_step_that_only_another_host_ran(
        self, kit: Kit, run: Run, injected: bool
    ) -> None:
        (step,) = steps_of(run)
        (kit.folder / "go").touch()
        command = ["sh", str(step / "run.sh")]
        assert call(on_other_host(command) if injected else command) == 0
        (job,) = run.plan.groups[0].jobs
        assert bool(unfinished(run, job)) is injected
        assert [each.state for each in progress(run, active=False).steps] == [
            "waiting" if injected else "done"
        ]
        execute(run, "none", lambda line: None)
        assert len(attempts(step)) == (2 if injected else 1)
        assert not unfinished(run, job)
        (result,) = judged(run).results
        assert (result.record.node, result.values) == (NODE, (100,))

    def test_the_scratch_of_another_host_is_not_removed(self, kit: Kit, shell: list[str]) -> None:
        kit.case(
            sweep={"size": 1}, arguments=["{size}", "{scratch}"], cost={"seconds": 1, "bytes": 1}
        )
        kit.program(
            f'echo "size 1"; echo data >"$2/file"; until [ -e "{kit.folder}/go" ]; do sleep 0.05; '
            'done; cat "$2/file"; echo "rate 100"; echo END'
        )
        run = kit.run()
        (step,) = steps_of(run)
        command = [*shell, str(step / "run.sh")]
        with running(subprocess.Popen(command, stdin=subprocess.DEVNULL)) as process:
            until(lambda: list(kit.folder.glob("scratch/*/*/file")) != [])
            second = subprocess.run(
                on_other_host(command), capture_output=True, text=True, check=False, timeout=300
            )
            (kit.folder / "go").touch()
            assert process.wait(300) == 0
        assert second.returncode == 74
        assert f"{HERE} uses its scratch" in second.stderr
        assert "data" in (execution(step) / "stdout").read_text()
        assert [path.name for path in step.iterdir() if path.is_dir()] == ["execution-1"]


class TestFolders:
    @pytest.mark.root
    def test_executions_that_start_together_have_different_folders(
        self, kit: Kit, shell: list[str]
    ) -> None:
        kit.program('echo "size 1"; echo "rate $$"; sleep 0.2; echo END')
        (step,) = steps_of(kit.run())
        hosts = [f"host{number}" for number in range(12)]
        commands = [
            ["unshare", "--uts", "sh", "-c", f'hostname {host} && exec "$@"', "sh", *shell]
            for host in hosts
        ]
        processes = [
            subprocess.Popen([*command, str(step / "run.sh")], stdin=subprocess.DEVNULL)
            for command in commands
        ]
        assert [process.wait(300) for process in processes] == [0] * len(hosts)
        found = attempts(step)
        assert sorted(each.host for each in found) == sorted(hosts)
        assert len({each.files.stdout.read_text() for each in found}) == len(hosts)
        assert {path.name for path in step.iterdir() if path.is_dir()} == {
            f"execution-{each.number}" for each in found
        }
        assert [each.number for each in attempts(step)] == [each.number for each in found]

    def test_one_of_two_starts_on_a_host_is_refused(self, kit: Kit, shell: list[str]) -> None:
        kit.program(
            f'echo "size 1"; echo "rate 1"; until [ -e "{kit.folder}/go" ]; do sleep 0.05; done; '
            "echo END"
        )
        (step,) = steps_of(kit.run())
        command = [*shell, str(step / "run.sh")]
        processes = [
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        until(lambda: sum(process.poll() is not None for process in processes) == 2)
        (kit.folder / "go").touch()
        messages = [process.communicate(timeout=300)[1] for process in processes]
        assert sorted(process.returncode for process in processes) == [0, 74, 74]
        assert sum("runs already, as process" in text for text in messages) == 2
        assert [path.name for path in step.iterdir() if path.is_dir()] == ["execution-1"]

    @pytest.mark.parametrize(("failing", "code"), [(1, 0), (1000, 74)])
    def test_a_claim_that_another_execution_removed_is_tried_again(
        self, kit: Kit, shell: list[str], failing: int, code: int
    ) -> None:
        """The first `failing` calls of mkdir fail, and the folder does not exist after them."""
        tools, failures = kit.folder / "tools", kit.folder / "failures"
        tools.mkdir()
        failures.write_text("0\n")
        (tools / "mkdir").write_text(
            f'#!/bin/sh\nread -r failures <"{failures}"\n'
            f'[ "$failures" -lt {failing} ] || exec /bin/mkdir "$@"\n'
            f'echo "$((failures + 1))" >"{failures}"\nexit 1\n'
        )
        (tools / "mkdir").chmod(0o755)
        (step,) = steps_of(kit.run())
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        ended = subprocess.run(
            [*shell, str(step / "run.sh")],
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert ended.returncode == code
        assert ("cannot create a folder in" in ended.stderr) is (code == 74)

    def test_a_folder_that_is_in_the_way_is_not_used(self, kit: Kit, shell: list[str]) -> None:
        (step,) = steps_of(kit.run())
        (step / "execution-1").mkdir()
        (step / "unfinished-2").mkdir()
        assert call([*shell, str(step / "run.sh")]) == 0
        assert end(step) == "0"
        assert list((step / "execution-1").iterdir()) == []
        assert (step / "execution-3" / "stdout").exists()

    def test_an_execution_without_its_files_is_invalid(self, kit: Kit) -> None:
        run = kit.run()
        (step,) = steps_of(run)
        assert call(["sh", str(step / "run.sh")]) == 0
        (execution(step) / "rc").unlink()
        (record,) = [*kit.records(run)]
        assert record.reason == "rc is damaged: No such file or directory"

    @pytest.mark.fault("output-changed")
    @pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
    def test_an_output_that_changed_is_invalid(
        self, kit: Kit, shell: list[str], injected: bool
    ) -> None:
        run = kit.run()
        (step,) = steps_of(run)
        assert call([*shell, str(step / "run.sh")]) == 0
        if injected:
            path = execution(step) / "stdout"
            path.write_text(path.read_text().replace("rate 100", "rate 900"))
        (record,) = [*kit.records(run)]
        assert record.valid is not injected
        assert record.reason == ("stdout changed after the step ended" if injected else "")

    @pytest.mark.parametrize("program", ["sha256sum", "openssl", ""])
    def test_the_node_may_have_one_program_for_digests_or_none(
        self, kit: Kit, program: str
    ) -> None:
        tools = kit.folder / "tools"
        tools.mkdir()
        used = ["sh", "cat", "date", "grep", "mkdir", "mv", "rm", "rmdir", "sed", "setsid", "sleep"]
        for name in [*used, *([program] if program else [])]:
            found = shutil.which(name)
            assert found, name
            (tools / name).symlink_to(found)
        run = kit.run()
        (step,) = steps_of(run)
        environment = {"PATH": str(tools)}
        command = ["/usr/bin/dash", str(step / "run.sh")]
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=True)
        assert (execution(step) / "outputs.sha256").exists() is bool(program)
        missing = "outputs.sha256 is missing: the outputs are not proven"
        assert [each.reason for each in [*kit.records(run)]] == ["" if program else missing]
        (execution(step) / "stdout").write_text("size 1\nrate 900\nEND\n")
        assert [each.valid for each in [*kit.records(run)]] == [False]


@pytest.mark.root
class TestSurvivors:
    """`stray` has its own session and environment, so only a cgroup or /proc finds it."""

    @pytest.fixture
    def run(self, kit: Kit) -> Run:
        shutil.copy("/usr/bin/sleep", kit.folder / "stray")
        return kit.run()

    @staticmethod
    def strays(kit: Kit) -> list[str]:
        return [
            path.parent.name
            for path in proc_files("cmdline")
            if str(kit.folder / "stray").encode() in content(path)
        ]

    @pytest.mark.fault("process-survives-its-step")
    @pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
    def test_a_process_that_survives_its_step_makes_it_invalid(
        self, kit: Kit, run: Run, shell: list[str], injected: bool
    ) -> None:
        start = stray(kit) if injected else ""
        kit.program(f'{start} echo "size 1"; echo "rate 100"; sleep 0.1; echo END')
        (step,) = steps_of(run)
        assert call(without_cgroups([*shell, str(step / "run.sh")])) == 0
        (record,) = [*kit.records(run)]
        assert record.valid is not injected
        (attempt,) = attempts(step)
        assert [name.partition(" ")[0] for name in attempt.survivors] == ["stray"] * injected
        assert record.reason == (
            f"left processes behind: {attempt.survivors[0]}" if injected else ""
        )

    def test_a_cgroup_ends_the_process(self, kit: Kit, run: Run, shell: list[str]) -> None:
        kit.program(f"{stray(kit)} {OUTPUT}")
        (step,) = steps_of(run)
        assert call([*shell, str(step / "run.sh")]) == 0
        assert self.strays(kit) == []
        (record,) = [*kit.records(run)]
        assert (
            record.reason,
            json.loads((execution(step) / "when.json").read_text())["survivors"],
        ) == (
            "",
            [],
        )

    def test_a_cgroup_ends_the_process_of_a_stopped_step(
        self, kit: Kit, run: Run, shell: list[str]
    ) -> None:
        kit.program(f"{stray(kit)} echo on; sleep 100")
        (step,) = steps_of(run)
        out = step / "unfinished-1" / "stdout"
        command = [*shell, str(step / "run.sh")]
        with running(subprocess.Popen(command, stdin=subprocess.DEVNULL)) as process:
            until(lambda: out.exists() and out.read_text() == "on\n" and self.strays(kit) != [])
            process.terminate()
            assert process.wait(300) == 143
        assert self.strays(kit) == []

    def test_a_later_start_ends_the_cgroup_of_a_killed_script(
        self, kit: Kit, run: Run, shell: list[str]
    ) -> None:
        kit.program(f"{stray(kit)} {hanging(kit)}")
        (step,) = steps_of(run)
        out = step / "unfinished-1" / "stdout"
        command = [*shell, str(step / "run.sh")]
        with running(subprocess.Popen(command, stdin=subprocess.DEVNULL)) as process:
            until(lambda: out.exists() and out.read_text() == "on\n")
            process.kill()
            process.wait(300)
        until(lambda: self.strays(kit) != [])
        (kit.folder / "go").touch()
        assert call(command) == 0
        assert self.strays(kit) == []
        assert left_behind(f"PROOFMARK_STEP={step}/") == []

    @pytest.mark.fault("helper-starts-late")
    @pytest.mark.parametrize("late", ["", "--watchdog"], ids=["control", "fault"])
    def test_a_later_start_ends_a_helper_of_a_killed_script(
        self, kit: Kit, run: Run, shell: list[str], late: str
    ) -> None:
        """The script is killed before its watchdog, which has another session, has started."""
        kit.program(hanging(kit))
        tools = kit.folder / "tools"
        tools.mkdir()
        wrapper = f'case $3 in {late or "none"}) sleep 3 ;; esac; exec /usr/bin/setsid "$@"'
        (tools / "setsid").write_text(f"#!/bin/sh\n{wrapper}\n", encoding="utf-8")
        (tools / "setsid").chmod(0o755)
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        (step,) = steps_of(run)
        out = step / "unfinished-1" / "stdout"
        command = [*shell, str(step / "run.sh")]
        with running(subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)) as first:
            until(lambda: out.exists() and out.read_text() == "on\n")
            first.kill()
            first.wait(300)
        (kit.folder / "go").touch()
        assert call(command) == 0
        assert left_behind(f"{step}/", timeout_s=30) == []

    @pytest.mark.fault("helper-of-an-ended-script")
    @pytest.mark.parametrize(
        ("verb", "code"), [("--launch", 74), ("--watchdog", 0), ("--watch", 0)]
    )
    def test_a_helper_that_starts_after_its_script_has_ended(
        self, kit: Kit, shell: list[str], verb: str, code: int
    ) -> None:
        """The helper ends at once. A watchdog or watch of a live script needs 70 s here."""
        kit.case(
            sweep={"size": 1},
            arguments=["{size}", "{scratch}"],
            cost={"seconds": 1, "bytes": 1},
            writes={"bytes": 1},
        )
        kit.program(OUTPUT)
        (step,) = steps_of(kit.run())
        ended = subprocess.Popen(["sleep", "0"])
        ended.wait()
        environment = {**os.environ, "OUT": str(kit.folder), "BINDING": str(kit.folder)}
        done = subprocess.run(
            [*shell, str(step / "run.sh"), verb, str(ended.pid)],
            cwd=kit.folder,
            env=environment,
            capture_output=True,
            timeout=45,
            check=False,
        )
        assert (done.returncode, done.stdout) == (code, b"")

    def test_a_launch_while_its_script_is_alive(self, kit: Kit, shell: list[str]) -> None:
        """Control: no fault is injected."""
        kit.program(OUTPUT)
        (step,) = steps_of(kit.run())
        command = [*shell, str(step / "run.sh"), "--launch", str(os.getpid())]
        environment = {**os.environ, "BINDING": str(kit.folder)}
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        assert done.stdout == b"size 1\nrate 100\nEND\n"

    def test_any_name_of_a_program_is_reported(self, kit: Kit, run: Run) -> None:
        names = ['a "b" \\', "tab\there", "line\nend", "naïve", "(x) S 1"]
        folder = kit.folder / "odd"
        folder.mkdir()
        for name in names:
            shutil.copy("/usr/bin/sleep", folder / name)
        kit.program(
            f'for each in {folder}/*; do setsid env -i "$each" 300 & done\n'
            'echo "size 1"; echo "rate 1"; sleep 0.1; echo END'
        )
        (step,) = steps_of(run)
        assert call(without_cgroups(["/usr/bin/dash", str(step / "run.sh")])) == 0
        (attempt,) = attempts(step)
        shown = [name.replace("\t", " ").replace("\n", " ") for name in names]
        found = [each.rpartition(" (pid ")[0] for each in attempt.survivors]
        assert sorted(found) == sorted(shown)

    def test_other_processes_of_the_user_are_not_accused(
        self, kit: Kit, run: Run, shell: list[str]
    ) -> None:
        """A child of the shell above, one of its own session, and an orphan that ends at once."""
        kit.program('echo "size 1"; echo "rate 100"; sleep 0.4; echo END')
        (step,) = steps_of(run)
        beside = kit.folder / "beside"
        beside.write_text(
            '"$@" & step=$!\n'
            "sleep 0.1\n"
            f"{kit.folder}/stray 5 &\n"
            f"setsid env -i {kit.folder}/stray 5 &\n"
            f"(setsid env -i {kit.folder}/stray 0.5 &)\n"
            'wait "$step"\n'
        )
        assert call(without_cgroups(["sh", str(beside), *shell, str(step / "run.sh")])) == 0
        (attempt,) = attempts(step)
        assert attempt.survivors == ()

    @pytest.mark.fault("concurrent-script-killed")
    @pytest.mark.parametrize("signal", ["0", "KILL"], ids=["control", "fault"])
    def test_the_helpers_of_a_killed_concurrent_step_are_not_counted(
        self, kit: Kit, signal: str
    ) -> None:
        """A signal kills the script of the second step: its sampler and watchdog become orphans."""
        kit.case(sweep={"size": [1, 2]})
        kit.program('echo "size $1"; echo "rate 100"; sleep 2; echo END')
        first, second = steps_of(kit.run())
        beside = kit.folder / "beside"
        beside.write_text(
            f"sh {first}/run.sh & first=$!\n"
            f"until [ -s {first}/unfinished-1/stdout ]; do sleep 0.1; done\n"
            f"sh {second}/run.sh & second=$!\n"
            f"until [ -s {second}/unfinished-1/stdout ]; do sleep 0.1; done\n"
            f'kill -{signal} "$second"; wait "$first"\n'
        )
        assert call(without_cgroups(["sh", str(beside)])) == 0
        assert [attempt.survivors for attempt in attempts(first)] == [()]

    def test_a_process_of_a_concurrent_step_is_not_counted(self, kit: Kit) -> None:
        """Each step starts a daemon with its environment, and ends it."""
        kit.case(sweep={"size": [1, 2, 3]})
        daemon = "(setsid sh -c 'sleep 300' &);"
        kit.program(f'{daemon} echo "size $1"; echo "rate 100"; sleep 0.$1; echo END')
        run = kit.run()
        scripts = " ".join(f'sh "{step}/run.sh" &' for step in steps_of(run))
        assert call(without_cgroups(["sh", "-c", f"{scripts} wait"])) == 0
        assert [record.reason for record in [*kit.records(run)]] == ["", "", ""]


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
