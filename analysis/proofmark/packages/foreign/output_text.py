"""The text of an output of others: encoding, Ansible, marks before its lines."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any, NamedTuple

import yaml

from proofmark.cases.reader.builder import ProgramRun
from proofmark.cases.reader.engine import Reading, program_runs, readings_of, without_colours
from proofmark.cases.reader.own_rules import Pattern
from proofmark.cases.reader.reader import Reader
from proofmark.cases.reader.settings import StartedCommand
from proofmark.common.message import Message
from proofmark.common.nodesets import NAME
from proofmark.common.yaml_models import shipped_data

_ITEM = r'[ \t]*"(?:[^"\\\n]|\\.)*",?[ \t]*'
_JSON = re.compile(rf'((?:stdout_lines|"msg)": \[)\n((?:{_ITEM}\n)+)')
_YAML = re.compile(r"((?:^|\n) *[\w.]*stdout_lines:[ ]*)\n((?:[ ]*- .*\n|[ ]*-\n)+)")
_TEXT = re.compile(r'"(?:(?:[\w.]+\.)?stdout|msg)": ("(?:[^"\\\n]|\\.)*")')
_ONE_LINE = re.compile(
    r"^(\S+ \| [A-Z]+ \| rc=\d+) \| \(stdout\) (.*?)(?: \(stderr\).*)?$", re.MULTILINE
)
"""A result of ``ansible -o``."""
_RESULT = re.compile(r"^(\w+: \[[^\]\n]+\][^{\n]*=> )(\{.*\})$", re.MULTILINE)
_MARKS = ("stdout", '"msg": ')
_UNREADABLE = (ValueError, RecursionError)
"""What `json` raises for a text that is damaged, or that has too many levels."""


def program_lines(text: str) -> str:
    """Return `text` with the lines of registered outputs as the programs printed them.

    A result has its output twice, as a text and as a list of lines. The list counts.
    """
    if not any(mark in text for mark in _MARKS):
        return text
    text = _ONE_LINE.sub(lambda match: f"{match[1]} >>\n" + match[2].replace("\\n", "\n"), text)
    text = _RESULT.sub(_of_result, text)
    text, lists = _JSON.subn(lambda match: f"{match[1]}\n{_of_json(match[2])}", text)
    text, more = _YAML.subn(lambda match: f"{match[1]}\n{_of_yaml(match[2])}", text)
    return text if lists or more else _TEXT.sub(_of_text, text)


def _of_result(match: re.Match[str]) -> str:
    """Return a result in one line as the lines of its output; unchanged if it has none."""
    try:
        result = json.loads(match[2])
    except _UNREADABLE:
        return match[0]
    # A loop has a result for each item.
    items = result.get("results")
    results: list[Any] = items if isinstance(items, list) else [result]
    texts = [each["stdout"] for each in results if isinstance(each, dict) and _has_output(each)]
    return "\n".join([match[1], *texts]) if texts else match[0]


def _has_output(result: dict[str, Any]) -> bool:
    return isinstance(result.get("stdout"), str)


def _of_json(items: str) -> str:
    """Return the items of a list as lines; a damaged item is unchanged."""
    return "".join(f"{_text(line)}\n" for line in items[:-1].split("\n"))


def _text(line: str) -> str:
    """Return the text that a line states as JSON; the line itself if it is damaged."""
    try:
        text: str = json.loads(line.strip(" \t").removesuffix(","), strict=False)
    except _UNREADABLE:
        return line
    return text


def _of_yaml(items: str) -> str:
    """Return the items of a list as lines. An item in several lines is not recognised as a list."""
    lines = []
    for item in items[:-1].split("\n"):
        try:
            read = yaml.load(item, Loader=yaml.CBaseLoader)  # makes texts, lists and mappings only
        except (yaml.YAMLError, RecursionError):
            read = item
        lines.append(
            read[0] if isinstance(read, list) and read and isinstance(read[0], str) else item
        )
    return "".join(f"{line}\n" for line in lines)


def _of_text(match: re.Match[str]) -> str:
    text = _text(match[1])
    return f'"stdout":\n{text}\n' if "\n" in text else match[0]


_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE = 512


def output_text(content: bytes) -> str:
    """Return the text in `content`: UTF-8, or UTF-16 (PowerShell).

    Bytes that are not of the encoding are replaced. The lines of registered results are the lines
    of their programs.
    """
    if content.startswith(b"\0\0"):  # a log that was truncated while it was open
        content = content.lstrip(b"\0")
    text = _decoded(content).replace("\xa0", " ")  # a blank of a word processor
    return program_lines(text)


def _decoded(content: bytes) -> str:
    for mark, encoding in _ENCODINGS.items():
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    sample = content[:_SAMPLE]
    if sample and sample.count(0) * 3 > len(sample):  # ASCII in UTF-16 without a mark
        little = sample[1::2].count(0) > sample[::2].count(0)
        return content.decode("utf-16-le" if little else "utf-16-be", "replace")
    return content.decode("utf-8", "replace")


# Marks before the lines of an output: rank tags, time stamps, hosts, containers, indentation.
#
# Launchers print the rank before each line, pdsh and clush the host, compose and kubectl the
# container. Logs of Ansible and of CI systems, and ``ts``, print the time, or indent the lines.
# A tag is recognised only if every line has one. A single line without it means that the numbers
# before the other lines may be output of the program.

_TAGS = (
    re.compile(r" *\d+:[A-Za-z][\w.-]*(?: |$)", re.ASCII),  # Intel MPI: -prepend-pattern "%r:%h "
    re.compile(r" *\d+:(?!\d\d:) ?", re.ASCII),  # srun -l; 12:00:01 is a time
    # mpirun --tag-output of Open MPI 4, and of 5
    re.compile(r"\[\d+,\d+\]<(?:stdout|stderr|stddiag)>: ?", re.ASCII),
    re.compile(r"\[[\w.@-]+,\d+\]<(?:stdout|stderr|stddiag)>: ?", re.ASCII),
    re.compile(r"\[\d+\] ?", re.ASCII),  # mpiexec -l of MPICH and Intel MPI
)


def program_text(text: str, banners: Sequence[Pattern]) -> str:
    """Return `text` as the program printed it: without rank tags, time stamps, host, indentation.

    Args:
        banners: the lines that begin an output; see `without_marks`.
    """
    return without_tags(without_marks(without_host(without_tags(text), banners), banners))


def lines_of_hosts(text: str, banners: Sequence[Pattern]) -> dict[str, list[int]]:
    """Return the numbers of the lines of each host that is printed before them, from 0.

    A word is a host if a colon and a banner follow it. Lines without one are of no host.

    Args:
        banners: the lines that begin an output. If `text` has one without a host, it has no host.
    """
    if not may_begin(text, banners) or first_line(text, banners) is not None:
        return {}
    found = _behind_a_host(tuple(banners)).finditer(f"\n{text}")
    lines: dict[str, list[int]] = {match["host"]: [] for match in found}
    for number, line in enumerate(text.split("\n") if lines else ()):
        host, colon, _ = line.partition(":")
        if colon and host in lines:
            lines[host].append(number)
    return lines


def without_host(text: str, banners: Sequence[Pattern]) -> str:
    """Return `text` without the host before its lines; unchanged if they have several hosts."""
    hosts = lines_of_hosts(text, banners)
    if len(hosts) != 1:
        return text
    lines = text.split("\n")
    for host, numbers in hosts.items():
        for number in numbers:
            lines[number] = lines[number][len(host) + 1 :].removeprefix(" ")
    return "\n".join(lines)


def without_tags(text: str) -> str:
    """Return `text` without rank tags; unchanged if not every line has a tag of the same form."""
    *lines, last = text.split("\n")
    tagged = [*lines, last] if last else lines
    for tag in _TAGS:
        if all(map(tag.match, tagged)):
            stripped = [tag.sub("", line, count=1) for line in tagged]
            return "\n".join(stripped if last else [*stripped, ""])
    return text


_CLOCK = r"\d{1,3}:\d\d:\d\d(?:[.,]\d+)?"
_STAMPS = (
    rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?",  # ISO 8601
    rf"\d{{1,4}}[/.]\d{{1,2}}[/.]\d{{2,4}} {_CLOCK}",
    # ts, syslog, mpirun --timestamp-output
    rf"(?:[A-Z][a-z]{{2}} +)?[A-Z][a-z]{{2}} +\d{{1,2}} {_CLOCK}(?: 20\d\d(?=[]<:|]))?",
    _CLOCK,
    r"\d{10}\.\d{3,9}",  # ts %.s
    r"(?<=\[) *\d{1,10}\.\d{3,9}(?=\])",  # the kernel
)
_STAMP = re.compile("|".join(_STAMPS), re.ASCII)
_COUNTED = re.compile(r"(?<=[\[=])\d+", re.ASCII)
"""The number of a process or of a line: it can differ from line to line."""
_MOST_STARTS = 16
"""The most words before a banner that are looked at."""
_BLANKS = " \t"


class _Mark(NamedTuple):
    """The mark of a line: its length without the blanks after it, and the number of these."""

    length: int
    blanks: int


def without_marks(text: str, banners: Sequence[Pattern]) -> str:
    """Return `text` without time stamps or indentation before its lines.

    The mark is what stands before the first banner. It is one if it is indentation or has a time
    stamp, and the next line has it as well; other words, if all lines have them, as `app-1 | ` of a
    container and `> ` of a quoted mail. Lines without it are not changed.

    Args:
        banners: the lines that begin an output. If one stands in `text` as it is, there is no mark.
    """
    if not may_begin(text, banners) or first_line(text, banners) is not None:
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not may_begin(line, banners):
            continue
        place = next((start for start in _starts(line) if _begins(banners, line, start)), 0)
        if not place:
            continue
        form, timed = _form(line[:place])
        following = [each for each in lines[number + 1 :] if each.strip()]
        # Without a further line, words before a banner are a sentence about a program.
        shared = following[:1] if timed else following
        if shared and all(_mark(form, each) for each in shared):
            return "\n".join(_bare(lines, form, number))
    return text


def may_begin(text: str, banners: Sequence[Pattern]) -> bool:
    """Return whether `text` has the fixed words of a banner, which are found fast."""
    return any(words in text for words in _likely(tuple(banners)))


def first_line(text: str, banners: Sequence[Pattern]) -> int | None:
    """Return the place of the first banner that is a whole line, or None."""
    return _first_line(text, tuple(banners))


@lru_cache(maxsize=2)
def _first_line(text: str, banners: tuple[re.Pattern[str], ...]) -> int | None:
    found = _any_line(banners).search(f"\n{text}")
    return found.start() if found else None


@lru_cache(maxsize=64)
def _likely(banners: tuple[re.Pattern[str], ...]) -> Collection[str]:
    """Return the longest fixed words of each banner."""
    found: dict[str, None] = {}
    for banner in banners:
        for alternative in re.split(r"\|(?![^(]*\))", banner.pattern):
            found[max(_fixed_words(alternative), key=len, default="")] = None
    return found


def _fixed_words(pattern: str) -> Iterator[str]:
    """Yield the fixed words of a pattern outside of its groups and sets of letters."""
    depth, word = 0, ""
    for token in re.findall(r"\[(?:\\.|[^]\\])*\]|\\.|\{\d*,?\d*\}|.", pattern):
        if len(token) == 2 and not token[1].isalnum():  # an escaped letter is itself
            token = token[1]
        elif token in "?*" or token[0] == "{":
            word = word[:-1]
        if depth or not (len(token) == 1 and (token.isalnum() or token in ' -_#:,/{"=')):
            yield word
            word = ""
        else:
            word += token
        depth += (token == "(") - (token == ")")
    yield word


@lru_cache(maxsize=64)
def _any_line(banners: tuple[re.Pattern[str], ...]) -> re.Pattern[str]:
    """Return a pattern of a line end and a banner, as the search for a line end is fast."""
    return re.compile(rf"\n(?:{_plain(banners)})[ \t\r]*(?=\n|\Z)", re.ASCII)


@lru_cache(maxsize=64)
def _behind_a_host(banners: tuple[re.Pattern[str], ...]) -> re.Pattern[str]:
    """Return a pattern of a line end, a host and a banner. A number is a rank, or of a time."""
    host = rf"(?P<host>(?!\d+:){NAME.pattern})"
    return re.compile(rf"\n{host}: ?(?:{_plain(banners)})[ \t\r]*(?=\n|\Z)", re.ASCII)


def _plain(banners: tuple[re.Pattern[str], ...]) -> str:
    """Return the pattern of any banner, without the names of groups, which may be equal."""
    return "|".join(re.sub(r"\(\?P<\w+>", "(?:", each.pattern) for each in banners)


def _begins(banners: Sequence[Pattern], line: str, start: int) -> bool:
    rest = line[start:].rstrip()
    return any(banner.fullmatch(rest) for banner in banners)


def _starts(line: str) -> Iterator[int]:
    """Yield the places of the first words of a line, but the first place."""
    words = re.finditer(r"(?<=[\s:|\]>+,])\S", line)
    return (match.start() for match in islice(words, _MOST_STARTS))


def _form(mark: str) -> tuple[re.Pattern[str], bool]:
    """Return the pattern of a mark without the blanks after it, and whether the next line tells."""
    bare = mark.rstrip(_BLANKS)
    parts: list[str] = []
    place = 0
    for stamp in _STAMP.finditer(bare):
        parts += [_literal(bare[place : stamp.start()]), f"(?:{_STAMP.pattern})"]
        place = stamp.end()
    form = re.compile("".join([*parts, _literal(bare[place:])]), re.ASCII)
    return form, bool(parts) or not bare


def _literal(words: str) -> str:
    """Return a pattern for the words around a time stamp."""
    return r"\d+".join(map(re.escape, _COUNTED.split(words)))


def _mark(form: re.Pattern[str], line: str) -> _Mark | None:
    """Return the mark of a line; None if it has none."""
    match = form.match(line)
    rest = line[match.end() :] if match else ""
    blanks = len(rest) - len(rest.lstrip(_BLANKS))
    if match is None or not (
        blanks or not rest or form.pattern.endswith(("\\|", ":", "\\]", ">", "\\+", ","))
    ):
        return None
    return _Mark(match.end(), blanks) if match.end() or blanks else None


def _bare(lines: Sequence[str], form: re.Pattern[str], banner: int) -> Iterator[str]:
    """Yield the lines without their marks.

    The blanks after a mark are as many as the line with the fewest has, because the program can
    print blanks of its own: the Fortran version of STREAM prints one before its banner.
    """
    first = _mark(form, lines[banner])
    least = first.blanks if first else 0
    for line in lines[banner:]:
        own = _mark(form, line)
        if not line.strip() or (own and len(line.rstrip()) == own.length):
            continue
        if not form.pattern and (own is None or own.blanks < least - 1):
            break  # the indented lines of a log end
        least = min(least, own.blanks) if own else least
    for line in lines:
        own = _mark(form, line)
        yield line[own.length + min(own.blanks, least) :] if own else line


def other_program(text: str, own: Iterable[re.Pattern[str]]) -> str:
    """Return the program that no case reads and that printed a line of `text`, or nothing.

    Args:
        own: the lines that begin an output of the case.
    """
    for match in _any_other().finditer(f"\n{text}"):
        if not any(banner.fullmatch(match[0].strip()) for banner in own):
            return [*_other_programs()][int(f"{match.lastgroup}"[1:])]
    return ""


@cache
def _other_programs() -> Mapping[str, tuple[Pattern, ...]]:
    """Return the lines of each program that no case reads."""
    kind = dict[str, tuple[Pattern, ...]]
    return shipped_data("proofmark.packages.foreign", "other_programs.yml", kind)


@cache
def _any_other() -> re.Pattern[str]:
    each = (
        f"(?P<p{number}>{'|'.join(line.pattern for line in lines)})"
        for number, lines in enumerate(_other_programs().values())
    )
    return re.compile(rf"\n(?:{'|'.join(each)})[ \t\r]*(?=\n|\Z)", re.ASCII)


def runs_of_others(
    reader: Reader, text: str, request: StartedCommand | None = None
) -> Sequence[ProgramRun]:
    """Return the runs of the program in an output of others; see `program_runs`."""
    runs = program_runs(reader, program_text(without_colours(text), reader.begins), request)
    for run in runs:
        if any(builder.value is not None for builder in run.builders):
            return runs
    program = other_program(text, reader.begins)
    return [ProgramRun(problems=[Message("reader-foreign", program=program)])] if program else runs


def read_others(reader: Reader, case: str, text: str) -> list[Reading]:
    """Return the readings of an output of others; see `read_output`."""
    return readings_of(reader, case, runs_of_others(reader, text))
