"""The script of a step with several copies of a program, and its memory binding."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import pytest
import yaml
from tests.fixtures.finished import seal
from tests.fixtures.kit import Kit, carried_out, execution, kit_with, launch_of, steps_of
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import ROOT

from proofmark.cases.reader.engine import read_output
from proofmark.jobs.job_request import BatchQueue
from proofmark.jobs.scripts import Scripts, write_scripts
from proofmark.jobs.step_script import LaunchSite
from proofmark.plan.expansion import make_plan
from proofmark.records.columns import Record
from proofmark.runs.run import Run, open_run
from proofmark.runs.start import RunInputs, start_or_continue
from proofmark.site.machines import Machine
from proofmark.site.node.topology import Topology

SAMPLES = ROOT / "benchmarks" / "samples"


kit = kit_with(
    program='echo "# fake"; echo "# more"; echo "size 1"; echo "rate 100"; echo END; pwd >where'
)


PLAIN = "pack:2 [numa(memory=4GiB)] core:2 pu:1"
WITH_MCDRAM = "pack:2 [numa(memory=4GiB)] [numa(memory=1GiB)] core:2 pu:1"


def staged(kit: Kit, topology: str = PLAIN, **sweep: object) -> Run:
    kit.case(launch="mpi", copies="{pairs}", sweep={"size": 1, "pairs": 2, "ranks": 4, **sweep})
    symbols = {"cores": 4, "nodes": 1, "memory_bytes": 8 << 30}
    seen = Topology.from_lstopo(topology)
    site = kit.site()
    plan = make_plan(kit.benchmarks(), "quick", site, Machine(symbols, seen))
    runs = kit.folder / "runs"
    name = f"run{len([*runs.glob('*')])}"
    run, _ = start_or_continue(runs, RunInputs(plan, kit.benchmarks(), site, ""), run_id=name)
    programs = kit.software()
    site_of_programs = LaunchSite(programs, launch_of(programs))
    scratch = kit.folder / "scratch"
    write_scripts(run.folder, plan, Scripts(site_of_programs, scratch, BatchQueue("none")))
    return run


def test_every_copy_has_its_own_ranks_and_output(kit: Kit) -> None:
    run = staged(kit)
    (folder,) = steps_of(run)
    done = subprocess.run(["sh", str(folder / "run.sh")], check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    made = execution(folder)
    out = (made / "stdout").read_text().splitlines()
    assert [line for line in out if line.startswith("# copy")] == ["# copy 1 of 2", "# copy 2 of 2"]
    assert out.count("rate 100") == 2
    # The fake launcher starts one rank a copy: of copy i that with the number i.
    bound = json.loads((made / "binding.json").read_text())
    assert sorted(entry["rank"] for entry in bound) == [0, 1]
    assert (made / "copy-1" / "where").read_text() != (made / "copy-2" / "where").read_text()


def test_a_copy_that_fails_fails_the_step(kit: Kit) -> None:
    kit.program('[ "$FIRST_RANK" = 0 ] || exit 7')
    (folder,) = steps_of(staged(kit))
    done = subprocess.run(["sh", str(folder / "run.sh")], check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 7
    assert (execution(folder) / "rc").read_text() == "7\n"


def test_each_pair_of_osu_is_a_separate_value() -> None:
    reader = shipped_benchmarks().case("osu-contention").reader()
    one = "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n4096  100.5\n"
    title, rest = one.split("\n", 1)
    pairs = enumerate((rest, rest.replace("100.5", "90.25")), start=1)
    text = "".join(f"{title}\n# copy {copy} of 2\n{output}" for copy, output in pairs)
    records = read_output(reader, "osu-contention", text)
    assert [(row.parameters["pair"], row.value) for row in records] == [(1, 100.5), (2, 90.25)]
    assert all(row.valid for row in records)


def test_numactl_binds_the_memory_of_the_program(kit: Kit) -> None:
    (folder,) = steps_of(staged(kit, WITH_MCDRAM, memory="ddr", pairs=1))
    text = (folder / "run.sh").read_text()
    assert 'numactl --membind=0,2 sh "$HERE/run.sh" --bind ' in text
    (free,) = steps_of(staged(kit, pairs=1))
    assert "numactl --" not in (free / "run.sh").read_text()


def two_copies(kit: Kit, delays: str) -> Sequence[Record]:
    """Run two copies that each measure for half a second, after `delays` by their first rank."""
    kit.program(
        f'sleep $(echo {delays} | cut -d" " -f$((FIRST_RANK + 1))); sleep 0.5; '
        'echo "# OSU MPI Bandwidth Test v7.4"; echo "# Size      Bandwidth (MB/s)"; '
        'echo "1 $((100 + FIRST_RANK * 50)).0"'
    )
    case = yaml.safe_load((ROOT / "benchmarks" / "osu-contention.yml").read_text())
    reader = yaml.safe_load((ROOT / "benchmarks" / "osu-latency.yml").read_text())["read"]
    kit.case(
        launch="mpi",
        copies=2,
        concurrent="{0.5 * bandwidth / bandwidth}",
        sweep={"size": 1, "ranks": 2},
        arguments=["-m", "{size}:{size}"],
        read=reader,
        metrics=case["metrics"],
    )
    run = carried_out(kit.run(run_id="mine"))
    return kit.records(run)


@pytest.mark.fault("copies-apart")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
def test_copies_that_did_not_measure_at_the_same_time(kit: Kit, injected: bool) -> None:
    first, second, spread = two_copies(kit, "0 0.6" if injected else "0 0")
    assert (first.parameters["pair"], second.parameters["pair"]) == (1, 2)
    assert (spread.metric, spread.value, spread.unit) == ("bandwidth_spread", 40, "%")
    assert "pair" not in spread.parameters
    for record in (first, second, spread):
        assert record.valid is not injected
    assert injected == ("2 copies measured at the same time for 0.0" in first.reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "missing or damaged"),
        ("[]", "0 of 2 copies reported when they ran"),
        ('[{"copy": 1, "start": 0, "end": 9}]', "1 of 2 copies reported when they ran"),
    ],
)
def test_copies_without_a_start_and_end_are_invalid(kit: Kit, text: str, reason: str) -> None:
    two_copies(kit, "0 0")
    run = open_run(kit.folder / "runs" / "mine")
    (folder,) = steps_of(run)
    (execution(folder) / "copies.json").write_text(text)
    seal(execution(folder))
    records = kit.records(run)
    assert all(reason in record.reason for record in records)
    assert records
