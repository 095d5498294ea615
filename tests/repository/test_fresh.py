"""The variables of the host's environment that a minimal Debian gets."""

from __future__ import annotations

import pytest
from tests.fresh import LOGIN, environment


def test_settings_of_the_registries_are_passed_on() -> None:
    given = {"PIP_INDEX_URL": "https://x", "https_proxy": "http://p", "NO_PROXY": "localhost"}
    assert environment(given) == LOGIN | given


@pytest.mark.parametrize("name", ["PROOFMARK_SITE", "PYTHONPATH", "HOME", "PATH", "VIRTUAL_ENV"])
def test_other_variables_are_not_passed_on(name: str) -> None:
    assert environment({name: "of the host"}) == LOGIN
