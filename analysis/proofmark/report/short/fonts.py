"""The fonts of the PDF: files of installed Python packages, so that each system has the same.

The package of matplotlib has DejaVu Sans. The package koreanize-matplotlib has NanumGothic, which
has Hangul. No package of them is imported: only its files are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from proofmark.common.errors import bad_input

_HANGUL = ((0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7FF))
"""The blocks of Hangul in Unicode."""


@dataclass(frozen=True)
class Font:
    """The files of one font.

    Attributes:
        name: in the PDF.
        regular: the file of its regular weight.
        bold: the file of its bold weight.
    """

    name: str
    regular: Path
    bold: Path


def latin() -> Font:
    """Return a font with Latin letters and mathematical signs."""
    return _font("matplotlib", "mpl-data/fonts/ttf", "DejaVuSans.ttf", "DejaVuSans-Bold.ttf")


def monospaced() -> Font:
    """Return a font whose letters have the same width."""
    files = ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf")
    return _font("matplotlib", "mpl-data/fonts/ttf", *files)


def korean() -> Font:
    """Return a font with Hangul and Latin letters."""
    files = ("NanumGothic.ttf", "NanumGothicBold.ttf")
    return _font("koreanize_matplotlib", "fonts", *files)


def has_hangul(text: str) -> bool:
    """Return whether `text` has a letter of Hangul."""
    return any(any(first <= ord(letter) <= last for first, last in _HANGUL) for letter in set(text))


def _font(package: str, folder: str, regular: str, bold: str) -> Font:
    """Return a font of a Python package.

    Raises:
        BadInput: the package or a file of it is missing.
    """
    spec = find_spec(package)
    distribution = package.replace("_", "-")
    accepted = f"the Python package {distribution} with {folder}/{regular}: run make .venv"
    if spec is None or not spec.submodule_search_locations:
        raise bad_input("font", "", f"no package {distribution}", accepted)
    place = Path(spec.submodule_search_locations[0]) / folder
    for name in (regular, bold):
        if not (place / name).is_file():
            raise bad_input("font", "", f"no file {name} in the package {distribution}", accepted)
    return Font(regular.removesuffix(".ttf").casefold(), place / regular, place / bold)
