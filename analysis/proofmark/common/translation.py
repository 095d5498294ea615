"""The language of texts for people: the report, the summary and the words of a verdict.

English texts are the keys of the catalogues. Files for programs (``verdict.json``) stay English.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from gettext import NullTranslations, translation
from pathlib import Path

ENGLISH = "en"
LANGUAGES = (ENGLISH, "ko")
CATALOGUES = Path(__file__).parent / "catalogues"
"""Its files are ``<language>/LC_MESSAGES/proofmark.mo``."""

_NONE = NullTranslations()
_catalogue: ContextVar[NullTranslations] = ContextVar("catalogue", default=_NONE)


@contextmanager
def in_language(language: str) -> Iterator[None]:
    """Translate the texts of `_` in the block into `language`, one of `LANGUAGES`."""
    found = (
        NullTranslations()
        if language == ENGLISH
        else translation("proofmark", CATALOGUES, [language])
    )
    token = _catalogue.set(found)
    try:
        yield
    finally:
        _catalogue.reset(token)


def _(text: str) -> str:
    """Return `text` in the current language; `text` itself if the catalogue lacks it.

    `text` must be a literal, so that the catalogue can be extracted. Values are added after the
    translation: ``_("{count} of {all} steps").format(count=3, all=5)``.
    """
    return _catalogue.get().gettext(text)
