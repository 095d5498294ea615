"""The first error in the log of a build: what is missing or wrong, with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class ErrorKind(StrEnum):
    """What is wrong; the value is the code in messages."""

    NO_SPACE = "NO_SPACE"
    KILLED = "KILLED"
    HEADER_MISSING = "HEADER_MISSING"
    MODULE_MISSING = "MODULE_MISSING"
    LIBRARY_MISSING = "LIBRARY_MISSING"
    SYMBOL_MISSING = "SYMBOL_MISSING"
    TOOL_MISSING = "TOOL_MISSING"
    COMPILER_MISSING = "COMPILER_MISSING"
    COMPILER_FAILS = "COMPILER_FAILS"
    PACKAGE_MISSING = "PACKAGE_MISSING"
    CONFIGURE_ERROR = "CONFIGURE_ERROR"
    CMAKE_ERROR = "CMAKE_ERROR"
    COMPILE_ERROR = "COMPILE_ERROR"
    COMMAND_ERROR = "COMMAND_ERROR"


@dataclass(frozen=True)
class FirstError:
    """The first error of a log.

    Attributes:
        kind: what is wrong.
        text: the message of the tool.
        name: the header, module, library, symbol, tool or package; empty if there is none.
        file: the source file as the tool names it; empty if it names none.
        line: the line in `file`; 0 if it is not known.
    """

    kind: ErrorKind
    text: str
    name: str = ""
    file: str = ""
    line: int = 0


_Q = r"['\"`]?"
_GNU = r"(?P<file>[^\s:()\"]+):(?P<line>\d+)(?::\d+)?: "
_INTEL = r"(?P<file>[^\s()\"]+)\((?P<line>\d+)\): "
_EDG = r"\"(?P<file>[^\"]+)\", line (?P<line>\d+): "
_PGI = r"(?:PGC|PGF\d*|NVC|NVC\+\+|NVFORTRAN)-"
_PGI_END = r" \((?P<file>[^\s()]+): (?P<line>\d+)\)"

# In the order of their priority for one line. gcc, clang and compilers made from it (icx, craycc,
# armclang, amdclang, flang); classic icc and ifort, and ifx; nvc and nvfortran; linkers; shells.
_RULES: tuple[tuple[ErrorKind, str], ...] = (
    (ErrorKind.NO_SPACE, r"(?P<text>.*(?:No space left on device|Disk quota exceeded).*)"),
    (
        ErrorKind.KILLED,
        r"(?P<text>.*(?:Killed signal terminated program|error: Killed \(program).*)",
    ),
    (ErrorKind.KILLED, r"(?P<text>g?make(?:\[\d+\])?: \*\*\* .*\] Killed.*)"),
    (
        ErrorKind.HEADER_MISSING,
        rf"{_GNU}(?P<text>.*rror: (?P<name>\S+): No such file or directory)",
    ),
    (ErrorKind.HEADER_MISSING, rf"{_GNU}(?P<text>.*rror: {_Q}(?P<name>[^'\s]+)' file not found.*)"),
    *(
        (
            ErrorKind.HEADER_MISSING,
            rf"{place}(?P<text>.*error.*: [Cc](?:annot|ould not) open (?:source|include) file {_Q}"
            rf"(?P<name>[^'\"\s]+).*)",
        )
        for place in (_INTEL, _EDG)
    ),
    (
        ErrorKind.HEADER_MISSING,
        rf"(?P<text>{_PGI}\S+Can't find include file (?P<name>\S+).*?){_PGI_END}",
    ),
    (ErrorKind.HEADER_MISSING, r"\s*(?P<text>Could not open source file \"(?P<name>[^\"]+)\".*)"),
    (
        ErrorKind.HEADER_MISSING,
        rf"(?P<text>(?:Fatal )?Error: Can(?:no|')t open included file {_Q}(?P<name>[^'\s]+).*)",
    ),
    (
        ErrorKind.MODULE_MISSING,
        rf"(?P<text>(?:Fatal )?Error: Can(?:no|')t open module file {_Q}(?P<name>[^'\s]+).*)",
    ),
    (
        ErrorKind.MODULE_MISSING,
        rf"{_GNU}(?P<text>error: Cannot parse module file for module '(?P<name>[^']+)'.*)",
    ),
    (
        ErrorKind.HEADER_MISSING,
        rf"{_GNU}(?P<text>error: Source file '(?P<name>[^']+)' was not found.*)",
    ),
    (
        ErrorKind.MODULE_MISSING,
        rf"{_INTEL}(?P<text>error #\d+: Error in opening the compiled module file\..*"
        r"\[(?P<name>\w+)\].*)",
    ),
    (
        ErrorKind.MODULE_MISSING,
        rf"(?P<text>{_PGI}\S+Unable to open MODULE file (?P<name>\S+).*?){_PGI_END}",
    ),
    (
        ErrorKind.MODULE_MISSING,
        r"\s*(?P<text>\"(?P<name>\w+)\" is specified as the module name on a USE statement.*)",
    ),
    (ErrorKind.LIBRARY_MISSING, r"\S*ld(?:\.\w+)?: (?P<text>cannot find -l(?P<name>[^\s:]+).*)"),
    (
        ErrorKind.LIBRARY_MISSING,
        r"\S*ld(?:\.\w+)?: (?P<text>error: unable to find library -l(?P<name>\S+).*)",
    ),
    (
        ErrorKind.SYMBOL_MISSING,
        rf"(?:\S*ld(?:\.\w+)?: )?(?P<file>[^\s:]+?):(?:(?P<line>\d+):|\S*:)? ?"
        rf"(?P<text>undefined reference to {_Q}(?P<name>[^']+).*)",
    ),
    (
        ErrorKind.SYMBOL_MISSING,
        r"\S*ld(?:\.\w+)?: (?P<text>error: undefined symbol: (?P<name>\S+).*)",
    ),
    (
        ErrorKind.TOOL_MISSING,
        r"(?P<text>g?make(?:\[\d+\])?: (?P<name>[\w.+-]+): (?:No such file or directory"
        r"|Command not found).*)",
    ),
    (
        ErrorKind.TOOL_MISSING,
        r"(?P<text>\S*sh: (?:(?:line )?\d+: )?(?P<name>[\w.+/-]+): (?:command )?not found)",
    ),
    (
        ErrorKind.COMPILER_MISSING,
        r"configure: error: (?P<text>no acceptable (?P<name>C|Fortran|C\+\+)(?: \d+)? compiler.*)",
    ),
    (
        ErrorKind.COMPILER_FAILS,
        r"configure: error: (?P<text>(?P<name>C|Fortran|C\+\+) compiler cannot create .*)",
    ),
    (ErrorKind.CONFIGURE_ERROR, rf"configure: error: (?!in {_Q}/)(?P<text>.*)"),
    (
        ErrorKind.COMPILER_MISSING,
        r"\s+(?P<text>No CMAKE_(?P<name>C|CXX|Fortran)_COMPILER could be found\.)",
    ),
    (ErrorKind.PACKAGE_MISSING, r"\s+(?P<text>Could NOT find (?P<name>\w+) .*)"),
    (
        ErrorKind.PACKAGE_MISSING,
        r"\s+(?P<text>Could not find a package configuration file provided by \"(?P<name>\w+)\".*)",
    ),
    (ErrorKind.CMAKE_ERROR, r"(?P<text>CMake Error: .*)"),
    (ErrorKind.COMPILE_ERROR, rf"{_GNU}(?P<text>(?:fatal )?error: .*)"),
    (ErrorKind.COMPILE_ERROR, rf"{_INTEL}(?P<text>(?:catastrophic )?error(?: #\d+)?: .*)"),
    (ErrorKind.COMPILE_ERROR, rf"{_EDG}(?P<text>(?:catastrophic )?error.*: .*)"),
    (ErrorKind.COMPILE_ERROR, rf"(?P<text>{_PGI}[SF]-.*?){_PGI_END}"),
    (
        ErrorKind.COMPILE_ERROR,
        r"(?P<text>(?:CC|ftn)-\d+ \w+: ERROR .*File = (?P<file>\S+), Line = (?P<line>\d+).*)",
    ),
    (ErrorKind.COMPILE_ERROR, r"(?P<text>(?:Fatal )?Error: .*)"),
    (ErrorKind.COMMAND_ERROR, r"(?P<text>(?!collect2)[\w.+-]+: (?:fatal )?error: .*)"),
    (ErrorKind.COMMAND_ERROR, r"(?P<text>g?make(?:\[\d+\])?: \*\*\* (?!.*\(ignored\)).*)"),
)
_COMPILED = tuple((kind, re.compile(rule)) for kind, rule in _RULES)
_GFORTRAN = re.compile(r"(?P<file>[^\s:()]+):(?P<line>\d+):(?:\d+:)?$")
_CRAY = re.compile(r"(?:CC|ftn)-\d+ \w+: ERROR .*File = (?P<file>\S+), Line = (?P<line>\d+)")
_CMAKE = re.compile(r"CMake (?P<text>Error) at (?P<file>\S+):(?P<line>\d+)")
_TESTED = re.compile(r"configure:\d+: checking ")
_REFUSED = re.compile(r"configure:\d+: error: ")
_OF_CMAKE = {ErrorKind.PACKAGE_MISSING, ErrorKind.COMPILER_MISSING}
_ASCII_QUOTES = {0x2018: "'", 0x2019: "'"}
_LONGEST = 2000
"""Characters of a line that are read: a longer one is no message."""


def first_error(log: Iterable[str]) -> FirstError | None:
    """Return the first error in a log; a full disk or a killed compiler before all others.

    A failed command, as `make`, is returned only if the log has no other error. None if the log has
    no error.
    """
    found = list(_errors(log))
    for kinds in (
        {ErrorKind.NO_SPACE, ErrorKind.KILLED},
        set(ErrorKind) - {ErrorKind.COMMAND_ERROR},
        set(ErrorKind),
    ):
        for error in found:
            if error.kind in kinds:
                return error
    return None


def failed_test(config_log: Iterable[str]) -> Sequence[str]:
    """Return the lines of the last test of a ``config.log`` before its error; empty without one.

    The errors of all other tests belong to questions to which `configure` expects a no.
    """
    test: list[str] = []
    for line in config_log:
        if _REFUSED.match(line):
            return test
        test = [] if _TESTED.match(line) else [*test, line]
    return ()


def _errors(log: Iterable[str]) -> Iterator[FirstError]:
    """Yield the errors; some compilers, and CMake, name the place in a line before the message."""
    place: re.Match[str] | None = None
    for whole in log:
        line = whole[:_LONGEST].rstrip().translate(_ASCII_QUOTES)
        if cmake := _CMAKE.match(line):
            place = cmake
            continue
        if place is not None and place.re is _CMAKE and line.strip():
            error = _matched(line)
            named = error is not None and error.kind in _OF_CMAKE
            error = error if named else FirstError(ErrorKind.CMAKE_ERROR, line.strip())
        elif header := (_GFORTRAN.match(line) or _CRAY.match(line)):
            place = header
            continue
        else:
            error = _matched(line)
        if error is None:
            continue
        if not error.file and place is not None:
            error = replace(error, file=place["file"], line=int(place["line"]))
        place = None
        yield error


def _matched(line: str) -> FirstError | None:
    for kind, rule in _COMPILED:
        if match := rule.match(line):
            of = match.groupdict("")
            number = int(of.get("line", "") or 0)
            return FirstError(
                kind, of["text"].strip(), of.get("name", ""), of.get("file", ""), number
            )
    return None
