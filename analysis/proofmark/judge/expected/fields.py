"""The fields that a predicted figure and a measured figure have in common."""

from __future__ import annotations

from typing import Any

from proofmark.records.columns import Record


def fields_of(record: Record) -> dict[str, Any]:
    """Return the fields of `AnyFigure` for a valid record."""
    names = ("case", "benchmark", "metric", "unit", "mode", "placement", "value")
    fields: dict[str, Any] = {name: getattr(record, name) for name in names}
    return {**fields, "parameters": dict(record.parameters)}
