"""Seal, judge and report a run of many nodes: ``python -m tests.bench.scale FOLDER NODES``.

The outputs are real ones with other numbers, sizes and names. They are not part of the kit.
Wall time, processor time and peak memory are printed and never asserted. The bench fails if a
result is INVALID or missing, or if other nodes are bad than those that are slow. The commands are
those of the playbooks.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from tests.fixtures.finished import own_number, write_software
from tests.fixtures.node_outputs import binding, writer
from tests.folders import BENCHMARKS, PROBES, ROOT

from proofmark.cases.loading import load_benchmarks
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan, Step
from proofmark.runs.evidence import open_newest
from proofmark.runs.run import site_of
from proofmark.runs.run_files import RunFiles
from proofmark.runs.start import RunInputs, start_or_continue
from proofmark.site.inventory import load_site
from proofmark.site.machines import machines_of
from proofmark.site.node.parts import MountedFileSystem
from proofmark.software.program import Program
from proofmark.software.software import Package, Software

REPEATS, SPREAD, BAD = 3, 0.01, 0.9
JUDGED = (0, 1, 2, 4)
"""The exit codes of a command that has judged a run."""
LUSTRE = MountedFileSystem(source="mgs@o2ib:/fs", target="/PFS", kind="lustre", options="rw,flock")


def make_run(folder: Path, nodes: int, repeats: int = REPEATS) -> Path:
    """Write a finished run of the suite `node` on `nodes` nodes; some are a tenth slower.

    The executions are half a million files. `finished.write_execution` would be slower.
    """
    benchmarks = load_benchmarks(BENCHMARKS)
    suite = benchmarks.suites["node"].model_copy(update={"repeats": repeats})
    benchmarks = benchmarks.model_copy(update={"suites": {**benchmarks.suites, "node": suite}})
    hosts = tuple(f"knl{number:05d}" for number in range(1, nodes + 1))
    site = load_site(ROOT / "inventory" / "nurion", "knl").model_copy(
        update={"hosts": hosts, "partition_hosts": list(hosts)}
    )
    plan = make_plan(benchmarks, "node", site, machines_of(site)[0])
    run, _ = start_or_continue(
        folder, RunInputs(plan, benchmarks, site, ""), run_id=f"scale-{nodes}"
    )
    packages = {step.package: _package() for step in plan.steps()}
    write_software(run, Software(packages=packages))
    numbers = np.random.default_rng(nodes)
    factors = 1 + SPREAD * numbers.standard_normal(nodes)
    factors[slow_places(nodes)] *= BAD
    speeds = dict(zip(hosts, factors, strict=True))
    _write_probes(run.folder / "workdir/jobs", plan)
    jobs = {step.id: job.id for group in plan.groups for job in group.jobs for step in job.steps}
    for step in plan.steps():
        write = writer(step)
        step_folder = run.folder / "workdir/steps" / step.id
        step_folder.mkdir(parents=True, exist_ok=True)
        for measured, members in step.instances().items():
            instance = f"{step_folder}/{measured.name}/execution-1"
            os.makedirs(instance)  # noqa: PTH103 (half a million files)
            factor = min(speeds[host] for host in members) * (1 + 1e-3 * numbers.standard_normal())
            seconds = f"{60 + 2 * numbers.random():.2f}"
            outputs = {
                "stdout": write(members[0], factor).replace("@now@", _clock(numbers)),
                "stderr": "",
                "rc": "0\n",
                "started": f"{members[0]} 1 2026-11-21T08:00:00Z job 1\n",
                "noise.json": "[\n]\n",
                "when.json": '{"start": "2026-11-21T08:00:00Z", "end": "2026-11-21T08:01:00Z", '
                f'"seconds": {seconds}, "host": "{members[0]}", "timed_out": false, '
                f'"attempt": "{jobs[step.id]}/attempt-1"}}\n',
                "binding.json": binding(step, members),
            }
            if step.writes:
                outputs["scratch.json"] = _scratch(step)
            for output, text in outputs.items():
                _write(f"{instance}/{output}", text)
            digests = (
                f"{sha256(text.encode()).hexdigest()}  {output}\n"
                for output, text in outputs.items()
            )
            _write(f"{instance}/outputs.sha256", "".join(digests))
        (step_folder / "rc").write_text("0\n")
    return run.folder


def slow_places(nodes: int) -> slice:
    """Return the places of the slow nodes: twenty, or one of twenty."""
    return slice(None, None, max(20, nodes // 20))


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(file, text.encode())
    os.close(file)


def _clock(numbers: np.random.Generator) -> str:
    """Return a random time of the day, as programs print it; it differs from node to node."""
    hour, minute, second = numbers.integers((24, 60, 60))
    return f"Sat Nov 21 {hour:02d}:{minute:02d}:{second:02d} 2026"


def _scratch(step: Step) -> str:
    """Return the record of the files in the scratch folder, as ``step.sh`` writes it."""
    assert step.writes
    folder = f"/PFS/proofmark/{step.id}"
    counts = {"bytes": step.writes.bytes, "files": max(1, step.writes.files), "most": 10_000}
    mount = {"kind": LUSTRE.kind, "source": LUSTRE.source, "target": LUSTRE.target}
    return json.dumps({"scratch": folder, "real": folder, **mount, **counts})


def _write_probes(jobs: Path, plan: Plan) -> None:
    """Write the probes of the nodes, which differ only in their names and numbers."""
    mount = f"| {LUSTRE.source} {LUSTRE.target} {LUSTRE.kind} {LUSTRE.options} 0 0\n"
    probe = (PROBES / "knl-7250-quadrant-flat.txt").read_text()
    probe = probe.replace("=== mounts\n", f"=== mounts\n{mount}")
    for job in (job for group in plan.groups for job in group.jobs):
        attempt = jobs / job.id / "attempt-1"
        attempt.mkdir(parents=True, exist_ok=True)
        for host in job.nodes:
            own = probe.replace("QSAP00000042", own_number(host, "B"))
            own = own.replace("BQWL00000042", own_number(host, "S"))
            own = re.sub(r"(?m)^\| hostname: .*", f"| hostname: {host}", own)
            own = re.sub(r"(?m)^(\| boot_id: .*-).*", rf"\g<1>{own_number(host, '4')}", own)
            for end, hour in (("before", "07"), ("after", "10")):
                text = re.sub(r"(?m)^\| date: .*", f"| date: 2026-11-21T{hour}:00:00Z", own)
                _write(f"{attempt}/{host}.{end}", text)


def _package() -> Package:
    program = Program(
        name="program", path="/opt/program", sha256=None, package=None, libraries=(), missing=(),
        blas=None, mpi=None, absent={},
    )  # fmt: skip
    return Package(
        origin="preinstalled", version="1", launcher="plain", programs={"program": program}
    )


class Laps:
    """Runs commands, and prints the wall time, the processor time and the peak memory of each.

    The times are those of all processes of a command. The peak is that of the largest one.
    """

    def lap(self, what: str, *words: str) -> str:
        """Run ``proofmark`` with `words`, print what it used, and return what it printed.

        Raises:
            SystemExit: the command could not be executed, or its inputs are wrong.
        """
        begin = time.perf_counter()
        with TemporaryFile("w+") as output:
            command = [f"{Path(sys.executable).parent}/proofmark", *words]
            started = subprocess.Popen(command, stdout=output)
            _, status, used = os.wait4(started.pid, 0)
            started.returncode = os.waitstatus_to_exitcode(status)
            print(
                f"  {what}: {time.perf_counter() - begin:.1f} s wall, "
                f"{used.ru_utime + used.ru_stime:.1f} s processor; "
                f"peak {used.ru_maxrss / 1024:.0f} MiB",
                flush=True,
            )
            if started.returncode not in JUDGED:
                raise SystemExit(f"{words}: exit code {started.returncode}")
            output.seek(0)
            return output.read()


def measure(folder: Path) -> None:
    """Seal, judge and report a run as the playbooks do, and print what each command used.

    Raises:
        SystemExit: the verdict is not that of the written outputs.
    """
    laps, run = Laps(), f"{folder}"
    sealed = json.loads(laps.lap("stage collect: seal and read", "stage", "collect", run))
    report = laps.lap("report, its readings stored", "report", run, "--json")
    head = json.loads(report)
    print(f"  counts {head['counts']}, {len(head['fleet']['nodes'])} bad nodes")
    if mistake := _mistake(head, sorted(site_of(open_newest(folder)).hosts)):
        raise SystemExit(f"{folder}: {mistake}")
    laps.lap("verdict, its readings stored", "verdict", run)
    _forget(Path(sealed["folder"]) / "evidence")
    laps.lap("verdict, its readings stored, cold cache", "verdict", run)
    RunFiles(Path(sealed["folder"])).readings.unlink()
    laps.lap("verdict, all outputs read", "verdict", run)
    laps.lap("report, all outputs read", "report", run, "--json")


def _forget(folder: Path) -> None:
    """Remove the files of `folder` from the cache of the kernel."""
    for path in folder.iterdir():
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def _mistake(head: Mapping[str, Any], hosts: Sequence[str]) -> str:
    """Return the difference between a verdict and the written outputs; "" if there is none."""
    invalid, coverage = head["counts"]["INVALID"], head["coverage"]
    if invalid or coverage["measured"] != coverage["expected"]:
        measured = f"{coverage['measured']} of {coverage['expected']} measured"
        return f"found {invalid} INVALID, {measured}; accepted: all steps, none INVALID"
    bad = sorted(node["node"] for node in head["fleet"]["nodes"])
    slow = hosts[slow_places(len(hosts))]
    return "" if bad == slow else f"found the bad nodes {bad}; accepted: the slow ones, {slow}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write, judge and report runs; each run is judged in a process of its own."""
    options = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    options.add_argument("folder", type=Path)
    options.add_argument("nodes", type=int, nargs="*")
    options.add_argument("--repeats", type=int, default=REPEATS)
    options.add_argument("--keep", action="store_true", help="keep the runs")
    chosen = options.parse_args(arguments)
    if not chosen.nodes:
        measure(chosen.folder)
    for nodes in chosen.nodes:
        begin = time.perf_counter()
        run = make_run(chosen.folder, nodes, chosen.repeats)
        print(f"{nodes} nodes: written in {time.perf_counter() - begin:.0f} s", flush=True)
        subprocess.run([sys.executable, "-m", "tests.bench.scale", str(run)], check=True)
        if not chosen.keep:
            shutil.rmtree(run)


if __name__ == "__main__":
    main()
