"""The names of nodes in the paths of a folder: by what agrees with them, not by their letters.

A word alone is no name: ``p8`` is 8 processes or a node, ``config01`` a setting or a node. Words
are nodes if the outputs, a scheduler, an inventory or a person name them, if pairs of them stand in
paths, or if their own parts say so: node01, rack1-n01. All other words are asked about.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache, cached_property
from itertools import chain
from typing import NamedTuple

from proofmark.common.host_names import is_address, short_name

_NUMBER = re.compile("[0-9]+")
_WORDS = re.compile("[-.]")
_ADDRESS = re.compile(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}")
_NODE = re.compile(
    r"(?:[A-Za-z]+(?:-[A-Za-z]+)*-?[0-9]+(?:-[0-9]+)*-?)+(?<!-)(?:\.[A-Za-z][A-Za-z0-9-]*)*"
    r"|(?:[0-9]{1,3}\.){3}[0-9]{1,3}"
)
_OTHER = re.compile("[0-9]{2,5}|[A-Za-z][A-Za-z0-9-]*[0-9]-?[A-Za-z]{1,3}")
"""Words that are nodes at few sites: a number, and a name with letters after its number."""
_HOSTS = frozenset({"cn", "compute", "host", "n", "nid", "node"})
"""Words before the number of a node."""
_PLACE = (
    "(?:rack|cab|cabinet|cell|chassis|island|pod|row|zone|frame|enclosure|drawer|blade|queue)"
    "-?[A-Za-z0-9]+"
)
"""A folder of nodes that stand together. The same name in two of them is two nodes."""
_AROUND = (
    ("(?<=/)", "(?=/)"),
    ("(?<=/)", r"(?=\.|$)"),
    (r"(?<=\.)", r"(?=\.)"),
    (r"(?<![^/_+,@ -])", r"(?![^/._+,@ -])"),
    ("(?<![A-Za-z0-9])", "(?![A-Za-z0-9])"),
)
"""What is around a name: a folder, the name of a file, all between two dots, a part, or a word."""
_DOTS = 2
"""The place of a name between two dots of the name of a file."""
_PART = 4
"""The place of a word in a name. A longer name has it in it, as J00 is in R00-M0-N00-J00."""
_DOMAIN = r"(?:\.[A-Za-z][A-Za-z0-9-]*)+(?=[./_+,@ ])"
"""What is between a name and the end of the name of a file."""
_APART = "--|[/_+,@ ]"
"""What is between two words of a path."""
_PAIRS = "--|[+,@]"
"""What is between two nodes, and seldom between a node and a count."""
_MOST_SHAPES = 64
_MOST_ASKED = 8
_LEAST_GROUPS, _LEAST_COUNT = 3, 3
"""From how many numbers a name states a place, and how many numbers are a sweep."""
_FLEET = 8
"""So many names of one letter and four digits are no repeats."""
_ROUND = 8
"""The sizes of a problem are multiples of this or more."""


class _Proof(IntEnum):
    """What shows that the words of a scheme are nodes; the greater wins.

    A lone word is asked about if it stands where nodes do.
    """

    NONE = 0
    LONE = 1
    ASK = 2
    NAME = 3
    TEXT = 4


@dataclass(eq=False)
class _Scheme:
    """Words of one shape at one kind of place (`_AROUND`).

    Attributes:
        shape: the expression of all words.
        words: the paths of each word.
        proof: what shows that they are nodes.
        domain: the expression of what is behind them, if one word has several domains.
    """

    place: int
    shape: str
    words: dict[str, set[str]] = field(default_factory=dict)
    proof: _Proof = _Proof.NONE
    domain: str = ""

    @cached_property
    def paths(self) -> set[str]:
        return set().union(*self.words.values())

    @property
    def varies(self) -> bool:
        """Whether outputs have different words, or the one output its own."""
        return len(self.words) > 1 or len(self.paths) == 1

    @property
    def prefix(self) -> str:
        return _prefix(next(iter(self.words)))

    @property
    def pattern(self) -> str:
        before, after = _AROUND[self.place]
        return f"{before}{self.shape}{self.domain or after}"

    def found(self) -> set[tuple[str, str]]:
        pairs: set[tuple[str, str]] = set()
        for word, paths in self.words.items():
            pairs |= {(word, path) for path in paths}
        return pairs

    def rank(self, left: Collection[str]) -> tuple[bool, bool, int, int, int, bool, int, str]:
        covered = len(self.paths & set(left))
        return (
            self.proof is _Proof.TEXT,
            covered > 0 and self.place < _PART,
            covered,
            self.proof,
            -self.place,
            self.prefix in _HOSTS,
            len(self.words),
            self.shape,
        )


@dataclass(frozen=True)
class Question:
    """Words that are nodes or counts, which nothing in the folder decides.

    Attributes:
        words: some of them, in order.
        pattern: the expression for ``--node`` with which they are nodes.
    """

    words: tuple[str, ...]
    pattern: str


@dataclass(frozen=True)
class NamedNodes:
    """The nodes in the paths of a folder.

    Attributes:
        pattern: the expression of `PathRule`; None: no word is a node.
        questions: what is asked, by path.
    """

    pattern: str | None
    questions: Mapping[str, Question]


def is_node(word: str) -> bool:
    """Return whether `word` looks like the name of a node: letters and a number, or an address."""
    parts = word.split("-")
    pair = len(parts) > 1 and all(map(_NODE.fullmatch, parts))
    if pair and len({_prefix(part) for part in parts}) == 1:
        return False
    return bool(_NODE.fullmatch(word))


def is_place(word: str) -> bool:
    """Return whether `word` is a place of nodes, as rack1."""
    return bool(re.fullmatch(_PLACE, word.lower()))


def named_nodes(
    printed: Mapping[str, Collection[str]],
    programs: Collection[str],
    known: Callable[[str], bool] | None = None,
    hosts: Collection[str] = (),
) -> NamedNodes:
    """Return the nodes that the paths of a folder name.

    Args:
        printed: the names that an output prints, by its path. They prove or disprove words.
        programs: words before a number that is a version.
        known: whether a word is a host of the site; None without a site. Then only hosts are nodes.
        hosts: the names that a person states, and that any text of the folder names.
    """
    named_hosts = {short_name(name) for name in hosts}
    partners = _partners(printed)
    schemes = _schemes(printed, known, partners)
    for each in schemes:
        each.proof = _Proof.TEXT if known else _proof(each, printed, programs, partners)
        if each.proof and 2 * len(named_hosts & {*map(short_name, each.words)}) > len(each.words):
            each.proof = _Proof.TEXT
        if _plain(each.shape) not in partners and _shortens(each, programs):
            each.proof = min(each.proof, _Proof.ASK)
        if each.proof and _has_domains(each, programs):
            each.domain = _DOMAIN
    chosen = _chosen(schemes, set(printed), partners)
    named: dict[str, set[str]] = {}
    for each in chosen:
        for word, path in each.found():
            named.setdefault(path, set()).add(word)
    unpaired = {path for path, words in named.items() if _loses_a_node(path, words)}
    pattern = _joined(chosen, printed) if chosen else None
    alone = all(each.proof <= _Proof.LONE for each in schemes)  # else a lone word may be a node
    asked = [each for each in schemes if each.proof and not alone and each not in chosen]
    return NamedNodes(pattern, _questions(asked, set(printed) - named.keys() | unpaired, chosen))


def _loses_a_node(path: str, words: Collection[str]) -> bool:
    """Return whether a pair in `path` has a node and a word that may be one."""
    pairs = [pair for pair in _pairs(path, _PAIRS) if len({*pair.words} & {*words}) == 1]
    return bool(pairs)


def _schemes(
    printed: Mapping[str, object],
    known: Callable[[str], bool] | None,
    partners: Mapping[str, set[str]],
) -> list[_Scheme]:
    found: dict[tuple[int, str], _Scheme] = {}

    @cache  # thousands of paths have the same words
    def may_be(word: str, part: bool) -> bool:
        if known:
            return known(word)
        node = is_node(word) and not _is_pair(word, partners)
        return node or not (part or _OTHER.fullmatch(word) is None)

    for path in printed:
        for place, word in _words(path):
            if may_be(word, place == _PART):
                key = place, _shape(word)
                scheme = found.setdefault(key, _Scheme(*key))
                scheme.words.setdefault(word, set()).add(path)
    for scheme in found.values():
        _fix_width(scheme)
    return [scheme for scheme in found.values() if scheme.words]


def _fix_width(scheme: _Scheme) -> None:
    """Leave out words whose last number has fewer digits than those with a zero before it.

    ``b200`` is none of b0001 … b0640.
    """
    width = min((len(_last(word)) for word in scheme.words if _padded(word)), default=0)
    if not width or "[0-9]+" not in scheme.shape:
        return
    scheme.words = {word: at for word, at in scheme.words.items() if len(_last(word)) >= width}
    before, _, after = scheme.shape.rpartition("[0-9]+")
    scheme.shape = f"{before}[0-9]{{{width},}}{after}"


def _shortens(scheme: _Scheme, programs: Collection[str]) -> bool:
    """Return whether words of `scheme` are parts of names, which nothing confirms.

    One word stands in different names, as n01 in rack1-n01, or beside another word than a program:
    vega-cn0001, n0001-p.
    """
    if scheme.place != _PART or scheme.proof is _Proof.TEXT:
        return False
    for word, paths in scheme.words.items():
        names: set[tuple[str, ...]] = set()
        for path in paths:
            for part in re.split(rf"{_APART}|\.", path):
                if word in (parts := part.split("-")):
                    names.add(tuple(each for each in parts if each != word and _has_number(each)))
                    at = parts.index(word)
                    beside = {*parts[max(at - 1, 0) : at + 2]} - {word}
                    if {*map(_prefix, beside)} - {*programs, ""}:
                        return True
        if len(names) > 1:
            return True
    return False


def _has_domains(scheme: _Scheme, programs: Collection[str]) -> bool:
    """Return whether a word of `scheme` is a host of several domains: node1.rack1, node1.rack2."""
    behind = re.compile(rf"(?<![A-Za-z0-9])({scheme.shape})({_DOMAIN})")
    domains: dict[str, set[str]] = {}
    for path in scheme.paths:
        if match := behind.search(f"/{path}"):
            _, first, *others = match[2].split(".")
            words = not (any(map(_has_number, others)) or {*others} & {*programs})
            if is_place(first) or (words and len(others) > 1):
                domains.setdefault(match[1], set()).add(match[2])
    return any(len(each) > 1 for each in domains.values())


def _proof(
    scheme: _Scheme,
    printed: Mapping[str, Collection[str]],
    programs: Collection[str],
    partners: Mapping[str, set[str]],
) -> _Proof:
    """Return what shows that the words of `scheme` are nodes."""
    answers = []
    for word, paths in scheme.words.items():
        answers += [
            short_name(word) in {short_name(name) for name in printed[path]}
            for path in paths
            if printed[path]
        ]
    if answers and 2 * sum(answers) >= len(answers):
        return _Proof.TEXT
    return _proof_of_set(scheme, programs, partners)


def _proof_of_set(
    scheme: _Scheme, programs: Collection[str], partners: Mapping[str, set[str]]
) -> _Proof:
    """Return what the words of `scheme` themselves show."""
    words = list(scheme.words)
    several = len(words) > 1
    for word in words:
        if {*programs} & {*map(_prefix, word.lower().split("-"))}:
            return _Proof.NONE
    if is_address(words[0]):
        return _Proof.NAME
    if (shape := _plain(scheme.shape)) in partners.get(shape, ()):  # a pair of two of them
        return _Proof.NAME if several else _Proof.ASK
    named = any(map(_is_located, words)) or _are_of_hosts(words) or _are_a_fleet(words)
    if named and all(map(_NODE.fullmatch, words)):
        return _Proof.NAME
    return _Proof.ASK if several else _Proof.LONE


def _is_located(word: str) -> bool:
    """Return whether `word` has a rack, a chassis and a node with the number 0, as x1000c0s0b0n0.

    No count is 0.
    """
    numbers = [*map(int, re.findall("[0-9]+", word))]
    letters = re.findall("[A-Za-z]+", word)
    several = min(len(numbers), len(letters)) >= _LEAST_GROUPS
    return several and numbers.count(0) > 1 and max(map(len, letters)) == 1


def _are_a_fleet(words: Sequence[str]) -> bool:
    """Return whether `words` are one letter and a number of thousands of nodes: b0001 … b0640."""
    form = re.compile("[a-z][0-9]{4,}")
    return len(words) >= _FLEET and all(map(form.fullmatch, words)) and any(map(_padded, words))


def _are_of_hosts(words: Sequence[str]) -> bool:
    """Return whether the words before the numbers name hosts, and places before these."""
    *before, _ = words[0].lower().split("-")
    places = all(is_place(part) or _prefix(part) in _HOSTS for part in before if _has_number(part))
    letters = _last_letters(words[0])
    padded = any(map(_padded, words))
    if not places or words[0][0].isupper() or {letters, _prefix(words[0])}.isdisjoint(_HOSTS):
        return False
    if padded or is_place(before[0] if before else ""):
        return True
    counts = len(letters) == 1 and (len(words) < 2 or len(re.findall("[0-9]+", words[0])) > 1)
    numbers = [int(_last(word)) for word in words]
    sized = len(letters) == 1 and math.gcd(*numbers) >= _ROUND  # n2000 is the size of a problem
    return not (counts or sized or _are_counts(numbers))


def _are_counts(numbers: Sequence[int]) -> bool:
    """Return whether different numbers are steps of a sweep: powers of two."""
    return len(numbers) >= _LEAST_COUNT and all(
        each > 0 and each & (each - 1) == 0 for each in numbers
    )


def _chosen(
    schemes: Sequence[_Scheme], left: set[str], partners: Mapping[str, set[str]]
) -> list[_Scheme]:
    """Return the schemes of the nodes. Each path has words of one scheme, or a pair of two."""
    fitting = [each for each in schemes if each.proof > _Proof.ASK]
    chosen: list[_Scheme] = []
    while fitting and left and len(chosen) < _MOST_SHAPES:
        best = max(fitting, key=lambda scheme: scheme.rank(left))
        shape = _plain(best.shape)
        family = [each for each in fitting if _plain(each.shape) == shape]
        pairs = partners.get(shape, set()) - {shape}
        family += [each for each in schemes if each.proof and _plain(each.shape) in pairs]
        others = [each for each in fitting if each not in family]
        if not best.paths & left:
            fitting.remove(best)
        elif doubtful := [each for each in others if _rivals(best, each)]:
            for each in (best, *doubtful):
                each.proof = _Proof.ASK
            fitting = [each for each in fitting if each.proof > _Proof.ASK]
        else:
            chosen.append(best)
            found = best.found()
            for each in sorted(family, key=lambda scheme: (scheme.place, scheme.shape)):
                if each is not best and (more := each.found() - found):
                    chosen.append(each)  # as in node01/node02.out, and w0007--x0001.out
                    found |= more
            like = _like(best, schemes, {path for _, path in found})
            fitting, left = others, left - like - {path for _, path in found}
    return chosen


def _like(best: _Scheme, schemes: Sequence[_Scheme], found: Collection[str]) -> set[str]:
    """Return the paths of single words that stand where nodes of `best` do, to be asked about."""
    places = {_around(best, path, word) for word, path in best.found()}
    like: set[str] = set()
    for each in schemes:
        if each.place == best.place and each.proof is _Proof.LONE:
            at = {path for word, path in each.found() if _around(each, path, word) in places}
            if at - set(found):
                each.proof = _Proof.ASK
                like |= at - set(found)
    return like


def _around(scheme: _Scheme, path: str, word: str) -> str:
    before, after = _AROUND[scheme.place]
    around = re.sub(f"{before}{re.escape(word)}{after}", "*", f"/{path}")
    return re.sub("[0-9]+", "0", around)


def _rivals(best: _Scheme, other: _Scheme) -> bool:
    """Return whether nothing decides between two schemes: whole words of the same paths."""
    same = best.proof is other.proof is _Proof.NAME and max(best.place, other.place) < _PART
    parts: set[str] = set()
    for word in best.words:
        parts.update(re.split("[-.]", word))
    return same and bool(best.paths & other.paths) and parts.isdisjoint(other.words)


def _partners(paths: Collection[str]) -> dict[str, set[str]]:
    """Return the shapes that stand in pairs of two different words, as ``w0007--x0001``.

    Two shapes are partners if both stand at one place of such pairs. A shape is a partner of itself
    if both words of a pair have it.
    """
    places: dict[tuple[str, int], set[str]] = {}
    itself: set[str] = set()
    for path in paths:
        for pair in chain.from_iterable(_pairs(path, each) for each in (_APART, f"{_APART}|-")):
            first, second = map(_shape, pair.words)
            places.setdefault((pair.around, 0), set()).add(first)
            places.setdefault((pair.around, 1), set()).add(second)
            if first == second:
                itself.add(first)
    found: dict[str, set[str]] = {shape: {shape} for shape in itself}
    for shapes in places.values():
        if len(shapes) > 1 and shapes & itself:
            for shape in shapes:
                found.setdefault(shape, set()).update(shapes)
    return found


class _Pair(NamedTuple):
    """Two words of a path beside each other that may be nodes.

    Attributes:
        around: the path without them and without its numbers.
    """

    words: tuple[str, str]
    around: str


def _pairs(path: str, separators: str) -> Iterator[_Pair]:
    """Yield the pairs in `path` that one of `separators` is between."""
    parts = _separator(separators).split(path)
    words = [part.rpartition("/")[2].partition(".")[0] for part in parts]
    for at in range(0, len(parts) - 2, 2):
        pair = words[at], words[at + 2]
        apart = parts[at + 1] not in {"/", " "} and pair[0] != pair[1]
        if apart and all(map(_NODE.fullmatch, pair)):
            around = [_NUMBER.sub("0", part) for part in parts]
            around[at : at + 3] = "*", parts[at + 1], "*"
            yield _Pair(pair, "".join(around))


@cache
def _separator(separators: str) -> re.Pattern[str]:
    return re.compile(f"({separators})")


def _is_pair(word: str, partners: Mapping[str, set[str]]) -> bool:
    """Return whether `word` is two nodes with ``-`` between them."""
    first, _, second = word.partition("-")
    return _shape(second) in partners.get(_shape(first), ())


def _joined(chosen: Sequence[_Scheme], printed: Mapping[str, Collection[str]]) -> str:
    """Return the expression of all `chosen` schemes, with the places of their nodes if needed.

    The place is needed if a name is in two of them. Outputs that print names have no second one.
    """
    node = f"(?P<node>{'|'.join(dict.fromkeys(each.pattern for each in chosen))})"
    place = f"(?<=[-/_ .@+,]){_PLACE}(?=[/_ ])"
    places: dict[str, set[str]] = {}
    both = f"(?P<place>{place})|{node}"
    for path in set().union(*(each.paths for each in chosen)):
        at = ""
        for match in re.finditer(both, "" if printed[path] else f"/{path}"):
            at = f"{at}-{match['place']}" if match["place"] else at
            if at and match["node"]:
                places.setdefault(match["node"], set()).add(at)
    return both if any(len(each) > 1 for each in places.values()) else node


def _questions(
    asked: Sequence[_Scheme], left: set[str], chosen: Sequence[_Scheme]
) -> dict[str, Question]:
    """Return the question for each path without a node that has words which may be nodes."""
    questions: dict[str, Question] = {}
    waiting = list(asked)
    while waiting and left:
        best = max(waiting, key=lambda each: (each.varies, each.prefix != "", each.rank(left)))
        waiting.remove(best)
        if paths := best.paths & left:
            parts = dict.fromkeys(each.pattern for each in (*chosen, best))
            words = sorted(word for word, of in best.words.items() if of & paths)
            asks = Question(tuple(words[:_MOST_ASKED]), f"(?P<node>{'|'.join(parts)})")
            questions |= dict.fromkeys(paths, asks)
            left = left - paths
    return questions


def _words(path: str) -> Iterator[tuple[int, str]]:
    """Yield the words of a path, each with the kind of its place in `_AROUND`."""
    *folders, name = path.split("/")
    yield from ((0, folder) for folder in folders)
    first, *others = name.split(".")
    yield 1, first
    yield from ((_DOTS, part) for part in others[:-1])
    for part in _separator(_APART).split(path)[::2]:
        yield 3, part.partition(".")[0]
        yield from ((_PART, word) for word in _WORDS.split(part))
        yield from ((_PART, word) for word in _ADDRESS.findall(part))


def _prefix(word: str) -> str:
    """Return the letters before the first number: ``gadi-cpu-clx`` of gadi-cpu-clx-0144."""
    return re.split("-?[0-9]", word.lower(), maxsplit=1)[0]


def _last_letters(word: str) -> str:
    """Return the letters before the last number: of rack1-n01 ``n``, of slurm-hpl-123 ``hpl``."""
    letters = (re.match("[a-z]*", part) for part in reversed(word.lower().split("-")))
    return next((found[0] for found in letters if found and found[0]), "")


def _has_number(part: str) -> bool:
    return bool(re.search("[0-9]", part))


def _last(word: str) -> str:
    numbers = re.findall("[0-9]+", word.partition(".")[0])
    return numbers[-1] if numbers else ""


def _padded(word: str) -> bool:
    return bool(re.search("(?<![0-9])0[0-9]", word)) and not is_address(word)


@cache
def _shape(word: str) -> str:
    name, domain, _ = ("", "", "") if is_address(word) else word.partition(".")
    shape = re.sub("[0-9]+", "[0-9]+", re.escape(name or word).replace(r"\-", "-"))
    return shape + (r"\.[A-Za-z][A-Za-z0-9.-]*" if domain else "")


def _plain(shape: str) -> str:
    """Return a shape without the number of its digits."""
    return re.sub(r"\{[0-9]+,\}", "+", shape)
