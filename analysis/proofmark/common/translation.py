"""The language of texts for people: the report and the words of a verdict.

English texts are the keys of the catalogues (GNU gettext). Files for programs (``verdict.json``)
stay English. ``tests/catalogues.py`` extracts the texts from calls of `_` and `N_`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from gettext import NullTranslations, translation
from pathlib import Path

from proofmark.common.errors import bad_input, nearest

ENGLISH = "en"
KOREAN = "ko"
LANGUAGES = (ENGLISH, KOREAN)
DOMAIN = "proofmark"
CATALOGUES = Path(__file__).parent / "catalogues"
"""Its files are ``<language>/LC_MESSAGES/proofmark.mo``."""

_PARTICLE = re.compile(r"([가-힣0-9])(?:(이)\(가\)|(을)\(를\)|(은)\(는\)|(과)\(와\)|\((으)\)로)")
_AFTER_VOWEL = {"이": "가", "을": "를", "은": "는", "과": "와", "으": "로"}
_DIGITS_WITH_CONSONANT, _DIGITS_WITH_RIEUL = "036178", "178"
_SYLLABLES, _FINALS, _RIEUL = ord("가"), 28, 8
"""The syllables of Unicode are in the order of their final consonants: none, then 27 others."""

_language: ContextVar[str] = ContextVar("language", default=ENGLISH)


@cache
def _catalogue(language: str) -> NullTranslations:
    if language == ENGLISH:
        return NullTranslations()
    return translation(DOMAIN, CATALOGUES, [language])


@contextmanager
def in_language(language: str) -> Iterator[None]:
    """Translate the texts of `_` in the block into `language`, one of `LANGUAGES`.

    Raises:
        BadInput: `language` is not one of `LANGUAGES`.
    """
    if language not in LANGUAGES:
        found = f"{language!r}{nearest(language, LANGUAGES)}"
        raise bad_input("--language", "", found, ", ".join(LANGUAGES))
    token = _language.set(language)
    try:
        yield
    finally:
        _language.reset(token)


def language() -> str:
    """Return the current language, one of `LANGUAGES`."""
    return _language.get()


def N_(text: str) -> str:
    """Return `text` itself, a literal that is extracted here and translated where it is used."""
    return text


def translated(text: str) -> str:
    """Return `text` in the current language; `text` itself if the catalogue lacks it.

    `text` is a constant that `N_` marks, or a title of a case.
    """
    return _catalogue(_language.get()).gettext(text) if text else ""


_ = translated
"""Translates a literal, so that the catalogue can be extracted. Values are added afterwards:
``_("{count} of {all} steps").format(count=3, all=5)``."""


def counted(one: str, many: str, amount: int) -> str:
    """Return the template of a number with a noun: ``{count} step`` or ``{count} steps``.

    These two are the keys of the catalogue; a language may put the number after the noun.
    """
    return _catalogue(_language.get()).ngettext(f"{{count}} {one}", f"{{count}} {many}", amount)


def with_particles(text: str) -> str:
    """Return a text; in Korean with the particles of its values: ``1개이(가)`` is ``1개가``.

    The particle depends on the last sound of the value before it. After a Latin letter, whose sound
    is not known, both forms stay.
    """
    return _PARTICLE.sub(_particle, text) if _language.get() == KOREAN else text


def _particle(match: re.Match[str]) -> str:
    last, with_consonant = match[1], next(filter(None, match.groups()[1:]))
    if last.isdigit():
        consonant, rieul = last in _DIGITS_WITH_CONSONANT, last in _DIGITS_WITH_RIEUL
    else:
        final = (ord(last) - _SYLLABLES) % _FINALS
        consonant, rieul = final > 0, final == _RIEUL
    if with_consonant == "으":
        return f"{last}{'으로' if consonant and not rieul else '로'}"
    return last + (with_consonant if consonant else _AFTER_VOWEL[with_consonant])
