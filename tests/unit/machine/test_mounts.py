"""The commands that mount a scratch file system and set its layout; the script that runs them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.folders import PACKAGE
from tests.processes import namespace

from proofmark.common.errors import BadInput
from proofmark.machine.scratch_checks import ScratchFacts, judge_scratch, read_scratch
from proofmark.machine.scratch_stage import mount_commands
from proofmark.site.file_systems import Scratch, kinds

FILES = PACKAGE / "machine/shell"
LUSTRE = {
    "path": "/PFS/acceptance",
    "type": "lustre",
    "source": "mgs@o2ib:/fs",
    "mount": {"point": "/PFS", "options": ["flock", "noatime"]},
    "layout": {"stripe_count": 8, "stripe_size": "1M"},
}


def commands(**changes: Any) -> dict[str, str]:
    kept = {key: value for key, value in {**LUSTRE, **changes}.items() if value is not None}
    return mount_commands(Scratch.model_validate(kept))


def test_the_commands_of_lustre() -> None:
    assert commands() == {
        "mount": "mount -t lustre -o flock,noatime mgs@o2ib:/fs /PFS",
        "unmount": "umount /PFS",
        "set": "lfs setstripe -c 8 -S 1M /PFS/acceptance",
        "get": "lfs getstripe -d /PFS/acceptance",
    }


def test_a_file_system_that_the_site_mounts_has_only_the_command_that_prints_its_layout() -> None:
    assert commands(mount=None, layout=None) == {
        "mount": "",
        "unmount": "",
        "set": "",
        "get": "lfs getstripe -d /PFS/acceptance",
    }


def test_a_name_with_a_blank_stays_one_word() -> None:
    made = commands(source="mgs:/my fs", path="/PFS/a b")
    assert "'mgs:/my fs' /PFS" in made["mount"]
    assert made["set"].endswith("'/PFS/a b'")


@pytest.mark.parametrize("kind", kinds())
def test_every_type_can_be_mounted_without_a_layout(kind: str) -> None:
    made = commands(type=kind, layout=None)
    assert "/PFS" in made["mount"]
    assert made["unmount"]
    assert "{" not in "".join(made.values())


def test_the_block_size_of_gpfs_is_fixed() -> None:
    with pytest.raises(BadInput, match="accepted: no layout: it is fixed"):
        commands(type="gpfs", layout={"block_size": "1M"})


def test_an_incomplete_layout_is_refused() -> None:
    with pytest.raises(BadInput, match="accepted: stripe_count, stripe_size"):
        commands(layout={"stripe_count": 8})


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValidationError, match="did you mean 'lustre'"):
        commands(type="lustr", layout=None)
    with pytest.raises(BadInput, match="found 'afs'"):
        commands(type="afs", layout=None)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"type": None}, "mount: type and source beside it"),
        ({"source": None}, "mount: type and source beside it"),
        ({"path": "/PFSX/acceptance"}, "path: a path below the mount point"),
    ],
)
def test_a_mount_that_is_not_unique_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        commands(**changes)


def test_another_source_is_refused() -> None:
    facts = ScratchFacts(
        "n1", "/PFS/x", "/PFS/x", "lustre", "mgs@o2ib:/old", 1 << 40, False, "u", "ok"
    )
    demand = Scratch(path="/PFS/x", type="lustre", source="mgs@o2ib:/fs")
    (mistake,) = judge_scratch([facts], demand, 0, may_create=False)
    assert (mistake.found, mistake.accepted) == (
        "source mgs@o2ib:/old (lustre)",
        "source mgs@o2ib:/fs",
    )


class Node:
    """A mount namespace with a host name, in which scripts run."""

    def __init__(self, name: str, folder: Path, holder: int) -> None:
        self.name, self.folder, self._holder = name, folder, holder

    def run(self, *command: str | Path, wait_s: int = 30) -> subprocess.CompletedProcess[str]:
        enter = ["nsenter", "--mount", "--uts", "-t", str(self._holder)]
        notes = {
            "PROOFMARK_NOTES": f"{self.folder}/notes-{self.name}",
            "PROOFMARK_WAIT_S": f"{wait_s}",
            "PATH": "/usr/sbin:/usr/bin",
        }
        return subprocess.run([*enter, *command], capture_output=True, text=True, env=notes)

    def mount(
        self,
        verb: str,
        point: Path,
        command: str = "",
        kind: str = "tmpfs",
        wait_s: int = 30,
    ) -> tuple[int, str]:
        source = "none"
        script = ["sh", f"{FILES}/scratch-mount.sh", verb, f"{point}", kind, source, command]
        done = self.run(*script, wait_s=wait_s)
        return done.returncode, done.stdout + done.stderr

    def probe(self, *options: str) -> ScratchFacts:
        done = self.run("sh", FILES / "scratch-probe.sh", *options)
        assert done.returncode == 0, done.stderr
        (facts,) = read_scratch(done.stdout, "probe")
        return facts


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with namespace("n1") as one, namespace("n2") as other:
        yield [Node("n1", tmp_path, one.pid), Node("n2", tmp_path, other.pid)]


@pytest.mark.root
class TestScript:
    def test_it_mounts_once_and_unmounts(self, nodes: list[Node], tmp_path: Path) -> None:
        node, point = nodes[0], tmp_path / "pfs"
        command = f"mount -t tmpfs none {point}"
        assert node.mount("look", point) == (0, f"| would mount: tmpfs (none) on {point}\n")
        assert not point.exists()
        assert node.mount("mount", point, command) == (0, f"| mounted: tmpfs (none) on {point}\n")
        assert node.mount("mount", point, command) == (0, f"| there: tmpfs (none) on {point}\n")
        assert node.mount("unmount", point, f"umount {point}")[1].startswith("| unmounted")
        assert not point.exists()
        assert node.mount("unmount", point, "false")[0] == 0

    def test_a_mount_of_another_user_stays(self, nodes: list[Node], tmp_path: Path) -> None:
        node, point = nodes[0], tmp_path / "pfs"
        point.mkdir()
        node.run("mount", "-t", "tmpfs", "none", point)
        assert node.mount("mount", point, "false")[1].startswith("| there")
        assert "left: not mounted by this kit" in node.mount("unmount", point, "umount -l /")[1]
        assert node.probe(f"{point}").kind == "tmpfs"

    def test_another_file_system_at_the_mount_point_is_refused(
        self, nodes: list[Node], tmp_path: Path
    ) -> None:
        node, point = nodes[0], tmp_path / "pfs"
        point.mkdir()
        node.run("mount", "-t", "tmpfs", "other", point)
        code, output = node.mount("mount", point, f"mount -t tmpfs none {point}")
        assert code == 1
        assert (
            output == f"n1: {point}: found tmpfs other; accepted: tmpfs none, or nothing mounted\n"
        )

    @pytest.mark.fault("mount-fails")
    @pytest.mark.parametrize("command", ["echo no such target >&2; exit 5", "true"])
    def test_a_failed_mount_leaves_no_directory(
        self, nodes: list[Node], tmp_path: Path, command: str
    ) -> None:
        """The control is `test_it_mounts_once_and_unmounts`."""
        node, point = nodes[0], tmp_path / "pfs"
        code, output = node.mount("mount", point, command, wait_s=1)
        assert code == 1
        assert ("no such target" in output) == ("echo" in command)
        assert ("nothing is mounted after 1 s" in output) == (command == "true")
        assert not point.exists()

    @pytest.mark.fault("another-file-system")
    @pytest.mark.parametrize("same", [True, False])
    def test_one_file_system_on_all_nodes(
        self, nodes: list[Node], tmp_path: Path, same: bool
    ) -> None:
        """Type, source and size of two tmpfs are equal; only the file differs."""
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        if not same:
            for node in nodes:
                node.run("mount", "-t", "tmpfs", "none", scratch)
        assert nodes[0].probe("-k", "mark", f"{scratch}").shared == "mark"
        seen = nodes[1].probe("-w", "-r", "mark", f"{scratch}")
        # A node that does not see the file of the first one writes nothing.
        assert (seen.node, seen.written) == ("n2", "ok" if same else None)
        assert (seen.shared == "mark") == same
        nodes[0].probe("-d", "mark", f"{scratch}")
        assert list(scratch.iterdir()) == []

    def test_the_layout_is_set_once_and_printed(self, nodes: list[Node], tmp_path: Path) -> None:
        file = tmp_path / "layout"
        file.write_text("stripe_count: 1\n")
        options = ["-g", f"cat {file}", "-s", f"echo stripe_count: 8 >{file}", f"{tmp_path}"]
        first = nodes[0].run("sh", FILES / "scratch-probe.sh", *options).stdout
        again = nodes[0].run("sh", FILES / "scratch-probe.sh", *options).stdout
        assert ("| set: " in first, "| set: " in again) == (True, False)
        (facts,) = read_scratch(again, "probe")
        assert facts.layout == ("stripe_count: 8",)

    def test_the_reason_is_printed_if_a_layout_cannot_be_read(
        self, nodes: list[Node], tmp_path: Path
    ) -> None:
        done = nodes[0].run("sh", FILES / "scratch-probe.sh", "-g", "no-such-lfs", f"{tmp_path}")
        assert "! layout: sh: 1: no-such-lfs: not found" in done.stdout
