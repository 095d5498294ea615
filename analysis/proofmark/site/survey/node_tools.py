"""Reads the output of ``node-tools.sh``: compilers, MPI libraries, modules, BMC and fabric."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from proofmark.site.node.probe_text import read_stream

SECTIONS = ("compilers", "mpi", "modules", "bmc")
"""The sections that are read on each node."""
FABRIC = "fabric"
RATES = "rates"
MAX_NAME = 200
"""Limit of the names of modules that are kept."""


def read_tools(text: str, section: str, source: str) -> tuple[tuple[str, ...], str]:
    """Return the lines of `section`, and why they are missing; one of both is empty.

    Raises:
        BadInput: `text` is not the complete output of ``node-tools.sh``.
    """
    stream = read_stream(text, source, "tools")
    lines = stream.lines(section)
    return lines, "" if lines else stream.absent.get(section, f"no output for {section}")


def versions(lines: Iterable[str]) -> list[str]:
    """Return ``gcc 12.2.0, /usr/bin/gcc`` for each program, from the sections of programs."""
    texts: list[str] = []
    for line in lines:
        name, _, rest = line.partition(": ")
        path, _, printed = rest.partition(": ")
        if name == "srun":
            continue  # a program of Slurm; its version is no version of an MPI
        number = re.search(r"\d+\.\d+[\w.]*", re.sub(r"\([^()]*\)", "", printed) or printed)
        texts.append(f"{name} {number[0] if number else 'of unknown version'}, {path}")
    return texts


def rates(lines: Iterable[str]) -> dict[str, float]:
    """Return what a node measured: ``flops`` of all its processors, ``write`` in bytes/s."""
    found: dict[str, float] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if re.fullmatch(r"\d[\d.]*(e\+?\d+)?", value):
            found[name] = float(value)
    return found


def modules(lines: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return the module system, and the names of at most `MAX_NAME` modules."""
    system, *rest = lines
    names = (line.strip() for line in rest)
    listed = [name for name in names if name and not name.endswith((":", "/")) and " " not in name]
    return system.strip(), listed[:MAX_NAME]


def bmc_address(lines: Iterable[str]) -> str:
    """Return the address in the output of ``ipmitool lan print``; empty if it has none."""
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "IP Address":
            try:
                address = ip_address(value.strip())
            except ValueError:
                return ""
            return "" if address.is_unspecified else str(address)
    return ""


def bmc_manufacturer(lines: Iterable[str]) -> str:
    """Return the manufacturer in the output of ``ipmitool mc info``; empty if it has none."""
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "Manufacturer Name" and "Unknown" not in value:
            return value.strip()
    return ""
