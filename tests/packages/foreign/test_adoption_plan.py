"""What ``adopt`` proposes for a folder, and archives and compressed files as data."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import shlex
import tarfile
from collections.abc import Callable, Mapping
from functools import partial
from itertools import zip_longest
from pathlib import Path

import pytest
from tests.folders import BENCHMARKS, ROOT

from proofmark.cli.main import main
from proofmark.judge.judging import read_and_judge
from proofmark.packages.foreign import adopt, packed, path_rules
from proofmark.packages.foreign.adopted import adopted_files
from proofmark.runs.run import open_run

SAMPLES = BENCHMARKS / "samples"
STREAM = (SAMPLES / "stream-5.10_N2000000_t2.txt").read_bytes()
HPL = (SAMPLES / "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt").read_bytes()
BANDWIDTH = (SAMPLES / "osu-7.4_bw_n2.txt").read_bytes()
BOTH_WAYS = (SAMPLES / "osu-7.4_bibw_n2.txt").read_bytes()
LATENCY = (SAMPLES / "osu-7.4_latency_n2.txt").read_bytes()
HPCC = (SAMPLES / "hpcc-1.5.0_N4000_n2.txt").read_bytes()
FIO = (SAMPLES / "fio-3.33_4m_2m_n2_fpp.json").read_bytes()
IOR = (SAMPLES / "ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt").read_bytes()

Plan = Callable[[Mapping[str, bytes]], str]


@pytest.fixture
def plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Plan:
    """Return a function that writes files and returns what ``adopt`` prints about them."""
    monkeypatch.setenv("PROOFMARK_KIT", str(ROOT))
    monkeypatch.chdir(tmp_path)

    def printed(files: Mapping[str, bytes]) -> str:
        for name, content in files.items():
            path = tmp_path / "vendor" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        assert main(["adopt", "vendor"]) == 0
        assert not (tmp_path / "runs").exists()
        return capsys.readouterr().out

    return printed


def adopted(*words: str) -> dict[str, tuple[str, str, dict[str, object]]]:
    """Run ``adopt`` with `words`; return case, nodes and parameters of each file that it adopts."""
    assert main(["adopt", *words, "--runs", "runs", "--run-id", f"r{len(words)}"]) == 0
    run = open_run(Path(f"runs/r{len(words)}"))
    steps = {step.id: step for step in run.plan.steps()}
    found: dict[str, tuple[str, str, dict[str, object]]] = {}
    for folder, file in adopted_files(run.files).items():
        name, _, node = folder.partition("/")
        step = steps[name]
        found[file.source] = (step.case, node or ",".join(step.nodes), {**step.parameters})
    return found


SWEEP = {
    "sweep_20260401_1810/b0001--b0002.out": BANDWIDTH,
    "sweep_20260401_1810/b0001--b0003.out": BANDWIDTH,
    "sweep_20260519_0911/b0001--b0002.out": BANDWIDTH,
    "sweep_20260519_0911/b0001--b0003.out": BANDWIDTH,
    "node07/ior_n2_b4m.txt": STREAM,
    "node08/stream.txt": STREAM,
    "node08/part.json": FIO,
    "README.md": b"# Outputs of STREAM version 5.10\n",
}


def test_the_options_of_the_plan_do_what_accept_does(plan: Plan) -> None:
    text = plan(SWEEP)
    assert "plan: 7 of 8 files" in text
    assert "nodes in paths: 7 files of b[0001-0003],node[07-08]" in text
    assert "left over, adopt-no-banner: no banner of a case: 1: README.md" in text
    (line,) = (line for line in text.splitlines() if line.startswith("options: "))
    accepted = adopted("vendor", "--accept")
    assert adopted(*shlex.split(line)[3:]) == accepted
    assert accepted["sweep_20260401_1810/b0001--b0002.out"] == (
        "osu-bw",
        "b0001,b0002",
        {"date": "2026-04-01"},
    )
    assert accepted["node07/ior_n2_b4m.txt"] == ("stream", "node07", {})
    assert accepted["node08/part.json"][:2] == ("fio-cache", "node08")


@pytest.mark.parametrize(
    ("content", "case"),
    [
        (HPCC, "hpcc"),  # it has the banner of HPL in it
        (LATENCY, "osu-latency"),
        (BANDWIDTH, "osu-bw"),
        (BANDWIDTH + BOTH_WAYS, "osu-latency"),  # whose rules read them
        (b"\xff\xfe" + STREAM.decode().encode("utf-16-le"), "stream"),
        (STREAM.replace(b"\n", b"\r\n"), "stream"),
        (b"Loading modules\n" * 50 + HPL, "hpl"),
    ],
)
def test_banners_decide(plan: Plan, content: bytes, case: str) -> None:
    assert f"plan: 2 of 2 files: {case} 2" in plan({"n1/a": content, "n2/a": content})


@pytest.mark.parametrize("order", [(STREAM, HPL), (HPL, STREAM), (STREAM, HPL, STREAM, HPL)])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_each_program_of_a_job_log_is_read(
    plan: Plan, order: tuple[bytes, ...], ends: bytes
) -> None:
    """1,000 job logs with STREAM and then HPL in each lost all of their figures."""
    log = b"\n== next ==\n".join(order).replace(b"\n", ends)
    text = plan({f"n{node}/job.log": b"Loading modules\n" + log for node in (1, 2)})
    assert "plan: 2 of 2 files: " in text and "stream 2" in text and "hpl 2" in text
    assert "left over" not in text
    assert main(["adopt", "vendor", "--accept", "--runs", "runs", "--run-id", "both"]) == 0
    found = values_of("both")
    for node in ("n1", "n2"):
        Path(f"apart/{node}").mkdir(parents=True)
        Path(f"apart/{node}/stream").write_bytes(STREAM)
        Path(f"apart/{node}/hpl").write_bytes(HPL)
    words = ("--case", "stream=*/stream", "--case", "hpl=*/hpl", "--node", "(n[0-9])")
    assert main(["adopt", "apart", *words, "--runs", "runs", "--run-id", "apart"]) == 0
    assert found == sorted(values_of("apart") * (len(order) // 2))


def values_of(run: str) -> list[tuple[str, str, float | None]]:
    """Return case, node and value of each figure of a run, all of which are valid."""
    records = [*read_and_judge(open_run(Path(f"runs/{run}")))[0]]
    assert records and all(record.valid for record in records)
    return sorted((record.case, record.node, record.value) for record in records)


def test_a_program_that_was_killed_does_not_hide_the_next_one(plan: Plan) -> None:
    """The banner of HPL before the end of HPCC is part of HPCC; STREAM has nothing in it."""
    killed = STREAM[: STREAM.index(b"Copy:")]
    text = plan({"n1/a": killed + HPL, "n2/a": HPCC, "n3/a": HPCC + HPL})
    assert "plan: 3 of 3 files: stream 1, hpl 2, hpcc 2" in text


def test_patterns_select_the_programs_of_a_file(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    text = plan({f"n{node}/job.log": STREAM + HPL for node in (1, 2)})
    (line,) = (line for line in text.splitlines() if line.startswith("options: "))
    assert main(["adopt", *shlex.split(line)[3:], "--runs", "runs", "--run-id", "options"]) == 0
    assert main(["adopt", "vendor", "--accept", "--runs", "runs", "--run-id", "accept"]) == 0
    assert values_of("options") == values_of("accept")
    words = ("--case", "hpl=*", "--node", "(n[0-9])", "--runs", "runs", "--run-id", "one")
    assert main(["adopt", "vendor", *words]) == 0
    code = "left over, adopt-other-program: its output of stream, which no --case selects"
    assert f"{code}: 2: n1/job.log, n2/job.log\n" in capsys.readouterr().out
    assert values_of("one") == [each for each in values_of("accept") if each[0] == "hpl"]
    assert main(["adopt", "vendor", *words[:2], "--case", "ior=*", *words[2:]]) == 3
    assert "n1/job.log: found patterns of hpl and ior" in capsys.readouterr().err


def with_hosts(outputs: Mapping[str, bytes]) -> bytes:
    """Return the outputs of hosts as pdsh prints them: a line of each host in turn."""
    lines = [
        [f"{host}: {line}" for line in text.decode().splitlines()] for host, text in outputs.items()
    ]
    mixed = [line for each in zip_longest(*lines) for line in each if line is not None]
    return "\n".join([*mixed, "pdsh@head: n03: ssh exited with exit code 1", ""]).encode()


def in_blocks(outputs: Mapping[str, bytes], dashes: int) -> bytes:
    """Return the outputs of hosts as dshbak (16 dashes) or `clush -b` (15) prints them."""
    line = b"-" * dashes
    return b"".join(
        b"%b\n%b\n%b\n%b" % (line, host.encode(), line, text) for host, text in outputs.items()
    )


@pytest.mark.parametrize(
    "form", [with_hosts, partial(in_blocks, dashes=16), partial(in_blocks, dashes=15)]
)
@pytest.mark.parametrize("names", [("n01", "n02", "n03"), ("x3008c0s13b0n0", "x3008c0s13b0n1")])
def test_outputs_of_hosts_in_one_file_are_those_of_each(
    plan: Plan, form: Callable[[Mapping[str, bytes]], bytes], names: tuple[str, ...]
) -> None:
    files = {name: (STREAM, HPL, STREAM + HPL)[place] for place, name in enumerate(names)}
    text = plan({"all.log": form(files)})
    assert "plan: 1 of 1 file: " in text and "left over" not in text
    assert main(["adopt", "vendor", "--accept", "--runs", "runs", "--run-id", "one"]) == 0
    for name, content in files.items():
        Path(f"apart/{name}").mkdir(parents=True)
        Path(f"apart/{name}/job.log").write_bytes(content)
    assert main(["adopt", "apart", "--accept", "--runs", "runs", "--run-id", "apart"]) == 0
    assert values_of("one") == values_of("apart")


def test_the_host_before_all_lines_is_the_node(plan: Plan) -> None:
    text = plan({"first.log": with_hosts({"n07": STREAM})})
    assert "nodes in outputs or job scripts: 1 file of n07\n" in text
    assert main(["adopt", "vendor", "--accept", "--runs", "runs", "--run-id", "one"]) == 0
    assert {node for _, node, _ in values_of("one")} == {"n07"}


@pytest.mark.parametrize(
    "content",
    [
        with_hosts({"stdout": STREAM, "stderr": STREAM}),
        b"-" * 15 + b"\nn[02-03] (2)\n" + b"-" * 15 + b"\n" + STREAM,
    ],
)
def test_lines_that_may_be_of_several_nodes_are_left_over(plan: Plan, content: bytes) -> None:
    assert "left over, adopt-nodes-mixed: " in plan(
        {"node1/a": STREAM, "node2/a": STREAM, "all.log": content}
    )


def test_a_case_that_reads_alike_leaves_nothing_over(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    plan({f"n{node}/a.log": BANDWIDTH for node in (1, 2)})
    words = ("--case", "osu-latency=*", "--node", "(n[0-9])", "--runs", "runs", "--run-id", "one")
    assert main(["adopt", "vendor", *words]) == 0
    assert "left over" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "nodes"),
    [
        ({"a/out1": b"SLURM_JOB_NODELIST=gpu[01-02]\n" + BANDWIDTH}, "gpu[01-02]"),
        ({"a/out1": b"Running on host: c12-3\n" + STREAM}, "c12-3"),
        ({"a/out1": b"Running on 4 nodes of x86_64\nNodes: 4\nHost: n07\n" + STREAM}, "n07"),
        ({"a/out1": STREAM, "a/job.sh": b"#!/bin/sh\n#SBATCH -N 1\n#SBATCH -w nid001\n"}, "nid001"),
        ({"a/out1": STREAM, "a/job": b"#!/bin/sh\n#PBS -l nodes=x1:ppn=8+x2\n"}, "x[1-2]"),
        ({"node1/node2.out": BANDWIDTH, "node1/node3.out": BANDWIDTH}, "node[1-3]"),
        ({"a/node1-node2.out": BANDWIDTH, "a/node2-node3.out": BANDWIDTH}, "node[1-3]"),
        ({"rack1/node01/x": STREAM, "rack2/node07/x": STREAM}, "node[01,07]"),
        ({"gpu-n01/a": STREAM, "gpu-n02/a": STREAM}, "gpu-n[01-02]"),
        ({"run1/out": IOR, "run2/out": IOR}, "vm"),
        ({"n1.a/x": STREAM, "n2.b/x": STREAM}, "n1.a,n2.b"),
        ({"10.0.0.5/x": STREAM, "10.0.0.6/x": STREAM}, "10.0.0.[5-6]"),
        ({"n1/stream_n4.txt": STREAM, "n2/stream_n8.txt": STREAM}, "n[1-2]"),
        ({"t/xhpl.node3.out": HPL, "t/xhpl.node4.out": HPL}, "node[3-4]"),
    ],
)
def test_nodes_are_found(plan: Plan, files: Mapping[str, bytes], nodes: str) -> None:
    text = plan(files)
    outputs = sum("job" not in name for name in files)
    assert f"{outputs} file{'s' * (outputs > 1)} of {nodes}\n" in text
    assert len(adopted("vendor", "--accept")) == outputs


@pytest.mark.parametrize(
    "names", [("run1/out", "np4.txt"), ("ranks8/out", "out7.txt"), ("stream-5.10/out", "j-48213.o")]
)
def test_a_number_that_is_no_node_is_left_over(plan: Plan, names: tuple[str, str]) -> None:
    text = plan({**dict.fromkeys(names, STREAM), "node1/a": STREAM, "node2/a": STREAM})
    assert "nodes in paths: 2 files of node[1-2]\n" in text
    assert all(name in text.partition("left over, ")[2] for name in names)


def test_words_that_separate_outputs_are_a_label(plan: Plan) -> None:
    files = {f"{kind}/n{node}.log": STREAM for kind in ("gccopt", "iccopt") for node in (1, 2)}
    assert "label kind: gccopt 2, iccopt 2" in plan(files)
    kinds = [each[2]["kind"] for each in adopted("vendor", "--accept").values()]
    assert sorted(map(str, kinds)) == ["gccopt", "gccopt", "iccopt", "iccopt"]


def test_labels_of_names_and_texts(plan: Plan) -> None:
    plan({"n1/a-gpu.log": b"Date: 2026.04.01\n" + STREAM, "n2/b-cpu.log": STREAM})
    words = ("--case", "stream=*", "--node", "(n[0-9])", "--label", "kind=name:(cpu|gpu)")
    found = adopted("vendor", *words, "--label", "date=file:Date: (.*)$")
    assert [each[2] for each in found.values()] == [
        {"kind": "gpu", "date": "2026-04-01"},
        {"kind": "cpu"},
    ]


def test_a_wrong_label_is_refused(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    plan({"n1/a": STREAM, "n2/a": STREAM})
    for label in ("kind", "threads=([0-9]+)", "kind=(", "node=x", "Kind=x"):
        assert main(["adopt", "vendor", "--label", label]) == 3
        assert "--label: " in capsys.readouterr().err


def test_a_site_names_its_hosts(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    plan({f"{node}/x": STREAM for node in ("xeon001", "xeon002", "xeon099", "n01")})
    site = ("-i", str(ROOT / "inventory/example-xeon"), "-l", "xeon")
    assert main(["adopt", "vendor", *site]) == 0
    text = capsys.readouterr().out
    assert "2 files of xeon[001-002]" in text
    assert "adopt-other-node: of nodes that -l does not select: xeon099: 1: xeon099/x" in text
    assert len(adopted("vendor", "--accept", *site)) == 2


def test_a_folder_without_outputs_is_refused(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "notes.txt").write_text("x")
    assert main(["adopt", "vendor"]) == 3
    assert "vendor: no banner of a case" in capsys.readouterr().err


class TestPacked:
    @pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
    def test_compressed_files_are_read(self, plan: Plan, pack: Callable[[bytes], bytes]) -> None:
        assert "stream 2" in plan({"n1/x": pack(STREAM), "n2/x": pack(STREAM[:500]) + pack(b"")})
        adopted("vendor", "--accept")
        assert next(Path("runs/r2").rglob("n1/execution-1/stdout")).read_bytes() == STREAM

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (gzip.compress(STREAM)[:-9], "damaged: it is cut"),
            (gzip.compress(STREAM + bytes(8 << 20)), "compressed by more than 200"),
            (gzip.compress(STREAM)[:300] + b"xxxx" * 100, "damaged: "),
        ],
    )
    def test_a_damaged_file_is_invalid(self, plan: Plan, content: bytes, why: str) -> None:
        plan({"n1/x.gz": content, "n2/x": STREAM})
        words = ("--case", "stream=*", "--node", "(n[0-9])")
        adopted("vendor", *words)
        problems = [
            each.problem for each in adopted_files(open_run(Path("runs/r5")).files).values()
        ]
        assert why in problems[0]
        assert not problems[1]

    @pytest.mark.fault("adopted-archive-attacks")
    def test_archives_are_folders(self, plan: Plan, tmp_path: Path) -> None:
        files = {"n1/x": STREAM, "./n2/x": gzip.compress(STREAM), "/abs/n3": STREAM}
        files |= {"../out/n4": STREAM, "n5/large": bytes(100)}
        text = plan({"a.tar.gz": archive(files, "w:gz"), "n6/x": STREAM})
        assert "plan: 3 of 4 files: stream 3" in text
        assert "3 files of n[1-2,6]\n" in text
        for name, why in (
            ("/abs/n3", "it is not below the archive"),
            ("../out/n4", "it is not below the archive"),
            ("n1/link", "a link or a special file"),
            ("n1/fifo", "a link or a special file"),
        ):
            assert f"a.tar.gz/{name} ({'' if 'link' in why else 'a path that '}" in text
            assert why in text
        assert not (tmp_path / "out").exists()
        assert set(adopted("vendor", "--accept")) == {"a.tar.gz/n1/x", "a.tar.gz/n2/x", "n6/x"}

    @pytest.mark.parametrize(
        ("limit", "value", "why"),
        [
            ("MAX_GIVEN_FILES", 1, "too many files or bytes: 1 files are read"),
            ("MAX_UNPACKED_BYTES", len(STREAM) + 1, "too many files or bytes: 1 files are read"),
            ("MAX_OUTPUT_BYTES", len(STREAM) - 1, "more than 0 MiB"),
        ],
    )
    def test_an_archive_has_limits(
        self, plan: Plan, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, why: str
    ) -> None:
        monkeypatch.setattr(packed, limit, value)
        files = {"n1/x": STREAM, "n2/x": STREAM}
        assert why in plan({"a.tar": archive(files, "w"), "n6/x": STREAM, "n7/x": STREAM})

    @pytest.mark.fault("adopted-archive-attacks")
    def test_a_bomb_is_not_unpacked(self, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(packed, "_LEAST_OF_ARCHIVE", 1 << 20)
        bomb = archive({"n1/x": bytes(16 << 20)}, "w:xz")
        text = plan({"a.tar.xz": bomb, "n6/x": STREAM, "n7/x": STREAM})
        assert "a.tar.xz (compressed by more than 200: a fault or an attack)" in text

    def test_headers_and_depth_have_limits(self, plan: Plan) -> None:
        names = {"n1/x": STREAM, "/".join(["a"] * 1500): STREAM}
        long_name = archive({f"n2/{'y' * (2 << 20)}": STREAM}, "w:gz")
        text = plan({"a.tar": archive(names, "w"), "b.tgz": long_name, "n6/x": STREAM})
        assert "b.tgz (headers before one member with more than 1048576 bytes)" in text
        assert "a path that an archive must not have: it is not below the archive" in text
        assert "plan: 2 of 2 files: stream 2" in text

    @pytest.mark.fault("adopted-archive-attacks")
    def test_a_chain_of_headers_is_refused(self, plan: Plan) -> None:
        """`tarfile` calls itself for each of them: RecursionError, exit code 70."""
        long_name = tarfile.TarInfo("x")
        long_name.type, long_name.size = tarfile.GNUTYPE_LONGNAME, 5
        chain = 400 * (long_name.tobuf() + b"n1/x\0".ljust(512, b"\0"))
        content = gzip.compress(chain + archive({"n2/x": STREAM}, "w"))
        text = plan({"a.tgz": content, "n6/x": STREAM, "n7/x": STREAM})
        assert "a.tgz (more than 16 headers before one member)" in text
        assert "plan: 2 of 2 files: stream 2" in text


def archive(files: Mapping[str, bytes], mode: str) -> bytes:
    """Return a tar archive of `files`, with a link and a FIFO."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as made:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
        for name, kind in (("n1/link", tarfile.SYMTYPE), ("n1/fifo", tarfile.FIFOTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            made.addfile(member)
    return buffer.getvalue()


HOSTS = b"Running on hosts: " + b" ".join(b"b%04d" % number for number in range(1, 9)) + b"\n"


class TestPathsAndTexts:
    """The text of an output counts against the words of its path."""

    @pytest.mark.fault("adopted-path-names-other-nodes")
    def test_the_text_counts_and_the_contradiction_has_a_code(
        self, plan: Plan, capsys: pytest.CaptureFixture[str]
    ) -> None:
        files = {"b0006/hpl-b200-8x.out": HOSTS + HPL, "b0007/hpl.out": HPL}
        text = plan({**files, "b0008/hpl.out": b"Running on host: b0009\n" + HPL})
        named = "adopt-text-counts: its path or --nodes names b0008, its text names b0009"
        assert f"contradiction, {named}" in text
        found = adopted("vendor", "--accept")
        assert "paths and texts that name different nodes: 2: b0006/" in capsys.readouterr().out
        assert {path: each[1] for path, each in found.items()} == {
            "b0006/hpl-b200-8x.out": ",".join(f"b{number:04}" for number in range(1, 9)),
            "b0007/hpl.out": "b0007",
            "b0008/hpl.out": "b0009",
        }
        listed = json.loads(Path("runs/r2/inputs/adopted.json").read_text())["contradicted"]
        assert listed["b0008/hpl.out"] == {"path": "b0008", "text": "b0009"}

    @pytest.mark.fault("adopted-path-names-other-nodes")
    def test_the_printed_options_and_accept_adopt_the_same(self, plan: Plan) -> None:
        files = {"b0006/hpl.out": HOSTS + HPL, "b0007/hpl.out": HPL, "b0009/ior.out": IOR}
        text = plan({**files, "b0008/hpl.out": b"Running on host: b0009\n" + HPL})
        (line,) = (line for line in text.splitlines() if line.startswith("options: "))
        accepted = adopted("vendor", "--accept")
        words = shlex.split(line)[3:]
        assert adopted(*words) == accepted
        assert accepted["b0008/hpl.out"][1] == "b0009"
        lists = [
            json.loads(Path(f"runs/r{number}/inputs/adopted.json").read_text())["contradicted"]
            for number in (2, len(words))
        ]
        assert lists[0] == lists[1]
        assert lists[0].keys() == {"b0006/hpl.out", "b0008/hpl.out", "b0009/ior.out"}

    @pytest.mark.fault("adopted-path-names-other-nodes")
    def test_nodes_that_are_stated_do_not_count_against_a_text(self, plan: Plan) -> None:
        plan({"out/hpl.txt": b"Running on host: b0009\n" + HPL, "out/other.txt": HPL})
        found = adopted("vendor", "--case", "hpl=*", "--nodes", "b0001")
        assert {path: each[1] for path, each in found.items()} == {
            "out/hpl.txt": "b0009",
            "out/other.txt": "b0001",
        }
        listed = json.loads(Path("runs/r5/inputs/adopted.json").read_text())["contradicted"]
        assert listed == {"out/hpl.txt": {"path": "b0001", "text": "b0009"}}

    def test_a_text_that_agrees_is_no_contradiction(self, plan: Plan) -> None:
        """A job prints its first node, and a job of many pairs prints all its nodes."""
        first = {"b0001--b0002.out": b"Running on host: b0001\n" + BANDWIDTH}
        sweep = {f"b000{number}--b0008.out": HOSTS + BANDWIDTH for number in range(3, 7)}
        text = plan({**first, **sweep})
        assert "contradiction" not in text and "left over" not in text
        found = {each[1] for each in adopted("vendor", "--accept").values()}
        assert found == {"b0001,b0002", *(f"b000{number},b0008" for number in range(3, 7))}

    def test_the_host_that_started_all_jobs_is_asked_about(
        self, plan: Plan, capsys: pytest.CaptureFixture[str]
    ) -> None:
        login = b"Running on host: login1\n"
        plan({"n0001/a": STREAM, **{f"n000{n}/a": login + STREAM for n in (2, 3)}})
        assert main(["adopt", "vendor"]) == 0
        printed = capsys.readouterr().out
        named = "adopt-two-answers: its path names n0002, its text names login1"
        assert f"left over, {named}" in printed
        found = adopted("vendor", "--case", "stream=*/a", "--node", "(n[0-9]+)")
        assert {each[1] for each in found.values()} == {"n0001", "n0002", "n0003"}


@pytest.mark.fault("adopted-unsure-nodes")
def test_words_that_may_count_are_asked_about(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    files = dict.fromkeys(("p1/a", "p2/a", "n1/a", "n2/a"), STREAM)
    (line,) = (line for line in plan(files).splitlines() if line.startswith("left over"))
    question = "adopt-unsure-node: are they nodes, counts or repeats: p1, p2?"
    assert line.startswith(f"left over, {question}")
    option = shlex.split(line.partition("--node ")[2].partition("; ")[0])
    found = adopted("vendor", "--case", "stream=*/a", "--node", *option)
    assert {each[1] for each in found.values()} == {"n1", "n2", "p1", "p2"}


@pytest.mark.fault("adopted-unsure-nodes")
def test_a_pair_does_not_lose_a_node(plan: Plan) -> None:
    pairs = [f"w0001--{other}.out" for other in ("w0002", "w0003", "x0001", "x0002")]
    assert f"{len(pairs)} files of w[0001-0003],x[0001-0002]" in plan(
        dict.fromkeys(pairs, BANDWIDTH)
    )
    nodes = [each[1] for each in adopted("vendor", "--accept").values()]
    assert sorted(nodes) == ["w0001,w0002", "w0001,w0003", "w0001,x0001", "w0001,x0002"]


@pytest.mark.parametrize("names", ["stream{}", "stream0{}", "imb{}", "stream.{}", "stream_rep{}"])
def test_a_number_that_counts_is_a_repeat(plan: Plan, names: str) -> None:
    files = {f"n{node}/{names.format(i)}.log": STREAM for node in (1, 2, 3, 4) for i in (1, 2, 3)}
    assert "label" not in plan(files)
    found = adopted("vendor", "--accept").values()
    assert [each[2] for each in found] == 12 * [{}]


def test_kinds_with_a_number_that_counts_are_two(plan: Plan) -> None:
    words = ("gccopt1", "gccopt2", "iccopt1", "iccopt2")
    plan({f"n{node}/{word}.log": STREAM for node in (1, 2) for word in words})
    kinds = [each[2]["kind"] for each in adopted("vendor", "--accept").values()]
    assert sorted(map(str, kinds)) == 4 * ["gccopt"] + 4 * ["iccopt"]


def test_numbers_that_do_not_count_are_kinds(plan: Plan) -> None:
    words = ("gccx12", "gccx13")
    text = plan({f"n{node}/{word}.log": STREAM for node in (1, 2) for word in words})
    assert "label kind: gccx12 2, gccx13 2" in text


def test_folders_of_nodes_are_kinds(plan: Plan) -> None:
    kinds = {"GPU1": (1, 2), "GPU2": (3, 4, 5), "compute": (6, 7)}
    files = {f"{kind}/n{n:02}/a.log": STREAM for kind, nodes in kinds.items() for n in nodes}
    text = plan(files)
    assert "label kind: GPU1 2, GPU2 3, compute 2" in text
    (line,) = (line for line in text.splitlines() if line.startswith("options: "))
    accepted = adopted("vendor", "--accept")
    assert adopted(*shlex.split(line)[3:]) == accepted
    assert accepted["GPU2/n04/a.log"][2] == {"kind": "GPU2"}


@pytest.mark.parametrize("folders", [("rack1", "rack2"), ("run1", "run2"), ("stream", "osu")])
def test_folders_that_are_no_kinds(plan: Plan, folders: tuple[str, str]) -> None:
    first, second = folders
    content = BANDWIDTH if second == "osu" else STREAM
    files = {f"{first}/n0{node}/a.log": STREAM for node in (1, 2, 3)}
    assert "label" not in plan({**files, **{f"{second}/n0{n}/a.log": content for n in (4, 5, 6)}})


def test_few_patterns_select_all_files_of_a_sweep(plan: Plan) -> None:
    """The pairs of four prefixes beside files of another case with the same end."""
    hosts = [f"{prefix}{number:03}" for prefix in "wxbm" for number in range(1, 9)]
    pairs = [f"{a}--{b}.out" for at, a in enumerate(hosts) for b in hosts[at + 1 :]]
    text = plan({**dict.fromkeys(pairs, BANDWIDTH), "w001.out": STREAM, "x001.out": STREAM})
    (line,) = (line for line in text.splitlines() if line.startswith("options: "))
    assert line.count("--case") == 3
    assert "--case 'osu-bw=*--*.out'" in line
    assert adopted(*shlex.split(line)[3:]) == adopted("vendor", "--accept")


def test_options_that_lack_files_are_named(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (path_rules, adopt):
        monkeypatch.setattr(module, "MOST_PATTERNS", 2)
    words = ("alpha", "beta", "gamma", "delta")
    files = {f"n1/{word}": STREAM for word in words} | {f"n2/{word}x": HPL for word in words}
    assert "options, adopt-many-patterns: the files of stream need 2 patterns" in plan(files)
