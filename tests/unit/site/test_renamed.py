"""Renamed keys and axes: refused with the new name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.kit import make_kit
from tests.folders import ROOT

from proofmark.cases.loading import load_benchmarks
from proofmark.common.errors import BadInput
from proofmark.common.strict_model import RenamedKeys
from proofmark.common.yaml_models import load
from proofmark.site.execution import Queue
from proofmark.site.inventory import load_site

LIMIT = {
    **{"metric": "rate", "kind": "contract", "source": "s", "value": 1, "at_least": 1},
    "where": {"apart": "chip"},
}


def renamed() -> Iterator[tuple[type[RenamedKeys], str, str]]:
    waiting: list[type[RenamedKeys]] = [RenamedKeys]
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        if model.__module__.startswith("proofmark.") and "RENAMED" in vars(model):
            yield from ((model, old, new) for old, new in model.RENAMED.items())


EVERY = sorted(renamed(), key=lambda each: (each[0].__name__, each[1]))


@pytest.mark.parametrize(("model", "old", "new"), EVERY)
def test_the_new_name_is_a_key_and_the_old_one_is_not(
    model: type[RenamedKeys], old: str, new: str
) -> None:
    keys = {field.alias or name for name, field in model.model_fields.items()}
    assert new in keys
    assert old not in keys


def test_renamed_keys_of_inventories_and_cases_are_found() -> None:
    assert {"jobs_at_once", "reach", "stand_ins", "together", "each"} <= {
        old for _, old, _ in EVERY
    }


@pytest.mark.parametrize(
    ("key", "value", "new"),
    [
        ("queue", {"jobs_at_once": 2}, "max_jobs"),
        ("queue", {"patience_s": 5}, "stall_timeout_s"),
        ("firmware", {"back_end": "record", "tries": 2}, "max_attempts"),
        ("starting", {"launcher": "srun"}, "launch"),
        ("launch", {"binds": "wrapper"}, "binding"),
        ("fabric", {"levels": [{"name": "leaf", "each": 2}]}, "hosts_per_switch"),
    ],
)
def test_an_old_key_of_an_inventory_is_refused_with_its_new_name(
    tmp_path: Path, key: str, value: object, new: str
) -> None:
    source = ROOT / "inventory" / "local"
    for path in source.rglob("*"):
        target = tmp_path / "inventory" / path.relative_to(source)
        if path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (facts,) = (
        path for path in (tmp_path / "inventory").rglob("*.yml") if "partition:" in path.read_text()
    )
    document = yaml.safe_load(facts.read_text())
    document["partition"][key] = value
    facts.write_text(yaml.safe_dump(document))
    with pytest.raises(BadInput, match=f"found an old key; its new name is {new}"):
        load_site(tmp_path / "inventory", "local")


@pytest.mark.parametrize(("old", "new"), [("accepts", "constraints"), ("together", "concurrent")])
def test_an_old_key_of_a_case_is_refused_with_its_new_name(
    tmp_path: Path, old: str, new: str
) -> None:
    kit = make_kit(tmp_path)
    path = kit.case()
    path.write_text(f"{path.read_text()}{old}: {{}}\n")
    where = rf"fake\.yml:\d+: {old}: found an old key; its new name is {new}"
    with pytest.raises(BadInput, match=where):
        load_benchmarks(kit.cases)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"sweep": {"apart": "chip"}}, "sweep.apart"),
        ({"arguments": ["{apart}"], "sweep": {"apart": "chip"}}, "sweep.apart"),
        ({"suites": {"quick": {"sweep": {"apart": "chip"}}}}, "suites.quick.sweep.apart"),
        ({"sweep": {"distance": "chip"}, "references": [LIMIT]}, "references.0.where"),
    ],
)
def test_an_old_axis_of_a_case_is_refused_with_its_new_name(
    tmp_path: Path, changes: dict[str, Any], place: str
) -> None:
    kit = make_kit(tmp_path)
    kit.case(**changes)
    where = rf"fake\.yml: {place}: found an old axis; its new name is distance; accepted: .*"
    with pytest.raises(BadInput, match=where):
        kit.benchmarks()


def test_an_unknown_key_has_the_nearest_key_as_a_hint(tmp_path: Path) -> None:
    """The control: only a key that was renamed has a new name."""
    path = tmp_path / "queue.yml"
    path.write_text("max_job: 2\n")
    with pytest.raises(BadInput, match=r"unknown key.*max_jobs"):
        load(path, Queue)


def test_the_new_name_of_a_key_of_another_model_is_no_hint(tmp_path: Path) -> None:
    path = tmp_path / "queue.yml"
    path.write_text("starting: {}\n")
    with pytest.raises(BadInput, match="found unknown key"):
        load(path, Queue)
