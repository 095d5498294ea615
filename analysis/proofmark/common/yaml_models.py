"""Reads YAML files into models. An error has the file, the line and the key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from proofmark.common.errors import (
    BadInput,
    InputError,
    KeyMistake,
    bad_input,
    closest,
    nearest,
    refuse,
)
from proofmark.common.files import read_bytes
from proofmark.common.grouping import flat
from proofmark.common.input_limits import MAX_DEPTH, MAX_YAML_BYTES, MAX_YAML_NODES
from proofmark.common.text import size

Model = TypeVar("Model", bound=BaseModel)
NOT_YAML = (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The exceptions of reading YAML: a value may have a tag of another type, as ``!!bool x``."""


def load(path: Path, model: type[Model]) -> Model:
    """Return the `model` in the file `path`; `context` is the context of the validation.

    Raises:
        BadInput: the file is missing, is not YAML, exceeds a limit (`limits`), has a key twice, or
            does not fit the model. It contains every error with its line.
    """
    try:
        text = _text(path)
        if (right := _without_mistake(text, model)) is not None:
            return cast(Model, right)
        node = _compose_text(text, path)
        repeated = _repeated_keys(node, str(path))
        data = yaml.CSafeLoader("").construct_document(node) if node else None
    except OSError as error:
        raise bad_input(path, "", error.strerror or "unreadable", "a readable file") from None
    except NOT_YAML as error:
        raise BadInput(_not_yaml(path, error, "a YAML mapping")) from None
    if not isinstance(node, yaml.MappingNode):
        raise bad_input(path, "", "a file without a mapping at the top", "a YAML mapping")
    refuse(repeated)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        schema = model.model_json_schema()

        def place(parts: Sequence[Any]) -> tuple[list[Any], str]:
            keys, line = _located(node, parts)
            return keys, f"{path}:{line}"

        raise BadInput(*mistakes_of(error, schema, place)) from None


@lru_cache(maxsize=256)
def _without_mistake(text: str, model: type[BaseModel]) -> BaseModel | None:
    """Return the frozen `model` in a YAML text; None if the text has a mistake.

    Many commands read equal files: the cases of the kit, and their copies in runs.
    """
    if not model.model_config.get("frozen"):
        return None
    try:
        node = _compose_text(text, "")
        if not isinstance(node, yaml.MappingNode) or _repeated_keys(node, ""):
            return None
        return model.model_validate(yaml.CSafeLoader("").construct_document(node))
    except (BadInput, *NOT_YAML):
        return None  # `load` finds the mistake again, with its file and line


def _text(path: Path) -> str:
    return read_bytes(path.resolve(), MAX_YAML_BYTES).decode("utf-8")


def parse_yaml(text: str, file: object) -> Any:
    """Return the value of a YAML text; `file` is its name in messages.

    Raises:
        BadInput: it is not YAML, or exceeds a limit (`limits`).
    """
    try:
        node = _compose_text(text, file)
        return yaml.CSafeLoader("").construct_document(node) if node else None
    except NOT_YAML as error:
        raise BadInput(_not_yaml(file, error, "a YAML text")) from None


def _not_yaml(path: object, error: Exception, accepted: str) -> InputError:
    """Return the mistake with the line in which a text stops being YAML."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return InputError(f"{path}", "", f"not YAML: {error}", accepted)
    problem, line = f"{error.problem}", error.problem_mark.line + 1
    if error.context and error.context_mark:
        # A missing quote or bracket is noticed at the end of the file. It is where its text begins.
        problem = f"{error.context} from line {error.context_mark.line + 1}: {problem}"
    if "cannot start any token" in f"{error.problem}":
        problem = f"{problem}; a tab does not indent"
    return InputError(f"{path}:{line}", "", f"not YAML: {problem}", accepted)


def _compose_text(text: str, path: object) -> yaml.Node | None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            line = f":{event.start_mark.line + 1}" if event.start_mark else ""
            raise bad_input(f"{path}{line}", "", "more levels", f"{MAX_DEPTH} nested levels")
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    if node is not None and _expanded(node, {}, ()) > MAX_YAML_NODES:
        found = "aliases that stand for more values, or for themselves"
        raise bad_input(path, "", found, f"{MAX_YAML_NODES} values")
    return node


def _expanded(node: yaml.Node, known: dict[int, int], above: tuple[int, ...]) -> int:
    """Return the number of values in `node` with its aliases expanded.

    It is above `MAX_YAML_NODES` if `node` contains itself. `known` has the numbers of nodes by
    their identity, and `above` the nodes that contain `node`.
    """
    if id(node) in above or len(above) > MAX_DEPTH:
        return MAX_YAML_NODES + 1
    if id(node) not in known:
        inner: Iterable[yaml.Node] = ()
        if isinstance(node, yaml.MappingNode):
            inner = chain.from_iterable(node.value)
        elif isinstance(node, yaml.SequenceNode):
            inner = node.value
        path = (*above, id(node))
        known[id(node)] = 1 + sum(_expanded(each, known, path) for each in inner)
    return known[id(node)]


def check_files(folder: Path) -> None:
    """Check the YAML files below `folder` before another program reads them.

    Raises:
        BadInput: one cannot be read, is not YAML, has a key twice, or exceeds a limit of size,
            depth or aliases.
    """
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.y*ml"))
    mistakes = []
    for path in files:
        if path.suffix in (".yml", ".yaml"):
            try:
                if path.stat().st_size > MAX_YAML_BYTES:
                    found = size(path.stat().st_size)
                    raise bad_input(path, "", found, f"at most {size(MAX_YAML_BYTES)}")
                mistakes += _repeated_keys(_compose_text(_text(path), path), f"{path}")
            except OSError as error:
                found = error.strerror or f"{error}"
                mistakes.append(InputError(f"{path}", "", found, "a readable file"))
            except (ValueError, yaml.YAMLError) as error:
                mistakes.append(_not_yaml(path, error, "YAML"))
    refuse(mistakes)


def key_at(path: Path, line: int) -> str:
    """Return the dotted key whose value begins in `line` of `path`; empty if none does."""
    waiting: list[tuple[list[str], yaml.Node | None]] = [([], composed(path))]
    for above, node in waiting:
        for key, value in pairs_in(node):
            place = [*above, str(key.value)]
            if isinstance(value, yaml.ScalarNode) and value.start_mark.line == line - 1:
                return ".".join(place)
            waiting.append((place, value))
    return ""


def composed(path: Path) -> yaml.Node | None:
    """Return the value of a file; None for a file that cannot be read, or is no YAML.

    Raises:
        BadInput: the file exceeds a limit (`limits`).
    """
    try:
        return _compose_text(_text(path), path)
    except (OSError, ValueError, yaml.YAMLError):
        return None


def pairs_in(node: yaml.Node | None) -> list[tuple[Any, Any]]:
    """Return the nodes of the keys and values of a mapping; nothing of another node."""
    return node.value if isinstance(node, yaml.MappingNode) else []


def line_of(file: object, node: yaml.Node) -> str:
    """Return ``file:line`` of a node."""
    return f"{file}:{node.start_mark.line + 1}"


def _repeated_keys(node: yaml.Node | None, file: str) -> list[InputError]:
    """Return the keys that `node` has twice. YAML keeps the last one without a warning."""
    repeated: list[InputError] = []
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            word = str(key.value)
            if isinstance(key, yaml.MappingNode):
                found = "not YAML: a mapping as a key"
                accepted = "quotes around a template: '{{ … }}'"
                repeated.append(InputError(line_of(file, key), "", found, accepted))
                continue
            if word in seen:
                found, accepted = "the key a second time", "each key once"
                repeated.append(InputError(line_of(file, key), word, found, accepted))
            seen.add(word)
            repeated += _repeated_keys(value, file)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            repeated += _repeated_keys(item, file)
    return repeated


Place = Callable[[Sequence[Any]], tuple[list[Any], str]]
"""Returns the parts of a key that a file has, and ``file:line`` of the last one."""


def mistakes_of(
    error: ValidationError, schema: Mapping[str, Any], place: Place, above: Sequence[str] = ()
) -> list[InputError]:
    """Return one mistake for each wrong value that `error` names.

    Args:
        schema: the JSON Schema of the model; its words are what is accepted.
        above: the keys of the file above those of the model.
    """
    wrong: dict[tuple[Any, ...], list[ErrorDetails]] = {}
    lines: dict[tuple[Any, ...], str] = {}
    for item in error.errors():
        loc = [*above, *item["loc"], *_further(item)]
        keys, where = place(loc)
        named = _further(item) or item["loc"][-1:] * (item["type"] == "missing")
        key = (*keys, *named[-1:]) if [*named[-1:]] != keys[-1:] else tuple(keys)
        wrong.setdefault(key, []).append(item)
        lines.setdefault(key, where)
    meant = set()  # the keys that an unknown one beside them is nearest to
    for key, (item, *_) in wrong.items():
        if item["type"] == "extra_forbidden":
            words = _Schema(schema, item["loc"]).keys(key[len(above) : -1])
            meant.add((*key[:-1], closest(f"{key[-1]}", words)))
    mistakes = []
    for key, items in wrong.items():
        # A union has an error for each of its types. The one inside the value is of its own type.
        inside = any(other[: len(key)] == key != other for other in wrong)
        if not inside and not (items[0]["type"] == "missing" and key in meant):
            found, accepted = _found_and_accepted(
                _Schema(schema, items[0]["loc"]), key[len(above) :], items
            )
            mistakes.append(
                InputError(lines[key], ".".join(map(str, key)) or "(top)", found, accepted)
            )
    return mistakes


def _further(item: ErrorDetails) -> tuple[str | int, ...]:
    """Return the key below the place of an error, if a check of several keys names it."""
    own = item.get("ctx", {}).get("error")
    return own.key if isinstance(own, KeyMistake) else ()


def _found_and_accepted(
    schema: _Schema, key: Sequence[Any], items: Sequence[ErrorDetails]
) -> tuple[str, str]:
    """Return what one value is, and what is accepted in its place."""
    item = items[0]
    if item["type"] == "extra_forbidden":
        words = schema.keys(key[:-1])
        return f"unknown key{nearest(str(key[-1]), words)}", f"one of {', '.join(words)}"
    given: Any = item["input"]
    for part in _further(item):
        try:
            given = given[part]
        except (LookupError, TypeError):
            given = None
    errors = [each.get("ctx", {}).get("error") for each in items]
    own = dict.fromkeys(
        each.accepted if isinstance(each, KeyMistake) else f"{each}"
        for each in errors
        if isinstance(each, ValueError)
    )
    if own:
        return shown(given), " or ".join(own)
    named = item["loc"][-1:] == ("[key]",)
    place = key[:-1] if named else key
    words = schema.words(place, names=named)
    if not words:  # a check before rearranged it
        place, words = item["loc"], schema.words(item["loc"])
    accepted = " or ".join(words) or item["msg"]
    if item["type"] == "missing":
        return "nothing", f"a value: {accepted}"
    if item["type"] == "string_type" and isinstance(given, int | float):
        accepted += f", in quotes: '{given}'"
    lower = f"{given}".lower()
    if item["type"] == "string_pattern_mismatch" and re.search(item["ctx"]["pattern"], lower):
        return f"{shown(given)}, did you mean {lower!r}?", accepted
    return shown(given) + nearest(f"{given}", schema.choices(place, names=named)), accepted


class _Schema:
    """The accepted values at a place of a JSON Schema, in words.

    The place `loc` of an error names the models of unions whose errors are known.
    """

    def __init__(self, schema: Mapping[str, Any], loc: Sequence[Any]) -> None:
        self._root, self._models, self._loc = schema, schema.get("$defs", {}), loc

    def keys(self, place: Sequence[Any]) -> list[str]:
        """Return the keys that a mapping may have."""
        return flat(each.get("properties", ()) for each in self._at(place))

    def choices(self, place: Sequence[Any], *, names: bool = False) -> list[str]:
        """Return the accepted words, if a value is one of several; with `names` a key."""
        return [*map(str, chain.from_iterable(map(_choices, self._accepted(place, names=names))))]

    def words(self, place: Sequence[Any], *, names: bool = False) -> list[str]:
        """Return what is accepted; with `names` as a key of a mapping of any keys."""
        return [*dict.fromkeys(map(self._words, self._accepted(place, names=names)))]

    def _accepted(self, place: Sequence[Any], *, names: bool) -> Iterator[Mapping[str, Any]]:
        for each in self._at(place):
            if not names:
                yield each
                continue
            yield from ({"pattern": pattern} for pattern in each.get("patternProperties", ()))
            yield from self._types(each.get("propertyNames", {}))

    def _at(self, place: Sequence[Any]) -> list[Mapping[str, Any]]:
        found = self._types(self._root)
        for part in place:
            inner: list[Mapping[str, Any]] = []
            for each in found:
                if part in (properties := each.get("properties", {})):
                    inner += self._types(properties[part])
                elif isinstance(part, int):
                    inner += self._types(each.get("items", {}))
                else:
                    inner += self._types(_values(each))
            found = inner
        return found

    def _types(self, schema: Any) -> list[Mapping[str, Any]]:
        """Return the types of a schema without null, each without a reference."""
        if "$ref" in schema:
            return self._types(self._models[schema["$ref"].rpartition("/")[2]])
        several = schema.get("anyOf") or schema.get("oneOf")
        if several is None:
            return [schema] if schema and schema.get("type") != "null" else []
        types = flat(map(self._types, several))
        types = [each for each in types if each.get("title", "") in self._loc] or types
        numbers = any(each.get("type") == "number" for each in types)  # they may be whole
        return [each for each in types if not (numbers and each.get("type") == "integer")]

    def _words(self, schema: Mapping[str, Any]) -> str:
        if choices := _choices(schema):
            return ", ".join(json.dumps(each).strip('"') for each in choices) or "nothing"
        if keys := schema.get("properties"):
            return f"a mapping of {', '.join(keys)}"
        kind = schema.get("type")
        if kind in ("array", "object"):
            inner = schema.get("items", {}) if kind == "array" else _values(schema)
            each = " or ".join(map(self._words, self._types(inner)))
            found, of = ("a list", ": each ") if kind == "array" else ("a mapping", ": each value ")
            return f"{found}{of * bool(each)}{each}"
        if "pattern" in schema:
            pattern = schema["pattern"]
            return FORMS.get(pattern, f"a text of the form {pattern.strip('^$')}")
        ranges = [f"{sign} {schema[name]:g}" for name, sign in RANGES.items() if name in schema]
        return " ".join([KINDS.get(f"{kind}", ""), ", ".join(ranges)]).strip()


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    return [*schema.get("enum", [schema["const"]] if schema.get("const", "") != "" else [])]


def _values(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the values of a mapping of any keys; empty if it is none."""
    values = next(iter(schema.get("patternProperties", {}).values()), None)
    values = schema.get("additionalProperties") if values is None else values
    return values if isinstance(values, Mapping) else {}


KINDS = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
}
"""What a type of JSON is called."""
RANGES = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
FORMS = {
    r"^[a-z][a-z0-9_]*$": "a name of a-z, 0-9 and _ that begins with a letter",
    r"^[a-z0-9][a-z0-9-]*$": "a name of a-z, 0-9 and -",
    r"^[a-z0-9][a-z0-9_-]*$": "a name of a-z, 0-9, - and _",
    r"^[a-z0-9_]*$": "a name of a-z, 0-9 and _",
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "a name of letters, digits, ., _ and -",
    r"^[A-Za-z0-9][A-Za-z0-9._+-]*$": "a word of letters, digits, ., _, + and -",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "the name of a variable: letters, digits and _",
    r"^\{[^{}]+\}$": "an expression in braces, with quotes around it: '{nodes}'",
    r"^/": "an absolute path",
    r"^/.": "an absolute path below /",
}
"""The patterns of several keys, in words."""


def shown(given: Any) -> str:
    """Return a value of a file in at most 80 characters."""
    if given is None or isinstance(given, bool):
        text = {None: "nothing", True: "true", False: "false"}[given]
    elif isinstance(given, dict) and given:
        keys = ", ".join(map(str, given))
        empty = all(value is None for value in given.values())
        # {cores} without quotes is a mapping in YAML.
        text = f"{{{keys}}} without quotes" if empty else f"a mapping of {keys}"
    else:
        text = repr(given)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _located(node: yaml.Node, parts: Sequence[Any]) -> tuple[list[Any], int]:
    """Return the parts of `parts` that are in the file, and the line of the last one (from 1).

    pydantic adds the names of the members of a union to the parts.
    """
    keys, line = [], node.start_mark.line
    for part in parts:
        step: tuple[yaml.Node, yaml.Node] | None = None
        if isinstance(node, yaml.MappingNode):
            step = next(((k, v) for k, v in node.value if k.value == str(part)), None)
        elif isinstance(node, yaml.SequenceNode) and part in range(len(node.value)):
            step = (node.value[part], node.value[part])
        if step is not None:
            keys.append(part)
            line, node = step[0].start_mark.line, step[1]
    return keys, line + 1


def placed(files: Sequence[Path], parts: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return ``file:line`` of the key `parts`, and the key as far as the file has it.

    The first of `files` that has the first part is used. Both are empty if no file has it.

    Raises:
        BadInput: a file exceeds a limit (`limits`).
    """
    for path in files:
        node = composed(path)
        if isinstance(node, yaml.MappingNode):
            keys, line = _located(node, parts)
            if keys:
                return f"{path}:{line}", keys
    return "", []


Table = TypeVar("Table")


def shipped_data(room: str, name: str, kind: type[Table]) -> Table:
    """Return the table ``data/<name>`` of a room.

    Args:
        room: the name of the package, for example ``proofmark.site``.
    """
    text = (files(room) / "data" / name).read_text(encoding="utf-8")
    return TypeAdapter(kind).validate_python(yaml.load(text, Loader=yaml.CSafeLoader))
