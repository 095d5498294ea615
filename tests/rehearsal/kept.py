"""A rehearsal whose virtual cluster stays after the run: make rehearsal KEEP=1, rehearsal-end.

A process in the background holds the cluster, which ends with it. `STATE` names this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from tests.rehearsal.play import INVENTORY, environment_of, limit_of
from tests.rehearsal.room import Room

STATE = Path(os.environ.get("PROOFMARK_REHEARSAL_KEPT", "/run/proofmark-rehearsal.json"))
"""Only root can write it, so that nobody else chooses which process is ended. Each process of the
tests has its own."""
KEPT = "the virtual cluster stays: exit code "
"""Begins the line after which the process in the background prints nothing."""
END_S = 60.0
"""The time for the end of the cluster before it is killed."""


def relay(arguments: Sequence[str]) -> int:
    """Start the rehearsal in the background, print its lines until it is kept; return its code."""
    command = [sys.executable, "-m", "tests.rehearsal", *arguments]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        env={**os.environ, HELD: "yes"},
    )
    assert process.stdout
    with _passed_on(process):
        for line in process.stdout:
            if line.startswith(KEPT):
                return int(line.removeprefix(KEPT))
            print(line, end="", flush=True)
        return process.wait()


HELD = "PROOFMARK_REHEARSAL_HELD"
"""Environment variable of the process in the background."""


@contextlib.contextmanager
def _passed_on(process: subprocess.Popen[str]) -> Iterator[None]:
    """Pass each signal on to `process`, which then ends the cluster."""

    def send(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, send) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def hold(room: Room, checkout: Path, code: int) -> None:
    """Print how to use `room`, and keep it until this process gets a signal."""
    enter = room.folder / "enter"
    enter.write_text(_enter(environment_of(room), checkout))
    state = {"pid": os.getpid(), "born": _born(os.getpid()), "folder": f"{room.folder}"}
    STATE.write_text(json.dumps(state) + "\n")
    for line in instructions(enter, limit_of(room.shape, room.names), room.names[1]):
        print(line, flush=True)
    print(f"{KEPT}{code}", flush=True)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(nothing, number)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            signal.pause()
    STATE.unlink(missing_ok=True)


def instructions(enter: Path, limit: str, node: str) -> list[str]:
    """Return how to reach the nodes, how to practise, and how to remove the cluster.

    Args:
        enter: the file with the variables of the cluster.
        limit: what selects the nodes of the cluster.
        node: the node that is the example.
    """
    play = f"ansible-playbook {{}} -i {INVENTORY} -l {{}}"
    acceptance = play.format("acceptance.yml", limit)
    acceptance += " -e suite=rehearsal -e confirm_reboot=true"
    restore = play.format("playbooks/restore.yml", limit)
    gate = play.format("playbooks/gate.yml", node)
    return [
        "",
        "The virtual cluster stays. First, in any shell of root:",
        f"  . {shlex.quote(f'{enter}')}",
        "Reach it:",
        f"  sinfo; ssh {node} uname -n",
        "Practise Ctrl-C and restore: stop this play while a mode is set or a job runs. Restore:",
        f"  {acceptance} -e fresh=true",
        f"  {restore} -e confirm_reboot=true",
        "  or continue it: the same command without -e fresh=true",
        "Practise the gate: a node after a repair is drained; the gate measures and resumes it:",
        f"  scontrol update nodename={node} state=drain reason=repair",
        f"  {gate} -e suite=rehearsal-short -e take_over=true -e gate_accept_unjudged=true",
        "Remove it:",
        "  make rehearsal-end",
    ]


def end() -> int:
    """End the kept cluster and remove its files; print what was done. Return the exit code."""
    state = read_state()
    if state is None:
        print("no virtual cluster is kept")
        return 0
    pid, folder = int(state["pid"]), Path(state["folder"])
    for number, limit in ((signal.SIGTERM, END_S), (signal.SIGKILL, 10.0)):
        if not _runs(state):
            break
        os.kill(pid, number)
        moment = time.monotonic() + limit
        while _runs(state) and time.monotonic() < moment:
            time.sleep(0.1)
    shutil.rmtree(folder, ignore_errors=True)
    STATE.unlink(missing_ok=True)
    gone = not (_runs(state) or folder.exists())
    print(f"the virtual cluster has ended; {folder} is {'removed' if gone else 'NOT removed'}")
    return 0 if gone else 1


def read_state() -> Mapping[str, Any] | None:
    """Return the kept cluster; None if there is none."""
    try:
        state: Mapping[str, Any] = json.loads(STATE.read_text())
    except FileNotFoundError:
        return None
    return state


def _runs(state: Mapping[str, Any]) -> bool:
    return _born(int(state["pid"])) == str(state["born"])


def _born(pid: int) -> str:
    """Return the start of a process in ticks; empty if it has ended."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if words[0] == "Z" else words[19]


def _enter(environment: Mapping[str, str], checkout: Path) -> str:
    """Return the lines that set the variables which differ from those of this process."""
    own = {key: value for key, value in environment.items() if os.environ.get(key) != value}
    lines = [f"export {key}={shlex.quote(value)}" for key, value in own.items()]
    return "\n".join([*lines, f"cd {shlex.quote(f'{checkout}')}", ""])
