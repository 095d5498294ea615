"""The font of Korean plots: files of an installed Python package, which is not imported.

The package koreanize-matplotlib has NanumGothic, which has Hangul. Each system has the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from proofmark.common.errors import bad_input


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


def korean() -> Font:
    """Return a font with Hangul and Latin letters."""
    files = ("NanumGothic.ttf", "NanumGothicBold.ttf")
    return _font("koreanize_matplotlib", "fonts", *files)


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
