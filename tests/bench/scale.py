"""Parse, judge and report a run of many nodes: ``python -m tests.bench.scale FOLDER NODES``.

The outputs are real ones with other numbers, sizes and names in them; nothing of this is shipped.
Wall time, processor time and peak memory are printed, never asserted.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from proofmark.cases import load_benchmarks
from proofmark.machines import machines_of
from proofmark.node.program import Program
from proofmark.node.software import Package, Software
from proofmark.plan import Step, make_plan
from proofmark.runs import start_or_continue
from proofmark.site import load_site

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "benchmarks" / "samples"
REPEATS, SPREAD, BAD = 3, 0.01, 0.9

Write = Callable[[str, float], str]


def make_run(folder: Path, nodes: int) -> Path:
    """Write a finished run of the suite `node` on so many nodes; some are a tenth slower."""
    benchmarks = load_benchmarks(ROOT / "benchmarks")
    suite = benchmarks.suites["node"].model_copy(update={"repeats": REPEATS})
    benchmarks = benchmarks.model_copy(update={"suites": {**benchmarks.suites, "node": suite}})
    hosts = tuple(f"knl{number:05d}" for number in range(1, nodes + 1))
    site = load_site(ROOT / "inventory" / "nurion", "knl").model_copy(
        update={"hosts": hosts, "partition_hosts": list(hosts)}
    )
    plan = make_plan(benchmarks, "node", site, machines_of(site)[0])
    run, _ = start_or_continue(folder, plan, benchmarks, site, "", run_id=f"scale-{nodes}")
    packages = {step.package: _package() for step in plan.steps()}
    (run.folder / "software.json").write_text(Software(packages=packages).model_dump_json())
    numbers = np.random.default_rng(nodes)
    factors = 1 + SPREAD * numbers.standard_normal(nodes)
    factors[:: max(1, nodes // 20)] *= BAD
    own = dict(zip(hosts, factors, strict=True))
    for step in plan.steps():
        write = _writer(step)
        where = run.folder / "steps" / step.id
        where.mkdir(parents=True, exist_ok=True)
        binding = [
            {"rank": rank, "host": "@", "cpus": ",".join(map(str, sorted(cpus)))}
            for rank, (_, cpus) in enumerate(step.cpus)
        ]
        told = json.dumps(binding)
        for name, members in step.instances().items():
            there = where / name
            there.mkdir()
            factor = min(own[host] for host in members) * (1 + 1e-3 * numbers.standard_normal())
            (there / "stdout").write_text(write(members[0], factor))
            (there / "binding.json").write_text(told.replace("@", members[0]))
            when = (
                '{"start": "2026-11-21T08:00:00Z", "end": "2026-11-21T08:01:00Z", '
                f'"seconds": 60.0, "host": "{members[0]}", "timed_out": false}}\n'
            )
            (there / "when.json").write_text(when)
            (there / "rc").write_text("0\n")
        (where / "rc").write_text("0\n")
    return run.folder


def _package() -> Package:
    program = Program(
        name="program", path="/opt/program", sha256=None, package=None, libraries=(), missing=(),
        blas=None, mpi=None, absent={},
    )  # fmt: skip
    return Package(
        origin="preinstalled", version="1", launcher="plain", programs={"program": program}
    )


def _writer(step: Step) -> Write:
    """Return what makes an output of `step`, for a node and how fast it is."""
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
    known = step.derived
    shape = f"{known['n']} {known['nb']} {known['p']} {known['q']}"
    block = re.sub(r"^(WR\w+) .*$", f"\\1 {shape} 1811.20 @RATE@", row[0], flags=re.MULTILINE)
    whole = head + block + tail
    return lambda host, factor: whole.replace("@RATE@", f"{1900 * factor:.4e}")


def _stream(step: Step) -> Write:
    text = _sample("stream-5.10_N64000000_t2.txt")
    text = text.replace("Array size = 64000000", f"Array size = {step.derived['array']}")
    text = re.sub(r"(Threads \w+) = 2", f"\\1 = {step.threads}", text)
    best = 360_000 if step.parameters.get("memory") == "mcdram" else 89_000
    marked = re.sub(
        r"^(Copy|Scale|Add|Triad): +\S+", lambda row: f"{row[1]}: @", text, flags=re.MULTILINE
    )
    return lambda host, factor: marked.replace("@", f"{best * factor:.1f}")


def _ior(step: Step) -> Write:
    text = _sample("ior-4.0.0_posix_wr_b16m_t1m_n2_fpp.txt")
    rows = [row for row in text.splitlines() if not re.match(r"(write|read) .* 1   $", row)]
    text = "\n".join(rows) + "\n"
    text = text.replace("tasks               : 2", f"tasks               : {step.ranks}")
    size = int(step.parameters["block_bytes"]) >> 20
    text = text.replace(": 16 MiB", f": {size} MiB")
    text = text.replace("xfersize            : 1", "xfersize            : 2")
    text = re.sub(r"^(write|read)( +)(382.84|18989) ", r"\1\2@\1@ ", text, flags=re.MULTILINE)
    return lambda host, factor: (
        text.replace("@write@", f"{900 * factor:.2f}")
        .replace("@read@", f"{1400 * factor:.2f}")
        .replace("Linux vm", f"Linux {host}")
    )


def _osu(step: Step) -> Write:
    lines = _sample("osu-7.4_bw_n2.txt").splitlines()
    rows = [line.split() for line in lines if re.match(r"\d", line)]
    head = [line for line in lines[: lines.index("# Size      Bandwidth (MB/s)") + 1]]

    def write(host: str, factor: float) -> str:
        body = [f"{size} {float(rate) * factor:.2f}" for size, rate in rows]
        return "\n".join([*head, *body]) + "\n"

    return write


MEASURE = """
import sys, time, resource
from pathlib import Path
from proofmark.runs import open_run
begin = time.perf_counter()
from proofmark.acceptance import judged, conclude
from proofmark.report import write_report
run = open_run(Path(sys.argv[1]))
answer = conclude(run) if sys.argv[2] == "conclude" else judged(run)
judged_s = time.perf_counter() - begin
cpu = sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
          for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
if sys.argv[2] == "conclude":
    write_report(run, answer)
whole = time.perf_counter() - begin
peak = max(resource.getrusage(who).ru_maxrss
           for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(f"{sys.argv[2]}: verdict after {judged_s:.1f} s wall, {cpu:.1f} s processor; "
      f"all {whole:.1f} s; peak {peak / 1024:.0f} MiB; "
      f"{len(answer.results)} results {answer.counts}, {len(answer.bad.nodes)} bad nodes")
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    options.add_argument("folder", type=Path)
    options.add_argument("nodes", type=int, nargs="+")
    chosen = options.parse_args()
    for nodes in chosen.nodes:
        begin = time.perf_counter()
        run = make_run(chosen.folder, nodes)
        print(f"{nodes} nodes: written in {time.perf_counter() - begin:.0f} s", flush=True)
        for what in ("judge", "conclude"):
            subprocess.run([sys.executable, "-c", MEASURE, str(run), what], check=False)
        shutil.rmtree(run)


if __name__ == "__main__":
    main()
