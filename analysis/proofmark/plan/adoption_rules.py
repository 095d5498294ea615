"""Options of ``adopt`` that fit a folder: patterns of cases, nodes in paths, labels in paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from fnmatch import translate
from itertools import chain

from proofmark.cases.vocabulary import DATE
from proofmark.common.host_names import is_address, short_name

MOST_PATTERNS = 20
"""The largest number of patterns of a case that are proposed."""
MOST_KINDS = 12
"""The largest number of words that are taken for the values of one label."""
_NODE = re.compile(
    r"(?:[A-Za-z]+(?:-[A-Za-z]+)*-?[0-9]+(?:-[0-9]+)*-?)+(?<!-)(?:\.[A-Za-z][A-Za-z0-9-]*)*"
    r"|(?:[0-9]{1,3}\.){3}[0-9]{1,3}"
)
_NO_NODES = re.compile(
    "batch|bench(mark)?|block|bs|cab(inet)?|case|cell|chassis|cores?|[cg]pus?|data|day|file|gcc|i|icc|"
    "iodepth|island|it|iter(ation)?|job(id)?s?|k|log|m|mpi|n?nodes|nb|np|nprocs?|numjobs|omp|"
    "openmpi|out(put)?s?|p|pair|part(ition)?|phase|pod|ppn|qd|r|rack|ranks?|rep|repeat|repetition|"
    "res(ults?)?|round|row|runs?|s|set|size|slot|slurm|step|sweep|switch|t|tasks?|test|threads?|"
    "trial|try|v|ver|version|week|x|zone"
)
"""Words before a number that is no node: a repeat, a count, a version."""
_SINGLE = {"cn", "compute", "host", "nid", "node"}
"""Words before the number of a node, also if a folder has only one such name."""
_AROUND = (
    ("(?<=/)", "(?=/)"),
    ("(?<=/)", r"(?=\.|$)"),
    (r"(?<![^/_+,@ -])", r"(?![^/._+,@ -])"),
    ("(?<![A-Za-z0-9])", "(?![A-Za-z0-9])"),
)
"""What is around a name: a folder, the name of a file, a part of one, or a word in one."""
_DATE = "(?<![0-9])(20[0-9]{2}([-_.]?)[01][0-9]\\2[0-3][0-9])(?![0-9])"
_MOST_SHAPES = 8


def is_node(word: str) -> bool:
    """Return whether `word` looks like the name of a node: letters and a number, or an address."""
    parts = word.split("-")
    pair = len(parts) > 1 and all(map(_NODE.fullmatch, parts))
    if pair and len({_prefix(part) for part in parts}) == 1:
        return False
    return bool(_NODE.fullmatch(word))


def node_rule(
    printed: Mapping[str, Collection[str]],
    programs: Collection[str],
    known: Callable[[str], bool] | None = None,
) -> str | None:
    """Return a regular expression for the nodes in paths (`PathRule`); None without one.

    Words of one shape are nodes. Several of them, or a zero before the number,
    make a single letter one, too: ``n2`` can be two processes.

    Args:
        printed: the names that an output prints, by its path. Words that contradict most of them
            are no nodes.
        programs: words before a number that is a version.
        known: whether a word is a host of the site; None without a site.
    """
    shapes: dict[tuple[int, str], dict[str, set[str]]] = {}
    for path in printed:
        for place, word in _words(path):
            if known(word) if known else is_node(word) and not _counts(word, programs):
                shapes.setdefault((place, _shape(word)), {}).setdefault(word, set()).add(path)
    fitting = {
        key: set().union(*words.values())
        for key, words in shapes.items()
        if (known or _are_nodes(key[0], words)) and _agree(words, printed)
    }
    chosen: list[tuple[int, str]] = []
    left = set(printed)
    while fitting and left and len(chosen) < _MOST_SHAPES:
        best = max(fitting, key=lambda key: (len(fitting[key] & left), *_rank(key, shapes[key])))
        if not fitting[best] & left:
            break
        chosen.append(best)
        found = _found(shapes[best])
        for key in sorted(key for key in fitting if key[1] == best[1]):
            if more := _found(shapes[key]) - found:  # as in node01/node02.out
                chosen.append(key)
                found |= more
            left -= fitting.pop(key)
    if not chosen:
        return None
    parts = (f"{_AROUND[place][0]}{shape}{_AROUND[place][1]}" for place, shape in chosen)
    return f"(?P<node>{'|'.join(parts)})"


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
        if len(words) > 1 and plain and not any(_NO_NODES.fullmatch(_prefix(w)) for w in words):
            return words
    return set()


def _words(path: str) -> Iterator[tuple[int, str]]:
    """Yield the words of a path, each with the kind of its place in `_AROUND`."""
    *folders, name = path.split("/")
    yield from ((0, folder) for folder in folders)
    yield 1, name.partition(".")[0]
    for part in re.split(r"--|[/_+,@ ]", path):
        yield 2, part.partition(".")[0]
        yield from ((3, word) for word in re.split("[-.]", part))
        yield from ((3, word) for word in re.findall(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}", part))


def _found(words: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    found = set()
    for word, paths in words.items():
        found |= {(word, path) for path in paths}
    return found


def _rank(key: tuple[int, str], words: Collection[str]) -> tuple[int, bool, int, str]:
    place, shape = key
    return -place, _prefix(shape.replace("[", "0")) in _SINGLE, len(words), shape


def _prefix(word: str) -> str:
    return re.split("[-0-9]", word.lower(), maxsplit=1)[0]


def _counts(word: str, programs: Collection[str]) -> bool:
    """Return whether the number of `word` is no node: a count, a job, a version of a program."""
    prefix = _prefix(word)
    padded = re.fullmatch("[cg]pu-?0[0-9]+", word)
    return prefix in programs or (bool(_NO_NODES.fullmatch(prefix)) and not padded)


def _shape(word: str) -> str:
    name, domain, _ = ("", "", "") if is_address(word) else word.partition(".")
    shape = re.sub("[0-9]+", "[0-9]+", re.escape(name or word).replace(r"\-", "-"))
    return shape + (r"\.[A-Za-z][A-Za-z0-9.-]*" if domain else "")


def _are_nodes(place: int, words: Mapping[str, set[str]]) -> bool:
    padded = any(re.search("[A-Za-z-]0[0-9]", word) for word in words)
    prefix = _prefix(next(iter(words)))
    if place > 1 and len(prefix) == 1 and not padded:
        return False
    return len(words) > 1 or padded or prefix in _SINGLE or is_address(next(iter(words)))


def _agree(words: Mapping[str, set[str]], printed: Mapping[str, Collection[str]]) -> bool:
    """Return whether most outputs that print names print the word of their path."""
    answers = []
    for word, paths in words.items():
        answers += [
            short_name(word) in {short_name(name) for name in printed[path]}
            for path in paths
            if printed[path]
        ]
    return 2 * sum(answers) >= len(answers)


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
