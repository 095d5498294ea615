"""Reads YAML files into models. An error has the file, the line and the key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from proofmark.common.errors import BadInput, InputError, bad_input, nearest
from proofmark.common.files import read_bytes
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
    if repeated:
        raise BadInput(*repeated)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        mistakes = [_mistake(path, node, item, model) for item in error.errors()]
        raise BadInput(*_merged(mistakes)) from None


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


def _compose(path: Path) -> yaml.Node | None:
    """Return the nodes of a YAML file within the limits; None if it is empty.

    Raises:
        BadInput: it is too large, too deep, or its aliases stand for too many values.
        OSError, ValueError or YAMLError: it is not readable, not UTF-8, or not YAML.
    """
    return _compose_text(_text(path), path)


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
        BadInput: one is not YAML, or exceeds a limit of size, depth or aliases. A file that cannot
            be read, or is not UTF-8, is left to the program.
    """
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.y*ml"))
    mistakes = []
    for path in files:
        if path.suffix in (".yml", ".yaml") and path.is_file():
            with suppress(OSError, ValueError):
                if path.stat().st_size > MAX_YAML_BYTES:
                    found = size(path.stat().st_size)
                    raise bad_input(path, "", found, f"at most {size(MAX_YAML_BYTES)}")
                try:
                    _compose(path)
                except yaml.YAMLError as error:
                    mistakes.append(_not_yaml(path, error, "YAML"))
    if mistakes:
        raise BadInput(*mistakes)


def top_keys(path: Path) -> list[str]:
    """Return the keys of the mapping in `path`; none if it is no YAML, or no mapping.

    Raises:
        BadInput: the file exceeds a limit (`limits`).
    """
    node = _composed(path)
    return [str(key.value) for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []


def repeated_keys(path: Path) -> list[InputError]:
    """Return the keys that `path` has twice. Ansible only warns of them.

    Raises:
        BadInput: the file exceeds a limit (`limits`).
    """
    return _repeated_keys(_composed(path), str(path))


def _composed(path: Path) -> yaml.Node | None:
    """Return the value of a file; None for a file that cannot be read, or is no YAML."""
    try:
        return _compose(path)
    except (OSError, ValueError, yaml.YAMLError):
        return None


def _repeated_keys(node: yaml.Node | None, file: str) -> list[InputError]:
    """Return the keys that `node` has twice. YAML keeps the last one without a warning."""
    repeated: list[InputError] = []
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            word = str(key.value)
            if word in seen:
                line = f"{file}:{key.start_mark.line + 1}"
                repeated.append(InputError(line, word, "the key a second time", "each key once"))
            seen.add(word)
            repeated += _repeated_keys(value, file)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            repeated += _repeated_keys(item, file)
    return repeated


def _mistake(
    path: Path, root: yaml.Node, error: ErrorDetails, model: type[BaseModel]
) -> InputError:
    location, line = _located(root, error["loc"])
    if error["type"] == "missing":
        location.append(error["loc"][-1])
    where, key = f"{path}:{line}", ".".join(map(str, location)) or "(top)"
    if error["type"] == "extra_forbidden":
        words = accepted_keys(model, error["loc"])
        return InputError(
            where,
            key,
            unknown_key(str(location[-1]), words),
            f"one of {', '.join(words)}",
        )
    accepted = _ACCEPTED.get(error["type"], error["msg"].removeprefix("Value error, "))
    return InputError(where, key, _found(error), accepted)


def unknown_key(key: str, words: Sequence[str]) -> str:
    """Return the problem with a key that is not among `words`, with the nearest one."""
    return f"unknown key{nearest(key, words)}"


_ACCEPTED = {
    "missing": "a value: the key is required",
    "string_type": "a text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
"""What is accepted, by pydantic's types of errors. Other types have a plain message already."""


def _found(error: ErrorDetails) -> str:
    given = error["input"]
    if error["type"] == "missing":
        return "nothing"
    text = repr(given)
    if isinstance(given, dict) and given:
        keys = ", ".join(map(str, given))
        empty = all(value is None for value in given.values())
        # {cores} without quotes is a mapping in YAML.
        text = f"{{{keys}}} without quotes" if empty else f"a mapping of {keys}"
    return text if len(text) <= 80 else f"{text[:77]}…"


def _merged(mistakes: Sequence[InputError]) -> list[InputError]:
    """Merge the errors of one value. pydantic returns one error for each accepted type."""
    merged: dict[tuple[str, str, str], list[str]] = {}
    for mistake in mistakes:
        merged.setdefault((mistake.file, mistake.key, mistake.found), []).append(mistake.accepted)
    return [
        InputError(*where, " or ".join(dict.fromkeys(words))) for where, words in merged.items()
    ]


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


def placed(files: Sequence[Path], parts: Sequence[Any]) -> tuple[str, str]:
    """Return ``file:line`` of the key `parts`, and the dotted key as far as the file has it.

    The first of `files` that has the first part is used. Both texts are empty if no file has it.

    Raises:
        BadInput: a file exceeds a limit (`limits`).
    """
    for path in files:
        try:
            node = _compose(path)
        except (OSError, ValueError, yaml.YAMLError):
            continue
        if isinstance(node, yaml.MappingNode):
            keys, line = _located(node, parts)
            if keys:
                return f"{path}:{line}", ".".join(map(str, keys))
    return "", ""


def accepted_keys(model: type[BaseModel], location: Sequence[Any]) -> list[str]:
    """Return the keys that `model` accepts at the place `location` of a pydantic error."""
    models = [model]
    for part in location[:-1]:
        named = [each for each in models if each.__name__ == part]  # the member of a union
        inner = []
        for each in models:
            inner += _models(_field(each, part))
        models = named or inner or models  # an index or the key of a mapping keeps the models
    return [field.alias or name for name, field in models[0].model_fields.items()]


def _field(model: type[BaseModel], key: Any) -> Any:
    """Return the type of the field `key` of `model`, or None."""
    names = {field.alias or name: field for name, field in model.model_fields.items()}
    return names[key].annotation if key in names else None


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models in a type, also in lists, unions and annotations."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    inner = getattr(annotation, "__args__", ())
    models = []
    for argument in inner:
        models += _models(argument)
    return models


Table = TypeVar("Table")


def shipped_data(room: str, name: str, kind: type[Table]) -> Table:
    """Return the table ``data/<name>`` of a room.

    Args:
        room: the name of the package, for example ``proofmark.site``.
    """
    text = (files(room) / "data" / name).read_text(encoding="utf-8")
    return TypeAdapter(kind).validate_python(yaml.load(text, Loader=yaml.CSafeLoader))
