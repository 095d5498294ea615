"""A link that tbf slows down: a real ping-pong between virtual nodes, compared with its peers."""

from __future__ import annotations

import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.emulators.vcluster import Cluster
from tests.fixtures.fleet import fleet_run

from proofmark.judge.judging import judge_run

pytestmark = [pytest.mark.slow, pytest.mark.root]

NODES = 8
STEADY = 6
"""The number of rounds after the last better rate of any node."""
BETTER = 1.002
SPEED, SLOW = "20mbit", "10mbit"
"""All links have a limit that a busy host also reaches, so that it does not make them differ."""
PING_PONG = """
import socket, sys, time
SIZE, TIMES = 1 << 18, 2
def take(line):
    left = SIZE
    while left and (got := line.recv(left)):
        left -= len(got)
    return not left
if sys.argv[1] == "serve":
    server = socket.create_server(("", 7777))
    while True:
        line, _ = server.accept()
        with line:
            while take(line):
                line.sendall(bytes(SIZE))
while True:
    try:
        line = socket.create_connection((sys.argv[1], 7777), 20)
        break
    except ConnectionRefusedError:  # the other one is not up yet
        time.sleep(0.1)
line.sendall(bytes(SIZE)); take(line)
start = time.monotonic()
for _ in range(TIMES):
    line.sendall(bytes(SIZE)); take(line)
print(2 * TIMES * SIZE / (time.monotonic() - start) / 1e6)
"""


def shape(cluster: Cluster, node: str, rate: str) -> None:
    words = f"qdisc replace dev eth0 root tbf rate {rate} burst 16kb limit 1mb"
    cluster.on(node, "tc", *words.split())


def rates(cluster: Cluster, program: Path) -> dict[str, float]:
    """Return the best rate, in MB/s, of each node with its two neighbours in a ring.

    A busy host slows a ping-pong down and never speeds it up, so the best of several rounds counts.
    The last `STEADY` rounds improve none of them.
    """
    names = cluster.names
    ring = list(zip(names, [*names[1:], names[0]], strict=True))
    best = dict.fromkeys(names, 0.0)

    def rate(pair: tuple[str, str]) -> float:
        one, other = pair
        return float(cluster.on(one, sys.executable, str(program), cluster.address(other)))

    left = STEADY
    with ThreadPoolExecutor() as together:
        while left:
            left -= 1
            for pairs in (ring[::2], ring[1::2]):  # the pairs of one list share no node
                for pair, measured in zip(pairs, together.map(rate, pairs), strict=True):
                    for node in pair:
                        left = STEADY if measured > BETTER * best[node] else left
                        best[node] = max(best[node], measured)
    # Both ends of a pair measure the same. Equal outputs of two nodes are copies.
    return {node: best[node] * (1 + 1e-9 * place) for place, node in enumerate(names)}


@pytest.mark.fault("slow-link")
def test_a_slow_link_is_attributed_to_its_node(tmp_path: Path) -> None:
    """The control: before the link is slowed, no node is bad."""
    program = tmp_path / "ping-pong.py"
    program.write_text(PING_PONG)
    with Cluster(tmp_path / "cluster", NODES, shared=[tmp_path]) as cluster:
        for node in cluster.names:
            shape(cluster, node, SPEED)
        cluster.service("pong", shlex.join([sys.executable, str(program), "serve"]))
        sound = rates(cluster, program)
        shape(cluster, "knl0003", SLOW)
        slowed = rates(cluster, program)
    assert judge_run(fleet_run(tmp_path / "sound", sound)).counts["FAIL"] == 0
    verdict = judge_run(fleet_run(tmp_path / "slowed", slowed))
    assert verdict.counts["FAIL"] == 1
    assert [node.host for node in verdict.bad.nodes] == ["knl0003"]
