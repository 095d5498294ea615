"""The state of a site: what runs have changed on its nodes, and how to restore it.

It is ``/var/lib/proofmark/<site>/`` if the process is root, else
``~/.local/state/proofmark/<site>/``. Restore, enter and verify read only the state: the folder of
a run can be removed before its nodes are restored. It gets a copy of the journals.

- ``runs/<run-id>/run.json``: the folder, the partition and the plan of the run
- ``runs/<run-id>/journal/<node>.jsonl``: the journal of a node
- ``runs/<run-id>/mounted.json``: the nodes with a mount of the run
- ``runs/<run-id>/lock``: the lock of the process that changes nodes
- ``sealed/<run>-<evidence>.json``: a sealed run (`proofmark.runs.sealed_runs`)
- ``nodes/<node>.json``: the run that holds a node (`proofmark.runs.node_locks`)
- ``reservations/<run>.json``: the reservation of the nodes of a run (`proofmark.runs.node_locks`)
- other names: files of packages, which those describe

One process at a time works on a run: it holds the lock in the folder of the run. Commands that
change nodes also hold the lock of the run's state, which stays if the folder is removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import (
    make_folder,
    open_to_append,
    read_json,
    read_regular,
    write_atomic_bytes,
)
from proofmark.common.rights import this_user
from proofmark.common.shared_models import StrictModel
from proofmark.common.trust import refuse_untrusted
from proofmark.runs.journal import journals
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles

STATE_OF_ROOT = Path("/var/lib/proofmark")
VARIABLE = "PROOFMARK_STATE"
"""Environment variable with another folder for the state of root."""
XDG_STATE = "XDG_STATE_HOME"
"""Environment variable with another folder for the state of another user."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Begun(StrictModel):
    """The first use of a run id at a site.

    `plan` is the SHA-256 of its ``plan.json``, `since` the time in ISO 8601.
    """

    folder: str
    partition: str
    plan: str
    since: str


@dataclass(frozen=True)
class RunState:
    """The state of one run.

    Attributes:
        run: the folder of the run. It may have been removed.
    """

    folder: Path
    site: Path
    run: Path
    partition: str

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.run.name

    @property
    def files(self) -> RunFiles:
        """The files of the state; they have the names of those in the folder of the run."""
        return RunFiles(self.folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the state for the block: one command at a time changes nodes.

        Raises:
            BadInput: another process holds it.
        """
        with state_lock(self.files.lock, self.id):
            yield

    def export(self) -> None:
        """Copy the journals into the folder of the run.

        A folder that was removed gets no copy.

        Raises:
            BadInput: a file cannot be written there.
        """
        texts = {journal.path.name: journal.path.read_bytes() for journal in journals(self.folder)}
        if not texts or not self.run.is_dir():
            return
        target = RunFiles(self.run).journal
        make_folder(target)
        for name, content in texts.items():
            write_atomic_bytes(target / name, content)


def site_folder(site: str) -> Path:
    """Return the folder of the state of a site.

    Raises:
        BadInput: `site` is no name.
    """
    return _base() / word(site, "the name of the site")


def _base() -> Path:
    if os.geteuid() == 0:
        return Path(os.path.realpath(os.environ.get(VARIABLE) or STATE_OF_ROOT))
    of_user = os.environ.get(XDG_STATE) or Path.home() / ".local/state"
    return Path(os.path.realpath(of_user)) / "proofmark"


def begin(run: Run) -> RunState:
    """Return the state of `run`. The first call creates it.

    Raises:
        BadInput: another run has this id, the plan has changed since a node was changed, or the
            folder is not safe.
    """
    site = site_folder(run.plan.site)
    digest = hashlib.sha256(read_regular(run.files.plan)).hexdigest()
    known = _known(site, run.folder, replace=True)
    if known is None:
        folder = made(site / "runs" / word(run.id, "the run id"))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        partition = run.plan.partition
        begun = Begun(folder=f"{run.folder}", partition=partition, plan=digest, since=now)
        made(RunFiles(folder).journal)
        content = f"{begun.model_dump_json()}\n".encode()
        write_atomic_bytes(RunFiles(folder).identity, content, 0o644)
        return RunState(folder, site, run.folder, partition)
    begun = read_json(known.files.identity, Begun)
    if begun.plan != digest:
        if not _in_use(known.folder):  # the folder was removed, and planned again
            shutil.rmtree(known.folder)
            return begin(run)
        found = f"another plan than at {begun.since}, when the run first used a node"
        raise bad_input(run.files.plan, "", found, "the plan of the run, or a new run id")
    return known


def planned(run: Run) -> RunState:
    """Return the state that `run` has, or would have. Nothing is written.

    Raises:
        BadInput: another run has this id, or the folder of the state is not safe.
    """
    site = site_folder(run.plan.site)
    folder = site / "runs" / word(run.id, "the run id")
    return _known(site, run.folder) or RunState(folder, site, run.folder, run.plan.partition)


def find(site: str, run: Path) -> RunState | None:
    """Return the state of the run in the folder `run`; None: nothing was changed for it.

    Raises:
        BadInput: another run has this id, or the folder of the state is not safe.
    """
    return _known(site_folder(site), run)


def journals_of(run: Path) -> Path | None:
    """Return the folder with the journals of the run in the folder `run`; None if it has none."""
    name = word(run.name, "the run id")
    for begun in sorted(_base().glob(f"*/runs/{name}/run.json")):
        check_safe(begun.parent)
        if read_json(begun, Begun).folder == f"{run}":
            return RunFiles(begun.parent).journal
    return None


def _known(site: Path, run: Path, *, replace: bool = False) -> RunState | None:
    """Return the state of the run in `run`; with `replace`, remove the one of a removed run."""
    folder = site / "runs" / word(run.name, "the run id")
    if not os.path.lexists(folder):
        return None
    check_safe(folder)
    files = RunFiles(folder)
    if not files.identity.exists():
        return None
    begun = read_json(files.identity, Begun)
    if begun.folder == f"{run}":
        return RunState(folder, site, run, begun.partition)
    if replace and not Path(begun.folder).exists() and not _in_use(folder):
        shutil.rmtree(folder)
        return None
    found = f"{run.name}: the id of the run in {begun.folder}, since {begun.since}"
    raise bad_input("run_id", "", found, "another run id")


def _in_use(folder: Path) -> bool:
    """Return whether a node still waits for the restore or the unmount of a run."""
    waiting = (journal.waits for journal in journals(folder))
    return RunFiles(folder).mounted.exists() or any(waiting)


def word(text: str, what: str) -> str:
    """Return `text` if it can be the name of a folder; `what` is its name in messages.

    Raises:
        BadInput: it has other characters.
    """
    if not _NAME.fullmatch(text):
        raise bad_input(what, "", repr(text), "letters, digits, dots, dashes and underscores")
    return text


def made(folder: Path) -> Path:
    """Create `folder` and the missing ones above it, and check all of them.

    Raises:
        BadInput: another user can change a folder, or one cannot be created.
    """
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        for path in reversed(missing):
            # No umask gives others more rights than these. Another command may make it now.
            path.mkdir(0o755, exist_ok=True)
    except OSError as error:
        found = f"cannot be created: {error.strerror}"
        variable = VARIABLE if os.geteuid() == 0 else XDG_STATE
        raise bad_input(folder, "", found, f"a writable folder; {variable} names another") from None
    check_safe(folder)
    return folder


def check_safe(folder: Path) -> None:
    """Refuse a folder that a user other than root and this one can change or replace."""
    refuse_untrusted(folder, f"folders that only root and {this_user().name} can write")


_MAX_NOTE = 200
"""Characters of the lock that name the process."""


class Busy(BadInput):
    """Another process works on the run."""


@contextmanager
def state_lock(
    path: Path, name: str, accepted: str = "one process at a time", *, mode: int = 0o600
) -> Iterator[None]:
    """Hold the lock in the file `path` for the block. It ends with the process.

    Args:
        mode: of a new file. Who can read it can take the lock.

    Raises:
        Busy: another process holds it. The message calls it `name`.
        BadInput: the file is a link, or cannot be opened.
    """
    with open_to_append(path, mode) as file:
        if not _taken(file, fcntl.LOCK_EX):
            file.seek(0)
            note = file.read(_MAX_NOTE).strip()
            user = note if note and note.isprintable() else "another process"
            raise Busy(InputError("run_id", "", f"{name}: in use by {user}", accepted))
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        file.flush()
        yield


def lock(folder: Path) -> AbstractContextManager[None]:
    """Return the lock of the run in `folder`; see `state_lock`."""
    accepted = "one process at a time; another run id or fresh=true starts another run"
    return state_lock(RunFiles(folder).lock, folder.name, accepted, mode=0o666)


def is_locked(folder: Path) -> bool:
    """Return whether a process holds the lock of the run in `folder`. It writes nothing."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        number = os.open(RunFiles(folder).lock, flags)
    except OSError:
        return False
    with os.fdopen(number) as file:
        return not _taken(file, fcntl.LOCK_SH)


def _taken(file: TextIO, kind: int) -> bool:
    """Return whether the lock was taken. `is_locked` holds it for an instant: try twice."""
    for pause in (0.1, 0.0):
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(pause)
    return False
