"""The items of a contract: their rules, and their rows in each product of a verdict."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from tests.fixtures.finished import written_verdict
from tests.fixtures.fleet import write_inventory
from tests.fixtures.kit import known_case, make_kit
from tests.fixtures.report_run import made_run, page_of
from tests.folders import ROOT
from tests.unit.judge.test_headline import verdict
from tests.unit.judge.test_verdict import record

from proofmark.cases.suite import Benchmarks
from proofmark.cli.main import main
from proofmark.judge.ending import ending
from proofmark.judge.judging import judge_run
from proofmark.packages.exports.junit import suite_of
from proofmark.plan.plan import Plan
from proofmark.records.columns import Record
from proofmark.report.run_data import gather
from proofmark.report.sections import issues
from proofmark.report.sections.signed_sheets import exceptions
from proofmark.runs.evidence import seal
from proofmark.runs.run import Run
from proofmark.site.contract_document import Contract, ContractItem

Known = tuple[Plan, Benchmarks]


known = known_case(sweep={"size": [1, 2]})


def item(number: str = "1", **changes: Any) -> ContractItem:
    fields: dict[str, Any] = {"case": "fake", "metric": "rate", "value": 100, "unit": "MB/s"}
    fields |= {"number": number, "text": f"text of {number}", "at_least": 1, **changes}
    return ContractItem.model_validate(fields)


def repeats(*values: float, node: str = "n1") -> list[Record]:
    """Return the repeats of step 1 on a node."""
    return [
        record(1, step=f"000{1 + place}-fake-1", repeat=place, value=value, node=node)
        for place, value in enumerate(values, 1)
    ]


class TestRules:
    @pytest.mark.parametrize(
        ("rule", "values", "outcome"),
        [
            ({"of": "best"}, (80, 101, 70), "PASS"),
            ({"of": "best"}, (80, 99, 70), "FAIL"),
            ({"of": "worst"}, (101, 102, 103), "PASS"),
            ({"of": "worst"}, (99, 102, 103), "FAIL"),
            ({"of": "median"}, (97, 97.5, 98), "FAIL"),
            ({"of": "median"}, (99, 99, 103), "UNJUDGED"),
            ({"of": "best", "runs": 4}, (101, 102, 103), "UNJUDGED"),
            ({"of": "best", "runs": 3}, (101, 102, 103), "PASS"),
            ({"of": "worst", "at_least": None, "at_most": 1}, (99, 102, 90), "FAIL"),
            ({"of": "best", "at_least": None, "at_most": 1}, (99, 98, 90), "PASS"),
            ({"scatter": {"cov_percent": 1, "runs": 3}}, (101, 101.5, 102), "PASS"),
            ({"scatter": {"cov_percent": 1, "runs": 3}}, (101, 120, 110), "FAIL"),
            ({"scatter": {"cov_percent": 1, "runs": 4}}, (101, 101.5, 102), "UNJUDGED"),
        ],
    )
    def test_the_repeats(
        self, known: Known, rule: dict[str, Any], values: tuple[float, ...], outcome: str
    ) -> None:
        """The best repeat is the furthest from the limit, on the accepted side."""
        found = verdict(known, repeats(*values), limits=[item(where={"size": 1}, **rule)])
        (limit,) = found.contract
        assert limit.outcome == outcome
        assert found.counts[outcome] == 1

    @pytest.mark.parametrize(
        ("share", "bad", "outcome"), [(1, 1, "FAIL"), (0.9, 1, "PASS"), (0.9, 2, "FAIL")]
    )
    def test_the_share_of_nodes(self, known: Known, share: float, bad: int, outcome: str) -> None:
        nodes = [f"n{number}" for number in range(1, 11)]
        records = [
            each
            for place, node in enumerate(nodes)
            for each in repeats(*[99 if place < bad else 101 + 2 * place] * 3, node=node)
        ]
        found = verdict(known, records, limits=[item(where={"size": 1}, nodes=share)])
        (limit,) = found.contract
        assert (limit.outcome, limit.nodes) == (outcome, (10 - bad, 10))
        assert found.counts["FAIL"] == (bad if outcome == "FAIL" else 0)
        assert found.counts["UNJUDGED"] >= (0 if outcome == "FAIL" else bad)

    def test_each_node_that_the_share_excuses_is_named(self, known: Known) -> None:
        """Two nodes have no peers: only the item compares the one at 1 % of the value."""
        records = [record(1, node="n1", value=120), record(1, node="n2", value=1)]
        found = verdict(known, records, limits=[item("7", where={"size": 1}, nodes=0.5)])
        (limit,) = found.contract
        assert limit.outcome == "PASS"
        ((excused),) = limit.excused
        assert (excused.node, excused.value, excused.unit) == ("n2", 1, "MB/s")
        (named,) = found.excused
        assert named.startswith("n2: fake rate size=1 1 MB/s misses item 7 and is excused: ")
        assert "1 of 2 nodes meet the item" in named
        written = found.head()
        assert written["excused"] == [named]
        assert written["limits"][0]["excused"][0]["node"] == "n2"
        assert any("n2: fake rate" in line for line in ending(found, "r", "f"))
        suite = suite_of(found)
        (of_item,) = [each for each in suite if each.get("classname") == "contract"]
        assert [child.tag for child in of_item] == ["system-out"]
        assert named in (of_item[0].text or "")

    def test_a_share_that_all_nodes_meet_excuses_none(self, known: Known) -> None:
        records = [record(1, node="n1", value=120), record(1, node="n2", value=130)]
        found = verdict(known, records, limits=[item(where={"size": 1}, nodes=0.5)])
        assert found.excused == ()
        assert "excused" not in found.head()

    def test_a_minor_item_fails_no_acceptance(self, known: Known) -> None:
        minor = item("2", where={"size": 2}, severity="minor")
        good, bad = record(1, value=150), record(2, value=50)
        found = verdict(known, [good, bad], limits=[item(where={"size": 1}), minor])
        assert found.exit_code() == 0
        assert found.headline().text.startswith("1 of 2 contract limits; minor items not met: 1")
        assert [each.outcome for each in found.contract] == ["PASS", "FAIL"]

    def test_a_scatter_needs_three_repeats_and_numbers_are_unique(self) -> None:
        with pytest.raises(ValidationError, match=r"scatter\.runs"):
            item(scatter={"cov_percent": 3, "runs": 2})
        with pytest.raises(ValidationError, match="the number 1 is there twice"):
            Contract(title="t", parties={"buyer": "b"}, items=[item(), item()])


def twenty() -> Contract:
    """Return 20 items: 15 are met, 3 and a minor one are missed, one has no row."""

    def latency(number: int, size: int, most: float) -> ContractItem:
        changes = {"case": "imb-pingpong", "metric": "t_avg", "unit": "usec", "value": most}
        return item(f"4.{number}", where={"bytes": size}, at_least=None, at_most=1, **changes)

    sizes = [2**power for power in range(15)]
    met = [latency(number, size, 1e6) for number, size in enumerate(sizes, 1)]
    missed = [latency(number, 2**number, 1e-4) for number in range(16, 20)]
    missed[-1] = missed[-1].model_copy(update={"severity": "minor"})
    parties = {"buyer": "B", "supplier": "S"}
    items = [*met, *missed, latency(20, 3, 1e6)]
    return Contract(title="T", parties=parties, items=items)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    return seal(made_run(folder, contract=twenty()).folder).run()


@pytest.mark.fault("contract-items")
def test_twenty_items_in_every_product(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    answer = written_verdict(run)
    top = answer.headline()
    assert top.word == "FAIL"
    assert top.text.startswith("15 of 20 contract limits; minor items not met: 1")
    outcomes = {each.item.number: each.outcome for each in answer.contract if each.item}
    assert outcomes == {
        **{f"4.{number}": "PASS" for number in range(1, 16)},
        **{f"4.{number}": "FAIL" for number in range(16, 20)},
        "4.20": "UNJUDGED",
    }
    assert answer.counts["FAIL"] == 3
    assert len(answer.unmet) == 1 and "4.20" in answer.unmet[0]

    suite = suite_of(answer)
    cases = [each for each in suite if each.get("classname") == "contract"]
    kinds = [child.tag for each in cases for child in each]
    assert (len(cases), kinds.count("failure"), kinds.count("skipped")) == (20, 3, 2)
    minor = next(each for each in cases if (each.get("name") or "").startswith("4.19"))
    assert (minor[0].get("message") or "").startswith("FAIL")
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(attribute) or -1) == len(suite.findall(f"testcase/{tag}"))
    assert int(suite.get("tests") or 0) == len(suite.findall("testcase"))

    written = json.loads(run.products.verdict.read_text(encoding="utf-8"))
    rows = {each["number"]: each for each in written["limits"]}
    assert rows["4.19"]["severity"] == "minor" and rows["4.16"]["outcome"] == "FAIL"
    page = page_of(run, answer)
    assert all(f">{number}<" in page for number in outcomes)
    (excused,) = answer.excused
    assert "misses item 4.19 and is excused: " in excused and "item 4.19 is minor" in excused
    assert main(["verdict", f"{run.products.folder}"]) == 1
    assert excused in capsys.readouterr().out
    assert "Missed, but excused" in page and "misses item 4.19" in page
    data = gather(run, answer)
    (row,) = [each for each in exceptions(data) if each[0] == "EXCUSED"]
    assert "misses item 4.19" in row[1]


RATE: dict[str, Any] = {
    "number": "1.1",
    "text": "the rate of each node",
    "case": "fake",
    "metric": "rate",
    "value": 1,
    "unit": "MB/s",
    "at_least": 1,
}
"""An item for the case of `make_kit`."""


def written_contract(inventory: Path, *items: dict[str, Any], **terms: Any) -> None:
    """Write the contract of an inventory, whose items are `RATE` with these changes."""
    content = {
        **{"title": "Acceptance of a test", "parties": {"buyer": "B", "supplier": "S"}},
        **terms,
        "items": [{**RATE, "number": f"1.{n}", **each} for n, each in enumerate(items, 1)],
    }
    (inventory / "contract.yml").write_text(yaml.safe_dump(content), encoding="utf-8")


class TestCommand:
    @pytest.fixture
    def inventory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A site of one node, in a checkout with one case."""
        kit = make_kit(tmp_path)
        monkeypatch.setenv("PROOFMARK_KIT", f"{kit.folder}")
        folder = tmp_path / "inventory/here"
        write_inventory(folder, ["n1"])
        path = folder / "group_vars/local/partition.yml"
        partition = yaml.safe_load(path.read_text())["partition"]
        partition["preinstalled"] = {"fake": {"prefix": f"{tmp_path / 'programs'}", "version": "1"}}
        path.write_text(yaml.safe_dump({"partition": partition}))
        return folder

    def test_check_names_the_suites_and_show_the_parties(
        self, inventory: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The control."""
        written_contract(inventory, {}, {"where": {"size": 2}})
        assert main(["acceptance", "check", "-i", str(inventory)]) == 0
        printed = capsys.readouterr().out
        assert "quick (1)" in printed and "2 items: 2 by planned figures" in printed
        assert "≥ 1 MB/s" in printed

    def test_check_refuses_what_no_suite_can_judge(
        self, inventory: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Each mistake is named, also beside others."""
        wrong: dict[str, list[dict[str, Any]]] = {
            "model": [{"phases": "x"}],
            "case": [{"metric": "rat"}, {"unit": "kg"}],
            "plan": [{"where": {"size": 7777}}, {"runs": 99}],
        }
        found: dict[str, str] = {}
        for name, items in wrong.items():
            written_contract(inventory, *items)
            assert main(["acceptance", "check", "-i", str(inventory)]) == 3
            found[name] = capsys.readouterr().err
            assert found[name].count("contract.yml") == len(items)
        assert "unknown key" in found["model"]
        assert "items.0.metric: found unknown metric" in found["case"]
        assert "items.1.unit: found kg" in found["case"]
        assert "items.0.where.size" in found["plan"]
        assert "items.1.runs: found 99 repeats" in found["plan"]

    @pytest.mark.fault("contract-not-reachable")
    def test_check_refuses_a_time_between_interrupts_that_the_days_cannot_show(
        self, inventory: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        shutil.copy("benchmarks/stability.yml", inventory.parents[1] / "benchmarks")
        suites = {"quick": {"title": "Q"}, "stability": {"title": "S"}}
        path = inventory.parents[1] / "benchmarks/suites.yml"
        path.write_text(yaml.safe_dump({"suites": suites}), encoding="utf-8")
        asked = {"case": "stability", "metric": "mtbi", "value": 500, "unit": "h"}
        for days, refused in ((14, True), (21, False)):
            written_contract(inventory, {}, asked, stability={"days": days})
            main(["acceptance", "check", "-i", str(inventory)])
            said = capsys.readouterr().err
            assert ("contract.yml" in said and "items.1.value" in said) == refused
            assert ("found mtbi of at least 500 h" in said) == refused
            assert ("21 days are enough" in said) == refused

    @pytest.mark.soak
    def test_a_suite_measures_each_item_of_a_shipped_contract(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The plans of all suites take six seconds.

        Debian 12 has no lock of zen4: the site of the test has the environment of zen3.
        """
        site = shutil.copytree(ROOT / "inventory/example-epyc", tmp_path / "example-epyc")
        partition = site / "group_vars/epyc/partition.yml"
        text = partition.read_text(encoding="utf-8")
        assert "environment: zen4" in text
        partition.write_text(text.replace("environment: zen4", "environment: zen3"), "utf-8")
        assert main(["acceptance", "check", "-i", str(site)]) == 0
        assert "2 items: 2 by planned figures" in capsys.readouterr().out


class TestTerms:
    @pytest.fixture
    def words(self, tmp_path: Path) -> list[str]:
        """The words of a plan of the suite stability, whose terms the contract states."""
        folder = tmp_path / "site"
        shutil.copytree("inventory/template", folder)
        terms = {"days": 14, "load": 0.8, "restart_on": ["fabric"]}
        triad = {"case": "stream", "metric": "triad", "unit": "GB/s"}
        written_contract(folder, triad, stability=terms)
        return ["plan", "-i", f"{folder}", "-l", "cluster", "--suite", "stability"]

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            (["--stability-days", "30min", "--stability-load", "0.1"], ["days", "load"]),
            (["--stability-days", "13.99"], ["days"]),
            (["--stability-load", "0.79"], ["load"]),
        ],
    )
    @pytest.mark.fault("contract-weakened")
    def test_an_option_does_not_weaken_the_terms(
        self,
        words: list[str],
        capsys: pytest.CaptureFixture[str],
        options: list[str],
        named: list[str],
    ) -> None:
        assert main([*words, *options]) == 3
        printed = capsys.readouterr().err
        for name, agreed in (("days", "at least 14 days"), ("load", "at least 0.8")):
            assert (f"stability_{name}: found" in printed) == (name in named)
            assert (agreed in printed) == (name in named)
        assert "contract.yml" in printed

    def test_control_options_may_be_stricter_than_the_terms(
        self, words: list[str], tmp_path: Path
    ) -> None:
        """Equal days are not weaker. Without terms in the contract each option may be used."""
        for options in (["--stability-days", "14"], ["--stability-load", "0.9"]):
            assert main([*words, *options]) == 0
        (tmp_path / "site/contract.yml").unlink()
        assert main([*words, "--stability-days", "30min", "--stability-load", "0.1"]) == 0


@pytest.mark.fault("contract-weakened")
def test_what_an_option_replaced_and_what_a_suite_leaves_out_is_named(tmp_path: Path) -> None:
    """The item 9 is for a case that the suite does not have."""
    kit = make_kit(tmp_path)
    kit.case()
    kit.case(name="other", suites={"long": {"sweep": {"size": 1}}})
    kit.suites(quick={"title": "Q"}, long={"title": "L"})
    items = [item("1"), item("9", case="other")]
    parties = {"title": "T", "parties": {"buyer": "B"}, "items": items}
    replaced = {"scratch_dir": ("/lustre", "/dev/shm")}
    update = {"contract": Contract.model_validate(parties), "replaced": replaced}
    verdict = judge_run(run := kit.run(site=kit.site().model_copy(update=update)))
    head = verdict.head()
    (named,) = head["replaced"]
    assert named["text_code"] == "option-replaced"
    assert named["text_fields"] == {
        **{"option": "scratch_dir", "found": "/dev/shm", "stated": "/lustre"}
    }
    assert head["items_of_other_suites"] == ["9"]
    lines = "\n".join(ending(verdict, "report.html", f"runs/{verdict.run}"))
    assert "/dev/shm replaced /lustre" in lines
    assert "/dev/shm replaced /lustre" in repr(issues.section(gather(run, verdict)))
