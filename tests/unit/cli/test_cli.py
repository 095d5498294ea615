"""The command line: what it prints, and the exit codes of the contract."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.finished import written_verdict
from tests.fixtures.kit import Kit, execution, make_kit, snapshot, steps_of, write_contract
from tests.folders import ROOT
from tests.processes import running

from proofmark.cli.main import main
from proofmark.cli.parser import COMMANDS, GROUPS, MEANT, OF_PERSONS, WIDTH_OF_COLUMN, parser
from proofmark.packages.exports.junit import suite_of
from proofmark.runs.run import Run

SAMPLES = ROOT / "benchmarks" / "samples"


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """Return a checkout with a site, which is the current folder."""
    made = make_kit(tmp_path)
    shutil.copytree(ROOT / "inventory" / "local", tmp_path / "inventory" / "local")
    path = tmp_path / "inventory/local/group_vars/local/partition.yml"
    facts = yaml.safe_load(path.read_text(encoding="utf-8"))["partition"]
    fake = {"fake": {"prefix": "/apps", "version": "1"}}
    facts |= {"provision_from": "preinstalled", "preinstalled": fake}
    path.write_text(yaml.safe_dump({"partition": facts}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def output(kit: Kit) -> Path:
    """Return the path of a valid output of the kit's case."""
    path = kit.folder / "out.txt"
    path.write_text("size 1\nrate 100\nEND\n", encoding="utf-8")
    return path


def called(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Return the exit code, stdout and stderr of a command."""
    code = main([str(argument) for argument in arguments])
    printed, said = capsys.readouterr()
    lines = said.splitlines(keepends=True)  # a busy machine is told apart
    return code, printed, "".join(x for x in lines if not x.startswith("warning: other processes"))


def judgeable(kit: Kit, value: float = 100) -> None:
    reference = {"metric": "rate", "kind": "contract", "source": "s", "unit": "MB/s", "at_least": 1}
    kit.case(references=[{**reference, "value": value, "where": {"size": 1}}])


def unsealed(kit: Kit, capsys: pytest.CaptureFixture[str]) -> Run:
    run = kit.run()
    assert called(capsys, "stage", "execute", run.folder)[0] == 0
    return run


def executed(kit: Kit, capsys: pytest.CaptureFixture[str]) -> Run:
    run = unsealed(kit, capsys)
    assert called(capsys, "stage", "collect", run.folder)[0] == 0
    return run


class TestUsage:
    @pytest.mark.parametrize("verb", COMMANDS)
    def test_every_command_explains_itself_with_an_example(
        self, capsys: pytest.CaptureFixture[str], verb: str
    ) -> None:
        with pytest.raises(SystemExit) as stopped:
            main([*verb.split(), "--help"])
        assert stopped.value.code == 0
        assert f"example: proofmark {verb} " in capsys.readouterr().out

    @pytest.mark.parametrize("verb", COMMANDS)
    def test_the_examples_are_right(self, capsys: pytest.CaptureFixture[str], verb: str) -> None:
        with pytest.raises(SystemExit):
            main([*verb.split(), "--help"])
        example = capsys.readouterr().out.rpartition("example: proofmark ")[2].split()
        assert " ".join(example).startswith(f"{verb} ")
        assert parser().parse_args(example).called.name == verb

    def test_the_help_groups_the_commands_of_persons_and_hides_those_of_playbooks(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The help fits a screen of 24 lines with 80 letters, and has each summary whole."""
        monkeypatch.setenv("COLUMNS", "80")
        with pytest.raises(SystemExit):
            main(["--help"])
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 80
        columns = [line[:WIDTH_OF_COLUMN].rstrip() for line in lines[3:]]
        columns += [line[WIDTH_OF_COLUMN:] for line in lines[3:]]
        headings = [line[:-1] for line in columns if line.endswith(":")]
        assert sorted(headings) == sorted([*GROUPS, "options"])
        listed = [line for line in columns if re.match("  [a-z]", line)]
        texts = [f"  {name:<11}{each.summary}" for name, each in OF_PERSONS.items()]
        assert sorted(listed) == sorted(texts)
        assert "  stage " not in "\n".join(lines)

    @pytest.mark.parametrize("word", MEANT)
    def test_a_word_that_people_try_leads_to_what_does_it(
        self, capsys: pytest.CaptureFixture[str], word: str
    ) -> None:
        assert word not in COMMANDS
        with pytest.raises(SystemExit) as stopped:
            main([word])
        assert stopped.value.code == 3
        usual = "ansible-playbook acceptance.yml -l PARTITION -e suite=SUITE"
        assert f"accepted: {MEANT[word] or usual}\n" in capsys.readouterr().err
        for name in re.findall(r"proofmark (\w+)", MEANT[word]):
            assert name in COMMANDS

    @pytest.mark.parametrize(
        ("line", "same"),
        [
            ("run stream -l node0042", "-l node0042 -e suite=stream"),
            ("run --suite quick -i inventory/x", "-i inventory/x -l PARTITION -e suite=quick"),
            ("-v start hpl -l 'knl[1-2]' --now", "-l 'knl[1-2]' -e suite=hpl"),
            ("run -l", "-l PARTITION -e suite=SUITE"),
        ],
    )
    def test_a_command_that_people_try_leads_to_the_whole_right_one(
        self, capsys: pytest.CaptureFixture[str], line: str, same: str
    ) -> None:
        with pytest.raises(SystemExit):
            main(shlex.split(line))
        said = capsys.readouterr().err
        assert f"accepted: ansible-playbook acceptance.yml {same}\n" in said

    def test_help_is_a_word(self, capsys: pytest.CaptureFixture[str]) -> None:
        printed = []
        for line in (["help"], ["--help"], ["help", "plan"], ["plan", "--help"]):
            with pytest.raises(SystemExit) as stopped:
                main(line)
            assert stopped.value.code == 0
            printed.append(capsys.readouterr().out)
        assert printed[0] == printed[1] and printed[2] == printed[3] != printed[0]

    @pytest.mark.parametrize("name", [name for name in COMMANDS if " " in name])
    def test_a_command_of_playbooks_is_below_one_command(
        self, capsys: pytest.CaptureFixture[str], name: str
    ) -> None:
        first, second = name.split()
        with pytest.raises(SystemExit):
            main([first, "--help"])
        assert f" {second} " in " ".join(capsys.readouterr().out.split())
        with pytest.raises(SystemExit) as stopped:
            main([second])
        assert stopped.value.code == 3
        assert f"found the command '{second}'" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("words", "suggestion"),
        [
            (["chek"], "found the command 'chek', did you mean 'check'?; accepted: site, "),
            (["-v", "verdit"], "'verdit', did you mean 'verdict'?"),
            (["zzz"], "found the command 'zzz'; accepted: site, acceptance, "),
            (["modes", "chek", "runs/r"], "verb: found 'chek', did you mean 'check'?; accepted: "),
            (["scratch", "umount", "runs/r"], "found 'umount', did you mean 'unmount'?"),
        ],
    )
    def test_a_wrong_command_or_verb_gets_a_suggestion(
        self, capsys: pytest.CaptureFixture[str], words: list[str], suggestion: str
    ) -> None:
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 3
        said = capsys.readouterr().err
        assert said.startswith("usage: proofmark")
        assert suggestion in said

    @pytest.mark.parametrize(
        "arguments", [[], ["no-such-command"], ["cases", "--no"], ["adopt"], ["plan"]]
    )
    def test_wrong_usage_is_bad_input(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 3
        assert "usage: proofmark" in capsys.readouterr().err

    def test_a_reader_that_has_seen_enough_is_no_error_and_no_verdict(self) -> None:
        code = "import sys; from proofmark.cli.main import main; sys.exit(main())"
        started = subprocess.Popen(
            [sys.executable, "-c", code, "cases", "--schema"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        with running(started) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 141

    def test_what_the_system_refuses_is_said_in_one_line(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = kit.run()
        (run.folder / "lock").mkdir()
        code, _, said = called(capsys, "status", run.folder)
        assert (code, said.count("\n")) == (3, 1)
        assert said.startswith("proofmark: [Errno 21] Is a directory")


class TestCases:
    def test_it_lists_cases_with_suites_and_metrics(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kit.case("other", suites={}, title="A [bracketed] title")
        code, printed, _ = called(capsys, "cases")
        lines = [line.split() for line in printed.splitlines()]
        assert code == 0
        assert ["fake", "quick", "rate", "Fake"] in lines
        assert ["other", "–", "rate", "A", "[bracketed]", "title"] in lines

    def test_it_lists_those_of_a_suite(self, kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
        kit.case("other", suites={})
        assert "other" not in called(capsys, "cases", "--suite", "quick")[1]
        code, _, said = called(capsys, "cases", "--suite", "quik")
        assert code == 3
        assert "did you mean 'quick'?" in said

    def test_a_check_says_nothing_or_all_mistakes(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert called(capsys, "cases", "--check") == (0, "", "")
        kit.case("one", lanch="x")
        kit.case("two", program="")
        code, printed, said = called(capsys, "cases", "--check")
        assert (code, printed, said.count("\n")) == (3, "", 2)
        assert all(line.startswith("proofmark: ") for line in said.splitlines())


class TestRead:
    def test_a_sound_output_is_a_list_of_readings(
        self, output: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, printed, _ = called(capsys, "adopt", "--print", "fake", output, "--format", "json")
        (row,) = json.loads(printed)
        expected = {"case": "fake", "benchmark": "FAKE", "metric": "rate", "value": 100.0}
        expected |= {"unit": "MB/s", "parameters": {"size": 1}, "valid": True, "reason": ""}
        assert (code, {key: row[key] for key in expected}) == (0, expected)

    def test_the_formats_say_the_same(
        self, output: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, printed, _ = called(capsys, "adopt", "--print", "fake", output, "--format", "csv")
        (row,) = csv.DictReader(io.StringIO(printed))
        assert (row["value"], json.loads(row["parameters"])) == ("100.0", {"size": 1})
        words = called(capsys, "adopt", "--print", "fake", output)[1].split()
        assert words[-5:] == ["FAKE", "rate", "100", "MB/s", "size=1"]

    @pytest.mark.fault("output-truncated")
    def test_good_rows_are_printed_also_when_something_is_invalid(
        self, kit: Kit, output: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cut = kit.folder / "cut.txt"
        cut.write_text("size 2\nrate 50\n", encoding="utf-8")
        code, printed, _ = called(
            capsys, "adopt", "--print", "fake", output, cut, "--format", "json"
        )
        assert [(row["value"], row["valid"]) for row in json.loads(printed)] == [
            (100, True),
            (50, False),
        ]
        assert code == 2
        assert "INVALID: " in called(capsys, "adopt", "--print", "fake", cut)[1]

    @pytest.mark.parametrize("content", [b"", b"\xff\x00\x1b[2J", b"rate x"])
    def test_no_output_makes_it_fall_over(
        self, output: Path, capsys: pytest.CaptureFixture[str], content: bytes
    ) -> None:
        output.write_bytes(content)
        for form in ("json", "csv", "table"):
            assert called(capsys, "adopt", "--print", "fake", output, "--format", form)[0] == 2

    def test_a_file_that_is_not_there_is_bad_input(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, _, said = called(capsys, "adopt", "--print", "fake", "gone.txt")
        assert (code, said.count("\n")) == (3, 1)
        assert "gone.txt: found No such file" in said
        assert called(capsys, "adopt", "--print", "fake", kit.folder)[0] == 3

    @pytest.mark.fault("unknown-case")
    def test_an_unknown_case_is_bad_input(
        self, output: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, _, said = called(capsys, "adopt", "--print", "fke", output)
        assert code == 3
        assert "unknown case 'fke', did you mean 'fake'?" in said


class TestPlan:
    SITE = ("-i", "inventory/local", "-l", "local")

    def test_its_json_is_that_of_the_contract(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, printed, _ = called(capsys, "plan", *self.SITE, "--json")
        plan = json.loads(printed)
        assert code == 0
        assert {"digest", "groups", "totals"} <= plan.keys()
        assert {"mode", "environment", "jobs"} <= plan["groups"][0].keys()
        assert {"nodes", "steps"} <= plan["groups"][0]["jobs"][0].keys()
        assert {"jobs", "steps", "node_hours", "bytes", "wall_s"} <= plan["totals"].keys()
        assert list(kit.folder.glob("runs*")) == []

    def test_it_shows_steps_and_costs(self, kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
        kit.case(cost={"seconds": 1800, "bytes": 1 << 30})
        _, printed, _ = called(capsys, "plan", *self.SITE, "-v")
        assert "0002-fake-2" in printed
        assert (
            "\nsuite: quick, partition: local, jobs: 1, steps: 2, time: about 1 h 00 min, "
            "node-hours: 1.00, written to scratch: 2.0 GiB, at most 1.0 GiB at one time; digest: "
        ) in printed

    def test_a_run_that_cannot_be_judged_is_refused_unless_the_user_accepts_it(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        needs = {"case": "fake", "metrics": ["rate"]}
        kit.suites(quick={"title": "Quick", "required_metrics": [needs]})
        line = "required: fake rate: no reference applies; an item of contract.yml enables"
        code, printed, _ = called(capsys, "plan", *self.SITE)
        assert (code, f"unjudged: {line}" in printed) == (0, True)
        assert "a run is refused: without -e accept_unjudged=true" in printed
        code, printed, _ = called(capsys, "plan", *self.SITE, "--json")
        (found,) = json.loads(printed)["unjudged"]
        assert (found["reason_code"], found["key"]) == ("no-reference", "contract.yml.items")
        code, _, said = called(capsys, "plan", *self.SITE, "--create")
        assert (code, f"cannot be judged: {line}" in said) == (3, True)
        assert not (kit.folder / "runs").exists()
        assert called(capsys, "plan", *self.SITE, "--create", "--accept-unjudged")[0] == 0

    def test_a_new_run_prints_the_limits_of_other_suites_on_stderr(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kit.suites(quick={"title": "small"}, large={"title": "large"})
        kit.case(suites={"quick": {}, "large": {"sweep": {"size": [1024]}}})
        inventory = kit.folder / "inventory/local"  # Ansible caches relative paths
        limit = {"case": "fake", "metric": "rate", "source": "tender", "value": 50}
        limit |= {"unit": "MB/s", "at_least": 1, "where": {"size": 1024}}
        write_contract(inventory, [limit])
        site = ("-i", inventory, "-l", "local")
        code, printed, said = called(capsys, "plan", *site, "--create")
        assert (code, said) == (0, "not in this suite: limit fake rate (size=1024), of large\n")
        assert json.loads(printed)["suite"] == "quick"

    def test_it_creates_a_run_and_continues_it(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first = json.loads(called(capsys, "plan", *self.SITE, "--create")[1])
        again = json.loads(called(capsys, "plan", *self.SITE, "--create")[1])
        assert (first["continued"], again["continued"]) == (False, True)
        assert first["run"] == again["run"]
        assert first["packages"] == ["fake"]
        code, _, said = called(capsys, "plan", *self.SITE, "--create", "--run-id", "../up")
        assert (code, said[:28]) == (3, "proofmark: run_id: found '..")

    @pytest.mark.fault("unknown-suite")
    def test_an_unknown_suite_is_bad_input(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, _, said = called(capsys, "plan", *self.SITE, "--suite", "quik")
        assert code == 3
        assert "unknown suite 'quik', did you mean 'quick'?" in said

    @pytest.mark.fault("two-sites")
    def test_two_sites_are_bad_input(self, kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
        code, _, said = called(capsys, "plan", "-i", "inventory/other", *self.SITE)
        assert code == 3
        assert "found 2 sites" in said

    @pytest.mark.fault("empty-sweep")
    def test_an_empty_sweep_is_bad_input(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kit.case(sweep={"size": "{doubling(2, 1)}"})
        code, _, said = called(capsys, "plan", *self.SITE)
        assert code == 3
        assert "fake.yml: sweep.size: found '{doubling(2, 1)}', which gives no point" in said


class TestVerdict:
    @pytest.mark.parametrize(
        ("value", "strict", "code"),
        [(100, [], 0), (101, [], 4), (140, [], 1), (100, ["--strict"], 4)],
    )
    def test_its_exit_code_is_the_answer(
        self,
        kit: Kit,
        capsys: pytest.CaptureFixture[str],
        value: float,
        strict: list[str],
        code: int,
    ) -> None:
        judgeable(kit, value)
        run = executed(kit, capsys)
        before = snapshot(run.folder)
        assert called(capsys, "verdict", run.folder, *strict)[0] == code
        assert snapshot(run.folder) == before

    @pytest.mark.parametrize(
        ("value", "strict", "exit_code", "meaning"),
        [(140, [], 1, "FAIL"), (100, [], 0, "PASS"), (100, ["--strict"], 4, "UNJUDGED")],
    )
    def test_a_report_ends_with_three_lines_on_stderr(
        self,
        kit: Kit,
        capsys: pytest.CaptureFixture[str],
        value: float,
        strict: list[str],
        exit_code: int,
        meaning: str,
    ) -> None:
        judgeable(kit, value)
        run = executed(kit, capsys)
        code, printed, said = called(capsys, "report", run.folder, "--json", *strict)
        head = json.loads(printed)
        assert (code, head["exit_code"], head["meaning"]) == (0, exit_code, meaning)
        assert said.splitlines() == head["lines"]
        assert head["lines"][2].startswith(f"report: {run.folder}/report.html; next: ")
        assert {"run", "counts", "coverage", "retest", "fleet"} < head.keys()

    def test_nothing_judged_is_no_pass(self, kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
        code, printed, _ = called(capsys, "verdict", executed(kit, capsys).folder)
        assert code == 4
        assert "0 PASS, 0 FAIL, 0 INVALID, 2 UNJUDGED" in printed
        assert "; 2 of 2 steps measured\n" in printed

    def test_a_hole_in_the_coverage_is_more_than_a_failure(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        judgeable(kit, 140)
        run = unsealed(kit, capsys)
        execution(steps_of(run)[1]).rename(steps_of(run)[1] / "unfinished-1")
        for sealed in (False, True):
            if sealed:
                assert called(capsys, "stage", "collect", run.folder)[0] == 0
            code, printed, said = called(capsys, "verdict", run.folder, "--json")
            verdict = json.loads(printed)
            assert code == 2
            assert verdict["coverage"]["missing"] == [steps_of(run)[1].name]
            assert (verdict["run"], verdict["counts"]["FAIL"]) == (run.id, 1)
            assert ("nothing is sealed yet" in said) is not sealed

    def test_garbage_of_every_kind_can_be_judged_and_shown(
        self, kit: Kit, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kit.program(r"printf '\000\377\033[31m[/red] ]]>'; printf '\000\007[bold]\377' >&2; exit 9")
        run = executed(kit, capsys)
        code, printed, _ = called(capsys, "verdict", run.folder)
        assert code == 2
        assert "exit code 9" in printed
        assert "[bold]" in printed
        assert json.loads(called(capsys, "verdict", run.folder, "--json")[1])
        suite = suite_of(written_verdict(run))
        assert "exit code 9" in next(suite.iter("error")).get("message", "")

    @pytest.mark.parametrize("damaged", ["plan.json", "software.json", "inputs/site.json"])
    def test_a_damaged_run_is_bad_input(
        self, kit: Kit, capsys: pytest.CaptureFixture[str], damaged: str
    ) -> None:
        run = unsealed(kit, capsys)
        (run.folder / damaged).write_text("{}", encoding="utf-8")
        for verb in ("verdict", "report", "verdict"):  # a report may seal the file
            code, _, said = called(capsys, verb, run.folder)
            assert code == 3
            assert damaged in said
        assert called(capsys, "verdict", kit.folder)[0] == 3


class TestStatus:
    def test_it_says_how_far_a_run_is(self, kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
        run = kit.run()
        assert "0/2 steps" in called(capsys, "status", "runs/latest-here")[1]
        called(capsys, "stage", "execute", run.folder)
        code, printed, _ = called(capsys, "status", run.folder, "--json")
        status = json.loads(printed)
        assert (code, status["done"], status["steps"], status["active"]) == (0, 2, 2, False)
        assert set(status["states"].values()) == {"done"}
        assert called(capsys, "status", run.folder, "--watch")[1] == f"{run.id}: 2/2 steps\n"


class TestExtending:
    """Design: adding a benchmark is one file."""

    @pytest.mark.parametrize(
        ("source", "sample"),
        [("hpcc", "hpcc-1.5.0_N4000_n2"), ("fio-cache", "fio-3.33_4m_2m_n2_shared")],
    )
    def test_a_copied_case_is_listed_planned_and_read(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        source: str,
        sample: str,
    ) -> None:
        shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks")
        shutil.copytree(ROOT / "environments", tmp_path / "environments")
        shutil.copytree(ROOT / "inventory" / "local", tmp_path / "inventory" / "local")
        monkeypatch.chdir(tmp_path)
        cases = tmp_path / "benchmarks"
        shutil.copy(cases / f"{source}.yml", cases / "brand-new.yml")

        assert "\nbrand-new " in called(capsys, "cases", "--suite", "quick")[1].replace("\n ", "\n")
        site = ("-i", "inventory/local", "-l", "local")
        _, printed, said = called(capsys, "plan", *site, "--suite", "quick", "--json")
        # A virtual machine has no memory channels, by which Triad would be judged.
        assert all(line.startswith("unjudged: reference: ") for line in said.splitlines())
        steps = json.loads(printed)["groups"][0]["jobs"][0]["steps"]
        assert like(steps, "brand-new") == like(steps, source) != []

        (output,) = [path for path in SAMPLES.glob(f"{sample}.*") if "expected" not in path.name]
        found: dict[str, Any] = {}
        for case in (source, "brand-new"):
            words = ("adopt", "--print", case, output, "--format", "json")
            code, printed, _ = called(capsys, *words)
            found[case] = code, [{**row, "case": ""} for row in json.loads(printed)]
        assert found["brand-new"] == found[source]
        assert found[source][0] == 0


def like(steps: list[dict[str, Any]], case: str) -> list[str]:
    """Return the steps of `case` without their ids and the name of the case."""
    return [
        yaml.safe_dump({key: value for key, value in step.items() if key not in ("id", "case")})
        for step in steps
        if step["case"] == case
    ]


def test_the_command_line_does_not_import_the_libraries_of_the_judge() -> None:
    """An acceptance starts several commands. Importing these libraries takes longer than most."""
    code = "import sys, proofmark.cli.main; print(sorted({'numpy', 'polars'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.fault("kit-crash")
@pytest.mark.parametrize("verbose", [False, True])
def test_a_crash_of_the_kit_has_its_own_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    verbose: bool,
) -> None:
    run = make_kit(tmp_path).run()

    def crash(*_: object, **__: object) -> None:
        raise ZeroDivisionError("odd\nproofmark: PASS\x1b[2J")

    monkeypatch.setattr("proofmark.cli.status.progress", crash)
    assert main([*(["-v"] if verbose else []), "status", str(run.folder)]) == 70
    first, *rest = capfd.readouterr().err.splitlines()
    assert first.startswith("proofmark: internal error: ZeroDivisionError: odd proofmark: PASS [2J")
    assert all(line.startswith("| ") for line in rest)
    assert any("in crash" in line for line in rest) == verbose
    kept = run.files.trace.read_text(encoding="utf-8")
    assert "| ZeroDivisionError: odd\n| proofmark: PASS [2J\n" in kept
    assert (f"{run.files.trace}" in first) != verbose


def test_a_command_without_a_crash_has_its_own_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Control: no fault is injected."""
    run = make_kit(tmp_path).run()
    assert main(["status", str(run.folder)]) == 0
    assert main(["status", str(tmp_path / "missing")]) == 3
    assert "internal error" not in capfd.readouterr().err
    assert not run.files.trace.exists()


def test_a_crash_without_a_run_names_the_option(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("proofmark.cli.check.kit_benchmarks", lambda: 1 // 0)
    assert main(["cases"]) == 70
    assert "run it again with -v for the traceback" in capfd.readouterr().err


@pytest.mark.parametrize(
    "locale", [{"LANG": "xx_XX.UTF-8"}, {"LANG": "C.UTF-8", "LC_TIME": "xx_XX.UTF-8"}]
)
def test_a_locale_that_the_system_lacks_ends_no_command(locale: dict[str, str]) -> None:
    """Ssh sends the variables of a desktop, and Ansible needs a locale of this system."""
    others = {k: v for k, v in os.environ.items() if k != "LANG" and not k.startswith("LC_")}
    program = str(Path(sys.executable).with_name("proofmark"))
    done = subprocess.run(
        [program, "plan", "-i", "inventory/local", "-l", "local", "--suite", "quick"],
        cwd=ROOT,
        env={**others, **locale},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "suite: quick, partition: local" in done.stdout, done.stderr
    assert done.returncode == 0
