"""The names of nodes in the paths of a folder: words are nodes by their set, not by their letters.

A word alone is no name: ``p8`` is 8 processes or a node. Its set decides: the same digits in each
word, a place with the number 0, a pair of two words, or the names that the outputs print. Words
that stay unsure are asked about.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from proofmark.common.host_names import is_address, short_name

_NODE = re.compile(
    r"(?:[A-Za-z]+(?:-[A-Za-z]+)*-?[0-9]+(?:-[0-9]+)*-?)+(?<!-)(?:\.[A-Za-z][A-Za-z0-9-]*)*"
    r"|(?:[0-9]{1,3}\.){3}[0-9]{1,3}"
)
_OTHER = re.compile("[0-9]{2,5}|[A-Za-z][A-Za-z0-9-]*[0-9]-?[A-Za-z]{1,3}")
"""Words that are nodes at few sites: a number, and a name with letters after its number."""
_COUNTS = re.compile(
    "batch|bench(mark)?|block|bs|cab(inet)?|case|cell|chassis|cores?|[cg]pus?|data|day|file|gcc|icc|"
    "iodepth|island|it|iter(ation)?|job(id)?s?|log|mpi|n?nodes|nb|np|nprocs?|numjobs|omp|"
    "openmpi|out(put)?s?|pair|part(ition)?|phase|pod|ppn|qd|rack|ranks?|rep|repeat|repetition|"
    "res(ults?)?|round|row|runs?|set|size|slot|slurm|step|sweep|switch|tasks?|test|threads?|"
    "trial|try|ver|version|week|zone"
)
"""Words before a number that is no node: a repeat, a count, a version, a place of nodes."""
_EITHER = frozenset("ikmprstvx")
"""Letters before the number of a node at some sites, and before a count or a repeat at others."""
_USUAL = frozenset({"cn", "compute", "host", "nid", "node"})
"""Words before the number of a node, also if a folder has only one such name."""
_PLACE = (
    "(?:rack|cab|cabinet|cell|chassis|island|pod|row|zone|frame|enclosure|drawer)-?[A-Za-z0-9]+"
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
_WHOLE = 1
"""The last place of a name that is a whole folder or the name of a file."""
_DOTS = 2
"""The place of a name between two dots of the name of a file."""
_PART = 4
"""The place of a word in a name. A longer name has it in it, as J00 is in R00-M0-N00-J00."""
_JOB = re.compile("[A-Za-z-]+-[0-9]{3,}|.*-[0-9]{5,}", re.ASCII)
"""A name with a number that may be the id of a job: nightly-8812, linpack-v23-12345."""
_APART = "--|[/_+,@ ]"
"""What is between two words of a path."""
_PAIRS = "--|[+,@]"
"""What is between two nodes, and seldom between a node and a count."""
_MOST_SHAPES = 64
_MOST_ASKED = 8
_LEAST_GROUPS, _LEAST_DIGITS, _LEAST_COUNT = 3, 3, 3
"""From how many numbers in a name, digits of a number, and names on, a set is no counter's."""
_ROUND = 8
"""Counts are multiples of such a number, or are powers of two."""


class _Proof(IntEnum):
    """What shows that the words of a scheme are nodes; the greater wins.

    A lone word is asked about if it stands where nodes do.
    """

    NONE = 0
    LONE = 1
    ASK = 2
    SET = 3
    NAME = 4
    TEXT = 5


@dataclass(eq=False)
class _Scheme:
    """Words of one shape at one kind of place (`_AROUND`).

    Attributes:
        shape: the expression of all words.
        words: the paths of each word.
        proof: what shows that they are nodes.
    """

    place: int
    shape: str
    words: dict[str, set[str]] = field(default_factory=dict)
    proof: _Proof = _Proof.NONE

    @cached_property
    def paths(self) -> set[str]:
        return set().union(*self.words.values())

    @property
    def prefix(self) -> str:
        return _prefix(next(iter(self.words)))

    @property
    def pattern(self) -> str:
        before, after = _AROUND[self.place]
        return f"{before}{self.shape}{after}"

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
            self.prefix in _USUAL,
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


def is_counter(word: str) -> bool:
    """Return whether the number in `word` may be a count, a repeat or a version."""
    prefix = _prefix(word)
    return prefix in _EITHER or _counts(prefix)


def is_count(word: str) -> bool:
    """Return whether the number in `word` is a count or a repeat; of GPUs it may be a kind."""
    prefix = _prefix(word)
    return _counts(prefix) and not re.fullmatch("[cg]pus?", prefix)


def is_place(word: str) -> bool:
    """Return whether `word` is a place of nodes, as rack1."""
    return bool(re.fullmatch(_PLACE, word.lower()))


def named_nodes(
    printed: Mapping[str, Collection[str]],
    programs: Collection[str],
    known: Callable[[str], bool] | None = None,
) -> NamedNodes:
    """Return the nodes that the paths of a folder name.

    Args:
        printed: the names that an output prints, by its path. They prove or disprove words.
        programs: words before a number that is a version.
        known: whether a word is a host of the site; None without a site. Then only hosts are nodes.
    """
    partners = _partners(printed)
    schemes = _schemes(printed, known, partners)
    for each in schemes:
        each.proof = _Proof.TEXT if known else _proof(each, printed, programs, partners)
        if _plain(each.shape) not in partners and _merges(each):
            each.proof = min(each.proof, _Proof.ASK)
    chosen = _chosen(schemes, set(printed), partners)
    named: dict[str, set[str]] = {}
    for each in chosen:
        for word, path in each.found():
            named.setdefault(path, set()).add(word)
    unpaired = {path for path, words in named.items() if _loses_a_node(path, words)}
    pattern = _joined(chosen, printed) if chosen else None
    asked = [each for each in schemes if each.proof > _Proof.LONE and each not in chosen]
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
    for path in printed:
        for place, word in _words(path):
            node = known(word) if known else is_node(word) and not _is_pair(word, partners)
            if node or (not known and place <= _WHOLE and _OTHER.fullmatch(word)):
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


def _merges(scheme: _Scheme) -> bool:
    """Return whether one word of `scheme` stands in different names, as n01 in rack1-n01.

    Counts, programs and numbers beside it make no other name.
    """
    if scheme.place != _PART or scheme.proof is _Proof.TEXT:
        return False
    for word, paths in scheme.words.items():
        names: set[tuple[str, ...]] = set()
        for path in paths:
            for part in re.split(rf"{_APART}|\.", path):
                if word in (parts := part.split("-")):
                    others = (each for each in parts if each != word and _NODE.fullmatch(each))
                    names.add(tuple(each for each in others if not _only_counts(each)))
        if len(names) > 1:
            return True
    return False


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
    proof = _proof_of_set(scheme, programs, partners)
    return min(proof, _Proof.SET) if answers and not any(answers) else proof


def _proof_of_set(
    scheme: _Scheme, programs: Collection[str], partners: Mapping[str, set[str]]
) -> _Proof:
    """Return what the set of the words of `scheme` shows."""
    prefix, words = scheme.prefix, list(scheme.words)
    padded = any(map(_padded, words))
    if any(_is_setting(word, programs) for word in words):
        return _Proof.NONE
    if _counts(_last_letters(words[0])) and not (padded and re.fullmatch("[cg]pu", prefix)):
        return _Proof.NONE
    if not all(map(_NODE.fullmatch, words)):
        return _Proof.ASK if len(words) > 1 else _Proof.LONE
    if len(prefix) > 1 or is_address(words[0]):
        named = prefix in _USUAL or is_address(words[0])
        if named or padded:
            return _Proof.NAME
        numbered = all(_JOB.fullmatch(word) for word in words)
        counts = numbered or (
            _are_counts([int(_last(word)) for word in words]) and _groups(words[0]) == 1
        )
        enough = _Proof.ASK if counts else _Proof.NAME
        return enough if len(words) > 1 else _Proof.LONE
    return _proof_of_letter(scheme, partners, padded=padded)


def _proof_of_letter(scheme: _Scheme, partners: Mapping[str, set[str]], *, padded: bool) -> _Proof:
    """Return what shows that words of one letter and numbers are nodes."""
    words = list(scheme.words)
    groups = [re.findall("[0-9]+", word) for word in words]
    either = scheme.prefix in _EITHER
    if scheme.shape in partners.get(_plain(scheme.shape), ()):  # a pair of two of them
        return _Proof.NAME if len(words) > 1 else _Proof.ASK
    if len(groups[0]) >= _LEAST_GROUPS:  # a rack, a chassis, a slot and a node, or four counts
        whole = scheme.place <= _WHOLE and len(words) > 1
        located = padded or 0 in map(int, chain.from_iterable(groups))
        return _Proof.NAME if located else _Proof.ASK if whole else _Proof.LONE
    if padded:
        return (_Proof.SET if len(words) > 1 else _Proof.ASK) if either else _Proof.NAME
    if scheme.place > _WHOLE or len(words) < 2:
        return _Proof.ASK if scheme.place == _DOTS and len(words) > 1 else _Proof.LONE
    numbers = [int(each[-1]) for each in groups]
    if len(groups[0]) > 1:
        return _Proof.NAME if not either else _Proof.ASK
    if _are_counts(numbers):
        return _Proof.ASK
    if not either:
        return _Proof.NAME
    wide = len({len(each[-1]) for each in groups}) == 1 and len(groups[0][-1]) >= _LEAST_DIGITS
    return _Proof.SET if wide and math.gcd(*numbers) < _ROUND else _Proof.ASK


def _are_counts(numbers: Sequence[int]) -> bool:
    """Return whether different numbers are steps of a sweep: powers of two."""
    several = len(numbers) >= _LEAST_COUNT
    return several and all(each > 0 and each & (each - 1) == 0 for each in numbers)


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
        elif doubtful := _doubtful(best, [*chosen, *others]):
            unsure = {_plain(each.shape) for each in (best, *doubtful)}
            for each in fitting:
                if _plain(each.shape) in unsure:
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


def _doubtful(best: _Scheme, others: Sequence[_Scheme]) -> list[_Scheme]:
    """Return the schemes between which and `best` nothing decides; `best` itself if it is no node.

    Words that may count are no nodes where others are. A name of a file in one folder each may be
    the node, and the folder its chassis.
    """
    same = [each for each in others if each.paths & best.paths]
    if best.proof is _Proof.SET:
        sure = any(
            each.proof > _Proof.SET and 2 * len(each.paths & best.paths) >= len(best.paths)
            for each in same
        )
        rivals = [each for each in same if each.proof is _Proof.SET]
        return [best] if sure else rivals
    if best.proof is _Proof.NAME and best.place == 0 and best.prefix not in _USUAL:
        return [each for each in same if each.proof is _Proof.NAME and _is_inside(each, best)]
    return []


def _is_inside(names: _Scheme, folders: _Scheme) -> bool:
    """Return whether each folder has several names of its own, as a chassis has nodes."""
    places = {path: folder for folder, paths in folders.words.items() for path in paths}
    at = [{places.get(path) for path in paths} for paths in names.words.values()]
    own = all(len(each) == 1 for each in at)
    padded = names.place <= _WHOLE and all(map(_padded, names.words))
    return padded and own and len(names.words) > len(folders.words)


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
    parts = re.split(f"({separators})", path)
    words = [part.rpartition("/")[2].partition(".")[0] for part in parts]
    for at in range(0, len(parts) - 2, 2):
        pair = words[at], words[at + 2]
        apart = parts[at + 1] not in {"/", " "} and pair[0] != pair[1]
        if (
            apart
            and not any(_counts(_prefix(word)) for word in pair)
            and all(map(_NODE.fullmatch, pair))
        ):
            around = [re.sub("[0-9]+", "0", part) for part in parts]
            around[at : at + 3] = "*", parts[at + 1], "*"
            yield _Pair(pair, "".join(around))


def _is_pair(word: str, partners: Mapping[str, set[str]]) -> bool:
    """Return whether `word` is two nodes with ``-`` between them."""
    first, _, second = word.partition("-")
    return _shape(second) in partners.get(_shape(first), ())


def _joined(chosen: Sequence[_Scheme], printed: Mapping[str, Collection[str]]) -> str:
    """Return the expression of all `chosen` schemes, with the places of their nodes if needed.

    The place is needed if a name is in two of them. Outputs that print names have no second one.
    """
    node = f"(?P<node>{'|'.join(dict.fromkeys(each.pattern for each in chosen))})"
    places: dict[str, set[str]] = {}
    for each in chosen:
        for word, path in each.found():
            at = "-".join(re.findall(f"(?<=/){_PLACE}(?=/)", f"/{path}"))
            if at and not printed[path]:
                places.setdefault(word, set()).add(at)
    if any(len(each) > 1 for each in places.values()):
        return f"(?P<place>(?<=/){_PLACE}(?=/))|{node}"
    return node


def _questions(
    asked: Sequence[_Scheme], left: set[str], chosen: Sequence[_Scheme]
) -> dict[str, Question]:
    """Return the question for each path without a node that has words which may be nodes."""
    questions: dict[str, Question] = {}
    waiting = list(asked)
    while waiting and left:
        best = max(waiting, key=lambda scheme: scheme.rank(left))
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
    for part in re.split(r"--|[/_+,@ ]", path):
        yield 3, part.partition(".")[0]
        yield from ((_PART, word) for word in re.split("[-.]", part))
        yield from ((_PART, word) for word in re.findall(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}", part))


def _prefix(word: str) -> str:
    """Return the letters before the first number: ``gadi-cpu-clx`` of gadi-cpu-clx-0144."""
    return re.split("-?[0-9]", word.lower(), maxsplit=1)[0]


def _last_letters(word: str) -> str:
    """Return the letters before the last number: of rack1-n01 ``n``, of slurm-hpl-123 ``hpl``."""
    letters = (re.match("[a-z]*", part) for part in reversed(word.lower().split("-")))
    return next((found[0] for found in letters if found and found[0]), "")


def _is_setting(word: str, programs: Collection[str]) -> bool:
    """Return whether a part of `word` is a program, or a count that is no place, as in run1-n01."""
    *before, _ = parts = word.lower().split("-")
    names = {_prefix(part) for part in parts}
    return not names.isdisjoint(programs) or any(map(_only_counts, before))


def _only_counts(part: str) -> bool:
    """Return whether a part of a name is a count or a repeat, and no place of nodes."""
    return bool(_NODE.fullmatch(part)) and is_count(part) and not is_place(part)


def _counts(prefix: str) -> bool:
    return bool(_COUNTS.fullmatch(prefix.rpartition("-")[2]))


def _groups(word: str) -> int:
    return len(re.findall("[0-9]+", word))


def _last(word: str) -> str:
    numbers = re.findall("[0-9]+", word.partition(".")[0])
    return numbers[-1] if numbers else ""


def _padded(word: str) -> bool:
    return bool(re.search("(?<![0-9])0[0-9]", word)) and not is_address(word)


def _shape(word: str) -> str:
    name, domain, _ = ("", "", "") if is_address(word) else word.partition(".")
    shape = re.sub("[0-9]+", "[0-9]+", re.escape(name or word).replace(r"\-", "-"))
    return shape + (r"\.[A-Za-z][A-Za-z0-9.-]*" if domain else "")


def _plain(shape: str) -> str:
    """Return a shape without the number of its digits."""
    return re.sub(r"\{[0-9]+,\}", "+", shape)
