"""The messages of the package: the code of each, and its English template."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "past-unfinished": "unfinished: it has no {file}",
    "past-unreadable": "unreadable: {problem}",
    "past-damaged": "damaged {file}: {problem}",
    "past-cut": "damaged {file}: it does not end as proofmark writes it",
    "past-records": "damaged {file}: records.parquet beside it has other figures",
    "past-empty": "damaged {file}: it has no valid figure",
    "past-origins": "damaged {file}: it has figures of several origins",
    "past-time": "damaged {file}: neither the run id {run} nor the facts of a node have a time",
    "past-file": "{file} is damaged",
    "past-programs": "{file} is missing or damaged",
    "trait-only": "package",
}
