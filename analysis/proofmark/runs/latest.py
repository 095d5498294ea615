"""The links to the newest runs: one for each site and each kind of run.

``runs/latest-<site>`` is the newest acceptance of a site. Twins and adopted outputs have links of
their own. Runs of a gate have none. Another site or another kind of run never moves a link. Another
user of the same site does, so each command prints the run that it takes.
"""

from __future__ import annotations

import secrets
from enum import Enum
from pathlib import Path

from proofmark.common.errors import bad_input


class Link(Enum):
    """The kinds of links; the value begins the name."""

    ACCEPTANCE = "latest"
    TWIN = "twin"
    ADOPTED = "adopted"

    def path(self, root: Path, site: str) -> Path:
        """Return the link to the newest run of `site` below `root`."""
        return root / f"{self.value}-{site}"


def is_reserved(name: str) -> bool:
    """Return whether `name` is that of a link, so that no run can have it."""
    kind, separator, site = name.partition("-")
    return kind in {each.value for each in Link} and bool(site or not separator)


def point(link: Path, run: str) -> str:
    """Let `link` point to `run`, a folder beside it; return why it was not moved, or "".

    A file or folder in the place of the link stays, and so does a link that this user cannot
    replace.
    """
    if link.exists() and not link.is_symlink():
        return f"{link}: no link; remove it, so that it can be the link to the newest run"
    fresh = link.with_name(f".{link.name}-{secrets.token_hex(8)}")
    try:
        fresh.symlink_to(run)
        fresh.rename(link)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        return f"{link}: not moved to {run}: {error.strerror}"
    return ""


def followed(path: Path) -> Path | None:
    """Return `path` with the run in place of a link in it; None if it has no link to a run.

    Raises:
        BadInput: the run does not exist.
    """
    for place in (path, *path.parents):
        if is_reserved(place.name) and place.is_symlink():
            run = place.parent / place.readlink()
            if not run.is_dir():
                found = f"{place}: a link to {place.readlink()}, which does not exist"
                raise bad_input("RUN", "", found, runs_below(place.parent))
            return run / path.relative_to(place)
    return None


def newest_run(root: Path, site: str = "") -> Path:
    """Return the link to the newest acceptance of `site`; without `site`, the only link in `root`.

    Raises:
        BadInput: there is no such link, or there are several.
    """
    if site:
        link = Link.ACCEPTANCE.path(root, site)
        if not link.is_symlink():
            found = f"no link {link}: no run of the site {site}"
            raise bad_input("run_id", "", found, runs_below(root))
        return link
    links = acceptance_links(root)
    if len(links) != 1:
        names = ", ".join(f"{link}" for link in links) or f"no link in {root}"
        raise bad_input("--run", "", names, f"--run with one run: {runs_below(root)}")
    return links[0]


def acceptance_links(root: Path) -> list[Path]:
    """Return the links to the newest acceptances in `root`, sorted by name."""
    links = root.glob(f"{Link.ACCEPTANCE.value}-*")
    return sorted(link for link in links if link.is_symlink())


def runs_below(root: Path) -> str:
    """Return the links and the newest runs in `root` as text."""
    newest = sorted(path.name for path in root.glob("*Z-*") if not path.is_symlink())[-3:]
    return ", ".join([*(link.name for link in acceptance_links(root)), *newest]) or "a run's folder"
