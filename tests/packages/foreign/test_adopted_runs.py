"""Runs from outputs that others produced: their steps, their records, and wrong folders."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import BENCHMARKS, DATA

from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import BadInput
from proofmark.judge.judging import read_and_judge
from proofmark.judge.verdict import Verdict
from proofmark.packages.foreign import output_folder
from proofmark.packages.foreign.adopted import Adopted, path_of
from proofmark.packages.foreign.adoption import adopt_folder
from proofmark.packages.foreign.adoption_request import AdoptionRequest
from proofmark.packages.foreign.output_folder import HEAD
from proofmark.packages.foreign.path_rules import PathRule
from proofmark.packages.twin.smpi import unpack
from proofmark.records.columns import Record
from proofmark.runs.run import Run, open_run
from proofmark.site.inventory import Site

SAMPLES = BENCHMARKS / "samples"
STREAM = SAMPLES / "stream-5.10_N2000000_t2.txt"
OSU = SAMPLES / "osu-7.4_bw_n2.txt"
IOR = SAMPLES / "ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt"
NODE = "(?P<node>n[0-9]+)"
RUN = "20261122T011654Z-local-quick"


@pytest.fixture(scope="module")
def benchmarks() -> Benchmarks:
    return shipped_benchmarks()


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    """Return a folder with a STREAM output of each of two nodes."""
    folder = tmp_path / "vendor"
    put(folder / "n1" / "stream.out", STREAM)
    put(folder / "n2" / "stream.out", STREAM, ("46107.1", "46107.2"))
    return folder


def put(path: Path, source: Path, *replaced: tuple[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = source.read_text(encoding="utf-8")
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def adopt(
    benchmarks: Benchmarks,
    folder: Path,
    patterns: Mapping[str, Sequence[str]],
    node: str | None = NODE,
    *,
    nodes: tuple[str, ...] = (),
    site: Site | None = None,
) -> tuple[Run, Adopted]:
    cases = {name: benchmarks.cases[name] for name in patterns}
    rule = PathRule(node, cases) if node else None
    request = AdoptionRequest(folder, patterns, rule, nodes, "vendor")
    return adopt_folder(folder.parent / "runs", request, benchmarks, site)


def judged(run: Run) -> tuple[list[Record], Verdict]:
    records, verdict = read_and_judge(open_run(run.folder))
    return list(records), verdict


STREAMS = {"stream": ["*stream*.out"]}


def _states(folder: Path) -> dict[Path, tuple[int, ...]]:
    """Return mode, size and times of change of all files; a read may change the time of access."""
    states = {path: path.stat() for path in folder.rglob("*")}
    return {
        path: (each.st_mode, each.st_size, each.st_mtime_ns, each.st_ctime_ns)
        for path, each in states.items()
    }


class TestRuns:
    @pytest.mark.core("the control")
    def test_it_is_an_ordinary_run_of_origin_imported(
        self, benchmarks: Benchmarks, vendor: Path
    ) -> None:
        before = _states(vendor)
        run, adopted = adopt(benchmarks, vendor, STREAMS)
        records, verdict = judged(run)
        assert {record.node for record in records} == {"n1", "n2"}
        assert {(each.origin, each.environment_hash) for each in records} == {("imported", "")}
        assert all(record.valid for record in records)
        assert (verdict.coverage.measured, verdict.coverage.duplicate) == (2, 0)
        assert verdict.exit_code() == 4
        assert [each.source for each in adopted.files.values()] == [
            "n1/stream.out",
            "n2/stream.out",
        ]
        assert _states(vendor) == before
        assert not (
            run.folder / "workdir/steps" / "0001-stream" / "n1" / "execution-1" / "rc"
        ).exists()

    def test_several_files_of_a_node_are_repeats(
        self, benchmarks: Benchmarks, vendor: Path
    ) -> None:
        put(vendor / "n1" / "stream-2.out", STREAM)
        run, _ = adopt(benchmarks, vendor, STREAMS)
        _, verdict = judged(run)
        assert [step.nodes for step in run.plan.steps()] == [["n1", "n2"], ["n1"]]
        values = {r.record.node: len(r.values) for r in verdict.results}
        assert values == {"n1": 2, "n2": 1}

    def test_several_runs_in_one_file_are_repeats(
        self, benchmarks: Benchmarks, tmp_path: Path
    ) -> None:
        path = tmp_path / "vendor" / "n1" / "bw.out"
        put(path, OSU)
        path.write_text(path.read_text() * 2)
        run, _ = adopt(benchmarks, tmp_path / "vendor", {"osu-bw": ["*bw.out"]})
        _, verdict = judged(run)
        assert verdict.coverage.duplicate == 0
        assert {len(result.values) for result in verdict.results} == {2}

    def test_a_path_with_two_nodes_is_a_figure_of_both(
        self, benchmarks: Benchmarks, tmp_path: Path
    ) -> None:
        put(tmp_path / "vendor" / "n1-n2.out", OSU)
        run, _ = adopt(benchmarks, tmp_path / "vendor", {"osu-bw": ["*.out"]}, "(n[0-9]+)")
        assert {record.node for record in judged(run)[0]} == {"n[1-2]"}

    def test_parameters_in_paths_separate_figures(
        self, benchmarks: Benchmarks, tmp_path: Path
    ) -> None:
        for ranks in ("2", "4"):
            put(tmp_path / "vendor" / f"n1-r{ranks}.out", OSU)
        pattern = f"{NODE}-r(?P<ranks>[0-9]+)"
        run, _ = adopt(benchmarks, tmp_path / "vendor", {"osu-bw": ["*.out"]}, pattern)
        _, verdict = judged(run)
        assert Counter(r.record.parameters["ranks"] for r in verdict.results) == {
            2: len(verdict.results) // 2,
            4: len(verdict.results) // 2,
        }

    @pytest.mark.core("the control")
    def test_the_output_can_name_the_node(self, benchmarks: Benchmarks, tmp_path: Path) -> None:
        put(tmp_path / "vendor" / "a.out", IOR)
        run, _ = adopt(benchmarks, tmp_path / "vendor", {"ior": ["*.out"]}, None)
        records, _ = judged(run)
        assert all(record.valid for record in records)
        assert {record.node for record in records} == set(run.plan.nodes())

    def test_odd_names_are_data(self, benchmarks: Benchmarks, vendor: Path) -> None:
        odd = os.fsdecode(b"n3/stream \n\x1b[31m\xff.out")
        put(vendor / odd, STREAM)
        put(vendor / "a\nb", STREAM)
        run, adopted = adopt(benchmarks, vendor, STREAMS)
        assert "n3/stream \n\x1b[31m\\xff.out" in {each.source for each in adopted.files.values()}
        assert adopted.unmatched == ["a\nb"]
        assert len({record.node for record in judged(run)[0]}) == 3

    def test_an_own_run_gives_the_same_values(self, benchmarks: Benchmarks, tmp_path: Path) -> None:
        unpack(DATA / "runs" / "local-quick.tar.xz", tmp_path)
        own = open_run(tmp_path / RUN)
        cases = ("stream", "imb-pingpong")
        steps = [step for step in own.plan.steps_to_run() if step.case in cases]
        patterns: dict[str, list[str]] = {}
        for step in steps:
            (path,) = (own.folder / "workdir/steps" / step.id).rglob("stdout")
            patterns.setdefault(step.case, []).append(path.relative_to(own.folder).as_posix())
        node = own.plan.nodes()[0]
        wanted, _ = judged(own)
        request = AdoptionRequest(own.folder, patterns, nodes=(node,), run_id="again")
        run, _ = adopt_folder(tmp_path / "runs", request, benchmarks)
        found, _ = judged(run)
        assert found
        assert Counter(map(measured, found)) == Counter(
            measured(each) for each in wanted if each.case in cases and each.metric in METRICS
        )


METRICS = {"copy", "scale", "add", "triad", "t_min", "t_avg", "t_max", "time", "bandwidth"}


def measured(record: Record) -> tuple[object, ...]:
    """Return what an output itself states."""
    return (record.case, record.benchmark, record.metric, record.value, record.unit)


class TestFaults:
    @pytest.mark.core("a verdict of the package")
    @pytest.mark.fault("adopted-other-host")
    def test_an_output_of_another_node_is_invalid(
        self, benchmarks: Benchmarks, tmp_path: Path
    ) -> None:
        """Its begin, which decides the node, names none."""
        path = tmp_path / "vendor" / "n1" / "a.out"
        put(path, IOR)
        path.write_text("Loading modules\n" * (HEAD // 15) + path.read_text())
        run, _ = adopt(benchmarks, tmp_path / "vendor", {"ior": ["*.out"]})
        records, verdict = judged(run)
        assert verdict.exit_code() == 2
        assert all("it was adopted for n1" in record.reason for record in records)

    @pytest.mark.fault("adopted-other-host")
    def test_figures_belong_to_the_node_that_the_output_names(
        self, benchmarks: Benchmarks, tmp_path: Path
    ) -> None:
        put(tmp_path / "vendor" / "n1" / "a.out", IOR)
        run, adopted = adopt(benchmarks, tmp_path / "vendor", {"ior": ["*.out"]})
        assert {record.node for record in judged(run)[0]} == {"vm"}
        assert {path: each.text for path, each in adopted.contradicted.items()} == {
            "n1/a.out": "vm"
        }

    @pytest.mark.fault("adopted-unreadable-file")
    @pytest.mark.parametrize("kind", ["link", "fifo", "binary", "empty", "large"])
    def test_a_file_that_cannot_be_read_is_invalid(
        self, benchmarks: Benchmarks, vendor: Path, kind: str
    ) -> None:
        path = vendor / "n3" / "stream.out"
        path.parent.mkdir()
        if kind == "link":
            path.symlink_to("/etc/passwd")
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "large":
            with path.open("wb") as file:
                file.truncate(65 << 20)
        else:
            path.write_bytes(bytes(range(256)) if kind == "binary" else b"")
        run, _ = adopt(benchmarks, vendor, STREAMS)
        records, verdict = judged(run)
        reasons = {record.node: record.reason for record in records}
        words = {
            "link": "a link; accepted is a regular file",
            "fifo": "not a regular file",
            "binary": "no STREAM result row found",
            "empty": "the output is empty",
            "large": "more than 64.0 MiB",
        }
        assert words[kind] in reasons["n3"]
        assert not reasons["n1"] + reasons["n2"]
        assert verdict.exit_code() == 2
        assert b"root:" not in b"".join(each.read_bytes() for each in run.folder.rglob("stdout"))

    @pytest.mark.fault("adopted-link-to-folder")
    def test_a_link_to_a_folder_is_not_followed(
        self, benchmarks: Benchmarks, vendor: Path, tmp_path: Path
    ) -> None:
        put(tmp_path / "other" / "stream.out", STREAM)
        (vendor / "n3").symlink_to(tmp_path / "other")
        run, adopted = adopt(benchmarks, vendor, STREAMS)
        assert adopted.not_entered == {"n3": "a link; accepted is a folder"}
        assert run.plan.nodes() == ["n1", "n2"]

    @pytest.mark.fault("adopted-two-cases")
    def test_a_file_of_two_cases_is_refused_by_name(
        self, benchmarks: Benchmarks, vendor: Path
    ) -> None:
        with pytest.raises(BadInput, match=r"n1/stream\.out: found patterns of stream and hpl"):
            adopt(benchmarks, vendor, {**STREAMS, "hpl": ["n1/*"]})
        assert not (vendor.parent / "runs").exists()

    @pytest.mark.core("a verdict of the package")
    @pytest.mark.fault("adopted-output-changed")
    def test_an_output_that_changed_after_the_adoption_is_invalid(
        self, benchmarks: Benchmarks, vendor: Path
    ) -> None:
        run, _ = adopt(benchmarks, vendor, STREAMS)
        path = run.folder / "workdir/steps" / "0001-stream" / "n2" / "execution-1" / "stdout"
        path.write_text(path.read_text().replace("Triad:", "Triad: "))
        reasons = {record.node: record.reason for record in judged(run)[0]}
        assert reasons["n2"].startswith("stdout changed after it was adopted")
        assert not reasons["n1"]

    @pytest.mark.core("a verdict of the package")
    @pytest.mark.fault("adopted-output-changed")
    def test_an_edited_list_of_sources_is_refused(
        self, benchmarks: Benchmarks, vendor: Path
    ) -> None:
        run, _ = adopt(benchmarks, vendor, STREAMS)
        path = path_of(run.files)
        content = json.loads(path.read_text())
        content["files"]["0001-stream/n1"]["problem"] = "nothing"
        path.write_text(json.dumps(content))
        with pytest.raises(BadInput, match=r"adopted\.json: found changed after the start"):
            open_run(run.folder)


class TestRefused:
    def test_files_without_a_node_are_counted(
        self, benchmarks: Benchmarks, vendor: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(output_folder, "MOST_NAMED", 1)
        with pytest.raises(BadInput) as error:
            adopt(benchmarks, vendor, STREAMS, "(?P<node>m[0-9])")
        assert [mistake.file for mistake in error.value.mistakes] == ["n1/stream.out", "FOLDER"]
        assert error.value.mistakes[1].found == "1 more files with this problem"

    def test_a_pattern_without_a_file_is_refused(
        self, benchmarks: Benchmarks, vendor: Path
    ) -> None:
        with pytest.raises(BadInput, match=r"hpl: found '\*/xhpl', which matches no file"):
            adopt(benchmarks, vendor, {**STREAMS, "hpl": ["*/xhpl"]})

    def test_too_many_files_are_refused(
        self, benchmarks: Benchmarks, vendor: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(output_folder, "MAX_GIVEN_FILES", 1)
        with pytest.raises(BadInput, match="more than 1 files"):
            adopt(benchmarks, vendor, STREAMS)

    def test_runs_in_the_folder_are_refused(self, benchmarks: Benchmarks, vendor: Path) -> None:
        request = AdoptionRequest(vendor, STREAMS, nodes=("n1",))
        with pytest.raises(BadInput, match="it is never changed"):
            adopt_folder(vendor / "runs", request, benchmarks)

    def test_a_run_that_exists_is_kept(self, benchmarks: Benchmarks, vendor: Path) -> None:
        run, _ = adopt(benchmarks, vendor, STREAMS)
        identity = run.files.identity.read_bytes()
        shutil.rmtree(vendor / "n2")
        with pytest.raises(BadInput, match="vendor: exists"):
            adopt(benchmarks, vendor, STREAMS)
        assert run.files.identity.read_bytes() == identity
