"""Options of ``adopt`` that fit a folder: patterns of cases, and labels in paths."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from fnmatch import translate
from itertools import chain

from proofmark.cases.vocabulary import DATE
from proofmark.plan.node_names import is_counter

MOST_PATTERNS = 20
"""The largest number of patterns of a case that are proposed."""
MOST_KINDS = 12
"""The largest number of words that are taken for the values of one label."""
_DATE = "(?<![0-9])(20[0-9]{2}([-_.]?)[01][0-9]\\2[0-3][0-9])(?![0-9])"


def case_patterns(paths: Sequence[str], others: Collection[str]) -> list[str]:
    """Return patterns of `find_outputs` for `paths` that match none of `others`.

    At most `MOST_PATTERNS`: then some of `paths` have none.
    """
    found: list[str] = []
    left = dict.fromkeys(sorted(paths))
    while left and len(found) < MOST_PATTERNS:
        for pattern in _patterns_for(next(iter(left))):
            fits = re.compile(translate(pattern)).fullmatch
            if not any(fits(f"/{other}") or fits(other) for other in others):
                break
        found.append(pattern)
        for path in [each for each in left if fits(f"/{each}") or fits(each)]:
            del left[path]
    return found


def label_rules(repeats: Iterable[Sequence[str]]) -> list[str]:
    """Return ``NAME=REGEX`` for the dates and kinds in the paths of outputs that would be repeats.

    Args:
        repeats: the paths of each group of outputs of one case and the same nodes.
    """
    groups = list(repeats)
    dates: set[str] = set()
    for path in chain(*groups):
        dates.update(dates_in(path))
    rules = [f"{DATE}={_DATE}"] if len(dates) > 1 else []
    kinds: set[str] = set()
    for group in groups:
        kinds |= _kinds(group)
    if 1 < len(kinds) <= MOST_KINDS:
        words = "|".join(map(re.escape, sorted(kinds)))
        rules.append(f"kind=(?<![A-Za-z0-9])({words})(?![A-Za-z0-9])")
    return rules


def date_of(text: str) -> str:
    """Return the date in `text` as ``2026-04-01``; another text unchanged."""
    return next(dates_in(text), text)


def dates_in(text: str) -> Iterator[str]:
    """Yield the dates in a path as ``2026-04-01``."""
    for match in re.finditer(_DATE, text):
        digits = re.sub(r"\D", "", match[1])
        try:
            yield date(int(digits[:4]), int(digits[4:6]), int(digits[6:])).isoformat()
        except ValueError:
            continue


def _kinds(group: Sequence[str]) -> set[str]:
    """Return the words in which the paths of `group` differ at the first place of such words."""
    parts = [re.split(r"[/_.\s-]+", path) for path in group]
    if len({len(each) for each in parts}) != 1:
        return set()
    for words in map(set, zip(*parts, strict=True)):
        plain = all(re.fullmatch("[A-Za-z][A-Za-z]+[0-9]*", word) for word in words)
        if len(words) > 1 and plain and not any(map(is_counter, words)):
            return words
    return set()


def _patterns_for(path: str) -> Iterator[str]:
    """Yield patterns that match `path`, from a general one to its own."""
    exact = re.sub(r"[\[*?]", lambda match: f"[{match[0]}]", path)
    exact = "".join(each if each.isprintable() else "?" for each in exact)
    name = exact.rpartition("/")[2]
    end = f".{name.rpartition('.')[2]}" if "." in name[1:] else ""
    if end:
        yield f"*{end}"
    if start := re.match("[A-Za-z]+", name):
        yield f"*/{start[0]}*{end}"
    yield f"*/{name}"
    yield f"*/{re.sub('[0-9]+', '*', name)}"
    yield re.sub("[0-9]+", "*", exact)
    yield exact
