"""What sushy reads from one BMC, as JSON: an independent reader. It needs requirements/bmc.txt.

sushy_readings.py ADDRESS CA USER PASSWORD. It imports nothing of the kit.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import sushy  # type: ignore[import-not-found]
from sushy import auth, exceptions


def main() -> None:
    """Print reset types and the hottest processor in °C by the id of each system."""
    address, ca, user, password = sys.argv[1:]
    login = auth.BasicAuth(username=user, password=password)
    root = sushy.Sushy(f"https://{address}", auth=login, verify=ca)
    print(json.dumps({each.identity: reading(each) for each in systems(root)}))


def systems(root: Any) -> Any:
    """Return the systems of a BMC."""
    return root.get_system_collection().get_members()


def reading(system: Any) -> dict[str, Any]:
    """Return the reset types of a system, and the hottest processor of its first chassis."""
    found: dict[str, Any] = {"resets": [], "celsius": None}
    try:
        found["resets"] = [each.value for each in system.get_allowed_reset_system_values()]
    except exceptions.SushyError:
        return found  # it has no reset action
    try:
        temperatures = system.chassis[0].thermal.temperatures
    except (exceptions.SushyError, IndexError):
        return found  # no link to a chassis, or one without the older resource
    values = [
        each.reading_celsius
        for each in temperatures
        if each.physical_context in ("CPU", "CPUSubsystem")
        and each.reading_celsius
        and not (each.status and each.status.state == sushy.STATE_ABSENT)
    ]
    found["celsius"] = max(values, default=None)
    return found


if __name__ == "__main__":
    main()
