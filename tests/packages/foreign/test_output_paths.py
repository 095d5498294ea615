"""Nodes and parameters in the paths of outputs that others produced."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.shipped import shipped_benchmarks

from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import BadInput
from proofmark.common.nodesets import is_name
from proofmark.packages.foreign.path_rules import PathRule


@pytest.fixture(scope="module")
def benchmarks() -> Benchmarks:
    return shipped_benchmarks()


def rule(benchmarks: Benchmarks, pattern: str) -> PathRule:
    return PathRule(pattern, {"osu-bw": benchmarks.cases["osu-bw"]})


class TestNodes:
    @pytest.mark.parametrize(
        ("pattern", "path", "nodes"),
        [
            ("/(?P<node>n[0-9]+)/", "a/n7/bw.out", ["n7"]),
            ("(n[0-9]+)", "n7/run-n7.out", ["n7"]),
            ("(n[0-9]+)", "n7-n3/bw.out", ["n7", "n3"]),
            (r"^(n\[[^]]*\])/", "n[1-3]/bw.out", ["n1", "n2", "n3"]),
            ("/(?P<node>n[0-9]+)/", "bw.out", []),
            ("(rack[0-9])/(?P<node>n[0-9]+)", "rack1/n7", ["n7"]),
        ],
    )
    def test_a_path_names_a_node_or_several(
        self, benchmarks: Benchmarks, pattern: str, path: str, nodes: list[str]
    ) -> None:
        assert rule(benchmarks, pattern).nodes(path) == nodes

    @given(st.text(alphabet="an[]-,.0 \n/\udcff", max_size=30))
    def test_each_node_of_any_path_is_a_name(self, benchmarks: Benchmarks, path: str) -> None:
        try:
            nodes = rule(benchmarks, "([^/]+)").nodes(path)
        except ValueError:
            return
        assert all(map(is_name, nodes))
        assert len(set(nodes)) == len(nodes)


class TestParameters:
    def test_further_groups_are_typed_parameters(self, benchmarks: Benchmarks) -> None:
        made = rule(benchmarks, "(?P<node>n[0-9]+)/r(?P<ranks>[0-9]+)/")
        assert made.parameters("n7/r064/bw.out", "osu-bw") == {"ranks": 64}
        assert made.parameters("bw.out", "osu-bw") == {}

    def test_a_parameter_of_another_type_is_refused(self, benchmarks: Benchmarks) -> None:
        made = rule(benchmarks, "(?P<node>n[0-9]+)/(?P<bytes>[a-z]+)")
        with pytest.raises(ValueError, match="whole number"):
            made.parameters("n7/abc", "osu-bw")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(n", "a regular expression"),
        ("n[0-9]+", "a group for the node"),
        ("(?P<node>n)(?P<rank>[0-9])", "did you mean 'ranks'"),
        ("(?P<node>n)(?P<placement>[a-z])", "found the group 'placement'"),
    ],
)
def test_a_wrong_expression_is_refused(benchmarks: Benchmarks, pattern: str, message: str) -> None:
    with pytest.raises(BadInput, match=message.replace("(", r"\(")):
        rule(benchmarks, pattern)
