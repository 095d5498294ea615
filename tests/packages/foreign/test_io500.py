"""Submissions to IO500: which folder is one, its scores, and the rules that it breaks."""

from __future__ import annotations

import io
import math
import re
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.outputs import benchmarks

from proofmark.cli.main import main
from proofmark.packages.foreign.io500 import (
    findings,
    read_submission,
    rules,
    scores,
    submission_folders,
)

IOR = "./ior -C -Q 1 -g -k -e -o d/f"
EASY = f"{IOR} -t 2m -b 9920000m -F"
HARD = f"{IOR} -t 47008 -b 47008 -s 10000000"
MD_EASY = "./mdtest -n 1000 -u -L -F -P -N 1 -d d/easy"
MD_HARD = "./mdtest -n 1000 -t -w 3901 -e 3901 -P -G=9 -N 1 -F -d d/hard"
COMMANDS = {
    "ior-easy-write": f"{EASY} -w -D 300",
    "ior-hard-write": f"{HARD} -w -D 300",
    "ior-easy-read": f"{EASY} -r -R",
    "ior-hard-read": f"{HARD} -r -R",
    "mdtest-easy-write": f"{MD_EASY} -C -W 300",
    "mdtest-easy-stat": f"{MD_EASY} -T",
    "mdtest-easy-delete": f"{MD_EASY} -r",
    "mdtest-hard-write": f"{MD_HARD} -C -W 300",
    "mdtest-hard-stat": f"{MD_HARD} -T",
    "mdtest-hard-read": f"{MD_HARD} -E -X",
    "mdtest-hard-delete": f"{MD_HARD} -r",
    "find": "./pfind d -size 3901c",
}
# (16 * 1 * 8 * 2) ** (1 / 4) = 4; eight times 100 is 100; sqrt(4 * 100) = 20
SCORES = {"ior-easy-write": 16, "ior-hard-write": 1, "ior-easy-read": 8, "ior-hard-read": 2}
TOTAL = "[SCORE]\nMD              = 100.000000\nBW              = 4.000000\nSCORE           = {}\n"
TOTALS = ("md", "bw", "score")
MDTEST = """\
-- started at 03/02/2026 10:00:00 --
mdtest-4.1.0+dev was launched with 4 total task(s) on 1 node(s)
Command line used: ./mdtest '-n' '1000' '-T' '-F'
SUMMARY rate (in ops/sec): (of 1 iterations)
   File stat     {rate}    {rate}    {rate}    0.000
SUMMARY time (in ms/op): (of 1 iterations)
   File stat     0.082     0.082     0.082     0.000
-- finished at 03/02/2026 10:01:00 --
"""


def result(total: str = "20.000000", **changes: tuple[str, str]) -> dict[str, str]:
    """Return the files of a submission; a change replaces words of the section of a phase."""
    text = "[run]\nprocs = 4\nversion = io500-isc24_v3\n\n"
    for phase, command in COMMANDS.items():
        seconds = "310.5" if "write" in phase else "20.1"
        part = f"exe = {command}\nscore = {SCORES.get(phase, 100):.6f}\nt_delta = {seconds}\n"
        text += f"[{phase}]\n{part.replace(*changes.get(phase.replace('-', '_'), ('', '')))}\n"
    return {"result.txt": text + TOTAL.format(total), "config.ini": "[global]\nscc = FALSE\n"}


def broken(files: dict[str, str]) -> list[str]:
    return [*findings(read_submission(files), benchmarks())]


def test_the_scores_are_means_of_the_phases() -> None:
    submission = read_submission(result())
    assert scores(submission) == pytest.approx({"BW": 4, "MD": 100, "SCORE": 20})
    assert submission.ini == {"global": {"scc": "FALSE"}}
    assert findings(submission, benchmarks()) == []


@pytest.mark.parametrize(
    ("change", "phase", "found"),
    [
        (("310.5", "254.2"), "ior_hard_write", "254.2 s; at least 300 s are required"),
        (("-D 300", "-D 30"), "ior_easy_write", "-D 30; at least 300 s are required"),
        (("-W 300", ""), "mdtest_easy_write", "-W –; at least 300 s are required"),
        (("-t 47008", "-t 1m"), "ior_hard_read", "-t 1m; -t 47008 is required"),
        (("-k", "-k -F"), "ior_hard_write", "-F is not allowed"),
        (("-w 3901", "-w 0"), "mdtest_hard_read", "-w 0; -w 3901 is required"),
        (("-P", "-u"), "mdtest_hard_write", "-u is not allowed"),
        (("-u", ""), "mdtest_easy_stat", "without -u, which is required"),
        (("-P", "-w 4096"), "mdtest_easy_delete", "-w is not allowed"),
    ],
)
def test_a_broken_rule_is_named(change: tuple[str, str], phase: str, found: str) -> None:
    assert broken(result("20.000000", **{phase: change})) == [f"{phase.replace('_', '-')}: {found}"]


def test_a_student_competition_needs_30_seconds() -> None:
    files = result(ior_easy_write=("-D 300", "-D 30"))
    assert broken({**files, "config.ini": "[global]\nscc = TRUE\n"}) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("score = 1.0", "score = 9.0"), ["BW", "SCORE"]),
        (("score = 1.0", "score = 1.0000001"), []),
    ],
)
def test_a_score_that_the_phases_do_not_give(change: tuple[str, str], found: list[str]) -> None:
    assert [each.partition(":")[0] for each in broken(result(ior_hard_write=change))] == found


def test_a_phase_is_compared_with_its_output() -> None:
    files = {**result(), "mdtest-easy-stat.txt": MDTEST.format(rate="100000.4")}
    assert broken(files) == []
    files["mdtest-easy-stat.txt"] = MDTEST.format(rate="90000.0")
    assert broken(files) == [
        "mdtest-easy-stat: the result file has 100, the output of the phase gives 90"
    ]


def test_a_phase_that_did_not_run_has_no_score() -> None:
    files = result()
    files["result.txt"] = files["result.txt"].replace("[find]", "[find-easy]")
    assert broken(files) == ["find: not run"]
    assert scores(read_submission(files)).keys() == {"BW"}


def test_what_the_program_itself_calls_invalid_is_named() -> None:
    files = result()
    files["result.txt"] += "; ERROR INVALID stonewall-time < 300s\n"
    assert broken(files) == ["the program itself says: ERROR INVALID stonewall-time < 300s"]


def test_the_summary_of_the_script_before_the_program() -> None:
    lines = [
        f"[RESULT] {'BW' if name in SCORES else 'IOPS'}   phase 1   {name.replace('-', '_')}   "
        f"{SCORES.get(name, 100):.3f} {'GB/s' if name in SCORES else 'kiops'} : time 304.45 seconds"
        for name in COMMANDS
    ]
    lines.append("[SCORE] Bandwidth 4 GB/s : IOPS 100 kiops : TOTAL 20")
    assert broken({"result_summary.txt": "\n".join(lines)}) == []
    assert broken({"result_summary.txt": "\n".join(lines).replace("TOTAL 20", "TOTAL 25")}) == [
        "SCORE: the result file has 25, its phases give 20"
    ]


def test_a_file_without_phases_is_refused() -> None:
    with pytest.raises(ValueError, match="no phase in"):
        read_submission({"result.txt": "nothing"})


NUMBERS = [
    "",
    "   ",
    "nan",
    "inf",
    "-5",
    "0",
    "1e308",
    "1e999",
    "0e9999",
    "9" * 400,
    "abc",
    "\x1b[31m7",
]
"""Words that are no score and no time."""


@pytest.mark.parametrize("word", NUMBERS)
@pytest.mark.parametrize("key", ["find.score", "find.t_delta", *(f"SCORE.{w}" for w in TOTALS)])
def test_a_number_that_cannot_be_used_is_a_finding(key: str, word: str) -> None:
    files = result()
    section, name = key.split(".")
    begin, mark, rest = files["result.txt"].partition(f"[{section}]\n")
    rest = re.sub(rf"(?mi)^{name} *=.*", lambda _: f"{name} = {word}", rest, count=1)
    files["result.txt"] = begin + mark + rest
    submission = read_submission(files)
    assert [(each.file, each.key) for each in submission.mistakes] == [("result.txt", key)]
    (found,) = findings(submission, benchmarks())
    assert found.code == "io500-number"
    assert found.isprintable()
    assert all(math.isfinite(value) for value in scores(submission).values())


@pytest.mark.parametrize(
    "gone", ["score = 100.000000\n", "t_delta = 20.1\n", TOTAL.format("20.000000")]
)
def test_a_number_that_is_missing_is_a_finding(gone: str) -> None:
    files = result()
    place = files["result.txt"].rindex(gone)
    files["result.txt"] = files["result.txt"][:place] + files["result.txt"][place + len(gone) :]
    codes = [each.code for each in findings(read_submission(files), benchmarks())]
    assert codes == ["io500-number"] * (3 if gone.startswith("[") else 1)


def test_a_summary_has_the_same_limits() -> None:
    lines = [
        f"[RESULT] IOPS phase 1 {name.replace('-', '_')} {-1 if name == 'find' else 100} kiops : "
        f"time {'1e308' if name == 'ior-hard-read' else 304} seconds"
        for name in COMMANDS
    ]
    text = "\n".join([*lines, "[SCORE] Bandwidth nan GB/s : IOPS 100 kiops : TOTAL inf"])
    keys = [each.key for each in read_submission({"result_summary.txt": text}).mistakes]
    assert keys == ["ior-hard-read.t_delta", "find.score", "SCORE.bw", "SCORE.score"]


def test_a_stonewall_of_more_than_a_year_is_none() -> None:
    assert broken(result(ior_easy_write=("-D 300", "-D 1e308"))) == [
        "ior-easy-write: -D 1e308; at least 300 s are required"
    ]


@given(st.data())
def test_any_damage_of_a_result_is_read(data: st.DataObject) -> None:
    """No exception but that of a file without a phase."""
    text = result()["result.txt"]
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(text)))
        word = data.draw(st.sampled_from(["\0", "[", "]", "=", "\n", "\n ", "e999", "-", "\x1b"]))
        text = text[:place] + word + text[place + data.draw(st.integers(0, 60)) :]
    try:
        submission = read_submission({"result.txt": text, "config.ini": text[::-1]})
    except ValueError as error:
        assert error.args[0].code == "io500-no-result"
    else:
        assert all(math.isfinite(value) for value in scores(submission).values())
        findings(submission, benchmarks())


def test_bad_input_has_its_exit_code_and_no_escape_sequence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In names of folders, in results and in lines of the program itself."""
    files = result(find=("score = 100.000000", "score = \x1b[31m100"))
    files["result.txt"] += "; ERROR INVALID \x1b]0;owned\x07\n"
    files["config.ini"] = "[a]\nkey\n continued\n"
    files |= {"ior-easy-write.txt": "", "mdtest-easy-stat.txt": MDTEST.format(rate=100)}
    folder = tmp_path / "a\x1b[2Jb"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    assert main(["io500", str(tmp_path)]) == 3
    printed = capsys.readouterr()
    assert all(line.isprintable() for line in (printed.out + printed.err).splitlines())
    assert "find.score: found '�[31m100'; accepted: a number above 0" in printed.out
    assert "result.txt: find.score: found" in printed.err


def test_a_submission_without_a_phase_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("result.txt", "ior-easy-write.txt", "mdtest-easy-stat.txt"):
        (tmp_path / name).write_text("")
    assert main(["io500", str(tmp_path)]) == 3
    assert "found no phase in result.txt" in capsys.readouterr().err


def test_which_folders_are_submissions() -> None:
    whole = ["a/r/result.txt", "a/r/ior-easy-write.txt", "a/r/mdtest_hard_read.txt"]
    other = ["b/result.txt", "b/ior-easy-write.txt", "c/ior.txt", "a/x.ini", "a/job.sh"]
    assert submission_folders([*other, *whole]) == {"a/r": sorted([*whole, "a/x.ini"])}
    own = "a/r/config.ini"
    assert submission_folders([*other, *whole, own]) == {"a/r": sorted([*whole, own])}


def test_the_rules_name_readers_of_the_kit() -> None:
    for rule in rules().phases.values():
        assert not rule.case or rule.metric in benchmarks().case(rule.case).reader().units


@pytest.mark.parametrize("packed", [False, True])
def test_the_command_prints_scores_and_broken_rules(
    tmp_path: Path, packed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder, or an archive of it."""
    files = result(ior_easy_write=("-D 300", "-D 30"))
    files |= {"ior-easy-write.txt": "", "mdtest-easy-stat.txt": MDTEST.format(rate=100)}
    place = tmp_path / ("isc.tar" if packed else "isc")
    if packed:
        with tarfile.open(place, "w") as archive:
            for name, text in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
    else:
        place.mkdir()
        for name, text in files.items():
            (place / name).write_text(text, encoding="utf-8")
    assert main(["io500", str(tmp_path)]) == 2
    printed = capsys.readouterr().out
    assert "SCORE" in printed and "ior-easy-write: -D 30; at least 300 s are required" in printed
