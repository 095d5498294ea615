"""The facts of a node that was not probed, as the inventory declares it."""

from __future__ import annotations

from archspec.cpu import TARGETS

from proofmark.site.hardware_limits import ETHERNET, SLINGSHOT, ProcessorLimits, processor
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine
from proofmark.site.node.cpu import vector_set
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Dimm, Port

NEVER = "1970-01-01T00:00:00Z"
"""The date of a probe that was not made."""
LAYERS = {"ethernet": ETHERNET, "slingshot": SLINGSHOT}
"""The link layer of the port of a kind of network, if it is not InfiniBand."""


def declared_node(site: Site, machine: Machine) -> NodeFacts:
    """Return the facts that a probe of a node of `site`, whose topology is stated, should find.

    Each channel of a processor of the table has a module of the fastest speed, and the port has the
    rate of the fabric. Facts about firmware, software and state are not set.
    """
    stated = site.partition.node
    row, target = processor(stated.cpu_model), TARGETS.get(stated.architecture)
    cores, sockets = machine.symbols["cores"], machine.symbols["sockets"]
    pus: list[int] = []
    for core in machine.topology.cores:
        pus += core.pus
    features = tuple(sorted(target.features)) if target else ()
    isa, bits = vector_set(features)
    return NodeFacts(
        hostname=f"a node of {site.partition_name}",
        date=NEVER,
        machine=target.family.name if target else "",
        cpu_model=stated.cpu_model,
        features=features,
        architecture=stated.architecture,
        vector_isa=isa,
        vector_bits=bits,
        sockets=sockets,
        cores=cores,
        cores_online=cores,
        threads_per_core=machine.topology.threads_per_core,
        cpus=tuple(sorted(pus)),
        cpus_online=len(pus),
        memory_bytes=machine.symbols.get("memory_bytes", 0),
        memory_total_bytes=machine.symbols.get("memory_bytes", 0),
        base_hz=row.base_hz if row else None,
        dimms=_modules(row, sockets),
        ports=_ports(site),
        # What no inventory states.
        boot_id=None,
        root=False,
        kernel="",
        kernel_version="",
        cmdline="",
        os="",
        virtual=None,
        container=None,
        vendor="",
        family=None,
        model=None,
        stepping=None,
        microcode=None,
        differing={},
        cpu_quota=None,
        smt=None,
        numa=(),
        swap_bytes=0,
        caches=(),
        last_level_bytes=None,
        topology_xml="",
        governor=None,
        frequency_driver=None,
        max_hz=None,
        turbo=None,
        thp=None,
        thp_defrag=None,
        settings={},
        firmware={},
        dimm_slots_empty=0,
        nics=(),
        mounts=(),
        limits={},
        modules=(),
        vulnerabilities={},
        load=(),
        clock_offset_s=None,
        absent={},
    )


def _modules(row: ProcessorLimits | None, sockets: int) -> tuple[Dimm, ...]:
    """Return a memory module of the fastest speed for each channel of the processor."""
    if row is None or not row.ddr:
        return ()
    module = Dimm(
        locator="",
        bytes=None,
        kind=None,
        part_number=None,
        serial=None,
        manufacturer=None,
        rated=row.ddr,
        configured=row.ddr,
    )
    return (module,) * ((row.channels or 0) * sockets)


def _ports(site: Site) -> tuple[Port, ...]:
    """Return a port with the rate of the fabric; none if the inventory states no rate."""
    fabric = site.partition.fabric
    if not isinstance(fabric.rate, str):
        return ()
    layer = LAYERS.get(fabric.network.kind if fabric.network else "", "InfiniBand")
    port = Port(
        adapter="",
        port="",
        firmware=None,
        kind=None,
        board=None,
        state="4: ACTIVE",
        rate=fabric.rate,
        layer=layer,
    )
    return (port,)
