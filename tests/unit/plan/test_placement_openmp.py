"""OpenMP's rules for close and spread: computed by hand, and compared with GCC's libgomp."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.plan.placement import (
    PlacementRequest,
    close_places,
    place,
    spread_places,
    subpartitions,
)
from proofmark.site.node.topology import Topology

# A program that prints the number of the place of each thread.
PLACES = r"""
#include <omp.h>
#include <stdio.h>
int main(void) {
#pragma omp parallel
#pragma omp critical
  printf("%d %d\n", omp_get_thread_num(), omp_get_place_num());
}
"""


# From "Controlling OpenMP Thread Affinity": T threads, P places, the first thread on place
# 0. T <= P: close takes the next place each time; spread the first place of each of T subpartitions
# of floor(P/T) to ceil(P/T) places. T > P: floor(T/P) to ceil(T/P) threads of consecutive numbers.
@pytest.mark.parametrize(
    ("threads", "places", "as_close", "as_spread"),
    [
        (1, 8, (0,), (0,)),
        (2, 8, (0, 1), (0, 4)),
        (3, 8, (0, 1, 2), (0, 3, 6)),  # subpartitions of 3, 3 and 2
        (4, 8, (0, 1, 2, 3), (0, 2, 4, 6)),
        (5, 8, (0, 1, 2, 3, 4), (0, 2, 4, 6, 7)),  # of 2, 2, 2, 1 and 1
        (8, 8, tuple(range(8)), tuple(range(8))),
        (6, 4, (0, 0, 1, 1, 2, 3), (0, 0, 1, 1, 2, 3)),  # 2, 2, 1 and 1 threads
        (16, 8, tuple(n // 2 for n in range(16)), tuple(n // 2 for n in range(16))),
        (34, 68, tuple(range(34)), tuple(range(0, 68, 2))),  # one thread per tile
        (35, 68, tuple(range(35)), (*range(0, 66, 2), 66, 67)),  # the first tile with two
        (69, 68, (0, *range(68)), (0, *range(68))),
        (136, 68, tuple(n // 2 for n in range(136)), tuple(n // 2 for n in range(136))),
    ],
)
def test_places_computed_by_hand(
    threads: int, places: int, as_close: tuple[int, ...], as_spread: tuple[int, ...]
) -> None:
    assert close_places(threads, places) == as_close
    assert spread_places(threads, places) == as_spread


@given(threads=st.integers(1, 300), places=st.integers(1, 100))
def test_the_rules_of_the_specification(threads: int, places: int) -> None:
    least, most = threads // places, -(-threads // places)
    for policy in (close_places, spread_places):
        at = policy(threads, places)
        assert at[0] == 0
        assert list(at) == sorted(at)  # consecutive numbers to a place, no wrap from place 0
        assert len(at) == threads
        if threads > places:
            assert all(least <= at.count(place) <= most for place in range(places))
    if threads <= places:
        parts = subpartitions(threads, places)
        assert [place for part in parts for place in part] == list(range(places))
        assert {len(part) for part in parts} <= {places // threads, -(-places // threads)}
        assert tuple(part[0] for part in parts) == spread_places(threads, places)
        assert close_places(threads, places) == tuple(range(threads))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program with GCC's OpenMP."""
    folder = tmp_path_factory.mktemp("openmp")
    (folder / "places.c").write_text(PLACES)
    command = ["gcc", "-fopenmp", "-o", str(folder / "places"), str(folder / "places.c")]
    subprocess.run(command, check=True)
    return folder / "places"


def run(program: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    return subprocess.run(
        [program], env=clean | settings, capture_output=True, text=True, check=True
    )


def really(program: Path, bind: str, threads: int, places: int) -> tuple[int, ...]:
    """Let libgomp place its threads on so many places, each one CPU that exists."""
    cpus = sorted(os.sched_getaffinity(0))
    made_up = ",".join(f"{{{cpus[place % len(cpus)]}}}" for place in range(places))
    settings = {"OMP_PLACES": made_up, "OMP_PROC_BIND": bind, "OMP_NUM_THREADS": str(threads)}
    printed = run(program, **settings).stdout.splitlines()
    at = sorted(tuple(map(int, line.split())) for line in printed)
    assert [thread for thread, _ in at] == list(range(threads))
    return tuple(place for _, place in at)


@pytest.mark.parametrize("places", [1, 2, 5, 8, 16, 68])
@pytest.mark.parametrize("bind", ["close", "spread"])
def test_libgomp_places_threads_the_same(program: Path, bind: str, places: int) -> None:
    policy = {"close": close_places, "spread": spread_places}[bind]
    counts = {1, 2, 3, places // 2, places // 2 + 1, places - 1, places}
    for threads in sorted(count for count in counts if 1 <= count <= places):
        assert really(program, bind, threads, places) == policy(threads, places)


@pytest.mark.parametrize("places", [2, 5, 68])
@pytest.mark.parametrize("bind", ["close", "spread"])
def test_libgomp_puts_as_many_threads_on_each_place(program: Path, bind: str, places: int) -> None:
    """Each place has the same number of threads; libgomp assigns other numbers to the rest."""
    policy = {"close": close_places, "spread": spread_places}[bind]
    for threads in (places + 1, 2 * places - 1, 2 * places):
        ours, theirs = policy(threads, places), really(program, bind, threads, places)
        assert Counter(ours) == Counter(theirs)
        whole, rest = threads - threads % places, threads % places
        assert theirs == (*close_places(whole, places), *range(rest))


def reported(program: Path, **settings: str) -> dict[int, frozenset[int]]:
    """Return the CPUs of each thread as OMP_DISPLAY_AFFINITY has libgomp report them."""
    display = {"OMP_DISPLAY_AFFINITY": "TRUE", "OMP_AFFINITY_FORMAT": "thread %n on %A"}
    report = run(program, **settings, **display).stderr
    lines = re.findall(r"thread (\d+) on (\S+)", report)
    return {int(thread): cpu_list(cpus) for thread, cpus in lines}


@pytest.mark.parametrize("bind", ["close", "spread"])
def test_libgomp_reports_the_same_on_this_machine(program: Path, bind: str) -> None:
    """OMP_PLACES=cores, up to 2 × cores threads; libgomp does not report a team of one."""
    topology = Topology.from_lstopo()
    cores = len(topology.cores)
    for threads in range(2, 2 * cores + 1):
        settings = {"OMP_PLACES": "cores", "OMP_PROC_BIND": bind, "OMP_NUM_THREADS": str(threads)}
        theirs = reported(program, **settings)
        placed = place(PlacementRequest(topology, bind, 1, threads=threads, oversubscribe=True))[0]
        ours = dict(enumerate(frozenset(topology.core_of[cpu].pus) for cpu in placed.cpus))
        assert Counter(theirs.values()) == Counter(ours.values())
        if threads <= cores or threads % cores == 0:
            assert theirs == ours


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_one_place_per_thread_binds_each_thread_as_computed(program: Path, threads: int) -> None:
    """A rank's hardware threads given as OMP_PLACES: the numbering is ours in any runtime."""
    topology = Topology.from_lstopo()
    request = PlacementRequest(topology, "close", 1, threads=threads, oversubscribe=True)
    pus = place(request)[0].cpus
    places = ",".join(f"{{{pu}}}" for pu in pus)
    settings = {"OMP_PLACES": places, "OMP_PROC_BIND": "close", "OMP_NUM_THREADS": str(threads)}
    assert reported(program, **settings) == {n: frozenset([pu]) for n, pu in enumerate(pus)}


def cpu_list(text: str) -> frozenset[int]:
    """Read ``0-2,5``."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)
