"""Processes of tests. Each ends with the test that started it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import AnyStr


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
