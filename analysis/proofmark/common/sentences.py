"""Sentences of other rooms in the language of the page: reasons, faults, causes."""

from __future__ import annotations

import re
from functools import cache

from proofmark.common.translation import ENGLISH, language, translated
from proofmark.common.sentence_templates import TEMPLATES

LONGEST = 400
"""The largest number of characters of a sentence that is compared with the templates."""

_FIELD = re.compile(r"\{(\w+)\}")


class English(str):
    """A text in English on a page of another language; the page marks its language."""


def localized(sentence: str) -> str:
    """Return a sentence of another room in the current language.

    `verdict.json` has these sentences in English, with values inside. The sentence is compared with
    each of `TEMPLATES`. The translation of the first that matches gets the values, which are
    sentences or words themselves. Sentences that ``; `` joins are translated one by one.

    A sentence without a template is returned as `English`. On an English page each sentence is
    returned as it is.
    """
    if language() == ENGLISH or not sentence:
        return sentence
    known = _localized(language(), sentence)
    return English(sentence) if known is None else known


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return each template with the pattern of its sentences, the longest literal text first."""
    ordered = sorted(TEMPLATES, key=lambda each: -len(_FIELD.sub("", each)))
    return tuple((template, pattern_of(template)) for template in ordered)


def pattern_of(template: str) -> re.Pattern[str]:
    """Return the pattern of the sentences of a template; its groups are the fields."""
    parts = _FIELD.split(template)
    literal, fields = parts[::2], parts[1::2]
    groups = [f"(?P<{field}>.+?)" for field in fields]
    text = re.escape(literal[0])
    for group, after in zip(groups, literal[1:], strict=True):
        text += group + re.escape(after)
    return re.compile(text)


@cache
def _localized(of: str, sentence: str) -> str | None:
    """Return `sentence` in the language `of`, the current one; None if no template matches."""
    if len(sentence) > LONGEST:
        return None
    word = translated(sentence)
    if word != sentence:
        return word
    for template, pattern in _patterns():
        if found := pattern.fullmatch(sentence):
            fields = {name: _field(of, value) for name, value in found.groupdict().items()}
            return translated(template).format(**fields)
    parts = sentence.split("; ")
    if len(parts) < 2:
        return None
    known = [_localized(of, part) for part in parts]
    return None if None in known else "; ".join(filter(None, known))


def _field(of: str, value: str) -> str:
    """Return a value of a sentence: translated if it is a sentence or a word, else as it is."""
    return _localized(of, value) or value
