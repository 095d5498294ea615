"""Sentences of other rooms in the language of the page: reasons, faults, causes."""

from __future__ import annotations

import re
from functools import cache

from proofmark.common.message import OF_OTHERS, English, Message, rendered
from proofmark.common.sentence_templates import TEMPLATES
from proofmark.common.translation import ENGLISH, language, translated

LONGEST = 400
"""The largest number of characters of a sentence that is compared with the templates."""

_FIELD = re.compile(r"\{(\w+)\}")


def localized(sentence: str) -> str:
    """Return a sentence of another room in the current language.

    `verdict.json` has these sentences in English, with values inside. The sentence is compared with
    each of `TEMPLATES`. The translation of the first that matches gets the values, which are
    sentences or words themselves. Sentences that ``; `` joins are translated one by one; a sentence
    can have ``; `` itself.

    A sentence without a template is returned as `English`. On an English page each sentence is
    returned as it is.
    """
    if isinstance(sentence, Message) and sentence.code not in OF_OTHERS:
        return rendered(sentence)
    if language() == ENGLISH or not sentence:
        return sentence
    known = _localized(language(), sentence)
    return English(sentence) if known is None else known


def localized_trait(trait: str) -> str:
    """Return the name of a trait in the current language; the name of a package stays."""
    package, separator, name = trait.rpartition(": ")
    return f"{package}{separator}{localized(name)}"


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return each template with the pattern of its sentences, the longest literal text first."""
    ordered = sorted(TEMPLATES, key=lambda each: -len(_FIELD.sub("", each)))
    return tuple((template, pattern_of(template)) for template in ordered)


def pattern_of(template: str) -> re.Pattern[str]:
    """Return the pattern of the sentences of a template; its groups are the fields.

    A value is as short as possible, a text as long as possible.
    """
    parts = _FIELD.split(template)
    text = re.escape(parts[0])
    for field, after in zip(parts[1::2], parts[2::2], strict=True):
        text += f"(?P<{field}>{'.+' if _is_text(field) else '.+?'})" + re.escape(after)
    return re.compile(text)


def _is_text(field: str) -> bool:
    return field.startswith("text")


@cache
def _localized(of: str, sentence: str) -> str | None:
    """Return `sentence` in the language `of`, the current one; None if it has no translation."""
    if len(sentence) > LONGEST:
        return None
    known = translated(sentence)
    if known != sentence:
        return known
    # First the parts: a value of a template could contain the end of one sentence and the next.
    parts = sentence.split("; ")
    for place in range(1, len(parts)):
        first = _whole(of, "; ".join(parts[:place]))
        rest = _localized(of, "; ".join(parts[place:])) if first is not None else None
        if first is not None and rest is not None:
            return f"{first}; {rest}"
    return _by_template(of, sentence)


def _whole(of: str, sentence: str) -> str | None:
    """Return one sentence in the language `of`, without a look for parts."""
    known = translated(sentence)
    return known if known != sentence else _by_template(of, sentence)


def _by_template(of: str, sentence: str) -> str | None:
    for template, pattern in _patterns():
        if found := pattern.fullmatch(sentence):
            fields = {name: _field(of, name, value) for name, value in found.groupdict().items()}
            known = {name: value for name, value in fields.items() if value is not None}
            if len(known) == len(fields):
                return translated(template).format(**known)
    return None


def _field(of: str, name: str, value: str) -> str | None:
    """Return the value of a field in the language `of`; None for a text without a translation."""
    if _is_text(name):
        return _localized(of, value)
    return _by_template(of, value) or value
