"""Options of ``adopt`` that fit a folder: patterns of cases, and labels in paths."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from fnmatch import translate
from itertools import chain

from proofmark.cases.vocabulary import DATE
from proofmark.plan.node_names import is_count, is_counter, is_place

MOST_PATTERNS = 200
"""The largest number of patterns of a case that are proposed."""
MOST_KINDS = 12
"""The largest number of words that are taken for the values of one label."""
MOST_REPEATS = 20
"""The largest number that counts repeats: 64 in ``avx64`` does not."""
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


def label_rules(outputs: Iterable[Mapping[str, tuple[str, ...]]]) -> list[str]:
    """Return ``NAME=REGEX`` for the dates and kinds in the paths of outputs.

    Dates and kinds separate outputs that would be repeats. If nothing does, folders separate kinds
    of nodes.

    Args:
        outputs: the nodes of each output of one case, by path.
    """
    groups: list[Sequence[str]] = []
    of_nodes: set[str] = set()
    for nodes in outputs:
        repeats: dict[tuple[str, ...], list[str]] = {}
        for path, of_path in nodes.items():
            repeats.setdefault(of_path, []).append(path)
        groups += (paths for paths in repeats.values() if len(paths) > 1)
        of_nodes |= _kinds_of_nodes(nodes)
    dates: set[str] = set()
    for path in chain(*groups):
        dates.update(dates_in(path))
    rules = [f"{DATE}={_DATE}"] if len(dates) > 1 else []
    words: set[str] = set()
    for group in groups:
        words |= _kinds(group)
    kinds = _without_counters(words)
    if 1 < len(kinds) <= MOST_KINDS:
        shapes = "|".join(map(re.escape, sorted(kinds)))
        number = "[0-9]*" if kinds - words else ""
        rules.append(f"kind=(?<![A-Za-z0-9])({shapes}){number}(?![A-Za-z0-9])")
    elif 1 < len(of_nodes) <= MOST_KINDS:
        rules.append(f"kind=/({'|'.join(map(re.escape, sorted(of_nodes)))})/")
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
        if plain and len(_without_counters(words)) > 1 and not any(map(is_counter, words)):
            return words
    return set()


def _without_counters(words: Collection[str]) -> set[str]:
    """Return `words` without the numbers that count: ``stream1`` and ``stream2`` are repeats.

    Numbers count from 0 or 1, or have a zero before them. Those of gcc12 and gcc13 do not.
    """
    numbers: dict[str, list[str]] = {}
    for word in words:
        stem = word.rstrip("0123456789")
        numbers.setdefault(stem, []).append(word.removeprefix(stem))
    found: set[str] = set()
    for stem, of_stem in numbers.items():
        counts = all(not each or each[0] == "0" or int(each) <= MOST_REPEATS for each in of_stem)
        first = min((int(each) for each in of_stem if each), default=0)
        if counts and first <= 1:
            found.add(stem)
        else:
            found |= {f"{stem}{each}" for each in of_stem}
    return found


def _kinds_of_nodes(outputs: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the folders in which nodes of several kinds are: each node is in one of them.

    Args:
        outputs: the nodes of each output of one case, by path.
    """
    folders = [path.split("/")[:-1] for path in outputs]
    for place in range(min(map(len, folders), default=0)):
        nodes: dict[str, set[str]] = {}
        for parts, of_path in zip(folders, outputs.values(), strict=True):
            nodes.setdefault(parts[place], set()).update(of_path)
        plain = all(re.fullmatch("[A-Za-z][A-Za-z]+-?[0-9]*", word) for word in nodes)
        places = any(is_place(word) or is_count(word) or word in nodes[word] for word in nodes)
        several = 1 < len(nodes) <= MOST_KINDS and len(set().union(*nodes.values())) > len(nodes)
        own = sum(map(len, nodes.values())) == len(set().union(*nodes.values()))
        if plain and several and own and not places:
            return set(nodes)
    return set()


def _patterns_for(path: str) -> Iterator[str]:
    """Yield patterns that match `path`, from a general one to its own."""
    exact = re.sub(r"[\[*?]", lambda match: f"[{match[0]}]", path)
    exact = "".join(each if each.isprintable() else "?" for each in exact)
    *folders, name = exact.split("/")
    end = f".{name.rpartition('.')[2]}" if "." in name[1:] else ""
    if end:
        yield f"*{end}"
    if (words := re.sub("[A-Za-z]*[0-9]+(?:[A-Za-z]*[0-9]+)*", "*", name)) != name:
        yield words if words.startswith("*") else f"*/{words}"
    for depth in range(1, len(folders) + 1):
        yield "/".join((*(re.sub("[0-9]+", "*", each) for each in folders[:depth]), f"*{end}"))
    if start := re.match("[A-Za-z]+", name):
        yield f"*/{start[0]}*{end}"
    yield f"*/{name}"
    yield f"*/{re.sub('[0-9]+', '*', name)}"
    yield re.sub("[0-9]+", "*", exact)
    yield exact
