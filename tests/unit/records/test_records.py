"""Records: which executions of a step are valid, and the reasons why others are INVALID."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import seal, write_execution
from tests.fixtures.kit import (
    FAKE,
    SOUND,
    Kit,
    carried_out,
    described,
    execution,
    kit_with,
    steps_of,
)

from proofmark.cases.reader.engine import Reading
from proofmark.common.message import NOTHING
from proofmark.machine.schedulers.none import NoScheduler
from proofmark.records.columns import Record, Records
from proofmark.records.execution_checks import spread
from proofmark.records.parquet_table import SCHEMA, table
from proofmark.runs.attempts import attempts, last_words
from proofmark.runs.run import Run
from proofmark.site.node.cpu import cpu_list_text

HOST = os.uname().nodename


kit = kit_with(sweep={"size": [1, 2]})


def carry_out(kit: Kit, run: Run | None = None) -> Run:
    return carried_out(run or kit.run())


def after(kit: Kit, program: str) -> tuple[Record, Record]:
    """Return the records of both steps if the first one runs `program`."""
    kit.program(f'if [ "$1" = 1 ]; then {program}; else {SOUND}; fi')
    first, second = kit.records(carry_out(kit))
    assert (second.valid, second.value) == (
        True,
        100,
    )  # the fault of the first step does not affect it
    return first, second


def write(folder: Path, **changes: Any) -> None:
    """Write a valid execution of a step, then the texts of `changes` by the file's stem."""
    binding = [{"rank": 0, "host": HOST, "cpus": "0-1"}]
    write_execution(folder, HOST, {"stdout": "size 1\nrate 100\nEND\n"}, binding=binding)
    names = {path.stem: path for path in execution(folder).iterdir()}
    for stem, text in changes.items():
        names[stem].write_text(text, encoding="utf-8")
    seal(execution(folder))


class TestFaults:
    def test_a_sound_step_gives_its_figures(self, kit: Kit) -> None:
        """Control: no fault is injected."""
        first, _ = after(kit, SOUND)
        assert (first.value, first.unit, first.reason) == (100, "MB/s", "")
        assert (first.node, first.parameters, first.attempt) == ("localhost", {"size": 1}, 1)

    @pytest.mark.fault("program-missing")
    def test_a_program_that_is_gone_is_named(self, kit: Kit) -> None:
        gone = kit.folder / "programs" / "gone"
        kit.case("lost", program="gone", sweep={"size": 1})
        software = kit.software()
        programs = {**software.packages["fake"].programs, "gone": described(gone)}
        run = carry_out(kit, kit.run(kit.software(programs=programs)))
        *sound, lost = kit.records(run)
        assert [record.valid for record in sound] == [True, True]
        assert (lost.valid, lost.value) == (False, None)
        assert lost.reason.startswith("exit code 127 (gone not found): ")
        assert "programs/gone: not found" in lost.reason

    @pytest.mark.fault("step-timeout")
    def test_a_step_that_takes_too_long(self, kit: Kit) -> None:
        kit.case(timeout=5)
        first, _ = after(kit, f"{SOUND}; sleep 100")
        assert not first.valid
        assert re.fullmatch(r"timed out after \d+ s \(limit 5 s\)", first.reason)
        assert first.value == 100  # the printed value is kept

    @pytest.mark.fault("step-killed")
    @pytest.mark.parametrize("name", ["KILL", "SEGV", "TERM"])
    def test_a_step_that_is_killed(self, kit: Kit, name: str) -> None:
        first, _ = after(kit, f"{SOUND}; kill -{name} $$")
        assert (first.valid, first.reason) == (False, f"killed by SIG{name}")

    @pytest.mark.fault("step-nonzero")
    @pytest.mark.parametrize("code", [1, 126, 200])
    def test_a_step_that_exits_with_an_error(self, kit: Kit, code: int) -> None:
        first, _ = after(kit, f"{SOUND}; echo why; echo 'no room' >&2; exit {code}")
        assert not first.valid
        assert first.reason.startswith(f"exit code {code}")
        assert first.reason.endswith(": no room")

    @pytest.mark.fault("output-truncated")
    def test_an_output_without_its_end(self, kit: Kit) -> None:
        first, _ = after(kit, 'echo "size 1"; echo "rate 100"')
        assert (first.value, first.valid) == (100, False)
        assert "END" in first.reason

    @pytest.mark.fault("output-garbage")
    @pytest.mark.parametrize("garbage", [r"\000\001\377\033[2J", "%%PDF", "rate rate rate", ""])
    def test_an_output_of_garbage(self, kit: Kit, garbage: str) -> None:
        first, _ = after(kit, f"printf '{garbage}'")
        assert (first.valid, first.value) == (False, None)
        assert first.reason

    @pytest.mark.fault("output-nan")
    @pytest.mark.parametrize("number", ["nan", "inf", "1e999"])
    def test_an_output_that_is_not_a_finite_number(self, kit: Kit, number: str) -> None:
        first, _ = after(kit, f'echo "size 1"; echo "rate {number}"; echo END')
        assert not first.valid
        assert first.value is None

    def test_an_output_with_another_parameter_than_planned(self, kit: Kit) -> None:
        first, _ = after(kit, 'echo "size 7"; echo "rate 100"; echo END')
        assert (first.valid, first.reason) == (False, "planned size 1, the output has 7")

    @pytest.mark.fault("planned-parameter-not-printed")
    def test_an_output_without_a_parameter_of_its_point(self, kit: Kit) -> None:
        first, _ = after(kit, 'echo "rate 100"; echo END')
        expected = "planned size 1, the output does not state size"
        assert (first.valid, first.reason) == (False, expected)
        assert first.reason.code == "output-lacks"
        assert first.reason.fields["name"] == "size"

    @pytest.mark.fault("planned-parameter-not-printed")
    def test_one_row_of_several_without_a_parameter(self, kit: Kit) -> None:
        read = copy.deepcopy(FAKE["read"])
        read["keys"] = {r"(?P<key>rate)(?: (?P<size>\d+))? = (?P<value>\d+)": {"rate": "rate"}}
        read["facts"] = []
        kit.case(read=read)
        kit.program('echo "rate $1 = 100"; echo "rate = 90"; echo END')
        found = [*kit.records(carry_out(kit))]
        lacking = [each.reason for each in found if each.value == 90]
        assert lacking == [
            f"planned size {size}, the output does not state size" for size in (1, 2)
        ]
        assert [each.valid for each in found if each.value == 100] == [True, True]

    def test_a_parameter_of_another_metric_only(self, kit: Kit) -> None:
        """The grid of HPL in the output of hpcc is an example."""
        read = copy.deepcopy(FAKE["read"])
        match = r"(?P<key>rate|time)(?: (?P<size>\d+))? = (?P<value>\d+)"
        read["keys"] = {match: {"rate": "rate", "time": "time"}}
        read["facts"] = []
        time = {"unit": "s", "better": "lower", "bound": 1e-9, "what": "a time"}
        kit.case(read=read, metrics={**FAKE["metrics"], "time": time})
        kit.program('echo "rate $1 = 100"; echo "time = 9"; echo END')
        found = kit.records(carry_out(kit))
        assert [(each.value, each.reason) for each in found] == [(100, ""), (9, "")] * 2


class TestNodeInTheOutput:
    @pytest.fixture
    def read(self) -> dict[str, Any]:
        """Return a reader of an output that names its node."""
        read: dict[str, Any] = copy.deepcopy(FAKE["read"])
        read["facts"].append(r"on (?P<node>\S+)")
        return read

    @pytest.mark.parametrize(("host", "valid"), [(HOST, True), ("n9", False)])
    def test_an_output_of_another_node_is_invalid(
        self, kit: Kit, read: dict[str, Any], host: str, valid: bool
    ) -> None:
        """A file that another node left, or that a user copied."""
        kit.case(sweep={"size": 1}, read=read)
        kit.program(f'echo "on {host}"; {SOUND}')
        (record,) = kit.records(carry_out(kit))
        assert (record.valid, record.node) == (valid, "localhost" if valid else host)
        assert valid or record.reason == f"the output names node 'n9', the step ran on {HOST}"

    @pytest.mark.parametrize(("named", "valid"), [("n2", True), ("n3", False)])
    def test_any_node_of_a_step_may_be_named(
        self,
        kit: Kit,
        read: dict[str, Any],
        monkeypatch: pytest.MonkeyPatch,
        named: str,
        valid: bool,
    ) -> None:
        monkeypatch.setattr(NoScheduler, "header", lambda self, request: [])  # of several nodes
        kit.case(sweep={"size": 1, "nodes": 2, "ranks": 2}, launch="mpi", read=read)
        run = kit.run(site=kit.site(hosts=("n1", "n2")))
        (step,) = run.plan.steps()
        binding = [
            {"rank": rank, "host": f"n{1 + each.node}", "cpus": cpu_list_text(each.cpus)}
            for rank, each in enumerate(step.cpus)
        ]
        output = f"on {named}\nsize 1\nrate 100\nEND\n"
        write_execution(steps_of(run)[0], "n1", {"stdout": output}, binding=binding)
        (record,) = kit.records(run)
        assert record.valid == valid, record.reason


@pytest.mark.parametrize(
    ("launch", "threads", "recorded"),
    [("mpi", 1, {"ranks"}), ("mpi", 2, {"ranks", "threads"}), ("threads", 1, {"threads"})],
)
def test_the_ranks_and_threads_of_a_step_are_parameters_of_its_figures(
    kit: Kit, launch: str, threads: int, recorded: set[str]
) -> None:
    kit.case(sweep={"size": 1, "threads": threads}, launch=launch)
    (record,) = kit.records(carry_out(kit))
    assert record.parameters.keys() == {"size", *recorded}


def test_the_spread_of_copies_is_that_of_one_metric() -> None:
    """Two metrics of each copy, with equal values between the copies."""

    def reading(metric: str, pair: int, value: float) -> Reading:
        return Reading(
            "c", "b", metric, value, "MB/s", {"pair": pair, "bytes": 8}, True, NOTHING, None
        )

    known = ("one_spread", "two_spread")
    values = [("one", 1, 10.0), ("two", 1, 100.0), ("one", 2, 10.0), ("two", 2, 300.0)]
    found = {each.metric: each for each in spread([reading(*each) for each in values], known)}
    assert {name: each.value for name, each in found.items()} == {
        "one_spread": 0,
        "two_spread": 100,
    }
    assert all(each.parameters == {"bytes": 8} for each in found.values())


class TestAttempts:
    def test_finished_executions_are_found_oldest_first(self, tmp_path: Path) -> None:
        for number in (10, 2, 1):
            write_execution(tmp_path, HOST, number=number)
        for name in ("unfinished-3", "execution-x", "execution-", "execution-01", "execution--4"):
            (execution(tmp_path)).rename(tmp_path / name)
            write_execution(tmp_path, HOST)
        found = attempts(tmp_path)
        assert [(each.number, each.files.folder.name) for each in found] == [
            (1, "execution-1"),
            (2, "execution-2"),
            (10, "execution-10"),
        ]

    def test_files_beside_the_executions_are_no_execution(self, tmp_path: Path) -> None:
        write_execution(tmp_path, HOST)
        for name in ("rc", "when.json", "binding.json", "stdout"):
            shutil.copy(execution(tmp_path) / name, tmp_path / name)
        assert [each.number for each in attempts(tmp_path)] == [1]

    def test_an_unfinished_step_has_none(self, tmp_path: Path) -> None:
        assert attempts(tmp_path) == []

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("rc", ""),
            ("rc", "zero"),
            ("when", "{}"),
            ("when", "["),
            ("when", '{"host": "a", "start": "", "end": "", "timed_out": false, "seconds": "x"}'),
            ("binding", "{}x"),
            ("binding", '["rank"]'),
            ("binding", '[{"rank": 0, "host": "a"}]'),
            ("binding", '[{"rank": 0, "host": "a", "cpus": "0-x"}]'),
            ("binding", '[{"rank": "a", "host": "a", "cpus": "0"}]'),
        ],
    )
    def test_a_damaged_file_makes_the_execution_invalid(
        self, kit: Kit, name: str, content: str
    ) -> None:
        run = kit.run()
        for step in steps_of(run):
            write(step, **{"stdout": f"size {step.name[-1]}\nrate 100\nEND\n"})
        assert [record.valid for record in kit.records(run)] == [True, True]
        write(steps_of(run)[0], **{name: content})
        first, second = kit.records(run)
        assert (first.valid, second.valid) == (False, True)
        file = {"when": "when.json", "binding": "binding.json"}.get(name, name)
        assert first.reason.startswith(f"{file} is damaged: ")


class TestBinding:
    @pytest.fixture
    def run(self, kit: Kit) -> Run:
        kit.case(launch="mpi", sweep={"size": 1, "ranks": 2})
        return kit.run(kit.software(launcher="openmpi", prefix="/usr"))

    @pytest.mark.parametrize(
        ("bound", "reason"),
        [
            (["0", "1"], ""),
            (["0-1", "1"], "rank 0 ran on CPUs 0-1, planned on 0"),
            (["0", "0"], "rank 1 ran on CPUs 0, planned on 1"),
            (["0"], "1 of 2 ranks reported their binding"),
            ([], "0 of 2 ranks reported their binding"),
            (["0", "1", "1"], "3 of 2 ranks reported their binding"),
        ],
    )
    def test_ranks_with_another_binding_than_planned_are_invalid(
        self, kit: Kit, run: Run, bound: list[str], reason: str
    ) -> None:
        lines = [{"rank": rank, "host": HOST, "cpus": cpus} for rank, cpus in enumerate(bound)]
        write(steps_of(run)[0], binding=json.dumps(lines))
        (record,) = kit.records(run)
        assert (record.reason, record.valid) == (reason, not reason)

    def test_the_order_of_the_ranks_in_the_report_is_irrelevant(self, kit: Kit, run: Run) -> None:
        lines = [{"rank": rank, "host": HOST, "cpus": f"{rank}"} for rank in (1, 0)]
        write(steps_of(run)[0], binding=json.dumps(lines))
        assert kit.records(run)[0].valid


class TestLastWords:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", ""),
            ("one\ntwo\n\n-----\n", "two"),
            ("a: No space left on device\nmpirun noticed\n", "a: No space left on device"),
            (f"{'x' * 500}: No space left on device", f"…{'x' * 134}: No space left on device"),
            ("bad\x00\x1b[31m bytes\x07", "bad [31m bytes"),
        ],
    )
    def test_the_line_with_the_cause_is_returned(
        self, tmp_path: Path, text: str, expected: str
    ) -> None:
        (tmp_path / "stderr").write_text(text, encoding="utf-8")
        assert last_words(tmp_path / "stderr") == expected

    def test_without_a_file_it_is_empty(self, tmp_path: Path) -> None:
        assert last_words(tmp_path / "stderr") == ""

    def test_bytes_that_are_not_utf8_are_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "stderr").write_bytes(b"\xff\xfeoops")
        assert last_words(tmp_path / "stderr").endswith("oops")


class TestTable:
    def test_a_row_is_a_record(self, kit: Kit) -> None:
        found = table(kit.records(carry_out(kit)))
        assert dict(found.schema) == dict(SCHEMA)
        assert found["value"].to_list() == [100, 100]
        assert found["parameters"].to_list() == ['{"size": 1}', '{"size": 2}']

    def test_no_records_are_an_empty_table(self) -> None:
        assert table(Records.of([])).shape == (0, len(SCHEMA))

    @pytest.mark.parametrize(
        ("planned", "same"),
        [(1, True), (1.0, True), (2, False), (1.5, False), ("1", True), ("x", False)],
    )
    def test_planned_parameters_are_compared_as_numbers(
        self, kit: Kit, planned: object, same: bool
    ) -> None:
        kit.case(sweep={"size": [planned]})
        kit.program(SOUND.replace("$1", "1"))
        (record,) = kit.records(carry_out(kit))
        assert record.valid is same

    @pytest.mark.parametrize(("printed", "same"), [("1.0", True), ("1.5", False)])
    def test_printed_parameters_are_compared_as_numbers(
        self, kit: Kit, printed: str, same: bool
    ) -> None:
        read = copy.deepcopy(FAKE["read"])
        read["parameters"]["size"] = "real"
        read["facts"] = [r"size (?P<size>\S+)"]
        kit.case(sweep={"size": 1}, read=read)
        kit.program(SOUND.replace("$1", printed))
        (record,) = kit.records(carry_out(kit))
        assert record.valid is same
