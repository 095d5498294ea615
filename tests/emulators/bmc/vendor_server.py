"""Emulated BMCs of one vendor: `Emulator` with the resources and refusals of a `Vendor`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.emulators.bmc import node
from tests.emulators.bmc.machine import Machine
from tests.emulators.bmc.reply import Reply
from tests.emulators.bmc.server import RESET_TYPES, Emulator, error
from tests.emulators.bmc.vendors import VENDORS, Vendor

FAULTS = {
    "lockdown": "the BMC is locked, or an iLO shows the self-test of its machine",
    "foreign-job": "a job of another client waits for the next boot",
    "foreign-update": "an update of firmware waits for the next boot",
    "foreign-update-51st": "the same, as the member 51 of its collection, which has pages",
    "jobs-cut": "the collection of jobs states more members than it has",
    "job-fails": "the job of a change fails at the boot",
    "job-missing": "the BMC creates no job for a change",
    "lacks-setting": "the BIOS has no attribute for the threads of a core",
    "silent": "the BMC accepts a setting, but the reset does not apply it",
}
JOBS = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/Jobs"
TASKS = "/redfish/v1/TaskService/Tasks"
EXPAND, PAGE = "?$expand=*($levels=1)", 50
OPEN = ("New", "Scheduled", "Running")


@dataclass
class Job:
    """A job of a BMC with a queue; each look at it lets it advance."""

    name: str
    state: str = "New"
    message: str = "Task successfully scheduled."
    kind: str = "BIOSConfiguration"

    def look(self) -> dict[str, Any]:
        """Return the job as it is, and let it advance."""
        shown = {
            "@odata.id": f"{JOBS}/{self.name}",
            "Id": self.name,
            "JobType": self.kind,
            "JobState": self.state,
            "Message": self.message,
        }
        self.state = {"New": "Scheduled", "Running": "Completed"}.get(self.state, self.state)
        return shown


@dataclass
class VendorMachine(Machine):
    """A machine whose BMC is that of a vendor.

    Attributes:
        vendor: the behaviour of the BMC.
        jobs: its jobs.
        refused: the texts of the changes that it refused.
    """

    vendor: Vendor = VENDORS["idrac-intel"]
    jobs: list[Job] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.serial = self.serial or f"SN-{self.name}"
        self.current = {name: values[0] for name, values in self.vendor.values.items()}
        if self.fault == "lacks-setting":
            self.current.pop(next(iter(self.current)))
        if self.fault == "foreign-job":
            self.jobs.append(Job("JID_FOREIGN", "Scheduled"))
        elif self.fault in ("foreign-update-51st", "jobs-cut"):
            done = [Job(f"JID_{number}", "Completed") for number in range(50)]
            update = Job("JID_FOREIGN", "Scheduled", kind="FirmwareUpdate")
            self.jobs += [*done, update] if self.fault != "jobs-cut" else done
        elif self.fault == "foreign-update":
            self.jobs.append(Job("JID_FOREIGN", "Scheduled", kind="FirmwareUpdate"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self._boot()

    def _boot(self) -> None:
        threads = {name: values[0] for name, values in self.vendor.values.items()} | self.current
        node.boot(self.folder, self.vendor.layout(threads), "server", self.serial)

    @property
    def open_jobs(self) -> list[Job]:
        """The jobs of the BIOS that have not ended."""
        bios = [job for job in self.jobs if job.kind == "BIOSConfiguration"]
        return [job for job in bios if job.state in OPEN]

    def is_read_only(self, name: str, attributes: Mapping[str, Any]) -> bool:
        """Return whether `attributes` have a profile that fixes `name`."""
        return name in self.vendor.fixed.get(attributes.get(self.vendor.profile, ""), {})

    def refusal(self, attributes: dict[str, Any]) -> str:
        """Return why `attributes` cannot be set; empty if they can."""
        after = self.current | self.pending | attributes
        for name, value in attributes.items():
            if name not in self.current:
                return f"The property {name} is not in the list of valid properties"
            if value not in self.vendor.values[name]:
                return f"The value {value} of {name} is not in the list"
            if self.vendor.apply_time == "job" and self.is_read_only(name, after):
                return f"The property {name} is read-only and depends on other attributes"
        return ""

    def come_up(self) -> None:
        """Boot with the pending settings; a profile discards the settings that it fixes."""
        self.power = "On"
        vendor, ready = self.vendor, True
        if vendor.apply_time == "job":
            ready = any(job.state == "Scheduled" for job in self.open_jobs)
            fails = self.fault == "job-fails"
            for job in self.open_jobs:
                job.state = "Failed" if fails else "Running"
                job.message = "Unable to apply the settings." if fails else "Job in progress."
            ready = ready and not fails
        if ready and self.fault != "silent":
            after = self.current | self.pending
            kept = {n: v for n, v in self.pending.items() if not self.is_read_only(n, after)}
            self.current |= kept
            self.current |= vendor.fixed.get(after.get(vendor.profile, ""), {})
        self.pending = {}
        self.boots += 1
        self._boot()


class VendorEmulator(Emulator):
    """Emulated BMCs of the vendor `kind`, a key of `VENDORS`; `settings` as of `Emulator`."""

    def __init__(self, kind: str, names: Sequence[str], folder: Path, **settings: Any) -> None:
        self.vendor = VENDORS[kind]
        unknown = set((settings.get("faults") or {}).values()) - FAULTS.keys()
        if unknown:
            raise ValueError(f"found {unknown}; accepted: {', '.join(FAULTS)}")
        super().__init__(names, folder, **settings)

    def machine(self, name: str, shape: str, fault: str) -> Machine:
        """Return a new machine."""
        return VendorMachine(name, self.nodes / name, "server", fault, vendor=self.vendor)

    def _act(
        self,
        machine: Machine,
        method: str,
        path: str,
        headers: Mapping[str, str],
        content: Mapping[str, Any],
    ) -> Reply | None:
        assert isinstance(machine, VendorMachine)
        vendor = self.vendor
        if method == "PATCH":
            reply = self._patch_vendor(machine, path, headers, content)
            if reply.status >= 400:
                machine.refused.append(str(reply.body))
            return reply
        if (method, path) == ("POST", f"{vendor.system}/Actions/ComputerSystem.Reset"):
            return self.reset(machine, content)
        jobs = vendor.apply_time == "job" and path.startswith(JOBS)
        return _jobs(machine, method, path) if jobs else None

    def _tagged(self, machine: Machine, path: str, reply: Reply) -> Reply:
        assert isinstance(machine, VendorMachine)
        vendor = self.vendor
        values = {vendor.pending: machine.pending, vendor.bios: machine.current}
        if path in values and vendor.apply_time != "job":  # Dell has none
            reply.headers["ETag"] = _etag(values[path])
        return reply

    def _patch_vendor(
        self,
        machine: VendorMachine,
        path: str,
        headers: Mapping[str, str],
        content: Mapping[str, Any],
    ) -> Reply:
        vendor = self.vendor
        if path != vendor.target:
            return error(405, f"{path} cannot be changed")
        if machine.fault == "lockdown":
            return error(403, "the system is locked")
        applies = "@Redfish.SettingsApplyTime" in content
        if applies and vendor.apply_time == "unknown":
            return error(400, "The property @Redfish.SettingsApplyTime is unknown")
        etag = _etag(machine.pending if vendor.patch == "settings" else machine.current)
        if vendor.if_match and "if-match" not in headers:
            return error(428, "the header If-Match is missing")
        if headers.get("if-match") not in (None, "*", etag):
            return error(412, "the settings have changed")
        if machine.open_jobs:
            return error(400, "Pending configuration values are already committed")
        attributes = dict(content.get("Attributes", {}))
        if refusal := machine.refusal(attributes):
            return error(400, refusal)
        machine.patch(attributes)
        if vendor.apply_time != "job":
            return Reply(200, {})
        if not applies or machine.fault == "job-missing":
            return Reply(200, {})
        job = Job(f"JID_{len(machine.jobs) + 1}")
        machine.jobs.append(job)
        return Reply(202, None, {"Location": f"{TASKS}/{job.name}"})

    def _resources(self, machine: Machine) -> dict[str, dict[str, Any]]:
        assert isinstance(machine, VendorMachine)
        vendor = self.vendor
        settings: dict[str, Any] = {"SettingsObject": {"@odata.id": vendor.pending}}
        if vendor.apply_times:
            settings["SupportedApplyTimes"] = list(vendor.apply_times)
        listed = vendor.listed or vendor.registry
        path = f"/redfish/v1/Registries/{listed}"
        bios = {"Id": "Bios", "Attributes": machine.current, "@Redfish.Settings": settings}
        pending: dict[str, Any] = {"Id": vendor.settings, "Attributes": machine.pending}
        if vendor.shows == "all":
            pending["Attributes"] = machine.current | machine.pending
        elif vendor.shows == "none" and not machine.pending:
            del pending["Attributes"]
        if vendor.registry:
            bios["AttributeRegistry"] = vendor.registry
        resources: dict[str, dict[str, Any]] = {
            "/redfish/v1/Systems": {"Members": [{"@odata.id": vendor.system}]},
            vendor.system: {
                "SerialNumber": machine.serial,
                "Model": "Model",
                "BiosVersion": "1.0",
                "Bios": {"@odata.id": vendor.bios},
                "Actions": {
                    "#ComputerSystem.Reset": {
                        "target": f"{vendor.system}/Actions/ComputerSystem.Reset",
                        "ResetType@Redfish.AllowableValues": RESET_TYPES,
                    }
                },
            },
            vendor.bios: bios,
            vendor.pending: pending,
            "/redfish/v1/Registries": {"Members": [{"@odata.id": path}]},
            path: {"Location": [{"Language": "en", "Uri": f"{path}.json"}]},
            f"{path}.json": {"RegistryEntries": {"Attributes": _registry(machine)}},
        }
        if vendor.lock:
            place, keys, locked, unlocked = vendor.lock
            value: Any = locked if machine.fault == "lockdown" else unlocked
            for key in reversed(keys):
                value = {key: value}
            resources[place] = {**resources.get(place, {}), **value}
        return resources


def _registry(machine: VendorMachine) -> list[dict[str, Any]]:
    """Return the attributes; a lock and a profile make them read-only, as on iDRAC."""
    vendor = machine.vendor
    return [
        {
            "AttributeName": name,
            "Type": "Enumeration",
            "ReadOnly": vendor.apply_time == "job"
            and (machine.fault == "lockdown" or machine.is_read_only(name, machine.current)),
            "Value": [
                {
                    "ValueName": str(number) if vendor.numbered else value,
                    "ValueDisplayName": value,
                }
                for number, value in enumerate(vendor.values[name])
            ],
        }
        for name in machine.current
    ]


def _jobs(machine: VendorMachine, method: str, path: str) -> Reply:
    name = path.removeprefix(JOBS).strip("/")
    if name.startswith("?"):
        first = PAGE if "$skip" in name else 0
        page = machine.jobs[first : first + PAGE]
        count = len(machine.jobs) + (machine.fault == "jobs-cut")
        body = {"Members": [job.look() for job in page], "Members@odata.count": count}
        if len(machine.jobs) > first + PAGE:
            body["Members@odata.nextLink"] = f"{JOBS}{EXPAND}&$skip={PAGE}"
        return Reply(200, body)
    job = next((job for job in machine.jobs if job.name == name), None)
    if job is None:
        return error(404, f"no job {name}")
    if method == "GET":
        return Reply(200, job.look())
    if method != "DELETE" or job.state == "Running":
        return error(400, f"{name} cannot be deleted")
    machine.jobs.remove(job)
    machine.pending = {}
    return Reply(200, {})


def _etag(attributes: Mapping[str, Any]) -> str:
    content = json.dumps(attributes, sort_keys=True)
    return f'W/"{hashlib.sha256(content.encode()).hexdigest()[:12]}"'
