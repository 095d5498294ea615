"""A BMC that answers with given resources: small trees, written from facts of public dumps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.emulators.bmc.machine import Machine
from tests.emulators.bmc.reply import Reply
from tests.emulators.bmc.server import Emulator, error


class TreeEmulator(Emulator):
    """One emulated BMC with the resources of `tree`, by path; those of an `Emulator` are hidden."""

    def __init__(self, tree: Mapping[str, dict[str, Any]], folder: Path) -> None:
        self.tree = tree
        super().__init__(["n1"], folder, network=59)

    def answer(
        self,
        machine: Machine,
        method: str,
        path: str,
        headers: Mapping[str, str],
        content: Mapping[str, Any],
    ) -> Reply:
        """Return the resource at `path`."""
        resource = self.tree.get(path) if method == "GET" else None
        return Reply(200, resource) if resource is not None else error(404, f"no {path}")


def members(*paths: str, **further: Any) -> dict[str, Any]:
    """Return a collection of `paths`."""
    return {"Members": [{"@odata.id": path} for path in paths], **further}
