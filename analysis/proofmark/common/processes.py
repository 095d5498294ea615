"""Runs external programs: their environment, their trace, and the signals that stop them.

Each call is traced with its duration and exit code. The environment has neither secrets nor
variables that no tool needs. `parallel_map` maps a function over tasks in several processes.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from fnmatch import translate
from functools import cache
from itertools import chain, islice
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from proofmark.common.errors import Stopped, bad_input
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
_PERSONAL = "HOME USER LOGNAME SHELL TMPDIR XDG_* SSH_AUTH_SOCK SSH_AGENT_PID KRB5CCNAME"
"""The variables with what belongs to one user; a command that runs as another user has its own."""
EVERY = "every program"
PASSED_ON: Mapping[str, str] = json.loads(Path(__file__).with_name("passed-on.json").read_bytes())
"""The variables of this process that each tool gets, as shell patterns.

No other variable reaches a process that the kit starts: a name that nobody thought of would change
what is built, asked or measured. A job has those of all tools and of its scheduler.
"""
_SET = {"GIT_TERMINAL_PROMPT": "0", "LSB_NTRIES": "1"}
"""What the kit sets: no command asks a person. Those of LSF try once: bsub would do so for ever."""


@cache
def _patterns(tool: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what matches the names for a tool, and the names of what belongs to one user."""
    names = f"{PASSED_ON[EVERY]} {PASSED_ON[tool]}".split()
    one, two = ("|".join(map(translate, each)) for each in (names, _PERSONAL.split()))
    return re.compile(one), re.compile(two)


def environment_of(
    tool: str = EVERY,
    own: Mapping[str, str] | None = None,
    *,
    given: Mapping[str, str] | None = None,
    personal: bool = True,
) -> dict[str, str]:
    """Return the environment of a process that the kit starts; it has no secret.

    Args:
        tool: a row of `PASSED_ON`.
        own: further variables, which replace passed ones.
        given: the variables to choose from; None: those of this process.
        personal: whether the process runs as the user of this process.
    """
    passed, of_user = _patterns(tool)
    kept = {
        name: value
        for name, value in (os.environ if given is None else given).items()
        if passed.match(name) and not is_secret(name) and (personal or not of_user.match(name))
    }
    return {**kept, **_SET, **(own or {})}


@cache  # each process on a node has an environment
def is_secret(name: str) -> bool:
    """Return whether the variable `name` has a secret, by its name."""
    upper = name.upper()
    return bool(re.search(SECRET, upper)) and not re.search(NO_SECRET, upper)


def passed_on() -> dict[str, str]:
    """Return the variables that a tool gets beside those of all tools; no value has a password."""
    found: dict[str, str] = {}
    for tool in PASSED_ON.keys() - {"ansible"}:
        found |= environment_of(tool)
    beside = found.keys() - environment_of().keys()
    return {name: re.sub(r"//[^/@]*@", "//***@", found[name]) for name in sorted(beside)}


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


LEFT_S = 1.0
"""The wait for a killed process. Not even SIGKILL ends one that waits for a dead file system."""


class Process(subprocess.Popen[bytes]):
    """A process. After SIGKILL the kit waits for its end for a limited time only.

    Attributes:
        killed: whether SIGKILL was sent.
    """

    killed = False

    def kill(self) -> None:
        """Kill the process, and its group if it leads one; it may have ended before them."""
        self.killed = True
        if self.returncode is None:
            with suppress(OSError):
                leads = os.getpgid(self.pid) == self.pid
                (os.killpg if leads else os.kill)(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code; of a killed process that does not end, the code of SIGKILL."""
        if not self.killed:
            return super().wait(timeout)
        try:
            return super().wait(LEFT_S)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL


class ProcessGroup:
    """Processes that threads run, and that the first signal kills together.

    Attributes:
        received: the name of the signal; empty before it.
        killed: is set by the signal. A process that starts later is killed at once.
    """

    def __init__(self) -> None:
        self.received = ""
        self.killed = threading.Event()
        self._running: set[Process] = set()

    def kill(self, signal_name: str) -> None:
        """Kill all processes; further signals change nothing."""
        self.received = self.received or signal_name
        self.killed.set()
        for process in list(self._running):
            process.kill()

    @contextmanager
    def having(self, process: Process) -> Iterator[None]:
        """Let `process` belong to the group for the block."""
        self._running.add(process)
        if self.killed.is_set():
            process.kill()
        try:
            yield
        finally:
            self._running.discard(process)


def run_command(
    words: Sequence[str],
    *,
    text: str = "",
    timeout_s: float | None = None,
    environment: Mapping[str, str] | None = None,
    own_group: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end. Bytes of its output that are not UTF-8 are replaced.

    Args:
        text: its standard input; surrogates are bytes that are not UTF-8 (`os.fsdecode`).
        timeout_s: the time limit in seconds; the program is killed at the limit.
        environment: None: the variables that all tools get (`environment_of`).
        own_group: whether it leads a process group, which signals of the terminal skip.

    Raises:
        FileNotFoundError: the program does not exist.
        subprocess.TimeoutExpired: the time limit has passed.
    """
    given = environment_of() if environment is None else environment
    with traced(call_line(words, text)) as outcome:
        done = run_process(words, text, timeout_s, given, ProcessGroup() if own_group else None)
        outcome.append(f"exit code {done.returncode}")
    return done


def run_process(
    words: Sequence[str],
    text: str,
    timeout_s: float | None,
    environment: Mapping[str, str],
    group: ProcessGroup | None,
) -> subprocess.CompletedProcess[str]:
    """Run a program, as `run_command`, without a trace; in `group` it leads a process group."""
    started = Process(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        process_group=0 if group else None,
    )
    with started as process, group.having(process) if group else nullcontext():
        try:
            output = process.communicate(text.encode(errors="surrogateescape"), timeout_s)
        except BaseException:
            process.kill()
            raise
    printed, messages = (each.decode(errors="replace") for each in output)
    return subprocess.CompletedProcess(words, process.returncode, printed, messages)


_ANY_OWNER = "safe.directory=*"


def run_git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run git in `folder`, which the caller named, whoever owns it.

    A fetch from a repository of another user on this machine is as free.
    """
    command, *rest = words
    if command == "fetch":  # the other end is a process without the options of this one
        rest.insert(0, f"--upload-pack=git -c '{_ANY_OWNER}' upload-pack")
    options = ["-C", f"{folder}", "-c", _ANY_OWNER]
    return run_command(["git", *options, command, *rest], environment=environment_of("git"))


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


@contextmanager
def stop_signals() -> Iterator[ProcessGroup]:
    """Yield the processes that a signal in the block kills.

    Raises:
        Stopped: a signal came. It is raised at the end of the block.
    """
    group = ProcessGroup()
    with on_stop_signal(group.kill):
        yield group
    if group.received:
        raise Stopped(group.received)


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


def parallel_map(work: Callable[[Task], Output], tasks: Iterable[Task]) -> Iterator[Output]:
    """Yield `work(task)` for each task, in order. Several tasks are done by all processors.

    A worker starts no workers. At most two results for each processor wait for the caller.

    Workers are forked, so `work` need not be picklable. Tasks and results must be picklable.

    Raises:
        BadInput: a worker was killed, as the kernel does it without memory.
    """
    processors = len(os.sched_getaffinity(0))
    global _WORK
    left = iter(tasks)
    first = [*islice(left, 2)]
    if len(first) < 2 or processors < 2 or _WORK is not None:
        yield from map(work, chain(first, left))
        return
    from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
    from multiprocessing import get_context

    _WORK = work
    gc.freeze()  # the collector of a worker would copy the pages that it shares with its parent
    try:
        with ProcessPoolExecutor(processors, get_context("fork"), initializer=gc.enable) as pool:
            waiting = deque[Future[Output]]()
            for task in chain(first, left):
                if len(waiting) == 2 * processors:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(_do, task))
            for each in waiting:
                yield each.result()
    except BrokenExecutor:
        found, accepted = "a process of this command was killed", "enough memory; then run it again"
        raise bad_input("memory of this machine", "", found, accepted) from None
    finally:
        gc.unfreeze()
        _WORK = None


def _do(task: Any) -> Any:
    assert _WORK is not None
    return _WORK(task)
