"""The comparison of a run with accepted runs: from signed run to verdict, and each part alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.fixtures.cells import Tables
from tests.fixtures.fleet import fleet_run, write_inventory
from tests.fixtures.kit import item
from tests.fixtures.phi import NOBODY
from tests.fixtures.report_run import page_of
from tests.folders import let_all_enter

from proofmark.cases.suite import Required
from proofmark.cli.main import main
from proofmark.cli.plan import with_baseline
from proofmark.common.errors import BadInput
from proofmark.common.files import sha256_of
from proofmark.common.rights import this_user
from proofmark.common.text import percent
from proofmark.judge.baseline import LEAST_CHANGE
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.packages.service.gate_decisions import decide, evidence_of
from proofmark.report.products import write_products
from proofmark.report.run_data import gather
from proofmark.report.sections.signed_sheets import next_steps
from proofmark.runs.evidence import seal
from proofmark.runs.identity import write_identity
from proofmark.runs.run import Run, open_run
from proofmark.site.accepted_baseline import (
    FIGURES,
    STATE,
    baseline_folder,
    chosen_baseline,
    read_baseline,
)
from proofmark.site.inventory import load_site

HOSTS = tuple(f"n{number:02}" for number in range(12))
REPEATS = 5
HERE = ("-i", "inventory/here")
LIMIT = {
    "case": "fake",
    "metric": "rate",
    "value": 1,
    "unit": "MB/s",
    "at_least": 1,
    "source": "contract",
}
"""A limit that each node meets, so that a run can be accepted."""


def rates(seed: int, noise: float = 0.01, **factors: float) -> dict[str, list[float]]:
    """Return the rates of all hosts: levels that differ by 1 %, and the noise of repeats."""
    levels = 100 * np.exp(np.random.default_rng(0).normal(0, 0.01, len(HOSTS)))
    random = np.random.default_rng(seed)
    return {
        host: (level * factors.get(host, 1.0) * np.exp(random.normal(0, noise, REPEATS))).tolist()
        for host, level in zip(HOSTS, levels, strict=True)
    }


def of_two_nodes() -> dict[str, list[float]]:
    """Return two rates of two hosts, for a run whose figures do not matter."""
    return {host: values[:2] for host, values in list(rates(1).items())[:2]}


def run_of(
    folder: Path,
    name: str,
    measured: Mapping[str, float | Sequence[float]],
    baseline: Path | None = None,
    **more: Any,
) -> Run:
    """Return a finished run with a verdict and a report."""
    more = {"items": [item(**LIMIT)], **more}
    run = fleet_run(folder / name, measured, run_id=name, baseline=baseline, **more)
    report_on(run)
    return run


def judged_of(
    folder: Path,
    name: str,
    measured: Mapping[str, float | Sequence[float]],
    baseline: Path,
    **more: Any,
) -> Verdict:
    """Return the verdict of a run without a seal and without a report."""
    limits = [item(**LIMIT)]
    run = fleet_run(folder / name, measured, run_id=name, baseline=baseline, items=limits, **more)
    return judge_run(run)


def report_on(run: Run) -> None:
    """Seal a run, and write its verdict and its report."""
    write_products(seal(run.folder).run())


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key, and the file of accepted signers."""
    folder = tmp_path_factory.mktemp("keys")
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/key"]
    subprocess.run(make, check=True)
    public = (folder / "key.pub").read_text().split()
    (folder / "signers").write_text(f"admin@site {public[0]} {public[1]}\n")
    return folder


def accept(run: Run, keys: Path, *options: str) -> int:
    """Sign a run and accept it; return the exit code."""
    assert main(["sign", f"{run.folder}", "--key", f"{keys / 'key'}"]) == 0
    arguments = ["baseline", "accept", f"{run.folder}", "--signers", f"{keys / 'signers'}"]
    return main([*arguments, *HERE, *options])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which ``inventory/here`` of the runs lies."""
    monkeypatch.chdir(tmp_path)
    write_inventory(tmp_path / "inventory/here", HOSTS)
    return tmp_path


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    """A folder as `site`, with an accepted run."""
    folder = tmp_path_factory.mktemp("first")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PROOFMARK_STATE", f"{folder}/state")
        write_inventory(folder / "inventory/here", HOSTS)
        assert accept(run_of(folder, "first", rates(1)), keys) == 0
    return folder


@pytest.fixture
def accepted(site: Path, first: Path) -> Path:
    """The folder of a baseline of one run: a copy, which a test may change."""
    shutil.copytree(first / "inventory/here/baselines", site / "inventory/here/baselines")
    return baseline_folder(Path("inventory/here"), "local", "accepted")


def of_baseline(verdict: Verdict, host: str) -> list[str]:
    """Return the outcomes of the judgements of the figure of a host by the baseline."""
    (result,) = [each for each in verdict.results if each.record.node == host]
    return [each.outcome for each in result.references if each.kind == "baseline"]


def test_an_unchanged_machine_passes(accepted: Path, site: Path) -> None:
    verdict = judged_of(site, "second", rates(2), accepted)
    assert verdict.baseline and verdict.exit_code() == 0
    assert {host: of_baseline(verdict, host) for host in HOSTS} == {
        host: ["PASS", "PASS"] for host in HOSTS
    }
    assert verdict.head()["baseline"]["compared"] == len(HOSTS)
    assert verdict.results.judgements() >= 3 * len(HOSTS)


@pytest.mark.fault("regression")
def test_a_regression_names_its_node(accepted: Path, site: Path) -> None:
    verdict = judged_of(site, "second", rates(2, n03=0.93), accepted)
    assert verdict.exit_code() == 1 and verdict.counts["FAIL"] == 1
    assert [node.host for node in verdict.bad.nodes] == ["n03"]
    assert "FAIL" in of_baseline(verdict, "n03") and of_baseline(verdict, "n04") == ["PASS"] * 2
    (result,) = verdict.of("FAIL")
    words = r"0\.9\d+ × the same node in the baseline \(\d+\.\d+\); the noise of a value is "
    assert re.search(words, result.reason)
    answers = [answer for each in verdict.results for answer in each.references]
    for each in (answer for answer in answers if answer.kind == "baseline"):
        assert each.value is not None and each.ratio is not None and each.visible is not None
        assert f"{each.ratio:.3g} × " in each.reason and f" ({each.value:.6g}); " in each.reason
        assert f"a change of {percent(each.visible)} % would be seen" in each.reason
        assert each.at_least is not None and each.at_most is None
        assert (each.outcome == "FAIL") == (each.ratio < each.at_least)


def test_a_single_node_is_named(accepted: Path, site: Path) -> None:
    alone = {"n03": rates(2, n03=0.9)["n03"]}
    verdict = judged_of(site, "gate", alone, accepted)
    assert [node.host for node in verdict.bad.nodes] == ["n03"]
    assert judged_of(site, "good", {"n03": rates(2)["n03"]}, accepted).bad.nodes == ()


def test_a_new_node_is_compared_with_its_peers(accepted: Path, site: Path) -> None:
    good, bad = rates(2)["n03"], rates(2, n03=0.9)["n03"]
    verdict = judged_of(site, "gate", {"new1": good, "new2": bad}, accepted)
    assert of_baseline(verdict, "new1") == ["PASS"] and of_baseline(verdict, "new2") == ["FAIL"]


def test_an_improvement_is_information(accepted: Path, site: Path) -> None:
    verdict = judged_of(site, "second", rates(2, n03=1.2), accepted)
    assert verdict.exit_code() == 0 and verdict.head()["baseline"]["improved"] == 1
    (result,) = [each for each in verdict.results if each.record.node == "n03"]
    assert "it improved" in "; ".join(each.reason for each in result.references)


def test_the_page_has_the_comparison_of_the_json(accepted: Path, site: Path) -> None:
    """One node is worse, and one is better."""
    measured = {**rates(2, n03=0.9, n04=1.2), "new1": rates(2)["n05"]}
    run = run_of(site, "second", measured, accepted)
    verdict = judge_run(run)
    assert verdict.baseline
    known = verdict.baseline.baseline.model_copy(update={"label": "an imported table"})
    compared = replace(verdict.results, baseline=replace(verdict.baseline, baseline=known))
    labelled = replace(verdict, results=compared)
    stated = labelled.head()["baseline"]
    rows = {name: value for name, value in Tables(page_of(run, labelled)).rows["Comparison"]}
    assert rows["Baseline"] == "accepted an imported table"
    assert rows["Accepted runs"].startswith("first (2") and "admin@site)" in rows["Accepted runs"]
    keys = {
        "Figures compared": "compared",
        "Worse than accepted": "worse",
        "As accepted": "passed",
        "Better than accepted": "improved",
        "Not compared: another program": "other_program",
        "Not compared: other hardware": "other_hardware",
        "Not compared: not in the baseline": "unknown",
        "Only in the baseline": "unmeasured",
    }
    assert {key: int(rows[title]) for title, key in keys.items()} == {
        key: stated[key] for key in keys.values()
    }
    unclear = stated["compared"] - stated["passed"] - stated["worse"]
    assert int(rows["Noise too large or not known"]) == unclear
    assert (stated["worse"], stated["improved"]) == (1, 1)


@pytest.mark.fault("less-hardware")
def test_a_node_with_less_hardware_is_a_fault(accepted: Path, site: Path) -> None:
    less = {"n05": {"MemTotal:       196000000": "MemTotal:       180000000"}}
    run = run_of(site, "second", rates(2), accepted, changes=less)
    verdict = judge_run(run)
    (fault,) = verdict.faults
    assert fault.node == "n05" and "memory: 171.7 GiB, accepted 186.9 GiB" in fault.reason
    assert verdict.exit_code() == 1 and verdict.counts["FAIL"] == 0
    (step,) = next_steps(gather(run, verdict))
    assert step.nodes == "n05"
    assert step.problem == "Less hardware than accepted: memory: 171.7 GiB, accepted 186.9 GiB"


MEMORY = "MemTotal:       "
MEMORIES = {
    "n01": (180_000_000, "none"),
    "n02": (180_000_000, "kvm"),
    "n03": (130_000_000, "kvm"),
    "n04": (90_000_000, "kvm"),
}
"""The memory (kB, of 196000000) and the hypervisor of nodes."""


def test_memory_that_a_hypervisor_takes_is_not_lost(accepted: Path, site: Path) -> None:
    """n01 has no hypervisor, and none takes half of the memory: n04 has lost it.

    An ordinary user cannot list the memory modules: n05 has lost none.
    """
    changes = {
        host: {
            f"{MEMORY}196000000": f"{MEMORY}{memory}",
            "| machine: none": f"| machine: {virtual}",
        }
        for host, (memory, virtual) in MEMORIES.items()
    }
    changes["n05"] = {"=== dimms\n": "=== dimms\n! dimms: needs root\n=== more\n"}
    verdict = judged_of(site, "second", rates(2), accepted, changes=changes)
    assert [fault.node for fault in verdict.faults] == ["n01", "n04"]


def test_changes_of_nodes_are_candidate_causes(accepted: Path, site: Path) -> None:
    changed = {host: {"bios_version: ": "bios_version: 9"} for host in HOSTS[:3]}
    verdict = judge_run(run_of(site, "second", rates(2), accepted, changes=changed))
    assert verdict.baseline
    (change,) = verdict.baseline.changes
    assert (change.what, change.nodes) == ("BIOS", "n[00-02]")
    assert change.after == f"9{change.before}" and str(change).startswith("BIOS: ")
    page = Path("second/runs/second/report.html").read_text(encoding="utf-8")
    assert "Comparison with accepted runs" in page and f"9{change.before}" in page


def test_noise_between_runs_widens_the_limit(site: Path, keys: Path) -> None:
    """A machine whose runs differ by 3 % fails with one accepted run and passes with several."""
    factors = [1.03, 0.97, 0.98]
    levels = [rates(seed, 0.002, **dict.fromkeys(HOSTS, f)) for seed, f in enumerate(factors)]
    folder = baseline_folder(Path("inventory/here"), "local", "accepted")
    later = rates(9, 0.002, **dict.fromkeys(HOSTS, 0.96))
    for number, level in enumerate(levels, 1):
        assert accept(run_of(site, f"run{number}", level), keys) == 0
        if number == 1:
            one = judged_of(site, "one", later, folder)
    known, figures = read_baseline(folder)
    assert [each.run for each in known.runs] == ["run1", "run2", "run3"]
    assert figures["run"].n_unique() == 3
    several = judged_of(site, "several", later, folder)
    assert {host: of_baseline(one, host)[0] for host in HOSTS} == dict.fromkeys(HOSTS, "FAIL")
    assert all(of_baseline(several, host)[0] != "FAIL" for host in HOSTS)


def test_a_gate_compares_a_node_with_the_accepted_figures(accepted: Path, site: Path) -> None:
    """A repaired node returns to service; one that is 7 % slower than accepted is kept out."""
    measured = rates(7, n03=0.93)
    run = run_of(site, "gate", {host: measured[host] for host in ("n03", "n05")}, accepted)
    required = [Required(case="fake", metrics=["rate"])]
    decisions = decide(evidence_of(judge_run(run), run.plan, required), run.plan.nodes())
    assert {host: each.action for host, each in decisions.items()} == {
        "n03": "keep",
        "n05": "resume",
    }
    assert decisions["n03"].fault
    assert decisions["n03"].reason.startswith("fake FAKE rate -")


def test_one_measurement_has_no_noise(site: Path, keys: Path) -> None:
    """Without repeats only like nodes give a noise: the own level is not judged."""
    single = {host: values[0] for host, values in rates(1).items()}
    few: dict[str, float | Sequence[float]] = dict(list(single.items())[:2])
    assert accept(run_of(site, "first", few), keys) == 0
    folder = baseline_folder(Path("inventory/here"), "local", "accepted")
    verdict = judged_of(site, "second", few, folder)
    assert of_baseline(verdict, "n00") == ["UNJUDGED"]
    (result,) = [each for each in verdict.results if each.record.node == "n00"]
    assert "the noise is not known" in " ".join(each.reason for each in result.references)


def test_another_program_is_not_compared(accepted: Path, site: Path) -> None:
    figures = pl.read_parquet(accepted / FIGURES).with_columns(program=pl.lit("another"))
    figures.write_parquet(accepted / FIGURES)
    state = json.loads((accepted / STATE).read_text())
    with pytest.raises(BadInput, match="SHA-256"):
        read_baseline(accepted)
    state["figures"] = sha256_of(accepted / FIGURES)
    (accepted / STATE).write_text(json.dumps(state))
    verdict = judged_of(site, "second", rates(2, n03=0.5), accepted)
    head = verdict.head()["baseline"]
    assert (head["compared"], head["other_program"], head["unknown"]) == (0, len(HOSTS), 0)
    assert head["unmeasured"] == len(HOSTS) and of_baseline(verdict, "n00") == []


class TestAccepting:
    @pytest.mark.fault("unsigned-baseline")
    def test_only_signed_runs_are_accepted(
        self, site: Path, keys: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = run_of(site, "first", of_two_nodes())
        signers = ["--signers", f"{keys / 'signers'}"]
        assert main(["baseline", "accept", f"{run.folder}", *HERE, *signers]) == 3
        assert "nothing is signed" in capsys.readouterr().err
        assert main(["sign", f"{run.folder}", "--key", f"{keys / 'key'}"]) == 0
        table = next(run.folder.glob("signed/0001/records.parquet"))
        table.write_bytes(table.read_bytes() + b" ")
        assert main(["baseline", "accept", f"{run.folder}", *HERE, *signers]) == 3
        assert "records.parquet: " in capsys.readouterr().err
        assert not Path("inventory/here/baselines").exists()

    def test_a_failed_run_is_refused(
        self, site: Path, keys: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = run_of(site, "first", rates(1, n03=0.5))
        assert accept(run, keys) == 3
        assert (
            "found FAIL; accepted: PASS, or another one without a fault and with --reason"
            in capsys.readouterr().err
        )

    def test_an_unjudged_run_needs_a_reason(
        self, site: Path, keys: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = run_of(site, "first", of_two_nodes(), items=[])
        assert accept(run, keys) == 3
        assert "--reason" in capsys.readouterr().err
        assert accept(run, keys, "--reason", "the first run of the machine") == 0
        assert main(["baseline", "show", f"{run.folder}", *HERE]) == 0
        assert "the first run of the machine" in capsys.readouterr().out

    def test_a_run_is_accepted_once(
        self,
        accepted: Path,
        site: Path,
        first: Path,
        keys: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        shutil.copytree(first / "first", site / "first", symlinks=True)
        run = open_run(site / "first/runs/first")
        assert accept(run, keys) == 3
        assert "first: in the baseline accepted" in capsys.readouterr().err
        assert accept(run, keys, "--replace") == 0
        assert accept(run, keys, "--label", "a vendor") == 3
        assert "only for figures that this kit did not make" in capsys.readouterr().err
        assert main(["baseline", "remove", f"{run.folder}", *HERE]) == 0
        assert not accepted.exists()


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    """Return a folder whose ``kept`` has what `TestCopiedRun.checkouts` returns."""
    top = tmp_path_factory.mktemp("copied")
    run = run_of(top, "first", of_two_nodes())
    made = [top / "kept/one", top / "kept/two"]
    for folder in made:
        shutil.copytree(top / "first/benchmarks", folder / "benchmarks")
        write_inventory(folder / "inventory/here", HOSTS)
    old = json.loads(run.files.site.read_text())
    run.files.site.write_text(json.dumps({**old, "inventory": f"{top}/one/inventory/here"}))
    write_identity(run.folder, this_user().name)
    shutil.rmtree(run.folder / "evidence")  # nothing was sealed yet
    report_on(run)
    assert main(["sign", f"{run.folder}", "--key", f"{keys / 'key'}"]) == 0
    for folder in made:
        shutil.copytree(run.folder, folder / "runs/first")
    return top


class TestCopiedRun:
    """A run remembers the folder of its site. A copy of the run belongs to another checkout."""

    @pytest.fixture
    def checkouts(self, signed: Path) -> Iterator[list[Path]]:
        """Two checkouts with a site of the same name, and a signed run of the first in both."""
        made = [signed / "one", signed / "two"]
        for folder in made:
            shutil.copytree(signed / "kept" / folder.name, folder)
        yield made
        for folder in made:
            shutil.rmtree(folder)

    def call(self, checkout: Path, keys: Path, verb: str, *options: str) -> int:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PROOFMARK_KIT", f"{checkout}")
            signers = ["--signers", f"{keys / 'signers'}"] if verb == "accept" else []
            return main(["baseline", verb, f"{checkout / 'runs/first'}", *signers, *options])

    def test_the_site_of_the_checkout_gets_its_own_run(
        self, checkouts: list[Path], keys: Path
    ) -> None:
        """Control: no fault is injected."""
        assert self.call(checkouts[0], keys, "accept") == 0
        assert (checkouts[0] / "inventory/here/baselines").is_dir()
        assert not (checkouts[1] / "inventory/here/baselines").exists()

    @pytest.mark.fault("baseline-of-a-copied-run")
    @pytest.mark.parametrize("verb", ["accept", "show", "remove"])
    def test_a_copy_asks_which_site(
        self, checkouts: list[Path], keys: Path, verb: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        if verb != "accept":
            assert self.call(checkouts[0], keys, "accept") == 0
        before = sorted(checkouts[0].rglob("*"))
        assert self.call(checkouts[1], keys, verb) == 3
        said = capsys.readouterr().err
        assert f"the run was planned with {checkouts[0]}/inventory/here" in said
        assert f"this checkout has {checkouts[1]}/inventory/here; accepted: -i FOLDER" in said
        assert sorted(checkouts[0].rglob("*")) == before
        assert not (checkouts[1] / "inventory/here/baselines").exists()

    @pytest.mark.fault("baseline-of-a-copied-run")
    def test_the_site_that_is_named_is_used(self, checkouts: list[Path], keys: Path) -> None:
        there = f"{checkouts[1] / 'inventory/here'}"
        assert self.call(checkouts[1], keys, "accept", "-i", there) == 0
        assert not (checkouts[0] / "inventory/here/baselines").exists()
        assert (checkouts[1] / "inventory/here/baselines/local/accepted" / STATE).is_file()
        assert self.call(checkouts[1], keys, "remove", "-i", there) == 0
        assert not (checkouts[1] / "inventory/here/baselines/local/accepted").exists()

    @pytest.mark.fault("baseline-of-a-copied-run")
    def test_another_site_is_refused(
        self, checkouts: list[Path], keys: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_inventory(checkouts[1] / "inventory/other", HOSTS)
        other = f"{checkouts[1] / 'inventory/other'}"
        assert self.call(checkouts[1], keys, "accept", "-i", other) == 3
        said = capsys.readouterr().err
        assert "found the site other; accepted: here, the site of the run" in said

    @pytest.mark.root
    @pytest.mark.fault("signed-by-another-user")
    def test_root_accepts_a_copy_of_the_run_of_another_user(
        self, checkouts: list[Path], keys: Path
    ) -> None:
        """That user can change the run itself."""
        let_all_enter(checkouts[0].parent)
        folders = [checkouts[0] / "inventory/here/baselines/local" / name for name in "ab"]
        assert self.call(checkouts[0], keys, "accept", "--name", "a") == 0
        run = checkouts[0] / "runs/first"
        for path in (run, *run.rglob("*")):
            os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
        assert self.call(checkouts[0], keys, "accept", "--name", "b") == 3
        copied = Path(shutil.copytree(run, run.with_name("copied")))
        shutil.rmtree(run)
        copied.rename(run)
        assert self.call(checkouts[0], keys, "accept", "--name", "b") == 0
        (first, figures), (second, same) = (read_baseline(folder) for folder in folders)
        assert figures.equals(same) and first.nodes == second.nodes
        assert first.runs[0].libraries == second.runs[0].libraries


def test_a_name_selects_the_baseline(accepted: Path) -> None:
    inventory = Path("inventory/here")
    assert chosen_baseline(inventory, "local", None) == accepted
    assert chosen_baseline(inventory, "local", "accepted") == accepted
    assert chosen_baseline(inventory, "local", "none") is None
    assert chosen_baseline(inventory, "other", None) is None
    with pytest.raises(BadInput, match=r"found 'acepted', did you mean 'accepted'"):
        chosen_baseline(inventory, "local", "acepted")


def test_a_run_without_the_accepted_baseline_says_so(accepted: Path) -> None:
    site = load_site(Path("inventory/here"), "local")
    for name in (None, "accepted"):
        found, chosen = with_baseline(site, name)
        assert (found.replaced, chosen) == ({}, accepted)
    found, chosen = with_baseline(site, "none")
    assert (found.replaced, chosen) == ({"baseline": ("accepted", "none")}, None)


def test_a_damaged_baseline_is_refused(accepted: Path, site: Path) -> None:
    (accepted / FIGURES).write_bytes(b"PAR1")
    with pytest.raises(BadInput, match=FIGURES):
        run_of(site, "second", rates(2), accepted)


def test_a_small_change_is_accepted_at_any_noise(site: Path, keys: Path) -> None:
    assert LEAST_CHANGE > 0.015
    assert accept(run_of(site, "first", rates(1, 1e-5)), keys) == 0
    folder = baseline_folder(Path("inventory/here"), "local", "accepted")
    levels = rates(2, 1e-5, n03=0.985, n04=0.975)
    verdict = judged_of(site, "second", levels, folder)
    assert of_baseline(verdict, "n03")[0] == "PASS"
    assert of_baseline(verdict, "n04")[0] == "FAIL"
