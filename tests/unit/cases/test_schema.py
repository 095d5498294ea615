"""The JSON Schema of case files is up to date, and accepts what the models accept."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.kit import FAKE
from tests.folders import ROOT

from proofmark.cases import loading
from proofmark.cases.vocabulary import SUITES_FILE

FILE = ROOT / "benchmarks" / "case.schema.json"
CASES = sorted(path for path in FILE.parent.glob("*.yml") if path.name != SUITES_FILE)


schema = cache(loading.schema)


@pytest.mark.lint
def test_the_schema_is_fresh() -> None:
    """`proofmark cases --schema >benchmarks/case.schema.json` writes the schema."""
    assert json.loads(FILE.read_text(encoding="utf-8")) == schema()


def resolved(node: Any) -> Any:
    """Return the definition that a reference of the schema names."""
    while "$ref" in node:
        node = schema()["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def test_the_schema_refuses_unknown_keys_and_requires_the_required_ones() -> None:
    top = schema()
    assert top["additionalProperties"] is False
    assert {"title", "program", "launch", "cost", "metrics", "read"} <= set(top["required"])
    assert top["required"] == [key for key in top["properties"] if key in top["required"]]


@pytest.mark.lint
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_schema_has_every_key_of_the_kits_cases(path: Path) -> None:
    top = schema()
    data = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    assert data.keys() <= top["properties"].keys()
    assert set(top["required"]) <= data.keys()
    for reference in data.get("references", []):
        items = resolved(top["properties"]["references"]["items"])
        assert reference.keys() <= items["properties"].keys()


def test_the_schema_names_its_version_for_editors() -> None:
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert FAKE.keys() <= schema()["properties"].keys()
