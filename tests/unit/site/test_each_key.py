"""One mistake in each key of the two pages of keys, read as `check` and `cases --check` print it.

A file has mistakes in many keys at once. Each must give one line: the file and the line, the key,
what is there in few characters, what is accepted in the words of the kit.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from tests.folders import ROOT

from proofmark.cases.case import Case
from proofmark.cases.loading import SuitesFile
from proofmark.cases.reader.own_rules import OfProgram, OwnRules, SameAs
from proofmark.cli.main import main
from proofmark.common.kit import VARIABLE
from proofmark.site.contract_document import CheckItem, Contract, ContractItem
from proofmark.site.partition import Partition

Schema = Mapping[str, Any]
Place = tuple[str | int, ...]
OF_PYDANTIC = r"should (be|match|have)|valid (dictionary|list)|instance of|[Vv]alue error|type=|\^"
LINE = re.compile(r"proofmark: (.+?):(\d+): (\S+): found (.+); accepted: (.+)")
TEXTS = ("name", "/name", "{name}", "name.yml", "mlx5_0:1", "/redfish/v1/a")


@dataclass(frozen=True)
class Key:
    """A key of a model: its place in the file, what it accepts, and whether keys are below it."""

    place: Place
    types: tuple[Schema, ...]
    above: bool = False


class Keys:
    """The keys of a model, and a right value of each."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.schema = model.model_json_schema()

    def types(self, schema: Schema) -> tuple[Schema, ...]:
        """Return the types of a value without null and without references."""
        if "$ref" in schema:
            return self.types(self.schema["$defs"][schema["$ref"].rpartition("/")[2]])
        found: list[Schema] = []
        for each in schema.get("anyOf") or schema.get("oneOf") or ():
            found += self.types(each)
        return tuple(found) or ((schema,) if schema.get("type") != "null" else ())

    def right(self, schema: Schema) -> Any:
        """Return a value with the type of the first accepted one."""
        (first, *_) = (*self.types(schema), {})
        kind = first.get("type")
        if "const" in first or "enum" in first:
            return first.get("const", next(iter(first.get("enum", [""]))))
        if properties := first.get("properties"):
            return {name: self.right(properties[name]) for name in first.get("required", ())}
        if kind == "array":
            return [self.right(first.get("items", {}))]
        if kind == "object":
            return {"name": self.right(values(first))}
        if kind in ("integer", "number"):
            least = first.get("minimum", first.get("exclusiveMinimum", 0))
            most = first.get("maximum", first.get("exclusiveMaximum", least + 2))
            return least + 1 if least + 1 < most else (least + most) / 2
        pattern = first.get("pattern", "")
        return next((text for text in TEXTS if re.search(pattern, text)), "name")

    def keys(self, schema: Schema | None = None, place: Place = ()) -> Iterator[Key]:
        """Yield each key below `schema`, once for each place."""
        if schema is not None and "oneOf" in (schema.get("items") or schema):
            return  # the models of a value of several kinds are roots of their own
        for each in self.types(self.schema if schema is None else schema):
            for name, value in each.get("properties", {}).items():
                inner = [*self.keys(value, (*place, name))]
                yield Key((*place, name), self.types(value), bool(inner))
                yield from inner
            if each.get("type") == "array" and place[-1:] != ("name",):
                yield from self.keys(each.get("items", {}), (*place, 0))
            elif each.get("type") == "object" and "properties" not in each:
                yield from self.keys(values(each), (*place, "name"))


def values(schema: Schema) -> Schema:
    inner = next(iter(schema.get("patternProperties", {}).values()), None)
    inner = schema.get("additionalProperties") if inner is None else inner
    return inner if isinstance(inner, Mapping) else {}


def of_another_type(key: Key) -> Any:
    kinds = {each.get("type") for each in key.types}
    kinds |= {"array"} if key.place == ("signers",) else set()  # a list states no roles
    return next(value for kind, value in OTHERS.items() if kind not in kinds)


OTHERS = {"array": [7], "object": {"b": 7}, "string": "many", "integer": 7}


def another_word(key: Key) -> Any:
    """Return an accepted word with a slip; None if any word is accepted."""
    if all("enum" in each or each.get("const") for each in key.types):
        word = next(iter(key.types[0].get("enum", [key.types[0].get("const")])))
        return f"{word}x" if isinstance(word, str) else None
    patterns = [each for each in key.types if "pattern" in each or each.get("const") == ""]
    return "no: name" if key.types and len(patterns) == len(key.types) else None


def out_of_range(key: Key) -> Any:
    if not key.types or any(each.get("type") not in ("integer", "number") for each in key.types):
        return None
    (kind,) = key.types
    for bound, beyond in BEYOND.items():
        if bound in kind:
            return kind[bound] + beyond
    return None


BEYOND = {"minimum": -1, "exclusiveMinimum": 0, "maximum": 1, "exclusiveMaximum": 0}


MISTAKES: Mapping[str, Callable[[Key], Any]] = {
    "type": of_another_type,
    "word": another_word,
    "range": out_of_range,
}


class Document:
    """A file with mistakes in many keys, and right values where keys need others beside them."""

    def __init__(self, keys: Keys, content: Any) -> None:
        self.keys = keys
        self.content = content

    def put(self, place: Place, value: Any) -> None:
        """Write `value` at `place`; what is above it becomes a mapping or a list."""
        schemas, here = self.keys.types(self.keys.schema), self.content
        for number, part in enumerate(place[:-1]):
            schemas = self._below(schemas, part)
            if isinstance(part, int) and part < len(here):
                here = here[part]
                continue
            if isinstance(part, int) or not isinstance(here.get(part), dict | list):
                inner = [each for each in schemas if self._fits(each, place[number + 1])]
                made = self.keys.right(inner[0])
                if isinstance(part, int):
                    here.append(made)
                else:
                    here[part] = made
            here = here[part]
        here[place[-1]] = value

    def _fits(self, schema: Schema, part: str | int) -> bool:
        return (schema.get("type") == "array") == isinstance(part, int)

    def _below(self, schemas: tuple[Schema, ...], part: str | int) -> tuple[Schema, ...]:
        found: list[Schema] = []
        for each in schemas:
            named = each.get("properties", {}).get(part)
            items = each.get("items", {}) if isinstance(part, int) else values(each)
            found += self.keys.types(named if named is not None else items) if each else ()
        return tuple(found)


def dotted(place: Place) -> str:
    return ".".join(map(str, place))


@dataclass(frozen=True)
class Root:
    """A model, its file in a copy of the kit, the place of its keys in the file, and right ones."""

    model: type[BaseModel]
    file: str
    right: str
    above: Place = ()
    around: str = "{}"

    def text(self, content: Any) -> str:
        """Return the file with `content` at its place."""
        whole: Any = content
        for part in reversed(self.above):
            whole = [whole] if isinstance(part, int) else {part: whole}
        whole = {**yaml.safe_load(self.around), **whole}
        return yaml.safe_dump(whole, sort_keys=False, width=10**6)


SITE = "inventory/mysite"
PARTITION, CONTRACT = f"{SITE}/group_vars/cluster/partition.yml", f"{SITE}/contract.yml"
STREAM = "benchmarks/stream.yml"
RIGHT = "{environment: local, scheduler: none, provision_from: system, scratch: {path: /tmp}}"
TERMS = "number: '1', text: a"
LIMIT, CHECK = (
    f"{{{TERMS}, case: stream, metric: triad, value: 1, unit: GB/s, at_least: 1}}",
    f"{{{TERMS}, check: memory, equal: true}}",
)
PARTIES = "{title: a, parties: {buyer: b}}"
CASE = "{title: a, package: stream, program: stream, launch: mpi, cost: {seconds: 1}, metrics: {}"
READ = "read: {program: stream}"
ROOTS = {
    "partition": Root(Partition, PARTITION, RIGHT, ("partition",)),
    "contract": Root(Contract, CONTRACT, f"{{title: a, parties: {{buyer: b}}, items: [{LIMIT}]}}"),
    "items": Root(ContractItem, CONTRACT, LIMIT, ("items", 0), PARTIES),
    "checks": Root(CheckItem, CONTRACT, CHECK, ("items", 0), PARTIES),
    "case": Root(Case, STREAM, f"{CASE}, {READ}}}"),
    "read": Root(OwnRules, STREAM, "{finds: a, keys: {triad: {n: a}}}", ("read",), f"{CASE}}}"),
    "read-same": Root(SameAs, STREAM, "{same_as: a}", ("read",), f"{CASE}}}"),
    "read-program": Root(OfProgram, STREAM, "{program: stream}", ("read",), f"{CASE}}}"),
    "suites": Root(SuitesFile, "benchmarks/suites.yml", "{suites: {name: {title: a}}}"),
}


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the kit with one site, in use."""
    for name in ("benchmarks", "environments"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "inventory" / "template", tmp_path / SITE)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def printed(kit: Path, file: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines that the command about `file` prints."""
    site = ["check", "-i", str(kit / SITE), "--suite", "quick"]
    assert main(site if file.startswith("inventory") else ["cases", "--check"]) == 3
    out, said = capsys.readouterr()
    assert not out
    return said.replace(f"{kit}/", "").splitlines()


@pytest.mark.parametrize("kind", [*MISTAKES, "unknown"])
@pytest.mark.parametrize("root", ROOTS.values(), ids=ROOTS)
def test_one_mistake_is_one_line(
    root: Root, kind: str, kit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = Keys(root.model)
    every = list(keys.keys())
    wrong = []
    for key in every:
        value = 7 if kind == "unknown" else MISTAKES[kind](key)
        if value is not None:
            *above, name = key.place
            wrong.append(((*above, f"{name}x") if kind == "unknown" else key.place, value, name))
    parents = {key.place for key in every if key.above} if kind != "unknown" else set()
    # A wrong value hides what is below it: keys with others below them are tried by their depth.
    rounds = [[each for each in wrong if each[0] not in parents]]
    for depth in sorted({len(place) for place in parents}):
        rounds.append([each for each in wrong if each[0] in parents and len(each[0]) == depth])
    for planted in filter(None, rounds):
        document = Document(keys, yaml.safe_load(root.right))
        for place, value, _ in planted:
            document.put(place, value)
        text = root.text(document.content)
        (kit / root.file).write_text(text)
        lines = printed(kit, root.file, capsys)
        said: dict[str, str] = {}
        for line in lines:
            match = LINE.fullmatch(line)
            assert match, line
            assert match[1] == root.file, line
            said[match[3]] = match[0]
        wanted = {dotted((*root.above, *place)): name for place, _, name in planted}
        assert [line for key, line in said.items() if key not in wanted] == []
        assert [key for key in wanted if key not in said] == []
        assert len(lines) == len(planted)
        for where, name in wanted.items():
            match = LINE.fullmatch(said[where])
            assert match
            line = text.splitlines()[int(match[2]) - 1]
            assert line.lstrip(" -").startswith(f"{name}"), (line, match[0])
            found, _, meant = match[4].partition(", did you mean ")
            assert len(found) <= 80, match[0]
            assert not re.search(OF_PYDANTIC, match[5]), match[0]
            if kind == "unknown":
                assert meant == f"{name!r}?", match[0]
            if kind == "word" and found.endswith("x'") and len(found) > 4:
                assert meant == f"{found[1:-2]!r}?", match[0]
