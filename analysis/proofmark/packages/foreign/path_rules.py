"""Nodes, parameters and labels of outputs that others produced, in their paths and texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from fnmatch import translate
from itertools import chain

from proofmark.cases.case import Case
from proofmark.cases.reader.values import parameter
from proofmark.cases.vocabulary import DATE, LOAD, SENSOR, Scalar
from proofmark.common.errors import bad_input, nearest
from proofmark.common.nodesets import unfold
from proofmark.packages.foreign.node_names import is_place

NODE = "node"
"""The group of the regular expression that has a node, or a set of nodes."""
PLACE = "place"
"""The group that has the place of the nodes after it: ``rack1`` makes rack1-node01 of node01."""
DATE_IN_PATH = "(?<![0-9])(20[0-9]{2}([-_.]?)[01][0-9]\\2[0-3][0-9])(?![0-9])"
_NOT_IN_PATHS = {"benchmark", "placement", LOAD, SENSOR}


def dates_in(text: str) -> Iterator[str]:
    """Yield the dates in a path as ``2026-04-01``."""
    for match in re.finditer(DATE_IN_PATH, text):
        digits = re.sub(r"\D", "", match[1])
        try:
            yield date(int(digits[:4]), int(digits[4:6]), int(digits[6:])).isoformat()
        except ValueError:
            continue


class PathRule:
    """A regular expression that finds nodes and parameters in a path."""

    def __init__(self, pattern: str, cases: Mapping[str, Case]) -> None:
        """Compile `pattern` for the outputs of `cases`.

        The group ``node``, or else the first group without a name, is a node or a set of nodes.
        The group ``place`` comes before the names of the nodes after it. Every further named group
        is a parameter of the figures.

        Raises:
            BadInput: it is no regular expression, has no group for a node, or a name that is no
                parameter of any of the cases.
        """
        self.pattern = pattern
        try:
            self._rule = re.compile(pattern)
        except re.error as error:
            raise bad_input(
                "--node", "", f"{pattern!r} ({error})", "a regular expression"
            ) from None
        names = self._rule.groupindex
        plain = set(range(1, self._rule.groups + 1)) - set(names.values())
        if NODE not in names and not plain:
            raise bad_input("--node", "", repr(pattern), "a group for the node: (?P<node>n[0-9]+)")
        self._group: str | int = NODE if NODE in names else min(plain)
        known = {name: case.parameter_names() - _NOT_IN_PATHS for name, case in cases.items()}
        every = sorted(set().union(*known.values()))
        for name in names.keys() - {NODE, PLACE}:
            if name not in every:
                found = f"the group {name!r}{nearest(name, every)}"
                raise bad_input("--node", "", found, f"{NODE}, {PLACE}, {', '.join(every)}")
        self._names = {case: sorted(names.keys() & of_case) for case, of_case in known.items()}
        self._types = {name: case.reader().parameters for name, case in cases.items()}

    def nodes(self, path: str) -> list[str]:
        """Return the nodes that all matches in `path` name, each once, in their order.

        A place behind a node is that of the next one: rack1_n01--rack2_n01 is two nodes.

        Raises:
            ValueError: a match is no name of a node and no set of nodes.
        """
        names: dict[str, None] = {}
        places: list[str] = []
        placed = False
        for match in self._matches(path):
            if PLACE in self._rule.groupindex and match[PLACE]:
                places = [match[PLACE]] if placed else [*places, match[PLACE]]
                placed = False
            if text := match[self._group]:
                nodes = unfold([text])
                names |= dict.fromkeys("-".join([*places, node]) for node in nodes)
                placed = True
        return list(names)

    def parameters(self, path: str, case: str) -> dict[str, Scalar]:
        """Return the parameters of `case` that the first match in `path` states.

        Raises:
            ValueError: a value has not the type of its parameter.
        """
        match = next(iter(self._matches(path)), None)
        if match is None:
            return {}
        given = {name: match[name] for name in self._names[case] if match[name] is not None}
        return {name: self._value(case, name, word) for name, word in given.items()}

    def _matches(self, path: str) -> list[re.Match[str]]:
        """Return the matches in `path` after a ``/``, so that ``/`` is before each folder of it.

        If there are none, those in `path` itself: the expression may begin with ``^``.
        """
        return [*self._rule.finditer(f"/{path}")] or [*self._rule.finditer(path)]

    def _value(self, case: str, name: str, word: str) -> Scalar:
        whole = word.isascii() and word.isdecimal()
        return parameter(self._types[case].get(name, "int" if whole else "word"), word)


class LabelRule:
    """A regular expression that finds a label of an output: figures with other labels differ.

    Attributes:
        name: of the label, which is a parameter of the figures.
        of_text: whether it is for the text of the file.
    """

    def __init__(self, option: str, cases: Iterable[Case]) -> None:
        """Compile ``NAME=REGEX``, ``NAME=name:REGEX`` or ``NAME=file:REGEX``.

        The expression is for the path, for the name of the file, or for its first 64 KiB. The label
        is the group of its name, the first group, or else the whole match. The label ``date`` is
        written as 2026-04-01.

        Raises:
            BadInput: it has another form, or the name is a parameter of one of the cases.
        """
        self.option = option
        self.name, _, pattern = option.partition("=")
        place, _, rest = pattern.partition(":")
        self.of_text, self._of_name = place == "file", place == "name"
        try:
            rule = rest if self.of_text or self._of_name else pattern
            self._rule = re.compile(rule, re.MULTILINE)
        except re.error as error:
            raise bad_input("--label", "", f"{option!r} ({error})", "NAME=REGEX") from None
        if not (rule and re.fullmatch("[a-z][a-z0-9_]*", self.name)):
            raise bad_input("--label", "", repr(option), "NAME=REGEX, as kind='/(cpu|gpu)/'")
        if any(self.name in {NODE, *case.parameter_names()} for case in cases):
            found = f"{self.name!r}, which is a parameter of a case"
            raise bad_input("--label", "", found, "another name, or a group of --node")

    def value(self, path: str, text: str) -> str | None:
        """Return the label of the output at `path` that begins with `text`; None if it has none."""
        place = text if self.of_text else path.rpartition("/")[2] if self._of_name else f"/{path}"
        if not (match := self._rule.search(place)):
            return None
        group: str | int = self.name if self.name in self._rule.groupindex else 1
        found = match[group if self._rule.groups else 0]
        return date_of(found) if found and self.name == DATE else found


MOST_PATTERNS = 200
"""The largest number of patterns of a case that are proposed."""
MOST_KINDS = 12
"""The largest number of words that are taken for the values of one label."""
MOST_REPEATS = 20
"""The largest number that counts repeats: 64 in ``avx64`` does not."""


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
    rules = [f"{DATE}={DATE_IN_PATH}"] if len(dates) > 1 else []
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


def _kinds(group: Sequence[str]) -> set[str]:
    """Return the words in which the paths of `group` differ at the first place of such words."""
    parts = [re.split(r"[/_.\s-]+", path) for path in group]
    if len({len(each) for each in parts}) != 1:
        return set()
    for words in map(set, zip(*parts, strict=True)):
        plain = all(re.fullmatch("[A-Za-z][A-Za-z]+[0-9]*", word) for word in words)
        if plain and len(_without_counters(words)) > 1:
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
        places = any(is_place(word) or word in nodes[word] for word in nodes)
        stems = {word.rstrip("-0123456789") for word in nodes}  # run1 and run2 are no kinds
        several = 1 < len(stems) <= len(nodes) <= MOST_KINDS and len(
            set().union(*nodes.values())
        ) > len(nodes)
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
