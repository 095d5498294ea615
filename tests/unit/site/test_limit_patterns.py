"""The pattern of ``-l``: a subscript that reads as names of hosts stands for these hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader

from proofmark.common.errors import BadInput
from proofmark.common.nodesets import folded, unfold
from proofmark.site.choice import pattern_of
from proofmark.site.groups import apply_limit

GROUPS: dict[str, Any] = {
    "knl": {"hosts": {"knl[0001:0016]": {}}},
    "rome": {"hosts": {"rome[0101:0150]": {}}},
    "n": {"hosts": {"n[1:16]": {}}},
    "zero": {"hosts": {"zero[0:9]": {}}},
    "gpu": {"hosts": {"node-a[01:04]x[1:2]": {}}},
    "knl0": {"hosts": {"login[1:3]": {}}},
}
"""Groups whose names are prefixes of their hosts, and one that is the prefix of other hosts."""


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> InventoryManager:
    file = tmp_path_factory.mktemp("site") / "hosts.yml"
    file.write_text(yaml.safe_dump({"all": {"children": {"compute": {"children": GROUPS}}}}))
    return InventoryManager(loader=DataLoader(), sources=[str(file)])


def hosts_of(manager: InventoryManager, limit: str) -> list[str]:
    apply_limit(manager, limit)
    return [host.name for host in manager.get_hosts()]


def of_ansible(manager: InventoryManager, limit: str) -> list[str]:
    manager.subset(limit)
    return [host.name for host in manager.get_hosts()]


@pytest.mark.fault("limit-reads-as-positions")
@pytest.mark.parametrize(
    ("limit", "nodes"),
    [
        ("knl[0001-0016]", "knl[0001-0016]"),
        ("knl[0001:0016]", "knl[0001-0016]"),
        ("knl[0002-0003]", "knl[0002-0003]"),
        ("knl[0016]", "knl0016"),
        ("knl[0001-0004,0007]", "knl[0001-0004,0007]"),
        ("knl[0001:0004,0007:0008]", "knl[0001-0004,0007-0008]"),
        ("knl[0001-0009/4]", "knl[0001,0005,0009]"),
        ("knl000[1-4]", "knl[0001-0004]"),
        ("knl0[001-016]", "knl[0001-0016]"),
        ("rome[0101-0104]", "rome[0101-0104]"),
        ("rome[0150]", "rome0150"),
        ("n[1-4]", "n[1-4]"),
        ("n[1:4]", "n[1-4]"),
        ("n[1-4,7]", "n[1-4,7]"),
        ("n[16]", "n16"),
        ("zero[0:9]", "zero[0-9]"),
        ("node-a[01-02]x[1-2]", "node-a[01-02]x[1-2]"),
        ("knl[0001-0002],rome[0101-0102]", "knl[0001-0002],rome[0101-0102]"),
        ("knl[0001-0002]:rome[0101-0102]", "knl[0001-0002],rome[0101-0102]"),
        ("knl:!knl[0001-0014]", "knl[0015-0016]"),
        ("knl,!knl[0001-0013,0015]", "knl[0014,0016]"),
        ("!rome,!n[1-16],!zero,!gpu,!knl0,!knl[0002-0016]", "knl0001"),
        ("compute:&knl[0003-0004]", "knl[0003-0004]"),
        ("knl[0001-0008]:&knl[0005-0016]:!knl[0006]", "knl[0005,0007-0008]"),
        ("knl[0001-0002]:n[1:2]", "knl[0001-0002],n[1-2]"),
    ],
)
def test_a_subscript_that_reads_as_hosts_is_a_node_set(
    manager: InventoryManager, limit: str, nodes: str
) -> None:
    assert folded(hosts_of(manager, limit)) == nodes


@pytest.mark.parametrize(
    "limit",
    [
        *("knl", "compute", "all", "knl0001", "knl0001,knl0003", "knl:!knl0001", "knl:&compute"),
        *("knl[0]", "knl[-1]", "knl[0:15]", "knl[2:3]", "knl[5:]", "compute[0:3]", "all[7]"),
        *("knl*[0:1]", "~knl000[1-4]", "~(knl|rome)01.*", "kn*", "knl00[!1]*", "knl000?"),
        *("knl:!~knl000.*", "knl0[0:1]", "knl[0:3],rome[0:1]", "knl[0:3]:rome[1:2]", "!knl"),
        *("*[0:2]", "knl[0],knl[-1]", "", "gpu[0:1]"),
    ],
)
def test_a_pattern_of_ansible_keeps_its_meaning(manager: InventoryManager, limit: str) -> None:
    """The control."""
    given = sorted(hosts_of(manager, limit))
    assert given == sorted(of_ansible(manager, limit))
    assert given


@pytest.mark.fault("limit-reads-as-positions")
@pytest.mark.parametrize(
    ("limit", "found"),
    [
        ("knl[0001-0020]", "reads as names of hosts, and knl[0017-0020] is not in the inventory"),
        ("knl[0000:0015]", "and knl0000 is not in the inventory"),
        ("n[0:3]", "'n[0:3]': reads as names of hosts, and n0 is not in the inventory"),
        ("n[0-3]", "and n0 is not in the inventory"),
        ("knl[1-16]", "'knl[1-16]': reads as names of hosts, and knl[1-16] is not"),
        ("knl[1-4,7]", "and knl[1-4,7] is not in the inventory"),
        ("rome[1-4]", "and rome[1-4] is not in the inventory"),
        ("knl[00]", "and knl00 is not in the inventory"),
        ("skl[0001-0004]", "and skl[0001-0004] is not in the inventory"),
        ("knl:!knl[1-2]", "and knl[1-2] is not in the inventory"),
        ("knl:&skl[1-2]", "and skl[1-2] is not in the inventory"),
        ("knl[0001-0004", "'knl[0001-0004'; accepted: names of hosts"),
        ("skl[-1]", "'skl[-1]': "),
        ("knl[0004-0001]", "no ascending range"),
        ("knl:!knl9999", "'knl9999': no host, did you mean 'knl"),
    ],
)
def test_a_subscript_that_reads_as_other_hosts_is_refused(
    manager: InventoryManager, limit: str, found: str
) -> None:
    with pytest.raises(BadInput) as refused:
        apply_limit(manager, limit)
    assert found in str(refused.value)


@pytest.mark.fault("limit-reads-as-positions")
def test_a_file_of_patterns(manager: InventoryManager, tmp_path: Path) -> None:
    file = tmp_path / "nodes.txt"
    file.write_text("knl[0001-0003]\n\nn[1-2],rome0101\n!knl[0002]\n")
    assert folded(hosts_of(manager, f"@{file}")) == "knl[0001,0003],n[1-2],rome0101"
    assert folded(hosts_of(manager, f"@{file},knl[0016]")) == "knl[0001,0003,0016],n[1-2],rome0101"
    file.write_text("knl[1-3]\n")
    with pytest.raises(BadInput, match="knl\\[1-3\\] is not in the inventory"):
        apply_limit(manager, f"@{file}")
    with pytest.raises(BadInput, match="No such file"):
        apply_limit(manager, f"@{tmp_path}/none")


@pytest.mark.parametrize(
    ("hosts", "pattern"),
    [
        ("knl[0001-0016]", "knl"),
        ("knl[0001-0015]", "knl,!knl0016"),
        ("knl[0001-0002]", "knl0001,knl0002"),
    ],
)
def test_a_printed_pattern_is_read_alike_by_ansible(
    manager: InventoryManager, hosts: str, pattern: str
) -> None:
    names = unfold([hosts])
    assert pattern_of(names, "knl", unfold(["knl[0001-0016]"])) == pattern
    assert sorted(of_ansible(manager, pattern)) == names
    assert sorted(hosts_of(manager, pattern)) == names
