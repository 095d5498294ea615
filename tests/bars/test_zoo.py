"""The zoo: each machine gets the words of its row, by the real commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.zoo import PAGE, Zoo, page, table, visit, zoo_kit

ROWS = table()[1]
HEAD = re.compile(r"(?:Acceptance|Sanity check) of \w+ (PASS|FAIL|INVALID|UNJUDGED|NO FAULT FOUND)")
NOT_JUDGED = re.compile(r"unjudged: .*: (required|limit): ")


def in_tier(number: int, row: Zoo) -> object:
    """Return a row for `make test`: a third of the machines, and the shipped sites."""
    always = number % 3 == 0 or row.shipped
    marks = () if always else pytest.mark.soak
    return pytest.param(row, id=row.name, marks=marks)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with zoo_kit(tmp_path_factory.mktemp("zoo") / "kit") as folder:
        yield folder


@pytest.mark.parametrize("row", [in_tier(*each) for each in enumerate(ROWS)])
def test_a_machine_gets_its_words(kit: Path, row: Zoo) -> None:
    words = visit(kit, row)
    left = [line for line in words.check.splitlines() if NOT_JUDGED.match(line)]
    assert words.word == row.word, words
    if row.word != "refused":
        assert HEAD.search(words.page)[1] == row.word  # type: ignore[index]
    for text in row.says:
        assert text in words.page, text
    if row.check:
        assert row.check in words.check
    else:
        assert left == [], "check and the verdict agree which figures are judged"
    for memory, domains in row.binds.items():
        assert words.binds[memory] == domains


def test_the_zoo_has_at_least_sixty_machines_and_its_page() -> None:
    assert len(ROWS) >= 60
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert page() == PAGE.read_text(encoding="utf-8"), "python -m tests.zoo"
