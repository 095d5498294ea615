"""Real transfers over virtual switches: a slow uplink and a link that loses packets are named."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from tests.emulators.vcluster import Cluster
from tests.emulators.vcluster.fabric import SHAPE, Switches
from tests.fixtures.machine_probe import parse_counters

from proofmark.judge.diagnosis.bad_nodes import losses
from proofmark.packages.fabric.elements import paths_of
from proofmark.packages.fabric.link_fit import Fit, fit
from proofmark.packages.fabric.samples import PairSeries, Samples
from proofmark.plan.pairings import rounds, waves
from proofmark.site.fabric import Fabric
from proofmark.site.node.counters import Counters, tcp_segments

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.soak]

PROBE = files("proofmark.site.node") / "probe.sh"
NODES, PORT = 16, 7777
RATE, SLOW = "40mbit", "10mbit"
"""Far below the speed of the machine, also if it is busy."""
FABRIC = Fabric.model_validate(
    {
        "levels": [{"name": "leaf", "hosts_per_switch": 4, "uplinks": 2}],
        "routing": "destination-modulo",
        "rate": 5e6,
    }
)
TRANSFER = """
import socket, sys, time
SIZE = 1 << 18
if sys.argv[1] == "serve":
    server = socket.create_server(("", 7777))
    while True:
        line, _ = server.accept()
        with line:
            while line.recv(1 << 16):
                pass
            line.sendall(b"all")
line = socket.create_connection((sys.argv[1], 7777), 60)
start = time.monotonic()
line.sendall(bytes(SIZE))
line.shutdown(socket.SHUT_WR)
line.recv(3)
print(SIZE / (time.monotonic() - start) / 1e6)
"""
SERIES = PairSeries("transfer", "", "bandwidth", "MB/s", "higher", one_way=True, alone=True)


@contextmanager
def fabric(folder: Path, switches: Switches) -> Iterator[Cluster]:
    """Yield 16 nodes below four leaf switches; each node receives transfers."""
    program = folder / "transfer.py"
    program.write_text(TRANSFER)
    with Cluster(folder / "cluster", NODES, shared=[folder], switches=switches) as cluster:
        for node in cluster.names:
            cluster.on(node, "tc", *f"qdisc add dev eth0 {SHAPE.format(rate=RATE)}".split())
            cluster.limit(node, RATE)
        cluster.service("receive", shlex.join([sys.executable, str(program), "serve"]))
        for node in cluster.names:
            cluster.on(
                node, "sh", "-c", f"until grep -q :{PORT:04X} /proc/net/tcp; do sleep 0.1; done"
            )
        yield cluster


def measured(cluster: Cluster, folder: Path) -> Fit:
    """Return the fit of transfers between all pairs; pairs of a wave share no leaf switch."""
    names = cluster.names
    groups = np.arange(NODES)[None, :] // 4
    together = rounds(groups)
    pairs: list[tuple[int, int]] = []
    number: list[int] = []
    values: list[float] = []

    def transfer(pair: tuple[int, int]) -> float:
        sender, receiver = pair
        program = str(folder / "transfer.py")
        to = cluster.address(names[receiver])
        return float(cluster.on(names[sender], sys.executable, program, to))

    with ThreadPoolExecutor(2) as two:
        for wave, each in enumerate(waves(groups, together, 64)):
            here = [(int(a), int(b)) for a, b in each.pairs]
            values += two.map(transfer, here)
            pairs += here
            number += [wave] * len(here)
    return fit(
        Samples(
            np.array(pairs),
            np.array(number),
            np.zeros(len(pairs), int),
            np.array(values),
            (SERIES,),
        ),
        paths_of(FABRIC, names),
        0.001,
    )


def names_of(found: Fit) -> list[str]:
    return [found.elements.element(each.element).name for each in found.named]


@pytest.mark.fault("slow-uplink")
@pytest.mark.parametrize("slow", [{}, {(2, 1): SLOW}])
def test_a_slow_uplink_is_named(tmp_path: Path, slow: dict[tuple[int, int], str]) -> None:
    """Without a slow uplink it is the control."""
    with fabric(tmp_path, Switches(4, 2, RATE, slow)) as cluster:
        found = measured(cluster, tmp_path)
    assert len(found.named) == len(slow)
    for name in names_of(found):
        assert name.startswith("uplink 1 of leaf-002")


def counters_of(cluster: Cluster) -> dict[str, Counters]:
    probe = ["sh", str(PROBE), "after"]
    return {name: parse_counters(cluster.on(name, *probe), name) for name in cluster.names}


@pytest.mark.fault("lossy-link")
@pytest.mark.parametrize("share", [0.0, 0.03, 0.1])
def test_a_link_that_loses_packets_is_named(tmp_path: Path, share: float) -> None:
    """The control has no loss. A loss of 3 % does not always make the link slow."""
    with fabric(tmp_path, Switches(4, 2, RATE)) as cluster:
        victim = cluster.names[5]
        if share:
            cluster.lose(victim, share)
        before = counters_of(cluster)
        found = measured(cluster, tmp_path)
        after = counters_of(cluster)
    segments = {name: tcp_segments(before[name], after[name]) or (0, 0) for name in cluster.names}
    assert list(losses(segments)) == ([victim] if share else [])
    if share != 0.03:
        names = names_of(found)
        assert len(names) == bool(share)
        assert all(name.startswith(f"port of {victim}") for name in names)
