"""The BMCs that plays and `modes` name: addresses, and none for a back end without BMCs."""

from __future__ import annotations

import pytest

from proofmark.api import BadInput, bmcs_of_facts
from proofmark.machine.bmc.back_end import BACK_ENDS

HOSTS = [f"n{number:03d}" for number in range(300)]
REDFISH = {"back_end": "redfish", "bmc": "127.9.{number // 250}.{number % 250 + 1}"}


@pytest.mark.parametrize(
    ("facts", "nodes", "text"),
    [
        ({"firmware": REDFISH}, "n[000-299]", "127.9.0.1 … 127.9.1.50"),
        ({"firmware": REDFISH}, "n250", "127.9.1.1"),
        ({"firmware": {"back_end": "redfish"}}, "n[001-002]", "n001-bmc … n002-bmc"),
        ({"firmware": {**REDFISH, "back_end": "manual"}}, "n[000-299]", "none"),
        ({"firmware": {**REDFISH, "back_end": "syscfg"}}, "n[000-299]", "none"),
        ({"firmware": REDFISH}, "", "none"),
        ({"firmware": REDFISH}, "m1", "none"),
        ({"firmware": None}, "n001", "none"),
        ({}, "n001", "none"),
    ],
)
def test_the_addresses_of_the_first_and_the_last_node(
    facts: dict[str, object], nodes: str, text: str
) -> None:
    assert bmcs_of_facts(facts, HOSTS, nodes) == text


def test_a_wrong_expression_is_an_error_with_its_key() -> None:
    wrong = {"firmware": {"back_end": "redfish", "bmc": "{nod}-bmc"}}
    with pytest.raises(BadInput, match=r"partition\.firmware\.bmc"):
        bmcs_of_facts(wrong, HOSTS, "n001")


def test_only_redfish_uses_bmcs() -> None:
    used = {name: BACK_ENDS.get(name).uses_bmcs for name in BACK_ENDS.names()}
    assert {name for name, uses in used.items() if uses} == {"redfish"}
