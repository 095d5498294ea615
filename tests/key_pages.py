"""Writes docs/case-keys.md and docs/site-keys.md from the models of cases and inventories.

``python -m tests.key_pages`` writes them, and so does ``make docs``. A test compares the pages with
the models. Each model is a section with the place of its keys; its docstring is the text. Keys that
two models share, and those that a package adds, are on one place: a section refers to it.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from tests.folders import ROOT

from proofmark.cases.case import Axes, Case, Load, SuiteUse
from proofmark.cases.reference import Reference
from proofmark.cases.suite import Suite
from proofmark.common.plugins import installed
from proofmark.common.shared_models import PACKAGE_KEYS
from proofmark.site.contract_document import (
    AgreedNumber,
    CheckItem,
    Contract,
    ContractItem,
    DerivedItem,
    ItemTerms,
    WitnessedItem,
)
from proofmark.site.partition import Partition

Schema = Mapping[str, Any]
"""A JSON Schema, or a part of one."""
WRITE = "python -m tests.key_pages writes the page"
WIDTH = 140
NAMES = {"string": "text", "number": "number", "integer": "whole number", "boolean": "true, false"}
"""What a page calls a type of JSON."""
RANGES = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}


@dataclass(frozen=True)
class Root:
    """A model that a file contains, with the name of its place in the file."""

    model: type[BaseModel]
    place: str
    of_package: bool = False


@dataclass(frozen=True)
class KeyPage:
    """A page, its first lines, and the models of its sections with all models that they contain."""

    name: str
    head: str
    roots: Sequence[Root]

    def text(self) -> str:
        """Return the page."""
        parts = [self.head]
        for root in self.roots:
            parts += _sections(root)
        return "\n".join(parts).rstrip() + "\n"


ITEMS = "contract.yml.items"
EACH_ITEM: Mapping[type[BaseModel], str] = {
    ItemTerms: f"[each item](#{ITEMS.replace('.', '')}-itemterms)"
}
VARIED: Mapping[type[BaseModel], str] = {Axes: "[case Axes](#case-axes)"}
OF_REFERENCE = "[case.references](case-keys.md#casereferences)"
SHARED: Mapping[type[BaseModel], Mapping[type[BaseModel], str]] = {
    Case: VARIED,
    SuiteUse: VARIED,
    Load: VARIED,
    ContractItem: {Reference: OF_REFERENCE, **EACH_ITEM},
    CheckItem: EACH_ITEM,
    WitnessedItem: EACH_ITEM,
    DerivedItem: {AgreedNumber: OF_REFERENCE, **EACH_ITEM},
}
"""By model, the models whose keys it has too, each with the link to its section."""
PAGES = (
    KeyPage(
        "case-keys.md",
        "# Keys of a case\n\nThe keys of `benchmarks/<id>.yml` and of `benchmarks/suites.yml`, "
        "made from the models that read them.\n[Cases](cases.md) explains how they work together. "
        "`make docs` writes this page.\n\n```yaml\n"
        "title: Read rate of a file\nprogram: mytool\nmetrics:\n  read: {unit: MiB/s, better: "
        "higher, bound: universal, what: the rate of reading}\nread: {program: mytool}\n```\n",
        [Root(Case, "case"), Root(Axes, "case Axes"), Root(Suite, "suites.yml: suites.NAME")],
    ),
    KeyPage(
        "site-keys.md",
        "# Keys of an inventory\n\nThe keys of the variable `partition` of a group, made from the "
        "models that read them. [A new site](new-site.md)\nexplains how to fill them. `make docs` "
        "writes this page.\n\n```yaml\npartition:\n  environment: skylake\n  scheduler: slurm\n  "
        "provision_from: spack\n  scratch: {path: /scratch/proofmark-{uid}}\n```\n",
        [
            Root(Partition, "partition"),
            Root(Contract, "contract.yml"),
            Root(ItemTerms, f"{ITEMS} ItemTerms"),
        ],
    ),
)


def page_of_packages() -> KeyPage:
    """Return the page with the keys that optional packages add to inventories and contracts."""
    points = sorted(installed(PACKAGE_KEYS).items())
    head = (
        "# Keys of packages\n\nThe keys that an optional package adds to an inventory or a "
        "contract, by their place. Without the package they are refused\nas unknown keys. "
        "`make docs` writes this page.\n\n```yaml\nstability: {days: 14, load: 0.9}\n```\n"
    )
    roots = [Root(point.load(), place, of_package=True) for place, point in points]
    return KeyPage("packages/site-keys.md", head, roots)


def _sections(root: Root) -> Iterator[str]:
    """Yield the section of the model, then those of the models that its keys contain."""
    schema: Schema = root.model.model_json_schema()
    definitions: dict[str, Schema] = {
        name: _own(name, each) for name, each in schema.get("$defs", {}).items()
    }
    if not root.of_package:
        schema = _own(root.model.__name__, schema)
        schema = _without_keys_of_packages(schema, root.place)
    places = _places(schema, root.place, definitions)
    yield _section(schema, root.place, places)
    for name, place in places.items():
        if "properties" in definitions[name]:
            yield _section(definitions[name], place, places)


def _own(name: str, schema: Schema) -> Schema:
    """Return the schema of a model without the keys that it shares, and a text that names them."""
    model = next((each for each in SHARED if each.__name__ == name), None)
    if model is None:
        return schema
    bases = SHARED[model]
    shared: set[str] = set()
    for base in bases:
        shared.update(base.model_fields)
    own = {
        key: value
        for key, value in schema["properties"].items()
        if key not in shared or key in model.__annotations__
    }
    first, _, rest = schema["description"].partition("\n")
    more = f"Its further keys are those of {' and of '.join(bases.values())}."
    return {**schema, "properties": own, "description": f"{first}\n\n{more}\n{rest}"}


def _without_keys_of_packages(schema: Schema, place: str) -> Schema:
    """Return the schema of the model at `place` without the keys that a package adds."""
    if (point := installed(PACKAGE_KEYS).get(place)) is None:
        return schema
    added = point.load()
    own = {key: each for key, each in schema["properties"].items() if key not in added.model_fields}
    return {**schema, "properties": own}


def _places(schema: Schema, place: str, definitions: dict[str, Schema]) -> dict[str, str]:
    """Return where each model of `definitions` is used first, in the order of the keys."""
    found: dict[str, str] = {}
    waiting = [(schema, place)]
    while waiting:
        model, at = waiting.pop(0)
        for key, value in model.get("properties", {}).items():
            for name, below in _models(value, f"{at}.{key}"):
                if name not in found:
                    # Two models for the values of one key have two headings.
                    found[name] = f"{below} {name}" if below in found.values() else below
                    definitions[name] = _without_keys_of_packages(definitions[name], below)
                    waiting.append((definitions[name], below))
    return found


def _models(schema: Schema, place: str) -> Iterator[tuple[str, str]]:
    """Yield each model that a value contains, with its place."""
    if "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2], place
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _models(each, place)
    if isinstance(items := schema.get("items"), Mapping):
        yield from _models(items, place)
    for key in ("additionalProperties", "patternProperties"):
        if isinstance(values := schema.get(key), Mapping):
            inner = values if key == "additionalProperties" else next(iter(values.values()))
            yield from _models(inner, f"{place}.NAME")


def _section(schema: Schema, place: str, places: Mapping[str, str]) -> str:
    text, meanings = _documentation(schema.get("description", ""))
    required = schema.get("required", ())
    lines = [f"## {place}", "", text, ""] if text else [f"## {place}", ""]
    rows = [["key", "value", "default", "meaning"], ["---"] * 4]
    for key, value in schema["properties"].items():
        default = "required" if key in required else _default(value)
        rows.append([f"`{key}`", _kind(value, places), default, meanings.get(key, "")])
    lines += [_row(row if meanings else row[:3]) for row in rows]
    return "\n".join([*lines, ""])


def _row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _documentation(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring, and its attributes with their meanings."""
    text, _, attributes = inspect.cleandoc(docstring).partition("\nAttributes:\n")
    items = re.findall(r"^    (\w+): ((?:.|\n(?!    \w))*)", attributes, re.MULTILINE)
    meanings = {name: _line(meaning) for name, meaning in items}
    paragraphs = [_line(paragraph) for paragraph in text.strip().split("\n\n")]
    return "\n\n".join(
        textwrap.fill(each, WIDTH, break_on_hyphens=False) for each in paragraphs
    ), meanings


def _line(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def _default(schema: Schema) -> str:
    if (value := schema.get("default")) is None or value == "":
        return ""
    if value == [] or isinstance(value, Mapping):
        return ""
    return f"`{json.dumps(value) if isinstance(value, bool) else value}`"


def _kind(schema: Schema, places: Mapping[str, str]) -> str:
    """Return the accepted values in words, with links to the sections of models."""
    if "$ref" in schema:
        place = places[schema["$ref"].rpartition("/")[2]]
        return f"[keys](#{_anchor(place)})"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        kinds = [_kind(each, places) for each in choices if each.get("type") != "null"]
        # A number may be whole.
        kinds = [each for each in kinds if each != NAMES["integer"] or NAMES["number"] not in kinds]
        return " or ".join(dict.fromkeys(kinds))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}), places)}"
    if schema.get("type") == "object":
        patterns = schema.get("patternProperties")
        values = next(iter(patterns.values())) if patterns else schema.get("additionalProperties")
        return f"by name: {_kind(values if isinstance(values, Mapping) else {}, places)}"
    ranges = [f"{sign} {schema[key]:g}" for key, sign in RANGES.items() if key in schema]
    return " ".join([NAMES.get(schema.get("type", ""), "any value"), *ranges])


def _anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def main() -> None:
    """Write the pages."""
    for page in (*PAGES, page_of_packages()):
        (ROOT / "docs" / page.name).write_text(page.text(), encoding="utf-8")


if __name__ == "__main__":
    main()
