"""An ordinary user and a real OpenPBS with default settings: the whole play, and faults."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.emulators.vcluster import Cluster, OpenPbs
from tests.emulators.vcluster.pbs import SERVER
from tests.fixtures.kit import until
from tests.processes import running
from tests.roles.batch import (
    NEEDS_OPENPBS,
    OPENPBS,
    Batch,
    is_whole,
    make_batch,
    runs_on_all,
    ticket_of,
)
from tests.roles.kit import DECLARED, NAP, Kit, make_kit, processes_of
from tests.roles.person import NAME, Person

from proofmark.judge.judging import judge_run
from proofmark.machine.schedulers.pbs import Pbs
from proofmark.runs.identity import write_identity
from proofmark.runs.job_folder import State
from proofmark.runs.run import Run

pytestmark = NEEDS_OPENPBS

EXECUTE = "import sys; from proofmark.cli.main import main; sys.exit(main())"


class Site:
    """Two nodes of an OpenPBS, and the kit of an ordinary user, whose suite is `quick`."""

    def __init__(self, top: Path, pbs: OpenPbs, person: Person) -> None:
        self.top, self.pbs, self.person = top, pbs, person
        self.names = pbs.cluster.names

    def qmgr(self, line: str) -> None:
        """Change a setting of the server, as root."""
        self.pbs.call("qmgr", "-c", line)

    def sleeper(self, select: str, *options: str) -> str:
        """Submit a job of the user that the kit does not know; return its id."""
        script = self.person.home / "sleep.sh"
        script.write_text("#!/bin/sh\nsleep 300\n")
        words = ("qsub", "-l", select, *options, "-o", "/dev/null", "-j", "oe", str(script))
        return self.person.call(*words).strip()

    def split(self, node: str) -> None:
        """Give `node` two virtual nodes of one processor each, beside the natural one of none."""
        parts = self.pbs.home / "parts"
        lines = [f"{node}: resources_available.ncpus = 0", f"{node}: resources_available.mem = 0"]
        for at in range(2):
            lines += [f"{node}[{at}]: resources_available.ncpus = 1"]
            lines += [f"{node}[{at}]: resources_available.mem = 256mb"]
        parts.write_text("$configversion 2\n" + "".join(f"{line}\n" for line in lines))
        self._mom(node, "-s", "insert", "parts", str(parts))
        listing = ("pbsnodes", "-a", "-v")
        until(lambda: f"{node}[1]" in self.pbs.call(*listing), 120, pause_s=0.5)

    def whole(self, node: str) -> None:
        """Undo `split`."""
        self._mom(node, "-s", "remove", "parts")
        for name in (f"{node}[0]", f"{node}[1]", node):
            self.qmgr(f"delete node {name}")
        self.qmgr(f"create node {node}")
        self.pbs.wait_until_free()

    def _mom(self, node: str, *arguments: str) -> None:
        """Run ``pbs_mom`` with arguments on `node`, and let its daemon read the changes."""
        home = self.pbs.home / node
        setting = f"PBS_CONF_FILE={home / 'pbs.conf'}"
        cluster = self.pbs.cluster
        cluster.on(node, "env", setting, f"{self.pbs.prefix}/sbin/pbs_mom", *arguments)
        cluster.on(node, "sh", "-c", f"kill -HUP $(cat {shlex.quote(f'{home}/mom_priv/mom.lock')})")

    def kit(self, name: str, **queue: Any) -> Kit:
        """Make a kit with the site `virtual` in the folder `name`."""
        (self.top / name).mkdir()
        made = make_kit(self.top / name)
        case = yaml.safe_load(NAP)
        case["suites"]["quick"] = {"scope": "each-node"}
        (made.folder / "benchmarks/nap.yml").write_text(yaml.safe_dump(case, sort_keys=False))
        made.partition(
            node=DECLARED["node"],
            scheduler="pbs",
            queue={"name": "workq", **queue},
            origin="emulated",
        )
        hosts: dict[str, Any] = {"hosts": {name: {} for name in self.names}}
        groups = {"compute": {"children": {"local": hosts}}}
        inventory = {"all": {"children": groups}}
        (made.folder / "inventory/local/hosts.yml").write_text(yaml.safe_dump(inventory))
        self.person.own(self.top / name)
        path = f"{self.pbs.cluster.bin}:{os.environ['PATH']}"
        return replace(made, environment={**made.environment, "PATH": path})


@contextmanager
def open_site() -> Iterator[Site]:
    """Yield a site; its processes have ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="proofmark-pbs-") as made:
        top = Path(made)
        top.chmod(0o755)
        cluster = Cluster(top / "cluster", 2, shared=[top])
        person = Person(cluster, top)
        with cluster:
            person.join()
            with OpenPbs(cluster, Path(OPENPBS)) as pbs:
                yield Site(top, pbs, person)
        until(lambda: processes_of(top) == [], 60, pause_s=0.5)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as opened:
        yield opened


@pytest.mark.parametrize("history", [False, True])
def test_an_acceptance(site: Site, history: bool) -> None:
    """The whole play, with the least settings of a site."""
    site.qmgr(f"set server job_history_enable = {history}")
    kit = site.kit(f"history-{history}")
    played = kit.play("acceptance.yml", command=site.person.command(kit.folder))
    site.qmgr("set server job_history_enable = False")
    assert played.code == 0, played.output
    coverage = kit.verdict()["coverage"]
    assert (coverage["measured"], coverage["expected"]) == (4, 4)
    assert len(list(kit.run().rglob("attempt-*"))) == 1


class Execution:
    """`proofmark stage execute` of an ordinary user, whose job waits for `batch.go`."""

    def __init__(self, site: Site, batch: Batch, run: Run | None = None, **queue: Any) -> None:
        self.site, self.batch, self.run = site, batch, run or batch.stage(**queue)
        write_identity(self.run.folder, NAME)  # as if she had made the run
        site.person.own(batch.kit.folder)
        self._messages = batch.kit.folder / "messages"

    @property
    def messages(self) -> str:
        """What it has printed."""
        return self._messages.read_text()

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Start it; after the context wait for its end, and give the run to this process."""
        words = (sys.executable, "-c", EXECUTE, "stage", "execute", str(self.run.folder))
        with self._messages.open("w") as messages:
            process = subprocess.Popen(
                [*self.site.person.command(self.batch.kit.folder), *words],
                env=self.site.pbs.cluster.environment(),
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                start_new_session=True,
            )
        with running(process):
            yield
            process.wait(timeout=600)
        assert process.returncode == 0, self.messages
        # Root reads no run of another user.
        subprocess.run(["chown", "--recursive", "root:", self.batch.kit.folder], check=True)
        write_identity(self.run.folder, "root")

    @property
    def history(self) -> str:
        """The states of its job."""
        return "".join(path.read_text() for path in self.run.folder.rglob("history.jsonl"))

    def says(self, words: str) -> None:
        """Wait until it has printed `words`."""
        until(lambda: words in self.messages, 120, pause_s=0.5)


@pytest.fixture
def batch(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    monkeypatch.setenv("PATH", f"{site.pbs.cluster.bin}:{os.environ['PATH']}")
    return make_batch("pbs", site.pbs, tmp_path.name, stall_timeout_s=300)


def ends_well(execution: Execution) -> bool:
    run = execution.run
    return is_whole(run) and len(list(run.folder.rglob("attempt-*"))) == 1


@pytest.mark.parametrize("by", ["user", "operator"])
def test_a_held_job_is_named_and_goes_on(site: Site, batch: Batch, by: str) -> None:
    site.qmgr("set server scheduling = False")
    execution = Execution(site, batch)
    qhold = site.person.call if by == "user" else site.pbs.call
    with execution.begun():
        job = ticket_of(execution.run)["id"]
        qhold("qhold", "-h", "u" if by == "user" else "o", job)
        execution.says("held")
        qhold("qrls", "-h", "u" if by == "user" else "o", job)
        site.qmgr("set server scheduling = True")
        batch.go()
    assert ends_well(execution)


def test_a_node_that_goes_offline_is_named(site: Site, batch: Batch) -> None:
    first, _ = site.names
    site.qmgr("set server scheduling = False")
    execution = Execution(site, batch)
    with execution.begun():
        ticket_of(execution.run)
        site.pbs.call("pbsnodes", "-o", "-C", 'the "fan"', first)
        execution.says(f'{first}: down offline the "fan"')
        site.pbs.call("pbsnodes", "-r", "-C", "", first)
        site.qmgr("set server scheduling = True")
        batch.go()
    assert ends_well(execution)


@pytest.mark.parametrize(
    "limit",
    [
        "set queue workq max_queued = [u:PBS_GENERIC=1]",
        "set server max_queued = [o:PBS_ALL=1]",
        "set queue workq max_queuable = 1",
        "set server queued_jobs_threshold = [u:PBS_GENERIC=1]",
        "set queue workq max_queued_res.ncpus = [u:PBS_GENERIC=3]",
    ],
)
def test_a_submit_limit_is_waited_for(site: Site, batch: Batch, limit: str) -> None:
    other = site.sleeper("select=1:ncpus=2", "-h")
    site.qmgr(limit)
    execution = Execution(site, batch)
    with execution.begun():
        batch.go()
        until(lambda: "to be submitted: qsub: " in execution.history, 120, pause_s=0.5)
        site.person.call("qdel", other)
    site.qmgr(limit.replace("set", "unset", 1).partition(" = ")[0])
    assert ends_well(execution)


def test_a_restart_of_the_server_in_mid_run(site: Site, batch: Batch) -> None:
    execution = Execution(site, batch)
    with execution.begun():
        runs_on_all(execution.run)
        site.pbs.stop_server(SERVER)
        execution.says("does not answer")
        batch.go()
        site.pbs.start_server(SERVER)
        until(lambda: "down" not in site.pbs.call("pbsnodes", "-a"))
        site.qmgr("set server scheduling = True")  # as in test_pbs.py
    assert is_whole(execution.run)


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_host_with_several_virtual_nodes(site: Site, batch: Batch, cpus: int) -> None:
    """A job on one of them keeps the host; one on both of them runs once there."""
    first, _ = site.names
    site.split(first)
    execution = Execution(site, batch, cpus_per_node=cpus)
    with execution.begun():
        runs_on_all(execution.run)
        found, statuses = Pbs().nodes(site.names), Pbs().node_status(site.names)
        batch.go()
    site.whole(first)
    assert ends_well(execution)
    assert set(found.values()) == {"busy"}
    assert not any(status.idle or status.out for status in statuses.values())


def test_a_half_busy_host_is_not_idle(site: Site, batch: Batch) -> None:
    """The job of another user is on one of its virtual nodes; no job of the kit leaves it out."""
    first, second = site.names
    site.split(first)
    other = site.sleeper(f"select=1:ncpus=1:host={first}")
    until(lambda: Pbs().states([other])[other].state is State.RUNNING, 120, pause_s=0.5)
    found, statuses = Pbs().nodes(site.names), Pbs().node_status(site.names)
    site.person.call("qdel", other)
    until(lambda: set(Pbs().nodes(site.names).values()) == {"idle"}, 120, pause_s=0.5)
    site.whole(first)
    assert found == {first: "busy", second: "idle"}
    assert (statuses[first].idle, statuses[first].out) == (False, False)
    assert (statuses[second].idle, statuses[second].out) == (True, False)


@pytest.mark.parametrize("history", [False, True])
def test_a_first_node_that_dies_is_named(history: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """PBS ends a job whose first node is down: after five minutes by default, with status -20."""
    with open_site() as site:
        first, _ = site.names
        monkeypatch.setenv("PATH", f"{site.pbs.cluster.bin}:{os.environ['PATH']}")
        site.qmgr(f"set server job_history_enable = {history}")
        site.qmgr("set server node_fail_requeue = 10")
        execution = Execution(site, make_batch("pbs", site.pbs, "kit", stall_timeout_s=60))
        with execution.begun():
            runs_on_all(execution.run)
            site.pbs.cluster.kill(first)
        (line,) = judge_run(execution.run).coverage.stopped
        assert line.startswith(f"job 00-0001: lost a node: {first}: down down"), line
        site.pbs.cluster.boot(first)
        site.pbs.wait_until_free()
        again = Execution(site, execution.batch, execution.run)
        with again.begun():
            execution.batch.go()
        assert is_whole(execution.run)
