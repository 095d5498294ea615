"""The folders that tests read."""

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
