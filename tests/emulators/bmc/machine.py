"""One emulated machine: its firmware values, the values of its next boot, and its faults."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.emulators.bmc import http_faults, node

FAULTS = {
    "unreachable": "no process listens at the address",
    "wrong-password": "the BMC has another password",
    "expired": "the certificate of the BMC has expired",
    "hang": "the BMC accepts requests and never responds",
    "busy": "status 503 for each request",
    "busy-twice": "status 503 for the first two requests",
    "leak": "status 401; the message quotes the Authorization header",
    "silent": "the BMC accepts a setting, but the reset does not apply it",
    "partial": "the BMC accepts two settings, and one of them is not pending",
    "partial-once": "the same, and it refuses each later change",
    "patch-closes": "the BMC takes a change and closes the connection without an answer",
    "deaf": "the BMC accepts a setting, but the setting is not pending",
    "foreign": "a setting of another client is pending",
    "race": "the settings change between the first GET and the first PATCH",
    "stuck": "the BMC accepts the reset and does not execute it",
    "no-return": "the node does not boot after the reset",
    "other-mode": "the node boots in a mode that was not requested",
    "wants-apply-time": "the BMC refuses settings without @Redfish.SettingsApplyTime",
    "no-registry": "the BMC has no attribute registry",
    "race-foreign": "another client sets Turbo between the first GET and the first PATCH",
    "session-only": "status 401 for HTTP basic authentication, with another challenge",
    "session-address": "the location of a session is an address",
    "session-relative": "the location of a session is relative",
    "session-in-body": "a new session has no header Location",
    "reset-in-action-info": "the reset types are only in @Redfish.ActionInfo",
    "reset-unlisted": "the BMC lists no reset types",
    "reset-off-on": "the BMC lists no restart, but On and ForceOff",
    "reset-off-on-late": "the same; the host is off later, and On is refused until then",
    "reset-graceful-refused": "status 400 to GracefulRestart, although it is listed",
    "reset-refused": "status 400 to each reset type",
    "reset-task-fails": "status 202 to GracefulRestart, and its task fails",
    "host-off": "the BMC shows its host as off",
    "task": "status 202 to a change, which is pending some time later",
    "task-unnamed": "the same, and the response has no task monitor",
    "task-fails": "status 202 to a change, whose task fails some time later",
    "task-endless": "status 202 to a change, whose task does not end",
    "task-for-boot": "status 202 to a change, whose task waits for the next boot",
    "early": "the BMC shows new values as in effect before the boot",
    "early-stuck": "the same, and it accepts the reset and does not execute it",
    "settings-write-only": "status 405 to each GET of the settings",
    "no-settings": "the BIOS has no settings resource; the BIOS itself is changed",
    "busy-after-boot": "status 503 for some time after each boot",
    **http_faults.FAULTS,
}
TASK_S = 0.6
"""The time of a task in seconds."""
ENUMERATIONS: dict[str, dict[str, list[str]]] = {
    "knl": {
        "ClusterMode": ["All2All", "Hemisphere", "Quadrant", "SNC-2", "SNC-4"],
        "MemoryMode": ["Cache", "Flat", "Hybrid"],
        "MemoryModeHybridPercent": ["25", "50"],
        "Turbo": ["Enabled", "Disabled"],
    },
    "skl": {"SubNumaCluster": ["Enabled", "Disabled"], "Turbo": ["Enabled", "Disabled"]},
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "knl": {
        "ClusterMode": "Quadrant",
        "MemoryMode": "Flat",
        "MemoryModeHybridPercent": "25",
        "Turbo": "Enabled",
        "BootTimeout": 5,
        "BiosVersion": "S72C610.86B.01.02",
    },
    "skl": {
        "SubNumaCluster": "Disabled",
        "Turbo": "Enabled",
        "BootTimeout": 5,
        "BiosVersion": "SE5C620.86B.02.01",
    },
}
OTHER_MODE: dict[str, dict[str, Any]] = {
    "knl": {"ClusterMode": "All2All", "MemoryMode": "Cache"},
    "skl": {"SubNumaCluster": "Enabled"},
}


def registry(shape: str) -> list[dict[str, Any]]:
    """Return the attributes in the format of a Redfish attribute registry (DSP2046)."""
    enumerations: list[dict[str, Any]] = [
        {
            "AttributeName": name,
            "Type": "Enumeration",
            "ReadOnly": False,
            "Value": [{"ValueName": value, "ValueDisplayName": value} for value in values],
        }
        for name, values in ENUMERATIONS[shape].items()
    ]
    version = {"AttributeName": "BiosVersion", "Type": "String", "ReadOnly": True}
    timeout = {"AttributeName": "BootTimeout", "Type": "Integer", "ReadOnly": False}
    return [*enumerations, version, {**timeout, "LowerBound": 0, "UpperBound": 60}]


@dataclass
class Machine:
    """A machine with its BMC.

    Attributes:
        folder: the files of the node, see `tests.emulators.bmc.node`.
        fault: a key of `FAULTS`, or empty.
        current: the attributes in effect.
        pending: the attributes that the next boot changes.
        version: the number of changes by another client.
        serial: the serial number of the board.
        sensors: ``Power`` for the resources Power and Thermal, ``EnvironmentMetrics`` for those
            that replace them, or empty.
        task_end: the time at which its task ends.
        busy_until: the time until which it answers with status 503.
        sent: the reset types that it received.
        watts: the power that it measures.
        celsius: the temperature of its hottest processor.
    """

    name: str
    folder: Path
    shape: str = "knl"
    fault: str = ""
    current: dict[str, Any] = field(default_factory=dict)
    pending: dict[str, Any] = field(default_factory=dict)
    power: str = "On"
    boots: int = 0
    resets: int = 0
    patches: int = 0
    requests: int = 0
    connections: int = 0
    version: int = 0
    serial: str = ""
    sensors: str = "Power"
    task_end: float = 0.0
    busy_until: float = 0.0
    sent: list[str] = field(default_factory=list)
    watts: Any = 211.5
    celsius: Any = 61

    def __post_init__(self) -> None:
        self.serial = self.serial or f"SN-{self.name}"
        self.current = {**DEFAULTS[self.shape], **self.current}
        if self.fault == "foreign":
            self.pending["Turbo"] = "Disabled"
        self.folder.mkdir(parents=True, exist_ok=True)
        node.boot(self.folder, self.current, self.shape, self.serial)

    def etag(self) -> str:
        """Return the ETag of the pending settings."""
        content = json.dumps([self.version, self.pending], sort_keys=True)
        return f'"{hashlib.sha256(content.encode()).hexdigest()[:12]}"'

    def refusal(self, attributes: dict[str, Any]) -> str:
        """Return why `attributes` cannot be set; empty if they can."""
        known = {item["AttributeName"]: item for item in registry(self.shape)}
        for name, value in attributes.items():
            item = known.get(name)
            if item is None:
                return f"The property {name} is not in the list of valid properties"
            if item["ReadOnly"]:
                return f"The property {name} is read-only"
            if name in ENUMERATIONS[self.shape] and value not in ENUMERATIONS[self.shape][name]:
                return f"The value {value} of {name} is not in the list"
        return ""

    def patch(self, attributes: dict[str, Any]) -> None:
        """Set attributes for the next boot."""
        self.patches += 1
        if self.fault != "deaf":
            self.pending |= attributes
            self.pending = {
                name: value for name, value in self.pending.items() if self.current[name] != value
            }

    def go_down(self) -> None:
        """Switch the node off: it can no longer be reached."""
        self.resets += 1
        self.power = "Off"
        (self.folder / "down").touch()

    def come_up(self) -> None:
        """Boot the node with the pending settings, or as the fault requires."""
        self.power = "On"
        if self.fault == "no-return":
            return
        if self.fault != "silent":
            self.current |= self.pending
        if self.fault == "other-mode":
            self.current |= OTHER_MODE[self.shape]
        self.pending = {}
        self.boots += 1
        node.boot(self.folder, self.current, self.shape, self.serial)
