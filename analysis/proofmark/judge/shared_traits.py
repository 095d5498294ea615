"""Traits of a node and of programs, as text: what like nodes share, and what can change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from proofmark.common.message import Message, Term
from proofmark.site.node.facts import NodeFacts
from proofmark.software.software import Package, Software

Traits = Mapping[str, str]
Name = TypeVar("Name", bound=str)
"""The name of a trait: a word of the configuration of a node, or a message about a program."""

FIRMWARE = {"bios_version": "BIOS", "bios_date": "BIOS date", "board_name": "board"}
"""The SMBIOS keys that like nodes share, with their names; serial numbers are left out."""
_GIB = 2**30
_DIGITS = 12
"""Characters of a checksum that are shown."""
PARTS_OF_BUILD: Mapping[str, str] = {
    "variants": "trait-variants",
    "compiler": "trait-compiler",
    "flags": "trait-flags",
    "blas": "trait-blas-built",
    "mpi": "trait-mpi-built",
    "network": "trait-network-built",
}
"""The code of the trait of each key of `Package.built`, in the order of differences."""
OF_FILES = ("trait-program", "trait-build", "trait-library")
"""The codes of the traits that are hashes of files. Their differences are named last."""
ABSENT = ""
"""The value of a trait that a node does not have."""


def hardware_kind(facts: NodeFacts) -> str:
    """Return the processor model, sockets and cores of a node.

    Firmware and settings are left out, because the comparison of nodes shall find their
    differences.
    """
    return f"{facts.cpu_model}, {facts.sockets} × {facts.cores // max(1, facts.sockets)} cores"


def configuration(facts: NodeFacts) -> dict[str, str]:
    """Return the configuration of a node: everything in which like nodes ought to be equal."""
    values: dict[str, object] = {
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
        "NUMA domains": len(facts.numa) or None,
        # Rounded: the part that the kernel reserves differs from node to node.
        "memory": ""
        if "meminfo.MemTotal" in facts.unread
        else f"{facts.memory_total_bytes / _GIB:.0f} GiB",
        "DIMMs": None if "dimms" in facts.absent else len(facts.dimms),
        "DIMM part": _joined(dimm.part_number for dimm in facts.dimms),
        "DIMM speed": _joined(dimm.configured for dimm in facts.dimms),
        "adapter firmware": _joined(port.firmware for port in facts.ports),
        "fabric rate": _joined(port.rate for port in facts.ports),
        "NIC firmware": _joined(nic.firmware for nic in facts.nics if nic.link),
        "PCIe link": _joined(nic.link for nic in facts.nics),
    }
    values |= {name: facts.firmware.get(key) for key, name in FIRMWARE.items()}
    values |= {f"setting {name}": value for name, value in facts.settings.items()}
    values |= {f"vulnerability {name}": value for name, value in facts.vulnerabilities.items()}
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


def _joined(values: Iterable[object]) -> str:
    """Return the different values of the parts of a node, in order."""
    return ", ".join(sorted({str(value) for value in values if value is not None}))


def traits_of(
    settings: Mapping[str, Traits], location: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Return the location and the configuration of each node: the possible causes of a fault.

    Args:
        settings: the result of `configuration` by host.
        location: switches and rack by host.
    """
    hosts = dict.fromkeys([*settings, *location])
    return {host: {**location.get(host, {}), **settings.get(host, {})} for host in hosts}


def usual(nodes: Mapping[str, Traits]) -> dict[str, Counter[str]]:
    """Return the number of nodes with each value of each trait."""
    values: dict[str, list[str]] = {}
    for traits in nodes.values():
        for name, value in traits.items():
            values.setdefault(name, []).append(value)
    return {name: Counter(each) for name, each in values.items()}


def machine_traits(facts: NodeFacts) -> dict[str, str]:
    """Return the configuration of a node, with its drivers and the memory module of each slot.

    `configuration` is compared between nodes and lacks what differs on purpose: serial numbers.
    """
    traits = configuration(facts)
    drivers = sorted({nic.driver for nic in facts.nics if nic.driver})
    values = {"NIC driver": ", ".join(drivers), "frequency driver": facts.frequency_driver or ""}
    for dimm in facts.dimms:
        values[f"DIMM {dimm.locator}"] = " ".join(filter(None, (dimm.part_number, dimm.serial)))
    return traits | {name: value for name, value in values.items() if value}


def program_traits(package: Package) -> dict[Message, str]:
    """Return what the identity of a package contains: versions, and each program and library."""
    traits = {
        Message("trait-version"): package.version,
        Message("trait-provider"): package.origin,
        Message("trait-build"): package.hash,
    }
    for name, value in package.run_environment.items():
        traits[Message("trait-variable", name=name)] = value or '""'
    for name, program in package.programs.items():
        digest = (program.sha256 or "")[:_DIGITS]
        traits[Message("trait-program", program=name)] = program.package or digest
        if blas := program.blas:
            traits[Message("trait-blas")] = f"{blas.family} {blas.version or ''}".strip()
            traits[Message("trait-kernel")] = blas.chosen or ""
        if mpi := program.mpi:
            traits[Message("trait-mpi")] = f"{mpi.family or ''} {mpi.version or ''}".strip()
        for library in program.libraries:
            parts = library.package, (library.sha256 or "")[:_DIGITS]
            traits[Message("trait-library", library=library.name)] = " ".join(filter(None, parts))
    return {name: value for name, value in traits.items() if value}


def build_traits(package: Package) -> dict[Message, str]:
    """Return all in which two builds of a package can differ.

    It is `program_traits`, and how the package was made. The release, variants, compiler, flags,
    BLAS and MPI come first, then the hashes.
    """
    traits = {Message("trait-version"): package.version}
    for part, code in PARTS_OF_BUILD.items():
        traits[Message(code)] = package.built.get(part, "")
    traits[Message("trait-request")] = package.spec
    traits[Message("trait-target")] = package.target
    known = program_traits(package)
    traits |= {name: text for name, text in known.items() if name.code not in OF_FILES}
    for name, program in package.programs.items():
        digest = (program.sha256 or "")[:_DIGITS]
        text = " ".join(filter(None, (program.package, digest)))
        traits[Message("trait-program", program=name)] = text
    traits[Message("trait-build")] = package.hash
    traits |= {name: text for name, text in known.items() if name.code == "trait-library"}
    return {name: value for name, value in traits.items() if value}


def software_traits(software: Software) -> dict[Message, str]:
    """Return the traits of all packages of a run, each with the name of its package."""
    traits: dict[Message, str] = {}
    for name, package in software.packages.items():
        for trait, value in program_traits(package).items():
            traits[of_package(name, trait)] = value
    return traits


def of_package(package: str, trait: Message) -> Message:
    """Return a trait of a program with the name of its package."""
    return Message("trait-of", package=package, trait=trait)


def of_node(name: str) -> Message:
    """Return the trait `name` of a node."""
    return Message("trait", name=Term(name))


def differences(old: Mapping[Name, str], new: Mapping[Name, str]) -> list[tuple[Name, str, str]]:
    """Return the traits that differ, each with its old and its new value."""
    if old is new:
        return []
    return [
        (trait, old.get(trait, ABSENT), new.get(trait, ABSENT))
        for trait in dict.fromkeys((*old, *new))
        if old.get(trait, ABSENT) != new.get(trait, ABSENT)
    ]
