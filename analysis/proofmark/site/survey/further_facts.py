"""The facts of a node that no key of ``partition`` has. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proofmark.common.text import one_line, size
from proofmark.site.literals import is_template
from proofmark.site.node.facts import NodeFacts
from proofmark.site.survey.entries import Fact
from proofmark.site.survey.node_answers import NodeReport
from proofmark.site.survey.node_tools import modules, versions


def dimm_texts(facts: NodeFacts) -> list[str]:
    """Return the memory modules as ``12 x 16.0 GiB DDR4, 2666 MT/s, configured 2666 MT/s``."""
    counts: dict[str, int] = {}
    for dimm in facts.dimms:
        speed = f"{dimm.rated or '?'} MT/s, configured {dimm.configured or '?'} MT/s"
        capacity = "unknown size" if dimm.bytes is None else size(dimm.bytes)
        text = one_line(f"{capacity} {dimm.kind or 'memory'}, {speed}")
        counts[text] = counts.get(text, 0) + 1
    return [f"{count} x {text}" for text, count in sorted(counts.items())]


def further_facts(report: NodeReport) -> dict[str, Fact]:
    """Return the facts of a node that no key of ``partition`` has, by name.

    A fact that Ansible would evaluate is left out.
    """
    node, facts = report.node, report.facts
    found: dict[str, Fact] = {}
    if facts is not None:
        found |= _further_facts(facts, node)
    for section in ("compilers", "mpi"):
        if lines := report.tools.get(section):
            found[section] = Fact(versions(lines), f"--version of each program on {node}")
    if lines := report.tools.get("modules"):
        system, names = modules(tuple(lines))
        found["module_system"] = Fact(system, f"the login shell of {node}")
        found["modules"] = Fact(names, f"module -t avail on {node}")
    if report.bmc.address:
        found["bmc_address"] = Fact(report.bmc.address, f"{report.bmc.address_source}, of {node}")
    if report.bmc.vendor:
        found["bmc_vendor"] = Fact(report.bmc.vendor, report.bmc.vendor_source)
    return {name: fact for name, fact in found.items() if not is_template(f"{fact.value}")}


def _further_facts(facts: NodeFacts, node: str) -> dict[str, Fact]:
    firmware = facts.firmware
    bios = (firmware.get(key, "") for key in ("bios_vendor", "bios_version", "bios_date"))
    board = (firmware.get(key, "") for key in ("sys_vendor", "product_name", "model"))
    nics = [
        one_line(f"{nic.name}, {nic.driver or 'no driver'}, {nic.megabits or 'unknown'} Mb/s")
        for nic in facts.nics
    ]
    ports = [
        one_line(f"{port.adapter}/{port.port}, {port.state or '?'}, {port.rate or '?'}")
        for port in facts.ports
    ]
    turbo = {True: "on", False: "off", None: ""}[facts.turbo]
    texts: Mapping[str, tuple[str, str]] = {
        "system": (" ".join(filter(None, board)), "/sys/class/dmi/id"),
        "bios": (" ".join(filter(None, bios)), "/sys/class/dmi/id"),
        "microcode": (facts.microcode or "", "/proc/cpuinfo"),
        "operating_system": (facts.os, "/etc/os-release"),
        "kernel": (facts.kernel, "/proc/sys/kernel/osrelease"),
        "governor": (facts.governor or "", "/sys/devices/system/cpu"),
        "turbo": (turbo, "/sys/devices/system/cpu"),
        "max_clock_hz": (str(facts.max_hz or ""), "cpufreq"),
        "smt": (facts.smt or "", "/sys/devices/system/cpu/smt/control"),
    }
    lists: Mapping[str, tuple[Sequence[str], str]] = {
        "dimms": (dimm_texts(facts), "dmidecode -t memory"),
        "nics": (nics, "/sys/class/net"),
        "fabric_ports": (ports, "/sys/class/infiniband"),
    }
    found: dict[str, Fact] = {
        name: Fact(one_line(value), f"{source} of {node}")
        for name, (value, source) in texts.items()
        if value
    }
    for name, (values, source) in lists.items():
        if values:
            found[name] = Fact(list(values), f"{source} of {node}")
    return found
