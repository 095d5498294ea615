"""The facts of a node that was not probed, as the inventory declares it."""

from __future__ import annotations

from typing import Any

from archspec.cpu import TARGETS

from proofmark.site.hardware_limits import ETHERNET, SLINGSHOT, processor
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine
from proofmark.site.node.cpu import vector_set
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Dimm, Port

UNKNOWN = dict.fromkeys(("kind", "slot", "link", "link_best"), None) | {"adapter": "", "port": ""}
"""What no inventory states about a port."""
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
    cpus = tuple(sorted(pus))
    features = tuple(sorted(target.features)) if target else ()
    isa, bits = vector_set(features)
    fabric, speed = site.partition.fabric, row.ddr if row else None
    layer = LAYERS.get(fabric.network.kind if fabric.network else "", "InfiniBand")
    module: dict[str, Any] = {"bytes": None, "kind": None, "rated": speed, "configured": speed}
    port: dict[str, Any] = {**UNKNOWN, "state": "4: ACTIVE", "rate": fabric.rate, "layer": layer}
    modules = (row.channels or 0) * sockets if row and speed else 0
    known: dict[str, Any] = dict(
        hostname=f"a node of {site.partition_name}",
        machine=target.family.name if target else "",
        virtual=None,
        cpu_model=stated.cpu_model,
        features=features,
        architecture=stated.architecture,
        vector_isa=isa,
        vector_bits=bits,
        sockets=sockets,
        cores=cores,
        cores_online=cores,
        cpus=cpus,
        cpus_online=len(cpus),
        cpu_quota=None,
        numa=(),
        memory_total_bytes=machine.symbols.get("memory_bytes", 0),
        base_hz=row.base_hz if row else None,
        dimms=(Dimm.model_construct(None, **module),) * modules,
        ports=(Port.model_construct(None, **port),) if isinstance(fabric.rate, str) else (),
        nics=(),
        absent={},
    )
    return NodeFacts.model_construct(None, **known)
