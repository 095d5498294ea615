"""A stability run through a real Slurm on a virtual cluster, with planted failures of each cause.

``STABILITY_MINUTES`` is its duration. docs/tested.md has the protocol of a longer one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from tests.emulators.vcluster import Cluster, Slurm
from tests.fixtures.kit import SYMBOLS, make_kit, topology, until
from tests.folders import ROOT
from tests.processes import running

from proofmark.judge.judging import judge_run
from proofmark.packages.stability.stability_plan import stability_plan
from proofmark.packages.stability.tally import JobTally
from proofmark.packages.stability.terms import JobCause, StabilityTerms
from proofmark.plan.expansion import make_plan
from proofmark.runs.run import open_run
from proofmark.site.execution import Queue
from proofmark.site.machines import Machine

pytestmark = [pytest.mark.root, pytest.mark.soak]

MINUTES = float(os.environ.get("STABILITY_MINUTES", "6"))
PROGRAM = """
sleep 4
for each in "$PLANTED"/*.sh; do
    mv "$each" "$each.$$" 2>/dev/null && . "$each.$$"
done
echo "size $1"; echo "rate 100"; echo END
"""
"""A program that does what it finds in the folder $PLANTED; a file there works once."""
SAID = {
    "program": ["exit 139", "echo 'fake: unrecognized option --n' >&2; exit 4"],
    "fabric": ["echo 'Transport retry count exceeded on mlx5_0:1/IB' >&2; exit 1"] * 2,
    "file-system": ["echo 'write failed: Input/output error' >&2; exit 1"] * 2,
    "unknown": ["kill -9 $$"] * 2,
}


class Trial:
    """A cluster, and the folder of what is planted."""

    def __init__(self, folder: Path, cluster: Cluster, slurm: Slurm) -> None:
        self.folder, self.cluster, self.slurm = folder, cluster, slurm
        folder.mkdir()

    def say(self, number: int, text: str) -> None:
        """Let one program run `text`, and wait until it did."""
        path = self.folder / f"{number}.sh"
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").rename(path)
        until(lambda: not path.exists())

    def busy(self) -> tuple[str, str]:
        """Return a job that runs, and its last node."""
        shown = ("squeue", "--noheader", "--states=R", "--format=%i %B")
        until(lambda: bool(self.slurm.call(*shown).strip()))
        job, node = self.slurm.call(*shown).splitlines()[0].split()
        return job, node

    def lose(self) -> None:
        """Kill a node that runs a job, and boot it again."""
        _, node = self.busy()
        self.cluster.kill(node)
        until(lambda: "down" in self.slurm.states().get(node, "down"))
        time.sleep(20)
        self.cluster.boot(node)

    def cancel(self) -> None:
        """Cancel a job as another user does."""
        self.slurm.call("scancel", self.busy()[0])


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    with Cluster(tmp_path / "cluster", 4, shared=[tmp_path]) as cluster, Slurm(cluster) as slurm:
        monkeypatch.setenv("PATH", f"{cluster.bin}:{os.environ['PATH']}")
        yield Trial(tmp_path / "planted", cluster, slurm)


def test_twelve_planted_failures_are_counted(trial: Trial, tmp_path: Path) -> None:
    kit = make_kit(tmp_path / "kit")
    kit.program(PROGRAM)
    kit.suites(stability={"title": "Stability"})
    use = {"sweep": {"size": 1, "nodes": [1, 2]}}
    planted = {"PLANTED": f"{trial.folder}"}
    kit.case(suites={"stability": use}, cost={"seconds": 5}, environment=planted)
    shutil.copyfile(ROOT / "benchmarks/stability.yml", kit.cases / "stability.yml")
    hosts = trial.cluster.names
    site = kit.site(hosts=hosts)
    changes = {"scheduler": "slurm", "queue": Queue(stall_timeout_s=600)}
    site = site.model_copy(update={"partition": site.partition.model_copy(update=changes)})
    machine = Machine({**SYMBOLS, "cores": 2, "nodes": len(hosts)}, topology(2))
    normal = make_plan(kit.benchmarks(), "stability", site, machine)
    terms = StabilityTerms(days=MINUTES / 1440, load=1)
    run = kit.run(site=site, plan=stability_plan(normal, hosts, terms))

    code = "import sys; from proofmark.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "stage", "execute", f"{run.folder}"]
    begin, pause = time.monotonic(), 60 * MINUTES / 40
    said = [text for pair in zip(*SAID.values(), strict=True) for text in pair]
    with running(subprocess.Popen(command)) as process:
        for number, text in enumerate(said):
            trial.say(number, text)
            time.sleep(pause)
            if number in (2, 5):
                trial.lose()
            if number in (1, 6):
                trial.cancel()
            if number == 4:
                process.kill()
                process.wait()
                process = subprocess.Popen(command)
        with running(process):
            assert process.wait(120 * MINUTES) == 0
    print(f"{time.monotonic() - begin:.0f} s")

    verdict = judge_run(open_run(run.folder))
    found = verdict.of_kind
    assert isinstance(found, JobTally)
    print(json.dumps(found.as_json(), indent=1))
    assert found.over
    assert found.failed == dict.fromkeys(get_args(JobCause), 2)
    assert found.started == found.finished + 12
