"""The language of texts for people: the report and the words of a verdict.

English texts are the keys of the catalogues (GNU gettext). Files for programs (``verdict.json``)
stay English. ``tests/catalogues.py`` extracts the texts from calls of `_`, `N_` and `ngettext`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from gettext import NullTranslations, translation
from pathlib import Path

from proofmark.common.errors import bad_input, nearest

ENGLISH = "en"
LANGUAGES = (ENGLISH, "ko")
DOMAIN = "proofmark"
CATALOGUES = Path(__file__).parent / "catalogues"
"""Its files are ``<language>/LC_MESSAGES/proofmark.mo``."""

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


def _(text: str) -> str:
    """Return `text` in the current language; `text` itself if the catalogue lacks it.

    `text` must be a literal, so that the catalogue can be extracted. Values are added after the
    translation: ``_("{count} of {all} steps").format(count=3, all=5)``.
    """
    return translated(text)


def N_(text: str) -> str:
    """Return `text` itself, a literal that is extracted here and translated where it is used."""
    return text


def translated(text: str) -> str:
    """Return `text` in the current language; `text` itself if the catalogue lacks it.

    `text` is a constant that `N_` marks, or a title of a case.
    """
    return _catalogue(_language.get()).gettext(text) if text else ""


def ngettext(one: str, many: str, amount: int) -> str:
    """Return `one` or `many` by the plural rule of the current language.

    Without a translation `one` is returned for the amount 1, and `many` for all others.
    """
    return _catalogue(_language.get()).ngettext(one, many, amount)


def counted(one: str, many: str, amount: int) -> str:
    """Return the template of a number with a noun: ``{count} step`` or ``{count} steps``.

    These two are the keys of the catalogue; a language may put the number after the noun.
    """
    return _catalogue(_language.get()).ngettext(f"{{count}} {one}", f"{{count}} {many}", amount)
