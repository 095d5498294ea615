"""The folders that tests read."""

import os
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The checkout."""
PACKAGE = ROOT / "analysis" / "proofmark"
BENCHMARKS = ROOT / "benchmarks"
DATA = ROOT / "tests" / "data"
HWLOC = DATA / "hwloc"
"""Topologies, as hwloc's XML."""
PROBES = DATA / "probe"
"""Reports of probe.sh and probe-program.sh."""


def let_all_enter(folder: Path) -> None:
    """Let all users enter `folder` and read it: the folders of pytest are closed."""
    for path in (folder, *folder.parents):
        if path.stat().st_mode & 0o055 != 0o055:
            path.chmod(path.stat().st_mode | 0o055)


def repository_files(*patterns: str) -> Iterator[Path]:
    """Yield the files that are, or are about to be, tracked, and match one of `patterns` of git.

    An archive of a release has no metadata of git. There they are the files that git would not
    ignore.
    """
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        names = [name for name in done.stdout.split("\0") if name]
    else:
        names = [
            name
            for name in sorted(_not_ignored())
            if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
        ]
    yield from (ROOT / name for name in names if (ROOT / name).is_file())


def _not_ignored() -> Iterator[str]:
    """Yield the names of the files that no line of ``.gitignore`` has."""
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    ignored = [line.rstrip("/") for line in lines if line and line[0] != "#"]

    def is_ignored(name: str) -> bool:
        last = name.rpartition("/")[2]
        for line in ignored:
            of_place = "/" in line
            if fnmatchcase(name if of_place else last, line.removeprefix("/")):
                return True
        return False

    for folder, inner, files in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT)
        inner[:] = [each for each in inner if not is_ignored((here / each).as_posix())]
        names = [(here / each).as_posix() for each in files]
        yield from (name for name in names if not is_ignored(name))
