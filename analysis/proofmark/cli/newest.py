"""Follows the links to the newest runs in the arguments of a command, and prints the runs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from proofmark.common.progress_lines import say
from proofmark.runs.latest import followed, newest_run
from proofmark.runs.owner import drop_rights


def with_link(path: Path) -> Path:
    """Return `path` with the run in place of a link to it; print the run on stderr, in one line.

    Raises:
        BadInput: the link points to no run.
    """
    found = followed(path)
    if found is None:
        return path
    say(f"{path} is {found}")
    return found


def take_newest(root: Path, site: str = "") -> Path:
    """Return the newest run in `root` (`newest_run`), as if the command line had named it.

    Root gives up its rights for those of the owner of the run.

    Raises:
        BadInput: there is no such run, or it is not clear which one.
    """
    run = with_link(newest_run(root, site))
    drop_rights([run])
    return run


def follow_links(options: Namespace) -> None:
    """Replace the links in all paths of `options`. The command keeps its run if a link moves.

    Raises:
        BadInput: a link points to no run.
    """
    for name, value in vars(options).items():
        if isinstance(value, Path):
            setattr(options, name, with_link(value))
        elif isinstance(value, list) and all(isinstance(each, Path) for each in value):
            setattr(options, name, [with_link(each) for each in value])
