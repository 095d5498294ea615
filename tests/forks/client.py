"""The script of a command: it starts the command in a fork of `server.py`.

It imports as little as it can: it replaces a start of Python with all modules of the command. A
fork has the state of the server. If the state of this process differs in anything but arguments,
working directory, environment and open files, the real command is executed instead.
"""

import _signal  # type: ignore[import-not-found]  # typeshed has only signal
import _socket
import marshal
import os
import sys

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
OF_PROCESS = (
    *("Umask", "Uid", "Gid", "Groups", "SigBlk", "Cap", "NoNewPrivs", "Seccomp"),
    "Cpus_allowed_list",
)
"""Beginnings of lines of /proc/self/status, proc(5)."""
OF_LIBRARY = 1 << 31 | 1 << 32
"""Signals 32 and 33 in a mask of signals, nptl(7): only a child of posix_spawn ignores them."""
LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
PASSED_ON = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTERM", "SIGCONT")
KILLED = 9
"""What waitpid says of a process that SIGKILL ended."""


def state() -> dict[str, object]:
    """Return what a fork has from its parent and cannot take from a request."""
    root = os.stat("/")
    status = text("status").splitlines()
    ignored = next(int(line.split()[1], 16) for line in status if line.startswith("SigIgn"))
    return {
        "status": [line for line in status if line.startswith(OF_PROCESS)],
        "ignored": ignored & ~OF_LIBRARY,
        "limits": text("limits"),
        "cgroup": text("cgroup"),
        "namespaces": [os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES],
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "root": [root.st_dev, root.st_ino],
        "locale": next((os.environ[name] for name in LOCALE if os.environ.get(name)), ""),
        "python": sorted(each for each in os.environ.items() if each[0].startswith("PYTHON")),
    }


def text(name: str) -> str:
    """Return the content of a file of this process in /proc."""
    with open(f"/proc/self/{name}") as file:
        return file.read()


def open_files() -> list[int]:
    """Return the numbers of the open files of this process."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:
            continue  # the listing itself
        found.append(int(name))
    return sorted(found)


def receive(connection: _socket.socket, count: int) -> bytes:
    """Return `count` bytes, or fewer if the other side has ended."""
    data = b""
    while len(data) < count and (part := connection.recv(count - len(data))):
        data += part
    return data


def hand_over_signals(connection: _socket.socket) -> None:
    """Have the number of each signal written to the server, which sends it to the command.

    The handler of the interpreter writes it at once. One in Python would wait for the end of a
    `recv` that begins between the signal and the handler: the command would never get the signal.
    """
    os.set_blocking(connection.fileno(), False)  # the interpreter asks for it
    _signal.set_wakeup_fd(connection.fileno())
    os.set_blocking(connection.fileno(), True)
    for name in PASSED_ON:
        _signal.signal(getattr(_signal, name), lambda number, frame: None)


def forked(folder: str) -> int | None:
    """Run the command in a fork; return what waitpid says of it, and None if nothing ran."""
    numbers = open_files()
    try:
        with open(f"{folder}/state", "rb") as file:
            if marshal.load(file) != state() or not {0, 1, 2} <= {*numbers} or os.isatty(0):
                return None
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.connect(f"{folder}/socket")
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        request = marshal.dumps((numbers, sys.argv[1:], dict(os.environ)))
        handed = b"".join(each.to_bytes(4, sys.byteorder) for each in (here, *numbers))
        right = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, handed)
        connection.sendmsg([len(request).to_bytes(8, "big")], [right])
        connection.sendall(request)
        if not receive(connection, 1):
            return None
    except OSError:
        return None
    hand_over_signals(connection)
    status = receive(connection, 8)
    return int.from_bytes(status, "big") if status else KILLED


def run() -> None:
    """Run the command of this script, and end as it ended."""
    folder, name = os.path.split(os.path.abspath(sys.argv[0]))
    with open(f"{folder}/.{name}/real") as file:
        real = file.read()
    status = forked(f"{folder}/.{name}")
    if status is None:
        os.execv(real, [real, *sys.argv[1:]])
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != KILLED:
            _signal.signal(os.WTERMSIG(status), _signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    run()
