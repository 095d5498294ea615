"""Tests the checks of the files of a step with boundary values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.records.test_scratch_files import a_step, partition_with

from proofmark.records.scratch_files import (
    mount_of,
    read_scratch_files,
    scratch_error,
)
from proofmark.site.node.parts import Mount
from proofmark.site.partition import Partition
from proofmark.site.storage import FileSystem, Scratch


def mount(target: str = "/one", source: str = "gpfs1", kind: str = "gpfs") -> Mount:
    return Mount(source=source, target=target, kind=kind, options="rw")


def content(**changes: Any) -> bytes:
    """Return ``scratch.json`` of 1,000 bytes in two files below ``/one``."""
    fields: dict[str, Any] = {
        "scratch": "/one/run/step",
        "real": "/one/run/step",
        "kind": "gpfs",
        "source": "gpfs1",
        "target": "/one",
        "bytes": 1000,
        "files": 2,
        "most": 10000,
    }
    return json.dumps({**fields, **changes}).encode()


def partition(*systems: FileSystem, **scratch: Any) -> Partition:
    """Return a partition with the scratch ``/one``."""
    update = {"scratch": Scratch(**{"path": "/one", **scratch})}
    return partition_with(*systems).model_copy(update=update)


def error(
    changes: dict[str, Any] | None = None,
    at: Partition | None = None,
    recorded: tuple[Mount, ...] = (),
    file_system: str = "",
) -> str:
    """Return the error of a step that must write 1,000 bytes in two files."""
    return scratch_error(
        a_step(file_system), content(**(changes or {})), at or partition(), recorded
    )


class TestContent:
    def test_the_texts_and_numbers(self) -> None:
        seen = read_scratch_files(content(real="/one/run", bytes="7", options="x"))
        assert (seen.folder, seen.real) == ("/one/run/step", "/one/run")
        assert seen.mount == Mount(source="gpfs1", target="/one", kind="gpfs", options="")
        assert (seen.bytes, seen.files, seen.most) == (7, 2, 10000)

    def test_an_unusual_text_has_one_character_for_each_byte(self) -> None:
        text = "/one/Müll"
        seen = read_scratch_files(content(scratch=text.encode().decode("latin-1")))
        assert seen.folder == text
        assert read_scratch_files(content(scratch="/one/\xff")).folder == "/one/\ufffd"

    @pytest.mark.parametrize("key", ["scratch", "real", "kind", "source", "target", "bytes"])
    def test_a_missing_key_is_damage(self, key: str) -> None:
        given = json.loads(content())
        del given[key]
        damaged = scratch_error(a_step(""), json.dumps(given).encode(), partition(), ())
        assert damaged.startswith("scratch.json is damaged: ")


class TestReport:
    def test_the_files_of_the_step(self) -> None:
        """Control: every condition holds."""
        assert error() == ""

    def test_a_missing_report(self) -> None:
        expected = "scratch.json is missing: it is not known where the program wrote"
        assert scratch_error(a_step(""), b"", partition(), ()) == expected

    def test_a_step_that_states_no_files_needs_no_report(self) -> None:
        step = a_step("").model_copy(update={"writes": None})
        assert scratch_error(step, b"", partition(), ()) == ""
        assert scratch_error(step, content(files=0), partition(), ()) == ""

    @pytest.mark.parametrize("folder", ["/one", "/one/a/b"])
    def test_a_folder_at_or_below_the_planned_path(self, folder: str) -> None:
        assert error({"scratch": folder}) == ""

    @pytest.mark.parametrize("folder", ["/onetwo", "/", "one/run"])
    def test_a_folder_elsewhere(self, folder: str) -> None:
        assert error({"scratch": folder}) == f"the scratch folder was {folder}, planned in /one"

    def test_no_file_appeared(self) -> None:
        assert error({"files": 0}) == (
            "no file appeared in the scratch folder /one/run/step: the program wrote elsewhere"
        )


class TestPlanned:
    TWO = FileSystem(name="two", path="/two", type="lustre", source="mds")

    def test_the_file_system_of_the_step_counts(self) -> None:
        there = {"scratch": "/two/run", "kind": "lustre", "source": "mds", "target": "/two"}
        at = partition(self.TWO, type="gpfs", source="gpfs1")
        assert error(there, at, file_system="two") == ""
        assert error({}, at, file_system="two").endswith("planned in /two")
        assert error({}, at) == ""

    @pytest.mark.parametrize(
        ("stated", "planned"),
        [
            ({"type": "lustre"}, "lustre"),
            ({"source": "other"}, "other"),
            ({"type": "lustre", "source": "gpfs1"}, "lustre gpfs1"),
            ({"type": "gpfs", "source": "other"}, "gpfs other"),
        ],
    )
    def test_another_type_or_source_than_stated(self, stated: dict[str, str], planned: str) -> None:
        reason = f"the files of /one were on gpfs (gpfs1), planned on {planned}"
        assert error({}, partition(**stated)) == reason

    @pytest.mark.parametrize(
        "stated", [{"type": "gpfs"}, {"source": "gpfs1"}, {"type": "gpfs", "source": "gpfs1"}]
    )
    def test_the_stated_type_and_source(self, stated: dict[str, str]) -> None:
        assert error({}, partition(**stated)) == ""

    def test_only_the_scratch_of_the_partition_is_kept_off_the_root(self) -> None:
        root = {"target": "/"}
        assert error(root, partition(off_root=True)).endswith("planned on another than /")
        assert error(root, partition(off_root=False)) == ""
        assert error({}, partition(off_root=True)) == ""
        further = partition(FileSystem(name="two", path="/one"), off_root=True)
        assert error(root, further, file_system="two") == ""


class TestReported:
    """Comparisons with the mounts that the node reported before the job."""

    OTHER = mount(source="gpfs2")

    def test_the_same_mount(self) -> None:
        assert error({}, recorded=(mount(),)) == ""

    @pytest.mark.parametrize(
        ("before", "named"),
        [(mount(source="gpfs2"), "gpfs (gpfs2)"), (mount(kind="nfs"), "nfs (gpfs1)")],
    )
    def test_another_mount(self, before: Mount, named: str) -> None:
        assert error({}, recorded=(before,)) == (
            f"the files of /one were on gpfs (gpfs1), but the node reported {named} there before "
            "the job; type and source of the file system in the inventory state the intended one"
        )

    @pytest.mark.parametrize(
        ("real", "link"),
        [("/one/run", ""), ("/one", ", below /one"), ("/onetwo", ", below /onetwo")],
    )
    def test_files_behind_a_link_are_named(self, real: str, link: str) -> None:
        reason = error({"real": real}, recorded=(self.OTHER,))
        assert reason.startswith(f"the files of /one were on gpfs (gpfs1){link}, but the node")

    def test_a_stated_source_is_not_compared_with_the_report(self) -> None:
        assert error({}, partition(source="gpfs1"), (self.OTHER,)) == ""
        assert error({}, partition(type="gpfs"), (self.OTHER,)) != ""

    def test_an_emulated_node_is_not_compared(self) -> None:
        emulated = partition().model_copy(update={"origin": "emulated"})
        assert error({}, emulated, (self.OTHER,)) == ""

    def test_a_node_without_the_mount_is_not_compared(self) -> None:
        assert error({}, recorded=(mount("/two", "gpfs2"),)) == ""


class TestSame:
    """Two file systems of the inventory that are one mount."""

    A, B = FileSystem(name="a", path="/one/a"), FileSystem(name="b", path="/one/b")
    SEEN = {"scratch": "/one/a/run", "real": "/one/a/run"}

    def test_one_mount(self) -> None:
        assert error(self.SEEN, partition(self.A, self.B), (mount(),), "a") == (
            "the file systems a and b are the same gpfs (gpfs1); source in the inventory allows "
            "this"
        )

    def test_the_scratch_of_the_partition_and_another(self) -> None:
        reason = error({}, partition(self.B), (mount(),))
        assert reason.startswith("the file systems scratch and b are the same gpfs (gpfs1)")

    def test_a_file_system_is_not_compared_with_itself(self) -> None:
        assert error(self.SEEN, partition(self.A), (mount(),), "a") == ""

    def test_different_mounts_of_one_source(self) -> None:
        at = partition(self.A, self.B)
        assert error(self.SEEN, at, (mount("/one/a"), mount("/one/b")), "a") == ""

    def test_unknown_mounts_are_not_the_same(self) -> None:
        assert error(self.SEEN, partition(self.A, self.B), (), "a") == ""

    def test_a_stated_source_allows_it(self) -> None:
        stated = self.A.model_copy(update={"source": "gpfs1"})
        assert error(self.SEEN, partition(stated, self.B), (mount(),), "a") == ""


class TestSize:
    def test_the_least_number_of_files(self) -> None:
        assert error({"files": 1}) == "1 of at least 2 files appeared in /one/run/step"
        assert error({"files": 3}) == ""

    def test_the_least_number_of_bytes(self) -> None:
        assert error({"bytes": 999}) == (
            "the files in /one/run/step reached 999 B (999 bytes) of at least 1000 bytes"
        )

    @pytest.mark.parametrize(("most", "counted"), [(2, False), (1, False), (3, True)])
    def test_what_was_not_counted_is_not_judged(self, most: int, counted: bool) -> None:
        assert (error({"bytes": 0, "most": most}) != "") is counted

    def test_the_mount_is_judged_before_the_size(self) -> None:
        assert "planned on lustre" in error({"bytes": 0}, partition(type="lustre"))


class TestMountOf:
    def test_the_deepest_mount_of_a_path(self) -> None:
        root, one, deep = mount("/"), mount("/one"), mount("/one/deep/")
        for order in ([root, one, deep], [deep, one, root]):
            assert mount_of("/one/deep", order) == deep
            assert mount_of("/one/deeper", order) == one
            assert mount_of("/one", order) == one
            assert mount_of("/onetwo", order) == root
        assert mount_of("/one", [deep]) is None
        assert mount_of("/one", []) is None

    def test_the_last_of_two_mounts_at_one_place(self) -> None:
        assert mount_of("/one/a", [mount(source="below"), mount(source="above")]) == mount(
            source="above"
        )

    def test_a_slash_at_the_end_does_not_make_a_mount_deeper(self) -> None:
        assert mount_of("/one", [mount("/one/"), mount("/one", "above")]) == mount("/one", "above")
