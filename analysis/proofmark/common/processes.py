"""Runs external programs: their environment, their trace, and the signals that stop them.

Each call is traced with its duration and exit code. The environment has neither secrets nor the
variables of another user. `parallel_map` maps a function over tasks in several processes.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, TypeVar

from proofmark.common.errors import Stopped
from proofmark.common.text import one_line

SECRET = (
    "^PROOFMARK_BMC_|PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL"
    "|(^|_)PASS(_|$)|^SSHPASS$|_PWD$|(^|[^P])KEYS?($|_)"
)
"""Matches the name of a variable in upper case that has a secret. A PKEY is a part of a network.

The syntax is that of both Python and awk: ``modules.sh`` of the role `provision` has a copy.
"""
NO_SECRET = "^GIT_CONFIG_|_(FILE|PATH|DIR|HOME|FOLDER)$"
"""Matches the names that are no secret in spite of `SECRET`: paths, and the settings of git."""
AGENT = ("SSH_AUTH_SOCK", "SSH_AGENT_PID")
"""The agent with the ssh keys of the user."""
_SERVERS = (
    "SLURM_CONF"
    "|PBS_(CONF_FILE|EXEC|HOME|SERVER|DEFAULT|PRIMARY|SECONDARY|AUTH_METHOD|ENCRYPT_METHOD)"
    "|PBS_(SERVER_HOST_NAME|BATCH_SERVICE_PORT|BATCH_SERVICE_PORT_DIS|MANAGER_SERVICE_PORT)"
    "|SGE_(ROOT|CELL|CLUSTER_NAME|QMASTER_PORT|EXECD_PORT)"
    "|LSF_(ENVDIR|BINDIR|LIBDIR|SERVERDIR)"
    "|LOADL_CONFIG"
    "|FLUX_(URI|CONF_DIR|(CONNECTOR|EXEC|MODULE)_PATH(_PREPEND)?|PYTHONPATH_PREPEND)"
)
"""The variables by which the clients of schedulers find their server."""
_OF_SCHEDULERS = re.compile(
    "(SLURM|SBATCH|SALLOC|SRUN|SQUEUE|SCANCEL|SINFO|SCONTROL|SACCT|SACCTMGR|SPRIO|SSTAT|SATTACH"
    "|SCRONTAB|PBS|QSUB|QSTAT|QSELECT|QDEL|SGE|LSF|LSB|BSUB|BJOBS|BKILL|LOADL|FLUX)_.*"
)
"""The variables that the commands of schedulers read, and those that they set in a job."""
_ASK_ONCE = {"LSB_NTRIES": "1"}
"""LSF: its commands do not try again themselves. bsub would do so for ever at a limit of jobs."""
_FOR_ANY_USER = re.compile(
    "PATH|TERM|LANG|LANGUAGE|LC_.*|TZ|COLUMNS|LINES|NO_COLOR|SOURCE_DATE_EPOCH|PROOFMARK_.*"
    f"|{_SERVERS}"
)
"""The variables that a command gets if it runs as another user."""


@cache  # each process on a node has an environment
def is_secret(name: str) -> bool:
    """Return whether the variable `name` has a secret, by its name."""
    upper = name.upper()
    return bool(re.search(SECRET, upper)) and not re.search(NO_SECRET, upper)


def without_secrets(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return `environment` without secrets; None is the environment of this process."""
    given = os.environ if environment is None else environment
    return {name: value for name, value in given.items() if not is_secret(name)}


def of_jobs(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` as a job gets it: without secrets, and without the user's ssh agent."""
    cleaned = without_secrets(environment)
    return {name: value for name, value in cleaned.items() if name not in AGENT}


def of_schedulers(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` for the commands of a scheduler, some of which pass it on to the job.

    It is that of a job. Of the variables of schedulers it has only those by which their clients
    find the server: ``SBATCH_*``, ``SCANCEL_STATE`` or ``PBS_DPREFIX`` would be options that
    nobody gave. Each command gets the same, so that all of them ask the same server.
    """
    kept = {
        name: value
        for name, value in of_jobs(environment).items()
        if name != "VIRTUAL_ENV"
        and (re.fullmatch(_SERVERS, name) or not _OF_SCHEDULERS.fullmatch(name))
    }
    return kept | _ASK_ONCE


def of_spack(own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process of Spack, whose variables of Spack are those of `own`.

    Those of the caller would replace the configuration of the kit: SPACK_DISABLE_LOCAL_CONFIG lets
    Spack read none of it, and SPACK_ENV lets it write into an environment of the user.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPACK_")}
    return without_secrets({**kept, **own})


def of_another_user(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of `environment` for a command that runs as another user.

    Only listed variables are passed on. Those of the library of Ansible, of Python and of the
    dynamic linker would load the code of one user in the process of another.
    """
    cleaned = without_secrets(environment)
    return {name: value for name, value in cleaned.items() if _FOR_ANY_USER.fullmatch(name)}


def take_secrets(environment: MutableMapping[str, str]) -> dict[str, str]:
    """Remove the secrets of the kit (``PROOFMARK_*``) from `environment` and return them.

    Other secrets stay: a dynamic inventory may need its own.
    """
    names = [name for name in environment if name.startswith("PROOFMARK_") and is_secret(name)]
    return {name: environment.pop(name) for name in names}


TRACE = logging.getLogger("proofmark.trace")
"""Logger of one line per call of another program or machine.

A line has the names of scripts in the input (`script_names`), and nothing else of input and output.
"""


def run_command(
    words: Sequence[str],
    *,
    text: str = "",
    timeout_s: float | None = None,
    environment: Mapping[str, str] | None = None,
    new_session: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end. Bytes of its output that are not UTF-8 are replaced.

    The program gets no secrets (`without_secrets`).

    Args:
        text: its standard input; surrogates are bytes that are not UTF-8 (`os.fsdecode`).
        timeout_s: the time limit in seconds; the program is killed at the limit.
        environment: its environment, except secrets; None: that of this process.
        new_session: whether it has a session of its own, which signals of the terminal skip.

    Raises:
        FileNotFoundError: the program does not exist.
        subprocess.TimeoutExpired: the time limit has passed.
    """
    with traced(call_line(words, text)) as outcome:
        done = subprocess.run(
            words,
            input=text.encode(errors="surrogateescape"),
            capture_output=True,
            timeout=timeout_s,
            env=without_secrets(environment),
            check=False,
            start_new_session=new_session,
        )
        outcome.append(f"exit code {done.returncode}")
    printed, messages = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, printed, messages)


@contextmanager
def traced(call: str) -> Iterator[list[str]]:
    """Trace the block as one call; yield the list to which the block appends its outcome.

    The outcome of a block that raises is the type of the exception.
    """
    outcome: list[str] = []
    began = time.monotonic()
    try:
        yield outcome
    except BaseException as error:
        outcome.append(type(error).__name__)
        raise
    finally:
        trace(call, ", ".join(outcome), time.monotonic() - began)


def trace(call: str, outcome: str, seconds: float) -> None:
    """Write the line of one call that took `seconds`."""
    if TRACE.isEnabledFor(logging.INFO):
        shown = without_passwords(one_line(call))
        TRACE.info("%s: %s after %.3f s", shown, one_line(outcome), seconds)


def call_line(words: Sequence[str], text: str, node: str = "") -> str:
    """Return a command as its line in the trace: ``NODE: COMMAND < SCRIPT ARGUMENT…``."""
    place = f"{node}: " if node else ""
    scripts = script_names(text) if TRACE.isEnabledFor(logging.INFO) else ""
    return f"{place}{shlex.join(words)}{scripts and f' < {scripts}'}"


# Names the scripts in the standard input of ``sh -s``, for the trace.
#
# A script of the kit begins with ``#!/bin/sh`` and a comment whose first word is its file name. A
# script in a Python module begins with ``#: NAME.sh``. The line ``set -- ARGUMENT…`` before it has
# its arguments. No other part of an input is shown, because an input can begin with a password.

_HEADER = re.compile(r"^(?:#!/bin/sh\n# |#: )([\w-]+\.sh)\b", re.MULTILINE)
_ARGUMENTS = "\nset -- "
_LONGEST = 200
"""Characters of the arguments that are shown."""
_SECRET = re.compile(r"(pass\w*|token|secret)=[^\s,'\"]+", re.IGNORECASE)


def script_names(text: str) -> str:
    """Return the names of the scripts in `text`, with their arguments; empty if it has none."""
    shown: list[str] = []
    end = 0
    for header in _HEADER.finditer(text):
        _, found, arguments = f"\n{text[end : header.start()]}".rpartition(_ARGUMENTS)
        words = without_passwords(arguments.strip()) if found else ""
        words = f"{words[:_LONGEST]}…" if len(words) > _LONGEST else words
        shown.append(f"{header[1]} {words}".strip())
        end = header.end()
    return "; ".join(shown)


def without_passwords(words: str) -> str:
    """Return `words` of a command line without the values of passwords, as in ``password=x``."""
    return _SECRET.sub(r"\1=***", words)


NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_stop_signal(handle: Callable[[str], object]) -> Iterator[None]:
    """Call `handle` with the name of each SIGINT and SIGTERM during the block.

    Only the main thread can set a handler. In another thread this does nothing.
    """

    def handler(number: int, _frame: FrameType | None) -> None:
        handle(signal.Signals(number).name)

    chosen = NUMBERS if threading.current_thread() is threading.main_thread() else ()
    previous = {number: signal.signal(number, handler) for number in chosen}
    try:
        yield
    finally:
        for number, earlier in previous.items():
            signal.signal(number, earlier)


class StopSignals:
    """The first signal of a block. Further signals change nothing."""

    def __init__(self) -> None:
        self.received = ""
        self._send: Callable[[str], object] | None = None

    @contextmanager
    def sent_to(self, send: Callable[[str], object]) -> Iterator[None]:
        """Call `send` with the name of the signal when it comes, or at once if it has come."""
        self._send = send
        if self.received:
            send(self.received)
        try:
            yield
        finally:
            self._send = None

    def note(self, name: str) -> None:
        """Store the first signal, and send it."""
        if not self.received:
            self.received = name
            if self._send:
                self._send(name)


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Yield the record of the signals of the block.

    Raises:
        Stopped: a signal came. It is raised at the end of the block.
    """
    signals = StopSignals()
    with on_stop_signal(signals.note):
        yield signals
    if signals.received:
        raise Stopped(signals.received)


Task = TypeVar("Task")
Output = TypeVar("Output")

_WORK: Callable[[Any], Any] | None = None


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the garbage collector for the block.

    Reading a run of thousands of nodes makes millions of objects without reference cycles. The
    collector takes a sixth of the time for them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def parallel_map(
    work: Callable[[Task], Output], tasks: Iterable[Task], *, large: bool
) -> Iterator[Output]:
    """Yield `work(task)` for each task, in order. It uses all processors if the work is `large`.

    A worker starts no workers of its own.

    Workers are forked, so `work` need not be picklable. Tasks and results must be picklable.
    """
    processors = len(os.sched_getaffinity(0))
    global _WORK
    if not large or processors < 2 or _WORK is not None:
        yield from map(work, tasks)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    _WORK = work
    gc.freeze()  # the collector of a worker would copy the pages that it shares with its parent
    try:
        with ProcessPoolExecutor(processors, get_context("fork"), initializer=gc.disable) as pool:
            yield from pool.map(_do, tasks)
    finally:
        gc.unfreeze()
        _WORK = None


def _do(task: Any) -> Any:
    assert _WORK is not None
    return _WORK(task)
