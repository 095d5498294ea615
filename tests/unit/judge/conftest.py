"""Compares the whole verdicts of chosen tests of the judge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.verdicts import compared


@pytest.fixture(autouse=True)
def whole_verdicts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compare what a test with a text in ``tests/golden/verdicts`` finds with it."""
    yield from compared(request)
