"""Back end for Redfish (DMTF DSP0266; BIOS and settings: DSP2046) over HTTPS to each node's BMC.

Settings are checked against the attribute registry before a change: BMCs, and tools in front of
them, may accept a misspelt attribute without an error. Current values and values of the next boot
are read separately.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from proofmark.common.errors import nearest
from proofmark.machine.bmc.back_end import BackEnd, BackEndContext, only
from proofmark.machine.bmc.client import (
    ConnectionPool,
    ConnectionSettings,
    RedfishConnection,
    tls_context,
)
from proofmark.machine.bmc.model import (
    AttributeSpec,
    FirmwareState,
    Host,
    foreign_pending,
    format_settings,
)
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import Settings

ROOT = "/redfish/v1"
RESET_TYPES = ("GracefulRestart", "ForceRestart", "PowerCycle")
"""The first one that the BMC offers is used; the node is drained before the reset."""
PRECONDITION_FAILED = 412
PATCH_ATTEMPTS = 3
"""How often a PATCH is sent if another client changes the settings at the same time."""
APPLY_TIME = {
    "@odata.type": "#Settings.v1_3_0.PreferredApplyTime",
    "ApplyTime": "OnReset",
}


class Redfish(BackEnd):
    """Changes BIOS attributes by Redfish; nodes with the same attribute registry share one copy."""

    sets = True
    drains = True
    reads_current_values = True

    def __init__(self, context: BackEndContext) -> None:
        firmware = context.firmware
        self._system, self._reset_type = firmware.system, firmware.reset_type
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
        self._systems: dict[str, str] = {}
        self._registries: dict[str, Mapping[str, AttributeSpec]] = {}
        self._registry_locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Return the BIOS attributes and the pending settings of the system."""
        with self._pool.connection(host.address) as bmc:
            system = bmc.get(self._path_of_system(bmc)).body
            path = _link(system, "Bios")
            bios = bmc.get(path).body
            annotation = bios.get("@Redfish.Settings") or {}
            settings = _link(annotation, "SettingsObject")
            next_boot = bmc.get(settings)
            current, pending = _values(bios), _pending(bios, next_boot.body)
            times = annotation.get("SupportedApplyTimes")
            if times and "OnReset" not in times:
                offered = ", ".join(map(str, times))
                problem = f"the BMC applies settings {offered}; needed: OnReset"
                raise NodeError(Outcome.REFUSED, problem)
            action = (system.get("Actions") or {}).get("#ComputerSystem.Reset") or {}
            return FirmwareState(
                current=only(current, wanted),
                pending=pending,
                offers=self._offers(bmc, bios),
                handle={
                    "bios": path,
                    "settings": settings,
                    "etag": next_boot.etag,
                    "apply_time": "OnReset" if times else "",
                    "reset": str(action.get("target", "")),
                    "reset_type": self._chosen_reset_type(action),
                },
            )

    def stage(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """PATCH the settings, unless another client has changed them since `read`."""
        path, etag = state.handle["settings"], state.handle["etag"]
        content: dict[str, Any] = {"Attributes": dict(wanted)}
        if state.handle["apply_time"]:
            content["@Redfish.SettingsApplyTime"] = APPLY_TIME
        accept = (200, 202, 204, PRECONDITION_FAILED)
        with self._pool.connection(host.address) as bmc:
            for _ in range(PATCH_ATTEMPTS):
                if not etag:
                    etag = self._new_etag(bmc, state, wanted)
                match = {"If-Match": etag} if etag else {}
                if bmc.request("PATCH", path, content, match, accept).status != PRECONDITION_FAILED:
                    break
                etag = ""
            else:
                problem = f"changed by another client at each of {PATCH_ATTEMPTS} attempts"
                raise NodeError(Outcome.UNEXPECTED, f"{path}: {problem}")
            next_boot = {**state.current, **(bmc.get(path).body.get("Attributes") or {})}
        missing = {name: value for name, value in wanted.items() if next_boot.get(name) != value}
        if missing:
            problem = f"accepted and not pending: {format_settings(missing)}"
            raise NodeError(Outcome.NOT_APPLIED, problem)

    def _new_etag(self, bmc: RedfishConnection, state: FirmwareState, wanted: Settings) -> str:
        """Return the present ETag of the settings, if no other client has changed them."""
        response = bmc.get(state.handle["settings"])
        pending = _pending(bmc.get(state.handle["bios"]).body, response.body)
        requested = {*state.pending.items(), *wanted.items()}
        if foreign := foreign_pending(FirmwareState(current={}, pending=pending), requested):
            problem = f"another client has set since the check: {format_settings(foreign)}"
            raise NodeError(Outcome.FOREIGN_PENDING, problem)
        return response.etag

    def reset(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """POST the reset."""
        if not state.handle["reset"]:
            raise NodeError(Outcome.REFUSED, "the system has no reset action")
        with self._pool.connection(host.address) as bmc:
            content = {"ResetType": state.handle["reset_type"]}
            bmc.request("POST", state.handle["reset"], content, accept=(200, 202, 204))

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Return the BIOS attributes that are in effect."""
        with self._pool.connection(host.address) as bmc:
            system = bmc.get(self._path_of_system(bmc)).body
            return only(_values(bmc.get(_link(system, "Bios")).body), wanted)

    def _path_of_system(self, bmc: RedfishConnection) -> str:
        if self._system:
            return f"{ROOT}/Systems/{self._system}"
        if bmc.address not in self._systems:
            members = bmc.get(f"{ROOT}/Systems").body.get("Members") or []
            if len(members) != 1:
                problem = f"the BMC has {len(members)} systems; set firmware.system to one of them"
                raise NodeError(Outcome.UNEXPECTED, problem)
            self._systems[bmc.address] = _link({"member": members[0]}, "member")
        return self._systems[bmc.address]

    def _chosen_reset_type(self, action: Mapping[str, Any]) -> str:
        offered = action.get("ResetType@Redfish.AllowableValues") or list(RESET_TYPES)
        accepted = (self._reset_type,) if self._reset_type else RESET_TYPES
        chosen = next((kind for kind in accepted if kind in offered), None)
        if chosen is None:
            hint = nearest(accepted[0], offered)
            problem = f"no reset type {accepted[0]!r}{hint}; offered: {', '.join(offered)}"
            raise NodeError(Outcome.REFUSED, problem)
        return chosen

    def _offers(
        self, bmc: RedfishConnection, bios: Mapping[str, Any]
    ) -> Mapping[str, AttributeSpec]:
        name = str(bios.get("AttributeRegistry") or "")
        if not name:
            problem = "no attribute registry: settings cannot be checked"
            raise NodeError(Outcome.REFUSED, problem)
        with self._guard:
            lock = self._registry_locks.setdefault(name, threading.Lock())
        with lock:
            if name not in self._registries:
                self._registries[name] = _registry(bmc, name)
        return self._registries[name]


def _registry(bmc: RedfishConnection, name: str) -> dict[str, AttributeSpec]:
    response = bmc.request("GET", f"{ROOT}/Registries/{name}", accept=(200, 404))
    if response.status != 200:
        # Some BMCs list a registry without the last part of its version.
        members = bmc.get(f"{ROOT}/Registries").body.get("Members") or []
        paths = [_link({"member": member}, "member") for member in members]
        matches = [path for path in paths if name.startswith(path.rpartition("/")[2])]
        if not matches:
            problem = f"no attribute registry {name}: settings cannot be checked"
            raise NodeError(Outcome.REFUSED, problem)
        response = bmc.get(max(matches, key=len))
    location = response.body.get("Location", [])
    uri = next((str(item["Uri"]) for item in location if "Uri" in item), "")
    if not uri:
        problem = f"registry {name} has no file: settings cannot be checked"
        raise NodeError(Outcome.REFUSED, problem)
    entries = bmc.get(uri).body.get("RegistryEntries") or {}
    return {
        str(item["AttributeName"]): _attribute_spec(item) for item in entries.get("Attributes", [])
    }


def _attribute_spec(item: Mapping[str, Any]) -> AttributeSpec:
    values = tuple(value["ValueName"] for value in item.get("Value") or [])
    if item.get("Type") == "Boolean":
        values = (True, False)
    return AttributeSpec(
        bool(item.get("ReadOnly")), values, item.get("LowerBound"), item.get("UpperBound")
    )


def _link(body: Mapping[str, Any], name: str) -> str:
    target = body.get(name)
    if not isinstance(target, dict) or not isinstance(target.get("@odata.id"), str):
        raise NodeError(Outcome.UNEXPECTED, f"the response has no link to {name}")
    return str(target["@odata.id"])


def _values(body: Mapping[str, Any]) -> dict[str, Any]:
    attributes = body.get("Attributes")
    if not isinstance(attributes, dict):
        raise NodeError(Outcome.UNEXPECTED, "the BIOS resource has no attributes")
    return attributes


def _pending(bios: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the next boot changes.

    Some BMCs list all attributes in the settings resource, others only the changed ones.
    """
    current = _values(bios)
    next_boot = settings.get("Attributes") or {}
    return {name: value for name, value in next_boot.items() if current.get(name) != value}
