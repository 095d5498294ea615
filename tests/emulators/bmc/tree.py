"""A BMC that answers with given resources: small trees, written from facts of public dumps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.emulators.bmc.machine import Machine
from tests.emulators.bmc.reply import Reply
from tests.emulators.bmc.server import ROOT, Emulator

TREES = Path(__file__).with_name("trees.yml")
"""Machines of public dumps; the head of the file explains its texts."""


class TreeEmulator(Emulator):
    """One emulated BMC with the resources of `tree`, by path; those of an `Emulator` are hidden.

    `replies` are sent as they are.
    """

    def __init__(
        self,
        tree: Mapping[str, dict[str, Any]],
        folder: Path,
        replies: Mapping[str, Reply] | None = None,
    ) -> None:
        self.tree, self.replies = dict(tree), replies or {}
        super().__init__(["n1"], folder, network=59)

    def _resources(self, machine: Machine) -> dict[str, dict[str, Any]]:
        return {ROOT: {}, **self.tree}

    def _act(
        self,
        machine: Machine,
        method: str,
        path: str,
        headers: Mapping[str, str],
        content: Mapping[str, Any],
    ) -> Reply | None:
        return self.replies.get(path)  # it changes nothing


def members(*paths: str, **further: Any) -> dict[str, Any]:
    """Return a collection of `paths`."""
    return {"Members": [{"@odata.id": path} for path in paths], **further}


def machines() -> list[dict[str, Any]]:
    """Return the machines of `TREES`; the tree of each by whole paths."""
    found: list[dict[str, Any]] = yaml.load(TREES.read_text(), Loader=yaml.CSafeLoader)
    return [each | {"tree": _whole(each["tree"])} for each in found]


def _whole(tree: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    parts = ("Systems", "Chassis")
    links = {each: {"@odata.id": f"{ROOT}/{each}"} for each in parts}
    resources = {ROOT: {"Id": "RootService", "Name": "Root", "RedfishVersion": "1.6.0", **links}}
    for place, body in tree.items():
        path = f"{ROOT}{place}"
        names = {"@odata.id": path, "Id": place.rpartition("/")[2], "Name": place}
        resources[path] = {**names, **_expanded(body)}
    return resources


def _expanded(value: Any) -> Any:
    """Return `value` with its links and paths written out."""
    if isinstance(value, dict):
        return {key: _expanded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_expanded(each) for each in value]
    if isinstance(value, str) and value.startswith("@/"):
        return {"@odata.id": f"{ROOT}{value[1:]}"}
    return f"{ROOT}{value[1:]}" if isinstance(value, str) and value.startswith("=/") else value
