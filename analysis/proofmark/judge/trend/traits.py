"""The traits of a node and of a program that can change between two runs, as text."""

from __future__ import annotations

from proofmark.judge.traits import configuration
from proofmark.site.node.facts import NodeFacts
from proofmark.software.software import Package

_DIGITS = 12
"""Characters of a checksum that are shown."""


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


def program_traits(package: Package) -> dict[str, str]:
    """Return what the identity of a package contains: versions, and each program and library."""
    traits = {"version": package.version, "provider": package.origin, "build": package.hash}
    for name, program in package.programs.items():
        traits[f"program {name}"] = program.package or (program.sha256 or "")[:_DIGITS]
        if program.blas:
            traits["BLAS"] = f"{program.blas.family} {program.blas.version or ''}".strip()
        if program.mpi:
            traits["MPI"] = f"{program.mpi.family or ''} {program.mpi.version or ''}".strip()
        for library in program.libraries:
            checksum = (library.sha256 or "")[:_DIGITS]
            traits[f"library {library.name}"] = " ".join(filter(None, (library.package, checksum)))
    return {name: value for name, value in traits.items() if value}
