"""A node whose processor throttles itself while a step runs."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from statistics import median

import pytest
from tests.fixtures.kit import make_kit, until
from tests.rehearsal.faults import FAULTS
from tests.rehearsal.room import Room

from proofmark.jobs.execute import execute
from proofmark.jobs.scripts import PROBE
from proofmark.judge.judging import judge_run
from proofmark.runs.run_files import write_scripts_of
from proofmark.site.execution import Queue

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.soak]

NODES = 5
WORKS = """
echo "size $1"
: >"$GO.$(uname -n)"
while [ ! -e "$GO" ]; do sleep 0.05; done
read -r start _ </proc/uptime
awk 'BEGIN { for (i = 0; i < 4000000; i++) x += i }'
read -r end _ </proc/uptime
awk -v t="$start $end" 'BEGIN { split(t, at, " "); print "rate", 100 / (at[2] - at[1]) }'
echo END
"""


@pytest.mark.fault("throttled-virtual-node")
@pytest.mark.parametrize("throttled", [False, True])
def test_a_node_that_throttles_itself_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, throttled: bool
) -> None:
    """Without throttling it is the control."""
    fault = FAULTS["throttled-node"]
    (tmp_path / "room").mkdir()
    kit, go = make_kit(tmp_path / "kit"), tmp_path / "go"
    kit.program(WORKS)
    kit.case(
        suites={"quick": {"scope": "each-node"}},
        sweep={"size": [1]},
        environment={"GO": str(go)},
        timeout=200,
    )
    with Room(tmp_path / "room", "knl", NODES, fault, shared=[tmp_path]) as room:
        monkeypatch.setenv("PATH", f"{room.cluster.bin}:{os.environ['PATH']}")
        site = kit.site(hosts=room.names)
        changes = {"scheduler": "slurm", "queue": Queue(name="knl")}
        partition = site.partition.model_copy(update=changes)
        run = kit.run(site=site.model_copy(update={"partition": partition}))
        write_scripts_of(run.folder, {"probe.sh": PROBE.read_text()})

        def meanwhile() -> None:
            until(lambda: all(go.with_name(f"go.{node}").exists() for node in room.names))
            if throttled and fault.meanwhile:
                fault.meanwhile(room)
            go.touch()

        thread = threading.Thread(target=meanwhile)
        thread.start()
        execute(run, "slurm", lambda line: None)
        thread.join()
    verdict = judge_run(run)
    rates = {result.record.node: result.record.value or 0.0 for result in verdict.results}
    slow = rates.pop(room.victim) / median(rates.values())
    assert len(rates) == NODES - 1
    if throttled:
        assert slow < 0.5
        (bad,) = verdict.bad.nodes
        assert bad.host == room.victim
        assert "the processor was throttled because of its temperature" in bad.likely
        (invalid,) = verdict.of("INVALID")
        assert invalid.record.node == room.victim
    else:
        assert verdict.bad.nodes == ()
        assert verdict.counts["INVALID"] == 0
