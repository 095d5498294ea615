"""Whole verdicts of tests of the judge: ``tests/golden/verdicts``.

A test of a verdict states one fact of it. For some tests, which together execute most lines of the
judge, a file has all that their verdicts state. So a change of any of it is seen.

``python -m tests.verdicts [TEST…]`` writes these files anew, and adds the named tests.

A message is its code with its values, so that other words change no file. What is empty or false
is left out. Numbers have six digits. Of results that differ in numbers and names only, the first
one is complete; of the others the text has node and value.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import unified_diff
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.fixtures.pairs import fleet_of, fleet_of_nodes
from tests.folders import ROOT

from proofmark.common.message import Message
from proofmark.judge import judging
from proofmark.judge.acceptance import Acceptance, acceptance
from proofmark.judge.diagnosis.bad_nodes import rma
from proofmark.judge.fleet.fleet import Fleet, measure_fleet
from proofmark.judge.fleet.populations import Levels, levels_of
from proofmark.judge.foreseen import unjudged_of
from proofmark.judge.next_steps import next_steps
from proofmark.judge.verdict import Verdict

FOLDER = ROOT / "tests/golden/verdicts"
WRITER = "writer of verdicts"
"""The plug-in of pytest that collects the texts, if they are written."""
WIDTH = 120
SMALL = 1e-9
"""Smaller numbers are 0: they are what rounding left."""
RUN = r"\d{8}T\d{6}Z-[\w.-]+"
"""The id of a run that a test did not name."""
FUNCTIONS = (
    *(acceptance, rma, measure_fleet, unjudged_of),
    *(fleet_of, fleet_of_nodes, levels_of),
)
"""The functions whose results are compared, too, if the module of a test calls them."""
OWN = ("step", "attempt", "node", "value", "repeat", "values", "interval", "ratio", "ratios")
"""The keys of a result that differ between like ones, or between their references."""
OF_SIZE = ("parameters", "median", "spread", "limit", "detectable")
"""The keys that differ between like figures of a fleet."""


def plain(value: Any) -> Any:
    """Return `value` as texts, numbers, lists and dictionaries that are not empty or false."""
    if isinstance(value, Message):
        value = {"code": value.code, "fields": value.fields}
    elif is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        if value.keys() == {"code", "fields"}:
            return {value["code"]: plain(value["fields"])} if value["fields"] else value["code"]
        worded = {key.removesuffix("_code") for key in map(str, value) if key.endswith("_code")}
        found = {f"{key}": plain(each) for key, each in value.items() if key not in worded}
        return {key: each for key, each in found.items() if not _is_empty(each)}
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value), key=str)
    if isinstance(value, np.ndarray) and value.dtype == bool:
        value = np.flatnonzero(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return 0.0 if abs(value) < SMALL else float(f"{value:.6g}")
    return value if value is None or isinstance(value, (bool, int)) else f"{value}"


def _is_empty(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def flow(value: Any) -> str:
    """Return a plain value on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {flow(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    return " ".join(value.split()) if isinstance(value, str) else f"{value}"


def lines(value: Any, indent: str) -> Iterator[str]:
    """Yield the lines of a plain dictionary or list; what fits into a line is in it."""
    line = ""
    for key, each in value.items() if isinstance(value, dict) else (("-", each) for each in value):
        head = "-" if key == "-" else f"{key}:"
        whole = f"{head} {flow(each)}"
        if line and len(f"{indent}{line}, {whole}") <= WIDTH:
            line += f", {whole}"
            continue
        if line:
            yield f"{indent}{line}"
        line = whole
        if len(f"{indent}{whole}") > WIDTH and isinstance(each, (dict, list)):
            yield f"{indent}{head}"
            yield from lines(each, f"{indent}  ")
            line = ""
    if line:
        yield f"{indent}{line}"


def of_verdict(verdict: Verdict) -> Iterator[str]:
    """Yield what a verdict states."""
    codes = f"exit {verdict.exit_code()}, strict {verdict.exit_code(strict=True)}"
    yield f"verdict: {codes}; {verdict.headline(strict=True).word}"
    stated = plain(verdict.as_json())
    results = stated.pop("results", [])
    stated["next"] = plain(next_steps(verdict))
    stated["rma"] = plain(rma(verdict.bad.nodes, {}))
    yield from lines({key: each for key, each in stated.items() if each}, " ")
    alike: dict[str, list[Any]] = {}
    for each in results:
        head = " ".join(f"{each.pop(key, '')}" for key in ("verdict", "case", "metric"))
        of = f"{each.pop('node')} {each.pop('value', '')}"
        references = [_without(judged, *OWN) for judged in each.get("references", ())]
        key = flow([head, {**_without(each, *OWN), "references": references}])
        alike.setdefault(key, [f" * {head} {of}", each]).append(of)
    for first, each, _, *others in alike.values():
        yield first
        yield from lines({**each, "also": others} if others else each, "   ")


def _without(value: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key not in keys}


def of_fleet(fleet: Fleet) -> Iterator[str]:
    """Yield the lines of a fleet; of figures and judgements that differ in numbers, the first."""
    yield "Fleet:"
    stated = plain(fleet.as_json())
    figures = stated.pop("figures", [])
    numbers = {name: getattr(fleet, name) for name in ("failed", "spiked", "again")}
    noise = fleet.noise(0) if len(fleet.of) else None
    yield from lines({**stated, **plain({**numbers, "noise": noise})}, " ")
    alike: dict[str, list[Any]] = {}
    for each in figures:
        of_size = [each.get(key, "") for key in OF_SIZE]
        alike.setdefault(flow(_without(each, *OF_SIZE)), [each]).append(of_size)
    for first, _, *others in alike.values():
        yield " * figure"
        yield from lines({**first, "also": others} if others else first, "   ")
    seen: set[str] = set()
    for result in range(len(fleet.of)):
        judged = fleet.judge(result)
        if judged and judged.reason.code not in seen:
            seen.add(judged.reason.code)
            yield f" * judgement of {result}"
            yield from lines(plain(judged), "   ")


def of_any(found: Any) -> Iterator[str]:
    """Yield the lines of what a function returned."""
    if isinstance(found, Verdict):
        yield from of_verdict(found)
    elif isinstance(found, (Acceptance, Levels)):
        yield f"{type(found).__name__}:"
        yield from lines(plain(found if isinstance(found, Levels) else found.as_json()), " ")
    elif isinstance(found, Fleet):
        yield from of_fleet(found)
    else:
        yield "rows:"
        yield from lines([plain(each) for each in found], " ")


def recorded(module: ModuleType, patch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list to which the verdicts of a test are added.

    Args:
        module: that of the test.
    """
    seen: list[Any] = []

    def recording(original: Callable[..., Any]) -> Callable[..., Any]:
        def record(*args: Any, **kwargs: Any) -> Any:
            seen.append(original(*args, **kwargs))
            return seen[-1]

        return record

    for name, found in [*vars(module).items()]:
        if any(found is each for each in FUNCTIONS):
            patch.setattr(module, name, recording(found))
    patch.setattr(judging, "_diagnosed", recording(judging._diagnosed))
    return seen


def text_of(seen: Sequence[Any], folder: Path) -> str:
    """Return the text of what was recorded; runs and paths in the folder of all tests are …."""
    here = rf"{re.escape(f'{folder}')}(/[\w.-]+)?|{re.escape(f'{ROOT}')}|{RUN}"
    found = (line.rstrip() for each in seen for line in of_any(each))
    return re.sub(here, "…", "".join(f"{line}\n" for line in found))


@dataclass
class Writer:
    """A plug-in of pytest that collects the texts of the wanted tests.

    Attributes:
        wanted: the ids of the tests.
        texts: by file and test.
    """

    wanted: Sequence[str]
    texts: dict[Path, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    __name__: ClassVar[str] = WRITER


def file_of(test: str) -> Path:
    """Return the file with the verdicts of a test, by the id of the test."""
    path = Path(test.partition("::")[0])
    return FOLDER / f"{path.parent.name}.{path.stem.removeprefix('test_')}.txt"


@cache
def stored(file: Path) -> Mapping[str, str]:
    """Return the texts of a file, by the ids of the tests."""
    content = file.read_text(encoding="utf-8") if file.exists() else ""
    parts = (part.partition("\n") for part in f"\n{content}".split("\n== ")[1:])
    return {name: f"{text.rstrip()}\n" for name, _, text in parts}


def compared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compare what a test finds with its file, or write it; a fixture of each test yields this."""
    test = request.node.nodeid
    writer: Writer | None = request.config.pluginmanager.get_plugin(WRITER)
    expected = stored(file_of(test)).get(test)
    if test not in writer.wanted if writer else expected is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        seen = recorded(request.module, patch)
        yield
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    found = text_of(seen, factory.getbasetemp())
    if writer:
        writer.texts[file_of(test)][test] = found
        return
    both = (expected or "").splitlines(), found.splitlines()
    if change := list(unified_diff(*both, "stored", "found", lineterm="", n=1)):
        told = "another verdict; if it is right, python -m tests.verdicts writes it"
        pytest.fail("\n".join([told, *change]), pytrace=False)


def main(tests: Sequence[str]) -> int:
    """Write the files of the tests that have texts, and those of `tests`."""
    every = (stored(file) for file in FOLDER.glob("*.txt"))
    writer = Writer([*dict.fromkeys(chain(chain.from_iterable(every), tests))])
    code = pytest.main(["-q", "-p", "no:cacheprovider", *writer.wanted], plugins=[writer])
    for file, texts in writer.texts.items():
        parts = (f"== {test}\n{text}" for test, text in sorted(texts.items()))
        file.write_text("\n".join(parts), encoding="utf-8")
    return int(code)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
