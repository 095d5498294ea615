"""docs/suites.md has each suite with its present cost."""

from __future__ import annotations

import re

import pytest
from tests.fixtures.shipped import shipped_benchmarks
from tests.suites_page import BEGIN, LARGE, PAGE, SMALL, Example, sections, table

from proofmark.cli.main import main
from proofmark.common.errors import BadInput

WRITE = "python -m tests.suites_page writes the page"


def page() -> str:
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2]


@pytest.mark.parametrize("word", ["Finds", "Use it"])
def test_each_suite_states_what_it_finds_and_when_it_is_used(word: str) -> None:
    said = re.findall(rf"^- \*\*{word}:\*\* \w", page(), re.MULTILINE)
    assert len(said) == len(shipped_benchmarks().suites)


def test_the_page_has_the_text_of_each_suite() -> None:
    assert page().endswith("\n".join(sections()) + "\n"), WRITE


@pytest.mark.parametrize(
    ("example", "first"),
    [
        pytest.param(SMALL, 2, id="64 nodes"),
        pytest.param(LARGE, 5, id="8,305 nodes", marks=pytest.mark.soak),
    ],
)
def test_the_page_has_the_present_costs(example: Example, first: int) -> None:
    rows = [line.split("|") for line in page().splitlines() if line.startswith("| [")]
    columns = ["|".join(row[first : first + 3]).strip() for row in rows]
    planned = [line.split("|", 2)[2].removesuffix("|").strip() for line in table([example])]
    assert columns == planned[2:], WRITE


@pytest.mark.parametrize(
    ("example", "nodes"),
    [
        pytest.param(SMALL, 64, id="64 nodes"),
        pytest.param(LARGE, 8305, id="8,305 nodes", marks=pytest.mark.soak),
    ],
)
def test_the_size_of_an_example(example: Example, nodes: int) -> None:
    assert example.nodes == nodes


def test_lists_have_the_suites_of_an_acceptance() -> None:
    listed = shipped_benchmarks().listed()
    assert len(listed) == 9
    assert {"quick", "node", "full"} <= set(listed)
    with pytest.raises(BadInput) as caught:
        shipped_benchmarks().suite("nothing")
    assert caught.value.mistakes[0].accepted == ", ".join(listed)
    for name in ("p1", "twin-p5", "rehearsal"):
        assert shipped_benchmarks().members(name)


def test_cases_names_a_hidden_suite_only_if_it_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["cases"]) == 0
    assert not {"p1", "twin-p5", "rehearsal"} & set(capsys.readouterr().out.split())
    assert main(["cases", "--suite", "p1"]) == 0
    assert "p1" in capsys.readouterr().out.split()
