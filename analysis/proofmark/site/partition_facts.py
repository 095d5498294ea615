"""The facts of a partition as the inventory has them: their mistakes, and what replaces them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from proofmark.common.errors import InputError
from proofmark.common.yaml_models import accepted_keys, placed, unknown_key
from proofmark.site.groups import PARTITION
from proofmark.site.partition import PREDICTED, Partition
from proofmark.site.storage import with_uid
from proofmark.site.tuned import Tuned


def predicted_mistake(facts: Path) -> InputError:
    """Return the error for ``origin: predicted``, which no inventory may declare."""
    file, _ = placed(variable_files(facts), [PARTITION, "origin"])
    accepted = "measured or emulated; only `proofmark twin` predicts"
    return InputError(file or f"{facts}", f"{PARTITION}.origin", f"{PREDICTED!r}", accepted)


def open_question(facts: Path, place: tuple[str | int, ...], text: str) -> InputError:
    """Return the error of a required key whose value is a question of ``proofmark init``."""
    file, _ = placed(variable_files(facts), ["partition", *place])
    key = ".".join(["partition", *map(str, place)])
    accepted = "the answer in place of the text"
    return InputError(file or str(facts), key, f"the question: {text}", accepted)


_PLACEHOLDERS: Mapping[str, Any] = {
    "environment": "local",
    "scheduler": "none",
    "provision_from": "system",
    "scratch": {"path": "/"},
}
"""Values of the required facts, for a partition in which these facts are wrong."""


def without_wrong_facts(raw: Any, error: ValidationError) -> Partition | None:
    """Return a partition of the facts that `error` does not name; None if they are not one."""
    wrong = {item["loc"][0] for item in error.errors() if item["loc"]}
    try:
        return Partition.model_validate(without_keys(raw, wrong) if wrong else _PLACEHOLDERS)
    except ValidationError:
        return None


def without_keys(raw: Any, wrong: Collection[Any]) -> dict[str, Any]:
    """Return `raw` without the keys `wrong`. A required key gets a placeholder."""
    right = raw.items() if isinstance(raw, dict) else ()
    return {**_PLACEHOLDERS, **{key: value for key, value in right if key not in wrong}}


def variable_files(folder: Path) -> list[Path]:
    """Return the files from which Ansible reads the variables of the group of `folder`."""
    return [folder.with_suffix(".yml"), *sorted(folder.glob("*.yml"))]


def fact_mistakes(
    facts: Path, error: ValidationError, variable: str = PARTITION
) -> Iterator[InputError]:
    """Yield each mistake in the facts `variable` of a partition."""
    for item in error.errors():
        yield _fact_mistake(facts, item, variable)


def _fact_mistake(facts: Path, item: ErrorDetails, variable: str) -> InputError:
    """Return an error of pydantic with the file and the line of the wrong key of `variable`."""
    key = ".".join([variable, *map(str, item["loc"])])
    file, existing = placed(variable_files(facts), [variable, *item["loc"]])
    if existing:
        key = f"{existing}.{item['loc'][-1]}" if item["type"] == "missing" else existing
    file = file or f"{facts}"
    if item["type"] == "extra_forbidden":
        words = accepted_keys(Partition if variable == PARTITION else Tuned, item["loc"])
        found = unknown_key(str(item["loc"][-1]), words)
        return InputError(str(file), key, found, f"one of {', '.join(words)}")
    found = "nothing" if item["type"] == "missing" else repr(item["input"])
    return InputError(str(file), key, found, item["msg"])


def paths_of_user(raw: Any) -> Any:
    """Return the facts `raw` with the paths of the user who runs the benchmarks."""
    if not isinstance(raw, dict):
        return raw
    user, scratch, further = (raw.get(key) for key in ("run_user", "scratch", "file_systems"))

    def own(entry: Any) -> Any:
        wanted = isinstance(entry, dict) and "path" in entry
        return {**entry, "path": with_uid(entry["path"], user)} if wanted else entry

    changed = {"scratch": own(scratch)} if scratch is not None else {}
    if isinstance(further, list):
        changed["file_systems"] = [own(each) for each in further]
    return {**raw, **changed}


_PLACES = {
    "provision_from": ("provision_from",),
    "scratch_dir": ("scratch", "path"),
    "reservation": ("queue", "reservation"),
}
"""The place of the fact that an extra variable replaces, below ``partition``."""


def replaced_facts(raw: Any, overrides: Mapping[str, str | None]) -> dict[str, tuple[str, str]]:
    """Return the facts that extra variables change: what the inventory has, and what they have."""
    found = {}
    for name, place in _PLACES.items():
        value, stated = overrides.get(name), raw
        for key in place:
            stated = stated.get(key) if isinstance(stated, dict) else None
        if value and value != stated:
            found[name] = ("" if stated is None else f"{stated}", value)
    return found


def overridden(raw: Any, overrides: Mapping[str, str | None]) -> Any:
    """Return the facts `raw` with the values of extra variables; see `load_site`."""
    if not isinstance(raw, dict):
        return raw
    changed = dict(raw)
    if source := overrides.get("provision_from"):
        changed["provision_from"] = source
    if directory := overrides.get("scratch_dir"):
        scratch = changed.get("scratch")
        changed["scratch"] = {**(scratch if isinstance(scratch, dict) else {}), "path": directory}
    if reservation := overrides.get("reservation"):
        queue = changed.get("queue")
        own = queue if isinstance(queue, dict) else {}
        changed["queue"] = {**own, "reservation": reservation}
    return changed
