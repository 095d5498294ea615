"""Parse, judge and report a run of many nodes: ``python -m tests.bench.scale FOLDER NODES``.

The outputs are real ones with other numbers, sizes and names. They are not part of the kit.
Wall time, processor time and peak memory are printed and never asserted.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from tests.fixtures.finished import write_software
from tests.folders import BENCHMARKS, PROBES, ROOT

from proofmark.cases.loading import load_benchmarks
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan, Step
from proofmark.runs.job_on_node import JobOnNode
from proofmark.runs.nodes import Node
from proofmark.runs.start import start_or_continue
from proofmark.site.inventory import load_site
from proofmark.site.machines import machines_of
from proofmark.site.node.cpu import cpu_list_text
from proofmark.site.node.provenance import node_provenance
from proofmark.software.program import Program
from proofmark.software.software import Package, Software

SAMPLES = BENCHMARKS / "samples"
REPEATS, SPREAD, BAD = 3, 0.01, 0.9

Write = Callable[[str, float], str]


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
    run, _ = start_or_continue(folder, plan, benchmarks, site, "", run_id=f"scale-{nodes}")
    packages = {step.package: _package() for step in plan.steps()}
    write_software(run, Software(packages=packages))
    numbers = np.random.default_rng(nodes)
    factors = 1 + SPREAD * numbers.standard_normal(nodes)
    factors[:: max(1, nodes // 20)] *= BAD
    speeds = dict(zip(hosts, factors, strict=True))
    _write_nodes(run.folder / "nodes", hosts, plan)
    for step in plan.steps():
        write = _writer(step)
        step_folder = run.folder / "steps" / step.id
        step_folder.mkdir(parents=True, exist_ok=True)
        for name, members in step.instances().items():
            instance = f"{step_folder}/{name}/execution-1"
            os.makedirs(instance)  # noqa: PTH103 (half a million files)
            factor = min(speeds[host] for host in members) * (1 + 1e-3 * numbers.standard_normal())
            seconds = f"{60 + 2 * numbers.random():.2f}"
            outputs = {
                "stdout": write(members[0], factor).replace("@now@", _clock(numbers)),
                "stderr": "",
                "rc": "0\n",
                "when.json": '{"start": "2026-11-21T08:00:00Z", "end": "2026-11-21T08:01:00Z", '
                f'"seconds": {seconds}, "host": "{members[0]}", "timed_out": false}}\n',
                "binding.json": _binding(step, members),
            }
            for output, text in outputs.items():
                _write(f"{instance}/{output}", text)
            digests = (
                f"{sha256(text.encode()).hexdigest()}  {output}\n"
                for output, text in outputs.items()
            )
            _write(f"{instance}/outputs.sha256", "".join(digests))
        (step_folder / "rc").write_text("0\n")
    return run.folder


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(file, text.encode())
    os.close(file)


def _clock(numbers: np.random.Generator) -> str:
    """Return a random time of the day, as programs print it; it differs from node to node."""
    hour, minute, second = numbers.integers((24, 60, 60))
    return f"Sat Nov 21 {hour:02d}:{minute:02d}:{second:02d} 2026"


def _binding(step: Step, members: Sequence[str]) -> str:
    """Return the records of ranks and threads, as ``step.sh`` writes them."""
    memory = f"bind:{step.membind[0]}" if step.membind else "default"
    lines = [
        f'{{"rank": {number}, "host": "{members[max(0, rank.node)]}", '
        f'"cpus": "{cpu_list_text(rank.cpus)}", "memory": "{memory}"}}'
        for number, rank in enumerate(step.cpus)
    ]
    if step.bind_threads:
        lines += [
            f'{{"threads_of": {number}, "host": "{members[max(0, rank.node)]}", '
            f'"cpus": "{",".join(map(str, rank.cpus))}"}}'
            for number, rank in enumerate(step.cpus)
        ]
    if step.launch == "threads":
        lines += [
            f'{{"thread": {thread}, "host": "{members[0]}", "cpus": "{cpu}"}}'
            for thread, cpu in enumerate(step.cpus[0].cpus)
        ]
    return "[\n" + "\n,".join(lines) + "\n]\n"


def _write_nodes(folder: Path, hosts: Sequence[str], plan: Plan) -> None:
    """Write the reports of the nodes, which differ only in their names."""
    probe = (PROBES / "knl-7250-quadrant-flat.txt").read_text()
    provenance = node_provenance(probe, probe, "probe")
    jobs = [
        JobOnNode(
            job=job.id, attempt=1, steps=tuple(each.id for each in job.steps), provenance=provenance
        )
        for group in plan.groups
        for job in group.jobs
    ]
    text = Node(host="knl0042", jobs=tuple(jobs)).model_dump_json()
    folder.mkdir()
    for host in hosts:
        (folder / f"{host}.json").write_text(text.replace("knl0042", host))


def _package() -> Package:
    program = Program(
        name="program", path="/opt/program", sha256=None, package=None, libraries=(), missing=(),
        blas=None, mpi=None, absent={},
    )  # fmt: skip
    return Package(
        origin="preinstalled", version="1", launcher="plain", programs={"program": program}
    )


def _writer(step: Step) -> Write:
    """Return the function that makes an output of `step`, of a node and its speed."""
    return {"hpl": _hpl, "stream": _stream, "ior": _ior, "osu-bw": _osu}[step.case](step)


def _sample(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def _hpl(step: Step) -> Write:
    text = _sample("hpl-2.3_N2048-6144_NB128-192_P1Q2.txt")
    row = re.search(r"^T/V .*?PASSED\n", text, re.MULTILINE | re.DOTALL)
    assert row is not None
    head = text[: text.index("Column=")]
    tail = text[text.index("Finished ") :].replace("Finished      4", "Finished      1")
    tail = re.sub(r"^( +)4( tests completed and passed)", r"\g<1>1\2", tail, flags=re.MULTILINE)
    values = step.derived
    shape = f"{values['n']} {values['nb']} {values['p']} {values['q']}"
    block = re.sub(r"^(WR\w+) .*$", f"\\1 {shape} 1811.20 @RATE@", row[0], flags=re.MULTILINE)
    whole = re.sub(r"time \w+ \w+ \d+ [\d:]+ \d+", "time @now@", head + block + tail)
    whole = re.sub(r"(\|\|Ax-b\|\|_oo\S+= +)\S+", r"\1@RESIDUAL@", whole)
    return lambda host, factor: whole.replace("@RATE@", f"{1900 * factor:.4e}").replace(
        "@RESIDUAL@", f"{3e-3 * factor:.8e}"
    )


def _stream(step: Step) -> Write:
    text = _sample("stream-5.10_N64000000_t2.txt")
    text = text.replace("Array size = 64000000", f"Array size = {step.derived['array']}")
    text = re.sub(r"(Threads \w+) = 2", f"\\1 = {step.threads}", text)
    best = 360_000 if step.parameters.get("memory") == "mcdram" else 89_000
    marked = re.sub(r"^(Copy|Scale|Add|Triad): .*", r"\1: @ ~ ~ ~", text, flags=re.MULTILINE)
    marked = re.sub(r"order of \d+ micro", "order of ^ micro", marked)
    return lambda host, factor: (
        marked.replace("@", f"{best * factor:.1f}")
        .replace("~", f"{0.06 / factor:.6f}")
        .replace("^", f"{60_000 / factor:.0f}")
    )


def _ior(step: Step) -> Write:
    text = _sample("ior-4.0.0_posix_wr_b16m_t1m_n2_fpp.txt")
    rows = [row for row in text.splitlines() if not re.match(r"(write|read) .* 1   $", row)]
    text = "\n".join(rows) + "\n"
    text = text.replace("tasks               : 2", f"tasks               : {step.ranks}")
    size = int(step.parameters["block_bytes"]) >> 20
    text = text.replace(": 16 MiB", f": {size} MiB")
    text = text.replace("xfersize            : 1", "xfersize            : 2")
    text = re.sub(r"Sat Nov 21 [\d:]+ 2026", "@now@", text)
    text = re.sub(r"^(write|read)( +)(382.84|18989) ", r"\1\2@\1@ ", text, flags=re.MULTILINE)
    return lambda host, factor: (
        text.replace("@write@", f"{900 * factor:.2f}")
        .replace("@read@", f"{1400 * factor:.2f}")
        .replace("Linux vm", f"Linux {host}")
    )


def _osu(step: Step) -> Write:
    lines = _sample("osu-7.4_bw_n2.txt").splitlines()
    rows = [line.split() for line in lines if re.match(r"\d", line)]
    rows += [[str(1 << power), rows[-1][1]] for power in (21, 22)]  # up to the default
    head = [line for line in lines[: lines.index("# Size      Bandwidth (MB/s)") + 1]]

    def write(host: str, factor: float) -> str:
        body = [f"{size} {float(rate) * factor:.2f}" for size, rate in rows]
        return "\n".join([*head, *body]) + "\n"

    return write


MEASURE = """
import sys, time, resource
from pathlib import Path
from proofmark.runs.run import open_run
from proofmark.runs import checksums
began = last = time.perf_counter()
spent = 0.0

def lap(what):
    global last, spent
    now = time.perf_counter()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(each.ru_utime + each.ru_stime for each in used)
    peak = max(each.ru_maxrss for each in used) / 1024
    print(f"  {what}: {now - last:.1f} s wall, {cpu - spent:.1f} s processor; peak {peak:.0f} MiB")
    last, spent = now, cpu

from proofmark.judge.judging import read_and_judge, write_results
from proofmark.report.write import write_report
lap("start")
run = open_run(Path(sys.argv[1]))
records, verdict = read_and_judge(run)
lap("parse and verdict")
write_results(run, records, verdict)
lap("records.parquet, verdict.json, junit.xml, rma.csv")
write_report(run, verdict)
lap("report.html")
checksums.write_checksums(run.folder)
lap("SHA256SUMS")
print(f"  {time.perf_counter() - began:.1f} s in all; {len(verdict.results)} results "
      f"{verdict.counts}, {len(verdict.bad.nodes)} bad nodes")
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    options.add_argument("folder", type=Path)
    options.add_argument("nodes", type=int, nargs="+")
    options.add_argument("--repeats", type=int, default=REPEATS)
    options.add_argument("--keep", action="store_true", help="keep the runs")
    chosen = options.parse_args()
    for nodes in chosen.nodes:
        begin = time.perf_counter()
        run = make_run(chosen.folder, nodes, chosen.repeats)
        print(f"{nodes} nodes: written in {time.perf_counter() - begin:.0f} s", flush=True)
        subprocess.run([sys.executable, "-c", MEASURE, str(run)], check=False)
        if not chosen.keep:
            shutil.rmtree(run)


if __name__ == "__main__":
    main()
