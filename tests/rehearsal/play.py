"""Runs the playbooks of an acceptance on a virtual cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tests.forks import tools
from tests.rehearsal.room import Room
from tests.rehearsal.shapes import Shape

INVENTORY = "inventory/rehearsal"
GRACE_S = 180
"""The time for a stopped play to stop its jobs."""


@dataclass(frozen=True)
class Played:
    """Exit code and output of the playbooks, and whether a signal stopped them."""

    code: int
    output: str
    stopped: bool

    def printed(self, words: str) -> bool:
        """Return whether `words` were printed, however Ansible broke the lines."""
        return words in " ".join(self.output.split())


def limit_of(shape: Shape, names: Sequence[str]) -> str:
    """Return the limit that selects `names`, which are all or some of the nodes of `shape`."""
    return shape.group if len(names) == shape.nodes else ",".join(names)


def command(room: Room, suite: str, *, modes: bool, more: Sequence[str] = ()) -> list[str]:
    """Return the command of a real acceptance; only the inventory is that of the rehearsal."""
    limit = limit_of(room.shape, room.names)
    confirmed = ["-e", "confirm_reboot=true"] if modes else []
    chosen = ["-i", INVENTORY, "-l", limit, "-e", f"suite={suite}", *confirmed]
    return ["ansible-playbook", "acceptance.yml", *chosen, *more]


def environment_of(room: Room) -> dict[str, str]:
    """Return the environment of the commands of an acceptance on `room`."""
    environment = room.environment()
    environment |= {
        "PATH": f"{room.cluster.bin}:{tools()}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
    }
    return environment


def play(room: Room, checkout: Path, call: Sequence[str], report: Callable[[str], None]) -> Played:
    """Run `call` in `checkout`, report each line of it, and inject the fault while a job runs."""
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig=TERM", *call],
        cwd=checkout,
        env=environment_of(room),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    ended = threading.Event()
    watch = threading.Thread(target=_meanwhile, args=(room, ended))
    lines: list[str] = []
    with process, _passed_on(process) as stopped, contextlib.ExitStack() as after:
        watch.start()
        after.callback(watch.join)
        after.callback(ended.set)
        assert process.stdout
        for line in process.stdout:
            lines.append(line)
            report(line.rstrip("\n"))
        code = process.wait()
    return Played(code, "".join(lines), bool(stopped))


@contextmanager
def _passed_on(process: subprocess.Popen[str]) -> Iterator[list[int]]:
    """Pass a signal on to the play, so that it stops its jobs; kill it at a second signal."""
    received: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        _kill(process, signal.SIGINT if len(received) == 1 else signal.SIGKILL)
        timer.start() if len(received) == 1 else timer.cancel()

    timer = threading.Timer(GRACE_S, _kill, (process, signal.SIGKILL))
    timer.daemon = True
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, end) for number in ends}
    try:
        yield received
    finally:
        timer.cancel()
        _kill(process, signal.SIGKILL)  # the processes that an interrupted play left in its session
        for number, handler in previous.items():
            signal.signal(number, handler)


def _kill(process: subprocess.Popen[str], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended
        os.killpg(process.pid, number)


def _meanwhile(room: Room, ended: threading.Event) -> None:
    """Call `meanwhile` of the fault while a job runs on the node that has the fault."""
    act = room.fault.meanwhile if room.fault else None
    query = ("squeue", "--noheader", "--states=running", f"--nodelist={room.victim}")
    while act and not ended.wait(1):
        if room.slurm.call(*query).strip():
            time.sleep(2)  # the job has begun to measure
            act(room)
            return
