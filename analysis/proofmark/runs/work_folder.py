"""The work folder of a run: where jobs run, of the user who starts the programs.

It is ``runs/<id>/workdir``. If root runs the programs as another user, that user makes the folder
in a folder of its own, and ``workdir`` is a link of root to it. Only outputs are read from it. They
are read with the rights of its owner (`proofmark.common.rights`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import make_folder, write_atomic, write_private
from proofmark.common.rights import User, acting_as, own_by, run_user
from proofmark.runs.run_files import RunFiles, WorkFiles
from proofmark.site.inventory import Site

PRIVATE = frozenset({"run.sh", "node.sh"})
"""The scripts that only their owner reads: they can have secrets."""
FOLDER = "proofmark"
"""The folder of all work folders in the home of the run user."""


def work_files(run: Path) -> WorkFiles:
    """Return the files of the work folder of the run in `run`, by the path that jobs see."""
    place = RunFiles(run).work_folder
    return WorkFiles(place.readlink() if place.is_symlink() else place.resolve())


def planned_work(run: Path, site: Site) -> Path:
    """Return where the work folder of a run in `run` would be."""
    named = site.partition.run_user or ""
    try:
        user = run_user(named)
    except BadInput:  # the run will be refused
        return Path(site.partition.work or f"~{named}/{FOLDER}") / run.name
    if user.is_this:
        return RunFiles(run).work_folder
    with acting_as(user):
        return _base(user, site)[0] / run.name


def make_work_folder(run: Path, site: Site, *, with_scratch: bool = False) -> User:
    """Make the work folder of the run in the folder `run`, unless it has one; return its owner.

    If it is to be in the scratch directory, it is made only `with_scratch`: after that is mounted.

    Raises:
        BadInput: its owner cannot make it.
    """
    user, place = run_user(site.partition.run_user or ""), RunFiles(run).work_folder
    if place.is_symlink() or place.exists():
        return user
    if user.is_this:
        place.mkdir()
        return user
    with acting_as(user):
        base, in_scratch = _base(user, site)
        if in_scratch and not with_scratch:
            return user
        target = base / run.name
        try:
            base.mkdir(parents=True, exist_ok=True)
            target.mkdir()
        except OSError as error:
            found = f"{target}: {error.strerror}, for the user {user.name}"
            accepted = f"a folder that {user.name} can make, and that all nodes see"
            raise bad_input("partition.work", "", found, accepted) from None
    place.symlink_to(target)
    return user


def _base(user: User, site: Site) -> tuple[Path, bool]:
    """Return the folder of the work folders, and whether it is in the scratch directory.

    It is that of the inventory, else in the home, else in the scratch directory.
    """
    partition = site.partition
    if partition.work:
        return Path(partition.work), False
    home = Path(user.home)
    if home.is_dir() and os.access(home, os.W_OK | os.X_OK, effective_ids=True):
        return home / FOLDER, False
    return Path(partition.scratch.path) / FOLDER, True


def use_work_folder(run: Path, owner: str) -> User | None:
    """Read and write the work folder of `run` with the rights of `owner`; None: it is not ours.

    A run that others started can be shown: then the owner is no user of this machine.
    """
    place = RunFiles(run).work_folder
    if not place.is_symlink():
        return None
    try:
        user = run_user(owner)
    except BadInput:
        return None  # this process has no more rights than its own
    own_by(place, user)
    own_by(place.readlink(), user)
    return user


def write_scripts_of(run: Path, texts: Mapping[str, str]) -> None:
    """Write scripts and inputs into the work folder of a run, and into the run itself.

    The run has only scripts that are in its work folder, also after a kill.

    Args:
        texts: the content of each file, by its path in the work folder.

    Raises:
        BadInput: a file cannot be written.
    """
    for folder in (work_files(run).folder, RunFiles(run).scripts_folder):
        for name, text in texts.items():
            path = folder / name
            make_folder(path.parent)
            (write_private if path.name in PRIVATE else write_atomic)(path, text)
