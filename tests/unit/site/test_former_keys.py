"""The former keys of a partition: an inventory with one is refused, sealed evidence is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from proofmark.common.errors import BadInput
from proofmark.site.former_keys import OF_NODE, OTHERS
from proofmark.site.inventory import Site, load_site
from proofmark.site.partition import Partition

FACTS: dict[str, Any] = {
    "environment": "local",
    "provision_from": "system",
    "scheduler": "none",
    "scratch": {"path": "/scratch"},
}
SEALED: dict[str, Any] = {
    "hardware": {
        "cpu_model": "a processor",
        "architecture": "zen4",
        "topology": "pack:1 [numa(memory=4GiB)] core:2 pu:1",
        "clock_hz": 2.4e9,
        "flop_per_cycle": None,
        "memory_bytes": 2**30,
        "fast_memory": None,
        "operating_system": "linux",
        "sources": {"topology": "a node"},
        "assumed": {"fabric": "a guess"},
    },
    "rated": {
        "source": "the offer",
        "dimms": {"channels": 12, "mt_per_s": 2666},
        "mcdram_bytes_per_s": 490e9,
        "link_bytes_per_s": 12.5e9,
        "clock_hz": 2e9,
    },
    "parts": {
        "source": "the offer",
        "cores": 40,
        "memory_bytes": 2**38,
        "dimms": {"count": 24, "bytes": 2**34, "mt_per_s": None},
        "rails": {"count": 1, "gbit_per_s": 100, "adapters": {"mlx5_0:1": 0}},
    },
    "fabric": {"rate": 1e9},
    "modes": {"flat": {"settings": {}, "topology": None, "memory_bytes": 2**30}},
}


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    groups = {"a": {"hosts": {"n1": {"ansible_connection": "local"}}}}
    tmp_path.joinpath("hosts.yml").write_text(
        yaml.safe_dump({"all": {"children": {"compute": {"children": groups}}}})
    )
    return tmp_path


def written(inventory: Path, facts: dict[str, Any]) -> Path:
    file = inventory / "group_vars/a/partition.yml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump({"partition": {**FACTS, **facts}}), encoding="utf-8")
    return file


def nested(place: str) -> dict[str, Any]:
    """Return ``{"a": {"b": 1}}`` for ``a.b``."""
    value: Any = 1
    for key in reversed(place.split(".")):
        value = {key: value}
    return dict(value)


def test_each_new_name_is_a_key_of_a_node() -> None:
    facts = json.dumps(Partition.model_json_schema())
    assert all(f'"{key.rpartition(".")[2]}": {{' in facts for key in OF_NODE.values())


@pytest.mark.fault("former-key")
@pytest.mark.parametrize("place", [*OF_NODE, *OTHERS])
def test_a_former_key_is_refused_with_its_line_and_the_new_one(inventory: Path, place: str) -> None:
    file = written(inventory, nested(place))
    with pytest.raises(BadInput) as refused:
        load_site(inventory, "a")
    new = f"partition.node.{OF_NODE[place]}" if place in OF_NODE else OTHERS[place]
    (mistake,) = refused.value.mistakes
    assert mistake.file.startswith(f"{file}:")
    assert (mistake.key, mistake.accepted) == (f"partition.{place}", new)


@pytest.mark.parametrize(
    ("facts", "key", "new"),
    [
        ({"hardware": "discovered"}, "hardware", "without a topology the node is discovered"),
        ({"modes": {"flat": {"memory_bytes": 1}}}, "modes.flat.memory_bytes", "flat.topology"),
        ({"rated": {"watts": 1}}, "rated.watts", "partition.node"),
        ({"parts": {}}, "parts", "partition.node"),
        ({"parts": None}, "parts", "partition.node"),
    ],
)
def test_other_former_values_are_refused(
    inventory: Path, facts: dict[str, Any], key: str, new: str
) -> None:
    written(inventory, facts)
    with pytest.raises(BadInput) as refused:
        load_site(inventory, "a")
    (mistake,) = refused.value.mistakes
    assert mistake.key == f"partition.{key}" and new in mistake.accepted
    assert mistake.found == "a former key"


def test_sealed_evidence_with_former_keys_is_read(inventory: Path) -> None:
    """Each fact keeps its value, those of which the partition had two as well."""
    written(inventory, {})
    sealed = load_site(inventory, "a").model_dump(mode="json")
    sealed["partition"] = {**FACTS, **SEALED}
    partition = Site.model_validate_json(json.dumps(sealed)).partition
    node = partition.node
    assert (node.cpu_model, node.cores, node.clock_hz) == ("a processor", 40, 2e9)
    assert node.memory.model_dump(exclude_none=True) == {
        "modules": 24,
        "module_bytes": 2**34,
        "mt_per_s": 2666,
        "channels": 12,
        "fast_bytes_per_s": 490e9,
    }
    assert (node.rails.number, node.rails.bytes_per_s) == (1, 12.5e9)
    assert partition.fabric.rate == node.rails.rate
    assert node.sources["memory"] == "the offer" and node.assumed == {"fabric": "a guess"}
    assert Site.model_validate_json(
        json.dumps({**sealed, "partition": partition.model_dump(mode="json")})
    )


def test_sealed_evidence_of_a_discovered_node_is_read(inventory: Path) -> None:
    written(inventory, {})
    sealed = load_site(inventory, "a").model_dump(mode="json")
    sealed["partition"] = {**FACTS, "hardware": "discovered", "rated": {}, "parts": {}}
    assert not Site.model_validate_json(json.dumps(sealed)).partition.node.topology


def test_sealed_evidence_with_former_keys_of_a_queue_is_read(inventory: Path) -> None:
    written(inventory, {})
    sealed = load_site(inventory, "a").model_dump(mode="json")
    former = {place.split(".")[1]: "x" for place in OTHERS if place.startswith("queue.")}
    sealed["partition"]["queue"] |= {**former, "name": "normal"}
    sealed["partition"]["launch"] |= {"pmi_library": "", "mpi": "pmi2"}
    partition = Site.model_validate_json(json.dumps(sealed)).partition
    assert (partition.queue.name, partition.launch.mpi) == ("normal", "pmi2")


@pytest.mark.parametrize("damage", [{"rated": 1}, {"hardware": {"x": 1}}, {"parts": {"dimms": 3}}])
def test_a_damaged_node_of_sealed_evidence_is_refused(
    inventory: Path, damage: dict[str, Any]
) -> None:
    written(inventory, {})
    sealed = load_site(inventory, "a").model_dump(mode="json")
    sealed["partition"] = {**FACTS, "hardware": "discovered", **damage}
    with pytest.raises(ValueError, match="partition"):
        Site.model_validate_json(json.dumps(sealed))
