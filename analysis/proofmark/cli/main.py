# PYTHON_ARGCOMPLETE_OK
"""The command line: it parses the arguments, calls one function and returns the exit code."""

from __future__ import annotations

import argparse
import gc
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from locale import CODESET, LC_ALL, Error, nl_langinfo, setlocale

from proofmark.cli.command import SECRETS, follow_links
from proofmark.cli.parser import BAD_INPUT, Called, complete_line, parser
from proofmark.common.errors import (
    BadInput,
    InputError,
    OutsideError,
    Stopped,
    failed_nodes_json,
    note_input_errors,
)
from proofmark.common.kit import provide_home
from proofmark.common.printed_command import CALLER, Caller, option_of
from proofmark.common.processes import take_secrets
from proofmark.common.progress_lines import say

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


STOPPED = 130
INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits.h: an error of the kit. 1 means FAIL."""
COMPLETION = "_ARGCOMPLETE"
"""Environment variable that a shell sets when it completes a command line (argcomplete)."""
BROKEN_PIPE = 141
"""128 + SIGPIPE, as shells report it. 0 would mean PASS."""

GC_THRESHOLD = 1_000_000
"""The garbage collector runs after this number of new objects. With Python's default of 700 it
takes a seventh of the CPU time of a short command. Such a command frees few objects."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Errors are printed to stderr, one per line.

    An exception that nothing expects is an error of the kit, with the exit code `INTERNAL_ERROR`.
    """
    if arguments is not None:
        return _main(arguments)
    gc.set_threshold(GC_THRESHOLD)  # this process runs one command
    use_utf8()
    open_streams()
    complete = True
    try:
        code = _main(sys.argv[1:])
    finally:
        complete = close_streams()
        gc.freeze()  # at its exit Python would look at every object again
    return code if complete or code else BAD_INPUT


def _main(words: Sequence[str]) -> int:
    if COMPLETION in os.environ:
        complete_line(os.environ.get("COMP_LINE", ""))
    if words[:1] == ["help"]:
        words = [*words[1:], "-h"]
    top = parser()
    line = argparse.Namespace(verbose=False, failed_nodes_fd=None, called=None)
    before = CALLER.set(None)
    try:
        with _failed_nodes_written(line):
            top.parse_args(words, line)
            by_playbook = line.failed_nodes_fd is not None
            CALLER.set(Caller(line.called.further, by_playbook=by_playbook))
            return _run(line.called, verbose=line.verbose)
    except (KeyboardInterrupt, Stopped) as error:
        again = shlex.join(["proofmark", *words])
        # A playbook has started a command with file descriptors.
        of_playbook = line.failed_nodes_fd is not None
        how = "the same playbook continues" if of_playbook else f"this continues: {again}"
        say(f"proofmark: stopped by {f'{error}' or 'Ctrl-C'}; {how}")
        return STOPPED
    except BadInput as error:
        for mistake in error.mistakes:
            say(f"proofmark: {_as_called(mistake)}")
        return BAD_INPUT
    except BrokenPipeError:
        # The reader closed the output. Without this, Python prints an error at its exit.
        drop(sys.stdout.fileno())
        return BROKEN_PIPE
    except (OutsideError, OSError) as error:
        say(f"proofmark: {error}")
        return BAD_INPUT
    except Exception as error:
        from proofmark.cli.output import report_crash

        called: Called | None = line.called
        folder = called.folder if called and called.command.traced else None
        report_crash(error, folder, verbose=line.verbose)
        return INTERNAL_ERROR
    finally:
        CALLER.reset(before)


def _as_called(mistake: InputError) -> InputError:
    """Return a mistake in an option that a variable of a playbook has set as one of the variable.

    An option that no variable sets is left as it is.
    """
    from proofmark.site.extra_vars import call_variables  # it imports pydantic

    caller = CALLER.get()
    if caller and caller.by_playbook:
        for name in call_variables():
            if mistake.file == option_of(name):
                return replace(mistake, file=f"-e {name}")
    return mistake


def _run(called: Called, *, verbose: bool) -> int:
    """Run a command and return its exit code."""
    command, options = called.command, called.options
    SECRETS.set(take_secrets(os.environ))
    follow_links(options)
    folder = called.folder
    provide_home()
    if verbose:
        from proofmark.cli.output import start_trace

        start_trace(folder if command.traced else None)
    result = command.function()(options)
    sys.stdout.flush()
    return result


@contextmanager
def _failed_nodes_written(line: argparse.Namespace) -> Iterator[None]:
    """Write the nodes that fail in the block to the file descriptor of the option, if it is set."""
    try:
        yield
    except BadInput as error:
        if line.failed_nodes_fd is not None:
            note_input_errors(error.mistakes)
        raise
    finally:
        if line.failed_nodes_fd is not None:
            with os.fdopen(line.failed_nodes_fd, "wb") as file:
                file.write(failed_nodes_json())
