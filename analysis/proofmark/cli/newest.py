"""Follows the links to the newest runs in the arguments of a command, and prints the runs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from proofmark.cli.command import NEWEST
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.progress_lines import say
from proofmark.runs.run import Link, followed, newest_run, runs_below
from proofmark.site.choice import chosen_site


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

    Raises:
        BadInput: there is no such run, or it is not clear which one.
    """
    return with_link(newest_run(root, site))


def _newest_of_chosen_site() -> Path:
    """Return the newest run of the chosen site in the folder of the runs of this checkout."""
    kit = kit_folder()
    root = result_folder(kit, "runs")
    try:
        site = chosen_site(kit)
    except BadInput:
        accepted = f"{runs_below(root)}, or a chosen site: make site SITE=…"
        raise bad_input("RUN", "", "nothing, and no site is chosen", accepted) from None
    link = Link.ACCEPTANCE.path(root, site.resolve().name)
    if not link.is_symlink():
        found = f"nothing, and no run of the chosen site {site.resolve().name}"
        raise bad_input("RUN", "", found, runs_below(root))
    return with_link(link)


def follow_links(options: Namespace) -> None:
    """Replace the links in all paths of `options`. The command keeps its run if a link moves.

    Raises:
        BadInput: a link points to no run; or no run is named, and the chosen site has none.
    """
    for name, value in vars(options).items():
        if value is NEWEST:
            setattr(options, name, _newest_of_chosen_site())
        elif isinstance(value, Path):
            setattr(options, name, with_link(value))
        elif isinstance(value, list) and all(isinstance(each, Path) for each in value):
            setattr(options, name, [with_link(each) for each in value])
