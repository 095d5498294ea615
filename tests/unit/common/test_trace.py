"""Tests of the trace: each call has a line, and no line contains the input or the output."""

from __future__ import annotations

import logging
import re
import subprocess
import time
from pathlib import Path

import pytest
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.fixtures.kit import make_kit
from tests.fixtures.shells import remote_shell
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.common.processes import Process, run_command, stop_signals
from proofmark.machine.bmc.back_end import BackEndContext, Credentials, Host, back_end
from proofmark.machine.node_commands import run_commands
from proofmark.site.firmware import Firmware
from proofmark.site.inventory import load_site


def test_a_call_is_traced_with_its_exit_code_and_duration(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "proofmark.trace"):
        done = run_command(["sh", "-c", "cat; exit 3"], text="secret input")
    assert (done.returncode, done.stdout) == (3, "secret input")
    (line,) = caplog.messages
    assert re.fullmatch(r"sh -c 'cat; exit 3': exit code 3 after \d+\.\d{3} s", line)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["no-such-program"], FileNotFoundError),
        (["sleep", "60"], subprocess.TimeoutExpired),
    ],
)
def test_a_call_that_fails_is_traced_with_its_error(
    caplog: pytest.LogCaptureFixture, words: list[str], error: type[Exception]
) -> None:
    with caplog.at_level(logging.INFO, "proofmark.trace"), pytest.raises(error):
        run_command(words, timeout_s=0.05)
    assert f": {error.__name__} after " in caplog.messages[0]


def test_each_command_of_a_node_is_traced(caplog: pytest.LogCaptureFixture) -> None:
    commands = {
        "n1": ["sh", "-c", "exit 3", "n1"],
        "n2": ["sh", "-c", "sleep 60", "n2"],
        "n3": ["/no/such/program", "n3"],
    }
    with caplog.at_level(logging.INFO, "proofmark.trace"), stop_signals() as group:
        run_commands(commands, "secret input", timeout_s=6, at_once=3, group=group)
    expected = (
        r"n1: sh -c 'exit 3' n1: exit code 3 after \d+\.\d{3} s",
        r"n2: sh -c 'sleep 60' n2: TimeoutExpired after \d+\.\d{3} s",
        r"n3: /no/such/program n3: FileNotFoundError after \d+\.\d{3} s",
    )
    traced = [each.message for each in caplog.records if each.name == "proofmark.trace"]
    assert len(traced) == 3
    assert all(map(re.fullmatch, expected, sorted(traced)))


def test_a_script_is_named_with_its_arguments_and_without_passwords(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = "#!/bin/sh\n# mount.sh mounts\nset -- of the script\nexit 0\n"
    text = f"the password of sudo\nset -- mount 'a b' -o user=x,password=y\n{script}"
    with caplog.at_level(logging.INFO, "proofmark.trace"):
        run_command(["sh", "-c", "cat"], text=text)
    (line,) = caplog.messages
    expected = "sh -c cat < mount.sh mount 'a b' -o user=x,password=***: exit code 0 after "
    assert line.startswith(expected)


def test_without_the_option_nothing_is_traced(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["sh", "-c", "exit 0"])
    assert capsys.readouterr().err == ""


def test_a_request_to_a_bmc_is_traced_without_credentials(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Emulator(["n1"], tmp_path / "bmc") as emulator:
        facts = {"back_end": "redfish", "port": emulator.port, "ca": str(emulator.ca)}
        firmware = Firmware.model_validate({**facts, "auth": "session", "bmc": "127.9.0.1"})
        context = BackEndContext(firmware, Credentials(USER, PASSWORD), remote_shell(["true"], 1))
        with caplog.at_level(logging.INFO, "proofmark.trace"):
            back_end(context).read(Host("n1", emulator.address("n1")), {})
    assert any(line.startswith("GET https://127.9.") for line in caplog.messages)
    optional = "/TaskService/"  # which this BMC lacks
    assert all(": status 20" in line or optional in line for line in caplog.messages)
    assert PASSWORD not in caplog.text


def test_the_option_writes_the_trace_into_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_kit(tmp_path).run(site=load_site(ROOT / "inventory/local", "local"))
    assert main(["-v", "stage", "check-programs", str(run.folder), "--program=/bin/sh"]) == 0
    traced = run.files.trace.read_text()
    line = r"^\S+ \S+: sh -s < missing-programs\.sh /bin/sh .*: exit code 0 after "
    assert re.search(line, traced, re.MULTILINE)
    assert traced in capsys.readouterr().err


def test_a_run_whose_trace_is_a_link_gets_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_kit(tmp_path / "kit").run(site=load_site(ROOT / "inventory/local", "local"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("")
    run.files.trace.symlink_to(elsewhere)
    assert main(["-v", "stage", "check-programs", str(run.folder), "--program=/bin/sh"]) == 0
    assert elsewhere.read_text() == ""
    messages = capsys.readouterr().err
    assert f"no trace in the run: {run.files.trace}" in messages
    assert "sh -s < missing-programs.sh" in messages


def test_a_process_that_not_even_sigkill_ends_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One in state D waits for a dead file system. Here nothing sends the signal."""
    left: list[Process] = []

    def kill(process: Process) -> None:
        process.killed = True
        left.append(process)

    monkeypatch.setattr(Process, "kill", kill)
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(["sleep", "30"], timeout_s=0.2)
    assert time.monotonic() - began < 10
    (process,) = left
    process.killed = False
    process.terminate()
    process.wait()


def test_control_characters_of_a_command_do_not_reach_the_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "proofmark.trace"):
        run_command(["sh", "-c", ":", "n1\n2026-01-01 ssh n2: exit code 0\x1b[2J"])
    (line,) = caplog.messages
    assert line.isprintable()
