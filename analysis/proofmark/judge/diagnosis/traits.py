"""What a node is and where it stands, as words that nodes can share or differ in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from proofmark.site.node.facts import NodeFacts

Traits = Mapping[str, str]

FIRMWARE = {"bios_version": "BIOS", "bios_date": "BIOS date", "board_name": "board"}
"""What is shared of SMBIOS' words; serial numbers are each node's own."""
_GIB = 2**30


def configuration(facts: NodeFacts) -> dict[str, str]:
    """Return how a node is set up: everything in which like nodes ought to be equal."""
    found: dict[str, object] = {
        "processor": facts.cpu_model,
        "sockets": facts.sockets,
        "cores online": facts.cores_online,
        "threads per core": facts.threads_per_core,
        "microcode": facts.microcode,
        "stepping": facts.stepping,
        "kernel": facts.kernel,
        "kernel command line": facts.cmdline,
        "operating system": facts.os,
        "governor": facts.governor,
        "turbo": facts.turbo,
        "SMT": facts.smt,
        "transparent huge pages": facts.thp,
        "NUMA domains": len(facts.numa),
        # A kernel keeps a little for itself, never the same.
        "memory": f"{facts.memory_total_bytes / _GIB:.0f} GiB",
        "DIMMs": len(facts.dimms),
        "DIMM part": _joined(dimm.part_number for dimm in facts.dimms),
        "DIMM speed": _joined(dimm.configured for dimm in facts.dimms),
        "adapter firmware": _joined(port.firmware for port in facts.ports),
        "fabric rate": _joined(port.rate for port in facts.ports),
        "NIC firmware": _joined(nic.firmware for nic in facts.nics if nic.link),
        "PCIe link": _joined(nic.link for nic in facts.nics),
    }
    found |= {name: facts.firmware.get(key) for key, name in FIRMWARE.items()}
    found |= {f"setting {name}": value for name, value in facts.settings.items()}
    found |= {f"vulnerability {name}": value for name, value in facts.vulnerabilities.items()}
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


def _joined(values: Iterable[object]) -> str:
    """Return what the parts of a node say, each once, in order."""
    return ", ".join(sorted({str(value) for value in values if value is not None}))


def traits_of(
    settings: Mapping[str, Traits], location: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Return what might be the cause of a fault, by node: its place and its configuration.

    Args:
        settings: `configuration` by host.
        location: switches and rack by host.
    """
    hosts = dict.fromkeys([*settings, *location])
    return {host: {**location.get(host, {}), **settings.get(host, {})} for host in hosts}


def usual(nodes: Mapping[str, Traits]) -> dict[str, Counter[str]]:
    """Count the values of each trait over all nodes, the commonest first."""
    found: dict[str, Counter[str]] = {}
    for own in nodes.values():
        for name, value in own.items():
            found.setdefault(name, Counter())[value] += 1
    return found
