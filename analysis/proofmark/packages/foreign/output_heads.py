"""What the begins of the files in a folder of others show: programs, nodes, job scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from proofmark.cases.reader.reader import DOCUMENT, Reader
from proofmark.cases.suite import Benchmarks
from proofmark.common.grouping import batched
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded, is_name, unfold
from proofmark.common.processes import parallel_map
from proofmark.packages.foreign.adopted import Lines, lines_of
from proofmark.packages.foreign.node_names import is_node
from proofmark.packages.foreign.output_folder import HEAD, OutputFolder, text_of
from proofmark.packages.foreign.output_text import (
    lines_of_hosts,
    may_begin,
    other_program,
    program_text,
)

_DOCUMENT = re.compile(r"\n\{")
_Cases = list[tuple[str, re.Pattern[str] | None]]
"""The cases that one program may be of, each with the line that only its outputs have."""


class _Program(NamedTuple):
    """A program that prints text: its banner, its cases, and the lines that end its output."""

    banner: re.Pattern[str]
    cases: _Cases
    ends: tuple[re.Pattern[str], ...]


class Part(NamedTuple):
    """The part of a text that is the output of one program.

    Attributes:
        case: the case that reads it.
        lines: its lines; empty: all.
        nodes: the nodes that the text names for these lines; empty if it names none, or the same
            ones for all lines.
    """

    case: str
    lines: Lines = ()
    nodes: tuple[str, ...] = ()


class Banners:
    """The banners of all cases."""

    def __init__(self, benchmarks: Benchmarks) -> None:
        programs: dict[str, _Program] = {}
        begins: list[re.Pattern[str]] = []
        foreign: list[re.Pattern[str]] = []
        self._documents: dict[tuple[str, ...], _Cases] = {}
        self._nodes: dict[str, list[re.Pattern[str]]] = {}
        for name, case in benchmarks.cases.items():
            reader = case.reader()
            line = benchmarks.own_lines.get(name)
            own = (name, _of_lines(line) if line else None)
            self._nodes[name] = [_of_lines(line) for line in _node_lines(reader)]
            if name in benchmarks.unnamed:
                continue
            begins += reader.begins
            foreign += reader.foreign.values()
            if reader.starts:
                ends = (*reader.require.values(), *filter(None, [reader.closes]))
                of_end = tuple(_of_lines(each.pattern) for each in ends)
                program = _Program(_of_lines(reader.starts.pattern), [], of_end)
                programs.setdefault(reader.starts.pattern, program).cases.append(own)
            if reader.documents:
                self._documents.setdefault(reader.documents.keys, []).append(own)
        self._programs = list(programs.values())
        # A reader refuses the banner of a program that prints results like its own, as HPCC does.
        self._around = {
            number
            for number, banner in enumerate(programs)
            if any(line.fullmatch(banner) for line in foreign)
        }
        starts = {each.pattern: each for each in begins}
        self._starts = tuple(starts.values())
        self._titles = tuple(each for each in starts.values() if each is not DOCUMENT)
        plain = (re.sub(r"\(\?P<\w+>", "(?:", text) for text in programs)  # names may be equal
        texts = (f"(?P<b{number}>{text})" for number, text in enumerate(plain))
        self._any = _of_lines("|".join(texts))

    def may_begin(self, text: str) -> bool:
        """Return whether a text has words of a banner: most files of a folder have none."""
        for keys in self._documents:
            if all(f'"{key}"' in text for key in keys):
                return True
        return may_begin(text, self._titles)

    def plain(self, text: str) -> str:
        """Return an output without the marks before its lines, which remain as many."""
        return program_text(text, self._starts)

    def lines_of_hosts(self, text: str) -> dict[str, list[int]]:
        """Return the lines of each host that pdsh or clush print before them."""
        return lines_of_hosts(text, self._starts)

    def parts(self, text: str, *, cut: bool = False) -> list[Part]:
        """Return the outputs of programs in `text`, in the order of their banners.

        The runs of one program are one part, also if other programs ran between them. A banner
        before the end of a program is part of it, as that of HPL in HPCC. Of the cases of one
        program the one whose own line is in its lines counts.

        Args:
            text: an output; see `plain`.
            cut: whether it is the begin of an output only: a program can end after it.
        """
        text = f"\n{text}"
        runs = self._runs(text, cut=cut)
        sections = [next(of_program) for _, of_program in groupby(runs, itemgetter(0))]
        if not sections:
            documents = (
                _chosen(cases, text)
                for keys, cases in self._documents.items()
                if "\n{" in text and all(f'"{key}"' in text for key in keys)
            )
            return [Part(case) for case in documents if case]
        begins = [0, *(text.count("\n", 0, begin) for _, begin in sections[1:])]
        lines: dict[int, Lines] = {}
        for (number, _), first, end in zip(sections, begins, [*begins[1:], None], strict=True):
            lines[number] = (*lines.get(number, ()), (first, end))
        if len(lines) == 1:
            lines = dict.fromkeys(lines, ())
        parts = []
        for number, ranges in lines.items():
            cases = self._programs[number].cases
            if case := _chosen(cases, f"\n{lines_of(text[1:], ranges)}"):
                parts.append(Part(case, ranges))
        return parts

    def begins(self, text: str) -> list[int]:
        """Return the line of `text` with which each run of a program, or each document, begins."""
        text = f"\n{text}"
        places = [begin for _, begin in self._runs(text, cut=False)]
        places = places or [match.start() for match in _DOCUMENT.finditer(text)]
        return [text.count("\n", 0, place) for place in places]

    def _runs(self, text: str, *, cut: bool) -> list[tuple[int, int]]:
        """Return the number of each program that begins, with the place of its banner."""
        found = [(int(f"{each.lastgroup}"[1:]), each.start()) for each in self._any.finditer(text)]
        runs: list[tuple[int, int]] = []
        for number, here in found:
            within = runs and number != runs[-1][0]
            if not within or not self._is_inside(text, runs[-1][0], (runs[-1][1], here), cut=cut):
                runs.append((number, here))
        return runs

    def _is_inside(self, text: str, outer: int, places: tuple[int, int], *, cut: bool) -> bool:
        """Return whether a banner is part of the program `outer`, which has not ended before it.

        A program that never ends was killed: what follows is another one, unless the program has
        others in it.

        Args:
            outer: the number of the program before the banner.
            places: those of the banner of `outer`, and of the banner.
        """
        begin, here = places
        open_ = [end for end in self._programs[outer].ends if not end.search(text, begin, here)]
        again = self._programs[outer].banner.search(text, here)
        until = again.start() if again else len(text)
        ends = all(end.search(text, here, until) for end in open_)
        unknown = outer in self._around or (cut and not again)
        return bool(open_) and (ends or unknown)

    def nodes(self, case: str, text: str) -> list[str]:
        """Return the names of hosts in the lines that the reader of `case` takes them from."""
        matches = (pattern.finditer(f"\n{text}") for pattern in self._nodes[case])
        nodes = []
        for each in matches:
            nodes += [match["node"] for match in each]
        return list(dict.fromkeys(nodes))


def _chosen(cases: _Cases, text: str) -> str:
    """Return the case of an output. Several tests of a program have the case of their reader."""
    own = [name for name, line in cases if line and line.search(text)]
    return own[0] if len(own) == 1 else next((name for name, line in cases if not line), "")


def _node_lines(reader: Reader) -> Iterator[str]:
    return (each.pattern for each in reader.facts if "node" in each.groupindex)


def _of_lines(pattern: str) -> re.Pattern[str]:
    """Return `pattern`, which is that of a whole line, for the lines of a text after a line end.

    The search for a line end is several times faster than one for the begin of a line.
    """
    return re.compile(rf"\n(?:{pattern})[ \t\r]*(?=\n|\Z)", re.ASCII)


Names = tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """A line of a text that names nodes.

    Attributes:
        line: its number, from 0.
    """

    line: int
    nodes: Names


def in_turn(
    begins: Sequence[int], printed: Sequence[Names], statements: Sequence[Statement]
) -> list[Statement] | None:
    """Return where the runs of other nodes begin; empty if all runs have the same nodes.

    None: runs have other nodes, and those of a run are not known.

    What the program prints counts, else the lines before a run that name nodes. Nodes that are some
    of those of another run are no other nodes: a job often prints its first node. If several runs
    have other ones of the same nodes, those of the run with all of them are not known.

    Args:
        begins: the first line of each run.
        printed: the nodes that the program prints in each run; may be empty.
        statements: the lines that name nodes, in their order.
    """
    if any(printed):
        found = [
            Statement(begin, nodes) for begin, nodes in zip(begins, printed, strict=True) if nodes
        ]
    else:
        found = []
        for begin, before in zip(begins, [-1, *begins], strict=False):
            if lines := [each for each in statements if before < each.line < begin]:
                found.append(Statement(lines[0].line, _stated(lines)))
    sets = {frozenset(each.nodes) for each in found}
    largest = max(sets, key=len, default=frozenset())
    if not all(nodes <= largest for nodes in sets):
        return found if found[0].line <= begins[0] else None
    others = sets - {largest}
    return [] if all(nodes <= max(others, key=len) for nodes in others) else None


def _stated(lines: Sequence[Statement]) -> Names:
    """Return the nodes of a run by the lines before it.

    The last line counts: a job prints its list, and then the node of the run. If each line names
    one node, the processes of one run print their hosts.
    """
    nodes = tuple(dict.fromkeys(each.nodes for each in lines))
    if all(len(names) == 1 for names in nodes):
        return tuple(name for (name,) in nodes)
    return lines[-1].nodes


def parts_of_nodes(
    parts: Sequence[Part], turns: Sequence[Statement], begins: Sequence[int]
) -> list[Part]:
    """Return the parts of each node, in which a run begins.

    Args:
        parts: the outputs of a text.
        turns: where the runs of other nodes begin; see `in_turn`.
        begins: the first line of each run.
    """
    ends = [each.line for each in turns[1:]]
    found: list[Part] = []
    for part in parts:
        of_nodes: dict[Names, Lines] = {}
        for turn, begin, end in zip(turns, [0, *ends], [*ends, None], strict=True):
            within = _within(part.lines or ((0, None),), begin, end)
            if any(_has_one(lines, begins) for lines in within):
                of_nodes[turn.nodes] = (*of_nodes.get(turn.nodes, ()), *within)
        found += [Part(part.case, lines, nodes) for nodes, lines in of_nodes.items()]
    return found


def _has_one(lines: tuple[int, int | None], begins: Sequence[int]) -> bool:
    """Return whether a run begins in these lines: else they are of the node before the run."""
    first, end = lines
    return any(first <= begin and (end is None or begin < end) for begin in begins)


def _within(lines: Lines, begin: int, end: int | None) -> Lines:
    """Return the lines of ranges from `begin` to the one before `end`."""
    found = []
    for first, last in lines:
        start = max(first, begin)
        stops = [each for each in (last, end) if each is not None]
        stop = min(stops) if stops else None
        if stop is None or start < stop:
            found.append((start, stop))
    return tuple(found)


BATCH = 1000
"""The number of files that one process looks at at a time."""
_BEGIN, _LINES = 1 << 16, 1 << 12
"""The letters of a text of others in which nodes, and in which other programs are looked for."""
_SCRIPT = re.compile(r"#!.*\n(?:.*\n)*?#(?:SBATCH|PBS|BSUB|\$|FLUX:|COBALT)[ \t]")
_NAMED = re.compile(
    r"""\n(?:[ \t]*(?:
    (?:export\ |declare\ -x\ )?SLURM(?:D_NODENAME|_(?:JOB_|STEP_)?NODELIST)[ \t]*[=:]
    |NodeList=|exec_host[ \t]*=
    |\#SBATCH[ \t]+(?:-w[ \t]?|--nodelist[=\ ])
    |\#PBS[ \t]+-l[ \t]+(?:nodes=|.*\bhost=)|\#BSUB[ \t]+-m[ \t]|\#\$[ \t]+-l[ \t]+(?:h|hostname)=
    |(?:job[ \t]+)?(?:running|executing|started|ran|runs)[ \t]+on[ \t]
     (?:[ \t]*(?:compute[ \t]+)?(?:host|node)s?\b[ \t]*:?)?
    |(?:compute[ \t]+|allocated[ \t]+|execution[ \t]+)?
     (?:host(?:name)?s?|nodes?|node[ \t]?list)[ \t]*[=:]
    )(?P<nodes>.{1,4000})
    |(?:ok|changed|failed|fatal):\ \[(?P<host>[^]\s]+)(?:\ ->\ [^]\n]*)?\].*=>
    |(?P<of>\S+)\ \|\ [A-Z]+!?\ (?:\|\ rc=\d+\ )?(?:>>|=>)
    |-{15,16}\n(?P<block>[\w.-]+)\n-{15,16}(?=\n)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""Lines of schedulers, job scripts, job outputs, Ansible, dshbak and `clush -b` that name nodes."""

_LIKELY = (
    *("node", "host", "#sbatch", "#pbs", "#bsub", "#$", "=>", ">>", "\n---------------"),
    *("running", "executing", "started", "ran", "runs"),
)
"""Words of which each line of `_NAMED` has one: few lines of a folder do, so they are searched."""

_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)

_GATHERED = re.compile(
    r"-{15,16}\n(?P<nodes>[\w.-]+\[[\d,-]+\]\S*)(?: \(\d+\))?\n-{15,16}\n", re.ASCII
)
"""The title of a block that dshbak or `clush` prints once for several nodes with equal outputs."""


@dataclass(frozen=True)
class OutputHead:
    """What the begin of a file shows.

    Attributes:
        parts: the outputs of programs whose banners it has.
        nodes: the nodes that it names.
        measured: whether the program itself names them, and not a job or a scheduler.
        script: whether it is a job script.
        problem: why it cannot be read, or has no nodes; `NOTHING` if it can and has.
    """

    parts: tuple[Part, ...] = ()
    nodes: tuple[str, ...] = ()
    measured: bool = False
    script: bool = False
    problem: Message = NOTHING


def head_of(outputs: OutputFolder, banners: Banners, path: str) -> OutputHead:
    """Return what the begin of one file shows."""
    try:
        content = outputs.head(path)
    except OSError as error:
        problem = error.strerror or "unreadable"
        return OutputHead(problem=Message("adopted-unread", problem=problem))
    cut = len(content) >= HEAD
    text = text_of(content)
    text = text[: text.rfind("\n") + 1] if cut else text
    if not banners.may_begin(text):
        stated: dict[str, None] = {}
        for each in _statements(text[:_BEGIN]):
            stated.update(dict.fromkeys(each.nodes))
        script = bool(_SCRIPT.match(text[:_BEGIN]))
        program = "" if script else other_program(text[:_LINES], ())
        problem = Message("reader-foreign", program=program) if program else NOTHING
        return OutputHead((), tuple(stated), script=script, problem=problem)
    hosts = banners.lines_of_hosts(text)
    if len(hosts) > 1:
        return _of_hosts(text, banners, hosts, cut=cut)
    text = banners.plain(text)
    parts = banners.parts(text, cut=cut)
    printed: dict[str, None] = {}
    for part in parts:
        printed |= dict.fromkeys(_printed(banners, part.case, lines_of(text, part.lines)))
    statements = [Statement(0, (host,)) for host in hosts if is_node(host)]
    statements += _statements(text)
    named = dict.fromkeys(name for each in statements for name in each.nodes)
    nodes = tuple(printed or named)
    found: list[Part] | None = parts
    if parts and len(nodes) > 1:
        found = _in_turn(text, banners, parts, statements)
    gathered = _GATHERED.search(text) if parts else None
    if gathered or found is None or (cut and any(part.nodes for part in found)):
        mixed = gathered["nodes"] if gathered else folded(nodes)
        return OutputHead(problem=Message("adopt-nodes-mixed", nodes=mixed))
    script = not parts and bool(_SCRIPT.match(text))
    return OutputHead(tuple(found), nodes, bool(printed), script)


def _of_hosts(
    text: str, banners: Banners, hosts: Mapping[str, Sequence[int]], *, cut: bool
) -> OutputHead:
    """Return what a text shows whose lines have several hosts before them, as pdsh prints them.

    Args:
        hosts: the numbers of the lines of each.
        cut: whether the text is the begin of the file only: then outputs of hosts are not whole.
    """
    found: list[Part] = []
    every = text.split("\n")
    for host, numbers in hosts.items():
        own = banners.plain("\n".join(every[number] for number in numbers) + "\n")
        for part in banners.parts(own):
            lines = _ranges(numbers, part.lines)
            names = tuple(_printed(banners, part.case, lines_of(own, part.lines)))
            found.append(Part(part.case, lines, names or (host,)))
    if cut or not all(map(is_node, hosts)):
        return OutputHead(problem=Message("adopt-nodes-mixed", nodes=", ".join(hosts)))
    return OutputHead(tuple(found), tuple(hosts))


def _ranges(numbers: Sequence[int], within: Lines) -> Lines:
    """Return the ranges of lines with these numbers, of which `within` has those that count."""
    counted: list[int] = []
    for first, end in within or ((0, None),):
        counted += numbers[first:end]
    ranges: list[tuple[int, int]] = []
    for number in counted:
        if ranges and ranges[-1][1] == number:
            ranges[-1] = (ranges[-1][0], number + 1)
        else:
            ranges.append((number, number + 1))
    return tuple(ranges)


def _printed(banners: Banners, case: str, text: str) -> list[str]:
    """Return the nodes that the program of `case` prints."""
    return [name for name in banners.nodes(case, text) if is_name(name)]


def _in_turn(
    text: str, banners: Banners, parts: Sequence[Part], statements: Sequence[Statement]
) -> list[Part] | None:
    """Return `parts`, divided by nodes if their runs have different ones; None: see `in_turn`."""
    begins = banners.begins(text)
    cases = {part.case for part in parts}
    printed = []
    for begin, end in zip(begins, [*begins[1:], None], strict=True):
        run = lines_of(text, ((begin, end),))
        names = dict.fromkeys(name for case in cases for name in _printed(banners, case, run))
        printed.append(tuple(names))
    turns = in_turn(begins, printed, statements)
    if turns is None:
        return None
    return parts_of_nodes(parts, turns, begins) if turns else list(parts)


def heads_of(outputs: OutputFolder, banners: Banners) -> dict[str, OutputHead]:
    """Return what the begin of each file shows, by path."""
    paths = list(outputs.paths)
    every_head = []
    for heads in parallel_map(partial(_batch, outputs, banners), batched(paths, BATCH)):
        every_head += heads
    return dict(zip(paths, every_head, strict=True))


def _batch(outputs: OutputFolder, banners: Banners, paths: Sequence[str]) -> list[OutputHead]:
    return [head_of(outputs, banners, path) for path in paths]


def _statements(text: str) -> Iterator[Statement]:
    """Yield the lines of a scheduler, a job script, a job output or Ansible that name nodes."""
    line = last = before = 0
    text = f"\n{text}"
    for start in _likely_lines(text.translate(_SMALL)):
        match = _NAMED.match(text, start)
        if match is None or start < before:
            continue
        line += text.count("\n", last, start)
        last, before = start, match.end()
        if nodes := tuple(dict.fromkeys(_names(_words(match)))):
            yield Statement(line, nodes)


def _likely_lines(text: str) -> list[int]:
    """Return the line ends of `text`, in small letters, before lines that may name nodes."""
    found: set[int] = set()
    for words in _LIKELY:
        place = text.find(words)
        while place >= 0:
            found.add(text.rfind("\n", 0, place + 1))
            following = text.find("\n", place + 1)
            place = text.find(words, following) if following >= 0 else -1
    return sorted(found)


def _words(match: re.Match[str]) -> str:
    """Return the words of a line in which nodes are named."""
    return next(filter(None, (match[name] for name in ("nodes", "host", "of", "block"))), "")


def _names(words: str) -> Iterator[str]:
    """Yield the nodes of a list; it ends with the first word that is none."""
    for word in re.split("[ \t+\"']+", words.strip(" \t\"'")):
        try:
            names = unfold([re.split("[:/*;]", word.rstrip(",."))[0]])
        except ValueError:
            break
        if not all(map(is_node, names)):
            break
        yield from names
