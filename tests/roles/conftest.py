"""Fixtures of the tests of roles and playbooks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.roles.kit import Kit, make_kit, processes_of


@pytest.fixture
def kit() -> Iterator[Kit]:
    """Yield a kit that other users can read; afterwards no process of it may be left."""
    with tempfile.TemporaryDirectory(prefix="proofmark-kit-") as top:
        made = make_kit(Path(top))
        yield made
        assert processes_of(made.folder) == []
