"""Commands that are killed at random moments, on a virtual cluster with Slurm and BMCs."""

from __future__ import annotations

import pytest
from tests.bench.kills import cycle, killer

pytestmark = [pytest.mark.slow, pytest.mark.root]


@pytest.mark.soak
@pytest.mark.fault("killed-at-any-moment")
@pytest.mark.parametrize("times", [1, 3])
def test_after_a_kill_the_same_command_and_the_restore_return_every_node(times: int) -> None:
    with killer(2, times) as chosen:
        cycle(chosen, times)
        assert chosen.kills.total() > 0


@pytest.mark.soak
def test_a_run_without_a_kill_returns_every_node() -> None:
    """The control."""
    with killer(2, 0) as chosen:
        cycle(chosen, 0)
        assert chosen.kills.total() == 0
