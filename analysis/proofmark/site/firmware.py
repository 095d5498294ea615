"""How the firmware of a partition is set and verified: the key ``firmware`` of its facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from proofmark.common.errors import nearest
from proofmark.common.input_limits import MAX_ATTEMPTS, MAX_NODES, MAX_PARALLEL, MAX_WAIT_S
from proofmark.common.strict_model import StrictModel
from proofmark.site.bmc_vendors.vendor_model import SETTINGS, vendor, vendors

Scalar = str | int | bool
Settings = Mapping[str, Scalar]
Seconds = Annotated[float, Field(gt=0, le=MAX_WAIT_S)]
Count = Annotated[int, Field(gt=0, le=MAX_PARALLEL)]
SSH = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "{node}", "sh -s"]


class Firmware(StrictModel):
    """How the modes of a partition are set, under which names, and with which time limits.

    Attributes:
        back_end: the name of a class of `proofmark.machine.bmc.backends`.
        vendor: a file of `proofmark.site.bmc_vendors`. It has the firmware's attributes of the
            abstract settings (``smt``, ``numa_per_socket``, …) that are not in `attributes`.
        bmc: address of a node's BMC. `{node}` is the name of the node, `{number}` its number in
            the partition, from 0 (``"10.1.{number // 250}.{number % 250 + 1}"``).
        ca: file of the authorities that sign the BMCs' certificates. The default is the system's.
        verify_tls: if False, the BMC's certificate is not verified; each use prints a warning.
        system: id of a node's system, if one BMC has several. `{node}` and `{number}` are those of
            `bmc` (``"Node{number % 2}"``).
        attributes: for each setting of a mode, the firmware's attribute with the same values; or,
            for each value of the setting, the attributes that make it.
        reset_type: as in Redfish. If empty, the gentlest restart that the BMC lists; needed for a
            BMC that lists none.
        smbios: the vendor's SMBIOS tables that distinguish modes which the operating system shows
            as the same.
        remote_shell: the command that runs ``sh -s`` on a node, with the script on stdin.
        boot_s: expected time until a node is back after a reset, in seconds, for the forecast.
        boot_timeout_s: time in seconds after which a node that is not back is NO_RETURN.
        reset_timeout_s: time in seconds in which a reset that may have been sent must show.
        max_parallel: number of BMCs with an open connection at the same time.
        batch_size: number of nodes that are reset together (limits of power and boot servers).
        max_failures: number of nodes of a batch that may fail before the change of modes stops.
        max_attempts: number of attempts if a BMC is busy or closes the connection.
    """

    back_end: str
    vendor: str = ""
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
    max_attempts: Annotated[int, Field(gt=0, le=MAX_ATTEMPTS)] = 4
    max_parallel: Count = 256
    batch_size: Annotated[int, Field(gt=0, le=MAX_NODES)] = 500
    max_failures: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _known_vendor(self) -> Self:
        if self.vendor and self.vendor not in vendors():
            hint = nearest(self.vendor, vendors())
            raise ValueError(f"vendor {self.vendor!r}{hint}: one of {', '.join(vendors())}")
        if self.vendor and self.back_end != "redfish":
            raise ValueError(f"vendor {self.vendor!r}: only with back_end redfish")
        return self


def abstract(firmware: Firmware, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the `settings` of a mode whose attributes are those of the vendor."""
    names = SETTINGS.keys() - firmware.attributes.keys() if firmware.vendor else ()
    return {name: value for name, value in settings.items() if name in names}


def wanted(firmware: Firmware, settings: Mapping[str, str]) -> dict[str, Scalar]:
    """Return the site's attributes for the `settings` of a mode, without the `abstract` ones.

    Raises:
        KeyError: a setting or one of its values has no attribute; the argument names it.
    """
    attributes: dict[str, Scalar] = {}
    of_vendor = abstract(firmware, settings)
    for name, value in settings.items():
        if name in of_vendor:
            continue
        definition = firmware.attributes.get(name)
        if isinstance(definition, str):
            attributes[definition] = value
        elif definition is None or value not in definition:
            raise KeyError(f"{name}: {value}")
        else:
            attributes |= definition[value]
    return attributes


def vendor_mistake(firmware: Firmware, settings: Mapping[str, str]) -> str:
    """Return why the vendor cannot make the abstract `settings` of a mode; empty if it can.

    The attributes of a setting are known only from the BMC. An attribute that the site also sets
    in the mode is a mistake, whatever its value.
    """
    of_vendor = abstract(firmware, settings)
    own: dict[str, str] = {}
    for name in settings.keys() - of_vendor.keys():
        own |= {attribute: name for attribute in wanted(firmware, {name: settings[name]})}
    for name, value in of_vendor.items():
        table = vendor(firmware.vendor)
        values = table.values(name)
        if value not in values:
            known = [each for each in SETTINGS if table.values(each)]
            accepted = ", ".join(values) or f"no value; {firmware.vendor} has {', '.join(known)}"
            return f"settings.{name}: {value!r}{nearest(value, values)}; accepted: {accepted}"
        for attribute in table.attributes(name, value):
            if both := next((each for each in own if table.is_name(each, attribute)), None):
                places = f"firmware.attributes.{own[both]} and settings.{name} ({firmware.vendor})"
                return f"{both} is set twice: by {places}"
    return ""


def missing_setting(firmware: Firmware, modes: Mapping[str, Mapping[str, str]]) -> str:
    """Return which of `modes` (settings by name) lacks an abstract setting of another one.

    It is empty if all modes have the same ones. A node in a mode without a setting would keep the
    value of the mode before.
    """
    settings = {name: abstract(firmware, each) for name, each in modes.items()}
    for name, own in settings.items():
        for other, others in settings.items():
            if lacking := sorted(others.keys() - own.keys()):
                return f"{name}: found no settings.{lacking[0]}, which mode {other} has"
    return ""
