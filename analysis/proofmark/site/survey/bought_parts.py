"""The question of ``proofmark init`` for the parts that were bought. Pure."""

from __future__ import annotations

from typing import Any

from proofmark.site.installed_parts import LEAST_NIC_GBIT, parts_of
from proofmark.site.literals import literal_yaml
from proofmark.site.node.facts import NodeFacts
from proofmark.site.rails import rails_of
from proofmark.site.survey.entries import Found, Question

SETS = ("dimms", "rails")
"""The parts with several keys."""


def parts_question(facts: NodeFacts, node: str) -> Found:
    """Return the question for the parts that were bought, with those of `node` as the answer."""
    found = parts_of(facts)
    modules = {"count": found.dimms, "bytes": min(found.dimm_bytes or (0,)) or None}
    ports = [rate for rate in found.ports or found.nics or () if rate >= LEAST_NIC_GBIT]
    rails = {name: rail.numa for name, rail in rails_of(facts).items() if rail.is_fabric}
    named = len(rails) == len(ports) > 1 and None not in rails.values()
    values: dict[str, Any] = {
        "sockets": found.sockets,
        "cores": found.cores,
        "memory_bytes": None if found.dimms else found.memory_bytes,
        "dimms": {**modules, "mt_per_s": found.dimm_mt_per_s} if found.dimms else None,
        "rails": {"count": len(ports), "gbit_per_s": min(ports)} if ports else None,
    }
    if named:
        values["rails"]["adapters"] = rails
    known = {
        key: {part: each for part, each in value.items() if each} if key in SETS else value
        for key, value in values.items()
        if value
    }
    text = f"parts: does the offer state these parts of a node? {node} has them. A node with less"
    lines = literal_yaml({"parts": {**known, "source": "the offer"}}).splitlines()
    return {"parts": Question(f"{text} has a fault.", tuple(lines))}
