"""Kinds of nodes, and their names as ranges of Ansible."""

from __future__ import annotations

import re

from ansible.plugins.inventory import expand_hostname_range
from hypothesis import given
from hypothesis import strategies as st

from proofmark.packages.survey.answers import RESERVED, ListedNode, ansible_ranges, kinds_of

GIB = 2**30


def expanded(entries: list[str]) -> list[str]:
    """Return the hosts of the entries, as Ansible expands them."""
    return [
        host
        for entry in entries
        for host in (expand_hostname_range(entry) if "[" in entry else [entry])
    ]


NAMES = st.lists(
    st.one_of(
        st.builds(
            "{}{:0{}d}".format,
            st.sampled_from(["n", "node-", "r1c"]),
            *[
                st.integers(0, 130),
                st.integers(1, 4),
            ],
        ),
        st.builds("r{}n{:02d}".format, st.integers(1, 3), st.integers(1, 12)),
        st.sampled_from(["login", "gpu", "n1.cluster", "n2.cluster"]),
    ),
    min_size=1,
    unique=True,
)


@given(NAMES)
def test_ansible_expands_the_ranges_to_the_same_hosts(names: list[str]) -> None:
    hosts = expanded(ansible_ranges(names))
    assert sorted(hosts) == sorted(names)


def test_a_large_partition_is_one_line() -> None:
    names = [f"node{number:04d}" for number in range(1, 8306)]
    assert ansible_ranges(names) == ["node[0001:8305]"]


def test_a_gap_makes_two_lines() -> None:
    assert ansible_ranges(["n1", "n2", "n4", "n5"]) == ["n[1:2]", "n[4:5]"]


@given(
    st.lists(
        st.builds(
            ListedNode,
            name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True),
            kind=st.sampled_from([("CPUs=4",), ("CPUs=8",)]),
            memory_bytes=st.sampled_from([0, 64 * GIB, 65 * GIB, 128 * GIB]),
            groups=st.sampled_from([(), ("all",), ("batch", "debug"), ("9.q",), ("compute",)]),
        ),
        unique_by=lambda node: node.name,
    )
)
def test_every_node_is_in_one_partition_whose_name_ansible_accepts(
    nodes: list[ListedNode],
) -> None:
    kinds = kinds_of(nodes)
    assert sorted(name for kind in kinds for name in kind.names) == sorted(
        node.name for node in nodes
    )
    names = [kind.name for kind in kinds]
    assert len(set(names)) == len(names)
    assert not RESERVED.intersection(names)
    assert not {node.name for node in nodes}.intersection(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)


def test_like_nodes_may_report_slightly_different_memory() -> None:
    nodes = [ListedNode(f"n{at}", ("CPUs=4",), 187 * GIB + at * 2**20) for at in range(1, 9)]
    fat = ListedNode("n9", ("CPUs=4",), 384 * GIB)
    assert [len(kind.nodes) for kind in kinds_of([*nodes, fat])] == [8, 1]


def test_a_partition_has_the_name_of_the_group_with_exactly_its_nodes() -> None:
    nodes = [
        ListedNode("c1", ("CPUs=4",), groups=("batch", "cpu")),
        ListedNode("c2", ("CPUs=4",), groups=("batch", "cpu", "debug")),
        ListedNode("g1", ("CPUs=4", "Gres=gpu:4"), groups=("batch", "gpu")),
    ]
    kinds = kinds_of(nodes)
    assert [(kind.name, kind.groups) for kind in kinds] == [
        ("cpu", ("cpu", "batch")),
        ("gpu", ("gpu", "batch")),
    ]


def test_nodes_that_share_no_queue_are_no_partition() -> None:
    nodes = [
        *(ListedNode(f"n{at}", ("CPUs=4",), groups=("batch", "long")) for at in range(3)),
        ListedNode("n3", ("CPUs=4",), groups=("batch",)),
        *(ListedNode(f"debug{at}", ("CPUs=4",), groups=("debug",)) for at in range(2)),
        ListedNode("spare", ("CPUs=4",)),
    ]
    found = {kind.name: (kind.names, kind.groups) for kind in kinds_of(nodes, queues=True)}
    assert found == {
        "batch": (["n0", "n1", "n2", "n3"], ("batch",)),
        "debug": (["debug0", "debug1"], ("debug",)),
        "spare_nodes": (["spare"], ()),
    }
    (kind,) = kinds_of(nodes)  # LSF: no job is submitted to a host group
    assert len(kind.nodes) == 7


def test_a_name_that_is_no_host_name_is_left_out() -> None:
    nodes = [ListedNode("n1"), ListedNode("n2; reboot"), ListedNode("@all"), ListedNode("{{ x }}")]
    assert [kind.names for kind in kinds_of(nodes)] == [["n1"]]
