"""Scripts on many nodes: results, limits, host names, ssh, and stopping."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.kit import make_kit, until
from tests.fixtures.shells import remote_shell
from tests.fixtures.sshd import Sshd, reserved_port, sshd
from tests.processes import running

from proofmark.common.errors import BadInput
from proofmark.common.nodesets import fold, folded, unfold
from proofmark.common.processes import stop_signals
from proofmark.machine import node_commands
from proofmark.machine.node_commands import (
    SCRIPT,
    NodeResult,
    Result,
    check_failure_budget,
    run_commands,
    run_on_nodes,
)
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.access import Access, HostAccess
from proofmark.site.firmware import Firmware
from proofmark.site.inventory import Site, load_site

ODD_NAMES = (
    *("-oProxyCommand=touch ran", "n1;touch ran", "$(touch ran)", "`touch ran`", "n'1", 'n"1'),
    *("a b", "root@n1", "@all", "*", "%h", "n[1-2]", "n1,n2", "!n1", "n1&n2", "", "n1\nHost *"),
)


def run_all(
    commands: Mapping[str, list[str]], text: str = "", timeout_s: float = 60, at_once: int = 64
) -> dict[str, NodeResult]:
    with stop_signals() as group:
        return run_commands(commands, text, timeout_s=timeout_s, at_once=at_once, group=group)


def finished(result: Result) -> subprocess.CompletedProcess[str]:
    assert isinstance(result, subprocess.CompletedProcess), result
    return result


def await_end(pid_file: Path) -> None:
    """Wait until the process of that id has ended."""
    process = Path(f"/proc/{pid_file.read_text().strip()}/stat")

    def has_ended() -> bool:
        try:
            return process.read_text().rpartition(") ")[2].startswith("Z")
        except (FileNotFoundError, ProcessLookupError):
            return True

    until(has_ended, 60)


def site_of_command(folder: Path, command: list[str]) -> Site:
    firmware = Firmware(back_end="record", remote_shell=command)
    site = make_kit(folder / "kit").site(firmware=firmware)
    return site.model_copy(update={"remote_shell": command, "ssh": None})


class TestResults:
    def test_outputs_are_separate_and_complete(self) -> None:
        """Carriage returns, no newline at the end, NUL and bytes that are no UTF-8 stay."""
        printed = r"a\rb\r\nc\0\377"
        commands = {
            f"n{number}": [
                "sh",
                "-c",
                f"printf '{printed}{number}'; printf e{number} >&2; exit {number}",
            ]
            for number in range(3)
        }
        for number, result in enumerate(map(finished, run_all(commands).values())):
            assert result.stdout == f"a\rb\r\nc\0\ufffd{number}"
            assert (result.stderr, result.returncode) == (f"e{number}", number)

    def test_large_input_and_output_are_complete(self) -> None:
        text, script = "x" * 3_000_000, 'x=$(cat); printf %s "$x"; printf %s "$x" >&2'
        result = finished(run_all({"n1": ["sh", "-c", script]}, text)["n1"])
        assert (result.stdout, result.stderr) == (text, text)

    def test_a_command_need_not_read_its_input(self, capfd: pytest.CaptureFixture[str]) -> None:
        result = finished(run_all({"n1": ["sh", "-c", "exit 5"]}, "x" * 3_000_000)["n1"])
        assert result.returncode == 5
        assert capfd.readouterr().err == ""

    def test_a_command_that_a_signal_ends_has_its_number(self) -> None:
        assert finished(run_all({"n1": ["sh", "-c", "kill -9 $$"]})["n1"]).returncode == -9

    def test_no_command_is_no_result(self) -> None:
        assert run_all({}) == {}

    def test_commands_get_the_signals_of_a_shell(self) -> None:
        """Python ignores SIGPIPE; a script whose reader has ended must end."""
        result = finished(run_all({"n1": ["sh", "-c", "grep SigIgn /proc/self/status"]})["n1"])
        ignored = int(result.stdout.split()[-1], 16)
        assert not ignored >> (signal.SIGPIPE - 1) & 1

    def test_a_program_that_does_not_start_fails_for_its_node(self, tmp_path: Path) -> None:
        plain = tmp_path / "plain"
        plain.write_text("")
        missing = [f"m{number}" for number in range(5)]
        commands = {node: ["/no/such/program"] for node in missing}
        commands |= {"p1": [str(plain)], "n1": ["sh", "-c", "echo ok"]}
        results = run_all(commands, at_once=2)
        assert [type(results[node]) for node in missing] == [FileNotFoundError] * 5
        assert isinstance(results["p1"], PermissionError)
        assert finished(results["n1"]).stdout == "ok\n"


class TestLimits:
    def test_a_node_that_hangs_ends_at_its_limit_and_delays_no_other(self) -> None:
        hangs = {
            "sleeps": "sleep 60",
            "closes": "exec >&- 2>&- <&-; sleep 60",
            "leaves": "sleep 60 & exit 0",
        }
        sound = {f"n{number}": "echo ok" for number in range(20)}
        scripts = {**hangs, **sound}
        limit_s, began = 6, time.monotonic()
        commands = {node: ["sh", "-c", text] for node, text in scripts.items()}
        results = run_all(commands, timeout_s=limit_s, at_once=4)
        assert time.monotonic() - began < len(hangs) * limit_s, "one after another"
        assert [type(results[node]) for node in hangs] == [subprocess.TimeoutExpired] * 3
        assert {finished(results[node]).stdout for node in sound} == {"ok\n"}

    def test_the_end_of_a_command_that_closes_its_outputs_is_awaited(self) -> None:
        words = ["sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 7"]
        assert finished(run_all({"n1": words})["n1"]).returncode == 7

    def test_the_limit_kills_the_children_of_a_command(self, tmp_path: Path) -> None:
        script = f"sleep 60 & echo $! >{tmp_path}/pid; wait"
        run_all({"n1": ["sh", "-c", script]}, timeout_s=0.5)
        await_end(tmp_path / "pid")

    def test_two_hundred_nodes_use_at_most_the_fanout(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(node_commands, "AT_ONCE", 8)
        (tmp_path / "running").mkdir()
        count = f"cd {tmp_path}/running; : >{{node}}; set -- *; echo $#; sleep 0.02; rm {{node}}"
        site = site_of_command(tmp_path, ["sh", "-c", count])
        names = [f"n{number:03d}" for number in range(200)]
        outputs, failed = run_on_nodes(site, names)
        assert (list(outputs), failed) == (names, {})
        assert max(map(int, outputs.values())) == 8


class TestNames:
    def test_an_odd_name_runs_and_expands_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        site = site_of_command(tmp_path, ["sh", "-c", "echo {node}"])
        outputs, failed = run_on_nodes(site, [*ODD_NAMES, "n1", "n2"])
        assert outputs == {"n1": "n1\n", "n2": "n2\n"}
        assert list(failed) == list(ODD_NAMES)
        assert {error.outcome for error in failed.values()} == {Outcome.UNREACHABLE}
        assert not (tmp_path / "ran").exists()
        with pytest.raises(BadInput, match="this is no host name; accepted: letters"):
            check_failure_budget(site, "scratch", len(failed) + 2, failed, "an answer")

    @pytest.mark.parametrize("name", ["@all", "-x", "n1;id"])
    def test_one_node_gets_the_same_check(self, name: str) -> None:
        with pytest.raises(NodeError, match="this is no host name"):
            remote_shell(["sh", "-s"], 5)(name, "echo ran")

    def test_an_odd_name_is_text_in_a_node_set(self) -> None:
        """ClusterShell's own default configuration has groups: '*' would become their nodes."""
        assert folded(["n1", "n2", "@all", "*", "a&b", "!x"]) == "n[1-2], @all, *, a&b, !x"
        assert folded(["n1", "n[2"]) == "n1, n[2"
        for name in ("@all", "*"):
            with pytest.raises(ValueError, match="no host name"):
                fold([name])
            with pytest.raises(ValueError, match="no host name"):
                unfold([name])


RUNS_SCRIPT = """
import sys
from pathlib import Path
from proofmark.common.errors import Stopped
from proofmark.machine import node_commands
from proofmark.machine.node_commands import run_on_nodes
from proofmark.site.inventory import Site
try:
    run_on_nodes(Site.model_validate_json(Path(sys.argv[1]).read_text()), ["n1", "n2", "n3"])
except Stopped as error:
    sys.exit(f"stopped by {error}")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_process_and_no_file(tmp_path: Path, number: signal.Signals) -> None:
    for name in ("bin", "pids", "tmp"):
        (tmp_path / name).mkdir()
    stub = tmp_path / "bin" / "ssh"
    stub.write_text(f"#!/bin/sh\nsleep 60 &\necho $! >{tmp_path}/pids/$$\nwait\n")
    stub.chmod(0o755)
    access = Access(usual=HostAccess())
    site = make_kit(tmp_path / "kit").site().model_copy(update={"ssh": access})
    (tmp_path / "site.json").write_text(site.model_dump_json())
    environment = {
        **os.environ,
        "PATH": f"{stub.parent}:{os.environ['PATH']}",
        "TMPDIR": f"{tmp_path}/tmp",
    }
    command = [sys.executable, "-c", RUNS_SCRIPT, f"{tmp_path}/site.json"]
    started = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    with running(started) as process:
        pids = tmp_path / "pids"
        until(lambda: sum(bool(file.read_text()) for file in pids.iterdir()) == 3, 600)
        process.send_signal(number)
        assert process.wait(600) == 1
        assert process.stderr
        assert process.stderr.read() == f"stopped by {number.name}\n"
    for file in pids.iterdir():
        await_end(file)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_an_odd_name_fails_for_its_node_only(tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho reached\n")
    ssh.chmod(0o755)
    access = Access(usual=HostAccess(program=f"{ssh}"))
    site = make_kit(tmp_path / "kit").site().model_copy(update={"ssh": access})
    outputs, failed = run_on_nodes(site, [*ODD_NAMES, "n1"])
    assert (outputs, list(failed)) == ({"n1": "reached\n"}, list(ODD_NAMES))
    assert {error.outcome for error in failed.values()} == {Outcome.UNREACHABLE}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    with sshd(tmp_path / "server") as started:
        yield started


def inventory(folder: Path, server: Sshd, hosts: Mapping[str, Mapping[str, Any]]) -> Site:
    """Return a site whose hosts are reached by ssh with the key of `server`."""
    place = folder / "site"
    (place / "group_vars").mkdir(parents=True)
    groups = {"compute": {"children": {"p": {"hosts": hosts}}}}
    (place / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    known = f"-o UserKnownHostsFile={server.folder}/known_hosts -o GlobalKnownHostsFile=/dev/null"
    variables = {
        "ansible_ssh_private_key_file": f"{server.folder}/key",
        "ansible_ssh_common_args": f"{known} -o IdentitiesOnly=yes",
        "partition": {
            "environment": "local",
            "provision_from": "system",
            "scheduler": "none",
            "scratch": {"path": "/scratch"},
        },
    }
    (place / "group_vars" / "p.yml").write_text(yaml.safe_dump(variables))
    return load_site(place, "p")


@pytest.mark.root
@pytest.mark.fault("node-without-answer")
def test_of_three_nodes_one_answers_one_refuses_and_one_hangs(
    tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_commands, "TIMEOUT_S", 20.0)
    loopback = {"ansible_host": "127.0.0.1"}
    with socket.create_server(("127.0.0.1", 0)) as silent, reserved_port() as closed:
        ports = {"refuses": closed, "hangs": silent.getsockname()[1], "answers": server.port}
        hosts = {name: {**loopback, "ansible_port": port} for name, port in ports.items()}
        site = Site.model_validate_json(inventory(tmp_path, server, hosts).model_dump_json())
        outputs, failed = run_on_nodes(site, site.hosts, (SCRIPT, ["sh", "/no such/program;"]))
    assert outputs == {"answers": "! no such program: /no such/program;\n"}
    assert failed["refuses"].outcome is Outcome.UNREACHABLE
    assert "Connection refused" in failed["refuses"].text
    assert str(failed["hangs"]) == "NO_ANSWER: hangs: ssh did not answer within 20 s"


@pytest.mark.root
def test_nodes_that_answer(tmp_path: Path, server: Sshd) -> None:
    """The control of the test above; one node is reached through a gate of the site's own file.

    Another one has a configuration that forces a terminal, which echoes what it reads.
    """
    (tmp_path / "terminal").write_text("Host *\n  RequestTTY force\n")
    (tmp_path / "own").write_text(
        f"Host gate\n  HostName 127.0.0.1\n  Port {server.port}\n"
        f"  IdentityFile {server.folder}/key\n  UserKnownHostsFile {server.folder}/known_hosts\n"
    )
    reached = {"ansible_host": "127.0.0.1", "ansible_port": server.port}
    through = {**reached, "ansible_ssh_extra_args": f"-F {tmp_path}/own -J gate"}
    forced = {**reached, "ansible_ssh_extra_args": f"-F {tmp_path}/terminal"}
    site = inventory(tmp_path, server, {"n1": reached, "n2": through, "n3": forced})
    outputs, failed = run_on_nodes(site, site.hosts, (SCRIPT, ["/bin/sh"]))
    assert (outputs, failed) == (dict.fromkeys(("n1", "n2", "n3"), ""), {})
    assert len(server.accepted()) == 4
