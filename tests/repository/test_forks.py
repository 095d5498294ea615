"""The commands of the tests, which run in forks, do what the started commands do."""

from __future__ import annotations

import json
import marshal
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import until
from tests.folders import ROOT, let_all_enter
from tests.forks import CLIENT, REAL, WANTED, Wanted, script, served, tool, tools
from tests.processes import running

pytestmark = pytest.mark.rest("each command starts twice; wrong forks fail many other tests")

PYTHON = Path(sys.executable).resolve()
"""Its path has no blank: the first line of a script cannot have one."""
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "100"}
PROGRAM = r"""
import json, locale, os, signal, sys, time
def shown():
    streams = (sys.stdin, sys.stdout, sys.stderr)
    handlers = {f"{each!r}": f"{signal.getsignal(each)}" for each in signal.valid_signals()}
    return {
        "words": sys.argv, "name": __name__, "file": __file__, "path": sys.path[0],
        "folder": os.getcwd(), "variables": {**os.environ}, "umask": os.umask(0o22),
        "streams": [(s.name, s.mode, s.encoding, s.errors, s.line_buffering) for s in streams],
        "stdin": sys.stdin.read(), "handed": os.read(9, 99).decode(), "handlers": handlers,
        "ids": [os.getresuid(), os.getresgid(), os.getgroups()], "nice": os.nice(0),
        "flags": f"{sys.flags}", "python": sys.executable, "locale": locale.getlocale(),
        "command": open("/proc/self/cmdline").read().rstrip("\0").split("\0")[1:],
        "comm": open("/proc/self/comm").read(),
    }
def waits():
    print("forked" if "tests.forks" in sys.modules else "started", os.getpid(), flush=True)
    time.sleep(600)
"""


STATE = "import marshal, sys, client; sys.stdout.buffer.write(marshal.dumps(client.state()))"
SPAWN = f"""
import os, sys, threading
end = threading.Event()
threading.Thread(target=end.wait).start()
os.setuid(os.getuid())
child = os.posix_spawn(sys.executable, [sys.executable, "-c", {STATE!r}], os.environ)
end.set()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
"""After a change of the user of all threads, children of posix_spawn ignore signal 33."""


@pytest.mark.parametrize("code", [STATE, SPAWN], ids=["fork", "posix_spawn"])
def test_the_commands_of_tests_run_in_forks(code: str) -> None:
    """A command that this process starts has the state of the server, whatever the machine sets."""
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=CLIENT.parent,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        stdout=subprocess.PIPE,
        check=True,
    )
    for name in WANTED:
        assert marshal.loads(found.stdout) == marshal.loads(
            (tools() / f".{name}/state").read_bytes()
        )


def called(command: str, words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, *words],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "line",
    [
        "proofmark --version",
        "proofmark",
        "proofmark no-such-command",
        "proofmark plan --help",
        "proofmark status no-such-run",
        "proofmark cases",
        "proofmark plan -i inventory/example-xeon -l xeon --suite quick",
        "proofmark plan -i inventory/example-xeon -l nobody",
        "ansible-playbook --help",
        "ansible-playbook acceptance.yml -i inventory/local -l local -e suit=p1",
    ],
)
def test_a_fork_prints_and_returns_what_the_started_command_does(line: str) -> None:
    command, *words = shlex.split(line)
    assert tool(command) != f"{REAL / command}"
    started = called(f"{REAL / command}", words, ROOT)
    forked = called(tool(command), words, ROOT)
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )


@dataclass(frozen=True)
class Pair:
    """A script that is started, and its client."""

    started: Path
    forked: Path

    def both(self, code: str, **how: Any) -> list[tuple[int, str, str]]:
        """Return exit code, output and errors of the started and the forked script."""
        script(self.started, PYTHON, f"{PROGRAM}\n{code}")
        ended = []
        for command in (self.started, self.forked):
            given = self.forked.with_name("given")
            call = ["sh", "-c", f'exec "$0" "$@" 9<"{given}"', f"{command}", "a b", "ö"]
            options: Any = {"env": ENVIRONMENT, "capture_output": True, "text": True, **how}
            done = subprocess.run(call, check=False, **options)
            ended.append((done.returncode, done.stdout, done.stderr))
        return ended

    @contextmanager
    def waiting(self, **how: Any) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
        """Yield the process of a client, how its script began, and the number of that process."""
        script(self.started, PYTHON, f"{PROGRAM}\nwaits()")
        options: Any = {"env": ENVIRONMENT, "text": True, "start_new_session": True, **how}
        options |= {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
        with running(subprocess.Popen([f"{self.forked}"], **options)) as process:
            assert process.stdout
            how_begun, number = process.stdout.readline().split()
            yield process, how_begun, int(number)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path / "real" / "script", tmp_path / "script")
    made.started.parent.mkdir()
    (tmp_path / "given").touch()
    nothing = Wanted(modules=[], packages=[], around=[])
    with served(made.forked, made.started, PYTHON, nothing):
        until((tmp_path / ".script/state").exists)
        yield made


def test_a_fork_has_all_that_a_start_has(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("handed")
    (tmp_path / "folder").mkdir()
    how = {"env": {**ENVIRONMENT, "ONE": "1"}, "input": "é\n", "cwd": tmp_path / "folder"}
    started, forked = pair.both("print(json.dumps(shown()))", **how)
    assert (started[0], started[2]) == (0, "")
    assert json.loads(forked[1]) == json.loads(started[1])


@pytest.mark.parametrize(
    "code",
    [
        "sys.exit(7)",
        "sys.exit('a text')",
        "print('no end', end='')",
        "raise KeyError('x')",
        "raise KeyboardInterrupt",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "import atexit; atexit.register(print, 'at the end'); print('first')",
        "import threading; threading.Timer(0.2, print, ['late']).start()",
        "os.close(1); os._exit(3)",
    ],
)
def test_a_fork_ends_as_a_start_does(pair: Pair, code: str) -> None:
    started, forked = pair.both(code)
    assert forked[:2] == started[:2]
    assert forked[2].splitlines()[-1:] == started[2].splitlines()[-1:]


def test_a_signal_ends_the_fork(pair: Pair) -> None:
    for send, number in (
        (os.kill, signal.SIGTERM),
        (os.killpg, signal.SIGINT),
        (os.kill, signal.SIGKILL),
    ):
        with pair.waiting() as (process, begun, child):
            assert begun == "forked" and child != process.pid
            send(process.pid, number)
            process.communicate(timeout=60)
        assert process.returncode == -number
        until(lambda: not Path(f"/proc/{child}").exists(), 60)


@pytest.mark.parametrize(
    "how",
    [
        {"umask": 0o77},
        {"env": {**ENVIRONMENT, "PYTHONPATH": "/nowhere"}},
        {"env": {**ENVIRONMENT, "LC_ALL": "C"}},
        {"preexec_fn": lambda: os.nice(1)},
        {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)},
    ],
)
def test_a_process_in_another_state_executes_the_command(pair: Pair, how: dict[str, Any]) -> None:
    with pair.waiting(**how) as (process, begun, child):
        assert (begun, child) == ("started", process.pid)
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.root
def test_another_user_executes_the_command(pair: Pair, tmp_path: Path) -> None:
    let_all_enter(tmp_path)
    with pair.waiting(user="nobody") as (process, begun, _):
        assert begun == "started"
        process.terminate()
        process.communicate(timeout=60)
