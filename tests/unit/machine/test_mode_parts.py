"""The pieces of a mode change by themselves: tables, layouts, back ends, schedulers, preflight."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.emulators.bmc.crews import ATTRIBUTES, GIB, MODES, SHAPES, Slurm, searched_first
from tests.emulators.bmc.machine import AS_DELIVERED
from tests.emulators.bmc.node import boot, smbios
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.fixtures.kit import Kit, make_kit
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.machine.bmc.back_end import BACK_ENDS, BackEnd, BackEndContext, back_end
from proofmark.machine.bmc.backends.syscfg import read_shown
from proofmark.machine.bmc.credentials import Credentials, credentials
from proofmark.machine.bmc.model import (
    AttributeSpec,
    FirmwareState,
    Host,
    foreign_pending,
    refused_settings,
)
from proofmark.machine.fanout import fan_out, split
from proofmark.machine.modes.verification import matching_modes, read_observation, verify_mode
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.preflight import preflight
from proofmark.machine.remote_shell import PROBE, RemoteShell
from proofmark.machine.scheduler import draining
from proofmark.machine.schedulers import slurm as slurm_module
from proofmark.machine.schedulers.pbs import Pbs
from proofmark.machine.schedulers.slurm import Slurm as SlurmScheduler
from proofmark.site.firmware import Firmware, wanted
from proofmark.site.inventory import Site
from proofmark.site.node.smbios import knl_mode, structures
from proofmark.site.partition import Partition

CLUSTERS = ["All2All", "Hemisphere", "Quadrant", "SNC-2", "SNC-4"]
MEMORIES = [("Cache", ""), ("Flat", ""), ("Hybrid", "25"), ("Hybrid", "50")]


def table(cluster: str, memory: str, percent: str = "25") -> bytes:
    settings = {"ClusterMode": cluster, "MemoryMode": memory, "MemoryModeHybridPercent": percent}
    return smbios(settings, knl_tables=True)


class TestSmbios:
    @pytest.mark.parametrize("cluster", CLUSTERS)
    @pytest.mark.parametrize(("memory", "percent"), MEMORIES)
    def test_modes_are_read(self, cluster: str, memory: str, percent: str) -> None:
        found = knl_mode(table(cluster, memory, percent or "25"), "x")
        assert found == {"cluster": cluster, "memory": "-".join(filter(None, (memory, percent)))}

    def test_another_machine_tells_nothing(self) -> None:
        assert knl_mode(smbios({}, knl_tables=False), "x") == {}

    def test_strings_and_handles_are_read(self) -> None:
        first, *_, last = structures(table("SNC-2", "Flat"), "x")
        assert (first.kind, first.handle, first.strings[1]) == (1, 0x100, "S7200AP")
        assert (last.kind, last.strings) == (127, ())

    @given(st.integers(0, 10_000))
    def test_a_cut_table_is_refused_or_tells_less(self, cut: int) -> None:
        whole = table("SNC-4", "Flat")
        part = whole[: cut % len(whole)]
        try:
            assert knl_mode(part, "x") in ({}, {"cluster": "SNC-4", "memory": "Flat"})
        except BadInput as error:
            assert "SMBIOS" in str(error)

    @given(st.binary(max_size=200))
    def test_nonsense_is_refused_or_tells_nothing(self, raw: bytes) -> None:
        with contextlib.suppress(BadInput):
            assert knl_mode(raw, "x") == {}


def seen(folder: Path, mode: str, *, tables: bool = True) -> Any:
    firmware = Firmware(back_end="redfish", attributes=ATTRIBUTES)
    boot(folder / "n1", AS_DELIVERED["knl"] | wanted(firmware, SHAPES[mode].settings), "knl")
    if not tables:
        (folder / "n1/sys/firmware/dmi/tables/DMI").unlink()
    script = str(ROOT / "tests/emulators/bmc/reach.sh")
    text = RemoteShell(["sh", script, str(folder), "{node}"], 10)("n1", PROBE)
    return read_observation(text, "n1", "knl")


class TestProof:
    @pytest.mark.parametrize("mode", MODES)
    def test_each_mode_is_told_from_all_others(self, tmp_path: Path, mode: str) -> None:
        assert matching_modes(seen(tmp_path, mode), SHAPES) == [mode]

    def test_quadrant_and_its_like_need_smbios(self, tmp_path: Path) -> None:
        blind = seen(tmp_path, "quadrant-flat", tables=False)
        with pytest.raises(NodeError, match="look alike without SMBIOS") as failed:
            verify_mode(blind, "quadrant-flat", SHAPES, "knl")
        assert failed.value.outcome is Outcome.UNPROVEN

    @pytest.mark.parametrize("mode", ["snc2-cache", "snc2-flat", "snc4-cache", "snc4-flat"])
    def test_for_others_the_domains_are_enough(self, tmp_path: Path, mode: str) -> None:
        blind = seen(tmp_path, mode, tables=False)
        verify_mode(blind, mode, SHAPES, "knl")
        assert matching_modes(blind, SHAPES) == [mode]

    def test_a_lost_dimm_is_no_mode(self, tmp_path: Path) -> None:
        node = seen(tmp_path, "quadrant-cache")
        layout = type(node.layout)(((272, 80 * GIB),), ())
        with pytest.raises(NodeError, match="no mode that is declared"):
            verify_mode(
                type(node)("b", layout, node.settings, "", 0), "quadrant-cache", SHAPES, "knl"
            )


def _back_end(name: str) -> BackEnd:
    context = BackEndContext(Firmware(back_end=name), Credentials(), RemoteShell(["true"], 1))
    return back_end(context)


class TestPieces:
    def test_fan_out_keeps_order_failures_and_its_bound(self) -> None:
        busy, most, guard = [0], [0], threading.Lock()

        def work(number: int) -> int:
            with guard:
                busy[0] += 1
                most[0] = max(most[0], busy[0])
            try:
                if number % 10 == 3:
                    raise NodeError(Outcome.BUSY, "x")
                return number
            finally:
                with guard:
                    busy[0] -= 1

        found = fan_out(range(100), work, 7)
        good, bad = split(found)
        assert list(found) == list(range(100)) and len(bad) == 10 and len(good) == 90
        assert most[0] <= 7

    def test_a_stop_leaves_the_rest_untouched(self) -> None:
        stop = threading.Event()
        done: list[int] = []

        def work(number: int) -> None:
            done.append(number)
            stop.set()

        _, bad = split(fan_out(range(50), work, 1, stop))
        assert len(done) + len(bad) == 50 and len(done) == 1

    def test_pending_values_are_ours_only_if_we_asked_for_them(self) -> None:
        reading = FirmwareState(current={"a": "1"}, pending={"a": "2", "b": "3"})
        assert foreign_pending(reading, [("a", "2")]) == {"b": "3"}
        assert foreign_pending(reading, [("a", "9"), ("b", "3"), ("a", "2")]) == {}

    def test_a_back_end_without_registry_cannot_find_mistakes(self) -> None:
        assert list(refused_settings({"a": 1}, None)) == []
        assert list(refused_settings({"a": 1}, {"a": AttributeSpec()})) == []

    def test_credentials_are_not_shown(self) -> None:
        who = credentials('{"user": "u", "password": "hush"}')
        assert "hush" not in repr(who) and who.hide("x hush y") == "x *** y"
        with pytest.raises(BadInput) as error:
            credentials('{"user": "hush"')
        assert "hush" not in str(error.value)

    def test_an_unknown_back_end_is_named(self) -> None:
        assert BACK_ENDS.names() == ["knl_generic", "record", "redfish", "syscfg"]
        firmware = Firmware(back_end="redfsh")
        with pytest.raises(BadInput, match="did you mean 'redfish'"):
            back_end(BackEndContext(firmware, Credentials(), RemoteShell(["true"], 1)))

    def test_modes_without_attributes_are_refused(self, tmp_path: Path) -> None:
        facts: dict[str, Any] = {
            "hardware": "discovered",
            "environment": "local",
            "provision_from": "system",
            "scheduler": "none",
            "scratch": {"path": "/x"},
            "modes": {"a": {"settings": {"smt": "off"}}},
        }
        Partition.model_validate(facts)
        with pytest.raises(ValueError, match="mode a needs 'smt: off'"):
            Partition.model_validate(facts | {"firmware": {"back_end": "record"}})


SYSCFG = """#!/bin/sh
# Intel's tool, with numbers of its own.
file=${0%/*}/cluster
case "$1 $4" in
"/d ") printf 'Cluster Mode\\n============\\nCurrent Value : %s\\n---------\\nPossible Values\\n' \\
    "$(cat "$file")"
    printf -- '---------\\nAll2All : 00\\nSNC-2 : 01\\nSNC-4 : 07\\nQuadrant : 04\\n' ;;
"/bcs Cluster Mode") [ "$5" = 07 ] && echo SNC-4 >"$file"; echo "$*" >>"$file.calls" ;;
esac
"""


class TestBackEnds:
    def test_syscfg_sets_by_the_number_that_the_node_prints(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "syscfg").write_text(SYSCFG)
        (tmp_path / "syscfg").chmod(0o755)
        (tmp_path / "cluster").write_text("Quadrant\n")
        monkeypatch.setenv("PATH", searched_first(tmp_path))
        firmware = Firmware(back_end="syscfg", remote_shell=["sh", "-s"])
        end = back_end(
            BackEndContext(firmware, Credentials(), RemoteShell(firmware.remote_shell, 10))
        )
        host, asked = Host("n1", ""), {"Cluster Mode": "SNC-4"}
        reading = end.read(host, asked)
        assert reading.current == {"Cluster Mode": "Quadrant"}
        assert [*refused_settings({"Cluster Mode": "SNC4"}, reading.offers)]
        end.stage(host, reading, asked)
        assert (tmp_path / "cluster.calls").read_text() == "/bcs  BIOSSETTINGS Cluster Mode 07\n"
        assert end.verify(host, asked) is None, "it shows the next boot's"

    def test_lists_of_several_settings_are_told_apart(self) -> None:
        text = (
            "A B\n===\nCurrent Value : x y\nx y : 00\nz : 0A\n\nC\n===\nCurrent Value : q\nq : 1\n"
        )
        shown = read_shown(text)
        assert shown["A B"].current == "x y" and shown["A B"].numbers == {"x y": "00", "z": "0A"}
        assert shown["C"].numbers == {"q": "1"}

    def test_record_never_sets(self) -> None:
        end = _back_end("record")
        with pytest.raises(NodeError, match="set it at the machine: smt=off"):
            end.stage(Host("n1", ""), FirmwareState({}), {"smt": "off"})

    def test_knl_generic_lets_a_job_reset(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        line = "NodeName=n1 AvailableFeatures=knl,quad,snc4,flat ActiveFeatures=knl,quad,flat"
        for name, body in (("scontrol", f"echo '{line}'"), ("sbatch", 'echo "$@" >"$0.calls"')):
            (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", searched_first(tmp_path))
        end = _back_end("knl_generic")
        host, asked = Host("n1", ""), {"snc4": True, "flat": True}
        reading = end.read(host, {**asked, "quad": True})
        assert reading.current == {"quad": True, "flat": True}
        end.reset(host, reading, asked)
        said = (tmp_path / "sbatch.calls").read_text()
        assert "--nodelist=n1" in said and "--constraint=snc4&flat" in said


class TestSchedulers:
    @pytest.mark.parametrize(
        ("line", "out", "idle", "reason"),
        [
            ("NodeName=n1 State=IDLE CfgTRES=cpu=4", False, True, ""),
            ("NodeName=n1 State=ALLOCATED+DRAIN Reason=bad DIMM [root@x]", True, False, "bad DIMM"),
            ("NodeName=n1 State=DOWN*+DRAIN Reason=proofmark:r NO_RETURN [a@b]", True, True, ""),
            ("NodeName=n1 State=MIXED", False, False, ""),
        ],
    )
    def test_slurm_lines(self, line: str, out: bool, idle: bool, reason: str) -> None:
        name, standing = slurm_module._node_status(line)
        assert (name, standing.out, standing.idle) == ("n1", out, idle)
        assert standing.reason.startswith(reason)

    def test_pbs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        told = '{"nodes": {"n1": {"state": "offline,job-busy", "comment": "x", "jobs": ["1"]}}}'
        (tmp_path / "pbsnodes").write_text(f'#!/bin/sh\necho "$@" >>"$0.calls"\necho \'{told}\'\n')
        (tmp_path / "pbsnodes").chmod(0o755)
        monkeypatch.setenv("PATH", searched_first(tmp_path))
        standing = Pbs().node_status(["n1"])["n1"]
        assert (standing.out, standing.idle, standing.reason) == (True, False, "x")
        Pbs().drain(["n1"], "proofmark:r")
        assert "-o -C proofmark:r n1" in (tmp_path / "pbsnodes.calls").read_text()

    def test_a_scheduler_that_drains_no_nodes_is_named(self) -> None:
        with pytest.raises(BadInput, match="it drains no nodes; accepted: none, pbs, slurm"):
            draining("loadleveler")


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return make_kit(tmp_path / "kit")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Emulator]:
    with Emulator(["n1", "n2"], tmp_path / "bmc", faults={"n2": "expired"}) as emulator:
        yield emulator


class TestPreflight:
    def site(self, kit: Kit, **firmware: Any) -> Site:
        site = kit.site(hosts=("n1", "n2"))
        told = Firmware.model_validate({"back_end": "record", **firmware})
        return site.model_copy(
            update={"partition": site.partition.model_copy(update={"firmware": told})}
        )

    def outcomes(
        self, kit: Kit, site: Site, end: datetime | None = None, who: str = "root"
    ) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for each in preflight(site, kit.plan(), Credentials(USER, PASSWORD), end, who):
            found.setdefault(each.what.split(":")[0].split(" ")[0], []).append(each.outcome)
        return found

    def test_all_is_well(self, kit: Kit) -> None:
        end = datetime.now(UTC) + timedelta(hours=1)
        found = self.outcomes(kit, self.site(kit, remote_shell=["sh", "-s"]), end)
        assert found.pop("scheduler") == ["NOT_NEEDED"]  # the plan changes no mode
        assert set().union(*found.values()) == {"OK"}

    @pytest.mark.parametrize(
        ("scheduler", "mode", "outcome"),
        [
            ("sge", "current", "NOT_NEEDED"),
            ("loadleveler", "current", "NOT_NEEDED"),
            ("sge", "other", "CANNOT_DRAIN"),
            ("none", "other", "OK"),
        ],
    )
    def test_only_a_plan_that_changes_a_mode_needs_to_drain(
        self, kit: Kit, scheduler: str, mode: str, outcome: str
    ) -> None:
        site, plan = self.site(kit, remote_shell=["sh", "-s"]), kit.plan()
        partition = site.partition.model_copy(update={"scheduler": scheduler})
        site = site.model_copy(update={"partition": partition})
        groups = [group.model_copy(update={"mode": mode}) for group in plan.groups]
        plan = plan.model_copy(update={"groups": groups})
        findings = preflight(site, plan, Credentials(USER, PASSWORD), None, "root")
        (found,) = (each for each in findings if each.what.startswith("scheduler:"))
        assert found.outcome == outcome

    @pytest.mark.parametrize(
        ("script", "outcome"),
        [
            ("echo Host key verification failed. >&2; exit 255", "HOST_KEY"),
            ("echo Permission denied >&2; exit 255", "LOGIN"),
            ("echo No route to host >&2; exit 255", "UNREACHABLE"),
            ("echo 1000000000; echo 0", "CLOCK_SKEW"),
            ("date +%s; echo 4711", "OTHER_UID"),
        ],
    )
    def test_a_node_that_is_not_right(self, kit: Kit, script: str, outcome: str) -> None:
        command = ["sh", "-c", f"[ {{node}} = n1 ] && exec sh -s; {script}"]
        assert self.outcomes(kit, self.site(kit, remote_shell=command))["nodes"] == ["OK", outcome]

    def test_bmcs_are_logged_into(self, kit: Kit, room: Emulator) -> None:
        address = "127.9.0.{number + 1}"
        facts = {"back_end": "redfish", "bmc": address, "port": room.port, "ca": str(room.ca)}
        found = self.outcomes(kit, self.site(kit, **facts, remote_shell=["sh", "-s"]))
        assert found["BMCs"] == ["OK", "BAD_CERTIFICATE"]

    def test_a_window_that_is_too_short(self, kit: Kit) -> None:
        site = self.site(kit, remote_shell=["sh", "-s"])
        assert self.outcomes(kit, site)["maintenance"] == ["NOT_TOLD"]
        assert self.outcomes(kit, site, datetime.now(UTC))["maintenance"] == ["TOO_SHORT"]


def test_the_slurm_of_the_tests_is_slurm_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Slurm(tmp_path)
    monkeypatch.setenv("PATH", searched_first(tmp_path))
    SlurmScheduler().drain(["n1"], "proofmark:r x")
    assert there.drained == {"n1": "proofmark:r x"}
    assert SlurmScheduler().node_status(["n1"])["n1"].reason == "proofmark:r x"
    assert SlurmScheduler().missing_permission("n1") == ""
    SlurmScheduler().resume(["n1"])
    assert there.drained == {}
