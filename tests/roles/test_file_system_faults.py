"""Faults of a distributed file system with a real server, and their likely cause in the verdict."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.emulators.vcluster import Cluster, Slurm
from tests.emulators.vcluster.juicefs import JuiceFs
from tests.fixtures.kit import item, make_kit, until

from proofmark.jobs.execute import execute
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.site.execution import Queue
from proofmark.site.file_systems import Scratch

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.soak]

SERVER, POINT, NODES = "server", "/run/pfs", 3
RATE, SLOW = "40mbit", "10mbit"
"""The speed of the link of the server: 5 MB/s and a quarter of that."""
WRITES = """
echo "size $1"
: >"$GO.$1.$(uname -n)"
while [ "$1" = 2 ] && [ ! -e "$GO" ]; do sleep 0.05; done
read -r start _ </proc/uptime
dd if=/dev/zero of="$2/file" bs=1M count=2 conv=fsync || exit 1
read -r end _ </proc/uptime
awk -v t="$start $end" 'BEGIN { split(t, at, " "); print "rate", 2.1 / (at[2] - at[1]) }'
echo END
"""
"""The step of size 2 waits on each node until the fault is there."""
SHARE = item(
    case="fake",
    metric="rate",
    value=5 / NODES,
    unit="MB/s",
    at_least=0.5,
    source=f"{NODES} nodes share the link of the server",
)

Act = Callable[[JuiceFs, Cluster], None]


def nothing(_pfs: JuiceFs, _cluster: Cluster) -> None:
    """The control: no fault is injected."""


def hang(pfs: JuiceFs, cluster: Cluster) -> None:
    pfs.stop_client(cluster.names[1])


def stop(_pfs: JuiceFs, cluster: Cluster) -> None:
    cluster.kill(SERVER)


def fill(pfs: JuiceFs, cluster: Cluster) -> None:
    pfs.fill(POINT, cluster.names[2])


def slow(_pfs: JuiceFs, cluster: Cluster) -> None:
    cluster.limit(SERVER, SLOW)


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Act], Verdict]]:
    """Yield a function that measures the three sizes and plants a fault before the second one."""
    kit = make_kit(tmp_path)
    kit.program(WRITES)
    go = tmp_path / "go"
    cluster = Cluster(tmp_path / "cluster", NODES, shared=[tmp_path], servers=[SERVER])
    monkeypatch.setenv("PROOFMARK_ANSWER_S", "12")
    with cluster, Slurm(cluster):
        monkeypatch.setenv("PATH", f"{cluster.bin}:{os.environ['PATH']}")
        cluster.limit(SERVER, RATE)
        pfs = JuiceFs(cluster, server=SERVER, capacity_gib=1)
        pfs.format()
        pfs.mount(POINT, *cluster.names)
        cluster.on(cluster.names[0], "mkdir", f"{POINT}/runs")

        def measure(act: Act) -> Verdict:
            kit.case(
                suites={"quick": {"scope": "each-node"}},
                sweep={"size": [1, 2, 3]},
                arguments=["{size}", "{scratch}"],
                writes={"bytes": 2 << 20},
                cost={"seconds": 1, "bytes": 2 << 20},
                timeout=40,
                environment={"GO": str(go)},
            )
            site = kit.site([SHARE], hosts=cluster.names)
            changes = {
                "scheduler": "slurm",
                "queue": Queue(),
                "scratch": Scratch(path=f"{POINT}/runs"),
            }
            partition = site.partition.model_copy(update=changes)
            run = kit.run(site=site.model_copy(update={"partition": partition}))
            with planted(lambda: act(pfs, cluster), go, cluster.names):
                execute(run, "slurm", lambda line: None)
            return judge_run(run)

        yield measure


@contextmanager
def planted(act: Callable[[], None], go: Path, nodes: list[str]) -> Iterator[None]:
    """Call `act` when every node is in the step of size 2, then let this step write."""

    def meanwhile() -> None:
        until(lambda: all(go.with_name(f"go.2.{node}").exists() for node in nodes))
        act()
        go.touch()

    thread = threading.Thread(target=meanwhile)
    thread.start()
    yield
    thread.join()


def invalid(verdict: Verdict) -> set[tuple[str, str]]:
    """Return step (its size) and node of the INVALID figures."""
    found = set()
    for result in verdict.of("INVALID"):
        step, _, folder = result.record.step.partition("/")
        found.add((step[-1], folder))
    return found


@pytest.mark.fault("client-hangs")
def test_a_client_that_hangs_is_named_and_the_other_nodes_measure(
    judged: Callable[[Act], Verdict],
) -> None:
    verdict = judged(hang)
    assert invalid(verdict) == {("2", "knl0002"), ("3", "knl0002")}
    (fault,) = verdict.storage.file_systems
    assert fault.message.endswith("on knl0002: the client of this node, or its network")
    assert set(fault.others) == {"knl0001", "knl0003"}
    assert verdict.coverage.measured == verdict.coverage.expected == 9
    (result, *_) = verdict.of("INVALID")
    assert "no answer within 12 s on knl0002" in result.reason


@pytest.mark.fault("server-stops")
def test_a_server_that_stops_is_the_cause_on_all_nodes(
    judged: Callable[[Act], Verdict],
) -> None:
    verdict = judged(stop)
    assert {size for size, _ in invalid(verdict)} == {"2", "3"}
    (fault,) = verdict.storage.file_systems
    assert fault.nodes == ("knl0001", "knl0002", "knl0003")
    assert fault.message.endswith(
        "on all nodes (knl[0001-0003]): its servers, or the network to them"
    )


@pytest.mark.fault("full-file-system")
def test_a_full_file_system_is_the_reason(judged: Callable[[Act], Verdict]) -> None:
    verdict = judged(fill)
    assert {size for size, _ in invalid(verdict)} == {"2", "3"}
    assert all("No space left on device" in result.reason for result in verdict.of("INVALID"))
    (fault,) = verdict.storage.file_systems
    assert (fault.problem, fault.likely) == ("No space left on device", "no free space or quota")


@pytest.mark.fault("slow-disk-server")
@pytest.mark.parametrize(("act", "named"), [(nothing, False), (slow, True)])
def test_a_slow_server_is_the_cause_if_all_nodes_are_slow_alike(
    judged: Callable[[Act], Verdict], act: Act, named: bool
) -> None:
    """Without the fault, `nothing`, it is the control of all faults here."""
    verdict = judged(act)
    assert invalid(verdict) == set()
    slow_alike = [fault for fault in verdict.storage.file_systems if "slow alike" in fault.problem]
    assert bool(slow_alike) == named
    assert all(fault.likely == "its servers, or the network to them" for fault in slow_alike)
    assert failed_nodes_of(verdict) == {}


def failed_nodes_of(verdict: Verdict) -> dict[str, str]:
    return {node.host: node.likely for node in verdict.bad.nodes}
