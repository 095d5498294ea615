"""Runs commands in forks of a process that has imported their modules.

A start of Python with the modules of a command costs more than most commands. A test starts
`client.py` instead: it hands its arguments, environment, working directory and open files to this
process, which forks.

    python -m tests.forks.server FOLDER PROGRAM WANTED ROOM

WANTED is JSON, a `Wanted`. ROOM is a long text: a fork writes its command line over that of this
process.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import io
import json
import marshal
import os
import pkgutil
import random
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from tests.forks import Wanted
from tests.forks.client import receive, state

FREE = 256
"""A number above those of the open files of a command."""
SETTINGS = "ansible.constants"
"""The module that reads the settings of Ansible, from variables and files, when imported."""
ENDING = "ansible.cli"
"""The package that ends the process if the settings cannot be imported."""
MOST_FILES = 64
"""The largest number of open files of a command."""


def main() -> None:
    """Listen at FOLDER/socket, and fork for each connection, until standard input ends."""
    folder, program, wanted, _ = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        Path(folder, "socket").chmod(0o600)  # who can write it gets the rights of this process
        listener.listen(64)
        Path(folder, "new").write_bytes(marshal.dumps(state()))
        Path(folder, "new").rename(f"{folder}/state")
        request = _next_request(listener, json.loads(wanted))
    if request:
        _run(program, *request)


def _next_request(listener: socket.socket, wanted: Wanted) -> Any:
    """Return the request of a command, in the fork for it; None if standard input has ended.

    The modules are imported for the first command: most tests start none.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    selector = selectors.DefaultSelector()
    for file in (listener, sys.stdin):
        selector.register(file, selectors.EVENT_READ)
    loaded = False
    while sys.stdin not in (ready := [key.fileobj for key, _ in selector.select()]):
        if not loaded:
            _load(wanted)
            gc.collect()
            gc.freeze()  # a collection in a fork would copy the pages of all objects
            loaded = True
        assert ready == [listener]
        connection, _ = listener.accept()
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            request = _received(connection)
            if not (child := os.fork()):
                for file in (connection, selector, listener):
                    file.close()
                return request
            _keep(child, connection)
        connection.close()
    return None


def _load(wanted: Wanted) -> None:
    """Import modules. One that is missing here, or belongs to another program, does not matter."""
    names = [*wanted["modules"]]
    for package in wanted["packages"]:
        path = import_module(package).__path__
        names += [each.name for each in pkgutil.walk_packages(path, f"{package}.")]
    for module in wanted["around"]:
        code = f"import sys, {module}; print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        loaded = done.stdout.decode().split()
        names += [name for name in loaded if not name.startswith(("__main__", ENDING))]
    # The settings depend on the command. What needs them is not imported here.
    sys.modules[SETTINGS] = None  # type: ignore[assignment]
    for name in names:
        with suppress(ImportError):
            import_module(name)
    del sys.modules[SETTINGS]


def _keep(child: int, connection: socket.socket) -> NoReturn:
    """Send the command the signals that its client gets, and tell the client how it ended.

    A client that is killed cannot hand a signal over: its command is killed, too.
    """
    with suppress(OSError):  # the client was killed
        connection.sendall(b"\1")
    process = os.pidfd_open(child)
    with selectors.DefaultSelector() as selector:
        for each in (process, connection):
            selector.register(each, selectors.EVENT_READ)
        while process not in [key.fileobj for key, _ in selector.select()]:
            if numbers := _signals(connection):
                for number in numbers:
                    _send(child, number)
            else:
                os.kill(child, signal.SIGKILL)
                break
    _, status = os.waitpid(child, 0)
    with suppress(OSError):  # the client was killed
        connection.sendall(status.to_bytes(8, "big"))
    os._exit(0)


def _signals(connection: socket.socket) -> bytes:
    """Return the numbers of signals that a client got; none if it was killed."""
    try:
        return connection.recv(64)
    except ConnectionResetError:  # it was killed before it read all
        return b""


def _send(child: int, number: int) -> None:
    """Send a signal. A terminal sends Ctrl-C to each process of the group."""
    if number == signal.SIGINT and os.getpgid(child) == child:  # its session has begun
        os.killpg(child, number)
    else:
        os.kill(child, number)


def _received(connection: socket.socket) -> tuple[Any, list[int]]:
    """Return the request, and the numbers of the files that came with it."""
    size, files, _, _ = socket.recv_fds(connection, 8, MOST_FILES)
    request = marshal.loads(receive(connection, int.from_bytes(size, "big")))
    return request, files


def _run(program: str, request: Any, files: list[int]) -> NoReturn:
    """Become the process of the command, as far as a start would make it differ."""
    numbers, words, variables = request
    os.setsid()
    here, *given = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, FREE) for file in files]
    os.fchdir(here)
    os.closerange(0, FREE)
    for number, file in zip(numbers, given, strict=True):
        os.dup2(file, number)
    os.closerange(FREE, FREE + len(files))
    os.environ.clear()
    os.environ.update(variables)
    time.tzset()
    random.seed()
    _name_process([program, *words])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _standard(number, getattr(sys, name))
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv[:] = [program, *words]
    sys.path[0] = str(Path(program).parent)
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            end(ended.code or 0)
        raise
    end(0)


def end(code: int) -> NoReturn:
    """End as Python does, but leave its objects: to free them would copy all pages of the fork."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream and not stream.closed:
            stream.flush()
    os._exit(code & 0xFF)


def _standard(number: int, old: Any) -> Any:
    """Return a standard stream as Python makes it at its start."""
    raw: Any = io.FileIO(number, "wb" if number else "rb", closefd=False)
    raw.name = old.name
    buffered: Any = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
    lines = number == 2 or raw.isatty()
    stream: Any = io.TextIOWrapper(buffered, old.encoding, old.errors, line_buffering=lines)
    stream.mode = old.mode
    return stream


def _name_process(words: list[str]) -> None:
    """Write the command line over that of this process, for those who read it in /proc."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    first, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, proc(5)
    text = b"\0".join(word.encode(errors="surrogateescape") for word in [sys.executable, *words])
    ctypes.memset(first, 0, end - first)
    ctypes.memmove(first, text[: end - first - 1], min(len(text), end - first - 1))
    Path("/proc/self/comm").write_text(Path(words[0]).name[:15])


if __name__ == "__main__":
    main()
