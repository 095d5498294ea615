"""The emulated BMC of sushy-tools with a BIOS. It needs requirements/bmc.txt.

sushy_bmc.py FOLDER ADDRESS PORT CERTIFICATE KEY USER PASSWORD NODE. FOLDER gets its state, NODE
has the files of an emulated node, which a restart boots. It imports nothing of the kit.
"""

from __future__ import annotations

import json
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import bcrypt  # type: ignore[import-not-found]
from sushy_tools.emulator import main  # type: ignore[import-not-found]
from sushy_tools.emulator.resources.systems import fakedriver  # type: ignore[import-not-found]

BIOS = {"ProcTurboMode": "Enabled", "QuietBoot": True, "BootMode": "Uefi"}
OFF_S = 0.5
LOG = "requests.log"
"""Each PATCH of the BIOS and each reset, a line each."""


class WithBios(fakedriver.FakeDriver):  # type: ignore[misc]
    """The fake driver, which has no BIOS; it applies a value at once."""

    folder: Path
    node: Path

    def get_bios(self, identity: str) -> dict[str, Any]:
        """Return the attributes."""
        return {**BIOS, **self._get(identity).get("bios", {})}

    def set_bios(self, identity: str, attributes: dict[str, Any]) -> None:
        """Set attributes."""
        self._note(json.dumps(attributes))
        self._update(identity, bios={**self._get(identity).get("bios", {}), **attributes})

    def set_power_state(self, identity: str, state: str) -> None:
        """Restart the node, too: it is off for a moment."""
        self._note(state)
        if "Restart" not in state:
            super().set_power_state(identity, state)
            return
        (self.node / "down").touch()
        self._update(identity, power_state="Off")
        threading.Timer(OFF_S, self._boot, (identity,)).start()

    def _boot(self, identity: str) -> None:
        self._update(identity, power_state="On")
        boot_id = self.node / "proc/sys/kernel/random/boot_id"
        boot_id.write_text(f"{uuid.uuid4()}\n")
        (self.node / "down").unlink()

    def _note(self, line: str) -> None:
        with (self.folder / LOG).open("a") as file:
            file.write(f"{line}\n")


def start() -> None:
    """Serve until a signal."""
    folder, address, port, certificate, key, user, password, node = sys.argv[1:]
    WithBios.folder, WithBios.node = Path(folder), Path(node)
    hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4, b"2a")).decode()
    users = WithBios.folder / "users"
    users.write_text(f"{user}:{hashed.replace('$2a', '$2y')}\n")
    system = {"uuid": str(uuid.uuid4()), "name": "node", "power_state": "On", "nics": []}
    settings = {
        "SUSHY_EMULATOR_AUTH_FILE": str(users),
        "SUSHY_EMULATOR_STATE_DIR": folder,
        "SUSHY_EMULATOR_FAKE_SYSTEMS": [system],
    }
    config = WithBios.folder / "emulator.conf"
    config.write_text("".join(f"{name} = {value!r}\n" for name, value in settings.items()))
    fakedriver.FakeDriver = WithBios
    tls = ["--ssl-certificate", certificate, "--ssl-key", key]
    sys.argv[1:] = ["--config", str(config), "-i", address, "-p", port, "--fake"]
    sys.argv += tls
    sys.exit(main.main())


if __name__ == "__main__":
    start()
