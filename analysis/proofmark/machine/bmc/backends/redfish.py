"""Redfish (DMTF DSP0266, BIOS and settings: DSP2046), over HTTPS to each node's BMC.

No change before the attribute registry has been asked: BMCs, and tools in front of them, may take a
misspelt attribute without a word. Values of now and values of the next boot are told apart.
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
from proofmark.machine.bmc.model import AttributeSpec, FirmwareState, Host, foreign_pending
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import Settings

ROOT = "/redfish/v1"
GENTLE = ("GracefulRestart", "ForceRestart", "PowerCycle")
"""In this order, as far as the BMC offers them; the node is drained by then."""
PRECONDITION_FAILED = 412
CHANGED_MEANWHILE = 3
"""How often a setting that changes under our hands is tried."""
APPLY_TIME = {
    "@odata.type": "#Settings.v1_3_0.PreferredApplyTime",
    "ApplyTime": "OnReset",
}


class Redfish(BackEnd):
    """The verbs over kept lines; registries are read once for all machines that name the same."""

    sets = True
    drains = True
    reads_current_values = True

    def __init__(self, context: BackEndContext) -> None:
        firmware = context.firmware
        self._system, self._reset_type = firmware.system, firmware.reset_type
        self._lines = ConnectionPool(
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
        self._reading: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Read the system, its BIOS and the settings that wait."""
        with self._lines.to(host.address) as bmc:
            system = bmc.get(self._path_of_system(bmc)).body
            path = _link(system, "Bios")
            bios = bmc.get(path).body
            told = bios.get("@Redfish.Settings") or {}
            settings = _link(told, "SettingsObject")
            waiting = bmc.get(settings)
            current, pending = _values(bios), _pending(bios, waiting.body)
            times = told.get("SupportedApplyTimes")
            if times and "OnReset" not in times:
                offered = ", ".join(map(str, times))
                raise NodeError(Outcome.REFUSED, f"applies settings {offered}; needed: OnReset")
            action = (system.get("Actions") or {}).get("#ComputerSystem.Reset") or {}
            return FirmwareState(
                current=only(current, wanted),
                pending=pending,
                offers=self._offers(bmc, bios),
                handle={
                    "bios": path,
                    "settings": settings,
                    "etag": waiting.etag,
                    "apply_time": "OnReset" if times else "",
                    "reset": str(action.get("target", "")),
                    "reset_type": self._restart(action),
                },
            )

    def stage(self, host: Host, reading: FirmwareState, wanted: Settings) -> None:
        """PATCH the settings, unless somebody else changed them since we looked."""
        path, etag = reading.handle["settings"], reading.handle["etag"]
        content: dict[str, Any] = {"Attributes": dict(wanted)}
        if reading.handle["apply_time"]:
            content["@Redfish.SettingsApplyTime"] = APPLY_TIME
        accept = (200, 202, 204, PRECONDITION_FAILED)
        with self._lines.to(host.address) as bmc:
            for _ in range(CHANGED_MEANWHILE):
                if not etag:
                    etag = self._look_again(bmc, reading, wanted)
                match = {"If-Match": etag} if etag else {}
                if bmc.ask("PATCH", path, content, match, accept).status != PRECONDITION_FAILED:
                    break
                etag = ""
            else:
                times = f"{CHANGED_MEANWHILE} times"
                raise NodeError(Outcome.UNEXPECTED, f"{path}: changed under our hands {times}")
            next_boot = {**reading.current, **(bmc.get(path).body.get("Attributes") or {})}
        missing = {name: value for name, value in wanted.items() if next_boot.get(name) != value}
        if missing:
            raise NodeError(Outcome.NOT_APPLIED, f"accepted and not pending: {_told(missing)}")

    def _look_again(self, bmc: RedfishConnection, reading: FirmwareState, wanted: Settings) -> str:
        """Return the tag of the settings as they are now, if nobody else has changed them."""
        there = bmc.get(reading.handle["settings"])
        pending = _pending(bmc.get(reading.handle["bios"]).body, there.body)
        ours = {*reading.pending.items(), *wanted.items()}
        if others := foreign_pending(FirmwareState(current={}, pending=pending), ours):
            raise NodeError(Outcome.FOREIGN_PENDING, f"since we looked: {_told(others)}")
        return there.etag

    def reset(self, host: Host, reading: FirmwareState, wanted: Settings) -> None:
        """POST the reset."""
        if not reading.handle["reset"]:
            raise NodeError(Outcome.REFUSED, "the system has no action to reset it")
        with self._lines.to(host.address) as bmc:
            how = {"ResetType": reading.handle["reset_type"]}
            bmc.ask("POST", reading.handle["reset"], how, accept=(200, 202, 204))

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Read the BIOS attributes that act now."""
        with self._lines.to(host.address) as bmc:
            system = bmc.get(self._path_of_system(bmc)).body
            return only(_values(bmc.get(_link(system, "Bios")).body), wanted)

    def _path_of_system(self, bmc: RedfishConnection) -> str:
        if self._system:
            return f"{ROOT}/Systems/{self._system}"
        if bmc.address not in self._systems:
            members = bmc.get(f"{ROOT}/Systems").body.get("Members") or []
            if len(members) != 1:
                found = f"{len(members)} systems; firmware.system says which is the node"
                raise NodeError(Outcome.UNEXPECTED, found)
            self._systems[bmc.address] = _link({"member": members[0]}, "member")
        return self._systems[bmc.address]

    def _restart(self, action: Mapping[str, Any]) -> str:
        offered = action.get("ResetType@Redfish.AllowableValues") or list(GENTLE)
        asked = (self._reset_type,) if self._reset_type else GENTLE
        chosen = next((kind for kind in asked if kind in offered), None)
        if chosen is None:
            hint = nearest(asked[0], offered)
            raise NodeError(Outcome.REFUSED, f"no reset {asked[0]!r}{hint}: {', '.join(offered)}")
        return chosen

    def _offers(
        self, bmc: RedfishConnection, bios: Mapping[str, Any]
    ) -> Mapping[str, AttributeSpec]:
        name = str(bios.get("AttributeRegistry") or "")
        if not name:
            raise NodeError(Outcome.REFUSED, "no attribute registry: nothing can be checked")
        with self._guard:
            alone = self._reading.setdefault(name, threading.Lock())
        with alone:
            if name not in self._registries:
                self._registries[name] = _registry(bmc, name)
        return self._registries[name]


def _registry(bmc: RedfishConnection, name: str) -> dict[str, AttributeSpec]:
    where = bmc.ask("GET", f"{ROOT}/Registries/{name}", accept=(200, 404))
    if where.status != 200:
        # Some BMCs file a registry without the last part of its version.
        members = bmc.get(f"{ROOT}/Registries").body.get("Members") or []
        paths = [_link({"member": member}, "member") for member in members]
        near = [path for path in paths if name.startswith(path.rpartition("/")[2])]
        if not near:
            raise NodeError(
                Outcome.REFUSED, f"no attribute registry {name}: nothing can be checked"
            )
        where = bmc.get(max(near, key=len))
    uri = next((str(item["Uri"]) for item in where.body.get("Location", []) if "Uri" in item), "")
    if not uri:
        raise NodeError(Outcome.REFUSED, f"registry {name} has no file: nothing can be checked")
    entries = bmc.get(uri).body.get("RegistryEntries") or {}
    return {str(item["AttributeName"]): _offer(item) for item in entries.get("Attributes", [])}


def _offer(item: Mapping[str, Any]) -> AttributeSpec:
    values = tuple(value["ValueName"] for value in item.get("Value") or [])
    if item.get("Type") == "Boolean":
        values = (True, False)
    return AttributeSpec(
        bool(item.get("ReadOnly")), values, item.get("LowerBound"), item.get("UpperBound")
    )


def _link(body: Mapping[str, Any], name: str) -> str:
    target = body.get(name)
    if not isinstance(target, dict) or not isinstance(target.get("@odata.id"), str):
        raise NodeError(Outcome.UNEXPECTED, f"an answer without a link to {name}")
    return str(target["@odata.id"])


def _values(body: Mapping[str, Any]) -> dict[str, Any]:
    attributes = body.get("Attributes")
    if not isinstance(attributes, dict):
        raise NodeError(Outcome.UNEXPECTED, "a BIOS without attributes")
    return attributes


def _pending(bios: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the next boot changes: some BMCs list all attributes there, some the changed."""
    current = _values(bios)
    waiting = settings.get("Attributes") or {}
    return {name: value for name, value in waiting.items() if current.get(name) != value}


def _told(settings: Settings) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
