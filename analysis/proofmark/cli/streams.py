"""The standard streams of a command: they may be closed, full, or of an encoding of few letters."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from locale import CODESET, LC_ALL, Error, nl_langinfo, setlocale

_MODES = ("r", "w", "w")
_UTF8 = "C.UTF-8"


def use_utf8() -> None:
    """Start this command again with UTF-8 if Ansible would refuse the locale.

    It refuses an encoding of few letters, and a locale that this system does not have: ssh sends
    LANG of a desktop to a login node. The process stays the same.
    """
    if os.environ.get("LC_ALL") == _UTF8:
        return
    with suppress(Error):
        setlocale(LC_ALL, "")
        if "utf" in nl_langinfo(CODESET).lower():
            return
    environment = {**os.environ, "LC_ALL": _UTF8}
    os.execve(sys.executable, [sys.executable, "-X", "utf8", *sys.argv], environment)


def open_streams() -> None:
    """Let each standard stream take all texts. A closed one reads nothing and drops all.

    Without this, the next file that the process opens would become its stdout.
    """
    for number, (name, mode) in enumerate(zip(("stdin", "stdout", "stderr"), _MODES, strict=True)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: `number`
            os.set_inheritable(number, True)
        stream = getattr(sys, name)
        if stream is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        if mode == "w":
            stream.reconfigure(errors="backslashreplace")


def close_streams() -> bool:
    """Write what is left, and return whether all of it was written.

    Python would write it again at its end, print a traceback and change the exit code.
    """
    complete = True
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            complete = complete and stream is not sys.stdout
            drop(stream.fileno())
    return complete


def drop(number: int) -> None:
    """Let the stream with this number drop all that is written to it."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
