"""``acceptance judge``: which folders decide, which are left out, and which are refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.finished import write_execution, write_probes
from tests.fixtures.fleet import write_inventory
from tests.fixtures.kit import Kit, make_kit, steps_of
from tests.fixtures.pages import Page, assert_sound
from tests.fixtures.stated import sourced
from tests.folders import PROBES, ROOT
from tests.forks import tool
from tests.unit.judge.test_contract_items import written_contract
from tests.unit.runs.test_acceptance import forged_signature

from proofmark.cli.main import main
from proofmark.runs.acceptance import resting_on
from proofmark.runs.evidence import seal
from proofmark.runs.run import Run
from proofmark.runs.state import site_folder
from proofmark.site.inventory import Site as Planned
from proofmark.site.inventory import load_site
from proofmark.software.software import Software


@dataclass(frozen=True)
class Site:
    kit: Kit

    @property
    def inventory(self) -> Path:
        return self.kit.folder / "inventory/here"

    @property
    def runs(self) -> Path:
        return self.kit.folder / "runs"

    def measured(self, name: str, rate: int = 100) -> Run:
        """Return a finished run of the site. It is not sealed."""
        return self.of(load_site(self.inventory, "local"), name, rate)

    def of(self, site: Planned, name: str, rate: int = 100, suite: str = "quick") -> Run:
        """Return a finished run of another site."""
        plan = self.kit.plan(suite, site=site)
        run = self.kit.run(site=site, plan=plan, run_id=name)
        for step, folder in zip(run.plan.steps(), steps_of(run), strict=True):
            text = f"size {step.parameters['size']}\nrate {rate}\nEND\n"
            write_execution(folder, "n1", {"stdout": text})
        probe = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
        probe = re.sub(r"(?m)^\| hostname: .*", "| hostname: n1", probe)
        for job in run.plan.jobs():
            write_probes(run, job.id, "n1", probe, probe)
        return run

    def judge(self, *words: str) -> int:
        return main(["acceptance", "judge", "-i", f"{self.inventory}", *words])

    def written(self, folder: Path | None = None) -> Mapping[str, Any]:
        path = (folder or self.runs / "acceptance-here") / "acceptance.json"
        content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    kit = make_kit(tmp_path)
    made = Site(kit)
    monkeypatch.setenv("PROOFMARK_KIT", f"{tmp_path}")
    write_inventory(made.inventory, ["n1"])
    path = made.inventory / "group_vars/local/partition.yml"
    partition = yaml.safe_load(path.read_text(encoding="utf-8"))["partition"]
    partition["preinstalled"] = {"fake": {"prefix": f"{tmp_path / 'programs'}", "version": "1"}}
    path.write_text(yaml.safe_dump({"partition": partition}), encoding="utf-8")
    (tmp_path / "galaxy.yml").touch()  # a checkout has it: its folder of runs is the default
    written_contract(made.inventory, {"value": 90, "where": {"size": 1}})
    return made


def make(site: Site, way: str, name: str) -> Path:
    """Make a run that decides nothing, for the reason `way`; "good" is the control."""
    if way == "site":
        here = load_site(site.inventory, "local")
        return sealed(site.of(here.model_copy(update={"name": "other"}), name))
    if way == "emulated":
        here = load_site(site.inventory, "local")
        partition = here.partition.model_copy(update={"origin": "emulated"})
        return sealed(site.of(here.model_copy(update={"partition": partition}), name))
    if way == "contract":
        written_contract(site.inventory, {"value": 91, "where": {"size": 1}})
        folder = sealed(site.measured(name))
        written_contract(site.inventory, {"value": 90, "where": {"size": 1}})
        return folder
    run = site.measured(name)
    if way == "unsealed":
        return run.folder
    folder = sealed(run)
    if way == "damaged":
        archive = folder / "evidence/0001.tar"
        archive.chmod(0o644)
        content = bytearray(archive.read_bytes())
        content[len(content) // 2] ^= 1
        archive.write_bytes(content)
    if way == "copy":
        shutil.copytree(folder, folder.with_name(f"{name}-again"))
        return folder.with_name(f"{name}-again")
    return folder


def called(*words: str) -> int:
    """Return the exit code of the command, in a process of its own."""
    return subprocess.run([tool("proofmark"), *words], check=False, capture_output=True).returncode


def sealed(run: Run) -> Path:
    seal(run.folder)
    return run.folder


@pytest.mark.parametrize(
    ("way", "code"),
    [
        ("unsealed", "acceptance-unsealed"),
        ("contract", "acceptance-contract"),
        ("damaged", "acceptance-unreadable"),
        ("emulated", "acceptance-origin"),
        ("site", ""),
    ],
)
def test_a_run_that_cannot_decide_is_left_out_and_refused_if_named(
    site: Site, way: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of another site is not of this acceptance: the folder of runs has those of all sites.

    The control is the good run.
    """
    folder = make(site, way, "odd")
    assert site.judge() == 4
    left_out = [(each["run"], each["reason_code"]) for each in site.written()["left_out"]]
    assert left_out == ([("odd", code)] if code else [])
    assert site.judge("--run", f"{folder}") == 3
    assert "--run: found " in capsys.readouterr().err
    make(site, "good", "good")
    assert site.judge() == 0
    assert site.judge("--run", f"{folder.with_name('good')}") == 0
    assert site.judge("--run", f"{folder.with_name('good')}", f"{folder}") == 3


def test_a_copy_of_a_run_counts_once(site: Site) -> None:
    make(site, "copy", "one")
    assert site.judge() == 0
    written = site.written()
    assert [each["run"] for each in written["runs"]] == ["one"]
    assert [each["reason_code"] for each in written["left_out"]] == ["past-copy"]


def test_the_page_has_the_digest_of_its_data_and_of_the_evidence(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    run = seal(site.measured("one").folder).run()
    assert run.seal is not None
    folder = site.kit.folder / "elsewhere"
    assert site.judge("-o", f"{folder}") == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{folder / 'acceptance.html'}"
    page = (folder / "acceptance.html").read_text(encoding="utf-8")
    assert_sound(page)
    assert sha256((folder / "acceptance.json").read_bytes()).hexdigest() in page
    assert run.seal.digest in page
    assert site.written(folder)["runs"][0]["evidence"] == run.seal.digest
    assert site.written(folder)["contract"]["sha256"] in page
    assert not (site.runs / "acceptance-here").exists()


def test_the_same_runs_make_the_same_page(site: Site) -> None:
    seal(site.measured("one").folder)
    folders = [site.kit.folder / name for name in ("first", "second")]
    for folder in folders:
        site.judge("-o", f"{folder}")
    for name in ("acceptance.html", "acceptance.json"):
        assert len({(folder / name).read_bytes() for folder in folders}) == 1


def test_what_is_missing_has_its_suite_time_and_command(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.kit.suites(quick={"title": "Q"}, slow={"title": "L", "repeats": 3})
    site.kit.case(suites={"quick": {"sweep": {"size": 1}}, "slow": {}})
    sizes = ({"size": 1}, {"size": 2})
    items = ({"value": 90, "where": sizes[0], "runs": 2}, {"value": 80, "where": sizes[1]})
    written_contract(site.inventory, *items)
    assert site.judge() == 4
    printed = capsys.readouterr().out
    assert "Still missing: 1.1: quick, 1 s: ansible-playbook acceptance.yml -i " in printed
    assert "-e suite=quick -e repeats=2\n" in printed and "-l local -e suite=slow\n" in printed
    assert site.judge("--json") == 4
    missing = json.loads(capsys.readouterr().out)["missing"]
    assert {each["suite"]: each["items"] for each in missing} == {"quick": ["1.1"], "slow": ["1.2"]}
    assert "missing" not in site.written(), "no other machine can make it again"


def test_a_step_that_ended_at_its_time_limit_says_what_helps(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control is a step that ended with exit code 3: a longer limit does not help it."""
    for code, late, helps in ((124, True, "a longer `timeout`"), (3, False, "Read stderr")):
        run = site.measured(f"of-{code}")
        for folder in steps_of(run):
            write_execution(folder, "n1", exit_code=code, seconds=60, timed_out=late)
        sealed(run)
        assert site.judge() == 2
        printed = capsys.readouterr().out
        assert ("1.1: timed out after 60 s (limit " in printed) is late
        (line,) = [each for each in printed.splitlines() if helps in each]
        assert line.startswith("1.1: The program did not end ")
        page = (site.runs / "acceptance-here/acceptance.html").read_text(encoding="utf-8")
        assert helps in page


def test_a_fail_before_is_printed_and_on_the_page_in_korean(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    seal(site.measured("bad", rate=50).folder)
    assert site.judge() == 1
    seal(site.measured("good").folder)
    capsys.readouterr()
    assert site.judge("--language", "ko") == 0
    printed = capsys.readouterr().out
    assert "이전 판정" in printed and "bad" in printed
    page = (site.runs / "acceptance-here/acceptance.html").read_text(encoding="utf-8")
    assert_sound(page, "ko")
    assert 'lang="ko"' in page and "이전 판정" in page and "서명" in page


def test_a_site_without_a_contract_is_refused(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    (site.inventory / "contract.yml").unlink()
    assert site.judge() == 3
    assert "contract.yml: found no such file" in capsys.readouterr().err


class TestSealedRuns:
    """A sealed run counts, whether its folder is there or not."""

    def collected(self, site: Site, name: str, rate: int = 100, *, report: bool = True) -> Path:
        """Return the folder of a run that was sealed and judged, by the commands of a play."""
        folder = site.measured(name, rate).folder
        assert called("stage", "collect", f"{folder}") == 0
        assert not report or called("report", f"{folder}") == 0
        return folder

    def left_out(self, site: Site) -> list[tuple[str, str, bool]]:
        found = site.written()["left_out"]
        return [(each["run"], each["reason_code"], each["open"]) for each in found]

    def again(self, folder: Path, name: str) -> None:
        """Seal a further archive of a run, with the finding that the output `name` was changed."""
        next(folder.glob(f"workdir/steps/*/execution-1/{name}")).write_text(
            "changed", encoding="utf-8"
        )
        assert called("stage", "collect", f"{folder}") == 0

    @pytest.mark.fault("sealed-run-missing")
    @pytest.mark.parametrize("judged", [True, False])
    def test_a_deleted_run_is_named_and_makes_no_pass(
        self, site: Site, judged: bool, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The control is the run before it was deleted, and the copy of it that is put back."""
        self.collected(site, "good")
        bad = self.collected(site, "worse", rate=50, report=judged)
        kept = shutil.copytree(bad, site.kit.folder / "kept")
        if judged:
            assert site.judge() == 1
        shutil.rmtree(bad)
        capsys.readouterr()
        assert site.judge() == 4
        found, word = capsys.readouterr().out, "FAIL" if judged else "without a verdict"
        assert re.search(rf"^Left out: worse: sealed {word} on \d.* UTC, its folder ", found, re.M)
        assert "UNJUDGED: 1 of 1 items met; the evidence of 1 sealed run is missing" in found
        assert self.left_out(site) == [("worse", "acceptance-missing", True)]
        page = (site.runs / "acceptance-here/acceptance.html").read_text(encoding="utf-8")
        assert f"sealed {word} on " in page
        shutil.copytree(kept, bad)
        assert (site.judge(), site.written()["left_out"]) == (1, [])

    @pytest.mark.fault("sealed-run-missing")
    def test_a_run_that_replaced_a_deleted_one_does_not_replace_its_evidence(
        self, site: Site
    ) -> None:
        """The run user removes the folder, and plans and measures again with the same id."""
        shutil.rmtree(self.collected(site, "one", rate=50))
        self.collected(site, "one")
        assert site.judge() == 4
        assert self.left_out(site) == [("one", "acceptance-other-evidence", True)]
        shutil.rmtree(site.runs / "one")
        assert site.judge() == 4
        assert self.left_out(site) == [("one", "acceptance-missing", True)] * 2

    @pytest.mark.fault("sealed-run-missing")
    def test_evidence_that_was_rolled_back_is_named(self, site: Site) -> None:
        """An older copy is put back; then further evidence is sealed on it."""
        run = self.collected(site, "one")
        older = shutil.copytree(run, site.kit.folder / "older")
        self.again(run, "stdout")
        assert (site.judge(), self.left_out(site)) == (0, [])
        newer = shutil.move(run, site.kit.folder / "newer")
        shutil.copytree(older, run)
        for name in ("stderr", "rc"):
            assert site.judge() == 4
            assert self.left_out(site) == [("one", "acceptance-other-evidence", True)]
            self.again(run, name)
        shutil.rmtree(run)
        shutil.copytree(newer, run)
        assert site.judge() == 4, "two evidences of one run were sealed"

    @pytest.mark.fault("sealed-run-missing")
    def test_a_damaged_run_makes_no_pass(self, site: Site) -> None:
        self.collected(site, "good")
        archive = self.collected(site, "worse", rate=50) / "evidence/0001.tar"
        archive.chmod(0o644)
        archive.write_bytes(archive.read_bytes()[:-512])
        assert site.judge() == 4
        codes = {code for _, code, _ in self.left_out(site)}
        assert codes == {"acceptance-unreadable", "acceptance-other-evidence"}

    def test_a_run_that_was_moved_or_is_in_another_folder_decides(self, site: Site) -> None:
        folder = self.collected(site, "bad", rate=50)
        elsewhere = site.kit.folder / "elsewhere"
        shutil.move(site.runs, elsewhere)
        assert site.judge("--runs", f"{elsewhere}", "-o", f"{site.kit.folder}") == 1
        self.collected(site, "good")
        assert (site.judge(), self.left_out(site)) == (0, []), "it was measured again"
        ours = site.written()["runs"]
        assert [each["run"] for each in ours] == ["good", "bad"], "both folders are known"
        assert folder.parent == site.runs

    def test_copies_with_two_evidences_make_no_pass(self, site: Site) -> None:
        """No state knows that both were sealed. A copy that was continued is the run."""
        run = site.measured("one").folder
        seal(run)
        for place, name in (("a", "stdout"), ("b", "stderr")):
            copy = shutil.copytree(run, site.kit.folder / place / "one")
            next(copy.glob(f"workdir/steps/*/execution-1/{name}")).write_text(
                "changed", encoding="utf-8"
            )
            seal(copy)
            shutil.move(copy, site.runs / f"one-{place}")
        assert site.judge() == 4
        assert self.left_out(site) == [
            ("one", "past-copy", False),
            ("one-b", "acceptance-fork", True),
        ]
        shutil.rmtree(site.runs / "one-b")
        assert (site.judge(), self.left_out(site)) == (0, [("one", "past-copy", False)])

    def test_the_runs_that_a_person_names_decide_and_the_others_are_named(self, site: Site) -> None:
        good = self.collected(site, "good")
        self.collected(site, "other", rate=50)
        shutil.rmtree(self.collected(site, "worse", rate=50))
        assert site.judge("--run", f"{good}") == 0
        assert self.left_out(site) == [
            ("other", "acceptance-not-named", False),
            ("worse", "acceptance-missing", False),
        ]

    @pytest.mark.parametrize("way", ["emulated", "contract", "site"])
    def test_a_run_that_could_not_decide_is_not_missed(self, site: Site, way: str) -> None:
        """Only the runs of this site with its contract that were measured are kept."""
        odd = make(site, way, "odd")
        called("stage", "collect", f"{odd}")
        shutil.rmtree(odd)
        self.collected(site, "good")
        assert (site.judge(), self.left_out(site)) == (0, [])

    def test_a_kill_before_the_run_was_kept_is_repaired_by_the_next_collect(
        self, site: Site
    ) -> None:
        folder = site.measured("one", rate=50).folder
        seal(folder)  # what a collect did before it was killed
        assert called("stage", "collect", f"{folder}") == 0
        shutil.rmtree(folder)
        assert site.judge() == 4
        assert self.left_out(site) == [("one", "acceptance-missing", True)]

    def test_a_damaged_state_is_refused(
        self, site: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.collected(site, "good")
        (kept,) = site_folder("here").glob("sealed/*.json")
        evidence = json.loads(kept.read_text(encoding="utf-8"))["evidence"]
        assert kept.name == f"good-{evidence[:16]}.json"
        kept.write_text("{", encoding="utf-8")
        assert site.judge() == 3
        assert f"{kept}: found " in capsys.readouterr().err


class TestSignature:
    """What two parties sign is the page, its data, and the digests of the evidence."""

    @pytest.fixture
    def signing(self, site: Site) -> tuple[Path, Path]:
        """Return a key, and the file with its signer; the page of one good run is judged."""
        key, signers = site.kit.folder / "key", site.kit.folder / "signers"
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", f"{key}"]
        subprocess.run(make, check=True)
        signers.write_text(f"ida@buyer {key.with_suffix('.pub').read_text(encoding='utf-8')}")
        seal(site.measured("good").folder)
        assert site.judge() == 0
        return key, signers

    def sign(self, site: Site, key: Path) -> int:
        return main(["acceptance", "sign", "-i", f"{site.inventory}", "--key", f"{key}"])

    def verify(self, site: Site, signers: Path) -> int:
        page = f"{site.runs / 'acceptance-here'}"
        return main(["verify", page, "--signers", f"{signers}"])

    def test_the_signed_page_is_verified_with_its_word(
        self, site: Site, signing: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
    ) -> None:
        key, signers = signing
        assert self.sign(site, key) == 0
        assert self.sign(site, key) == 0, "the same key again is one signer"
        capsys.readouterr()
        assert self.verify(site, signers) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[-1].startswith("PASS: ")
        assert lines[-2].endswith("acceptance-here: as signed by ida@buyer")
        signed = site.runs / "acceptance-here/signed"
        assert sorted(path.name for path in signed.iterdir()) == ["0001", "lock"]

    @pytest.mark.fault("signed-acceptance-changed")
    @pytest.mark.parametrize("name", ["acceptance.html", "acceptance.json"])
    def test_a_changed_page_is_neither_signed_nor_verified(
        self, site: Site, signing: tuple[Path, Path], name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        key, signers = signing
        assert self.sign(site, key) == 0
        signed = site.runs / "acceptance-here/signed/0001" / name
        signed.write_bytes(signed.read_bytes() + b" ")
        assert self.verify(site, signers) == 1
        assert f"{name}: " in capsys.readouterr().out
        page = site.runs / "acceptance-here" / name
        page.write_bytes(page.read_bytes().replace(b"PASS", b"PASt"))
        assert self.sign(site, key) == 3
        assert "not what its runs give" in capsys.readouterr().err

    def test_the_folder_has_all_that_verify_needs(
        self, site: Site, signing: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It is copied to another party, who has neither runs nor inventory, and signs it."""
        key, signers = signing
        assert self.sign(site, key) == 0
        copied = site.kit.folder / "elsewhere/0001"
        shutil.copytree(site.runs / "acceptance-here/signed/0001", copied)
        for name in ("runs", "inventory"):
            shutil.rmtree(site.kit.folder / name)
        capsys.readouterr()
        assert main(["verify", f"{copied}", "--signers", f"{signers}"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "acceptance-here: as signed by ida@buyer"
        assert lines[-1] == "PASS: 1 of 1 items met"
        assert main(["sign", f"{copied}", "--key", f"{key}"]) == 0

    def test_a_page_that_is_newer_than_its_signature_is_named(
        self, site: Site, signing: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
    ) -> None:
        key, signers = signing
        assert self.sign(site, key) == 0
        seal(site.measured("later", rate=10).folder)
        assert site.judge() == 1
        capsys.readouterr()
        assert self.verify(site, signers) == 5
        printed = capsys.readouterr().out
        assert "acceptance.html: another content" in printed
        assert printed.splitlines()[-1].startswith("PASS: "), "the signed word"

    @pytest.mark.fault("statement-forged")
    @pytest.mark.parametrize("forged", ["word", "counts", "id", "partitions", "page", "no-runs"])
    def test_what_its_runs_do_not_give_is_refused(
        self, site: Site, signing: tuple[Path, Path], forged: str
    ) -> None:
        key, signers = signing
        seal(site.measured("worse", rate=10).folder)
        assert site.judge() == 1
        assert self.sign(site, key) == 0
        folder = site.runs / "acceptance-here/signed/0001"
        changes: dict[str, Any] = {
            "word": {"word": "PASS"},
            "counts": {"counts": {"total": 20, "met": 20}},
            "id": {"id": "acceptance-there"},
            "partitions": {"partitions": {"local": {"hosts": ["n1", "n2"], "mode": ""}}},
        }
        if forged == "page":
            page = folder / "acceptance.html"
            page.write_text(page.read_text(encoding="utf-8").replace("FAIL", "PASS"), "utf-8")
        if forged == "no-runs":
            shutil.rmtree(folder / "runs")
        forged_signature(folder, site.kit.folder, "key", **changes.get(forged, {}))
        code = 3 if forged in ("id", "no-runs") else 1
        assert main(["verify", f"{folder}", "--signers", f"{signers}"]) == code
        assert main(["sign", f"{folder}", "--key", f"{key}"]) == 3


class TestMeasure:
    """The command line of each suite is that of the person, with the suite and the repeats."""

    @pytest.fixture
    def played(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return the file with the arguments of each call; a program stands for Ansible."""
        calls, tools = site.kit.folder / "calls", site.kit.folder / "bin"
        tools.mkdir()
        (tools / "ansible-playbook").write_text(f'#!/bin/sh\necho "$*" >>{calls}\nexit 2\n')
        (tools / "ansible-playbook").chmod(0o755)
        monkeypatch.setattr("sys.executable", f"{tools / 'python'}")
        return calls

    def test_the_repeats_of_a_person_follow_and_count(self, site: Site, played: Path) -> None:
        """Ansible takes the last value of a variable."""
        written_contract(site.inventory, {"value": 90, "runs": 2})
        given = ("acceptance.yml", "-e", '{"repeats": 5}')
        words = [f"--playbook={word}" for word in given]
        code = main(["acceptance", "measure", "-i", f"{site.inventory}", *words])
        assert code == 4, "nothing was measured: the items stay UNJUDGED"
        (call,) = played.read_text(encoding="utf-8").splitlines()
        assert call == '-e repeats=2 acceptance.yml -e {"repeats": 5} -e suite=quick'

    def test_a_node_with_a_fault_is_measured_again(
        self, site: Site, played: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Its items are met: only the fault, which no figure has, makes the acceptance FAIL."""
        path = site.inventory / "group_vars/local/partition.yml"
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        content["partition"]["node"] = sourced(memory={"modules": 13})
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        sealed(site.measured("one"))
        measure = ["acceptance", "measure", "-i", f"{site.inventory}", "--playbook=acceptance.yml"]
        assert main(measure) == 1
        assert "1 of 1 items met; 1 node with a fault" in capsys.readouterr().out
        assert played.read_text(encoding="utf-8") == "acceptance.yml -e suite=quick\n"


class TestSuites:
    def test_a_suite_that_looks_for_faults_measures_what_no_other_does(
        self, site: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """`check` and `judge` name the same suites."""
        site.kit.suites(quick={"title": "Q", "kind": "sanity"})
        assert main(["acceptance", "check", "-i", f"{site.inventory}"]) == 0
        assert "quick (1)" in capsys.readouterr().out
        assert site.judge() == 4
        assert "Still missing: 1.1: quick" in capsys.readouterr().out

    def test_a_limit_on_the_only_partition_is_the_same_acceptance(self, site: Site) -> None:
        sealed(site.measured("one"))
        assert site.judge("-l", "local") == 0
        assert [path.name for path in site.runs.glob("acceptance-*")] == ["acceptance-here"]


@pytest.mark.parametrize(
    ("limit", "page"),
    [
        ((), "acceptance-two"),
        (("-l", "skl"), "acceptance-two"),
        (("-l", "knl"), "acceptance-two-knl"),
    ],
)
def test_a_partition_without_an_item_makes_no_other_page(
    limit: tuple[str, ...], page: str, tmp_path: Path
) -> None:
    inventory = tmp_path / "two"
    shutil.copytree(ROOT / "inventory/nurion", inventory)
    written_contract(
        inventory,
        {"case": "stream", "metric": "triad", "value": 100, "unit": "GB/s", "system": "skl"},
    )
    runs = ("--runs", f"{tmp_path / 'runs'}")
    assert main(["acceptance", "judge", "-i", f"{inventory}", *limit, *runs]) == 4
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [page]


def test_what_rests_on_a_run_is_named(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later page names who signed the earlier one, and a run knows who signed its evidence."""
    folder, private = sealed(site.measured("one")), tmp_path / "boss"
    signers = tmp_path / "signers"
    signers.write_text(f"boss@here {key(tmp_path, 'boss')}\n", encoding="utf-8")
    sign = ["acceptance", "sign", "-i", f"{site.inventory}", "--key", f"{private}"]
    assert site.judge() == main(sign) == 0
    assert [path.parents[1].name for path in resting_on(folder)] == ["0001"]
    sealed(site.measured("two"))
    assert site.judge() == main(sign) == 0
    capsys.readouterr()
    page = site.runs / "acceptance-here"
    assert main(["verify", f"{page}", "--signers", f"{signers}"]) == 0
    assert f"{page / 'signed/0001'}: an earlier statement, signed by boss@here" in (
        capsys.readouterr().out
    )


class TestConfiguration:
    """Two suites: the first measures item 1.1, the second item 1.2, both the same node."""

    def other(self, site: Site, way: str, name: str) -> None:
        """Seal a run of the second suite, with something else than the first run."""
        here = load_site(site.inventory, "local")
        partition = here.partition
        if way == "variable":
            launch = partition.launch.model_copy(update={"environment": {"UCX_TLS": "tcp"}})
            partition = partition.model_copy(update={"launch": launch})
        run = site.of(here.model_copy(update={"partition": partition}), name, suite="second")
        if key := {"kernel": "kernel", "board": "board_serial"}.get(way, ""):
            for path in run.files.work.folder.rglob("*"):
                if (
                    path.suffix != ".sh"
                    and path.is_file()
                    and f"| {key}: " in (text := path.read_text(errors="replace"))
                ):
                    path.write_text(re.sub(rf"(?m)^\| {key}: .*", f"| {key}: 9.9.9", text))
        self.programs(site, run, ("a" if way == "program" else "b") * 64)
        sealed(run)

    def programs(self, site: Site, run: Run, digest: str) -> None:
        """Write the programs of a run, of one build."""
        (package,) = site.kit.software().packages.values()
        builds = {
            name: each.model_copy(update={"sha256": digest})
            for name, each in package.programs.items()
        }
        made = {**dict(package), "programs": builds, "environment_hash": ""}
        software = Software(packages={"fake": type(package)(**made)})
        run.files.software.write_text(software.model_dump_json(), encoding="utf-8")

    @pytest.mark.parametrize("way", ["same", "variable", "kernel", "program", "board"])
    def test_an_older_configuration_decides_nothing(
        self, site: Site, way: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        site.kit.case("other", suites={"second": {}})
        site.kit.suites(quick={"title": "Q"}, second={"title": "S"})
        written_contract(site.inventory, {"value": 90}, {"value": 90, "case": "other"})
        run = site.measured("one")
        self.programs(site, run, "b" * 64)
        sealed(run)
        self.other(site, way, "two")
        site.judge()
        printed = capsys.readouterr().out
        outcomes = [each["outcome"] for each in site.written()["items"]]
        assert outcomes == ["PASS" if way == "same" else "UNJUDGED", "PASS"], printed
        shown = {"variable": "UCX_TLS=tcp", "program": "a" * 64}
        found = {**shown, "kernel": "9.9.9", "board": "9.9.9"}.get(way, "")
        assert ("the newest run has" in printed) == bool(found) and found in printed
        page = (site.runs / "acceptance-here/acceptance.html").read_text(encoding="utf-8")
        assert found in page and "What was accepted" in page


class TestWaivers:
    """A contract of three items: the nodes miss 1.2 and 1.3, with signers of both parties."""

    SIGNERS = ("buyer", "supplier")

    @pytest.fixture
    def deal(self, site: Site, tmp_path: Path) -> Site:
        keys = {name: key(tmp_path, name) for name in (*self.SIGNERS, "other")}
        lines = {name: [f"{name}@here {keys[name]}"] for name in self.SIGNERS}
        items = {"value": 90, "where": {"size": 1}}, {"value": 200}, {"value": 300}
        written_contract(site.inventory, *items, signers=lines)
        sealed(site.measured("one"))
        return site

    def waive(self, site: Site, by: str, *words: str, key: str = "", item: str = "1.2") -> int:
        given = ["--item", item, "--by", f"{by}@here", "--reason", "a cable is ordered"]
        signing = ["--key", f"{site.kit.folder / (key or by)}"]
        return main(["acceptance", "waive", "-i", f"{site.inventory}", *given, *signing, *words])

    def state(self, site: Site) -> list[Any]:
        site.judge("--json", "-o", f"{site.kit.folder}/page")
        found = site.written(site.kit.folder / "page")
        (phase,) = found["phases"]
        return [found["word"], phase["word"], phase["waived"], found["items"][1]["unsigned"]]

    def test_the_buyer_waives(self, deal: Site, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.waive(deal, "supplier") == 0
        assert "lacks the signature of buyer@here" in capsys.readouterr().out
        assert self.state(deal) == ["FAIL", "FAIL", 0, ["buyer@here"]]
        assert self.waive(deal, "buyer") == self.waive(deal, "buyer", item="1.3") == 0
        assert self.state(deal) == ["PASS", "PASS", 2, []]
        capsys.readouterr()
        assert deal.judge() == 0
        assert "performance: PASS with 2 waived" in capsys.readouterr().out
        page = (deal.runs / "acceptance-here/acceptance.html").read_text(encoding="utf-8")
        assert "PASS with 2 waived" in page and "waived by supplier@here" in page

    def test_what_is_waived_is_no_longer_missing(
        self, deal: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The items need two repeats, and the run has one. All items of the phase are waived."""
        lines = {name: [f"{name}@here {key(deal.kit.folder, name)}"] for name in self.SIGNERS}
        twice = {"value": 90, "runs": 2, "where": {"size": 1}}
        items = twice, {**twice, "phase": "stability"}
        written_contract(deal.inventory, *items, signers=lines)
        sealed(deal.measured("two"))
        assert deal.judge() == 4
        assert "Still missing: 1.1, 1.2: quick" in capsys.readouterr().out
        assert self.waive(deal, "buyer") == 0
        assert deal.judge() == 4
        printed = capsys.readouterr().out
        assert "Still missing: 1.1: quick" in printed
        assert "stability: PASS with 1 waived" in printed
        assert self.waive(deal, "buyer", item="1.1") == 0
        assert deal.judge() == 0, "one word for phases and whole"
        printed = capsys.readouterr().out
        assert "performance: PASS with 1 waived" in printed
        assert "Still missing" not in printed

    def test_without_roles_each_signer_waives(self, deal: Site) -> None:
        lines = [f"{name}@here {key(deal.kit.folder, name)}" for name in self.SIGNERS]
        written_contract(deal.inventory, {"value": 200}, {"value": 200}, signers=lines)
        sealed(deal.measured("two"))
        assert self.waive(deal, "supplier", item="1.1") == 0
        assert self.waive(deal, "supplier") == self.waive(deal, "buyer") == 0
        assert [each["unsigned"] for each in self.items(deal)] == [["buyer@here"], []]

    def items(self, site: Site) -> list[Any]:
        self.state(site)
        found: list[Any] = site.written(site.kit.folder / "page")["items"]
        return found

    @pytest.mark.fault("waiver-outdated")
    def test_other_evidence_is_not_waived(self, deal: Site) -> None:
        assert self.waive(deal, "buyer") == self.waive(deal, "buyer", item="1.3") == 0
        sealed(deal.measured("two"))
        assert self.state(deal) == ["FAIL", "FAIL", 0, []]

    def test_what_is_invalid_is_not_waived(
        self, deal: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        shutil.rmtree(deal.runs / "one")
        sealed(deal.measured("one", rate=10**9))
        assert self.waive(deal, "buyer") == 3
        assert (
            "proofmark: --item: found 1.2: INVALID; accepted: a measured item"
            in capsys.readouterr().err
        )

    @pytest.mark.fault("waiver-forged")
    @pytest.mark.parametrize(
        "change",
        [
            {"item": "1.3"},
            {"partition": "other"},
            {"reason": "another"},
            {"outcome": "UNJUDGED"},
            {"worst": 1.0},
            {"evidence": {"one": "0" * 64}},
            {"by": "supplier@here"},
            {"signature": "\x00"},
        ],
    )
    def test_each_field_is_signed(self, deal: Site, change: dict[str, Any]) -> None:
        assert self.waive(deal, "buyer") == 0
        path = deal.inventory / "waivers.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        content["waivers"][0] |= change
        path.write_text(json.dumps(content), encoding="utf-8")
        assert deal.judge() == 3

    def test_the_key_is_that_of_the_signer(self, deal: Site) -> None:
        assert self.waive(deal, "buyer", key="supplier") == 3
        assert self.waive(deal, "other") == 3
        assert not (deal.inventory / "waivers.json").exists()


def key(folder: Path, name: str) -> str:
    """Make a key with a name, if there is none; return the public one."""
    path = folder / name
    if not path.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path.with_suffix(".pub").read_text(encoding="utf-8").strip()


class TestWitnessedAndDerived:
    """Items that a party sees, and items that follow from measured ones."""

    PARTIES = ("buyer", "supplier", "witness")
    LIMIT = {"case": "fake", "metric": "rate", "unit": "MB/s", "at_least": 1}
    RATES = (
        {**LIMIT, "number": "P1", "text": "small", "value": 90, "where": {"size": 1}},
        {**LIMIT, "number": "P2", "text": "large", "value": 80, "where": {"size": 2}},
    )
    SEEN = {"number": "D1", "text": "delivery", "witnessed": "the delivery note"}

    def contract(self, site: Site, *items: Mapping[str, Any], measure: bool = True) -> None:
        keys = {name: key(site.kit.folder, name) for name in self.PARTIES}
        content = {
            "title": "Acceptance",
            "parties": {"buyer": "B", "supplier": "S"},
            "signers": {name: [f"{name}@here {keys[name]}"] for name in self.PARTIES},
            "items": [*self.RATES, *items],
        }
        text = yaml.safe_dump(content)
        (site.inventory / "contract.yml").write_text(text, encoding="utf-8")
        if measure:
            sealed(site.measured("one"))

    def derived(self, **terms: Any) -> dict[str, Any]:
        about = {"number": "S1", "text": "in all", "items": ["P1", "P2"], "unit": "GB/s"}
        return {**about, "derived": "sum", "value": 0.19, "at_least": 1, **terms}

    def see(self, site: Site, by: str, *words: str, item: str = "D1", key: str = "") -> int:
        given = ["--item", item, "--by", f"{by}@here", "--reason", "crates 1 to 4"]
        signing = ["--key", f"{site.kit.folder / (key or by)}"]
        return main(["acceptance", "witness", "-i", f"{site.inventory}", *given, *signing, *words])

    def item(self, site: Site, number: str) -> Any:
        site.judge()
        (found,) = [each for each in site.written()["items"] if each["number"] == number]
        return found

    def outcome(self, site: Site, number: str) -> list[str]:
        return [self.item(site, number)["outcome"], site.written()["word"]]

    def test_the_newest_word_of_a_buyer_or_witness_decides(
        self, site: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.contract(site, self.SEEN)
        assert self.outcome(site, "D1") == ["UNJUDGED", "UNJUDGED"]
        assert "D1: no signer stated that it was seen" in capsys.readouterr().out
        assert self.see(site, "supplier") == 0
        assert self.outcome(site, "D1") == ["UNJUDGED", "UNJUDGED"]
        assert "D1: not seen by buyer@here or witness@here" in capsys.readouterr().out
        assert self.see(site, "witness") == 0
        assert self.outcome(site, "D1") == ["PASS", "PASS"]
        assert self.see(site, "buyer", "--missed") == 0
        assert self.outcome(site, "D1") == ["FAIL", "FAIL"]
        assert self.see(site, "buyer") == 0
        assert self.outcome(site, "D1") == ["PASS", "PASS"]
        found = self.item(site, "D1")
        assert found["witnessed"] == "the delivery note" and found["found"] == "crates 1 to 4"
        assert {each["run"] for each in found["evidence"]} == {
            f"{name}@here" for name in self.PARTIES
        }

    def test_a_derived_item_counts_each_item_once(
        self, site: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.contract(site, self.derived(items=["P1", "P1"]), measure=False)
        assert site.judge() == 3
        assert "accepted: each item once, with its share in weights" in capsys.readouterr().err
        self.contract(site, self.derived(value=200))
        assert self.outcome(site, "S1")[0] == "FAIL"
        assert "the contract figure (200 GB/s) is not at least 1: n1" in capsys.readouterr().out

    @pytest.mark.fault("sighting-forged")
    def test_what_was_seen_is_signed_and_verified_with_its_files(
        self, site: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.contract(site, self.SEEN, self.derived())
        note = site.kit.folder / "note.pdf"
        note.write_bytes(b"40 crates")
        assert self.see(site, "buyer", "--attach", f"{note}") == 0
        digest = sha256(b"40 crates").hexdigest()
        assert site.judge() == 0
        page = Page((site.runs / "acceptance-here/acceptance.html").read_text("utf-8")).words
        for text in ("delivery", f"note.pdf (SHA-256 {digest})", "buyer@here", "sum: P1, P2"):
            assert text in page
        words = ["-i", f"{site.inventory}", "--key", f"{site.kit.folder / 'buyer'}"]
        assert main(["acceptance", "sign", *words]) == 0
        accepted = site.kit.folder / "signers"
        accepted.write_text(f"buyer@here {key(site.kit.folder, 'buyer')}\n")
        folder = site.runs / "acceptance-here/signed/0001"
        verify = ["verify", f"{folder}", "--signers", f"{accepted}"]
        assert main(verify) == 0
        name = f"seen/{digest[:16]}-note.pdf"
        predicate = json.loads((folder / "statement.json").read_text())["predicate"]
        assert predicate["seen"][0]["attachments"] == [{"name": "note.pdf", "sha256": digest}]
        assert (folder / name).read_bytes() == b"40 crates"
        (folder / name).unlink()
        (folder / name).write_bytes(b"44 crates")
        assert main(verify) == 1
        capsys.readouterr()
        (site.inventory / name).write_bytes(b"44 crates")
        assert main(["acceptance", "sign", *words]) == 3
        assert "note.pdf: found another content" in capsys.readouterr().err

    @pytest.mark.fault("sighting-forged")
    @pytest.mark.parametrize(
        "change",
        [
            {"outcome": "PASS"},
            {"item": "D2"},
            {"reason": "another"},
            {"by": "witness@here"},
            {"time": "2030-01-01T00:00:00Z"},
            {"attachments": [{"name": "x", "sha256": "0" * 64}]},
            {"signature": "x"},
        ],
    )
    def test_each_field_of_it_is_signed(self, site: Site, change: dict[str, Any]) -> None:
        self.contract(site, self.SEEN)
        assert self.see(site, "buyer", "--missed") == 0
        path = site.inventory / "waivers.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        content["seen"][0] |= change
        path.write_text(json.dumps(content), encoding="utf-8")
        assert site.judge() == 3

    def test_what_nobody_may_state_is_refused(self, site: Site) -> None:
        self.contract(site, self.SEEN)
        assert self.see(site, "buyer", item="P1") == 3
        assert self.see(site, "buyer", key="supplier") == 3
        assert self.see(site, "buyer", "--attach", f"{site.kit.folder}/nothing") == 3
        assert not (site.inventory / "waivers.json").exists()

    @pytest.mark.parametrize(
        ("terms", "outcome", "value"),
        [
            ({}, "PASS", 0.2),
            ({"value": 0.21}, "FAIL", 0.2),
            ({"weights": [1, 3], "value": 0.4}, "PASS", 0.4),
            ({"derived": "geometric-mean", "unit": "MB/s", "value": 101}, "FAIL", 100),
            ({"derived": "geometric-mean", "weights": [1, 2], "value": 0.1}, "PASS", 0.1),
            ({"at_most": 1, "at_least": None}, "FAIL", 0.2),
        ],
    )
    def test_a_derived_item_follows_from_the_worst_values(
        self, site: Site, terms: dict[str, Any], outcome: str, value: float
    ) -> None:
        self.contract(site, self.derived(**terms))
        found = self.item(site, "S1")
        assert found["outcome"] == outcome == site.written()["word"]
        assert found["value"] == pytest.approx(value)
        assert [each["run"] for each in found["evidence"]] == ["one"]

    @pytest.mark.parametrize(("change", "rate"), [({}, 100), ({"runs": 9}, 100), ({}, 10**9)])
    def test_an_item_that_is_not_judged_leaves_the_derived_one_open(
        self, site: Site, change: dict[str, Any], rate: int
    ) -> None:
        """The first is the control."""
        rest = {**self.RATES[0], "number": "P3", **change}
        self.contract(site, rest, self.derived(items=["P2", "P3"], value=0.001), measure=False)
        sealed(site.measured("one", rate))
        met = not change and rate == 100
        assert (self.item(site, "S1")["outcome"] == "PASS") == met
        assert self.item(site, "S1")["value"] == (pytest.approx(0.2) if met else None)

    @pytest.mark.parametrize("way", ["same", "kernel"])
    def test_items_of_two_configurations_leave_the_derived_one_open(
        self, site: Site, way: str
    ) -> None:
        site.kit.case("other", suites={"second": {}})
        site.kit.suites(quick={"title": "Q"}, second={"title": "S"})
        rest = {**self.LIMIT, "number": "P3", "text": "x", "value": 1, "case": "other"}
        self.contract(site, rest, self.derived(items=["P1", "P3"], value=0.001), measure=False)
        configured = TestConfiguration()
        run = site.measured("one")
        configured.programs(site, run, "b" * 64)
        sealed(run)
        configured.other(site, way, "two")
        assert self.item(site, "S1")["outcome"] == ("PASS" if way == "same" else "UNJUDGED")

    @pytest.mark.parametrize("items", [["P1", "P3"], ["P3"]])
    def test_a_derived_item_needs_all_of_its_items(self, site: Site, items: list[str]) -> None:
        where = {"size": 2, "placement": "other-node"}
        rest = {**self.LIMIT, "number": "P3", "text": "x", "value": 1, "case": "other"}
        site.kit.case("other", suites={"second": {}})
        site.kit.suites(quick={"title": "Q"}, second={"title": "S"})
        assert where
        self.contract(site, rest, self.derived(items=items, value=0.001))
        assert self.outcome(site, "S1") == ["UNJUDGED", "UNJUDGED"]

    @pytest.mark.parametrize(
        ("terms", "key_of"),
        [
            ({"items": ["P1", "P9"]}, "items.2.items"),
            ({"items": ["S1"]}, "items.2.items"),
            ({"weights": [1]}, "items.2.weights"),
            ({"at_least": 95}, "items.2.at_least"),
            ({"at_least": None}, "items.2"),
            ({"derived": "throughput", "unit": "jobs/day"}, "items.2.unit"),
            ({"derived": "throughput", "unit": "jobs/h"}, "items.2.unit"),
            ({"unit": "Gflop/s"}, "items.2.unit"),
        ],
    )
    def test_a_wrong_derived_item_is_refused(
        self,
        site: Site,
        terms: dict[str, Any],
        key_of: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.contract(site, self.derived(**terms), measure=False)
        assert main(["acceptance", "check", "-i", f"{site.inventory}"]) == 3
        assert f"{key_of}: " in capsys.readouterr().err

    def test_check_says_what_decides_each_item(
        self, site: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.contract(site, self.SEEN, self.derived(), measure=False)
        assert main(["acceptance", "check", "-i", f"{site.inventory}"]) == 0
        printed = capsys.readouterr().out
        assert "acceptance witness" in printed and "items P1, P2" in printed
        assert "≥ 0.1900 GB/s" in printed
