"""The checks of the scratch directory, and the script that reports on it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.folders import PACKAGE

from proofmark.common.errors import BadInput
from proofmark.machine.node_commands import script_text
from proofmark.machine.scratch_checks import ScratchFacts, judge_scratch, read_scratch
from proofmark.site.file_systems import Scratch

CHROOT = """\
mount -t tmpfs none "$1" && mkdir "$1/root" && cd "$1/root" && mkdir dev proc scratch || exit 99
for part in bin lib lib64 sbin usr etc; do
    if [ -d "/$part" ]; then mkdir "$part" && mount --rbind "/$part" "$part" || exit 99; fi
done
mount --rbind /dev dev && mount --rbind /proc proc && cp "$2" probe.sh || exit 99
if [ "$3" = mounted ]; then mount -t tmpfs none scratch || exit 99; fi
exec chroot . sh /probe.sh -w /scratch
"""
"""Runs the probe in a chroot whose / is no mount point. The arguments are an empty folder, the
probe, and ``mounted`` if the scratch folder is a mount point."""
PROBE = PACKAGE / "machine/shell/scratch-probe.sh"
GIB = 2**30
GOOD = ScratchFacts(
    node="knl0001",
    path="/scratch/runs",
    nearest="/scratch/runs",
    kind="lustre",
    source="mgs@o2ib:/fs",
    available=100 * GIB,
    on_root=False,
    user="bench",
    written="ok",
)
DEMAND = Scratch(path="/scratch/runs", type="lustre", off_root=True)
TEXT = """\
proofmark-probe 1 scratch
=== host
| hostname: knl0001
| user: bench
=== directory
| path: /scratch/my runs
| nearest: /scratch/my runs
| device: 77
| root_device: 65024
| available: 1000 4096
=== mount
| mgs@o2ib:/fs /scratch/my\\040runs lustre rw,flock 0 0
=== quota
! quota: no such tool: quota
=== write
| result: ok
=== end
"""
QUOTA = """\
| Disk quotas for user bench (uid 1000):
|      Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
|    mgs@o2ib:/fs     900*    500    1000       0       1       0       0       0
|       /dev/sda1       1       2       2       0       1       0       0       0
"""


def judge(
    *facts: ScratchFacts, demand: Scratch = DEMAND, peak: int = GIB, may_create: bool = False
) -> list[str]:
    return [str(item) for item in judge_scratch(facts, demand, peak, may_create=may_create)]


def test_a_good_directory_is_accepted() -> None:
    assert judge(GOOD, replace(GOOD, node="knl0002")) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "ext4"}, ["found type ext4", "accepted: type lustre"]),
        ({"on_root": True}, ["the device of /"]),
        ({"available": GIB}, ["found 1.0 GiB available", "accepted: 1.1 GiB", "1.0 GiB that"]),
        ({"written": "dd: Permission denied"}, ["not writable by bench: dd: Permission denied"]),
        ({"nearest": "/scratch"}, ["no such directory, the nearest is /scratch"]),
        ({"path": "/tmp", "nearest": "/tmp"}, ["a probe of /tmp"]),
    ],
)
def test_each_problem_names_path_node_and_value(
    changes: dict[str, object], words: list[str]
) -> None:
    problem = judge(replace(GOOD, **changes))[0]  # type: ignore[arg-type]
    assert problem.startswith("/scratch/runs: on knl0001: found")
    assert all(word in problem for word in words)


def test_type_and_device_are_checked_only_if_the_site_declares_them() -> None:
    anything = Scratch(path="/scratch/runs")
    assert judge(replace(GOOD, kind="ext4", on_root=True), demand=anything) == []


def test_many_nodes_with_one_problem_are_one_line() -> None:
    nodes = [replace(GOOD, node=f"knl{number:04d}", kind="nfs4") for number in range(1, 1001)]
    (line,) = judge(*nodes)
    assert "on knl[0001-1000]" in line


def test_the_names_of_test_files_do_not_split_a_line() -> None:
    why = "dd: failed to open '/scratch/runs/.proofmark-{0}-1': Permission denied"
    nodes = [replace(GOOD, node=name, written=why.format(name)) for name in ("knl0001", "knl0002")]
    (line,) = judge(*nodes)
    assert "on knl[0001-0002]: found not writable by bench" in line


def test_nodes_with_different_file_systems_are_refused() -> None:
    (line,) = judge(GOOD, replace(GOOD, node="knl0002", source="mgs@o2ib:/other"))
    assert "lustre (mgs@o2ib:/fs) on knl0001, lustre (mgs@o2ib:/other) on knl0002" in line


def test_a_directory_may_be_missing_before_it_is_made_but_not_its_parent() -> None:
    untried = replace(GOOD, nearest="/scratch", written=None)
    assert judge(untried, may_create=True) == []
    (line,) = judge(replace(untried, nearest="/"), may_create=True)
    assert "is its file system mounted?" in line


def test_a_trailing_slash_changes_nothing() -> None:
    assert judge(GOOD, demand=Scratch(path="/scratch/runs/")) == []


@given(st.integers(0, 2**50), st.integers(0, 2**50))
def test_the_free_space_must_be_five_percent_more_than_the_peak(peak: int, available: int) -> None:
    refused = judge(replace(GOOD, available=available), peak=peak)
    assert bool(refused) == (available * 100 < peak * 105)


def test_a_report_is_read() -> None:
    (facts,) = read_scratch(TEXT, "x")
    assert facts == replace(
        GOOD, path="/scratch/my runs", nearest="/scratch/my runs", available=4096000
    )


def test_a_hard_quota_on_the_same_file_system_limits_the_free_space() -> None:
    (facts,) = read_scratch(TEXT.replace("! quota: no such tool: quota\n", QUOTA), "x")
    assert facts.available == 100 * 1024
    unlimited = QUOTA.replace("1000 ", "0 ")
    (facts,) = read_scratch(TEXT.replace("! quota: no such tool: quota\n", unlimited), "x")
    assert facts.available == 4096000


def test_reports_of_several_nodes_are_read() -> None:
    assert len(read_scratch(TEXT + TEXT.replace("knl0001", "knl0002"), "x")) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("=== end\n", ""),
        ("available: 1000 4096", "available: many"),
        ("| user: bench\n", ""),
        (" scratch\n", " facts\n"),
        ("| mgs@o2ib:/fs /scratch/my\\040runs lustre rw,flock 0 0\n", ""),
        (" lustre rw,flock 0 0\n", "\n"),
    ],
)
def test_damaged_text_is_refused(old: str, new: str) -> None:
    assert old in TEXT
    with pytest.raises(BadInput):
        read_scratch(TEXT.replace(old, new, 1), "x")


@pytest.mark.parametrize("shell", [["dash"], ["bash", "--posix"], ["busybox", "sh"]])
def test_the_probe_reports_makes_and_writes(tmp_path: Path, shell: list[str]) -> None:
    folder = tmp_path / "a folder"

    def probe(*arguments: str) -> ScratchFacts:
        command = [*shell, str(PROBE), *arguments, f"{folder}/"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        (facts,) = read_scratch(done.stdout, "probe")
        return facts

    looked = probe()
    assert (looked.nearest, looked.written, folder.exists()) == (str(tmp_path), None, False)
    assert probe("-w").written == "no such directory"
    assert not folder.exists()
    wrote = probe("-c", "-w")
    assert (wrote.nearest, wrote.written, list(folder.iterdir())) == (str(folder), "ok", [])
    free = os.statvfs(folder)
    assert wrote.available == pytest.approx(free.f_bavail * free.f_frsize, rel=0.2)


@pytest.mark.parametrize("there", [True, False])
def test_the_probe_writes_only_where_the_file_of_the_first_node_is(
    tmp_path: Path, there: bool
) -> None:
    if there:
        (tmp_path / ".proofmark-token").write_text("token\n")
    os.utime(tmp_path, (0, 0))
    words = ["sh", f"{PROBE}", "-w", "-r", "token", f"{tmp_path}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    (facts,) = read_scratch(done.stdout, "scratch-probe.sh")
    assert (facts.written, facts.shared == "token") == (("ok", True) if there else (None, False))
    assert (tmp_path.stat().st_mtime > 0) is there, "nothing was written"


def test_the_probe_reports_an_unknown_user_and_makes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    command = ["sh", str(PROBE), "-c", "-w", "-u", "no-such-user", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (facts,) = read_scratch(done.stdout, "probe")
    assert (facts.written, folder.exists()) == ("no such user: no-such-user", False)


@pytest.mark.root
@pytest.mark.fault("scratch-without-mount-point")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
def test_a_chroot_whose_root_is_no_mount_point(tmp_path: Path, injected: bool) -> None:
    how = "bare" if injected else "mounted"
    place, probe = tmp_path / "place", tmp_path / "probe.sh"
    place.mkdir()
    probe.write_text(script_text(PROBE.name), encoding="utf-8")
    command = ["unshare", "--mount", "sh", "-c", CHROOT, "sh", f"{place}", f"{probe}", how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (facts,) = read_scratch(done.stdout, "probe")
    assert (facts.kind, facts.written) == ("" if injected else "tmpfs", "ok")
    assert judge(facts, demand=Scratch(path="/scratch")) == []
    refused = judge(facts, demand=Scratch(path="/scratch", type="lustre"))
    found = "no mount point of the node (a chroot?)" if injected else "type tmpfs (none)"
    assert [found in line for line in refused] == [True]


def test_a_node_without_a_mount_is_not_like_the_others() -> None:
    bare = replace(GOOD, node="knl0002", kind="", source="")
    lines = judge(GOOD, bare, demand=Scratch(path="/scratch/runs", source="mgs@o2ib:/fs"))
    assert len(lines) == 2
    assert all("no mount point of the node" in line for line in lines)


@pytest.mark.parametrize("arguments", [[], ["relative"], ["-x", "/tmp"], ["/a", "/b"]])
def test_the_probe_refuses_wrong_arguments(arguments: list[str]) -> None:
    done = subprocess.run(["sh", str(PROBE), *arguments], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (3, b"")
