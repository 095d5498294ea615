"""The ports that carry messages: the first statement counts, and none is assumed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fixtures.stated import stated_node
from tests.folders import PROBES

from proofmark.site.fabric import Network
from proofmark.site.node.facts import parse_probe
from proofmark.site.rails import message_ports

FACTS = parse_probe((PROBES / "skl-2x6148.txt").read_text(encoding="utf-8"), "probe")
(PORT,) = FACTS.ports
ROCE = PORT.model_copy(update={"adapter": "mlx5_1", "layer": "Ethernet"})
OMNI = PORT.model_copy(update={"adapter": "hfi1_0"})
ALL = FACTS.model_copy(update={"ports": (PORT, ROCE, OMNI)})
ADAPTERS = {"rails": {"adapters": {"mlx5_1:1": 0}}}


@pytest.mark.parametrize(
    ("network", "moved", "ports"),
    [
        (None, {"mlx5_1"}, ("mlx5_1:1",)),
        (None, {"mlx5_0", "mlx5_1"}, ("mlx5_0:1", "mlx5_1:1")),
        (None, {"eth0"}, ()),
        # The network of the storage moved more than that of the messages.
        ({"kind": "infiniband"}, {"mlx5_1"}, ("mlx5_0:1",)),
        ({"kind": "infiniband", "interfaces": ["mlx5_0"]}, {"mlx5_1"}, ("mlx5_0:1",)),
    ],
)
def test_the_counters_that_moved_name_the_port_that_nothing_states(
    network: dict[str, Any] | None, moved: set[str], ports: tuple[str, ...]
) -> None:
    given = Network.model_validate(network) if network else None
    assert message_ports(ALL, stated_node(), given, {}, moved) == ports


@pytest.mark.parametrize(
    ("node", "network", "variables", "ports"),
    [
        ({}, None, {}, ()),
        ({}, {"kind": "infiniband"}, {}, ("mlx5_0:1",)),
        ({}, {"kind": "ethernet"}, {}, ("mlx5_1:1",)),
        ({}, {"kind": "omni-path"}, {}, ("hfi1_0:1",)),
        ({}, {"kind": "slingshot"}, {}, ()),
        ({}, {"kind": "infiniband", "interfaces": ["mlx5_*"]}, {}, ("mlx5_0:1", "mlx5_1:1")),
        ({}, {"kind": "infiniband", "interfaces": ["eth7"]}, {}, ()),
        ({}, {"kind": "infiniband"}, {"UCX_NET_DEVICES": "mlx5_1:1"}, ("mlx5_1:1",)),
        ({}, None, {"UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1"}, ("mlx5_0:1", "mlx5_1:1")),
        ({}, {"kind": "infiniband"}, {"UCX_TLS": "rc"}, ("mlx5_0:1",)),
        (ADAPTERS, {"kind": "infiniband"}, {"UCX_NET_DEVICES": "mlx5_0:1"}, ("mlx5_1:1",)),
    ],
)
def test_the_first_statement_names_the_ports(
    node: dict[str, Any],
    network: dict[str, Any] | None,
    variables: dict[str, str],
    ports: tuple[str, ...],
) -> None:
    given = Network.model_validate(network) if network else None
    assert message_ports(ALL, stated_node(**node), given, variables) == ports
