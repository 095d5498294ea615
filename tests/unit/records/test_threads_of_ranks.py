"""The threads of an MPI rank are bound to one CPU each, and the kit verifies that."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.fixtures.kit import Kit, carried_out, execution, make_kit, steps_of
from tests.unit.plan.test_papers import of

from proofmark.plan.plan import Step
from proofmark.plan.rank_cpus import RankCpus
from proofmark.records.binding import binding_error
from proofmark.records.columns import Record
from proofmark.runs.attempts import read_binding

THREADS = """
#include <stdio.h>
#include <unistd.h>
int main(void) {
#pragma omp parallel
  usleep(1500000);
  puts("size 2\\nrate 100\\nEND");
}
"""
"""An OpenMP program whose threads exist for 1.5 s, with the output that its case expects."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("program") / "threads.c"
    source.write_text(THREADS)
    subprocess.run(["gcc", "-fopenmp", "-o", source.with_suffix(""), source], check=True)
    return source.with_suffix("")


@pytest.fixture
def kit(tmp_path: Path, program: Path) -> Kit:
    kit = make_kit(tmp_path)
    shutil.copy(program, kit.folder / "programs" / "threads")
    return kit


def records_of_two_threads(kit: Kit, setting: str = "") -> Sequence[Record]:
    """Run a rank of two threads whose program changes its environment by `setting`."""
    kit.program(f'{setting}\nexec "${{0%/*}}/threads"')
    kit.case(launch="mpi", sweep={"size": 2, "ranks": 1, "threads": 2})
    run = carried_out(kit.run())
    return kit.records(run)


@pytest.mark.fault("rank-threads-not-bound")
@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("", ""),
        (
            "export OMP_PROC_BIND=false; unset OMP_PLACES",
            "rank 0 had no thread of its own on CPUs 0,1, planned one on each of 0,1",
        ),
        (
            "export OMP_PLACES={0},{0}",
            "rank 0 had no thread of its own on CPUs 1, planned one on each of 0,1",
        ),
    ],
    ids=["control", "not bound", "both on one CPU"],
)
def test_each_thread_of_a_rank_has_its_own_cpu(kit: Kit, setting: str, reason: str) -> None:
    (record,) = records_of_two_threads(kit, setting)
    assert (record.reason, record.valid) == (reason, not reason)


def step_of_two_ranks() -> Step:
    step = next(each for each in of("p1", "skl").steps() if each.case == "hpl")
    cpus = [RankCpus(0, (0, 1)), RankCpus(0, (2, 3))]
    return step.model_copy(update={"cpus": cpus, "membind": []})


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ("2,3", ""),
        ("3,2", ""),
        ("2", "rank 1 had no thread of its own on CPUs 3, planned one on each of 2,3"),
        ("", "rank 1 had no thread of its own on CPUs 2,3, planned one on each of 2,3"),
        ("2-4", "rank 1 had threads on CPUs 4, planned one on each of 2,3"),
    ],
)
def test_every_rank_is_checked(second: str, reason: str) -> None:
    ranks = [{"rank": n, "host": "a", "cpus": f"{2 * n}-{2 * n + 1}"} for n in range(2)]
    threads = [{"threads_of": n, "host": "a", "cpus": c} for n, c in enumerate(("0,1", second))]
    assert binding_error(step_of_two_ranks(), ["a"], read_binding([*ranks, *threads])) == reason


def test_a_rank_without_a_report_and_a_step_of_an_earlier_version() -> None:
    step = step_of_two_ranks()
    ranks = read_binding(
        [{"rank": n, "host": "a", "cpus": f"{2 * n}-{2 * n + 1}"} for n in range(2)]
    )
    assert binding_error(step, ["a"], ranks).startswith("rank 0 had no thread of its own")
    earlier = Step.model_validate(step.model_dump(exclude={"bind_threads"}))
    assert binding_error(earlier, ["a"], ranks) == ""


def test_hpl_binds_its_threads() -> None:
    bound = {step.case: step.bind_threads for step in of("p1", "skl").steps()}
    assert bound == {"hpl": True, "ior": False, "stream": False}


SILENT = "unset OMP_DISPLAY_AFFINITY OMP_AFFINITY_FORMAT"
"""libgomp before GCC 9 does not read these variables. It reads OMP_PLACES and OMP_PROC_BIND."""


@pytest.mark.fault("silent-thread-elsewhere")
@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("", ""),
        (SILENT, ""),
        (f"{SILENT}; export OMP_PLACES={{1}},{{0}}", ""),
        (
            f"{SILENT}; export OMP_PLACES={{0}},{{0}}",
            "rank 0 had no thread of its own on CPUs 1, planned one on each of 0,1",
        ),
        (f"{SILENT}; export OMP_PROC_BIND=false; unset OMP_PLACES", "0 of 2 threads reported"),
    ],
    ids=["control", "silent control", "other order", "both on one CPU", "not bound"],
)
def test_the_kernel_reports_the_threads_of_a_silent_runtime(
    kit: Kit, setting: str, reason: str
) -> None:
    """A program of threads, without MPI, as STREAM is."""
    kit.program(f'{setting}\nexec "${{0%/*}}/threads"')
    kit.case(launch="threads", sweep={"size": 2, "threads": 2})
    run = carried_out(kit.run())
    (record,) = kit.records(run)
    assert record.reason.startswith(reason)
    assert record.valid is (reason == "")
    entries = json.loads((execution(steps_of(run)[0]) / "binding.json").read_text())
    printed = {entry["thread"] for entry in entries if "thread" in entry}
    assert printed == (set() if SILENT in setting else {0, 1})
    # The threads of a runtime that reports them are not read again while the program measures.
    assert not (printed and any("threads_of" in entry for entry in entries))


@pytest.mark.parametrize(
    ("own", "printed", "reason"),
    [
        ("4,6", [], ""),
        ("4", [], "rank 0 had no thread of its own on CPUs 6, planned one on each of 4,6"),
        ("4,6,8", [], "rank 0 had threads on CPUs 8, planned one on each of 4,6"),
        (None, [], "0 of 2 threads reported their CPU"),
        ("4,6", [(0, "4")], "1 of 2 threads reported their CPU"),
        ("4,6", [(0, "6"), (1, "4")], "thread 0 ran on CPUs 6, planned on 4"),
    ],
)
def test_the_report_of_the_runtime_counts_before_that_of_the_kernel(
    own: str | None, printed: list[tuple[int, str]], reason: str
) -> None:
    step = step_of_two_ranks().model_copy(
        update={"cpus": [RankCpus(0, (4, 6))], "launch": "threads", "bind_threads": False}
    )
    entries: list[dict[str, object]] = [{"rank": 0, "host": "a", "cpus": "4,6"}]
    entries += [{"thread": thread, "host": "a", "cpus": cpus} for thread, cpus in printed]
    if own is not None:
        entries.append({"threads_of": 0, "host": "a", "cpus": own})
    assert binding_error(step, ["a"], read_binding(entries)) == reason
