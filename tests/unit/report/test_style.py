"""The colours of the pages: each text and each line can be read, on light and on dark paper."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from tests.fixtures.pages import contrast

from proofmark.packages.papers.charts import COLOURS, INK

TEXTS = ("ink", "soft", "link", "pass", "fail", "invalid", "unjudged")
GROUNDS = ("paper", "tint")


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))


def palettes() -> dict[str, dict[str, str]]:
    """Return the colours of both palettes, by the name of their variable."""
    text = (files("proofmark.report") / "style.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root {([^}]*)}", text)
    parts = {"light": light, "dark": dark}
    return {name: dict(re.findall(r"--(\w+): (#\w{6});", part)) for name, part in parts.items()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_has_the_contrast_of_level_aa(scheme: str, ground: str, text: str) -> None:
    colours = palettes()[scheme]
    assert contrast(rgb(colours[text]), rgb(colours[ground])) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_line_of_a_plot_has_the_contrast_of_level_aa(scheme: str) -> None:
    """The ink is the colour of the text around it."""
    paper = rgb(palettes()[scheme]["paper"])
    drawn = [colour for colour in COLOURS if colour != INK]
    assert [colour for colour in drawn if contrast(rgb(colour), paper) < 3] == []


def test_the_sheets_use_no_other_colour_for_a_text() -> None:
    """Each colour is a variable of both palettes."""
    assert palettes()["light"].keys() == palettes()["dark"].keys()
    for path in files("proofmark.report").iterdir():
        if path.name.endswith(".css"):
            text = path.read_text(encoding="utf-8")
            for value in re.findall(r"[ ;{](?:color|fill|background): ?([^;]*);", text):
                assert value in {"inherit", "currentColor", "none"} or value.startswith("var(--")


def test_the_contrast_is_that_of_the_standard() -> None:
    """Control: black on white has 21, and a grey that is just too pale is found."""
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((0x77, 0x77, 0x77), (255, 255, 255)) < 4.5
