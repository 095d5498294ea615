"""The zoo: machines as people have them, and the words that they get from the real commands.

A row of ``tests/data/zoo.yml`` is a machine of four nodes: what a node has, what its inventory
states, the rates of its nodes, and the expected words. `visit` writes the inventory as ``init``
does, asks ``check`` and ``plan``, writes the outputs and the probes of the run that ``plan``
created, and judges it by ``report`` and ``verdict``. ``python -m tests.zoo`` writes the table into
``docs/tested.md``.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import yaml
from tests.fixtures.finished import own_number, write_execution, write_probes, write_software
from tests.fixtures.kit import described
from tests.fixtures.machine_probe import Node, probe
from tests.fixtures.node_outputs import binding, writer
from tests.fixtures.pages import Page
from tests.fixtures.report_run import NO_PLOT
from tests.folders import BENCHMARKS, DATA, PROBES, ROOT

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.packages.papers import plots_page
from proofmark.packages.survey.answers import ListedNode, NodeKind, NodeReport, Survey
from proofmark.packages.survey.findings import environments_in
from proofmark.packages.survey.inventory_files import inventory_files
from proofmark.plan.step import WrittenFiles
from proofmark.runs.run import Run, open_run
from proofmark.site.node.facts import parse_probe
from proofmark.site.node.parts import mount_of
from proofmark.site.rails import ports_of
from proofmark.software.software import Package, Software

TABLE = DATA / "zoo.yml"
PAGE = ROOT / "docs" / "tested.md"
HOSTS = ("n1", "n2", "n3", "n4")
REPEATS = 3
SUITES = {
    "memory": ("stream",),
    "link": ("osu-bw",),
    "linpack": ("hpl",),
    "node": ("stream", "osu-bw"),
    "files": ("ior",),
}
"""The cases of each suite of the zoo. A machine runs the suite of the rates that it has."""
STEPS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "stream": [{"scope": "each-node", "sweep": {"memory": "{memories}"}}],
    "osu-bw": [
        {
            "scope": "each-pair",
            "sweep": {"nodes": 2, "placement": "other-node"},
            "let": {"options": "{['-m', '4194304:4194304']}"},
        }
    ],
    "hpl": [{"scope": "each-node", "sweep": {"memory": "{main_memory}", "memory_share": 0.8}}],
    "ior": [
        {
            "scope": "each-node",
            "sweep": {
                "ranks": 8,
                "layout": "file-per-process",
                "block_bytes": "{256 * MiB}",
                "cache": "cold",
                "clients": "{nodes}",
            },
        }
    ],
}
REQUIRED = {"stream": "triad", "osu-bw": "bandwidth", "hpl": "rmax", "ior": "write"}


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the keys of `change`; sections are merged, and None removes a key."""
    found = {**base}
    for key, value in change.items():
        if isinstance(value, Mapping) and isinstance(found.get(key), Mapping):
            found[key] = merged(found[key], value)
        elif value is None:
            found.pop(key, None)
        else:
            found[key] = value
    return found


@dataclass(frozen=True)
class Zoo:
    """One machine.

    Attributes:
        name: what is special about it.
        node: the name of a node of the table, or of a file with a probe.
        change: other values of the node.
        own: other values of single nodes by their names.
        replaced: texts in the probes of all nodes, or of single ones by their names.
        site: what its inventory states in place of what ``init`` wrote; or the shipped site.
        triad: GB/s, or by the kind of memory.
        link: GB/s.
        hpl: Gflop/s.
        write: MiB/s of the clients of a file system.
        items: further items of the contract.
        triad_limit, link_limit, hpl_limit: of the contract, in the same units; at most 1: a share
            of the hardware; 0: none.
        triad_of: the kind of memory that the limit of Triad is for; empty: all.
        moved: the adapters that carried the messages; empty: the fabric.
        slow: the rates of single nodes ÷ the rates of the others.
        check: words of ``check`` about a required figure or a limit that stays unjudged, or of its
            refusal; empty: all are judged.
        binds: the NUMA domains to which each kind of memory is bound; none: it is not bound.
        word: the word of the verdict.
        says: texts that the page has.
    """

    name: str
    node: str
    change: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    replaced: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    site: Mapping[str, Any] = field(default_factory=dict)
    shipped: str = ""
    triad: Mapping[str, float] | float = 0
    link: float = 0
    hpl: float = 0
    write: float = 0
    items: Sequence[Mapping[str, Any]] = ()
    triad_limit: float = 0.7
    triad_of: str = ""
    link_limit: float = 0
    hpl_limit: float = 0.6
    moved: Sequence[str] = ()
    slow: Mapping[str, float] = field(default_factory=dict)
    check: str = ""
    binds: Mapping[str, Sequence[int]] = field(default_factory=dict)
    word: str = "PASS"
    says: Sequence[str] = ()

    @property
    def suite(self) -> str:
        """The suite that measures all rates of the machine."""
        cases = tuple(REQUIRED)
        has = {"stream": self.triad, "osu-bw": self.link, "hpl": self.hpl, "ior": self.write}
        wanted = tuple(case for case in cases if has[case])
        return next(name for name, of in SUITES.items() if of == wanted)


@cache
def table() -> tuple[Mapping[str, Mapping[str, Any]], Sequence[Zoo]]:
    """Return the nodes by their names, and the machines."""
    data = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return data["nodes"], [Zoo(**row) for row in data["machines"]]


@cache
def probe_of(machine: str, host: str = "") -> str:
    """Return the output of the probe on a node of a machine, before `replaced`.

    Without `host`: on a node without values of its own.
    """
    nodes, machines = table()
    (row,) = [each for each in machines if each.name == machine]
    if row.node.endswith(".txt"):
        return (PROBES / row.node).read_text(encoding="utf-8")
    return probe(Node(**merged(merged(nodes[row.node], row.change), row.own.get(host, {}))))


def probe_on(row: Zoo, host: str) -> str:
    """Return the output of the probe on one node."""
    text = probe_of(row.name, host if host in row.own else "")
    for which in ("all", host):
        for old, new in row.replaced.get(which, {}).items():
            assert old in text, f"{row.name}: {old!r}"
            text = text.replace(old, new)
    for serial, first in (("product_serial", "S"), ("board_serial", "B")):
        text = re.sub(rf"(?m)^\| {serial}: .*", f"| {serial}: {own_number(host, first)}", text)
    text = re.sub(r"(?m)^(\| boot_id: .*-).*", rf"\g<1>{own_number(host, '4')}", text)
    return re.sub(r"(?m)^\| hostname: .*", f"| hostname: {host}", text, count=1)


def write_kit(folder: Path) -> None:
    """Write a checkout with the cases of the zoo: real ones with the suites of the zoo."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "inventory").mkdir()
    (folder / "ansible.cfg").touch()
    (folder / "environments").symlink_to(ROOT / "environments")
    for case in (*REQUIRED, "osu-latency"):
        data = yaml.safe_load((BENCHMARKS / f"{case}.yml").read_text(encoding="utf-8"))
        data["suites"] = {name: STEPS[case] for name, of in SUITES.items() if case in of}
        data["suites"] = data["suites"] or {"unused": {}}
        if case == "hpl":  # the other references are about other cases
            data["references"] = [each for each in data["references"] if "against" not in each]
        (folder / f"benchmarks/{case}.yml").write_text(yaml.safe_dump(data, sort_keys=False))
    suites: dict[str, Any] = {"unused": {"title": "Unused"}}
    for name, of in SUITES.items():
        required = [{"case": case, "metrics": [REQUIRED[case]]} for case in of]
        suites[name] = {"title": name, "repeats": REPEATS, "required_metrics": required}
    (folder / "benchmarks/suites.yml").write_text(yaml.safe_dump({"suites": suites}))


@cache
def _environments() -> Any:
    return environments_in(ROOT / "environments")


def write_site(kit: Path, row: Zoo) -> tuple[Path, str]:
    """Write the inventory of a machine; return its folder and its partition."""
    folder = kit / "inventory" / f"site-{crc32(row.name.encode()):x}"
    if row.shipped:
        name, partition = row.shipped.split("/")
        shutil.copytree(ROOT / "inventory" / name, folder)
        for other in (folder / "group_vars").iterdir():
            if other.stem not in (partition, "all"):
                shutil.rmtree(other)
        path = folder / f"group_vars/{partition}/partition.yml"
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    else:
        partition = "zoo"
        facts = parse_probe(probe_on(row, HOSTS[0]), "probe")
        nodes = tuple(ListedNode(host) for host in HOSTS)
        kind = NodeKind(partition, nodes, ())
        survey = Survey("slurm", (kind,), {HOSTS[0]: NodeReport(HOSTS[0], facts)}, "the zoo")
        for name, text in inventory_files(survey, _environments()).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        path = folder / f"group_vars/{partition}/partition.yml"
        data = merged(yaml.safe_load(path.read_text(encoding="utf-8")), {"partition": FOUND})
    # The folder of a test is below /tmp, which other machines do not see.
    hosts = {"hosts": {host: {"ansible_connection": "local"} for host in HOSTS}}
    groups = {"all": {"children": {"compute": {"children": {partition: hosts}}}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(groups))
    programs = {name: {"prefix": "/opt", "version": "1"} for name in PACKAGES}
    data["partition"] |= {"provision_from": "preinstalled", "preinstalled": programs}
    data = merged(data, {"partition": row.site})
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    if items := [*_items(row)]:
        contract = {"title": "Acceptance", "parties": {"buyer": "a", "supplier": "b"}}
        (folder / "contract.yml").write_text(yaml.safe_dump({**contract, "items": items}))
    else:  # that of a shipped site is for other cases
        (folder / "contract.yml").unlink(missing_ok=True)
    return folder, partition


LIMITS = {
    "stream": ("memory_bandwidth", "GB/s"),
    "osu-bw": ("link_bandwidth", "GB/s"),
    "hpl": ("rpeak_nominal", "Gflop/s"),
    "ior": ("", "MiB/s"),
}
"""The rule and the unit of a limit of each case."""


def _items(row: Zoo) -> Iterator[Mapping[str, Any]]:
    """Yield the items of the contract."""
    yield from row.items
    limits = {"stream": row.triad_limit, "osu-bw": row.link_limit, "hpl": row.hpl_limit}
    limits["ior"] = 0.8 * row.write
    for case in SUITES[row.suite]:
        if not (limit := limits[case]):
            continue
        rule, unit = LIMITS[case]
        stated = {"value": limit, "unit": unit, "at_least": 1}
        share = {"rule": rule, "at_least": limit}
        item: dict[str, Any] = {"number": case, "text": f"{case} of each node", "case": case}
        item |= {"where": {"memory": row.triad_of}} if case == "stream" and row.triad_of else {}
        yield {**item, "metric": REQUIRED[case], **(share if limit <= 1 else stated)}


SCRATCH = "/scratch/proofmark"
FOUND = {
    "environment": "local",
    "scheduler": "slurm",
    "queue": {"name": "batch"},
    "scratch": {"path": SCRATCH},
    "facts": {"stream_array_size": 600_000_000, "threaded_blas": 1, "hpl_nb": 384},
}
"""What the answers to the questions of ``init`` are."""
PACKAGES = ("stream", "osu-micro-benchmarks", "hpl", "ior")


@dataclass(frozen=True)
class Words:
    """What the commands said about a machine.

    Attributes:
        check: the lines of ``check`` about what stays unjudged, or its refusal.
        binds: the NUMA domains of each kind of memory that ``plan`` binds.
        word: of the verdict, or ``refused``.
        page: the text of the page.
    """

    check: str
    binds: Mapping[str, Sequence[int]]
    word: str
    page: str


def called(*words: str) -> tuple[int, str, str]:
    """Return the exit code of a command, what it prints, and its messages."""
    text, more = io.StringIO(), io.StringIO()
    with redirect_stdout(text), redirect_stderr(more):
        try:
            code = main([*words])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 3
        except BadInput as refusal:
            code = 3
            more.write(f"{refusal}")
    return code, text.getvalue(), more.getvalue()


def visit(kit: Path, row: Zoo) -> Words:
    """Take a machine through ``check``, ``plan``, its run, ``report`` and ``verdict``."""
    inventory, partition = write_site(kit, row)
    where = ("-i", f"{inventory}", "-l", partition, "--suite", row.suite)
    code, told, refused = called("check", *where)
    assert code in (0, 3), refused
    lines = [line for line in told.splitlines() if line.startswith("unjudged: ")]
    if code:
        return Words(refused, {}, "refused", "")
    name = inventory.name
    made = ("--runs", f"{kit / 'runs'}", "--run-id", name, "--create", "--no-link")
    code, _, refused = called("plan", *where, *made, "--accept-unjudged")
    assert code == 0, refused
    run = open_run(kit / "runs" / name)
    finish(run, row)
    code, _, refused = called("report", f"{run.folder}")
    assert code == 0, refused
    verdict = json.loads((run.folder / "verdict.json").read_text(encoding="utf-8"))
    page = Page((run.folder / "report.html").read_text(encoding="utf-8")).words
    binds = {
        f"{step.parameters['memory']}": [*(step.membind or ())]
        for step in run.plan.steps()
        if "memory" in step.parameters
    }
    return Words("\n".join(lines), binds, verdict["headline"]["word"], page)


def finish(run: Run, row: Zoo) -> None:
    """Write the outputs and the probes of a finished run."""
    packages = {step.package: _package() for step in run.plan.steps()}
    write_software(run, Software(packages=packages))
    for group in run.plan.groups:
        for job in group.jobs:
            for host in HOSTS:
                text = probe_on(row, host)
                write_probes(run, job.id, host, text, text)
            for step in job.steps:
                _measure(run, row, step, job.id)
                _write_networks(run, row, step, job.id)


def _write_networks(run: Run, row: Zoo, step: Any, job: str) -> None:
    """Write the counters of the networks around a step between nodes: the fabric carried it."""
    if not step.network_bytes:
        return
    folder = run.files.job(job).folder / f"attempt-1/network/1-{step.id}"
    folder.mkdir(parents=True)
    facts = parse_probe(probe_on(row, HOSTS[0]), "probe")
    ports = ports_of(facts)
    loud = [port.adapter for port in ports if port.layer != "Ethernet"] or [
        port.adapter for port in ports
    ]
    if row.moved:
        loud = [*row.moved]
    for when, date, moved in (("before", "10", 0), ("after", "11", 10**13)):
        lines = [f"sample 2026-11-21T{date}:00:00Z {date}00"]
        for port in ports:
            total = moved if port.adapter in loud else 0
            lines.append(f"bytes {port.adapter} {port.port} {port.layer} {total} 0")
        total = moved if "eno1" in loud or not ports else 0
        lines.append(f"interface eno1 1 {total} 0 -")
        for host in HOSTS:
            (folder / f"{host}.{when}").write_text("\n".join([*lines, "end", ""]))


def _measure(run: Run, row: Zoo, step: Any, job: str) -> None:
    rates = row.triad if isinstance(row.triad, Mapping) else {}
    memory = step.parameters.get("memory")
    triad = rates.get(str(memory), 0.0) if isinstance(row.triad, Mapping) else row.triad
    levels = {"stream": 1000 * triad, "osu-bw": 1000 * row.link, "hpl": row.hpl, "ior": row.write}
    level = levels[step.case]
    assert level, f"{row.name}: no rate of {step.case} for {memory}"
    write = writer(step, level)
    for place, members in step.instances().items():
        slow = min(row.slow.get(host, 1.0) for host in members)
        noise = crc32(f"{row.name} {place} {step.id}".encode()) / 2**32 - 0.5
        output = write(members[0], slow * (1 + 0.01 * noise))
        files = {"stdout": output.replace("@now@", f"Sat Nov 21 08:{step.repeat:02}:00 2026")}
        if step.writes:
            files["scratch.json"] = _scratch(row, members[0], step.writes)
        write_execution(
            run.files.step(str(place)).folder,
            members[0],
            files,
            binding=json.loads(binding(step, members)),
            attempt=f"{job}/attempt-1",
        )


def _scratch(row: Zoo, host: str, writes: WrittenFiles) -> str:
    """Return where a step wrote, as its script sees it: on the mount that the probe shows."""
    folder = f"{SCRATCH}/files"
    found = mount_of(folder, parse_probe(probe_on(row, host), "probe").mounts)
    assert found
    place = {"kind": found.kind, "source": found.source, "target": found.target}
    numbers = {"bytes": writes.bytes, "files": writes.files, "most": 10_000}
    return json.dumps({"scratch": folder, "real": folder, **place, **numbers})


def _package() -> Package:
    program = described(Path("/opt/program"))
    version = {"origin": "preinstalled", "version": "1", "launcher": "plain"}
    return Package(**version, programs={"program": program})


@contextmanager
def zoo_kit(folder: Path) -> Iterator[Path]:
    """Yield the folder of a checkout with the cases of the zoo, which the commands use."""
    write_kit(folder)
    kept = {name: os.environ.get(name) for name in ("PROOFMARK_KIT", "PROOFMARK_STATE")}
    os.environ |= {"PROOFMARK_KIT": f"{folder}", "PROOFMARK_STATE": f"{folder / 'state'}"}
    try:
        with pytest.MonkeyPatch.context() as patch:  # the plots take most of the time of a page
            patch.setattr(plots_page, "svg_file", lambda drawing: NO_PLOT)
            patch.setattr(plots_page, "png_file", lambda drawing: b"")
            yield folder
    finally:
        for name, value in kept.items():
            os.environ.pop(name, None)
            os.environ |= {name: value} if value is not None else {}


BEGIN = "<!-- tests/zoo.py writes the lines to the next heading -->\n"
HEAD = "| machine | measured | `check` | verdict and page |\n|---|---|---|---|\n"


def lines() -> str:
    """Return the table of the zoo."""
    rows = ""
    for row in table()[1]:
        rates: dict[str, Any] = {"Triad": row.triad, "osu_bw": row.link, "HPL": row.hpl}
        rates["IOR write"] = row.write
        units = {"Triad": "GB/s", "osu_bw": "GB/s", "HPL": "Gflop/s", "IOR write": "MiB/s"}
        parts = []
        for name, rate in rates.items():
            if isinstance(rate, Mapping):
                parts += [f"{name} of {kind} {each:g} GB/s" for kind, each in rate.items()]
            elif rate:
                parts.append(f"{name} {rate:g} {units[name]}")
        parts += [f"{host} × {factor:g}" for host, factor in row.slow.items()]
        told = f"“{row.check}”" if row.check else "all judged"
        said = ", ".join(f"“{each}”" for each in row.says)
        verdict = f"{row.word}{': ' if said else ''}{said}"
        rows += f"| {row.name} | {', '.join(parts)} | {told} | {verdict} |\n"
    return HEAD + rows


def page() -> str:
    """Return the text of the page with the table of now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{lines()}\n{rest[rest.index('## ') :]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
