"""A contract of seven items on eight virtual nodes: three suites, one page, one word."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.emulators.vcluster import Cluster, Slurm
from tests.fixtures.fleet import write_inventory
from tests.fixtures.kit import Kit, make_kit, write_contract
from tests.roles.kit import DECLARED
from tests.roles.kit import Kit as PlayKit

from proofmark.cli.main import main
from proofmark.jobs.execute import execute
from proofmark.runs.evidence import seal
from proofmark.site.inventory import load_site

pytestmark = [pytest.mark.root, pytest.mark.slow]

SUITES: dict[str, tuple[str, str | int, Sequence[str]]] = {
    "node": ("each-node", 1, ("triad", "hpl")),
    "links": ("each-pair", 2, ("latency", "bandwidth")),
    "system": ("job", 1, ("write", "read", "files")),
}
"""The scope of each suite, the nodes of its steps, and its cases: the seven items."""
MEASURES = """
name=$1 rate=100
[ -e "$FAULTS/$(uname -n).$name" ] && rate=50
[ -e "$FAULTS/broken.$name" ] && exit 1
echo "size $2"; echo "rate $rate"; echo END
"""
"""A program whose rate halves on a node with the fault of this name."""


@dataclass(frozen=True)
class Site:
    kit: Kit
    names: Sequence[str]

    @property
    def inventory(self) -> Path:
        return self.kit.folder / "inventory/here"

    def plant(self, fault: str) -> None:
        (self.kit.folder / "faults" / fault).touch()

    def repair(self, fault: str) -> None:
        (self.kit.folder / "faults" / fault).unlink()

    def measure(self, suite: str, name: str, limit: str = "local") -> None:
        """Plan, execute and seal the run `name` of a suite on the nodes of `limit`."""
        site = load_site(self.inventory, limit)
        run = self.kit.run(site=site, plan=self.kit.plan(suite, site=site), run_id=name)
        execute(run, "slurm", lambda line: None)
        seal(run.folder)

    def judged(self, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
        """Return the exit code of the command, and what it printed."""
        capsys.readouterr()
        runs = f"{self.kit.folder / 'runs'}"
        code = main(["acceptance", "judge", "-i", f"{self.inventory}", "--runs", runs])
        return code, capsys.readouterr().out

    @property
    def written(self) -> dict[str, Any]:
        path = self.kit.folder / "runs/acceptance-here/acceptance.json"
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content

    @property
    def page(self) -> str:
        path = self.kit.folder / "runs/acceptance-here/acceptance.html"
        return re.sub("<[^>]*>", "", path.read_text(encoding="utf-8"))

    def outcomes(self) -> dict[str, str]:
        return {each["number"]: each["outcome"] for each in self.written["items"]}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    kit = make_kit(tmp_path)
    kit.program(MEASURES)
    (kit.cases / "fake.yml").unlink()
    kit.suites(**{suite: {"title": suite} for suite in SUITES})
    faults = tmp_path / "faults"
    faults.mkdir()
    for suite, (scope, nodes, cases) in SUITES.items():
        for name in cases:
            kit.case(
                name,
                arguments=[name, "{size}"],
                environment={"FAULTS": f"{faults}"},
                suites={suite: {"scope": scope, "sweep": {"size": 1, "nodes": nodes}}},
            )
    monkeypatch.setenv("PROOFMARK_KIT", f"{tmp_path}")
    with Cluster(tmp_path / "cluster", 8, shared=[tmp_path]) as cluster, Slurm(cluster):
        monkeypatch.setenv("PATH", f"{cluster.bin}:{os.environ['PATH']}")
        made = Site(kit, cluster.names)
        write_site(made)
        yield made


def write_site(site: Site) -> None:
    """Write the inventory of the virtual nodes, with seven items in three phases."""
    write_inventory(site.inventory, site.names)
    hosts = yaml.safe_load((site.inventory / "hosts.yml").read_text(encoding="utf-8"))
    hosts["all"]["children"]["compute"]["children"]["local"]["hosts"] = {
        name: {} for name in site.names
    }
    (site.inventory / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    path = site.inventory / "group_vars/local/partition.yml"
    partition = yaml.safe_load(path.read_text(encoding="utf-8"))["partition"]
    partition |= {"scheduler": "slurm", "queue": {"name": "knl", "stall_timeout_s": 5}}
    partition["scratch"] = {"path": f"{site.kit.folder / 'scratch'}"}
    seen = "pack:1 [numa(memory=10GiB)] l3:1(size=8MiB) core:2 pu:1"  # by the probe of the kit
    partition["node"] = {**DECLARED["node"], "topology": seen}
    prefix = {"prefix": f"{site.kit.folder / 'programs'}", "version": "1"}
    partition["preinstalled"] = {"fake": prefix}
    path.write_text(yaml.safe_dump({"partition": partition}), encoding="utf-8")
    phases = {"node": "functionality", "links": "performance", "system": "stability"}
    items = [
        {
            "number": f"{place}.{number}",
            "text": f"the {name} of each",
            "phase": phases[suite],
            **{"case": name, "metric": "rate", "value": 90, "unit": "MB/s", "at_least": 1},
        }
        for place, (suite, (_, _, cases)) in enumerate(SUITES.items(), 1)
        for number, name in enumerate(cases, 1)
    ]
    contract = {"title": "Seven items", "parties": {"buyer": "B", "supplier": "S"}}
    (site.inventory / "contract.yml").write_text(
        yaml.safe_dump({**contract, "items": items}), encoding="utf-8"
    )


def test_seven_items_of_three_suites_are_one_word(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """The healthy machine passes; then three faults are planted, and repaired."""
    site.measure("node", "first")
    code, printed = site.judged(capsys)
    assert (code, site.written["word"]) == (4, "UNJUDGED"), printed
    assert "Still missing: 2.1, 2.2: links" in printed and "-e suite=links" in printed
    assert "Still missing: 3.1, 3.2, 3.3: system" in printed and "-e suite=system" in printed

    site.measure("links", "second")
    site.measure("system", "third")
    code, printed = site.judged(capsys)
    assert (code, site.written["word"]) == (0, "PASS"), printed
    assert "PASS: 7 of 7 items met" in printed
    table = [line for line in printed.splitlines() if "acceptance.html" not in line]
    assert max(map(len, table)) <= 100  # the page may be deep in folders
    for each in site.written["items"]:
        (evidence,) = each["evidence"]
        run = {"1": "first", "2": "second", "3": "third"}[each["number"][0]]
        assert evidence["run"] == run
        assert each["value"] == 100 and each["at_least"] == 90
    assert [each["word"] for each in site.written["phases"]] == ["PASS"] * 3

    bad = site.names[2]
    for fault in (f"{bad}.triad", f"{bad}.latency", "broken.files"):
        site.plant(fault)
    for suite, name in (("node", "fourth"), ("links", "fifth"), ("system", "sixth")):
        site.measure(suite, name)
    code, printed = site.judged(capsys)
    assert (code, site.written["word"]) == (1, "FAIL"), printed
    outcomes = site.outcomes()
    assert {number for number, word in outcomes.items() if word != "PASS"} == {"1.1", "2.1", "3.3"}
    assert (outcomes["1.1"], outcomes["2.1"], outcomes["3.3"]) == ("FAIL", "FAIL", "INVALID")
    page = site.page
    assert page.count(bad) and "fourth" in page and "Signature" in page
    words = {each["phase"]: each["word"] for each in site.written["phases"]}
    assert words == {"functionality": "FAIL", "performance": "FAIL", "stability": "INVALID"}

    for fault in (f"{bad}.triad", f"{bad}.latency", "broken.files"):
        site.repair(fault)
    site.measure("node", "seventh", limit=bad)
    site.measure("links", "eighth")
    site.measure("system", "ninth")
    code, printed = site.judged(capsys)
    assert (code, site.written["word"]) == (0, "PASS"), printed
    assert "1.1: FAIL before: fourth" in printed
    assert "3.3: INVALID before: sixth" in printed
    assert "FAIL before: fourth" in site.page


class TestWithoutASuite:
    """``acceptance.yml`` without a suite measures what the contract needs."""

    ITEMS = (
        {"number": "1", "where": {"seconds": 0}, "phase": "functionality"},
        {"number": "2", "where": {"seconds": 4}, "phase": "performance"},
    )

    @pytest.fixture
    def agreed(self, kit: PlayKit) -> PlayKit:
        """Return a kit with an item for each of its two suites."""
        of_nap = {"case": "nap", "metric": "rate", "value": 50, "unit": "MB/s", "at_least": 1}
        items = [{"text": "the rate", **of_nap, **each} for each in self.ITEMS]
        write_contract(kit.folder / "inventory/local", items)
        return kit

    def written(self, kit: PlayKit) -> dict[str, Any]:
        path = kit.folder / "runs/acceptance-local/acceptance.json"
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content

    def suites(self, kit: PlayKit) -> list[str]:
        plans = sorted((kit.folder / "runs").glob("*Z-*/plan.json"))
        return [json.loads(path.read_text(encoding="utf-8"))["suite"] for path in plans]

    def test_it_stops_at_the_first_suite_that_fails_continues_and_ends_with_the_page(
        self, agreed: PlayKit
    ) -> None:
        ahead = agreed.play("acceptance.yml", "--check")
        assert (ahead.code, self.suites(agreed)) == (4, []), ahead.output
        assert ahead.printed("acceptance: quick") and ahead.printed("acceptance: slow")
        case = agreed.folder / "benchmarks/nap.yml"
        good = case.read_text(encoding="utf-8")
        case.write_text(good.replace("rate: 100", "rate: 10"), encoding="utf-8")
        played = agreed.play("acceptance.yml")
        assert (played.code, self.suites(agreed)) == (1, ["quick"]), played.output
        assert [each["outcome"] for each in self.written(agreed)["items"]] == ["FAIL", "UNJUDGED"]

        case.write_text(good, encoding="utf-8")
        repaired = agreed.play("acceptance.yml")
        assert repaired.code == 0, repaired.output
        assert self.suites(agreed) == ["quick", "quick", "slow"]
        assert repaired.output.rstrip().splitlines()[-2].startswith("PASS: 2 of 2 items met")
        written = self.written(agreed)
        assert [each["word"] for each in written["phases"]] == ["PASS", "PASS"]
        assert all(each["evidence"] for each in written["items"])
        (earlier,) = written["items"][0]["other_runs"]
        assert earlier["outcome"] == "FAIL"
        again = agreed.play("acceptance.yml")
        assert (again.code, len(self.suites(agreed))) == (0, 3), again.output

    def test_a_suite_that_is_refused_ends_it(self, agreed: PlayKit) -> None:
        """Without an accepted argument the play measures nothing, and no page claims it."""
        refused = agreed.play("acceptance.yml", "-e", "repeats=none")
        assert refused.code not in (0, 1), refused.output
        assert self.suites(agreed) == []
        assert refused.printed("repeats")
