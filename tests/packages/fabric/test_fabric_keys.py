"""The keys of an inventory about the uplinks of switches."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from proofmark.site.fabric import Fabric

LEAF = {"name": "leaf", "hosts_per_switch": 4}


@pytest.mark.parametrize(
    ("levels", "routing", "expected"),
    [
        ([LEAF], "destination-modulo", "routing: only accepted if a level has uplinks"),
        ([{**LEAF, "uplink_rate": 1e9}], None, "uplink_rate: only accepted with uplinks"),
        ([{**LEAF, "uplinks": 2, "uplink_rate": "9 Gb"}], None, "not in the table of links"),
        ([{**LEAF, "uplinks": 0}], None, "uplinks"),
        ([{**LEAF, "uplinks": 2}], "adaptive", "destination-modulo"),
    ],
)
def test_wrong_uplinks_are_refused(
    levels: list[dict[str, object]], routing: str | None, expected: str
) -> None:
    with pytest.raises(ValidationError, match=expected):
        Fabric.model_validate({"levels": levels, "routing": routing})
