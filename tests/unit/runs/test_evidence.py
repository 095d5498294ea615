"""Evidence is what was sealed: no later change of the run has an effect, and each one is named."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, tzinfo
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import execution
from tests.folders import let_all_enter

from proofmark.cli.main import main
from proofmark.common.archive import ArchiveWriter, Change
from proofmark.common.errors import BadInput
from proofmark.common.input_limits import MAX_ARCHIVES, MAX_EVIDENCE_FILES
from proofmark.runs import evidence as runs_evidence
from proofmark.runs.evidence import (
    CHECKED,
    SUMS,
    SealedEvidence,
    open_evidence,
    read_evidence,
    rule_of,
    seal,
)
from proofmark.runs.run import Decisions, SetAside, add_decisions, open_run
from proofmark.runs.run_files import RunFiles, SealRule

NOBODY = 65534


@pytest.fixture
def run(tmp_path: Path, finished_run: Path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "runs" / finished_run.name))


def collect(run: Path, code: int = 0) -> None:
    assert main(["stage", "collect", f"{run}"]) == code


def verdict_of(run: Path) -> dict[str, Any]:
    """Report a run; return its verdict."""
    assert main(["report", f"{run}"]) == 0
    verdict: dict[str, Any] = json.loads(RunFiles(run).verdict.read_text())
    return verdict


def archives(run: Path) -> list[Path]:
    return sorted((run / "evidence").glob("*.tar"))


def test_control_an_archive_needs_no_kit(run: Path, tmp_path: Path) -> None:
    collect(run)
    (path,) = archives(run)
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(check, cwd=path.parent, check=True)
    subprocess.run(["tar", "xf", path, "-C", tmp_path], check=True)
    output = execution(run / "workdir/steps/0001-fake-1") / "stdout"
    unpacked = tmp_path / output.relative_to(run)
    assert unpacked.read_bytes() == output.read_bytes()
    with tarfile.open(path) as tar:
        names = set(tar.getnames())
    assert {"evidence.json", "plan.json", "run.json"} <= names
    assert any(name.startswith("nodes/") for name in names)
    head = json.loads((tmp_path / "evidence.json").read_text())
    assert (head["run"], head["number"], head["before"]) == (run.name, 1, "")
    assert head["sealed_by"] == head["run_by"]


def test_a_second_call_without_a_change_makes_no_archive(run: Path) -> None:
    collect(run)
    before = [path.read_bytes() for path in archives(run)]
    collect(run)
    assert [path.read_bytes() for path in archives(run)] == before


def test_a_rerun_makes_the_next_archive_and_leaves_the_first(run: Path) -> None:
    collect(run)
    (first,) = archives(run)
    content = first.read_bytes()
    assert main(["rerun", f"{run}", "1"]) == 0
    _, second = archives(run)
    assert first.read_bytes() == content
    assert second.stat().st_size < first.stat().st_size
    evidence = read_evidence(run)
    assert evidence is not None
    assert evidence.newest.before == evidence.digests[0]
    (result,) = (each for each in verdict_of(run)["results"] if each["step"] == "0001-fake-1")
    assert len(result["values"]) == 2


def _edited(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"0", b"9").replace(b"1", b"7") + b" ")


def _removed(path: Path) -> None:
    path.unlink()


def _linked(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def _history(run: Path) -> Path:
    return min(run.glob("queue/*/history.jsonl"))


def _probe(run: Path) -> Path:
    return min(run.glob("workdir/jobs/*/attempt-1/*.after"))


def _output(run: Path) -> Path:
    return execution(run / "workdir/steps/0001-fake-1") / "stdout"


def _noise(run: Path) -> Path:
    return execution(run / "workdir/steps/0001-fake-1") / "noise.json"


def _site(run: Path) -> Path:
    return run / "inputs/site.json"


def _plan(run: Path) -> Path:
    return run / "plan.json"


def _programs(run: Path) -> Path:
    return run / "software.json"


SEALED = (_output, _noise, _probe, _history, _site, _plan, _programs)


@pytest.mark.fault("evidence-changed")
@pytest.mark.parametrize("change", [_edited, _removed, _linked])
def test_a_change_after_the_seal_has_no_effect_and_is_named(
    run: Path, change: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The control is the first verdict, which has no such fault."""
    collect(run)
    before = verdict_of(run)
    assert "stage_faults" not in before
    paths = [of(run) for of in SEALED]
    for path in paths:
        change(path)
    capsys.readouterr()
    collect(run)
    names = {f"{path.relative_to(run)}" for path in paths}
    said = capsys.readouterr().err
    assert not [name for name in names if f"{name}: " not in said]
    after = verdict_of(run)
    faults = after.pop("stage_faults")
    assert {fault["code"] for fault in faults} == {"CHANGED"}
    assert sorted(fault["text"].partition(":")[0] for fault in faults) == sorted(names)
    assert after["results"] == before["results"]
    page = RunFiles(run).report.read_text()
    assert "CHANGED" in page
    assert "Find out what changed the file." in page
    first = archives(run)
    collect(run)  # a change is stated once
    assert archives(run) == first


@pytest.mark.fault("evidence-changed")
def test_a_file_that_appears_in_a_sealed_execution_is_named(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collect(run)
    (_output(run).parent / "telemetry.jsonl").write_text("{}")
    collect(run)
    assert "telemetry.jsonl: added after it was sealed" in capsys.readouterr().err
    sealed = open_evidence(run)
    assert sealed is not None
    (fault,) = verdict_of(run)["stage_faults"]
    assert fault["code"] == "CHANGED"


ASIDE: dict[str, Any] = {"attempts": 1, "reason": "the node was cabled wrongly"}


@pytest.mark.fault("evidence-changed")
@pytest.mark.parametrize(
    ("decisions", "allowed"),
    [
        ({"set_aside": {"0001-fake-1": ASIDE, "0002-fake-2": ASIDE}}, True),
        ({"set_aside": {}}, False),
        ({"set_aside": {"0001-fake-1": {**ASIDE, "attempts": 2}}}, False),
    ],
)
def test_decisions_only_grow(run: Path, decisions: dict[str, Any], allowed: bool) -> None:
    add_decisions(RunFiles(run), Decisions(set_aside={"0001-fake-1": SetAside(**ASIDE)}))
    collect(run)
    RunFiles(run).decisions.write_text(json.dumps(decisions))
    collect(run)
    evidence = read_evidence(run)
    assert evidence is not None
    assert ("decisions.json" in evidence.changes) is not allowed


def test_a_history_grows_by_lines_only(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    collect(run)
    path = _history(run)
    path.write_bytes(path.read_bytes() + path.read_bytes())
    collect(run)
    assert "history.jsonl" not in capsys.readouterr().err
    path.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[1:]))
    collect(run)
    assert f"{path.relative_to(run)}: changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("plan.json", SealRule.FIXED),
        ("inputs/site.json", SealRule.FIXED),
        ("growth/0001.json", SealRule.FIXED),
        ("workdir/steps/1/execution-1/stdout", SealRule.FIXED),
        ("workdir/steps/1/n1/execution-12/x/y", SealRule.FIXED),
        ("workdir/jobs/j/attempt-1/n1.before", SealRule.FIXED),
        ("workdir/jobs/j/attempt-1/network/1-x/n1.after", SealRule.FIXED),
        ("workdir/jobs/j/attempt-1/repeats", SealRule.REPLACED),
        ("queue/j/history.jsonl", SealRule.GROWS),
        ("node-states.jsonl", SealRule.GROWS),
        ("journal/n1.jsonl", SealRule.GROWS),
        ("decisions.json", SealRule.DECIDED),
        ("workdir/steps/1/unfinished-1/stdout", SealRule.REPLACED),
        ("workdir/steps/1/run.sh", SealRule.REPLACED),
        ("stage-faults/scratch.json", SealRule.REPLACED),
    ],
)
def test_the_rule_of_each_kind_of_file(path: str, rule: SealRule) -> None:
    assert rule_of(path) is rule


def test_the_journals_of_the_state_are_sealed_as_they_grow(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals = tmp_path / "journals"
    journals.mkdir()
    monkeypatch.setattr(runs_evidence, "journals_of", lambda _: journals)
    for number in range(3):
        with (journals / "n1.jsonl").open("a", encoding="utf-8") as file:
            file.write(f'{{"number": {number}}}\n')
        assert not seal(run).changes
    evidence = read_evidence(run)
    assert evidence is not None
    assert evidence.chain.names("journal") == ["n1.jsonl"]


def test_a_step_that_ends_after_the_seal_replaces_its_unfinished_folder(run: Path) -> None:
    folder = execution(run / "workdir/steps/0001-fake-1")
    folder.rename(folder.with_name("unfinished-1"))
    collect(run)
    folder.with_name("unfinished-1").rename(folder)
    collect(run)
    evidence = read_evidence(run)
    assert evidence is not None
    assert not evidence.changes
    names = evidence.chain.names("workdir/steps/0001-fake-1")
    assert "execution-1" in names
    assert not evidence.chain.files("workdir/steps/0001-fake-1/unfinished-1")
    assert verdict_of(run)["coverage"]["measured"] == 2


KILLED = """
import os, signal, sys
from pathlib import Path
from proofmark.runs.evidence import seal
target = sys.argv[1]

def hook(event, arguments):
    global left
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.chmod"):
        place = str(arguments[0])
        if "evidence" in place and place.startswith(target):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

for line in sys.stdin:
    left = int(line)
    child = os.fork()
    if not child:
        sys.addaudithook(hook)
        seal(Path(target))
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""Seals the run once in a fork for each number N of the input, and kills it at its Nth call."""


@pytest.mark.fault("collect-killed")
def test_after_a_kill_at_any_point_the_next_call_makes_the_archive(run: Path) -> None:
    """The control is the last round, in which nothing is killed."""
    collect(run)
    whole = archives(run)[0].stat().st_size
    command = [sys.executable, "-c", KILLED, f"{run}"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as forks:
        assert forks.stdin and forks.stdout
        for left in range(1, 60):
            shutil.rmtree(run / "evidence")
            print(left, file=forks.stdin, flush=True)
            status = os.waitstatus_to_exitcode(int(forks.stdout.readline()))
            if status == 0:
                assert left > 5
                return
            assert status == -signal.SIGKILL
            collect(run)
            (path,) = archives(run)
            assert path.stat().st_size == whole
            assert not list((run / "evidence").glob("*.new"))
    raise AssertionError("the seal has no end")


def test_the_longest_chain_is_opened_three_times_at_once(sealed: Path, tmp_path: Path) -> None:
    known = read_evidence(sealed)
    assert known is not None
    run, before, lines = tmp_path / sealed.name, "", ""
    (run / "evidence").mkdir(parents=True)
    for number in range(1, MAX_ARCHIVES + 1):
        path = run / f"evidence/{number:04d}.tar"
        with path.open("x+b") as file:
            head = known.newest.model_copy(update={"number": number, "before": before})
            ArchiveWriter(file, 1).finish(head.model_dump(mode="json"))
        before = sha256(path.read_bytes()).hexdigest()
        lines += f"{before}  {path.name}\n"
    (run / "evidence/SHA256SUMS").write_text(lines)
    for _ in range(2):
        opened = [read_evidence(run) for _ in range(3)]
        assert {each and len(each.heads) for each in opened} == {MAX_ARCHIVES}
        for each in opened:
            assert each
            each.chain.files("")
        del opened, each


@pytest.fixture(scope="module")
def sealed(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sealed") / finished_run.name
    shutil.copytree(finished_run, folder)
    seal(folder)
    return folder


@pytest.mark.fault("evidence-flipped")
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_a_flip_of_any_byte_is_found(sealed: Path, place: float, bits: int) -> None:
    (path,) = (sealed / "evidence").glob("*.tar")
    content = bytearray(path.read_bytes())
    assert read_evidence(sealed) is not None
    content[int(place * len(content))] ^= bits
    path.chmod(0o644)
    kept = path.read_bytes()
    try:
        path.write_bytes(content)
        with pytest.raises(BadInput, match=r"SHA-256|damaged|format"):
            read_evidence(sealed)
    finally:
        path.write_bytes(kept)


def test_an_archive_of_another_run_or_place_is_refused(sealed: Path, run: Path) -> None:
    """A chain is as it was sealed: an archive that fits its list can still be in a wrong place."""
    collect(run)
    assert main(["rerun", f"{run}", "1"]) == 0
    folder = run / "evidence"
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    digests = [line.split()[0] for line in lines]
    (folder / "0001.tar").rename(folder / "first")
    (folder / "0002.tar").rename(folder / "0001.tar")
    (folder / "first").rename(folder / "0002.tar")
    swapped = f"{digests[1]}  0001.tar\n{digests[0]}  0002.tar\n"
    (folder / "SHA256SUMS").write_text(swapped)
    with pytest.raises(BadInput, match="before: found number 2"):
        read_evidence(run)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda path: path.symlink_to("/etc/hostname"), "a link"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.write_bytes(bytes(65 << 20)), "too large"),
    ],
)
def test_what_cannot_be_read_is_stated_in_the_evidence(
    run: Path, make: Callable[[Path], object], word: str
) -> None:
    path = _output(run)
    path.unlink()
    make(path)
    collect(run)
    (invalid,) = (each for each in verdict_of(run)["results"] if each["verdict"] == "INVALID")
    assert word in json.dumps(invalid)
    assert archives(run)[0].stat().st_size < 10 << 20


@pytest.mark.parametrize("name", [b"odd\xff", b"new\nline", "µ".encode(), b"n" * 120])
def test_odd_names_are_sealed(run: Path, name: bytes) -> None:
    path = execution(run / "workdir/steps/0001-fake-1") / os.fsdecode(name)
    path.write_text("x")
    collect(run)
    evidence = read_evidence(run)
    assert evidence is not None
    names = evidence.chain.names(f"{path.parent.relative_to(run)}")
    assert os.fsencode(name).decode("utf-8", "backslashreplace") in names
    first = archives(run)
    collect(run)
    assert archives(run) == first


class Clock(datetime):
    """A time that does not pass."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls(2026, 11, 21, 8, tzinfo=tz)


@pytest.mark.parametrize(("folders", "ahead"), [(1, 8 << 20), (3, 40), (2, 0), (500, 40)])
def test_the_archive_has_the_same_bytes_whoever_reads_the_files(
    run: Path, monkeypatch: pytest.MonkeyPatch, folders: int, ahead: int
) -> None:
    """Two archives: a second one states what was changed, removed and added after the first."""
    monkeypatch.setattr(runs_evidence, "datetime", Clock)
    monkeypatch.setattr("proofmark.runs.evidence.time.time", lambda: 1_800_000_000)
    sealed = []
    changed, added = _output(run), _output(run).with_name("added")
    first = changed.read_bytes()
    for number, size in ((500, 8 << 20), (folders, ahead)):
        shutil.rmtree(run / "evidence", ignore_errors=True)
        monkeypatch.setattr(runs_evidence, "_FOLDERS", number)
        monkeypatch.setattr(runs_evidence, "_AHEAD", size)
        changed.write_bytes(first)
        added.unlink(missing_ok=True)
        seal(run)
        changed.write_bytes(b"other")
        added.write_text("x")
        sealed.append((*seal(run).digests, *seal(run).changes))
        assert len(sealed[-1]) == 4
    assert sealed[0] == sealed[1]


SWAPS = """
import os, sys
path = sys.argv[1]
good = open(path).read()
bad = good.replace("rate 100", "rate 900")
print(flush=True)
while True:
    for text in (bad, good):
        with open(path + ".swap", "w") as file:
            file.write(text)
        os.rename(path + ".swap", path)
"""


@pytest.mark.root
@pytest.mark.fault("run-user-swaps")
def test_a_watcher_that_swaps_an_output_changes_nothing_after_the_seal(
    run: Path, tmp_path: Path
) -> None:
    for path in (run / "workdir", *(run / "workdir").rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    let_all_enter(run)
    collect(run)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{key}"], check=True)
    (tmp_path / "signers").write_text(f"a@b {Path(f'{key}.pub').read_text()}")
    before = verdict_of(run)
    python = f"{Path(sys.executable).resolve()}"  # the environment may be closed to other users
    command = [python, "-c", SWAPS, f"{_output(run)}"]
    with subprocess.Popen(command, user=NOBODY, stdout=subprocess.PIPE) as swaps:
        assert swaps.stdout is not None
        swaps.stdout.readline()
        try:
            assert main(["sign", f"{run}", "--key", f"{key}"]) == 0
            assert main(["verify", f"{run}", "--signers", f"{tmp_path / 'signers'}"]) == 0
        finally:
            swaps.kill()
    assert verdict_of(run)["results"] == before["results"]


def test_the_run_itself_is_still_the_folder_of_its_jobs(run: Path) -> None:
    collect(run)
    assert open_run(run).seal is None
    sealed = open_evidence(run)
    assert sealed is not None
    assert sealed.seal is not None
    assert sealed.id == run.name


def test_a_deep_folder_and_a_file_of_the_name_of_the_facts(run: Path) -> None:
    deep = execution(run / "steps/0001-fake-1").joinpath(*["d"] * 70)
    deep.mkdir(parents=True)
    (deep / "x").write_text("x")
    (run / "evidence.json").write_text("{}")
    collect(run)
    evidence = read_evidence(run)
    assert evidence is not None
    (folder,) = (name for name, found in evidence.newest.unread.items() if "deep" in found.values())
    assert folder.endswith("/d/d")
    assert "evidence.json" not in evidence.chain.names("")
    first = archives(run)
    collect(run)
    assert archives(run) == first


def test_a_folder_in_the_place_of_the_new_archive_is_named(run: Path) -> None:
    place = RunFiles(run).evidence / "0001.new"
    place.mkdir(parents=True)
    with pytest.raises(BadInput) as refused:
        seal(run)
    (mistake,) = refused.value.mistakes
    assert f"{mistake.file}" == f"{place}"
    assert mistake.found and mistake.accepted == "a place that can be written, with space"
    assert place.is_dir() and archives(run) == []


def test_what_was_removed_is_stated_in_the_order_of_folders(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hashes of this process would else decide the order of messages."""
    seal(run)
    shutil.rmtree(run / "scripts")
    shutil.rmtree(run / "workdir/steps")
    known = read_evidence(run)
    assert known is not None
    compared: list[str] = []
    monkeypatch.setattr(
        runs_evidence._Sealing,
        "_compare",
        lambda _self, folder, _names, _read: compared.append(folder),
    )
    monkeypatch.setattr(runs_evidence._Sealing, "_keep_other_scripts", lambda _self: None)
    runs_evidence._Sealing(run, ArchiveWriter(io.BytesIO(), 0), known.chain).all()
    removed = [each for each in compared if each.startswith(("scripts", "workdir/steps"))]
    assert len(removed) > 5 and removed == sorted(removed)


def _again(run: Path, text: str) -> SealedEvidence:
    """Seal a new file of a run."""
    (run / "growth").mkdir(exist_ok=True)
    (run / "growth" / f"{text}.txt").write_text(text)
    return seal(run)


def test_each_archive_has_the_digest_of_the_one_before_it(run: Path, tmp_path: Path) -> None:
    """An archive of the right number, whose chain began with another archive, is refused."""
    other = Path(shutil.copytree(run, tmp_path / "other" / run.name))
    _again(run, "one")
    made = _again(run, "two")
    opened = made.run().seal
    assert opened is not None
    assert (opened.number, [*opened.earlier, opened.digest]) == (2, [*made.digests])
    begun = _again(other, "another")
    for path in (archives(other)[0], RunFiles(other).evidence / SUMS):
        path.chmod(0o644)
    shutil.copyfile(archives(run)[1], RunFiles(other).evidence / "0002.tar")
    lines = f"{begun.digest}  0001.tar\n{made.digest}  0002.tar\n"
    (RunFiles(other).evidence / SUMS).write_text(lines)
    with pytest.raises(BadInput, match=f"before: found number 2 after {made.digests[0]}"):
        read_evidence(other)


def test_a_renamed_run_is_refused_before_an_archive_is_written(run: Path) -> None:
    """With an archive of its new name, nobody could read the run any more."""
    known = _again(run, "one")
    renamed = run.rename(run.with_name("renamed"))
    place = RunFiles(renamed).evidence
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    with pytest.raises(BadInput, match=rf"0002.tar: run: found renamed; accepted: {run.name}, "):
        _again(renamed, "two")
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    assert read_evidence(renamed) is not None
    renamed.rename(run)
    assert seal(run).digests[:1] == known.digests


def test_the_archives_of_two_runs_are_no_chain(run: Path) -> None:
    known = _again(run, "one")
    (run / "growth/two.txt").write_text("two")
    other = replace(known, heads=[known.newest.model_copy(update={"run": run.name + "0"})])
    with RunFiles(run).evidence.joinpath("0002.tar").open("x+b") as file:
        place = run.rename(run.with_name(run.name + "0"))
        made = runs_evidence._write(file, replace(other, folder=place), "")
    place.rename(run)
    sums = RunFiles(run).evidence / SUMS
    sums.write_text(f"{sums.read_text()}{made.digest}  0002.tar\n")
    with pytest.raises(BadInput, match=f"run: found {run.name}0; accepted: {run.name}, as the"):
        read_evidence(run)


def _emptied(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"")


def _folder_in_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = (_removed, _emptied, _linked, _folder_in_place)
REFUSED = {
    "0001.tar": DAMAGES,
    "0002.tar": DAMAGES,
    "0003.tar": DAMAGES,
    SUMS: DAMAGES,
    "lock": (_linked, _folder_in_place),
}


@pytest.mark.parametrize(("name", "damage"), [(n, each) for n in REFUSED for each in REFUSED[n]])
def test_a_damaged_folder_of_evidence_is_refused_and_gets_no_archive(
    run: Path,
    name: str,
    damage: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    for text in ("one", "two", "three"):
        _again(run, text)
    path = RunFiles(run).evidence / name
    damage(path)
    (run / "growth/four.txt").write_text("four")
    left = {each.name for each in path.parent.iterdir()}
    collect(run, 3)
    error = capsys.readouterr().err
    assert f"{path}: found " in error and "; accepted: " in error
    assert {each.name for each in path.parent.iterdir()} == left


def test_one_archive_without_its_list_is_refused_and_stays(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kill leaves a list. The control: what sha256sum writes is the list again."""
    known = seal(run)
    (path,), sums = archives(run), RunFiles(run).evidence / SUMS
    listed, content = sums.read_text(), path.read_bytes()
    sums.unlink()
    for call in (lambda: collect(run, 3), lambda: main(["verdict", f"{run}"])):
        call()
        assert f"{sums}: found 0 lines, and 0001.tar; accepted: " in capsys.readouterr().err
    assert (archives(run), path.read_bytes(), sums.exists()) == ([path], content, False)
    written = subprocess.run(
        ["sha256sum", path.name], cwd=sums.parent, check=True, capture_output=True, text=True
    )
    assert written.stdout == listed
    sums.write_text(written.stdout)
    assert seal(run).digests[0] == known.digest


def test_the_archive_that_a_kill_left_without_its_line_is_listed(run: Path) -> None:
    """It is whole, because it got its name after its last byte. It is not written again."""
    first = _again(run, "one")
    content = archives(run)[0].read_bytes()
    _emptied(RunFiles(run).evidence / SUMS)
    assert read_evidence(run) is None
    assert seal(run).digests == first.digests
    second = _again(run, "two")
    lines = RunFiles(run).evidence / SUMS
    listed = lines.read_text()
    lines.write_text(listed.splitlines(keepends=True)[0])
    assert _again(run, "three").digests[:2] == second.digests
    assert lines.read_text().startswith(listed)
    assert archives(run)[0].read_bytes() == content and len(archives(run)) == 3


def test_the_limit_of_size_is_that_of_all_archives(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a seal would exceed is refused by it, not by the next reader."""
    changing = run / "decisions.txt"  # each archive has it
    for content in (b"1", b"2"):
        changing.write_bytes(content * 300_000)
        seal(run)
    length = sum(path.stat().st_size for path in archives(run))
    monkeypatch.setattr(runs_evidence, "MAX_EVIDENCE_BYTES", length)
    changing.write_bytes(b"3" * 300_000)
    with pytest.raises(BadInput, match="in 3 archives"):
        seal(run)
    assert len(archives(run)) == 2 and read_evidence(run) is not None
    monkeypatch.setattr(runs_evidence, "MAX_EVIDENCE_BYTES", length - 1)
    with pytest.raises(BadInput, match="in 2 archives"):
        read_evidence(run)


def test_a_script_that_differs_is_stated_once(run: Path) -> None:
    (run / "workdir/probe.sh").write_text("exit 0\n")
    first = seal(run)
    assert first.changes == {"workdir/probe.sh": Change.SCRIPT}
    assert seal(run).digests == first.digests


class TestCheckedOnce:
    """What `seal` checked is not read again while the file is the same."""

    @pytest.fixture
    def two(self, run: Path) -> Path:
        """Return a run with two archives."""
        collect(run)
        assert main(["rerun", f"{run}", "1"]) == 0
        return run

    def test_it_gives_the_same_files(self, two: Path) -> None:
        whole, stored = (read_evidence(two, again=again) for again in (True, False))
        assert whole
        assert stored
        assert [each.parts for each in stored.chain.archives] == [
            {folder: [*part] for folder, part in each.parts.items()}
            for each in whole.chain.archives
        ]
        assert (stored.heads, stored.digests) == (whole.heads, whole.digests)
        assert {*stored.chain.folders} == {*whole.chain.folders}
        for folder in whole.chain.folders:
            assert stored.chain.files(folder) == whole.chain.files(folder)

    def test_no_archive_is_hashed(self, two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runs_evidence, "file_digest", lambda *_: pytest.fail("it was read"))
        assert read_evidence(two, again=False)

    @pytest.mark.parametrize("keep_times", [False, True])
    def test_a_written_archive_is_checked(self, two: Path, keep_times: bool) -> None:
        path = archives(two)[0]
        before = path.stat()
        path.chmod(0o644)
        with path.open("r+b") as file:
            file.seek(before.st_size // 2)
            file.write(b"\xff")
        if keep_times:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            path.chmod(0o444)
        for again in (False, True):
            with pytest.raises(BadInput):
                read_evidence(two, again=again)

    def test_a_copy_is_checked(self, two: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy"
        subprocess.run(["cp", "-a", two, copy], check=True)
        path = archives(copy)[1]
        content = bytearray(path.read_bytes())
        content[600] ^= 1
        path.chmod(0o644)
        path.write_bytes(content)
        with pytest.raises(BadInput):
            read_evidence(copy, again=False)

    @pytest.mark.parametrize("content", ["", "{}", "[[[], {}]]", "[" * 9999])
    def test_a_damaged_list_is_not_used(self, two: Path, content: str) -> None:
        (two / "evidence" / CHECKED).write_text(content)
        whole, stored = (read_evidence(two, again=again) for again in (True, False))
        assert whole
        assert stored
        assert (stored.heads, stored.digests) == (whole.heads, whole.digests)

    @pytest.mark.parametrize("content", ["{}", "1", "[1]", "[[[], {}, 1]]", "[[[[]], {}]]", "["])
    def test_a_list_of_another_version_is_not_used(self, two: Path, content: str) -> None:
        whole, digest = read_evidence(two), sha256(content.encode()).hexdigest()
        (two / "evidence" / CHECKED).write_text(f"{digest}\n{content}")
        stored = read_evidence(two, again=False)
        assert whole and stored
        assert (stored.heads, stored.digests) == (whole.heads, whole.digests)

    def test_a_list_that_another_user_can_write_is_not_used(
        self, two: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (two / "evidence" / CHECKED).chmod(0o666)
        with monkeypatch.context() as patch, pytest.raises(pytest.fail.Exception):
            patch.setattr(runs_evidence, "file_digest", lambda *_: pytest.fail("it was read"))
            read_evidence(two, again=False)
        assert read_evidence(two, again=False)

    @pytest.mark.fault("archive-damaged")
    def test_what_is_signed_or_collected_is_checked_whatever_the_list_says(self, two: Path) -> None:
        path = archives(two)[1]
        path.chmod(0o644)
        with path.open("r+b") as file:
            file.seek(600)
            file.write(b"\xff")
        about, listed = path.stat(), two / "evidence" / CHECKED
        forged = json.loads(listed.read_text().partition("\n")[2])
        forged[1][0][1:] = [
            *(about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns),
        ]
        content = json.dumps(forged)
        listed.write_text(f"{sha256(content.encode()).hexdigest()}\n{content}")
        assert open_evidence(two, again=False)
        with pytest.raises(BadInput):
            open_evidence(two)
        key = two.parent / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{key}"], check=True)
        assert main(["sign", f"{two}", "--key", f"{key}"]) == 3
        assert main(["stage", "collect", f"{two}"]) == 3


@pytest.mark.parametrize(
    ("limit", "most", "found", "accepted"),
    [
        ("MAX_EVIDENCE_FILES", 3, " in 4 files", " in 3 files"),
        ("MAX_EVIDENCE_BYTES", 99, " files", f"at most 99 B in {MAX_EVIDENCE_FILES} files"),
    ],
)
def test_a_run_beyond_a_limit_of_size_is_not_sealed(
    run: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, found: str, accepted: str
) -> None:
    monkeypatch.setattr(runs_evidence, limit, most)
    with pytest.raises(BadInput) as refused:
        runs_evidence.seal(run)
    (mistake,) = refused.value.mistakes
    assert (mistake.file, mistake.key) == (f"{run}", "")
    assert mistake.found.startswith("more than ") and mistake.found.endswith(found)
    assert mistake.accepted.startswith("at most ") and mistake.accepted.endswith(accepted)
    assert [each.name for each in RunFiles(run).evidence.iterdir()] == ["lock"]
