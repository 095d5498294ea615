"""The messages of the package: the code of each, and its English template."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "left-no-source": "{case}: {package} has no source for a simulation",
    "left-no-program": "{case}: {program} of {package} has no source",
    "fit-no-pingpong": "no PingPong inside a socket: the figures of the table are not changed",
    "fit-no-rate": "no PingPong with a rendezvous that fits into the cache: no rate is fitted",
    "fit-like-sockets": "messages between sockets are not slower than inside a socket",
    "fit-fast-message": "a message between nodes is faster than its adapters in the table",
    "fit-no-latency": "the latency of the fabric is not fitted",
    "model-value": "{value}",
    "model-source": "{source}",
    "model-fitted": "fitted to the PingPong of run {run}",
    "model-processor": "processor",
    "model-ancestor": "the nearest ancestor of {processor} in archspec whose figures the kit has",
    "model-line": "cache line between two cores",
    "model-lines": "cache lines of 64 bytes in flight, of one core",
    "model-sockets": "link between two sockets",
    "model-books": "link between two books",
    "model-adapter": "bus to the adapter",
    "model-software": "MPI on each side of a message",
    "model-eager": "messages without a rendezvous, below",
    "model-links": "links between sockets",
    "model-links-all": "all",
    "model-links-why": "the topology has no distances: each socket of a book has a link to each "
    "other one",
    "model-memory": "memory",
    "model-memory-none": "none",
    "model-memory-why": "messages inside a node fit into the caches, and one copy is the "
    "bottleneck",
    "model-place": "place of the adapter",
    "model-place-first": "socket 0",
    "model-place-why": "one adapter for a node",
    "model-link": "link of a node",
    "model-adapters": "between two adapters",
    "model-adapters-switch": "between two adapters, with one switch",
    "model-switch": "a switch",
    "model-switch-why": "usual for InfiniBand",
    "model-uplinks": "uplinks of a {level}",
    "model-uplinks-many": "as many as hosts",
    "model-uplinks-why": "no uplinks are declared: they do not block",
}
