"""Jobs of an ordinary user in a partition that Slurm hides from ordinary users."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.vcluster import Cluster, Slurm
from tests.fixtures.kit import make_kit, steps_of, until
from tests.fixtures.phi import NOBODY

from proofmark.judge.judging import judge_run
from proofmark.runs.run import Run
from proofmark.site.execution import Queue

pytestmark = pytest.mark.root

WAITS = 'echo "size $1"; while [ ! -e "$GO" ]; do sleep 0.05; done; echo "rate 100"; echo END'
ASK = """
import json, sys
from proofmark.common.rights import run_user, starting_as
from proofmark.machine.schedulers.slurm import Slurm
job, name, *nodes = sys.argv[1:]
slurm = Slurm()
with starting_as(run_user("nobody")):
    states = {job: status.state.name for job, status in slurm.states([job]).items()}
    alone = slurm.ended(job)
    print(json.dumps({
        "states": states, "find": slurm.find(name), "nodes": slurm.nodes(nodes),
        "alone": alone and alone.state.name,
        "status": {node: status.out for node, status in slurm.node_status(nodes).items()},
    }))
"""
EXECUTE = "import sys; from proofmark.cli.main import main; sys.exit(main())"
HIDE = {
    "hidden": ["Hidden=YES"],
    "another group": ["AllowGroups=root"],
    "hidden, another group": ["Hidden=YES", "AllowGroups=root"],
}


class Site:
    """Slurm with one partition of two nodes, and a folder of the user nobody."""

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        self.folder, self.slurm, self.cluster = folder, slurm, slurm.cluster
        self.go = folder / "go"

    def as_root(self, *words: str) -> list[str]:
        """Return a command that runs Python with `words` on the head."""
        return self._on_head(sys.executable, "-c", *words)

    def _on_head(self, *command: str) -> list[str]:
        inside = ("nsenter", f"--target={self.cluster.head}", "--net", "--uts", "--mount", "--")
        return [*inside, *command]

    def as_user(self, *words: str) -> list[str]:
        """Return such a command as nobody, who may read all files."""
        read = "+dac_read_search"
        user = [f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups"]
        rights = ("setpriv", *user, f"--inh-caps={read}", f"--ambient-caps={read}", "--")
        return self._on_head(*rights, sys.executable, "-c", *words)

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.cluster.bin}:{os.environ['PATH']}"
        own = {"PROOFMARK_STATE": f"{self.folder}/state", "HOME": f"{self.folder}"}
        return {**os.environ, **own, "PATH": path, "USER": "nobody"}

    def ask(self, command: list[str]) -> dict[str, Any]:
        done = subprocess.run(
            command,
            env=self.environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        answers: dict[str, Any] = json.loads(done.stdout)
        return answers

    def hide(self, *settings: str) -> None:
        name = "PartitionName=knl"
        self.slurm.call("scontrol", "update", name, *settings)

    def jobs(self) -> list[str]:
        return self.slurm.call(
            "squeue", "--all", "--noheader", "--states=all", "--format=%i"
        ).split()


@pytest.fixture
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="hidden") as made:
        folder = Path(made)
        folder.chmod(0o755)
        with Cluster(folder / "cluster", 2, shared=[folder]) as cluster, Slurm(cluster) as slurm:
            yield Site(folder, slurm)


CALLERS = pytest.mark.parametrize("caller", ["root", "nobody"])
"""Who executes the run, whose jobs are those of nobody."""


def run_of(site: Site, caller: str) -> Run:
    """Write a run of one step on two nodes. Its files belong to `caller`."""
    kit = make_kit(site.folder / "kit")
    kit.program(WAITS)
    kit.case(
        suites={"quick": {"scope": "each-node", "sweep": {"size": [1], "nodes": 1}}},
        environment={"GO": str(site.go)},
    )
    made = kit.site(hosts=site.cluster.names)
    queue = Queue(stall_timeout_s=3, queue_timeout_s=60)
    work = site.folder / "work"
    work.mkdir()
    os.chown(work, NOBODY.pw_uid, NOBODY.pw_gid)
    settings = {"scheduler": "slurm", "queue": queue, "run_user": "nobody", "work": f"{work}"}
    partition = made.partition.model_copy(update=settings)
    run = kit.run(site=made.model_copy(update={"partition": partition}))
    subprocess.run(
        ["chown", "--recursive", "--no-dereference", f"{caller}:", kit.folder], check=True
    )
    return run


def started(run: Run) -> set[str]:
    """Return the nodes whose step has started."""
    (step,) = steps_of(run)
    return {path.relative_to(step).parts[0] for path in step.glob("*/**/started")}


def execute(site: Site, run: Run, caller: str, *settings: str) -> str:
    """Execute a run as `caller`; hide the partition while its job runs; return the messages."""
    command_of = site.as_root if caller == "root" else site.as_user
    command = command_of(EXECUTE, "stage", "execute", str(run.folder))
    with subprocess.Popen(
        command, env=site.environment, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: started(run) == set(site.cluster.names) or process.poll() is not None, 600)
        if settings:
            site.hide(*settings)
        # Longer than the time after which a job that is not listed is given up.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=6)
        site.go.touch()
        _, messages = process.communicate(timeout=600)
    assert process.returncode == 0, messages
    # This process judges the run. Root reads no run of another user.
    subprocess.run(["chown", "--recursive", "root:", site.folder / "kit"], check=True)
    return messages


@CALLERS
def test_an_ordinary_user_runs_in_an_open_partition(site: Site, caller: str) -> None:
    """Control: nothing is hidden."""
    run = run_of(site, caller)
    messages = execute(site, run, caller)
    assert "vanished" not in messages
    assert judge_run(run).coverage.stopped == ()


@pytest.mark.fault("slurm-partition-hidden")
@CALLERS
def test_a_job_in_a_hidden_partition_is_found_and_ends(site: Site, caller: str) -> None:
    """The partition is hidden in both ways. Each way alone is in the test below."""
    run = run_of(site, caller)
    messages = execute(site, run, caller, *HIDE["hidden, another group"])
    assert "vanished" not in messages
    assert judge_run(run).coverage.stopped == ()
    assert judge_run(run).coverage.measured == 2
    assert len(site.jobs()) == 1


@pytest.mark.fault("slurm-partition-hidden")
def test_each_question_of_an_ordinary_user_is_answered(site: Site) -> None:
    plain = site.as_user("import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))")
    # This user cannot write into the folder of the site: a job with its output there fails at once.
    script = "--output=/dev/null", "--chdir=/tmp", "--wrap=sleep 600"
    submit = [*plain, "sbatch", "--parsable", "--job-name=p1-00-0001", *script]
    job = subprocess.run(
        submit, env=site.environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    listing = [*plain, "squeue", "--noheader", "--format=%i"]
    for settings in HIDE.values():
        site.hide("Hidden=NO", "AllowGroups=ALL")
        site.hide(*settings)
        hidden = subprocess.run(
            listing, env=site.environment, capture_output=True, text=True, check=True
        )
        assert hidden.stdout == "", "the partition is not hidden from this user"
        for command_of in (site.as_user, site.as_root):
            answers = site.ask(command_of(ASK, job, "p1-00-0001", *site.cluster.names))
            assert set(answers["states"]) == {job}
            assert answers["find"] == job
            assert answers["alone"] in ("RUNNING", "WAITING", "UNAVAILABLE")
            assert set(answers["nodes"]) == set(site.cluster.names)
            assert answers["status"] == dict.fromkeys(site.cluster.names, False)
