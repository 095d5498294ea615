"""The nodes of a nightly check."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from proofmark.packages.service.gate import next_nodes

NODES = [f"n{number}" for number in range(12)]
costs = st.lists(st.floats(0.01, 5), min_size=12, max_size=12)


@given(
    st.sets(st.sampled_from(NODES)),
    st.dictionaries(st.sampled_from(NODES), st.sampled_from(["2026-01", "2026-02", "2026-03"])),
    costs,
    st.floats(0, 20),
)
def test_the_longest_unchecked_idle_nodes_are_chosen_within_the_budget(
    idle: set[str], checked: dict[str, str], each: list[float], budget: float
) -> None:
    def cost(nodes: Sequence[str]) -> float:
        return sum(each[: len(nodes)])

    chosen = next_nodes(NODES, idle, checked, cost, budget)
    assert set(chosen) <= idle
    assert not chosen or cost(chosen) <= budget
    left = [node for node in NODES if node in idle and node not in chosen]
    for node in left:
        assert all(checked.get(node, "") >= checked.get(other, "") for other in chosen)
        assert cost([*chosen, node]) > budget, "one more node would fit"


def test_a_node_that_was_never_checked_comes_first() -> None:
    checked = {"n0": "2026-01", "n1": "2026-02"}
    assert next_nodes(NODES[:3], NODES, checked, len, 2) == ["n2", "n0"]
    assert next_nodes(NODES[:3], NODES, checked, len, 0.5) == []
