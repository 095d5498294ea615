"""Stories: what commands print about a few rich runs, and what their pages say.

``tests/golden/stories/NAME.txt`` is the text of a story. A test tells each story again and compares
it: each cell, note, link, count and exit code. ``python -m tests.stories [NAME…]`` writes the
texts. Whoever changes them reads the difference, as that of code.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from errno import ENOSPC
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any
from unittest.mock import Mock

import numpy as np
import yaml
from tests.fixtures.adopted_cluster import Faults, Group, write_cluster
from tests.fixtures.finished import (
    seal,
    write_execution,
    write_probes,
    write_software,
    written_verdict,
)
from tests.fixtures.fleet import changed, fleet_run, named_probe, write_inventory
from tests.fixtures.kit import Kit, item, make_kit, steps_of
from tests.fixtures.messages import said
from tests.fixtures.report_run import page_of, troubled_run
from tests.fixtures.stories import NOW, Story, of_one_length, stage
from tests.folders import PROBES, ROOT
from tests.reference import archives
from tests.unit.report.test_disturbed import NODE

from proofmark.common.translation import in_language
from proofmark.judge.coverage import Degraded, Uncovered
from proofmark.judge.diagnosis.bad_nodes import BadNodes, Cause, SlowFigure
from proofmark.judge.diagnosis.storage_faults import SlowTarget
from proofmark.judge.executions import Added, Crash, DisturbedNode
from proofmark.judge.fleet.populations import LIKE_TARGETS
from proofmark.judge.judging import judge_run
from proofmark.judge.references.judgement import PEERS
from proofmark.packages.twin.smpi import unpack
from proofmark.report.render import page, view
from proofmark.report.run_data import RunData, gather
from proofmark.runs.evidence import open_newest
from proofmark.runs.job_folder import StoppedJob
from proofmark.runs.run import Run, open_run
from proofmark.runs.stage_faults import StageFault
from proofmark.runs.start import RunInputs, start_or_continue
from proofmark.runs.state import state_lock
from proofmark.site.contract_document import CheckItem, Item
from proofmark.site.fabric import Fabric
from proofmark.site.inventory import load_site

GOLDEN = ROOT / "tests/golden/stories"


def sample(story: Story) -> None:
    """The sample run: real programs on one machine."""
    run = troubled_run(story.folder / "runs")
    story.know(run)
    story.call("status", run.folder, "--steps")
    story.call("status", run.folder)
    story.call("status", run.folder, "--json")
    story.call("verdict", run.folder)
    story.call("verdict", run.folder, "--all")
    story.call("report", run.folder)
    story.page(run.products.report)
    story.file(run.products.made)


HOSTS = tuple(f"n{number:02}" for number in range(1, 13))
LEVELS = {host: 100.0 + number for number, host in enumerate(HOSTS)}
HEALTHY: Mapping[str, Sequence[float]] = {
    host: (level, level + 1, level - 0.5) for host, level in LEVELS.items()
}
TROUBLED: Mapping[str, Sequence[float]] = {
    **HEALTHY,
    "n02": (107.0, 60.0, 61.0),
    "n03": (60.0, 60.5, 61.0),
    "n05": (105.0, 40.0, 105.0),
    "n06": (106.0,),
    "n11": (130.0, 131.0, 132.0, 133.0),
}
"""A slow node, one that is slow in two of three repeats, a disturbed one; one repeat and four."""
AGREED: Mapping[str, Any] = {"case": "fake", "metric": "rate", "unit": "MB/s", "at_least": 1}
ITEMS: Sequence[Item] = (
    item(**AGREED, value=90, text="each node", source="annex 2"),
    item(**AGREED, value=120, text="most nodes <b>", nodes=0.9, severity="minor"),
    item(**AGREED, value=50, text="the worst", of="worst", phase="stability", runs=2),
    item(**AGREED, value=50, text="one size", where={"size": 1}),
    item(
        case="fake",
        metric="rate",
        value=100,
        unit="MB/s",
        at_least=0.7,
        at_most=1.31,
        text="a range",
    ),
    CheckItem(number="6", text="the same BIOS", check="bios", equal=True),
    CheckItem(number="7", text="the cores", check="cores", value=40),
    CheckItem(number="8", text="many nodes", check="nodes", at_least=12),
)
REFERENCES = [
    {"metric": "rate", "kind": kind, "source": source, "value": 95, "unit": "MB/s", **bounds}
    for kind, source, bounds in (
        ("floor", "a data sheet", {"at_least": 0.8}),
        ("expected", "like machines", {"at_least": 0.9, "at_most": 1.3, "system": "local"}),
    )
]
CASE = {
    "key_figures": {"read": "rate", "triad": "rate"},
    "undisturbed": {"least_seconds": 3600, "metric": "rate"},
    "references": REFERENCES,
}


def fleet(story: Story) -> None:
    """Twelve like nodes, accepted once; then many of them have a fault of their own."""
    key, signers = story.key("ida@buyer")
    write_inventory(story.folder / "inventory/here", HOSTS)
    healthy = fleet_run(story.folder / "old", HEALTHY, run_id="old", items=ITEMS, case=CASE, more=2)
    story.know(healthy)
    story.call("stage", "collect", healthy.folder)
    story.call("report", healthy.folder)
    story.call("sign", healthy.folder, "--key", key)
    story.call("verify", healthy.folder, "--signers", signers)
    story.patch.setenv("PROOFMARK_KIT", f"{story.folder / 'old'}")
    (story.folder / "old/ansible.cfg").touch()
    words = ("-i", "inventory/here", "-l", "local")
    about = ("--reason", "a new cluster", "--name", "default")
    story.call("baseline", "accept", healthy.folder, *words, "--signers", signers, *about)
    story.call("baseline", "show", healthy.folder, *words)
    run = fleet_run(
        story.folder / "new",
        TROUBLED,
        run_id="new",
        items=ITEMS,
        case=CASE,
        more=2,
        changes={
            "n07": {
                "counters/symbol_error: 0": "counters/symbol_error: 5",
                "dimm1/dimm_label: CPU_SrcID#0_MC#0_Chan#1_DIMM#0": "dimm1/dimm_label: P1-B1",
            },
            "n09": {"bios_version: 3.1": "bios_version: 2.9"},
            "n10": {"machine: none": "machine: kvm"},
        },
        after={
            "n07": {
                "edac/mc0/dimm1/dimm_ue_count: 0": "edac/mc0/dimm1/dimm_ue_count: 2",
                "counters/symbol_error: 5": "counters/symbol_error: 0",
            },
            "n08": {"vmstat/oom_kill: 0": "vmstat/oom_kill: 2"},
        },
        baseline=story.folder / "inventory/here/baselines/local/default",
        partition={"fabric": Fabric(rack=4)},
    )
    story.know(run)
    for host in ("n01", "n04"):
        place = run.folder / "workdir/steps/0001-fake" / host / "execution-1"
        (place / "noise.json").write_text(json.dumps([{**NODE, "host": host}]))
        seal(place)
    (cut,) = run.folder.glob("workdir/steps/0002-fake/n12/execution-1/stdout")
    cut.write_text("rate 1\n")
    shutil.rmtree(run.folder / "workdir/steps/0003-fake/n04")
    story.call("stage", "collect", run.folder)
    story.call("report", run.folder, "--json")
    story.page(run.products.report)
    story.file(run.products.verdict)
    story.file(run.products.vendor_list)
    story.call("verdict", run.folder)
    story.call("verdict", run.folder, "--all", "--strict")
    story.call("status", run.folder)
    story.call("trend", healthy.folder, run.folder)
    story.call("trend", healthy.folder, run.folder, "--nodes")
    verdict = judge_run(open_newest(run.folder))
    data = gather(open_newest(run.folder), verdict)
    for language, told in (("en", with_everything), ("en", with_little), ("ko", with_everything)):
        for name in MOST_SHOWN if language == "ko" else ():
            story.patch.setattr(f"proofmark.report.{name}", 2)
        with in_language(language):
            text = page("report.html", view(told(data)), "style.css")
        run.products.report.write_text(text, encoding="utf-8")
        story.page(run.products.report)


MOST_SHOWN = (
    *("sections.faulty_nodes.MOST_FIGURES", "sections.signed_sheets.MOST_SHOWN"),
    *("sections.node_provenance.MOST_KINDS", "summary.MOST_NAMED", "run_data.MOST_COMMANDS"),
)
"""How many of many the last page shows."""


def with_little(data: RunData) -> RunData:
    """Return the contents of a run of others that recorded nothing but figures."""
    verdict = data.verdict
    figures = [replace(each, members=LIKE_TARGETS) for each in verdict.fleet.figures]
    executed = replace(verdict.conditions, executed=False)
    fleet = replace(verdict.fleet, figures=tuple(figures))
    results = replace(verdict.results, fleet=fleet)
    little = replace(verdict, conditions=executed, results=results, bad=BadNodes())
    return replace(data, verdict=little, nodes=(), states=(), commands={}, software=None)


def with_everything(data: RunData) -> RunData:
    """Return the contents of a fleet with all that a verdict can state, each of it twice."""
    run, verdict = data.run, data.verdict
    failed = tuple(verdict.of("FAIL"))
    assert len(failed) > 2
    slow = [SlowFigure(result, -0.1 * number) for number, result in enumerate(failed, 1)]
    links = ((f"{each.result.record.node}-n12", each) for each in slow)
    causes = [
        Cause("rack", "r2", 3, 4, 5, 12, 0.00123, ("n02", "n03", "n11")),
        Cause("microcode", "0x1", 2, 3, 5, 12, 0.04, ("n02", "n03")),
    ]
    crashes = [
        Crash("n01", "0001-fake/n01", 1, 3, said("exit code 139")),
        Crash("n02", "0001-fake/n02", 1, 3, said("exit code 139")),
        Crash("n03", "0001-fake/n03", 2, 3, said("exit code 1"), "a known fault of <fake>"),
    ]
    disturbed = [
        DisturbedNode(node, 2, 3, (("stress", 0.4), ("cron", 0.1)), peers)
        for node, peers in (("n01", 0.1), ("n04", None))
    ]
    added = (*verdict.executions.added, *(Added(f"0001-fake/n0{n}", 1, 1) for n in range(1, 6)))
    stages = [
        StageFault(stage=stage, nodes="n[3-4]", code=code, text=f"the {stage} <failed>")
        for stage, code in (("scratch", "NO_SPACE"), ("restore", "UNREACHABLE"))
    ]
    of_target = tuple(
        replace(each, references=tuple(replace(of, kind=PEERS) for of in each.references))
        for each in failed
    )
    targets = [
        SlowTarget(target, "/scratch", of_target[place:], 8) for place, target in enumerate((3, 5))
    ]
    figures = verdict.fleet.figures
    compared = (*figures, replace(figures[0], members=LIKE_TARGETS))
    fleet = replace(verdict.fleet, figures=compared, spiked=np.arange(2))
    first, *others = verdict.bad.nodes
    bad = (
        replace(first, slow=first.slow * 4),
        replace(others[0], slow=first.slow * 3),
        *others[1:],
    )
    nodes = []
    for number, node in enumerate(data.nodes[2:]):
        idle = {"disturbances": (said(f"load {number % 2} of <a>"),)}
        jobs = [
            job.model_copy(update={"provenance": job.provenance.model_copy(update=idle)})
            for job in node.jobs
        ]
        nodes.append(node.model_copy(update={"jobs": tuple(jobs)}))
    modes = ("snc2", "snc1", "snc2")
    coverage = replace(
        verdict.coverage,
        duplicate=2,
        not_run=tuple(Uncovered(f"{n}-x", said(mode), mode=mode) for n, mode in enumerate(modes)),
        not_needed=tuple(Uncovered(f"{n}-y", said("as 1-x")) for n in range(3)),
        stopped_jobs=tuple(StoppedJob(f"00-000{n}", said(f"job {n} ended")) for n in (2, 3)),
    )
    worse = replace(
        verdict,
        bad=replace(verdict.bad, nodes=bad, links=tuple(links), causes=tuple(causes)),
        hardware=replace(verdict.hardware, basis=said("nothing states the parts")),
        executions=replace(
            verdict.executions,
            crashes=tuple(crashes),
            disturbed=tuple(disturbed),
            added=added,
        ),
        conditions=replace(
            verdict.conditions,
            stage_faults=tuple(stages),
            replaced=(said("ranks: 4 in place of 8"), said("threads: 1 in place of 2")),
        ),
        storage=replace(verdict.storage, targets=tuple(targets)),
        results=replace(verdict.results, fleet=fleet),
        coverage=coverage,
        degraded=Degraded(11, 14, ("n13", "n14", "n15")),
        counts={**verdict.counts, "UNJUDGED": 1200},
    )
    assert data.software
    (package,) = data.software.packages.values()
    packages = {
        "fake": package.model_copy(
            update={
                "findings": (said("an old kernel"), said("no threads")),
                "environment": {"A": "1", "B": "2"},
                "run_environment": {"UCX_TLS": "rc", "UCX_NET": "x"},
                "variants": {"kernel": {"right": {"C": "3"}, "none": {}}},
                "hash": "abc",
                "spec": "fake@1",
            }
        ),
        "other": package.model_copy(update={"findings": (said("an old kernel"),)}),
    }
    software = data.software.model_copy(update={"packages": packages})
    software = software.model_copy(update={"passed_on": {"HTTP_PROXY": "a", "LC_ALL": "C"}})
    partition = data.site.partition.model_copy(update={"host_cpus": "0-3"})
    plan = run.plan.model_copy(
        update={
            "assumed": ["node.clock", "rails"],
            "not_needed": {"0009-z": said("as 1"), "0010-z": said("as 1"), "0011-z": said("as 2")},
        }
    )
    drivers = {"ior": ("lustre", "ufs"), "mdtest": ()}
    return replace(
        data,
        verdict=worse,
        software=software,
        site=data.site.model_copy(update={"partition": partition}),
        run=replace(run, plan=plan),
        nodes=nodes,
        drivers=drivers,
        started=NOW,
        ended=NOW + timedelta(hours=25, minutes=3),
    )


NODES = ("n1", "n2", "n3")
PARTIES = ("buyer", "supplier", "witness")
TERMS: Sequence[Mapping[str, Any]] = (
    {**AGREED, "number": "P1", "text": "each node", "value": 90, "where": {"size": 1}},
    {**AGREED, "number": "P2", "text": "large", "value": 300, "where": {"size": 2}},
    {**AGREED, "number": "P3", "text": "a wish", "value": 150, "severity": "minor"},
    {**AGREED, "number": "P4", "text": "another case", "value": 9, "case": "other"},
    {"number": "K1", "text": "the cores", "check": "cores", "value": 40},
    {"number": "K2", "text": "the same BIOS", "check": "bios", "equal": True},
    {"number": "D1", "text": "delivery", "witnessed": "the delivery note"},
    {"number": "D2", "text": "noise", "witnessed": "a quiet room", "phase": "stability"},
    {"number": "D3", "text": "training", "witnessed": "a day", "system": "local"},
    {
        **{"number": "S1", "text": "in all", "derived": "sum", "items": ["P1", "P2"]},
        **{"value": 0.35, "unit": "GB/s", "at_least": 1, "weights": [1, 2]},
    },
    {
        **{"number": "S2", "text": "mean", "derived": "geometric-mean", "items": ["P1"]},
        **{"value": 99, "unit": "MB/s", "at_least": 1, "at_most": 1.2},
    },
)
MEMORY_ERROR = {"edac/mc0/dimm1/dimm_ue_count: 0": "edac/mc0/dimm1/dimm_ue_count: 2"}
OLDER = {"bios_version: 3.1": "bios_version: 2.9", "| kernel: 3.10.0-1160": "| kernel: 3.10.0-1127"}


@dataclass(frozen=True)
class Deal:
    """A site of three nodes with a contract, in the checkout of a story."""

    story: Story
    kit: Kit

    @classmethod
    def made(cls, story: Story) -> Deal:
        kit = make_kit(story.folder)
        kit.suites(quick={"title": "Quick"}, slow={"title": "Slow", "repeats": 3})
        kit.case(suites={"quick": {"scope": "each-node"}})
        kit.case("other", suites={"slow": {"scope": "each-node", "sweep": {"size": 1}}})
        deal = cls(story, kit)
        write_inventory(deal.inventory, NODES)
        path = deal.inventory / "group_vars/local/partition.yml"
        partition = yaml.safe_load(path.read_text(encoding="utf-8"))["partition"]
        programs = {"prefix": f"{story.folder / 'programs'}", "version": "1"}
        partition["preinstalled"] = {"fake": programs}
        path.write_text(yaml.safe_dump({"partition": partition}), encoding="utf-8")
        (story.folder / "galaxy.yml").touch()
        keys = {name: story.key(f"{name}@here") for name in PARTIES}
        signers = {name: [of_name[1].read_text("utf-8").strip()] for name, of_name in keys.items()}
        about = {"title": "Acceptance of a <test>", "parties": {"buyer": "B", "supplier": "S"}}
        path = deal.inventory / "contract.yml"
        for terms in ([{**TERMS[0], "runs": 9}], [{**TERMS[0], "metric": "none"}], TERMS):
            contract = {**about, "signers": signers, "items": [*map(dict, terms)]}
            path.write_text(yaml.safe_dump(contract), encoding="utf-8")
            deal.call("check")
        every = "".join(of_name[1].read_text("utf-8") for of_name in keys.values())
        (story.folder / "signers").write_text(every, encoding="utf-8")
        (story.folder / "note.txt").write_text("40 crates\n", encoding="utf-8")
        return deal

    @property
    def inventory(self) -> Path:
        return self.story.folder / "inventory/here"

    def measured(
        self,
        name: str,
        *rates: float,
        suite: str = "quick",
        changes: Mapping[str, str] = MappingProxyType({}),
        after: Mapping[str, str] = MappingProxyType({}),
        **facts: Any,
    ) -> Run:
        """Return a sealed run with a rate of each node, twice that for size 2.

        Args:
            name: the id of the run.
            rates: of the nodes; 0 is cut off.
            suite: what was run.
            changes: replacements in the probes of the last node.
            after: further ones in its probe after the job.
            facts: of the partition.
        """
        site = load_site(self.inventory, "local")
        partition = site.partition.model_copy(update=facts)
        site = site.model_copy(update={"partition": partition})
        plan = self.kit.plan(suite, site=site, repeats=2)
        inputs = RunInputs(plan, self.kit.benchmarks(), site, "")
        run, _ = start_or_continue(self.story.folder / "runs", inputs, run_id=name)
        write_software(run, self.kit.software())
        for step, place in zip(run.plan.steps(), steps_of(run), strict=True):
            for host, rate in zip(NODES, rates, strict=True):
                size = int(step.parameters["size"])
                text = f"size {size}\nrate {rate * size}\n" + "END\n" * (rate > 0)
                write_execution(place / host, host, {"stdout": text})
        probe = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
        for job in run.plan.jobs():
            for host in NODES:
                own = named_probe(probe, host)
                if host == NODES[-1]:
                    own = changed(own, changes)
                end = changed(own, after) if host == NODES[-1] else own
                write_probes(run, job.id, host, own, end)
        self.story.know(run)
        self.story.sleep(86400)
        self.story.call("stage", "collect", run.folder)
        return run

    def call(self, verb: str, *words: str | Path) -> int:
        return self.story.call("acceptance", verb, "-i", self.inventory, *words)

    def stated(self, verb: str, item: str, by: str, *words: str | Path) -> int:
        about = ("--item", item, "--by", f"{by}@here", "--reason", f"seen <by> {by}")
        return self.call(verb, *about, "--key", f"keys/{by}@here", *words)


def acceptance(story: Story) -> None:
    """A contract with each kind of item, from the first check to the signatures of its page."""
    deal = Deal.made(story)
    page, runs = story.folder / "runs/acceptance-here", story.folder / "runs"
    deal.call("judge")
    deal.call("sign", "--key", "keys/buyer@here")
    deal.call("measure")
    (story.folder / "a note.txt").touch()
    deal.stated("witness", "D1", "buyer", "--attach", "a note.txt")
    first = deal.measured("first", 100, 101, 80, after=MEMORY_ERROR)
    story.tree(first.folder, "nodes/n3.json")
    story.file(first.folder / "run.json")
    story.call("report", first.folder)
    deal.measured("rehearsal", 100, 100, 100, origin="emulated")
    deal.call("judge")
    story.page(page / "acceptance.html")
    story.file(page / "acceptance.json")
    deal.measured("second", 100, 101, 102)
    gone = deal.measured("gone", 10, 10, 10)
    story.call("report", gone.folder)
    shutil.rmtree(gone.folder)
    deal.stated("witness", "D1", "buyer", "--attach", "note.txt")
    deal.stated("witness", "D2", "witness", "--missed")
    deal.stated("witness", "D3", "supplier")
    deal.stated("witness", "P1", "buyer")
    deal.stated("witness", "D1", "buyer", "--attach", "no.txt")
    deal.stated("waive", "P2", "supplier")
    deal.call("judge")
    story.page(page / "acceptance.html")
    deal.stated("waive", "P2", "buyer")
    deal.stated("waive", "P2", "buyer")
    deal.stated("waive", "P1", "buyer")
    deal.stated("waive", "P4", "buyer")
    deal.call("waive", "--item", "P3", "--by", "buyer@here", "--key", "keys/buyer@here")
    deal.call("waive", "--item", "P3", "--by", "buyer@here", "--reason", "r")
    deal.stated("waive", "P3", "supplier", "--key", "keys/buyer@here")
    deal.call("judge")
    deal.call("judge", "--json")
    story.page(page / "acceptance.html")
    story.file(deal.inventory / "waivers.json")
    deal.call("sign")
    deal.call("sign", "--key", "keys/buyer@here")
    signed = page / "signed/0001"
    verify = ("verify", page, "--signers", "signers")
    story.call(*verify)
    story.call("sign", signed, "--key", "keys/supplier@here")
    story.call(*verify)
    story.call("verify", signed, "--signers", "keys/buyer@here.signers")
    story.call("verify", signed, "--signers", "keys/witness@here.signers")
    story.file(signed / "statement.json")
    story.call("verify", signed, "--signers", "signers", "--revoked", "keys/buyer@here.pub")
    for name, change in OTHER_STATEMENTS.items():
        copy = story.folder / "copies/of/the/acceptance" / name
        shutil.copytree(signed, copy, symlinks=True)
        change(copy)
        story.call("sign", copy, "--key", "keys/witness@here")
    deal.measured("third", 100, 101, 0, suite="slow", changes=OLDER, after=MEMORY_ERROR)
    deal.call("judge")
    story.call(*verify)
    deal.call("judge", "--run", runs / "second", "-o", story.folder / "named")
    deal.call("judge", "--run", runs / "rehearsal")
    story.page(story.folder / "named/acceptance.html")
    deal.call("sign", "--key", "keys/witness@here")
    story.call(*verify)
    deal.call("judge", "--language", "ko")
    story.page(page / "acceptance.html")
    data = page / "signed/0002/acceptance.json"
    data.write_text(data.read_text("utf-8").replace("UNJUDGED", "PASS"), encoding="utf-8")
    story.call(*verify)
    deal.call("sign", "--key", "keys/witness@here")
    (runs / "first/evidence").chmod(0o777)
    deal.call("judge")
    deal.call("judge", "--run", runs / "first")


def unfinished(story: Story) -> None:
    """A run with a step in each state, while it runs and when it was interrupted."""
    kit = make_kit(story.folder)
    sizes = [*range(1, 19)]
    kit.case(sweep={"size": sizes}, cost={"seconds": 10})
    run = kit.run(run_id="half")
    story.know(run)
    story.call("status", run.folder)
    first, failed, late, damaged, undated, disturbed, again, *more = steps_of(run)
    for folder in (first, damaged, undated):
        write_execution(folder, "n1", {"stdout": "size 1\nrate 100\nEND\n"}, seconds=20)
    write_execution(failed, "n1", exit_code=3, seconds=40)
    write_execution(late, "n1", exit_code=124, seconds=60, timed_out=True)
    (damaged / "execution-1/rc").write_text("x\n")
    (undated / "execution-1/when.json").write_text("{}")
    for folder, executions in ((disturbed, 3), (again, 1)):
        for number in range(1, executions + 1):
            write_execution(folder, "n1", {"noise.json": json.dumps([NODE])}, number=number)
            (folder / f"execution-{number}/disturbed").touch()
    for number, folder in enumerate(more[:7]):
        started = folder / "unfinished-1/started"
        started.parent.mkdir(parents=True)
        started.touch()
        began = NOW.timestamp() - 60 * number
        os.utime(started, (began, began))
    (job,) = run.plan.jobs()
    attempt = run.files.job(job.id).folder / "attempt-1"
    attempt.mkdir(parents=True)
    repeats = [f"left 3 {disturbed.name} {disturbed.name}", f"start 2 {again.name} {again.name}"]
    (attempt / "repeats").write_text("".join(f"{line}\n" for line in repeats))
    for options in ((), ("--steps",), ("--json",), ("--plan",)):
        story.call("status", run.folder, *options)
    with state_lock(run.folder / "lock", run.id):
        story.call("status", run.folder)
        story.call("status", run.folder, "--json")
        story.call("report", run.folder)
    story.call("verdict", run.folder)
    history = run.files.queued(job.id).history
    history.parent.mkdir(parents=True, exist_ok=True)
    about = {"time": "2031-02-03T04:00:00Z", "scheduler": "slurm", "job": "7", "reason": ""}
    for events in (
        [{"state": "RUNNING"}, {"state": "TIME_LIMIT"}],
        [
            {"state": "WAITING", "without": "n[1-2]", "by_kit": "n2"},
            {"state": "NODE_FAILED", "without": "n3", "reason": "NodeFail <n3>"},
        ],
    ):
        lines = (json.dumps({**about, **event}) + "\n" for event in events)
        history.write_text("".join(lines), encoding="utf-8")
        story.call("status", run.folder)
        story.call("verdict", run.folder, "--all")
    with history.open("a", encoding="utf-8") as file:
        file.write('x\n{"state": "RUNNING"}\n')
    story.call("status", run.folder, "--json")
    story.call("stage", "collect", run.folder)
    story.call("report", run.folder, "--json")
    story.page(run.products.report)
    key, _ = story.key("ida@buyer")
    story.call("sign", run.folder, "--key", key)


def evidence(story: Story) -> None:
    """Sealed files that are changed later, and each kind of damage of the archives."""
    key, signers = story.key("ida@buyer")
    rates = {"n1": [100.0], "n2": [101.0]}
    run = fleet_run(story.folder / "kit", rates, run_id="one", items=ITEMS[:1])
    story.know(run)
    story.call("verify", run.folder, "--signers", signers)
    story.call("sign", run.folder, "--key", key)
    story.call("stage", "collect", run.folder)
    story.call("stage", "collect", run.folder)
    story.call("sign", run.folder, "--key", key)
    story.call("report", run.folder)
    story.call("sign", run.folder, "--key", key)
    story.file(run.folder / "signed/0001/statement.json")
    place = run.folder / "workdir/steps/0001-fake"
    (place / "n1/execution-1/stdout").write_text("size 1\nrate 200\nEND\n")
    (place / "n2/execution-1/stderr").unlink()
    (place / "n2/execution-1/more").write_text("new\n")
    (place / "n2/execution-1/link").symlink_to("stdout")
    write_execution(place / "n2", "n2", {"stdout": "size 1\nrate 102\nEND\n"}, number=2)
    story.sleep(3600)
    story.call("stage", "collect", run.folder)
    story.tree(run.folder / "evidence")
    story.call("verdict", run.folder)
    story.call("report", run.folder)
    story.page(run.products.report)
    story.call("verify", run.folder, "--signers", signers)
    story.call("sign", run.folder, "--key", key)
    story.call("verify", run.folder, "--signers", signers)
    copies = story.folder / "copies/of/this/run"
    shutil.copytree(run.folder, copies / "two", symlinks=True)
    story.call("verdict", copies / "two", "--json")
    story.call("verify", copies / "two", "--signers", signers)
    story.call("sign", copies / "two", "--key", key)
    for name, damage in DAMAGES.items():
        copy = copies / name / "one"
        shutil.copytree(run.folder, copy, symlinks=True)
        damage(copy / "evidence")
        story.call("verdict", copy)
        story.call("stage", "collect", copy)
    for name, most in MOST.items():
        with story.patch.context() as patch:
            patch.setattr(f"proofmark.runs.evidence.{name}", most)
            copy = copies / name / "one"
            shutil.copytree(run.folder, copy, symlinks=True)
            (copy / "workdir/steps/0001-fake/later").touch()
            story.call("verdict", copy)
            story.call("stage", "collect", copy)
    (run.folder / "workdir/steps/0001-fake/later").touch()
    with story.patch.context() as patch:
        full = Mock(side_effect=OSError(ENOSPC, os.strerror(ENOSPC)))
        patch.setattr("proofmark.runs.evidence._write", full)
        story.call("stage", "collect", run.folder)
    for name, change in FORGERIES.items():
        copy = copies / f"signed-{name}"
        shutil.copytree(run.folder / "signed/0002", copy, symlinks=True)
        change(copy)
        story.call("verify", copy, "--signers", signers)
        story.call("sign", copy, "--key", key)


def outputs(story: Story) -> None:
    """The outputs of others, with a slow node and a slow pair."""
    faults = Faults({"x0002": 0.7}, {("x0003", "x0004"): 0.5})
    story.patch.setenv("PROOFMARK_KIT", f"{ROOT}")
    write_cluster(story.folder / "vendor", (Group("x", 5), Group("y", 2, 0.6)), faults)
    shutil.rmtree(story.folder / "vendor/lat")
    run = story.folder / "runs/theirs"
    story.call("adopt", "vendor")
    story.call("adopt", "vendor", "--accept", "--runs", "runs", "--run-id", run.name)
    story.know(open_run(run))
    for options in ((), ("--steps",), ("--json",)):
        story.call("status", run, *options)
    story.call("report", run)
    story.page(open_run(run).products.report, FEW_ROWS)
    story.call("verdict", run)


MOST = {"MAX_EVIDENCE_BYTES": 5000, "MAX_EVIDENCE_FILES": 10, "MAX_ARCHIVES": 2}
"""Limits of the size of evidence that a small run exceeds."""


def _sums(folder: Path, change: Callable[[list[str]], list[str]]) -> None:
    path = folder / "SHA256SUMS"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(change(lines)), encoding="utf-8")


def _swapped(folder: Path) -> None:
    first, second = folder / "0001.tar", folder / "0002.tar"
    first.rename(folder / "x")
    second.rename(first)
    (folder / "x").rename(second)
    _sums(
        folder, lambda lines: [f"{lines[1][:64]}{lines[0][64:]}", f"{lines[0][:64]}{lines[1][64:]}"]
    )


def _cut(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1024])


DAMAGES: Mapping[str, Callable[[Path], None]] = {
    "no-archive": lambda folder: (folder / "0002.tar").unlink(),
    "cut": lambda folder: _cut(folder / "0001.tar"),
    "swapped": _swapped,
    "unlisted": lambda folder: _sums(folder, lambda lines: lines[:1]),
    "renumbered": lambda folder: _sums(folder, lambda lines: lines[1:]),
    "no-sum": lambda folder: _sums(folder, lambda lines: ["x\n", *lines]),
    "writable": lambda folder: folder.chmod(0o777),
    "no-list": lambda folder: (folder / "SHA256SUMS").unlink(),
}
"""What is done to a folder of archives."""


def _text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.chmod(0o644)
        path.write_text(text.replace(old, new), encoding="utf-8")

    return change


FORGERIES: Mapping[str, Callable[[Path], None]] = {
    "word": _text("statement.json", '"word": "PASS"', '"word": "FAIL"'),
    "page": _text("report.html", "PASS", "FAIL"),
    "list": _text("rma.csv", "node", "edon"),
    "added": lambda folder: (folder / "more.txt").touch(),
    "removed": lambda folder: (folder / "verdict.json").unlink(),
    "no-evidence": lambda folder: shutil.rmtree(folder / "evidence"),
    "no-statement": lambda folder: (folder / "statement.json").unlink(),
    "no-signature": lambda folder: (folder / "statement.json.sig").unlink(),
}
"""What is done to a signed folder."""


def _renamed(folder: Path) -> None:
    _text("statement.json", "runs/second/", "runs/zero/")(folder)
    (folder / "runs/second").rename(folder / "runs/zero")


OTHER_STATEMENTS: Mapping[str, Callable[[Path], None]] = {
    "id": _text("statement.json", '"id": "acceptance-here"', '"id": "acceptance-x"'),
    "partition": _text("statement.json", '"local": {', '"other": {'),
    "word": _text("statement.json", '"word": "FAIL"', '"word": "PASS"'),
    "waiver": _text("statement.json", "seen <by> supplier", "seen <by> buyer"),
    "run": _renamed,
    "versions": _text("statement.json", f'"jinja2": "{version("jinja2")}"', '"jinja2": "1.2.3"'),
}
"""What is done to the statement of an acceptance, which then another party is to sign."""


STORIES: Mapping[str, Callable[[Story], None]] = {
    each.__name__: each for each in (sample, fleet, acceptance, unfinished, evidence, outputs)
}


def reference(archive: Path, folder: Path) -> tuple[str, str, str]:
    """Unpack a reference run into `folder`, and judge it.

    Returns:
        Its page, the content of its verdict, and the text of the page for its file.
    """
    with stage(folder) as patch:
        unpack(archive, folder)
        (path,) = folder.iterdir()
        run = open_run(path)
        page = page_of(run, written_verdict(run))
        story = Story(folder, patch)
        story.page(run.products.report, MOST_ROWS)
        return page, run.files.verdict.read_text(encoding="utf-8"), story.text


FEW_ROWS = 5
MOST_ROWS = 25
"""The rows of a table of a reference run that its file has. A test compares all with the JSON."""


def of_reference(archive: Path) -> Path:
    """Return the file with the text of the page of a reference run."""
    return golden(f"reference-{archive.name.partition('.')[0]}")


def text_of(name: str, folder: Path) -> str:
    """Tell a story with its files below `folder`; return its text."""
    folder = of_one_length(folder)
    with stage(folder) as patch:
        story = Story(folder, patch)
        STORIES[name](story)
        return story.text


def golden(name: str) -> Path:
    """Return the file with the text of a story."""
    return GOLDEN / f"{name}.txt"


def main() -> None:
    """Write the texts of the named stories, or of all and of the reference runs."""
    for archive in () if sys.argv[1:] else archives():
        with TemporaryDirectory(prefix="pm-") as folder:
            text = reference(archive, Path(folder).resolve())[2]
            of_reference(archive).write_text(text, encoding="utf-8")
    for name in sys.argv[1:] or STORIES:
        with TemporaryDirectory(prefix="pm-") as folder:
            golden(name).write_text(text_of(name, Path(folder).resolve()), encoding="utf-8")


if __name__ == "__main__":
    main()
