"""A step that writes files: where they were, on which file system, and how large they became."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.fixtures.finished import judged, seal
from tests.fixtures.kit import FAKE, OUTPUT, Kit, execution, make_kit, steps_of
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import ROOT

from proofmark.cases.case import Case
from proofmark.jobs.launcher import LAUNCHERS, Launch
from proofmark.plan.rank_cpus import RankCpus
from proofmark.plan.step import Step, WrittenFiles
from proofmark.records.columns import Record
from proofmark.records.run_facts import (
    read_scratch_files,
    scratch_error,
)
from proofmark.runs.run import Run
from proofmark.runs.run_files import write_scripts_of
from proofmark.site.file_systems import FileSystem, Scratch
from proofmark.site.node.parts import MountedFileSystem, mount_of, read_mounts
from proofmark.site.partition import Partition

SHELLS = {"dash": ["/usr/bin/dash"], "busybox": ["/usr/bin/busybox", "sh"]}

BTIO = f"head -c 100000 /dev/zero >btio.full.out; {OUTPUT}"
"""A program that writes a relative file name, as BT-IO does."""

OTHER = "other-disk"
"""The source of a file system that is not the intended one."""

CHANGES = {
    "control": "",
    "mounted": f"mount -t tmpfs {OTHER} scratch",
    "link": f"mkdir other && mount -t tmpfs {OTHER} other && rmdir scratch && ln -s other scratch",
}
"""Commands that give the scratch another file system."""


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    made = make_kit(tmp_path)
    (tmp_path / "scratch").mkdir()
    made.program(BTIO)
    return made


def case(kit: Kit, *, relative: bool = True, **writes: Any) -> None:
    """Write a case whose program must write 100,000 bytes, in its scratch if `relative`."""
    told: dict[str, Any] = {} if relative else {"arguments": ["{size}", "{scratch}"]}
    cost = {"seconds": 1, "bytes": 100000}
    kit.case(sweep={"size": 1}, cost=cost, writes={"bytes": 100000, **writes}, **told)


def record(
    kit: Kit, before: str = "", shell: Sequence[str] = ("dash",), run: Run | None = None
) -> Record:
    """Run the only step by `shell` after the commands `before`, and return its record.

    The commands run in the folder of the kit, in a mount namespace of their own if there are any.
    """
    run = run or kit.run()
    (step,) = steps_of(run)
    command = [*shell, str(step / "run.sh")]
    if before:
        inside = f'{before} && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", inside, "sh", *command]
    subprocess.run(command, check=False, cwd=kit.folder, stdin=subprocess.DEVNULL, timeout=300)
    (found,) = kit.records(run)
    return found


class TestWorkingDirectory:
    @pytest.mark.fault("relative-file-name-outside-scratch")
    @pytest.mark.parametrize("name", sorted(SHELLS))
    @pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
    def test_a_relative_file_name_is_in_scratch(self, kit: Kit, name: str, injected: bool) -> None:
        """Without the key `directory` the program writes into the folder of the step."""
        case(kit, relative=not injected)
        run = kit.run()
        found = record(kit, shell=SHELLS[name], run=run)
        (step,) = steps_of(run)
        assert (execution(step) / "btio.full.out").exists() is injected
        assert found.valid is not injected
        expected = "no file appeared in the scratch folder "
        assert (found.reason or "").startswith(expected if injected else "")
        assert not list((kit.folder / "scratch").iterdir())

    def test_inputs_and_outputs_are_found(self, kit: Kit) -> None:
        """The program reads its input and writes its output file in its working directory."""
        kit.program(f"read -r line <given; head -c 9 /dev/zero >data; ({OUTPUT}; echo $line) >made")
        kit.case(
            sweep={"size": 1},
            inputs={"given": "the input\n"},
            output="made",
            writes={"bytes": 9},
        )
        run = kit.run()
        assert record(kit, run=run).valid
        (step,) = steps_of(run)
        assert (execution(step) / "made").read_text().endswith("the input\n")
        seen = read_scratch_files((execution(step) / "scratch.json").read_bytes())
        assert (seen.bytes, seen.files) == (9, 1)  # neither the input nor the output counts

    @pytest.mark.parametrize("name", sorted({*LAUNCHERS.names()} - {"twin"}))
    def test_every_launcher_starts_ranks_in_the_wrapper(self, name: str) -> None:
        """The wrapper changes into the directory, also where a daemon starts the rank.

        The ranks of a twin are threads of the simulator, and write no files.
        """
        cpus = [RankCpus(0, (0,)), RankCpus(1, (0,))]
        launch = Launch("/bin/x", [], {}, ["n1", "n2"], cpus, "/opt/mpi")
        last = LAUNCHERS.get(name)().lines(launch)[-1]
        assert last.startswith("exec ")
        assert 'sh "$HERE/run.sh" --' in last

    def test_copies_would_overwrite_each_other(self) -> None:
        writing = {**FAKE, "writes": {"bytes": 1}}
        Case.model_validate(writing)
        with pytest.raises(ValidationError, match="copies: 1 if no text names"):
            Case.model_validate({**writing, "copies": 2})

    def test_btio_runs_in_scratch(self) -> None:
        cases = shipped_benchmarks().cases
        assert cases["npb-btio"].directory == "{scratch}"
        writing = {name for name, each in cases.items() if each.cost.bytes}
        assert writing == {name for name, each in cases.items() if each.writes}
        assert writing == {"fio-cache", "ior", "ior-easy", "ior-hard", "mdtest", "npb-btio"}


class TestIntendedFileSystem:
    @pytest.mark.fault("program-writes-elsewhere")
    @pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
    def test_a_program_that_writes_elsewhere(self, kit: Kit, injected: bool) -> None:
        elsewhere = f"head -c 100000 /dev/zero >{kit.folder}/elsewhere; {OUTPUT}"
        kit.program(elsewhere if injected else BTIO)
        case(kit)
        found = record(kit)
        assert found.valid is not injected
        assert not injected or (found.reason or "").endswith(": the program wrote elsewhere")

    @pytest.mark.root
    @pytest.mark.fault("scratch-on-another-file-system")
    @pytest.mark.parametrize("how", CHANGES)
    def test_the_inventory_names_type_and_source(self, kit: Kit, how: str) -> None:
        """Another file system is mounted on scratch, or scratch is a link to another one."""
        case(kit)
        here = mount_of(str(kit.folder), read_mounts(Path("/proc/mounts").read_text().splitlines()))
        assert here is not None
        run = kit.run()
        record(kit, CHANGES[how], run=run)
        (step,), (folder,) = run.plan.steps(), steps_of(run)
        content = (execution(folder) / "scratch.json").read_bytes()
        path = str(kit.folder / "scratch")
        for scratch in ({"type": here.kind, "source": here.source}, {"source": here.source}):
            partition = kit.site().partition.model_copy(
                update={"scratch": Scratch(path=path, **scratch)}
            )
            expected = " ".join(scratch.values())
            assert scratch_error(step, content, partition, ()) == (
                ""
                if how == "control"
                else f"the files of {path} were on tmpfs ({OTHER}), planned on {expected}"
            )

    @pytest.mark.root
    @pytest.mark.fault("scratch-differs-from-recorded-mount")
    @pytest.mark.parametrize("how", CHANGES)
    def test_the_probe_before_the_job_names_the_mount(self, kit: Kit, how: str) -> None:
        """The inventory names no type; the node has another file system there than before."""
        case(kit)
        run = kit.run()
        probe = (ROOT / "analysis/proofmark/site/node/probe.sh").read_text(encoding="utf-8")
        write_scripts_of(run.folder, {"probe.sh": probe})
        (job,) = (run.folder / "workdir/jobs").glob("*-*")
        # The probe has run when the step starts; the step changes the file system.
        (step,) = steps_of(run)
        inner = (step / "run.sh").read_text(encoding="utf-8")
        (step / "run.sh").write_text(
            f'[ "$1" != --job ] || (cd {kit.folder} && {CHANGES[how] or ":"}) || exit 90\n{inner}'
        )
        command = ["unshare", "--mount", "dash", f"{job}/job.sh"]
        environment = {**os.environ, "PROBE_SKIP_S": "1"}
        subprocess.run(command, check=True, timeout=300, env=environment, stdin=subprocess.DEVNULL)
        (result,) = judged(run).results
        assert result.verdict == ("UNJUDGED" if how == "control" else "INVALID")
        if how == "control":
            return
        assert f"were on tmpfs ({OTHER})" in result.reason
        assert (", below " in result.reason) is (how == "link")
        assert "but the node reported" in result.reason

    @pytest.mark.fault("two-file-systems-are-one")
    @pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
    def test_two_file_systems_on_one_disk(self, injected: bool) -> None:
        disk = MountedFileSystem(source="/dev/sda1", target="/", kind="xfs", options="rw")
        one = MountedFileSystem(source="gpfs1", target="/one", kind="gpfs", options="rw")
        two = MountedFileSystem(source="gpfs2", target="/two", kind="gpfs", options="rw")
        mounts = [disk] if injected else [disk, one, two]
        partition = partition_with(
            FileSystem(name="a", path="/one"), FileSystem(name="b", path="/two")
        )
        at = disk if injected else one
        reason = scratch_error(a_step("a"), seen("/one/run/step", at), partition, mounts)
        assert reason == (
            "the file systems a and b are the same xfs (/dev/sda1); source in the inventory allows "
            "this"
            if injected
            else ""
        )
        stated = FileSystem(name="a", path="/one", source="/dev/sda1")
        partition = partition_with(stated, FileSystem(name="b", path="/two"))
        assert scratch_error(a_step("a"), seen("/one/x", disk), partition, [disk]) == ""

    @pytest.mark.parametrize(
        ("declared", "shown", "right"),
        [
            ("lustre mgs1@o2ib:mgs2@o2ib:/fs", "lustre 10.1.1.1@o2ib:10.1.1.2@o2ib:/fs", True),
            ("lustre mgs1:/fs", "lustre 10.1.1.1@tcp:/fs", True),
            ("nfs nas:/x/", "nfs4 10.1.1.1:/x", True),
            ("nfs [fd00::1]:/x", "nfs nas:/x", True),
            ("lustre mgs1@o2ib:/fs", "lustre 10.1.1.1@o2ib:/home", False),
            ("lustre mgs1@o2ib:/fs", "lustre 10.1.1.1@tcp:/fs", False),
            ("lustre 10.1.1.2@o2ib:/fs", "lustre 10.1.1.1@o2ib:/fs", False),
            ("lustre mgs1@o2ib:/fs", "lustre 10.1.1.1@o2ib:10.1.1.2@o2ib:/fs", False),
            ("lustre mgs1@o2ib:/fs", "ext4 /dev/sda1", False),
            ("nfs4 nas:/x", "nfs nas:/x", False),
        ],
    )
    def test_a_host_name_can_be_an_address(self, declared: str, shown: str, right: bool) -> None:
        """Nothing resolves names here: it must be the mount that the node reported before."""
        (kind, source), (seen_kind, seen_source) = declared.split(), shown.split()
        mount = MountedFileSystem(source=seen_source, target="/one", kind=seen_kind, options="rw")
        scratch = Scratch(path="/one", type=kind, source=source)
        partition = partition_with().model_copy(update={"scratch": scratch})
        files = seen("/one/run/step", mount)
        assert (scratch_error(a_step(""), files, partition, [mount]) == "") is right
        if right:
            before = mount.model_copy(update={"source": "10.9.9.9:/fs"})
            assert "the node reported" in str(scratch_error(a_step(""), files, partition, [before]))

    def test_the_root_file_system_is_refused_where_the_inventory_refuses_it(self) -> None:
        root = MountedFileSystem(source="/dev/sda1", target="/", kind="xfs", options="rw")
        scratch = Scratch(path="/one", off_root=True)
        partition = partition_with().model_copy(update={"scratch": scratch})
        reason = scratch_error(a_step(""), seen("/one/run/step", root), partition, ())
        assert reason == "the files of /one were on xfs (/dev/sda1), planned on another than /"

    @pytest.mark.parametrize(("off_root", "refused"), [(False, False), (True, True)])
    def test_a_chroot_whose_root_is_no_mount_point(self, off_root: bool, refused: bool) -> None:
        nothing = MountedFileSystem(source="", target="", kind="", options="")
        scratch = Scratch(path="/one", off_root=off_root)
        partition = partition_with().model_copy(update={"scratch": scratch})
        reason = scratch_error(a_step(""), seen("/one/run/step", nothing), partition, ())
        assert bool(reason) is refused
        assert "()" not in reason

    def test_another_path_than_planned(self) -> None:
        mount = MountedFileSystem(source="s", target="/", kind="xfs", options="rw")
        reason = scratch_error(a_step(""), seen("/two/run", mount), partition_with(), ())
        assert reason == "the scratch folder was /two/run, planned in /one"

    def test_an_emulated_node_reports_other_mounts(self) -> None:
        real = MountedFileSystem(source="s", target="/", kind="xfs", options="rw")
        reported = MountedFileSystem(source="t", target="/", kind="ext4", options="rw")
        for origin, valid in (("measured", False), ("emulated", True)):
            partition = partition_with().model_copy(update={"origin": origin})
            reason = scratch_error(a_step(""), seen("/one/run", real), partition, [reported])
            assert (not reason) is valid


class TestSize:
    @pytest.mark.fault("files-in-scratch-too-small")
    @pytest.mark.parametrize("bytes_", [100000, 99999])
    def test_the_files_must_reach_their_size(self, kit: Kit, bytes_: int) -> None:
        kit.program(f"head -c {bytes_} /dev/zero >data; {OUTPUT}")
        case(kit)
        found = record(kit)
        assert found.valid is (bytes_ == 100000)
        assert found.valid or (found.reason or "").endswith(
            "/0001-fake reached 97.7 KiB (99999 bytes) of at least 100000 bytes"
        )

    @pytest.mark.fault("removed-files-were-elsewhere")
    @pytest.mark.parametrize("name", sorted(SHELLS))
    @pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
    def test_a_program_that_removes_its_files(self, kit: Kit, name: str, injected: bool) -> None:
        """Like mdtest. The program waits until a sample has its files, in the fault two seconds."""
        (kit.folder / "elsewhere").mkdir()
        folder = f"{kit.folder}/elsewhere" if injected else "."
        seen = "" if injected else '"files": 3,'
        kit.program(
            f"cd {folder}; for n in 1 2 3; do head -c 40000 /dev/zero >'file '$n; done; "
            "for _ in 1 2 3 4 5 6 7 8 9 10; do "
            f"sleep {0.2 if injected else 2}; grep -q '{seen or 'x'}' {kit.folder}/runs/*/workdir/"
            f"steps/*/unfinished-1/scratch.seen && break; done; rm file*; {OUTPUT}"
        )
        case(kit, files=3, removes=True)
        found = record(kit, shell=SHELLS[name])
        assert (found.valid, bool(found.reason)) == (not injected, injected)

    @pytest.mark.fault("too-few-files-in-scratch")
    @pytest.mark.parametrize("files", [4, 5])
    def test_the_number_of_files(self, kit: Kit, files: int) -> None:
        kit.program(f"mkdir a; for n in 1 2 3; do : >a/$n; done; : >b; {OUTPUT}")
        case(kit, bytes=0, files=files)
        found = record(kit)
        assert found.valid is (files == 4)
        assert found.valid or (found.reason or "").startswith("4 of at least 5 files appeared in ")

    @given(bytes_=st.integers(0, 2000), files=st.integers(1, 12))
    def test_less_is_invalid_up_to_the_number_that_is_counted(
        self, bytes_: int, files: int
    ) -> None:
        mount = MountedFileSystem(source="s", target="/", kind="xfs", options="rw")
        content = seen("/one/run", mount, bytes=bytes_, files=files, most=12)
        reason = scratch_error(a_step(""), content, partition_with(), ())
        assert (not reason) is ((bytes_ >= 1000 and files >= 2) or files == 12)


class TestReport:
    @pytest.mark.fault("scratch-report-changed")
    @pytest.mark.parametrize("how", ["control", "removed", "changed", "damaged"])
    def test_the_report_is_that_of_the_step(self, kit: Kit, how: str) -> None:
        case(kit)
        run = kit.run()
        assert record(kit, run=run).valid
        (step,) = steps_of(run)
        path = execution(step) / "scratch.json"
        if how == "removed":
            path.unlink()
        elif how == "changed":
            path.write_text(path.read_text().replace('"bytes": 100000', '"bytes": 900000'))
        elif how == "damaged":
            path.write_text("{")
            seal(execution(step))
        (found,) = kit.records(run)
        assert (
            found.reason
            == {
                "control": "",
                "removed": "scratch.json is missing",
                "changed": "scratch.json changed after the step ended",
                "damaged": "scratch.json is damaged: Expecting property name enclosed in double "
                "quotes: line 1 column 2 (char 1)",
            }[how]
        )
        assert how == "control" or not found.valid

    def test_names_with_blanks(self, kit: Kit) -> None:
        """The folder of the largest file has a blank; the mount is found nevertheless."""
        kit.program(f'mkdir "a b"; head -c 100000 /dev/zero >"a b/c d"; : >e; {OUTPUT}')
        case(kit)
        run = kit.run()
        assert record(kit, run=run).valid
        (step,) = steps_of(run)
        report = read_scratch_files((execution(step) / "scratch.json").read_bytes())
        assert report.real.endswith("/0001-fake/a b")
        assert (report.bytes, report.files) == (100000, 2)


def partition_with(*systems: FileSystem) -> Partition:
    return Partition(
        environment="local",
        scheduler="none",
        provision_from="system",
        scratch=Scratch(path="/one"),
        file_systems=list(systems),
    )


def a_step(file_system: str) -> Step:
    """Return a step that must write 1,000 bytes in two files."""
    writes = WrittenFiles(bytes=1000, files=2, removed=False)
    given: dict[str, Any] = {"file_system": file_system, "writes": writes}
    return Step.model_construct(**given)


def seen(folder: str, mount: MountedFileSystem, **numbers: int) -> bytes:
    """Return the content of ``scratch.json``."""
    counts = {"bytes": 1000, "files": 2, "most": 10000, **numbers}
    words = {"scratch": folder, "real": folder, "kind": mount.kind, "source": mount.source}
    return json.dumps({**counts, **words, "target": mount.target}).encode()


def mount(target: str = "/one", source: str = "gpfs1", kind: str = "gpfs") -> MountedFileSystem:
    return MountedFileSystem(source=source, target=target, kind=kind, options="rw")


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
    recorded: tuple[MountedFileSystem, ...] = (),
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
        assert seen.mount == MountedFileSystem(
            source="gpfs1", target="/one", kind="gpfs", options=""
        )
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


class TestContentOfReport:
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
    def test_another_mount(self, before: MountedFileSystem, named: str) -> None:
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


class TestSizeOfFiles:
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
