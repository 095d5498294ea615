"""The back ends of the kit: subclasses of `proofmark.machine.bmc.back_end.BackEnd`, by their names.

The name is the value of ``firmware.back_end`` of a partition.
"""

from __future__ import annotations

PLUGINS = {
    "knl_generic": "without_bmc:KnlGeneric",
    "manual": "without_bmc:ManualBackEnd",
    "redfish": "redfish:Redfish",
    "syscfg": "without_bmc:Syscfg",
}
