"""IOR: its rows, its document of JSON, its exact sizes, and the rows that prove its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from proofmark.cases.reader.agreement import Agreement, compare_again
from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.documents import at, truth, words_of
from proofmark.cases.reader.reader import (
    Documents,
    Item,
    Reader,
    TextRun,
    line,
    matches_of,
    words,
)
from proofmark.cases.reader.settings import StartedCommand, size_of, value_of
from proofmark.cases.reader.table import Table
from proofmark.common.message import Message

_OPERATIONS = {"-w": "write", "-r": "read", "-R": "read"}
_UNITS = {"write": "MiB/s", "read": "MiB/s"}
_DIRECT = ("-B", "useO_DIRECT=1", "--posix.odirect")
"""The options of O_DIRECT, which differ by version."""
_ORDERINGS = ("no", "constant", "random")
_FSYNC_FAILED = line(r"(?:ior )?WARNING: fsync\(.*\) failed.*")
_INCONSISTENT = line("(?:ior )?WARNING: inconsistent file size by different tasks.*")
_MOVED_LESS = line(
    r"WARNING: (?:Expected aggregate file size|Stat\(\) of aggregate file size"
    "|Using actual aggregate bytes moved|[Mm]aybe caused by deadlineForStonewalling).*"
)
_COMMAND = line(r"Command line(?: used)?\s*: (?P<command>.*)")
_OPTIONS = matches_of(
    line("Command line.* '?(?P<fsync>-e)'?(?: .*)?"),
    line(r"Command line.* (?P<direct>-B|useO_DIRECT=1|--posix\.odirect)(?: .*)?"),
    line(r"Command line.* -D (?P<stonewall>[1-9]\d*)(?: .*)?"),
    line(r"Command line(?!.* -D ).*\b(?P<stonewall>stoneWallingStatusFile)=.*"),
)
# HDF5-1.8.14 (Parallel), MPIIO (version=3, subversion=1)
_API = line(r"\s*api\s+[:=] (?P<api>[A-Za-z][\w-]*?)(?:-\d+\.\S*)?(?: .*)?")
_OF_API = (
    *("type", "layout", "ordering", "ordering_inter_file", "segments", "block_bytes"),
    *("transfer_bytes", "tasks", "amount", "repetitions", "nodes", "per_node"),
)
"""The parameters that follow a line with the interface."""
# IOR 3.2 and later print blanks and a colon; earlier versions a tab and an equals sign.
_CONTEXT = matches_of(
    line(r"\s*access\s+[:=] (?P<layout>[\w-]+)(?:, (?P<type>\w+))?.*"),
    line(r"\s*type\s+: (?P<type>\w+)"),
    line(r"\s*ordering in a file\s*[:=] (?P<ordering>\w+).*"),
    line(r"\s*ordering inter file\s*[:=] (?P<ordering_inter_file>\w+) .*"),
    line(r"\s*segments\s+: (?P<segments>\d+)"),
    line(r"\s*pattern\s+= \w+ \((?P<segments>\d+) segments?\)"),
    line(r"\s*stonewallingTime\s+: (?P<stonewall>[1-9]\d*)"),
    line(r"\s*tasks\s+: (?P<tasks>.*)"),
    line(r"\s*clients\s+= (?P<tasks>\d+) \((?:(?P<per_node>\d+) per node|.*)\)"),
    line(r"\s*nodes\s+: (?P<nodes>\d+)"),
    line(r"\s*clients per node\s*: (?P<per_node>\d+)"),
    line(r"\s*xfersize\s+[:=] (?P<transfer_bytes>.*)"),
    line(r"\s*blocksize\s+[:=] (?P<block_bytes>.*)"),
    line(r"\s*aggregate filesize\s*[:=] (?P<amount>.*)"),
    line(r"\s*repetitions\s*[:=] (?P<repetitions>\d+).*"),
)
_HEADER = line(r"access\s+bw\(MiB/s\)\s.*")
_END = line("Max (?:Write|Read):.*|Summary of all tests:")
_MOST = line(r"Max (?P<key>Write|Read):\s+(?P<most>\d+\.\d+) MiB/sec.*")
_AGAIN = ("most", "least", "mean")
_TITLES = line(r"Operation\s+Max ?\(MiB\)\s+Min ?\(MiB\)\s+Mean ?\(MiB\).*")
_SUMMARY = line(
    r"(?P<key>write|read)\s+(?P<most>\d+\.\d+)\s+(?P<least>\d+\.\d+)\s+(?P<mean>\d+\.\d+)\s.*"
)
# A row for each iteration. The summary after the rows repeats them as means.
_TABLE = Table(
    names={"access": {"write": "write", "read": "read"}},
    named={"bw(MiB/s)": 0},
    parameters={"IOPS": "iops", "total(s)": "total_s", "iter": "iteration"},
    unread=("Latency(s)", "block(KiB)", "xfer(KiB)", "open(s)", "wr/rd(s)", "close(s)"),
    # Hints of MPI-IO; lines of -v, of a stonewalled run and of one that overwrites a file.
    skip=line(
        r"[- ]+|\s*\w+ = .*|(?:\d+: )?stonewalling pairs accessed.*|remove\s.*"
        r"|Commencing \w+ performance test: .*|delaying \d+ seconds.*|#File Hits Dist:.*"
        r"|(?:ior )?WARNING: The file .* exists already .*|HDF5 (?:write|read) \d+ datasets?\b.*"
        r"|Used Time Stamp .* for Data Signature|(?:ior )?WARNING: [Tt]ask \d+, partial .*"
    ),
)


def read(run: TextRun) -> None:
    """Read IOR 2 to 4."""
    again: dict[str, dict[str, float]] = {}
    summary = False
    for text in run.lines():
        summary = summary or bool(_TITLES.fullmatch(text))
        if match := (_SUMMARY if summary else _MOST).fullmatch(text):
            metric, *words = match.groups()
            again[metric.lower()] = dict(zip(_AGAIN, map(float, words), strict=False))
        if matches := _CONTEXT(text):
            run.contexts(matches)
        elif match := _HEADER.fullmatch(text):
            run.header(_TABLE, match)
        elif _END.fullmatch(text):
            run.end_table()
        elif match := _API.fullmatch(text):
            run.context(match, _OF_API)
        elif text.startswith("Command line"):
            run.contexts(_OPTIONS(text))
            match = _COMMAND.fullmatch(text)
            if match and (printed := run.command(match)):
                run.exact |= exact_sizes(printed)
        elif _FSYNC_FAILED.fullmatch(text):
            # Every process writes, so every process may print it.
            run.complaint(text, ("write",))
        elif _INCONSISTENT.fullmatch(text) or (
            _MOVED_LESS.fullmatch(text) and "stonewall" not in run.sticky
        ):
            run.complaint(text)
        elif not _MOVED_LESS.fullmatch(text):
            run.other(text)
    _check_rows(run, again)


def _check_rows(run: TextRun, again: Mapping[str, Mapping[str, float]]) -> None:
    """Compare the rows of each operation with their number and with the summary that IOR prints.

    The summary of each operation is in `again`. It is not compared if IOR ran several tests.
    """
    tests: dict[tuple[object, ...], list[ReadingBuilder]] = {}
    for each in run.builders:
        test = (each.parameters[name] for name in each.parameters if name != "iteration")
        tests.setdefault((each.metric, each.aside.get("repetitions"), *test), []).append(each)
    timed = run.request is not None and "-T" in run.request.arguments  # as many as fit into it
    of_metric = Counter(metric for metric, *_ in tests)
    for (metric, repetitions, *_), rows in tests.items():
        found = {each.parameters.get("iteration") for each in rows}
        whole = not isinstance(repetitions, int) or found >= {*range(repetitions)}
        if any(each.value is None for each in rows):
            continue  # a row that cannot be read has its own INVALID reading
        if whole or timed:
            compare_again(rows, again.get(f"{metric}", {}) if of_metric[metric] == 1 else {})
            continue
        for each in rows:
            counted = f"{repetitions}"
            each.problems.append(Message("reader-other-count", rows=len(found), counted=counted))


def _problems(document: object) -> Iterator[str]:
    """Yield the reason if the document has no end."""
    if not truth(at(document, "Finished")):
        yield 'no "Finished": cut off'


def _items(document: object) -> Iterator[Item]:
    """Yield the rows. IOR 3 nests the results of each repetition, IOR 4 does not."""
    tests = at(document, "tests")
    for test in tests if isinstance(tests, list) else []:
        # Hints have commas between them.
        words = words_of(at(document, "Command line")).replace(",", " ").split()
        parameters = _parameters(test, words)
        options, given = at(test, "Options"), at(test, "Parameters")
        settings = {}
        if isinstance(options, Mapping) and given is not None:
            settings = {
                **options,
                "task_offset": at(given, "taskPerNodeOffset"),
                "reorder": at(given, "reorderTasks"),
            }
        for row in _rows(at(test, "Results")):
            values = {}
            if (metric := at(row, "access")) in ("write", "read"):
                values = {f"{metric}": ("result.bwMiB", at(row, "bwMiB"))}
            yield Item(values, {**parameters, "total_s": at(row, "totalTime")}, settings)


def exact_sizes(request: StartedCommand) -> Mapping[str, int]:
    """Return the sizes of blocks and transfers; without those that cannot be read."""
    options = {"block_bytes": "-b", "transfer_bytes": "-t"}
    sizes = {name: size_of(value_of(request, option)) for name, option in options.items()}
    return {name: size for name, size in sizes.items() if size is not None}


def has_requested_rows(request: StartedCommand, builders: Iterable[ReadingBuilder]) -> bool:
    """Return whether each requested operation has an intact row in each repetition.

    A program that contains IOR can end it in another way. With `-f` the requests are in a file.
    """
    words = request.arguments
    repeats = value_of(request, "-i") or "1"
    if not repeats.isdecimal() or "-f" in words:
        return False
    rows = {
        (builder.metric, builder.parameters.get("iteration"))
        for builder in builders
        if not builder.problems
    }
    metrics = {metric for option, metric in _OPERATIONS.items() if option in words}
    needed: set[tuple[str, object]] = set()
    for metric in metrics or _UNITS:
        needed |= {(metric, row) for row in range(int(repeats))}
    return needed <= rows


def _rows(results: object) -> Iterator[object]:
    for each in results if isinstance(results, list) else []:
        if isinstance(each, list):
            yield from each
        else:
            yield each


def _parameters(test: object, command: Sequence[str]) -> dict[str, object]:
    between = words_of(at(test, "Options", "ordering inter file"))
    stonewall = at(test, "Parameters", "deadlineForStonewall")
    return {
        "api": at(test, "Parameters", "api"),
        "type": at(test, "Options", "type"),
        "ordering": at(test, "Options", "ordering in a file"),
        "ordering_inter_file": next(filter(between.startswith, _ORDERINGS), None),
        "segments": at(test, "Options", "segments"),
        "stonewall": None if stonewall == 0 else stonewall,
        "fsync": "-e" if "-e" in command else None,
        "direct": next((option for option in _DIRECT if option in command), None),
        "layout": at(test, "Options", "access"),
        "block_bytes": at(test, "Parameters", "blockSize"),
        "transfer_bytes": at(test, "Parameters", "transferSize"),
        "tasks": at(test, "Options", "tasks"),
        "nodes": at(test, "Options", "nodes"),
        "per_node": at(test, "Options", "clients per node"),
        "amount": at(test, "Options", "aggregate filesize"),
    }


def _rate(metric: str) -> tuple[Agreement, Agreement]:
    # IOR divides the aggregate amount by the total time (ior.c). A stonewalled run moves less. The
    # time of the transfers is a part of the total time, also of a stonewalled run.
    amount = ("amount / total_s / 2 ** 20",)
    most = "iops * transfer_bytes / 2 ** 20"
    return (
        Agreement(metric, amount, rounding=0.006, unless="stonewall"),
        Agreement(metric, at_most=most, rounding=0.006, within=0.01),
    )


IOR = Reader(
    finds="IOR result row",
    benchmark="IOR",
    units=_UNITS,
    parameters={
        "api": "word",
        "type": "word",
        "layout": "word",
        "ordering": "word",
        "ordering_inter_file": "word",
        "segments": "int",
        # Seconds, or that a file has the amount of an earlier run: then `block_bytes` is not the
        # amount that each process moved.
        "stonewall": "word",
        "block_bytes": "size",
        "transfer_bytes": "size",
        # -e: an fsync after the writes.
        "fsync": "word",
        "direct": "word",
        "tasks": "int",
        "iteration": "int",
    },
    read=read,
    documents=Documents(
        keys=("Version", "tests"),
        stated=frozenset({"api", "layout", "block_bytes", "transfer_bytes", "tasks", "iteration"}),
        items=_items,
        problems=_problems,
        numbered="iteration",
        refused=(_FSYNC_FAILED, _INCONSISTENT),
    ),
    aside={
        **dict.fromkeys(("total_s", "amount", "iops"), "printed"),
        **dict.fromkeys(("repetitions", "nodes", "per_node"), "int"),
    },
    no_setting=words(
        "api access type pattern segments ordering_in_a_file ordering_inter_file tasks"
        " xfersize blocksize aggregate_filesize stonewallingtime -a -b -t -e -B -F -D -z -Z"
        " -O --posix.odirect -i -w -r -k -K -v -vv -vvv -vvvv -q -j repetitions"
        " useo_direct stonewallingstatusfile summaryformat apiversion clients"
    ),
    agree=(
        *_rate("write"),
        *_rate("read"),
        Agreement("amount", ("segments * block_bytes * tasks",), within=1e-6),
        # IOR counts the tasks of the first node. The others have one or more, and less than twice
        # as many.
        Agreement("tasks", at_least="per_node + nodes - 1", within=0),
        Agreement("tasks", at_most="(2 * nodes - 1) * per_node", within=0),
    ),
    starts=line(r"IOR-\d.*: MPI Coordinated Test of Parallel I/O"),
    foreign={"summaryFormat=CSV": line(r"access,bw\(MiB/s\),.*")},
    once="ends",
    facts=(line(r"Machine\s*: \S+ (?P<node>\S+).*"),),
    settings=(
        line(r"\s*(?P<key>[a-z][A-Za-z _()-]*?)\s*[:=] (?P<value>.*)"),
        line(r"\s*clients\s+= \d+ \((?P<clients_per_node>\d+) per node\).*"),
        # HDF5-1.8.14 (Parallel), MPIIO (version=3, subversion=1)
        line(r"\s*api\s+[:=] [A-Za-z][A-Za-z]*(?P<api_version>[^A-Za-z].*)"),
    ),
    require={"Finished": line(r"Finished\s*:.*")},
    reject=(
        line("(?:ior )?ERROR.*"),
        line(".*[Ii]ncorrect data on (?:write|read).*"),
        line(r"(?:ior )?WARNING: (?:write|read|pwrite64|pread64)\(.*\) failed.*"),
        line(".*FAILED comparison of buffer.*"),
    ),
    needs=("api", "layout", "ordering", "block_bytes", "transfer_bytes", "tasks"),
    proven=lambda run: bool(run.request and has_requested_rows(run.request, run.builders)),
)
