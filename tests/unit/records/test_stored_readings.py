"""Stored readings change no verdict: they are those of the evidence, or they are not used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import examples, execution
from tests.reference import archives

import proofmark
from proofmark.cli.main import main
from proofmark.common.message import Message, rendered
from proofmark.judge.baseline_files import judged_figures
from proofmark.judge.judging import Read, judged, read_and_judge
from proofmark.judge.verdict import write_verdict
from proofmark.packages.twin.smpi import unpack
from proofmark.records import stored_readings
from proofmark.records.columns import Records
from proofmark.records.parquet_table import parquet_of
from proofmark.records.read import read_parts
from proofmark.records.stored_readings import (
    PACKAGES,
    READERS,
    store,
    stored_or_read,
)
from proofmark.report.products import differing, made_of, write_again, write_products
from proofmark.runs.acceptance import new_signed
from proofmark.runs.evidence import open_evidence, seal
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles

NOBODY = 65534
UNJUDGED = 4


@pytest.fixture
def run(tmp_path: Path, finished_run: Path) -> Run:
    """Return a sealed run whose readings are stored."""
    folder = shutil.copytree(finished_run, tmp_path / "runs" / finished_run.name)
    made = seal(Path(folder)).run()
    store(made)
    return made


def verdict(run: Run, read: Read) -> tuple[str, bytes]:
    """Return the text of verdict.json and the bytes of records.parquet."""
    records, answer = read_and_judge(run, read)
    text = StringIO()
    write_verdict(text, answer)
    return text.getvalue(), parquet_of(records)


def content(records: Records) -> tuple[object, ...]:
    """Return all of records in a form in which equal ones are equal, NaN and types included."""
    numbers = (records.execution, records.measurand, records.node, records.value, records.reason)
    messages = [*records.reasons]
    for each in records.executions:
        messages += [each.disturbed, each.unsteady]
    return (
        (records.run, *(each.tobytes() for each in numbers)),
        [repr(each) for each in records.executions],
        [*records.measurands],
        [*records.nodes],
        [(each.code, repr(each.fields)) for each in messages],
    )


def unused(run: Run, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the code of why the stored readings are not used.

    The evidence is read, and it is said once.
    """
    why = stored_readings._stored(run)
    assert isinstance(why, Message)
    capsys.readouterr()
    assert verdict(run, stored_or_read) == verdict(run, read_parts)
    assert capsys.readouterr().err == f"{rendered(why)}\n"
    return why.code


def twice(run: Run) -> None:
    """Store other values than those of the evidence, with the right key."""
    run.products.readings.unlink(missing_ok=True)
    records, _, _ = judged(run)
    store(run, replace(records, value=2 * records.value))


@pytest.mark.parametrize("archive", archives(), ids=lambda path: path.name.partition(".")[0])
def test_the_verdicts_of_reference_runs_are_the_same(archive: Path, tmp_path: Path) -> None:
    unpack(archive, tmp_path)
    (folder,) = tmp_path.iterdir()
    run = seal(folder).run()
    store(run)
    stored = stored_readings._stored(run)
    assert isinstance(stored, Records)
    assert content(stored) == content(read_and_judge(run)[0])
    assert verdict(run, stored_or_read) == verdict(run, read_parts)


def test_messages_shares_and_numbers_return_as_they_were(run: Run) -> None:
    records, _ = read_and_judge(run)
    assert run.seal
    nested = Message("readings-damaged", path="a", problem=Message("readings-stale", path="b"))
    lists = Message("several", parts=(nested, Message("readings-foreign", path="c")))
    numbers = Message("output-of-plan", name="n", planned=3, printed=3.0)
    first, *others = records.executions
    odd = first._replace(
        disturbed=lists, unsteady=numbers, steal=0.1 + 0.2, disturbers=(("a b", 1 / 3), ("c", 2.0))
    )
    reasons = [nested, numbers]
    reason = np.arange(len(records)) % 3 - 1
    made = replace(records, executions=[odd, *others], reasons=reasons, reason=reason)
    run.products.readings.unlink()
    store(run, made)
    stored = stored_readings._stored(run)
    assert isinstance(stored, Records)
    assert content(stored) == content(made)
    assert [*map(type, stored.executions[0])] == [*map(type, odd)]
    run.products.readings.unlink()
    store(run, Records.joined(run.id, []))
    stored = stored_readings._stored(run)
    assert isinstance(stored, Records)
    assert content(stored) == content(Records.joined(run.id, []))


def test_collect_reads_and_the_commands_use_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.seal
    run.products.readings.unlink()
    folder = f"{run.seal.folder}"
    assert main(["stage", "collect", folder]) == 0
    assert run.products.readings.exists()
    with monkeypatch.context() as without:
        without.setattr(stored_readings, "read_parts", lambda *_: pytest.fail("it was read again"))
        assert main(["report", folder]) == 0
        assert main(["verdict", folder]) == UNJUDGED
        assert main(["export", folder, "--format", "csv", "-o", f"{folder}/../csv"]) == 0
    changed = run.products.readings.stat().st_mtime_ns
    assert main(["stage", "collect", folder]) == 0
    assert run.products.readings.stat().st_mtime_ns == changed


def test_verdict_writes_nothing_and_report_stores(run: Run) -> None:
    assert run.seal
    run.products.readings.unlink()
    assert main(["verdict", f"{run.seal.folder}"]) == UNJUDGED
    assert not run.products.readings.exists()
    assert main(["report", f"{run.seal.folder}"]) == 0
    assert isinstance(stored_readings._stored(run), Records)


def test_rerun_stores_the_readings_of_what_it_sealed(run: Run) -> None:
    assert run.seal
    assert main(["rerun", f"{run.seal.folder}", "1"]) == 0
    after = open_evidence(run.seal.folder)
    assert after
    assert after.seal
    assert after.seal.number == run.seal.number + 1
    stored = stored_readings._stored(after)
    assert isinstance(stored, Records)
    assert content(stored) == content(read_and_judge(after)[0])


@pytest.mark.fault("readings-forged")
def test_what_is_signed_checked_or_accepted_is_read_from_the_evidence(run: Run) -> None:
    twice(run)
    shown, raw = verdict(run, stored_or_read), verdict(run, read_parts)
    assert shown != raw  # the user of this process wrote the file
    write_products(run)
    with new_signed(run.products.folder) as new:
        write_again(run, made_of(run.products), RunFiles(new))
        wrong = [*differing(new, ["verdict.json"], run.products.folder)]
    assert [each.code for each in wrong] == ["product-other"]
    run.products.readings.unlink()
    without = judged_figures(run)
    twice(run)
    assert judged_figures(run).figures.equals(without.figures)


class TestNotUsed:
    """The stored readings are not used, and stderr says so."""

    def test_control(self, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
        twice(run)
        capsys.readouterr()
        assert verdict(run, stored_or_read) != verdict(run, read_parts)
        assert capsys.readouterr().err == ""

    @pytest.mark.fault("readings-planted")
    @pytest.mark.parametrize("mode", [0o646, 0o666])
    def test_if_another_user_can_write_them(
        self, run: Run, mode: int, capsys: pytest.CaptureFixture[str]
    ) -> None:
        twice(run)
        run.products.readings.chmod(mode)
        assert unused(run, capsys) == "readings-foreign"

    @pytest.mark.root
    @pytest.mark.fault("readings-planted")
    def test_if_another_user_wrote_them(self, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
        twice(run)
        os.chown(run.products.readings, NOBODY, NOBODY)
        assert unused(run, capsys) == "readings-foreign"

    def test_if_they_are_a_link(self, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
        twice(run)
        path = run.products.readings
        path.symlink_to(path.rename(path.with_name("other")))
        assert unused(run, capsys) == "readings-damaged"

    @pytest.mark.fault("readings-planted")
    def test_if_the_run_is_a_copy(
        self, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run.seal
        twice(run)
        copied = open_evidence(Path(shutil.copytree(run.seal.folder, tmp_path / "copy")))
        assert copied
        assert unused(copied, capsys) == "readings-stale"

    @pytest.mark.fault("readings-stale")
    def test_if_the_reader_changed(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        twice(run)
        monkeypatch.setattr(stored_readings, "_reader", lambda _: "another")
        assert unused(run, capsys) == "readings-stale"


def test_each_change_of_the_reader_changes_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(proofmark.__file__).parent
    rooms = (*READERS, PACKAGES)
    for room in rooms:
        shutil.copytree(package / room, tmp_path / room)
    monkeypatch.setattr(proofmark, "__file__", f"{tmp_path}/__init__.py")
    digest = stored_readings._reader.__wrapped__
    before = digest(rooms)
    assert before == digest(rooms)
    for name in (
        "cases/reader/engine.py",
        "packages/foreign/data/other_programs.yml",
        "records/measured_step.py",
    ):
        path = tmp_path / name
        path.write_text(path.read_text() + "\n# another reader\n")
        assert digest(rooms) != before
        before = digest(rooms)


@pytest.mark.fault("readings-stale")
@examples(0.5)
@given(text=st.binary(max_size=40), where=st.floats(0, 1), cut=st.booleans())
def test_a_changed_output_is_read_again(
    finished_run: Path,
    tmp_path_factory: pytest.TempPathFactory,
    text: bytes,
    where: float,
    cut: bool,
) -> None:
    folder = Path(
        shutil.copytree(finished_run, tmp_path_factory.mktemp("changed") / finished_run.name)
    )
    step = folder / "workdir/steps/0001-fake-1"
    first = seal(folder).run()
    store(first)
    shutil.copytree(execution(step), step / "execution-2")
    output = step / "execution-2" / "stdout"
    old = output.read_bytes()
    at = int(where * len(old))
    output.write_bytes(old[:at] + text + (b"" if cut else old[at:]))
    again = seal(folder).run()
    why = stored_readings._stored(again)
    assert isinstance(why, Message)
    assert why.code == "readings-stale"
    assert verdict(again, stored_or_read) == verdict(again, read_parts)
    store(again)
    assert isinstance(stored_readings._stored(again), Records)
    assert verdict(again, stored_or_read) == verdict(again, read_parts)


Change = Callable[[bytes], bytes]


def _flipped(place: float, bit: int) -> Change:
    def change(content: bytes) -> bytes:
        at = int(place * (len(content) - 1))
        return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]

    return change


def _truncated(place: float) -> Change:
    return lambda content: content[: int(place * (len(content) - 1))]


def _replaced(text: bytes) -> Change:
    return lambda content: text


PLACES = st.floats(0, 1)


@pytest.mark.fault("readings-damaged")
@given(
    st.one_of(
        st.builds(_flipped, PLACES, st.integers(0, 7)),
        st.builds(_truncated, PLACES),
        st.builds(_replaced, st.binary(max_size=100)),
    )
)
def test_a_damaged_file_is_not_used(
    finished_run: Path, tmp_path_factory: pytest.TempPathFactory, change: Change
) -> None:
    folder = Path(
        shutil.copytree(finished_run, tmp_path_factory.mktemp("damaged") / finished_run.name)
    )
    run = seal(folder).run()
    store(run)
    path = run.products.readings
    damaged = change(path.read_bytes())
    path.unlink()
    path.write_bytes(damaged)
    path.chmod(0o444)
    parts = read_and_judge(run)[0]
    found = stored_readings._stored(run)
    # A flip in what no reader needs, as the time of a member, leaves the columns as they were.
    assert isinstance(found, Message) or (found and content(found) == content(parts))
    assert verdict(run, stored_or_read) == verdict(run, read_parts)
