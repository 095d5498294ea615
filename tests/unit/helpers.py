"""A tiny benchmarks folder, programs that are shell scripts, and runs of them, for the tests."""

from __future__ import annotations

import copy
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from hypothesis import settings

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.models import Benchmarks
from proofmark.jobs.scripts import write_scripts
from proofmark.jobs.step_script import repeated_commands
from proofmark.judge.aggregate import aggregate
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.results import WORDS, Result, Results
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan
from proofmark.records.columns import Record, Records
from proofmark.runs.run import Run, leave_out
from proofmark.runs.start import start_or_continue
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine
from proofmark.site.node.topology import Core, NumaDomain, Topology
from proofmark.site.partition import Limit, Partition
from proofmark.site.storage import Scratch
from proofmark.software.program import Program
from proofmark.software.software import Package, Software

ROOT = Path(__file__).parents[2]
SYMBOLS = {
    "cores": 2,
    "sockets": 1,
    "numa": 1,
    "threads_per_core": 1,
    "memory_bytes": 8 << 30,
    "llc_bytes": 1 << 20,
    "nodes": 1,
}
FAKE: dict[str, Any] = {
    "title": "Fake",
    "package": "fake",
    "program": "fake",
    "launch": "process",
    "arguments": ["{size}"],
    "sweep": {"size": [1, 2]},
    "cost": {"seconds": 1},
    "suites": {"quick": {}},
    "metrics": {"rate": {"unit": "MB/s", "better": "higher", "what": "how fast"}},
    "read": {
        "finds": "rate",
        "benchmark": "FAKE",
        "parameters": {"size": "int"},
        "text": {
            "facts": [r"size (?P<size>\d+)"],
            "keys": [
                {
                    "match": "(?P<key>rate) (?P<value>.*)",
                    "metrics": {"rate": {"metric": "rate", "unit": "MB/s"}},
                }
            ],
            "require": {"END": "END"},
        },
    },
}
"""A case that says what its program below prints."""

SOUND = 'echo "size $1"; echo "rate 100"; echo END'
"""A program that does what its case expects of it."""


def examples(share: float) -> settings:
    """Return settings with `share` times the examples that a property has in this tier."""
    return settings(max_examples=max(1, round(share * settings().max_examples)))


def topology(cores: int = 2) -> Topology:
    """Return one socket of so many cores with one hardware thread each, numbered from 0."""
    every = tuple(range(cores))
    return Topology(
        cores=tuple(
            Core(index=core, pus=(core,), socket=0, book=None, numa=0, tile=None, l3=None)
            for core in every
        ),
        numa_domains=(NumaDomain(0, 8 << 30, "ddr", every, every),),
    )


@dataclass(frozen=True)
class Kit:
    """A checkout in a folder: cases, programs, scratch, runs."""

    folder: Path

    @property
    def cases(self) -> Path:
        return self.folder / "benchmarks"

    def case(self, name: str = "fake", drop: Sequence[str] = (), **changes: Any) -> Path:
        """Write the case `name`: `FAKE` with the top-level keys of `changes`."""
        data = {**copy.deepcopy(FAKE), **changes}
        path = self.cases / f"{name}.yml"
        kept = {key: value for key, value in data.items() if key not in drop}
        path.write_text(yaml.safe_dump(kept, sort_keys=False), encoding="utf-8")
        return path

    def suites(self, **suites: dict[str, Any]) -> None:
        path = self.cases / "suites.yml"
        path.write_text(yaml.safe_dump({"suites": suites}), encoding="utf-8")

    def program(self, script: str = SOUND, name: str = "fake") -> Path:
        """Write the program `name`."""
        path = self.folder / "programs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def benchmarks(self) -> Benchmarks:
        return load_benchmarks(self.cases)

    def site(self, limits: Sequence[Limit] = (), hosts: Sequence[str] = ("localhost",)) -> Site:
        scratch = Scratch(path=str(self.folder / "scratch"))
        return Site(
            name="here",
            inventory=Path("inventory/here"),
            limit="local",
            partition_name="local",
            partition=Partition(
                hardware="discovered",
                environment="local",
                scheduler="none",
                provision_from="preinstalled",
                scratch=scratch,
                limits=list(limits),
            ),
            hosts=tuple(hosts),
            connection="local",
            remote_shell=["sh", "-s"],
        )

    def plan(self, suite: str = "quick", cores: int = 2, site: Site | None = None) -> Plan:
        machine = Machine({**SYMBOLS, "cores": cores}, topology(cores))
        return make_plan(self.benchmarks(), suite, site or self.site(), machine)

    def software(self, **package: Any) -> Software:
        """Return all programs of the folder as one package."""
        paths = sorted((self.folder / "programs").glob("*"))
        made = {
            "origin": "preinstalled",
            "version": "1",
            "launcher": "plain",
            "programs": {path.name: described(path) for path in paths},
            **package,
        }
        return Software(packages={"fake": Package(**made)})

    def run(self, software: Software | None = None, site: Site | None = None, **how: Any) -> Run:
        """Plan and stage a run of all that is in the folder; its probe says nothing, quickly."""
        at = site or self.site()
        run, _ = start_or_continue(
            self.folder / "runs", self.plan(site=at), self.benchmarks(), at, "", **how
        )
        programs = software or self.software()
        (run.folder / "software.json").write_text(programs.model_dump_json(), encoding="utf-8")
        run = leave_out(run, repeated_commands(run.plan, programs))
        scratch = Path(at.partition.scratch.path)
        queue, scheduler = at.partition.queue, at.partition.scheduler
        write_scripts(run.folder, run.plan, programs, scratch, scheduler, queue=queue)
        (run.folder / "probe.sh").write_text("echo '=== end'\n", encoding="utf-8")
        return run


def make_kit(folder: Path) -> Kit:
    """Make a kit of one sound case and its program in `folder`."""
    kit = Kit(folder)
    kit.cases.mkdir(parents=True)
    kit.suites(quick={"title": "Quick"})
    kit.case()
    kit.program()
    return kit


def described(path: Path) -> Program:
    """Return a program of which no more is known than its path."""
    return Program(
        name=path.name,
        path=str(path),
        sha256=None,
        package=None,
        libraries=(),
        missing=(),
        blas=None,
        mpi=None,
        absent={},
    )


def steps_of(run: Run) -> list[Path]:
    """Return the folders of the steps of `run`, in order."""
    return [run.folder / "steps" / step.id for step in run.plan.steps()]


def left_behind(mark: str, patience: float = 60) -> list[str]:
    """Return the command lines of processes whose environment mentions `mark`.

    A process that was killed takes a moment to die: only who outlives `patience` seconds counts.
    """
    end = time.monotonic() + patience
    while (found := _with_environment(mark)) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def _with_environment(mark: str) -> list[str]:
    command = ["grep", "-lsF", mark, *map(str, Path("/proc").glob("[0-9]*/environ"))]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    lines = []
    for path in found:
        try:
            words = Path(path).with_name("cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        lines.append(b" ".join(words).decode(errors="replace"))
    return lines


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return time of change and content of all files below `folder`, by relative name."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def until(what: Callable[[], bool], seconds: float = 300) -> None:
    """Wait until `what` holds; it is an error if it never does."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def results_of(records: Sequence[Record]) -> Results:
    """Return results of `records`, none of which a reference judges."""
    figures = aggregate(Records.of(records))
    unjudged = np.full(len(figures), WORDS.index("UNJUDGED"))
    alone = Fleet(of=np.full(len(figures), -1))
    return Results(figures, unjudged, {}, alone)


class GivenResults(Results):
    """Results that a test states one by one, for what only shows them."""

    def __init__(self, given: Sequence[Result]) -> None:
        empty = results_of([each.record for each in given])
        super().__init__(empty.standing, empty.verdict, empty.answers, empty.fleet)
        object.__setattr__(self, "given", tuple(given))

    given: tuple[Result, ...]

    def of(self, words: Collection[str]) -> Iterator[Result]:
        return (each for each in self.given if each.verdict in words)
