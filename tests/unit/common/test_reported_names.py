"""Which node of a plan reports a name."""

from __future__ import annotations

import pytest

from proofmark.common.host_names import ReportedNames

NODES = {
    "n1": ["vm", "10.1.0.1"],
    "n2": ["both"],
    "n3": ["Both.cluster"],
    "n4": ["both"],
    "n5.a": [],
    "n6": ["n1"],
}


@pytest.mark.parametrize(
    ("reported", "node"),
    [
        ("n2", "n2"),
        ("vm", "n1"),
        ("VM", "n1"),
        ("10.1.0.1", "n1"),
        ("n2.cluster", "n2"),
        ("n5", "n5.a"),
        ("both", "both"),  # of n2 and n4
        ("n1", "n1"),  # the name of a node is also a further name of another one
        ("unknown", "unknown"),
    ],
)
def test_the_node_that_reports_a_name(reported: str, node: str) -> None:
    assert ReportedNames(NODES).node(reported) == node
