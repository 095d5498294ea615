"""A path that tbf slows down, shared by a measured program and its load: the real slowdown."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.kit import Kit, make_kit, steps_of

from proofmark.judge.judging import judge_run
from proofmark.packages.fabric.rounds import pair_findings
from proofmark.packages.fabric.slowdown import Slowdown

pytestmark = pytest.mark.root

RATE = "200mbit"
NEAR, FAR = "10.213.7.1", "10.213.7.2"
PROGRAM = """
import socket, sys, threading, time
def take(line, left):
    while left and (got := line.recv(min(left, 1 << 16))):
        left -= len(got)
if sys.argv[1] == "serve":
    server = socket.create_server(("", 7778))
    def answer(line):
        with line:
            try:
                while kind := line.recv(1):
                    if kind == b"p":
                        line.sendall(b"p")
                    else:
                        take(line, (1 << 20) - 1)
                        line.sendall(b"b")
            except OSError:
                pass
    while True:
        threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
line = socket.create_connection((sys.argv[1], 7778), 20)
line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
if sys.argv[2] == "load":
    while True:
        line.sendall(bytes(1 << 20)); take(line, 1)
def one(kind):
    begin = time.monotonic()
    line.sendall(b"p" if kind == "latency" else bytes(1 << 20)); take(line, 1)
    return time.monotonic() - begin
print("size 1")
latency = sorted(one("latency") for _ in range(300))
blocks = sorted(one("block") for _ in range(6))
print("latency", 1e6 * latency[150])
print("rate", (1 << 20) / blocks[3] / 1e6)
print("END")
"""
"""A ping-pong and blocks of 1 MiB over one TCP connection; the load sends blocks without end."""


@pytest.fixture
def near() -> Iterator[list[str]]:
    """Make two namespaces with a link of `RATE`, which has a small queue in the direction to FAR.

    Its names and addresses are in the namespaces only: another pytest makes the same path.
    """
    names = [f"proofmark-{os.getpid()}-{end}" for end in ("near", "far")]
    near, far = (["ip", "netns", "exec", name] for name in names)
    link = f"ip link add pmc0 type veth peer name pmc1 netns {names[1]}"
    make = [
        *(["ip", "netns", "add", name] for name in names),
        [*near, *link.split()],
        [*near, "ip", "address", "add", f"{NEAR}/30", "dev", "pmc0"],
        [*near, "ip", "link", "set", "pmc0", "up"],
        [*far, "ip", "address", "add", f"{FAR}/30", "dev", "pmc1"],
        [*far, "ip", "link", "set", "pmc1", "up"],
        [*near, *f"tc qdisc add dev pmc0 root tbf rate {RATE} burst 32kb limit 512kb".split()],
    ]
    server = None
    try:
        for command in make:
            subprocess.run(command, check=True)
        server = subprocess.Popen([*far, sys.executable, "-c", PROGRAM, "serve"])
        yield near
    finally:
        if server:
            server.kill()
            server.wait()
        for name in names:  # the link ends with them
            subprocess.run(["ip", "netns", "del", name], check=False)


def measured(folder: Path, near: list[str], load: str) -> dict[str, Slowdown]:
    """Return the slowdown of each metric; `load` is the program of the load, run by `near`."""
    kit: Kit = make_kit(folder)
    client = folder / "client.py"
    client.write_text(PROGRAM)
    kit.program(f'exec "{sys.executable}" "{client}" {FAR} measure')
    kit.program(load.format(client=f'"{sys.executable}" "{client}" {FAR} load'), "noisy")
    kit.case("noisy", program="noisy", sweep={"size": 7}, suites={})
    read = {
        "finds": "rate",
        "benchmark": "path",
        "parameters": {"size": "int"},
        "starts": "fake",
        "untitled": True,
        "facts": [r"size (?P<size>\d+)"],
        "keys": {
            "(?P<key>rate|latency) (?P<value>.*)": {"rate": "rate", "latency": "latency"},
        },
        "require": {"END": "END"},
    }
    metrics = {
        "rate": {"unit": "MB/s", "better": "higher", "bound": "universal", "what": "rate"},
        "latency": {"unit": "us", "better": "lower", "bound": 0, "what": "there and back"},
    }
    use = {
        "sweep": {"threads": 1},
        "repeats": 3,
        "load": {"case": "noisy", "place": "same-nodes", "baseline": True},
    }
    kit.case(launch="threads", let={"size": 1}, suites={"quick": use}, metrics=metrics, read=read)
    run = kit.run()
    for step in steps_of(run):
        subprocess.run([*near, "sh", step / "run.sh"], check=True)
    slowdowns = {each.record.metric: each for each in pair_findings(judge_run(run)).slowdowns}
    for metric, each in slowdowns.items():
        ratios = ", ".join(f"{ratio:.2f}" for ratio in each.ratios)
        print(f"slowdown of {metric} beside {load!r}: {ratios}")
    return slowdowns


@pytest.mark.soak
@pytest.mark.fault("congested-path")
def test_a_shared_path_slows_both_down(near: list[str], tmp_path: Path) -> None:
    slowdowns = measured(tmp_path, near, "exec {client}")
    assert slowdowns["rate"].percentile(50) > 1.3
    assert slowdowns["latency"].percentile(50) > 3


@pytest.mark.soak
def test_a_load_that_does_not_use_the_path_slows_nothing_down(
    near: list[str], tmp_path: Path
) -> None:
    slowdowns = measured(tmp_path, near, "while :; do sleep 0.1; done # {client}")
    assert slowdowns["rate"].percentile(50) == pytest.approx(1, abs=0.15)
    assert slowdowns["latency"].percentile(50) < 3
