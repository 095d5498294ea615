"""Any damage of an output: no traceback, and no number that is not in it."""

from __future__ import annotations

import json
import random
import re
from functools import cache

from hypothesis import example, given
from hypothesis import strategies as st
from tests.fixtures.kit import examples
from tests.fixtures.shipped import shipped_reader
from tests.folders import BENCHMARKS

from proofmark.cases.reader.engine import Reading, read_output

SAMPLES = BENCHMARKS / "samples"
CASES = sorted(path.stem for path in BENCHMARKS.glob("*.yml") if path.stem != "suites")
INSERTED = (
    "nan",
    "-1",
    "1e999",
    "*****",
    " ",
    "\n",
    "\r",
    "\x1b[31m",
    "\x00\xff\u2028",
    "{",
    "\n[n1:2] a warning\n\n",
    "9" * 5000,
)


@cache
def samples() -> list[tuple[str, str]]:
    """Return case and text of each sample that is small enough to read it many times."""
    small = []
    for path in sorted(SAMPLES.glob("*.expected.json")):
        case = json.loads(path.read_text(encoding="utf-8"))[0]["case"]
        stem = path.name.removesuffix(".expected.json")
        text = next(SAMPLES.glob(f"{stem}.[tj]*")).read_text(encoding="utf-8")
        if len(text) < 6000:
            small.append((case, text))
    return small


def damage(text: str, dice: random.Random) -> str:
    """Return `text` with one to four accidents."""
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(max(1, len(text)))
        begin = text.rfind("\n", 0, place) + 1
        end = text.find("\n", place) + 1 or len(text)
        accident = dice.choice(["cut", "delete", "double", "swap", "insert", "replace"])
        if accident == "cut":
            text = text[:place]
        elif accident == "delete":
            text = text[:begin] + text[end:]
        elif accident == "double":
            text = text[:end] + text[begin:]
        elif accident == "swap":
            text = text[:place] + text[place : place + 2][::-1] + text[place + 2 :]
        elif accident == "insert":
            text = text[:place] + dice.choice(INSERTED) + text[place:]
        else:
            text = text[:place] + chr(dice.randrange(0x3000)) + text[place + 1 :]
    return text


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, str]:
    """Generate a sample with one to four accidents."""
    case, text = draw(st.sampled_from(samples()))
    return case, damage(text, draw(st.randoms()))


def numbers(text: str) -> set[float]:
    """Return the numbers that are words in complete lines of `text`, also with a rate's unit.

    A last line without its end is complete if it ends where the line before it ends.
    """
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text)
    *others, last = text.split("\n")
    aligned = bool(others) and len(last) == len(others[-1])
    complete = text if "{" in text or aligned else text[: text.rfind("\n") + 1]
    values = set()
    for word in re.split(r'(?:MB/s)?[\s=:,"]+', complete):
        if re.fullmatch(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?", word) and word.count(".") < 2:
            values.add(float(word) if word.strip("+-.") else 0.0)
    return values


def check(readings: list[Reading], text: str) -> None:
    assert readings
    printed = numbers(text)
    for reading in readings:
        assert reading.valid == (reading.reason == "")
        if reading.valid:
            assert reading.value is not None
            assert reading.value in printed


@examples(4)
@example(
    (
        "osu-bw",
        "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n"
        "1                        55.64\n2                       112.07\n4 4 ",
    )
)
@example(
    (
        "osu-latency",
        "# OSU MPI Latency Test v7.4\n# Size       Avg Latency(us)\n8" + 23 * " " + "2.07",
    )
)
@given(damaged())
def test_damaged_output_gives_only_numbers_that_it_contains(case: tuple[str, str]) -> None:
    name, text = case
    check(read_output(shipped_reader(name), name, text), text)


@examples(2)
@given(st.sampled_from(CASES), st.one_of(st.text(), st.binary().map(lambda b: b.decode("latin-1"))))
def test_any_text_is_read_without_an_error(case: str, text: str) -> None:
    check(read_output(shipped_reader(case), case, text), text)


@examples(4)
@given(
    st.sampled_from(["fio-cache", "ior"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["jobs", "tests", "Results", "write", "bw", "job options", "rw", "access"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    ),
)
def test_any_document_is_read_without_an_error(case: str, inner: object) -> None:
    for document in ({"jobs": inner}, {"tests": inner}, {"jobs": [inner]}, {"tests": [inner]}):
        assert read_output(shipped_reader(case), case, json.dumps(document))
    assert read_output(shipped_reader(case), case, '{"tests":' + "[" * 100_000)
