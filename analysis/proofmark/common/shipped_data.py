"""The tables that the package ships: YAML files in the folder ``data`` of a room."""

from __future__ import annotations

from importlib.resources import files
from typing import TypeVar

import yaml
from pydantic import TypeAdapter

Table = TypeVar("Table")


def shipped_data(room: str, name: str, kind: type[Table]) -> Table:
    """Return the table ``data/<name>`` of a room.

    Args:
        room: the name of the package, for example ``proofmark.site``.
    """
    text = (files(room) / "data" / name).read_text(encoding="utf-8")
    return TypeAdapter(kind).validate_python(yaml.load(text, Loader=yaml.CSafeLoader))
