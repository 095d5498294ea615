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
