"""How a partition's firmware is set and proven: the key ``firmware`` of its facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from proofmark.common.strict_model import RenamedKeys

Scalar = str | int | bool
Settings = Mapping[str, Scalar]
Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]
SSH = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "{node}", "sh -s"]


class Firmware(RenamedKeys):
    """Who sets the modes of a partition, what they are called there, and how long it takes.

    Attributes:
        back_end: a module of `proofmark.machine.bmc.backends`.
        bmc: address of a node's BMC; `{node}` is its name, `{number}` counts the partition's hosts
            from 0 (``"10.1.{number // 250}.{number % 250 + 1}"``).
        ca: file of the authorities that sign the BMCs' certificates; the system's if not told.
        verify_tls: False gives up knowing who answers; every use of it is announced.
        system: id of the system where one BMC has several.
        attributes: for each setting of a mode the firmware's attribute of the same values, or for
            each value the attributes that make it.
        reset_type: as in Redfish; empty takes the gentlest restart that the BMC offers.
        smbios: whose tables tell modes apart that look alike to the operating system.
        remote_shell: the command that runs ``sh -s`` on a node, with the script as its input.
        boot_s: how long a node takes to come back, for the forecast.
        boot_timeout_s: how long it may take before it counts as NO_RETURN.
        reset_timeout_s: how long a reset that was perhaps asked for may take to show.
        max_parallel: BMCs spoken to at one time.
        batch_size: nodes that are reset together (power, boot servers).
        max_failures: how many nodes of a batch may fail before nothing further is touched.
        max_attempts: how often a BMC that is busy or cut the line is asked.
    """

    RENAMED = {
        "reach": "remote_shell",
        "boot_limit_s": "boot_timeout_s",
        "settle_s": "reset_timeout_s",
        "tries": "max_attempts",
        "at_once": "max_parallel",
        "batch": "batch_size",
        "failures": "max_failures",
    }

    back_end: str
    bmc: str = "{node}-bmc"
    port: Annotated[int, Field(gt=0, lt=65536)] = 443
    ca: str | None = None
    verify_tls: bool = True
    auth: Literal["basic", "session"] = "basic"
    system: str = ""
    attributes: dict[str, str | dict[str, dict[str, Scalar]]] = {}
    reset_type: str = ""
    smbios: Literal["knl"] | None = None
    remote_shell: list[str] = SSH
    boot_s: Seconds = 1200
    boot_timeout_s: Seconds = 2700
    drain_limit_s: Seconds = 3600
    reset_timeout_s: Seconds = 120
    poll_s: Seconds = 10
    timeout_s: Seconds = 30
    max_attempts: Count = 4
    max_parallel: Count = 256
    batch_size: Count = 500
    max_failures: Annotated[int, Field(ge=0)] = 0


def wanted(firmware: Firmware, settings: Mapping[str, str]) -> dict[str, Scalar]:
    """Return the firmware's attributes for the `settings` of a mode.

    Raises:
        KeyError: a setting or one of its values has no attribute; the argument says which.
    """
    found: dict[str, Scalar] = {}
    for name, value in settings.items():
        known = firmware.attributes.get(name)
        if isinstance(known, str):
            found[known] = value
        elif known is None or value not in known:
            raise KeyError(f"{name}: {value}")
        else:
            found |= known[value]
    return found
