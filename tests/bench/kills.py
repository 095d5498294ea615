"""Kill commands at random moments: ``python -m tests.bench.kills KILLS SEED``. Root only.

A cycle is one run on a virtual cluster with Slurm and emulated BMCs. Each of its commands gets
SIGKILL at a random moment, is repeated to its end, and is followed by the restore. Then no node may
be drained, every mode must be the original one, and the run must have each record exactly once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import polars
import yaml
from tests.emulators.bmc.server import PASSWORD, USER
from tests.folders import ROOT
from tests.rehearsal.room import Room
from tests.roles.kit import NAP, Kit, make_kit

MODE = "quadrant-cache"
SITE = "-i inventory/rehearsal"
STEPS = 2
LONGEST_S = 300


@dataclass
class Killer:
    """Runs the commands of a kit, and kills them.

    Attributes:
        dice: chooses the moments.
        durations: the last duration of each command that was not killed, in seconds.
        kills: the number of kills, by command; a command that ended before its kill is not counted.
    """

    kit: Kit
    room: Room
    dice: random.Random
    durations: dict[str, float] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)

    def command(self, words: Sequence[str], text: str = "") -> str:
        """Run a command to its end, with `text` as its standard input, and return its output.

        Raises:
            AssertionError: its exit code is not 0.
        """
        begin = time.monotonic()
        process = self._start(words, subprocess.PIPE)
        output, _ = process.communicate(text, timeout=LONGEST_S)
        assert process.returncode == 0, f"{words}: code {process.returncode}\n{output}"
        self.durations[_name(words)] = time.monotonic() - begin
        return output

    def killed(self, words: Sequence[str], times: int) -> None:
        """Kill a command `times` times at random moments, then run it to its end."""
        name = _name(words)
        for _ in range(times):
            process = self._start(words)
            try:
                process.wait(self.dice.uniform(0, self.durations.get(name, 2.0)))
            except subprocess.TimeoutExpired:
                self.kills[name] += 1
            self._kill(process)
            process.communicate()
        self.command(words)

    def _kill(self, process: subprocess.Popen[str]) -> None:
        """Kill the command, and in half of the cases the processes that it has started."""
        if self.dice.random() < 0.5:
            process.kill()
            return
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()

    def _start(
        self, words: Sequence[str], stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        tools = Path(sys.executable).parent
        environment = {
            **self.room.environment(),
            "PATH": f"{self.room.cluster.bin}:{tools}:{os.environ['PATH']}",
            "PROOFMARK_BMC_USER": USER,
            "PROOFMARK_BMC_PASSWORD": PASSWORD,
            "LC_ALL": "C.UTF-8",
            "PROOFMARK_STATE": f"{self.kit.folder.parent}/state",
        }
        return subprocess.Popen(
            [str(tools / "proofmark"), *words],
            cwd=self.kit.folder,
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def _name(words: Sequence[str]) -> str:
    return " ".join(words[:2]) if words[0] == "modes" else words[0]


@contextmanager
def killer(nodes: int, seed: int) -> Iterator[Killer]:
    """Yield a killer of the commands of a kit on a virtual cluster."""
    with TemporaryDirectory(prefix="proofmark-kills-") as top:
        kit = make_kit(Path(top))
        room = Room(Path(top) / "room", "knl", nodes, shared=[kit.folder])
        _write_site(kit, room)
        with room:
            _probe(kit, room)
            yield Killer(kit, room, random.Random(seed))


def _probe(kit: Kit, room: Room) -> None:
    """Probe a node and its shell, as the role provision does; write ``probes.json``."""
    package, top = kit.folder / "analysis/proofmark", kit.folder.parent
    node = room.names[0]
    facts = room.cluster.on(node, "sh", f"{package}/site/node/probe.sh", "facts")
    program = room.cluster.on(node, "sh", f"{package}/software/probe-program.sh", "/bin/sh")
    probes = {"node": facts, "packages": {"shell": {"output": program}}}
    (top / "probes.json").write_text(json.dumps(probes))


def _write_site(kit: Kit, room: Room) -> None:
    """Write the site of the rehearsal, with a plain folder as scratch."""
    facts = yaml.safe_load((ROOT / "inventory/rehearsal/group_vars/knl/partition.yml").read_text())[
        "partition"
    ]
    del facts["limits"]  # of cases that this kit lacks
    facts["scratch"] = {"path": f"{kit.folder}/scratch"}
    facts["firmware"] |= {"boot_s": 1}
    site = kit.folder / "inventory/rehearsal"
    (site / "group_vars/knl").mkdir(parents=True)
    (site / "group_vars/all.yml").write_text(
        (ROOT / "inventory/rehearsal/group_vars/all.yml").read_text()
    )
    (site / "group_vars/knl/partition.yml").write_text(yaml.safe_dump({"partition": facts}))
    hosts = dict.fromkeys(room.names)
    children = {"compute": {"children": {"knl": {"hosts": hosts}}}}
    (site / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": children}}))
    case = yaml.safe_load(NAP)
    case["arguments"] = ["-c", "sleep 0.5; echo nap {number}; echo rate: 100; echo done"]
    case["suites"] = {"quick": {"modes": [MODE], "scope": "each-node"}}
    (kit.folder / "benchmarks/nap.yml").write_text(yaml.safe_dump(case, sort_keys=False))
    (kit.folder / "benchmarks/suites.yml").write_text("suites: {quick: {title: naps}}\n")
    (kit.folder / "scratch").mkdir()
    key = kit.folder.parent / "key"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(make, check=True)
    public = key.with_suffix(".pub").read_text()
    (kit.folder.parent / "signers").write_text(f"operator {public}")


def cycle(killer: Killer, times: int) -> None:
    """Make one run, and kill each of its commands `times` times.

    Raises:
        AssertionError: a command fails, a node is not restored, or a record is lost or doubled.
    """
    kit, top = killer.kit, killer.kit.folder.parent
    killer.command(f"plan {SITE} -l knl --suite=quick --create --fresh".split())
    run = kit.run()
    name = f"runs/{run.name}"
    enter = f"modes enter {name} {SITE} --mode={MODE} --confirm-reboot".split()
    restore = f"modes restore {name} {SITE} --confirm-reboot".split()

    def restored() -> None:
        killer.command(restore)
        _check_machine(killer.room)

    killer.command(["stage", "record-software", name], (top / "probes.json").read_text())
    killer.killed(enter, times)
    restored()
    killer.command(enter)
    killer.killed(f"stage execute {name} --scripts".split(), times)
    killer.killed(["stage", "execute", name], times)
    killer.killed(restore, times)
    _check_machine(killer.room)
    killer.command(["stage", "collect", name])
    killer.killed(["report", name], times)
    restored()
    killer.killed(["sign", name, f"--key={top}/key"], times)
    restored()
    killer.command(["verify", name, f"--signers={top}/signers"])
    _check_records(run, killer.room.names)


def _check_machine(room: Room) -> None:
    """Check that no node is drained, and that the firmware of each is as before."""
    states = room.slurm.call("sinfo", "--noheader", "--Node", "--format=%N|%T|%E")
    drained = [line for line in states.splitlines() if not line.split("|")[2].startswith("none")]
    assert drained == [], drained
    for name, machine in room.emulator.machines.items():
        modes = (machine.current["ClusterMode"], machine.current["MemoryMode"])
        assert modes == ("Quadrant", "Flat"), f"{name}: {modes}"
        assert machine.pending == {}, f"{name}: {machine.pending}"


def _check_records(run: Path, names: Sequence[str]) -> None:
    """Check that each node has one record of each step, and that all are valid."""
    records = polars.read_parquet(run / "records.parquet")
    found = Counter(
        (str(step), str(node)) for step, node in records.select("parameters", "node").iter_rows()
    )
    assert len(found) == STEPS * len(names), found
    assert set(found.values()) == {1}, found
    assert records["valid"].all(), records["reason"].to_list()


def main(kills: int, seed: int) -> None:
    begin = time.monotonic()
    with killer(3, seed) as chosen:
        cycles = 0
        while chosen.kills.total() < kills:
            cycle(chosen, 3)
            cycles += 1
            print(
                f"{cycles} cycles, {time.monotonic() - begin:.0f} s: {dict(chosen.kills)}",
                flush=True,
            )
    print(
        f"{chosen.kills.total()} kills in {cycles} runs, seed {seed}: every node returned to "
        "service in its original mode; each run has each record once"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
