"""One emulated machine: what its firmware holds, what waits for the next boot, and its faults."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.emulators.bmc import node

FAULTS = {
    "unreachable": "nobody listens at the address",
    "wrong-password": "the BMC has another password",
    "expired": "its certificate has run out",
    "hang": "takes requests and never answers",
    "busy": "503 to everything",
    "busy-twice": "503 to the first two requests of each connection's start",
    "leak": "refuses with what it was sent in its message",
    "silent": "takes a setting and forgets it at the reset",
    "deaf": "takes a setting and does not even keep it as pending",
    "foreign": "somebody else's change waits",
    "race": "the settings change between the first look and the first PATCH",
    "stuck": "takes the reset and does nothing",
    "no-return": "the node does not come back",
    "other-mode": "the node comes back in a mode that nobody asked for",
    "wants-apply-time": "refuses settings without @Redfish.SettingsApplyTime",
    "no-registry": "has no attribute registry",
}
ENUMERATIONS: dict[str, dict[str, list[str]]] = {
    "knl": {
        "ClusterMode": ["All2All", "Hemisphere", "Quadrant", "SNC-2", "SNC-4"],
        "MemoryMode": ["Cache", "Flat", "Hybrid"],
        "MemoryModeHybridPercent": ["25", "50"],
        "Turbo": ["Enabled", "Disabled"],
    },
    "skl": {"SubNumaCluster": ["Enabled", "Disabled"], "Turbo": ["Enabled", "Disabled"]},
}
AS_DELIVERED: dict[str, dict[str, Any]] = {
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
OTHER: dict[str, dict[str, Any]] = {
    "knl": {"ClusterMode": "All2All", "MemoryMode": "Cache"},
    "skl": {"SubNumaCluster": "Enabled"},
}


def registry(shape: str) -> list[dict[str, Any]]:
    """Return the attributes as a registry of Redfish lists them."""
    listed: list[dict[str, Any]] = [
        {
            "AttributeName": name,
            "Type": "Enumeration",
            "ReadOnly": False,
            "Value": [{"ValueName": value, "ValueDisplayName": value} for value in values],
        }
        for name, values in ENUMERATIONS[shape].items()
    ]
    listed.append({"AttributeName": "BiosVersion", "Type": "String", "ReadOnly": True})
    timeout = {"AttributeName": "BootTimeout", "Type": "Integer", "ReadOnly": False}
    return [*listed, {**timeout, "LowerBound": 0, "UpperBound": 60}]


@dataclass
class Machine:
    """A machine; `folder` is where the node behind it lives."""

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

    def __post_init__(self) -> None:
        self.current = {**AS_DELIVERED[self.shape], **self.current}
        if self.fault == "foreign":
            self.pending["Turbo"] = "Disabled"
        self.folder.mkdir(parents=True, exist_ok=True)
        node.boot(self.folder, self.current, self.shape)

    def etag(self) -> str:
        """Return the tag of the settings as they are now."""
        content = json.dumps([self.version, self.pending], sort_keys=True)
        return f'"{hashlib.sha256(content.encode()).hexdigest()[:12]}"'

    def refusal(self, attributes: dict[str, Any]) -> str:
        """Return what is wrong with setting `attributes`, or nothing."""
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
        """Take settings for the next boot."""
        self.patches += 1
        if self.fault != "deaf":
            self.pending |= attributes
            self.pending = {
                name: value for name, value in self.pending.items() if self.current[name] != value
            }

    def go_down(self) -> None:
        """Let the node stop to answer."""
        self.resets += 1
        self.power = "Off"
        (self.folder / "down").touch()

    def come_up(self) -> None:
        """Boot with what was pending, unless a fault has it otherwise."""
        self.power = "On"
        if self.fault == "no-return":
            return
        if self.fault != "silent":
            self.current |= self.pending
        if self.fault == "other-mode":
            self.current |= OTHER[self.shape]
        self.pending = {}
        self.boots += 1
        node.boot(self.folder, self.current, self.shape)
