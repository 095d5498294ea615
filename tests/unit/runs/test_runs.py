"""The folder of a run: begun whole, gone on with, never overwritten."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import write_execution
from tests.fixtures.kit import Kit, execution, snapshot, steps_of

from proofmark.common.errors import BadInput
from proofmark.common.files import write_atomic
from proofmark.common.message import Message
from proofmark.common.rights import this_user
from proofmark.runs import start
from proofmark.runs.identity import FORMAT, identity_of, write_identity
from proofmark.runs.run import Run, benchmarks_of, leave_out, open_run, reported_names, site_of
from proofmark.runs.start import RunInputs, start_or_continue
from proofmark.runs.state import made


def begin(kit: Kit, run_id: str | None = None, fresh: bool = False) -> tuple[Run, bool]:
    root, site = kit.folder / "runs", kit.site()
    plan, benchmarks = kit.plan(), kit.benchmarks()
    return start_or_continue(
        root, RunInputs(plan, benchmarks, site, "facts"), run_id=run_id, fresh=fresh
    )


def finish(run: Run, verdict: bool = True) -> None:
    for step in steps_of(run):
        write_execution(step, "")
    if verdict:
        (run.folder / "verdict.json").touch()


def refusal(kit: Kit, run_id: str | None = None, fresh: bool = False) -> str:
    with pytest.raises(BadInput) as error:
        begin(kit, run_id, fresh)
    return str(error.value)


class TestBeginning:
    def test_a_run_keeps_all_that_it_was_planned_from(self, kit: Kit) -> None:
        run, continued = begin(kit)
        benchmarks, site = kit.benchmarks(), kit.site()
        (kit.cases / "fake.yml").unlink()
        assert not continued
        assert open_run(run.folder) == run
        kept = {name: case.model_dump() for name, case in benchmarks_of(run).cases.items()}
        assert kept == {name: case.model_dump() for name, case in benchmarks.cases.items()}
        assert site_of(run) == site
        assert (run.folder / "inputs" / "facts.probe").read_text() == "facts"

    def test_the_steps_that_are_not_needed_are_written_once(self, kit: Kit) -> None:
        run, _ = begin(kit)
        step = next(iter(run.plan.steps())).id
        first, other = (Message("probe-missing", file=name) for name in ("first", "other"))
        left = leave_out(run, {step: first})
        assert left.plan.repeated == left.plan.not_needed == {step: first}
        assert json.loads(run.files.not_needed.read_text()).keys() == {step}
        assert leave_out(run, {step: other}) == leave_out(run, {}) == left == open_run(run.folder)

    @pytest.mark.parametrize(("connection", "more"), [("local", ["vm"]), ("ssh", [])])
    def test_only_the_machine_of_the_play_may_report_its_name(
        self, kit: Kit, connection: str, more: list[str]
    ) -> None:
        site = kit.site().model_copy(update={"connection": connection, "aliases": {}})
        hosts = [*site.hosts]
        run, _ = start_or_continue(
            kit.folder / "runs",
            RunInputs(kit.plan(), kit.benchmarks(), site, "| hostname: vm\n| hostname: other\n"),
        )
        declared = site.model_copy(update={"aliases": {hosts[0]: ["alias"]}})
        assert hosts and reported_names(run, declared)[hosts[0]] == ["alias", *more]
        assert declared.aliases == {hosts[0]: ["alias"]}, "the inventory is not changed"

    def test_its_name_has_time_limit_and_suite(self, kit: Kit) -> None:
        run, _ = begin(kit)
        assert run.id.endswith("Z-local-quick")
        assert (kit.folder / "runs" / "latest-here").resolve() == run.folder

    def test_a_limit_of_any_pattern_makes_a_name(self, kit: Kit) -> None:
        site = kit.site().model_copy(update={"limit": "a/b:&c,*'d e'"})
        root = kit.folder / "runs"
        run, _ = start_or_continue(root, RunInputs(kit.plan(), kit.benchmarks(), site, ""))
        assert run.id.endswith("Z-a_b_c_d_e_-quick")

    def test_what_could_not_be_written_leaves_no_run(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(path: Path, text: str) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(start, "write_atomic", full)
            with pytest.raises(OSError, match="No space"):
                begin(kit, "mine")
        assert not (kit.folder / "runs").exists()
        assert begin(kit, "mine")[1] is False

    @pytest.mark.parametrize(
        "name", ["latest", "latest-here", "twin-x", "../up", "a/b", "", ".hidden", "a b", "-x"]
    )
    def test_what_is_no_name_is_refused(self, kit: Kit, name: str) -> None:
        assert refusal(kit, name).startswith(f"run_id: found {name!r}; accepted: a name")
        assert not (kit.folder / "runs").exists()


class TestGoingOn:
    def test_an_unfinished_run_of_the_same_plan_goes_on(self, kit: Kit) -> None:
        first, _ = begin(kit)
        before = snapshot(first.folder)
        again, continued = begin(kit)
        assert (again, continued) == (first, True)
        after = snapshot(first.folder)
        after.pop("lock")
        assert after == before

    def test_another_plan_is_another_run(self, kit: Kit) -> None:
        first, _ = begin(kit, "20260101T000000Z-local-quick")
        kit.case(timeout=7)
        second, continued = begin(kit)
        assert not continued
        assert second.id != first.id

    def test_fresh_is_another_run(self, kit: Kit) -> None:
        first, _ = begin(kit, "20260101T000000Z-local-quick")
        second, continued = begin(kit, fresh=True)
        assert not continued
        assert second.id != first.id

    def test_the_newest_of_several_goes_on(self, kit: Kit) -> None:
        for day in (1, 3, 2):
            begin(kit, f"2026010{day}T000000Z-local-quick")
        assert begin(kit)[0].id == "20260103T000000Z-local-quick"

    def test_a_finished_run_does_not_go_on(self, kit: Kit) -> None:
        first, _ = begin(kit, "20260101T000000Z-local-quick")
        finish(first)
        assert begin(kit)[0].id != first.id

    @pytest.mark.parametrize(
        ("word", "goes_on"), [("wait", True), ("start", True), ("left", False)]
    )
    def test_a_run_with_a_disturbed_step_that_waits_goes_on(
        self, kit: Kit, word: str, goes_on: bool
    ) -> None:
        first, _ = begin(kit, "20260101T000000Z-local-quick")
        finish(first)
        (job, *_) = first.plan.jobs()
        attempt = first.files.job(job.id).folder / "attempt-1"
        attempt.mkdir(parents=True)
        step = job.steps[0].id
        (attempt / "repeats").write_text(f"{word} 2 {step} {step}\n")
        assert (begin(kit)[0].id == first.id) is goes_on

    def test_a_verdict_that_was_asked_for_half_way_ends_nothing(self, kit: Kit) -> None:
        first, _ = begin(kit, "20260101T000000Z-local-quick")
        finish(first)
        shutil.rmtree(execution(steps_of(first)[-1]))
        assert begin(kit) == (first, True)

    def test_a_run_without_a_verdict_goes_on_though_all_steps_are_done(self, kit: Kit) -> None:
        first, _ = begin(kit, "20260101T000000Z-local-quick")
        finish(first, verdict=False)
        assert begin(kit) == (first, True)

    def test_damaged_runs_are_passed_over(self, kit: Kit) -> None:
        first, _ = begin(kit, "20260101T000000Z-local-quick")
        broken = kit.folder / "runs" / "20260102T000000Z-local-quick"
        broken.mkdir()
        (broken / "plan.json").write_text("{")
        assert begin(kit) == (first, True)


class TestRunIds:
    def test_a_run_of_that_name_goes_on(self, kit: Kit) -> None:
        first, _ = begin(kit, "mine")
        assert begin(kit, "mine") == (first, True)

    def test_a_run_of_another_plan_is_refused(self, kit: Kit) -> None:
        first, _ = begin(kit, "mine")
        before = snapshot(first.folder)
        kit.case(timeout=7)
        assert refusal(kit, "mine").startswith("run_id: found mine: exists, with another plan")
        assert snapshot(first.folder) == before

    def test_fresh_never_takes_an_old_name(self, kit: Kit) -> None:
        begin(kit, "mine")
        assert "mine: exists, with fresh=true" in refusal(kit, "mine", fresh=True)

    def test_a_folder_that_is_no_run_is_refused(self, kit: Kit) -> None:
        other = kit.folder / "runs" / "mine" / "file"
        other.parent.mkdir(parents=True)
        other.touch()
        assert "mine: exists" in refusal(kit, "mine")
        assert [path.name for path in other.parent.iterdir()] == ["file"]

    def test_two_at_once_make_one_run(self, kit: Kit) -> None:
        """What the second one does when the first was quicker by a moment."""
        inputs = RunInputs(kit.plan(), kit.benchmarks(), kit.site(), "")
        root = kit.folder / "runs"
        root.mkdir()

        def write(made: Path) -> str:
            start.write_inputs(made, inputs)
            return this_user().name

        start.new_run(root / "mine", write)
        before = snapshot(root)
        with pytest.raises(BadInput, match="mine: exists"):
            start.new_run(root / "mine", write)
        assert snapshot(root) == before
        assert [path.name for path in root.iterdir()] == ["mine"]

    @pytest.mark.parametrize("late", [False, True])
    def test_two_runs_of_one_second_have_two_names(self, kit: Kit, late: bool) -> None:
        """Two sites with partitions of one name; `late`: the other was quicker by a moment."""
        inputs = RunInputs(kit.plan(), kit.benchmarks(), kit.site(), "")
        root = kit.folder / "runs"

        def make(text: str) -> Path:
            def write(made: Path) -> str:
                start.write_inputs(made, inputs)
                (made / "mine").write_text(text)
                if late and text == "second" and made.name == "t":
                    make("first")
                return this_user().name

            return start.make_run(root, "", "t", write)

        made = [*([] if late else [make("first")]), make("second")]
        assert made[-1] == root / "t-2"
        texts = {path.name: (path / "mine").read_text() for path in root.iterdir()}
        assert texts == {"t": "first", "t-2": "second"}


class TestOpening:
    def test_what_is_no_run_is_refused_with_the_newest_ones(self, kit: Kit) -> None:
        begin(kit, "20260101T000000Z-local-quick")
        with pytest.raises(BadInput, match="accepted: latest-here, 20260101T000000Z-local-quick"):
            open_run(kit.folder / "runs" / "20260101")

    @given(st.binary(max_size=40))
    def test_damaged_plans_are_refused_with_their_name(self, content: bytes) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "plan.json"
            path.write_bytes(content)
            write_identity(path.parent, this_user().name)
            with pytest.raises(BadInput, match=r"plan\.json: found unreadable"):
                open_run(path.parent)

    def test_whole_files_are_whole_or_as_they_were(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        write_atomic(path, "old")
        with pytest.raises(UnicodeEncodeError):
            write_atomic(path, "new \udc80")
        assert path.read_text() == "old"


class TestFormat:
    def test_a_new_run_has_its_id_and_its_format(self, kit: Kit) -> None:
        run = kit.run()
        identity = json.loads(run.files.identity.read_text())
        inputs = ["facts.probe", "site.json", "benchmarks/fake.yml", "benchmarks/suites.yml"]
        names = {"plan.json", *(f"inputs/{name}" for name in inputs)}
        assert (identity["run"], identity["format"]) == (run.id, FORMAT)
        assert identity["inputs"].keys() == names
        assert identity_of(run.folder).format == FORMAT


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("new/folder/below", ""),
        ("file/below", "Not a directory"),
        ("dangling/below", "No such file or directory"),
    ],
)
def test_a_folder_of_the_state_is_made_or_says_why_not(
    tmp_path: Path, path: str, problem: str
) -> None:
    """The reason is that of the folder itself, not that an earlier part of its path exists."""
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("missing")
    if not problem:
        assert made(tmp_path / path) == tmp_path / path
        assert (tmp_path / path).is_dir()
        assert made(tmp_path / path) == tmp_path / path
        return
    with pytest.raises(BadInput) as refused:
        made(tmp_path / path)
    assert str(refused.value).startswith(f"{tmp_path / path}: found cannot be created: {problem};")
