"""Abstract settings on the BMCs of vendors: modes are entered, proven and restored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.emulators.bmc import node as emulated_node
from tests.emulators.bmc.reply import Reply
from tests.emulators.bmc.rollouts import FileSlurm, firmware_with, outcomes_of, path_with
from tests.emulators.bmc.server import PASSWORD, USER
from tests.emulators.bmc.vendor_server import Job, VendorEmulator, VendorMachine
from tests.emulators.bmc.vendors import VENDORS
from tests.fixtures.shells import remote_shell

from proofmark.common.errors import BadInput
from proofmark.machine.bmc.back_end import (
    BackEndContext,
    Credentials,
    FirmwareState,
    Host,
    back_end,
)
from proofmark.machine.modes.drains import ModeResult
from proofmark.machine.modes.rollout import ModeRollout, forecast, seen_settings
from proofmark.machine.modes.transition import (
    ExpectedState,
    ModeTransition,
    TargetMode,
    verify_mode,
)
from proofmark.machine.node_commands import PROBE
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import draining
from proofmark.machine.schedulers import slurm
from proofmark.runs.node_locks import NodeLocks
from proofmark.site.firmware import Firmware, Settings, abstract, wanted
from proofmark.site.node.topology import NumaShape, numa_shape_of_domains

Settings_ = dict[str, str]
NUMA = {"4": 4, "2": 2}


def shape(settings: Settings_) -> NumaShape:
    """Return the domains that the emulated node has with `settings`."""
    numa = NUMA.get(settings.get("numa_per_socket", ""), 1)
    threads = 1 if settings.get("smt") == "off" else 2
    domains = emulated_node.server({"numa": numa, "threads": threads})
    return numa_shape_of_domains([(len(each.cpus), each.memory_kb << 10) for each in domains])


@dataclass
class Lab:
    """Emulated nodes of one vendor, with a scheduler and the folder of a run."""

    emulator: VendorEmulator
    slurm: FileSlurm
    folder: Path
    modes: dict[str, Settings_]
    threads: int = 2
    lines: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> list[str]:
        return list(self.emulator.machines)

    def machine(self, name: str = "n1") -> VendorMachine:
        machine = self.emulator.machines[name]
        assert isinstance(machine, VendorMachine)
        return machine

    def firmware(self, **changes: Any) -> Firmware:
        vendor = next(kind for kind, each in VENDORS.items() if each is self.emulator.vendor)
        facts = {
            "back_end": "redfish",
            "vendor": vendor.partition("-")[0],
            "port": self.emulator.port,
            "ca": str(self.emulator.ca),
            "remote_shell": self.emulator.remote_shell,
            "poll_s": 0.02,
            "reset_timeout_s": 20,
            "boot_timeout_s": 60,
            "timeout_s": 60,
        }
        return firmware_with(facts | changes)

    def rollout(self, **changes: Any) -> ModeRollout:
        firmware = self.firmware(**changes)
        shell = remote_shell(firmware.remote_shell, firmware.timeout_s)
        context = BackEndContext(firmware, Credentials(USER, PASSWORD), shell)
        concrete: dict[str, Any] = {}
        pairs: dict[tuple[str, str], None] = {}
        for settings in self.modes.values():
            concrete |= wanted(firmware, settings)
            pairs |= dict.fromkeys(abstract(firmware, settings).items())
        run = self.folder / "run"
        run.mkdir(exist_ok=True)
        return ModeRollout(
            run=run,
            locks=NodeLocks(self.folder / "state", "test", self.folder / "runs/test", "head"),
            transition=ModeTransition(
                firmware, back_end(context), shell, concrete, threading.Event(), tuple(pairs)
            ),
            scheduler=draining("slurm"),
            hosts={name: Host(name, self.emulator.address(name)) for name in self.nodes},
            say=self.lines.append,
        )

    def target(self, mode: str, **changes: Any) -> TargetMode:
        firmware = self.firmware(**changes)
        states = {
            name: ExpectedState(
                seen_settings(firmware, settings),
                shape({"smt": "on" if self.threads == 2 else "off", **settings}),
            )
            for name, settings in self.modes.items()
        }
        verify = partial(verify_mode, mode=mode, expected_states=states, smbios=None)
        settings = self.modes[mode]
        return TargetMode(mode, wanted(firmware, settings), verify, abstract(firmware, settings))

    def prove(self, host: Host, mode: str) -> None:
        """Verify that the node is in the mode, by its operating system and its BMC."""
        transition = self.rollout().transition
        transition.prove(host, self.target(mode), transition.shell(host.node, PROBE))

    def enter(self, mode: str) -> dict[str, ModeResult]:
        return self.rollout().enter(self.nodes, self.target(mode))


MakeLab = Callable[..., Lab]


@pytest.fixture
def make_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeLab]:
    """Return a function that starts nodes with the BMCs of a vendor."""
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin"))
    monkeypatch.setattr(slurm, "folded", ",".join)
    monkeypatch.setattr("proofmark.machine.bmc.client.FIRST_PAUSE_S", 0.01)
    emulators: list[VendorEmulator] = []

    def make(kind: str, modes: dict[str, Settings_], nodes: int = 1, **faults: str) -> Lab:
        names = [f"n{number}" for number in range(1, nodes + 1)]
        emulator = VendorEmulator(kind, names, tmp_path, faults=faults)
        emulator.__enter__()
        emulators.append(emulator)
        threads = 1 if kind.startswith("openbmc") else 2
        return Lab(emulator, FileSlurm(tmp_path / "bin"), tmp_path, modes, threads)

    yield make
    for emulator in emulators:
        emulator.__exit__(None, None, None)


NUMA_AND_SMT: dict[str, Settings_] = {
    "idrac-intel": {"smt": "off", "numa_per_socket": "2"},
    "idrac-amd": {"smt": "off", "numa_per_socket": "4"},
    "ilo-intel": {"smt": "off", "numa_per_socket": "2"},
    "ilo-amd": {"smt": "off", "numa_per_socket": "4"},
    "xclarity-intel": {"smt": "off", "numa_per_socket": "2"},
    "xclarity-amd": {"smt": "off", "numa_per_socket": "4"},
    "supermicro-intel": {"smt": "off", "numa_per_socket": "4"},
    "supermicro-amd": {"smt": "off", "numa_per_socket": "4"},
    "ami-intel": {"smt": "off"},
    "openbmc-amd": {"numa_per_socket": "4"},
}
UNSEEN: dict[str, Settings_] = {
    "idrac-intel": {"turbo": "off", "c_states": "off", "prefetchers": "off"},
    "idrac-amd": {"power_profile": "performance", "prefetchers": "off"},
    "ilo-intel": {"turbo": "off", "c_states": "off", "prefetchers": "off"},
    "ilo-amd": {"turbo": "off", "c_states": "off", "prefetchers": "off"},
    "xclarity-intel": {"turbo": "off", "c_states": "on", "prefetchers": "off"},
    "xclarity-amd": {"turbo": "off", "c_states": "off", "prefetchers": "off"},
    "supermicro-intel": {"turbo": "off", "c_states": "off", "prefetchers": "off"},
    "supermicro-amd": {"turbo": "off", "power_profile": "performance"},
    "ami-intel": {"turbo": "off", "prefetchers": "off"},
    "openbmc-amd": {"c_states": "off"},
}


def test_each_emulated_bmc_is_tested() -> None:
    assert NUMA_AND_SMT.keys() == UNSEEN.keys() == VENDORS.keys()


class TestModes:
    @pytest.mark.parametrize("kind", VENDORS)
    def test_numa_domains_and_threads_are_changed_and_restored(
        self, make_lab: MakeLab, kind: str
    ) -> None:
        lab = make_lab(kind, {"now": {}, "new": NUMA_AND_SMT[kind]})
        before = dict(lab.machine().current)
        assert outcomes_of(lab.enter("new")) == {"n1": "OK"}
        assert lab.machine().refused == [] and lab.machine().resets == 1
        assert lab.machine().current != before
        assert outcomes_of(lab.rollout().restore()) == {"n1": "OK"}
        assert lab.machine().current == before and lab.slurm.drained == {}

    @pytest.mark.parametrize("kind", VENDORS)
    def test_settings_that_the_system_does_not_show_are_read_from_the_firmware(
        self, make_lab: MakeLab, kind: str
    ) -> None:
        """Both modes look alike to the operating system; a profile may fix the settings."""
        lab = make_lab(kind, {"now": {}, "new": UNSEEN[kind]})
        before = dict(lab.machine().current)
        host = Host("n1", lab.emulator.address("n1"))
        with pytest.raises(NodeError, match="not in mode new: the firmware has") as error:
            lab.prove(host, "new")
        assert error.value.outcome is Outcome.OTHER_MODE
        assert outcomes_of(lab.enter("new")) == {"n1": "OK"}
        assert lab.machine().refused == [] and lab.machine().resets == 1
        lab.prove(host, "new")
        again = lab.enter("new")
        assert lab.machine().resets == 1 and not again["n1"].changed
        assert outcomes_of(lab.rollout().restore()) == {"n1": "OK"}
        assert lab.machine().current == before

    def test_the_changes_are_shown_before(self, make_lab: MakeLab) -> None:
        lab = make_lab("idrac-amd", {"new": {"numa_per_socket": "4", "turbo": "off"}})
        rollout = lab.rollout()
        good, bad = rollout.check(lab.nodes, lambda _: lab.target("new"))
        lines, _ = forecast(rollout, good)
        assert bad == {} and lab.machine().patches == 0
        assert lines == [
            "n1: NumaNodesPerSocket: 1 → 4, SysProfile: PerfPerWattOptimizedDapc → Custom,"
            " ProcTurboMode: Enabled → Disabled, drain, reset, resume"
        ]

    def test_an_attribute_of_the_site_replaces_that_of_the_vendor(self, make_lab: MakeLab) -> None:
        lab = make_lab("idrac-amd", {"new": {"smt": "Disabled", "numa_per_socket": "2"}})
        changes: dict[str, Any] = {"attributes": {"smt": "LogicalProc"}}
        target = lab.target("new", **changes)
        assert (target.attributes, target.settings) == (
            {"LogicalProc": "Disabled"},
            {"numa_per_socket": "2"},
        )

    def test_modes_that_differ_in_unseen_settings_look_alike(self) -> None:
        firmware = Firmware(back_end="redfish", vendor="idrac", attributes={"turbo": "Turbo"})
        settings = {"smt": "on", "turbo": "x", "c_states": "on", "power_profile": "balanced"}
        assert seen_settings(firmware, settings) == {"smt": "on", "turbo": "x"}
        plain = Firmware(back_end="manual", attributes={"c_states": "C"})
        assert seen_settings(plain, {"c_states": "x"}) == {"c_states": "x"}


class TestRefusals:
    NEW: dict[str, Settings_] = {"now": {}, "new": {"smt": "off"}}

    @pytest.mark.fault("bmc-lockdown")
    @pytest.mark.parametrize(
        ("kind", "state"),
        [
            ("idrac-intel", "system lockdown mode"),
            ("ilo-amd", "power-on self-test"),
            ("supermicro-intel", "system lockdown"),
        ],
    )
    def test_a_locked_bmc_is_named_before_a_node_is_drained(
        self, make_lab: MakeLab, kind: str, state: str
    ) -> None:
        lab = make_lab(kind, self.NEW, n1="lockdown")
        result = lab.enter("new")["n1"]
        assert result.outcome is Outcome.BLOCKED
        assert result.text.startswith(f"{state}: the BMC refuses changes; ")
        assert lab.slurm.drained == {} and lab.machine().patches == 0
        assert not [call for call in lab.slurm.calls if "DRAIN" in call]

    def test_a_locked_bmc_that_needs_no_change_is_accepted(self, make_lab: MakeLab) -> None:
        lab = make_lab("idrac-intel", {"now": {"smt": "on"}}, n1="lockdown")
        assert outcomes_of(lab.enter("now")) == {"n1": "OK"}

    @pytest.mark.fault("bmc-foreign-job")
    @pytest.mark.parametrize("fault", ["foreign-job", "foreign-update", "foreign-update-51st"])
    def test_a_job_of_another_client_is_not_deleted(self, make_lab: MakeLab, fault: str) -> None:
        """The reset would execute it, whatever it changes."""
        lab = make_lab("idrac-intel", self.NEW, n1=fault)
        result = lab.enter("new")["n1"]
        assert result.outcome is Outcome.FOREIGN_PENDING and "JID_FOREIGN" in result.text
        assert lab.machine().jobs[-1].name == "JID_FOREIGN"
        assert not [call for call in lab.slurm.calls if "DRAIN" in call]

    def test_a_queue_that_is_not_shown_whole_is_not_trusted(self, make_lab: MakeLab) -> None:
        lab = make_lab("idrac-intel", self.NEW, n1="jobs-cut")
        result = lab.enter("new")["n1"]
        assert "found 50 members; accepted: 51" in result.text
        assert not [call for call in lab.slurm.calls if "DRAIN" in call]

    @pytest.mark.fault("bmc-setting-not-offered")
    def test_a_setting_that_no_attribute_makes_names_what_was_looked_for(
        self, make_lab: MakeLab
    ) -> None:
        lab = make_lab("ilo-amd", self.NEW, n1="lacks-setting")
        with pytest.raises(BadInput) as error:
            lab.enter("new")
        looked = "smt=off: looked for ProcSMT=Disabled, ProcHyperthreading=Disabled"
        assert looked in str(error.value) and lab.slurm.drained == {}

    @pytest.mark.fault("bmc-setting-not-offered")
    @pytest.mark.parametrize("first", ["n1", "n2"])
    def test_one_node_without_the_setting_is_refused_alone(
        self, make_lab: MakeLab, first: str
    ) -> None:
        """Nodes share the registry of the `first` one, which may be that of another BIOS."""
        lab = make_lab("ilo-amd", self.NEW, 3, n2="lacks-setting")
        rollout = lab.rollout(max_failures=1)
        rollout.transition.back_end.read(rollout.hosts[first], {})
        results = rollout.enter(lab.nodes, lab.target("new"))
        assert outcomes_of(results) == {"n1": "OK", "n2": "REFUSED", "n3": "OK"}

    @pytest.mark.fault("bmc-job-fails")
    def test_a_job_that_fails_is_named_with_its_message(self, make_lab: MakeLab) -> None:
        lab = make_lab("idrac-intel", self.NEW, n1="job-fails")
        result = lab.enter("new")["n1"]
        assert result.outcome is Outcome.NOT_APPLIED
        assert "job JID_1 is Failed: Unable to apply the settings." in result.text
        assert list(lab.slurm.drained) == ["n1"]
        lab.machine().fault = ""
        assert outcomes_of(lab.rollout().restore()) == {"n1": "OK"} and lab.slurm.drained == {}

    @pytest.mark.fault("bmc-job-missing")
    def test_a_node_is_not_reset_if_the_bmc_made_no_job(self, make_lab: MakeLab) -> None:
        lab = make_lab("idrac-intel", self.NEW, n1="job-missing")
        result = lab.enter("new")["n1"]
        assert result.outcome is Outcome.NOT_APPLIED and "no job" in result.text
        assert lab.machine().resets == 0

    def test_a_node_is_blocked_while_a_job_runs(self, make_lab: MakeLab) -> None:
        lab = make_lab("idrac-intel", self.NEW)
        job = Job("JID_0", "RebootPending")
        lab.machine().jobs.append(job)
        result = lab.enter("new")["n1"]
        assert (result.outcome, result.text) == (Outcome.BLOCKED, "job JID_0 runs now")
        job.state = "Completed"
        assert outcomes_of(lab.enter("new")) == {"n1": "OK"}

    def test_settings_that_need_different_profiles_are_refused(self, make_lab: MakeLab) -> None:
        lab = make_lab("idrac-intel", {"new": {"power_profile": "performance", "turbo": "off"}})
        with pytest.raises(BadInput, match="power_profile=performance sets SysProfile=PerfOpt"):
            lab.enter("new")


class TestInterrupted:
    """A command that ended between the change and the reset leaves a job."""

    @pytest.fixture
    def lab(self, make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch) -> Lab:
        lab = make_lab("idrac-intel", {"now": {}, "new": {"smt": "off"}, "old": {"smt": "on"}})
        rollout = lab.rollout()

        def fail(host: Host, state: FirmwareState, wanted: Settings) -> None:
            raise NodeError(Outcome.UNEXPECTED, "the command ends here")

        monkeypatch.setattr(rollout.transition.back_end, "reset", fail)
        assert outcomes_of(rollout.enter(lab.nodes, lab.target("new"))) == {"n1": "UNEXPECTED"}
        assert [job.state for job in lab.machine().jobs] == ["Scheduled"]
        return lab

    def test_the_same_command_replaces_the_job(self, lab: Lab) -> None:
        assert outcomes_of(lab.enter("new")) == {"n1": "OK"}
        assert lab.machine().current["LogicalProc"] == "Disabled"
        assert lab.machine().refused == [] and lab.machine().resets == 1

    def test_restore_deletes_the_job_without_a_reset(self, lab: Lab) -> None:
        assert outcomes_of(lab.rollout().restore()) == {"n1": "OK"}
        assert lab.machine().jobs == [] and lab.machine().pending == {}
        assert lab.machine().resets == 0 and lab.slurm.drained == {}


class TestOddAnswers:
    """An odd answer about a lock or a job is the failure of its node, not of the command."""

    ODD: ClassVar[dict[str, tuple[str, Callable[[dict[str, Any]], object]]]] = {
        "lock-list": ("DellAttributes", lambda body: body.update(Attributes=["x"])),
        "jobs-number": ("Jobs?", lambda body: body.update(Members=5)),
        "job-text": ("Jobs?", lambda body: body.update(Members=["x"])),
        "job-state-number": ("Jobs?", lambda body: body["Members"][0].update(JobState=5)),
        "job-name-path": ("Jobs?", lambda body: body["Members"][0].update(Id="../../x")),
        "job-name-list": ("Jobs/JID_3", lambda body: body.update(Id=[])),
        "job-message-object": ("Jobs/JID_3", lambda body: body.update(Message={})),
    }

    LEFT_OUT = ("job-state-number", "job-name-path")
    """One bad member of a list is left out of it; the others count."""

    @pytest.mark.fault("bmc-odd-answers")
    @pytest.mark.parametrize("odd", ODD)
    def test_an_odd_answer_is_the_failure_of_its_node(
        self, make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch, odd: str
    ) -> None:
        lab = make_lab("idrac-intel", {"new": {"smt": "off"}})
        lab.machine().jobs.append(Job("JID_0", "Completed", "Job completed successfully."))
        lab.machine().jobs.append(Job("JID_1", "Scheduled", kind="ExportConfiguration"))
        part, change = self.ODD[odd]
        plain = VendorEmulator.answer

        def answer(self: VendorEmulator, machine: Any, method: str, path: str, *rest: Any) -> Reply:
            reply = plain(self, machine, method, path, *rest)
            if part in path and reply.body:
                change(reply.body)
            return reply

        monkeypatch.setattr(VendorEmulator, "answer", answer)
        result = lab.enter("new")["n1"]
        if odd in self.LEFT_OUT:
            assert (result.outcome, result.text) == (Outcome.OK, "")
        else:
            assert result.outcome is Outcome.UNEXPECTED and "accepted: " in result.text
        monkeypatch.setattr(VendorEmulator, "answer", plain)
        assert outcomes_of(lab.rollout().restore()) in ({}, {"n1": "OK"})
        assert lab.machine().current["LogicalProc"] == "Enabled" and lab.slurm.drained == {}
