"""Runs for the tests of the report: real cases, real outputs of programs, a probed machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.models import Benchmarks
from proofmark.jobs.scripts import write_scripts
from proofmark.judge.judging import judge_and_write
from proofmark.judge.verdict import Verdict
from proofmark.plan.expansion import content_digest
from proofmark.plan.plan import Group, Job, Plan, Step, Totals
from proofmark.report.write import write_report
from proofmark.runs.nodes import collect_nodes
from proofmark.runs.run import Run
from proofmark.runs.start import start_or_continue
from proofmark.site.inventory import Site
from proofmark.site.node.facts import parse_probe
from proofmark.site.partition import Limit, Partition
from proofmark.site.storage import Scratch
from proofmark.software.program import parse_program
from proofmark.software.software import Software, package_of

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "benchmarks" / "samples"
PROBES = ROOT / "tests" / "data" / "probe"
HOST = "vm"
RUN_ID = "20261121T083000Z-local-quick"
LAYOUTS = ("single-shared-file", "file-per-process")
SIZES = tuple(2**power for power in range(21, 27))
COLLECTIVES = ("Bcast", "Allreduce", "Allgather", "Alltoall", "Alltoallv")

Outputs = dict[str, dict[str, str]]
"""Texts by file name by step id."""


def sample(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def facts_probe() -> str:
    """Return the probe of a virtual machine whose processor tells its nominal frequency."""
    text = (PROBES / "live-kvm-zen3.txt").read_text(encoding="utf-8")
    return text.replace("AMD EPYC", "AMD EPYC 7763 @ 2.45GHz")


def software() -> Software:
    """Return programs of which hpcc's OpenBLAS chose badly by itself."""
    facts = parse_probe(facts_probe(), "facts")
    texts = {
        "hpcc": (PROBES / "program-hpcc-prescott.txt").read_text(encoding="utf-8"),
        "intel-mpi-benchmarks": (PROBES / "program-imb-intel.txt").read_text(encoding="utf-8"),
    }
    texts["hpcc"] = re.sub(r"\| forced: .*\n", "", texts["hpcc"])
    texts["fio"] = texts["hpcc"].replace("hpcc", "fio").partition("=== blas")[0] + "=== end\n"
    programs = {name: parse_program(text, name) for name, text in texts.items()}
    return Software(
        packages={
            name: package_of({program.name: program}, facts, "system", "1.0", spec=name)
            for name, program in programs.items()
        }
    )


def step(case: str, name: str, benchmarks: Benchmarks, **own: Any) -> Step:
    """Return a step of `case` on two cores; `own` replaces what is told here."""
    known = benchmarks.case(case)
    given: dict[str, Any] = {
        "id": name,
        "case": case,
        "repeat": 1,
        "nodes": ["localhost"],
        "ranks": 2,
        "threads": 1,
        "placement": "close",
        "parameters": {},
        "derived": {},
        "package": known.package,
        "program": known.program,
        "launch": known.launch,
        "arguments": [],
        "environment": {},
        "inputs": {},
        "output": known.output,
        "variants": {},
        "cpus": [(0, (0,)), (0, (1,))],
        "seconds": 10.0,
        "timeout": 160,
        "bytes": 0,
    }
    return Step.model_validate({**given, **own})


def steps_of(benchmarks: Benchmarks) -> list[Step]:
    """Return the steps of the suite, with the parameters that the samples were made with."""
    steps: list[Step] = []

    def add(case: str, name: str, **own: Any) -> None:
        number = f"{len(steps) + 1:04d}"
        steps.append(step(case, f"{number}-{case}{name}", benchmarks, **own))

    for layout in LAYOUTS:
        for size in SIZES:
            add(
                "fio-cache",
                f"-{layout}-{size}",
                parameters={"tasks": 2, "layout": layout, "block_bytes": size},
                ranks=1,
                placement="",
                cpus=[],
                bytes=2 * size,
                inputs={"cache.fio": f"[global]\nsize={size}\n"},
            )
    for choice in ("as-installed", "right"):
        add(
            "hpcc",
            f"-{choice}",
            parameters={"blas_kernel": choice, "memory_share": 0.04},
            derived={"nb": 192, "n": 4000},
            variants={"blas_kernel": choice},
        )
    add("imb-collectives", "")
    add("imb-pingpong", "")
    return steps


def plan_of(steps: list[Step], benchmarks: Benchmarks) -> Plan:
    job = Job(id="00-0001", nodes=["localhost"], steps=steps)
    totals = Totals(
        jobs=1,
        steps=len(steps),
        node_hours=0.1,
        bytes=0,
        scratch_peak_bytes=0,
        wall_s=10.0 * len(steps),
    )
    body = {
        "site": "local",
        "partition": "local",
        "suite": "quick",
        "system": "local",
        "groups": [Group(mode="current", environment="local", jobs=[job])],
        "totals": totals,
        "cases": {name: "" for name in benchmarks.members("quick")},
    }
    digest = content_digest([step.model_dump(mode="json") for step in steps])
    return Plan(digest=digest, **body)


def fio_output(layout: str, size: int) -> str:
    """Return fio's report on files of `size`, slower with every doubling."""
    document = json.loads(sample("fio-3.33_4m_2m_n2_fpp.json"))
    document["global options"] |= {"size": str(size), "description": layout}
    slower = (1 if layout == LAYOUTS[0] else 1.4) * (SIZES[0] / size) ** 0.3
    for job in document["jobs"]:
        for way, speed in (("write", 1_900_000), ("read", 6_200_000)):
            if job["jobname"] == way:
                job[way]["bw"] = round(speed * slower)
    return json.dumps(document, indent=2)


def hpcc_output(faster: float) -> str:
    """Return HPCC's report with HPL and DGEMM as many times faster."""

    def scaled(match: re.Match[str]) -> str:
        return f"{match[1]}{float(match[2]) * faster:.5f}"

    text = sample("hpcc-1.5.0_N4000_n2.txt")
    text = re.sub(r"^(W[RC]\d.* )(\S+)$", scaled, text, flags=re.MULTILINE)
    return re.sub(r"^(\w+DGEMM_Gflops=)(\S+)$", scaled, text, flags=re.MULTILINE)


def collectives_output() -> str:
    """Return IMB's report on five collectives, each from the real one of one of them."""
    text = sample("imb-2021.7_Allreduce_n2.txt")
    start = text.index("#------", text.index("List of Benchmarks"))
    head, block = text[:start], text[start:]
    end = block.index("# All processes entering")
    head = head.replace("# Allreduce\n", "".join(f"# {name}\n" for name in COLLECTIVES))
    blocks = "".join(block[:end].replace("Allreduce", name) for name in COLLECTIVES)
    return head + blocks + block[end:]


def outputs_of(steps: list[Step]) -> Outputs:
    """Return what the programs printed, and whatever they are asked about their BLAS."""
    outputs: Outputs = {}
    for each in steps:
        if each.case == "fio-cache":
            layout, size = str(each.parameters["layout"]), int(each.parameters["block_bytes"])
            outputs[each.id] = {"fio.json": fio_output(layout, size)}
        elif each.case == "hpcc":
            right = each.variants["blas_kernel"] == "right"
            said = "Core: Zen\n" if right else "Core: Prescott\n"
            report = hpcc_output(4.3 if right else 1.0)
            outputs[each.id] = {"hpccoutf.txt": report, "stderr": said}
        elif each.case == "imb-collectives":
            outputs[each.id] = {"stdout": collectives_output()}
        elif each.case == "imb-pingpong":
            outputs[each.id] = {"stdout": sample("imb-2021.7_PingPong_n2.txt")}
    return outputs


def timed_out() -> str:
    """Return IMB's report on collectives of which most ran into its time limit."""
    text = sample("imb-2021.18.1_collectives_n4_timeouts.txt")
    return text.replace("#processes = 4", "#processes = 2")


def site_of(folder: Path, limits: list[Limit]) -> Site:
    return Site(
        name="local",
        inventory=ROOT / "inventory" / "local",
        limit="local",
        partition_name="local",
        partition=Partition(
            hardware="discovered",
            environment="local",
            scheduler="none",
            provision_from="system",
            scratch=Scratch(path=f"{folder}"),
            limits=limits,
        ),
        hosts=("localhost",),
        connection="local",
    )


def made_run(
    folder: Path,
    *,
    change: Callable[[Outputs], None] = lambda outputs: None,
    after: Callable[[str], str] = lambda probe: probe,
    limits: list[Limit] | None = None,
    codes: Mapping[str, int] | None = None,
    host: str = HOST,
) -> Run:
    """Write a finished run into `folder`.

    Args:
        folder: where runs are.
        change: changes the outputs; a step without any has not run.
        after: changes the probe after the job.
        limits: contract limits of the site.
        codes: exit codes other than 0, by step id.
        host: the name of the node.
    """
    benchmarks = load_benchmarks(ROOT / "benchmarks")
    steps = steps_of(benchmarks)
    probe = facts_probe().replace(f"hostname: {HOST}", f"hostname: {host}")
    plan, site = plan_of(steps, benchmarks), site_of(folder, limits or [])
    run, _ = start_or_continue(folder, plan, benchmarks, site, probe, run_id=RUN_ID)
    provided = software()
    (run.folder / "software.json").write_text(provided.model_dump_json(indent=1))
    write_scripts(run.folder, plan, provided, folder, "none")
    outputs = outputs_of(steps)
    change(outputs)
    for number, each in enumerate(steps):
        if each.id in outputs:
            code = (codes or {}).get(each.id, 0)
            _write_step(run.folder / "steps" / each.id, each, number, outputs[each.id], code, host)
    attempt = run.folder / "jobs" / "00-0001" / "attempt-1"
    attempt.mkdir(parents=True)
    (attempt / f"{host}.before").write_text(probe)
    (attempt / f"{host}.after").write_text(after(probe))
    collect_nodes(run)
    return run


def _write_step(
    folder: Path, each: Step, number: int, outputs: Mapping[str, str], code: int, host: str
) -> None:
    for name, text in {"stdout": "", "stderr": "", **outputs}.items():
        (folder / name).write_text(text.replace(f"'{HOST}'", f"'{host}'"), encoding="utf-8")
    binding = [{"rank": rank, "host": host, "cpus": f"{rank}"} for rank in range(len(each.cpus))]
    (folder / "binding.json").write_text(json.dumps(binding))
    when = {
        "start": f"2026-11-21T08:{30 + number // 2:02d}:00Z",
        "end": f"2026-11-21T08:{30 + number // 2:02d}:20Z",
        "seconds": 20.25,
        "host": host,
        "timed_out": False,
    }
    (folder / "when.json").write_text(json.dumps(when))
    (folder / "rc").write_text(f"{code}\n")


def reported(run: Run) -> tuple[Verdict, str]:
    """Judge `run`, write its report and return both."""
    verdict = judge_and_write(run)
    return verdict, write_report(run, verdict).read_text(encoding="utf-8")


def troubled_run(folder: Path) -> Run:
    """Write a run in which much went wrong, one thing of each kind."""
    limit = Limit.model_validate(
        {
            "case": "imb-pingpong",
            "metric": "bandwidth",
            "where": {"bytes": 1048576},
            "source": "tender, annex 3: at least 9 GB/s between two cores",
            "value": 9000,
            "at_least": 1.0,
        }
    )

    def change(outputs: Outputs) -> None:
        collectives = next(name for name in outputs if name.endswith("imb-collectives"))
        outputs[collectives] = {"stdout": timed_out()}
        for name in list(outputs):
            if name.startswith(("0011", "0012")):
                del outputs[name]

    def after(probe: str) -> str:
        return probe.replace("| vmstat/oom_kill: 0", "| vmstat/oom_kill: 2")

    return made_run(folder, change=change, after=after, limits=[limit])
