"""Processes of tests. Each ends with the test that started it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import AnyStr


def proc_files(name: str) -> list[Path]:
    """Return the file `name` in ``/proc`` of each process, which may end before it is read.

    A pattern such as ``[0-9]*/cmdline`` asks for the state of each file, and fails at such an end.
    """
    return [each / name for each in Path("/proc").iterdir() if each.name.isdecimal()]


@contextlib.contextmanager
def running(process: subprocess.Popen[AnyStr]) -> Iterator[subprocess.Popen[AnyStr]]:
    """Yield `process`; after the context it has ended, was waited for, and its pipes are closed.

    An error in the context kills it, and the process group that it leads. Otherwise the context
    would wait without end.
    """
    with process:
        try:
            yield process
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                leads = os.getpgid(process.pid) == process.pid
                (os.killpg if leads else os.kill)(process.pid, signal.SIGKILL)
            raise


@contextlib.contextmanager
def namespace(name: str, *before: str) -> Iterator[subprocess.Popen[str]]:
    """Yield the process of a mount namespace with the host name `name`.

    The words `before` are put before its command.
    """
    waits = f"hostname {name}; echo up; exec sleep 3600"
    command = [*before, "unshare", "--mount", "--uts", "sh", "-c", waits]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout
            assert holder.stdout.readline() == "up\n"
            yield holder
        finally:
            holder.kill()
