"""Back end for Redfish (DMTF DSP0266; BIOS and settings: DSP2046) over HTTPS to each node's BMC.

Settings are checked against the attribute registry before a change: BMCs, and tools in front of
them, may accept a misspelt attribute without an error. Current values and values of the next boot
are read separately.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

from proofmark.common.errors import nearest
from proofmark.machine.bmc.attribute_registry import (
    ROOT,
    Registry,
    doubtful,
    path_of_member,
    read_registry,
)
from proofmark.machine.bmc.back_end import BackEnd, BackEndContext
from proofmark.machine.bmc.blocks import blocking
from proofmark.machine.bmc.bmc_model import (
    AttributeSpec,
    FirmwareState,
    Host,
    foreign_pending,
    format_settings,
    to_change,
)
from proofmark.machine.bmc.client import (
    REQUESTS_OF_AN_OPERATION,
    ConnectionPool,
    ConnectionSettings,
    RedfishConnection,
)
from proofmark.machine.bmc.config_jobs import ConfigJobs
from proofmark.machine.bmc.etags import Etags, conditions
from proofmark.machine.bmc.json_body import Part
from proofmark.machine.bmc.tls import tls_context
from proofmark.machine.bmc.vendor_settings import offered_names, resolve, settable, unlocked
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.bmc_vendors.vendor_model import BmcVendor, vendor
from proofmark.site.firmware import Firmware, Settings

REGISTRY = re.compile(r"[\w.+-]+", re.ASCII)
"""The name of an attribute registry, which becomes a part of a path."""
RESET_TYPES = ("GracefulRestart", "ForceRestart", "PowerCycle")
"""The first one that the BMC offers is used; the node is drained before the reset."""
PRECONDITION = (412, 428)
"""The precondition of a request failed, or is missing (RFC 9110, RFC 6585)."""
PATCH_ATTEMPTS = 3
"""How often a PATCH is sent in one form if the ETag of the settings changes each time."""
APPLY_TIME = {
    "@odata.type": "#Settings.v1_3_0.PreferredApplyTime",
    "ApplyTime": "OnReset",
}

GENERIC = BmcVendor(title="Redfish", sources=["DMTF DSP2046"], apply_time=True, settings={})
"""A BMC whose vendor the inventory does not name."""


class Redfish(BackEnd):
    """Changes BIOS attributes by Redfish; nodes with the same attribute registry share one copy.

    What differs between vendors is data (`proofmark.site.bmc_vendors`).
    """

    sets = True
    drains = True
    reads_current_values = True
    uses_bmcs = True

    def __init__(self, context: BackEndContext) -> None:
        firmware = context.firmware
        self._system, self._reset_type = firmware.system, firmware.reset_type
        self._timeout_s = firmware.timeout_s
        self._pool = ConnectionPool(
            ConnectionSettings(
                tls_context(firmware.ca, verify=firmware.verify_tls),
                firmware.port,
                context.credentials,
                firmware.timeout_s,
                firmware.max_attempts,
                session=firmware.auth == "session",
            )
        )
        self._vendor = vendor(firmware.vendor) if firmware.vendor else GENERIC
        self._jobs = _config_jobs(self._vendor, firmware)
        self._job_names: dict[str, str] = {}
        self._systems: dict[str, str] = {}
        self._registries: dict[str, Registry] = {}
        self._registry_locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Return the BIOS attributes and the pending settings of the system."""
        with self._pool.connection(host.address) as bmc:
            system = bmc.get(self._path_of_system(bmc)).body
            path = system.link("Bios")
            response = bmc.get(path)
            bios = response.body
            annotation = bios.part("@Redfish.Settings")
            settings = annotation.link("SettingsObject")
            next_boot = bmc.get(settings)
            times = annotation.texts("SupportedApplyTimes")
            if times and "OnReset" not in times:
                offered = ", ".join(times)
                problem = f"the BMC applies settings {offered}; needed: OnReset"
                raise NodeError(Outcome.REFUSED, problem)
            offers = self._offers(bmc, system, bios, wanted)
            names = {**wanted, **offered_names(self._vendor, offers)}
            pending, blocked = _pending(bios, next_boot.body), blocking(bmc, self._vendor.blocks)
            jobs = self._jobs.active(bmc) if self._jobs else []
            if running := [job.name for job in jobs if job.running]:
                blocked = blocked or f"job {', '.join(running)} runs now"
            foreign = [job for job in jobs if not job.running and not (job.sets_bios and pending)]
            pending |= {f"job {job.name} ({job.kind})": job.state for job in foreign}
            action = system.part("Actions").part("#ComputerSystem.Reset")
            patch = next_boot if self._vendor.patch == "settings" else response
            return FirmwareState(
                current=bios.settings("Attributes", names),
                pending=pending,
                offers=unlocked(self._vendor, offers),
                serial=system.text("SerialNumber").strip() or system.text("UUID").strip(),
                handle={
                    "bios": path,
                    "settings": settings,
                    "patch": settings if self._vendor.patch == "settings" else path,
                    "etag": patch.etag,
                    "body_etag": patch.body_etag,
                    "apply_time": "OnReset" if times and self._vendor.apply_time else "",
                    "jobs": " ".join(job.name for job in jobs if job.sets_bios and not job.running),
                    "reset": action.path("target"),
                    "reset_type": self._chosen_reset_type(action),
                },
                blocked=blocked,
            )

    def attributes(self, state: FirmwareState, settings: Mapping[str, str]) -> Settings:
        """Return the vendor's attributes that the registry offers and the BIOS reports."""
        offers = state.offers or {}
        reported = {name: offers[name] for name in state.current if name in offers}
        return resolve(self._vendor, settings, reported, state.current)

    def stage(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """PATCH the settings, unless another client has changed them since `read`.

        A waiting job of this kit is deleted first, and the job of the change is awaited.
        """
        with self._pool.connection(host.address) as bmc:
            deleted = state.handle["jobs"].split()
            if self._jobs:
                self._jobs.delete(bmc, deleted)
            sent = settable(self._vendor, wanted, state.current)
            if not deleted or to_change(state, wanted):
                location = self._patch(bmc, state, sent)
                if self._jobs:
                    self._job_names[host.address] = self._jobs.await_ready(bmc, location)
            staged = bmc.get(state.handle["settings"]).body.part("Attributes").content
            next_boot = {**state.current, **staged}
        missing = {name: value for name, value in sent.items() if next_boot.get(name) != value}
        if missing:
            problem = f"accepted and not pending: {format_settings(missing)}"
            raise NodeError(Outcome.NOT_APPLIED, problem)

    def _patch(self, bmc: RedfishConnection, state: FirmwareState, sent: Settings) -> str:
        """PATCH the settings; return the location of the job, if the response has one."""
        path = state.handle["patch"]
        content: dict[str, Any] = {"Attributes": dict(sent)}
        if state.handle["apply_time"]:
            content["@Redfish.SettingsApplyTime"] = APPLY_TIME
        etags = Etags(state.handle["etag"], state.handle["body_etag"])
        if not any(etags):
            etags = self._new_etags(bmc, state, sent)
        form = changes = 0
        while form < len(conditions(etags)):
            response = bmc.request(
                "PATCH", path, content, conditions(etags)[form], (200, 202, 204, *PRECONDITION)
            )
            if response.status not in PRECONDITION:
                return response.location
            # If another client had set something, this would raise FOREIGN_PENDING. So either the
            # ETag has another reason to change, or the BMC does not accept this form of it.
            now = self._new_etags(bmc, state, sent)
            changes += now != etags
            form += now == etags or changes >= PATCH_ATTEMPTS
            etags = now
        problem = (
            f"status {response.status} to each form of its ETag; nothing was changed meanwhile"
        )
        raise NodeError(Outcome.UNEXPECTED, f"{path}: {problem}")

    def _new_etags(self, bmc: RedfishConnection, state: FirmwareState, wanted: Settings) -> Etags:
        """Return the present ETags of the settings, if no other client has changed them.

        Raises:
            NodeError: FOREIGN_PENDING: another client has changed them since `read`.
        """
        settings, bios = bmc.get(state.handle["settings"]), bmc.get(state.handle["bios"])
        pending = _pending(bios.body, settings.body)
        requested = {*state.pending.items(), *wanted.items()}
        if foreign := foreign_pending(FirmwareState(current={}, pending=pending), requested):
            problem = f"another client has set since the check: {format_settings(foreign)}"
            raise NodeError(Outcome.FOREIGN_PENDING, problem)
        patch = settings if self._vendor.patch == "settings" else bios
        return Etags(patch.etag, patch.body_etag)

    def reset(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """POST the reset."""
        if not state.handle["reset"]:
            raise NodeError(Outcome.REFUSED, "the system has no reset action")
        with self._pool.connection(host.address) as bmc:
            content = {"ResetType": state.handle["reset_type"]}
            bmc.request("POST", state.handle["reset"], content, accept=(200, 202, 204))

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Return the BIOS attributes that are in effect, after the job that sets them."""
        with self._pool.connection(host.address) as bmc:
            if self._jobs:
                self._jobs.await_end(bmc, self._job_names.pop(host.address, ""))
            system = bmc.get(self._path_of_system(bmc)).body
            return bmc.get(system.link("Bios")).body.settings("Attributes", wanted)

    def _path_of_system(self, bmc: RedfishConnection) -> str:
        if self._system:
            return f"{ROOT}/Systems/{self._system}"
        if bmc.address not in self._systems:
            members = bmc.get(f"{ROOT}/Systems").body.items("Members")
            if len(members) != 1:
                problem = f"the BMC has {len(members)} systems; set firmware.system to one of them"
                raise NodeError(Outcome.UNEXPECTED, problem)
            self._systems[bmc.address] = path_of_member(members[0])
        return self._systems[bmc.address]

    def _chosen_reset_type(self, action: Part) -> str:
        offered = action.texts("ResetType@Redfish.AllowableValues") or list(RESET_TYPES)
        accepted = (self._reset_type,) if self._reset_type else RESET_TYPES
        chosen = next((kind for kind in accepted if kind in offered), None)
        if chosen is None:
            hint = nearest(accepted[0], offered)
            problem = f"no reset type {accepted[0]!r}{hint}; offered: {', '.join(offered)}"
            raise NodeError(Outcome.REFUSED, problem)
        return chosen

    def _offers(
        self, bmc: RedfishConnection, system: Part, bios: Part, wanted: Settings
    ) -> dict[str, AttributeSpec]:
        name = bios.text("AttributeRegistry") or self._vendor.registry
        if not name or not REGISTRY.fullmatch(name):
            problem = f"no attribute registry {name!r:.80}: settings cannot be checked"
            raise NodeError(Outcome.REFUSED, problem)
        # Some BMCs have the same name for the registries of all their systems.
        key = f"{name} {system.text('Model')} {system.text('BiosVersion')}"
        with self._guard:
            lock = self._registry_locks.setdefault(key, threading.Lock())
        # The first node reads the registry while the others wait, but not for a slow BMC.
        locked = lock.acquire(timeout=self._timeout_s)
        try:
            shared = self._registries.get(key)
            reported = offered_names(self._vendor, bios.part("Attributes").content)
            if shared and not reported.keys() <= shared.specs.keys():
                return read_registry(bmc, name, self._vendor)  # another BIOS, under the same name
            if shared is None or doubtful(shared, bmc.address, wanted):
                own = read_registry(bmc, name, self._vendor)
                confirmed = shared is not None and shared.specs == own
                self._registries[key] = Registry(own, bmc.address, confirmed)
                return own
            return shared.specs
        finally:
            if locked:
                lock.release()


def _config_jobs(vendor: BmcVendor, firmware: Firmware) -> ConfigJobs | None:
    if vendor.jobs is None:
        return None
    # A wait is a part of an operation, which has a limit of its own.
    limit_s = min(firmware.reset_timeout_s, firmware.timeout_s * REQUESTS_OF_AN_OPERATION / 2)
    return ConfigJobs(vendor.jobs, min(firmware.poll_s, limit_s / 10), limit_s)


def _pending(bios: Part, settings: Part) -> dict[str, Any]:
    """Return the values that the next boot changes.

    Some BMCs list all attributes in the settings resource, others only the changed ones.
    """
    current = bios.required("Attributes").content
    next_boot = settings.part("Attributes").content
    return {name: value for name, value in next_boot.items() if current.get(name) != value}
