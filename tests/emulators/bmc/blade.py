"""A BMC of one or more nodes whose resources are a tree that changes: PATCH, reset, boot, task."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.emulators.bmc.machine import Machine
from tests.emulators.bmc.reply import Reply
from tests.emulators.bmc.server import ROOT, error
from tests.emulators.bmc.tree import TreeEmulator, members

REGISTRY = f"{ROOT}/Registries/Bios"
NAME = "BiosAttributeRegistryX7.v1_0_0"
TASKS = f"{ROOT}/TaskService/TaskMonitors/"
TASK_S = 0.4


@dataclass
class Answers:
    """How the BMC answers.

    Attributes:
        resets: the reset types that it executes.
        late: whether a change is pending only at the end of a task.
        task_ends: status and body of the task monitor at the end.
        location: of the task monitor, with ``{path}``; empty if the task in the body names it.
        loses: whether a task ends without its change.
        sent: the id of each system with each change and each reset type.
    """

    resets: Sequence[str] = ("ForceRestart",)
    late: bool = False
    task_ends: tuple[int, dict[str, Any] | None] = (204, None)
    location: str = "{path}"
    loses: bool = False
    sent: list[tuple[str, Any]] = field(default_factory=list)


class Blade(TreeEmulator):
    """The BMC at the first address; `nodes` has the files of each node by the id of its system."""

    def __init__(
        self, tree: dict[str, dict[str, Any]], folder: Path, nodes: Mapping[str, Path], how: Answers
    ) -> None:
        super().__init__(tree, folder)
        self.systems, self.how = nodes, how
        self._waits: dict[str, tuple[float, dict[str, Any]]] = {}

    def _act(
        self,
        machine: Machine,
        method: str,
        path: str,
        headers: Mapping[str, str],
        content: Mapping[str, Any],
    ) -> Reply | None:
        for system, (end, change) in [*self._waits.items()]:
            if time.monotonic() > end:
                del self._waits[system]
                if not self.how.loses:
                    self._take(change)
        if method == "PATCH":
            return self._change(path, content)
        if method == "POST":
            return self._reset(path.split("/")[4], str(content.get("ResetType")))
        if path.startswith(TASKS):
            running = Reply(202, {"TaskState": "Running"}, {"Retry-After": "1"})
            return (
                running if path.removeprefix(TASKS) in self._waits else Reply(*self.how.task_ends)
            )
        return None

    def _change(self, path: str, content: Mapping[str, Any]) -> Reply:
        attributes = content.get("Attributes", {})
        system = path.split("/")[4]
        self.how.sent.append((system, attributes))
        if not self.how.late:
            self._take({path: attributes})
            return Reply(200, {})
        self._waits[system] = (time.monotonic() + TASK_S, {path: attributes})
        monitor = f"{TASKS}{system}"
        location = self.how.location.format(path=monitor, name=system)
        headers = {"Location": location} if location else {}
        return Reply(202, None if headers else {"@odata.id": monitor, "TaskState": "New"}, headers)

    def _take(self, change: dict[str, Any]) -> None:
        for path, attributes in change.items():
            self.tree[path]["Attributes"] = {**self.tree[path]["Attributes"], **attributes}

    def _reset(self, system: str, kind: str) -> Reply:
        self.how.sent.append((system, kind))
        if kind not in self.how.resets:
            return error(400, f"{kind} is not in the list of acceptable values")
        bios = f"{ROOT}/Systems/{system}/Bios"
        pending = self.tree[f"{bios}/Settings"]
        self.tree[bios]["Attributes"] = {**self.tree[bios]["Attributes"], **pending["Attributes"]}
        pending["Attributes"] = {}
        boot_id = self.systems[system] / "proc/sys/kernel/random/boot_id"
        boot_id.write_text(f"{uuid.uuid4()}\n")
        return Reply(204)


def blade_tree(
    systems: Sequence[str], attributes: Mapping[str, Any], registry: Sequence[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the tree of a BMC whose reset types are in an action info, as on a DGX H100.

    Its registry is listed under another name than the BIOS has; only its file has this name, as
    with sushy-tools.

    Args:
        systems: the ids of the systems.
        attributes: the attributes of each BIOS, with their values.
        registry: the attributes of the registry.
    """
    file = f"{REGISTRY}/en.json"
    tree: dict[str, dict[str, Any]] = {
        f"{ROOT}/Systems": members(*(f"{ROOT}/Systems/{each}" for each in systems)),
        f"{ROOT}/Registries": members(f"{ROOT}/Registries/Base", REGISTRY),
        f"{ROOT}/Registries/Base": {"Id": "Base"},
        REGISTRY: {
            "Id": "Bios",
            "Registry": "BiosAttributeRegistry1.0",
            "Location": [{"Uri": file}],
        },
        file: {"Id": NAME, "RegistryEntries": {"Attributes": [*registry]}},
    }
    for name in systems:
        system = f"{ROOT}/Systems/{name}"
        info, settings = f"{system}/ResetActionInfo", f"{system}/Bios/Settings"
        types = ["On", "ForceOff", "ForceRestart", "GracefulShutdown"]
        tree |= {
            system: {
                "Id": name,
                "SerialNumber": f"S-{name}",
                "PowerState": "On",
                "Bios": {"@odata.id": f"{system}/Bios"},
                "Actions": {
                    "#ComputerSystem.Reset": {
                        "target": f"{system}/Actions/ComputerSystem.Reset",
                        "@Redfish.ActionInfo": info,
                    }
                },
            },
            info: {"Parameters": [{"Name": "ResetType", "AllowableValues": types}]},
            f"{system}/Bios": {
                "AttributeRegistry": NAME,
                "Attributes": dict(attributes),
                "@Redfish.Settings": {"SettingsObject": {"@odata.id": settings}},
            },
            settings: {"Attributes": {}},
        }
    return tree
