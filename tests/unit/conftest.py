"""The fixtures of many unit tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.kit import Kit, carried_out, make_kit


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    """Return a kit of one case; a file that needs another has a fixture of its own."""
    return make_kit(tmp_path)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run of which nothing is sealed. No test changes it."""
    return carried_out(make_kit(tmp_path_factory.mktemp("original")).run()).folder
