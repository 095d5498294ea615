"""A program started several times at once, and memory that it is bound to: what is staged."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.unit.helpers import ROOT, Kit, make_kit, steps_of

from proofmark.cases import load_benchmarks
from proofmark.plan import Machine, make_plan
from proofmark.reader.engine import read_output
from proofmark.runs import Run, start_or_continue
from proofmark.stage import write_steps
from proofmark.topology import Topology

SAMPLES = ROOT / "benchmarks" / "samples"


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    made = make_kit(tmp_path)
    made.program(
        'echo "# fake"; echo "# more"; echo "size 1"; echo "rate 100"; echo END; pwd >where'
    )
    return made


def staged(kit: Kit, **sweep: object) -> Run:
    kit.case(launch="mpi", copies="{pairs}", sweep={"size": 1, "pairs": 2, "ranks": 4, **sweep})
    symbols = {"cores": 4, "nodes": 1, "memory_bytes": 8 << 30}
    seen = Topology.from_lstopo("pack:2 [numa(memory=4GiB)] core:2 pu:1")
    site = kit.site()
    plan = make_plan(kit.benchmarks(), "quick", site, Machine(symbols, seen))
    runs = kit.folder / "runs"
    name = f"run{len([*runs.glob('*')])}"
    run, _ = start_or_continue(runs, plan, kit.benchmarks(), site, "", run_id=name)
    write_steps(run.folder, plan, kit.software(), kit.folder / "scratch", "none")
    return run


def test_every_copy_has_ranks_and_output_of_its_own(kit: Kit) -> None:
    run = staged(kit)
    (folder,) = steps_of(run)
    done = subprocess.run(["sh", str(folder / "run.sh")], check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    out = (folder / "stdout").read_text().splitlines()
    assert [line for line in out if line.startswith("# copy")] == ["# copy 1 of 2", "# copy 2 of 2"]
    assert out.count("rate 100") == 2
    # The fake launcher starts one rank a copy: of copy i that with the number i.
    bound = json.loads((folder / "binding.json").read_text())
    assert sorted(entry["rank"] for entry in bound) == [0, 1]
    assert (folder / "copy-1" / "where").read_text() != (folder / "copy-2" / "where").read_text()


def test_a_copy_that_fails_fails_the_step(kit: Kit) -> None:
    kit.program('[ "$FIRST_RANK" = 0 ] || exit 7')
    (folder,) = steps_of(staged(kit))
    done = subprocess.run(["sh", str(folder / "run.sh")], check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 7
    assert (folder / "rc").read_text() == "7\n"


def test_each_pair_of_osu_is_a_figure_of_its_own() -> None:
    reader = load_benchmarks(ROOT / "benchmarks").case("osu-contention").reader()
    one = "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n4096  100.5\n"
    title, rest = one.split("\n", 1)
    pairs = enumerate((rest, rest.replace("100.5", "90.25")), start=1)
    text = "".join(f"{title}\n# copy {copy} of 2\n{output}" for copy, output in pairs)
    found = read_output(reader, "osu-contention", text)
    assert [(row.parameters["pair"], row.value) for row in found] == [(1, 100.5), (2, 90.25)]
    assert all(row.valid for row in found)


def test_memory_is_bound_in_front_of_the_program(kit: Kit) -> None:
    (folder,) = steps_of(staged(kit, memory="ddr", pairs=1))
    text = (folder / "run.sh").read_text()
    assert 'numactl --membind=0,1 sh "$HERE/run.sh" --bind ' in text
    (free,) = steps_of(staged(kit, pairs=1))
    assert "numactl --" not in (free / "run.sh").read_text()
