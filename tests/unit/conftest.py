"""The fixtures of many unit tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.kit import Kit, make_kit


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    """Return a kit of one case; a file that needs another has a fixture of its own."""
    return make_kit(tmp_path)
