"""mdtest: the phases that its options select, and the items of a process (mdtest's options)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proofmark.cases.reader.agreement import Agreement
from proofmark.cases.reader.reader import Pattern, Reader, TextRun, line, words
from proofmark.cases.reader.settings import StartedCommand
from proofmark.cases.reader.values import measured
from proofmark.common.message import Message

_FILES = {"file_create", "file_stat", "file_read", "file_remove"}
_DIRECTORIES = {"directory_create", "directory_stat", "directory_remove"}
_PHASES: Sequence[Mapping[str, set[str]]] = (
    {"-F": _FILES, "-D": _DIRECTORIES},
    {
        "-C": {"file_create", "directory_create"},
        "-T": {"file_stat", "directory_stat"},
        "-E": {"file_read"},
        "-r": {"file_remove", "directory_remove"},
    },
)
"""Groups of option → its phases. Without an option of a group, all phases of the group run."""
_METRICS = {
    "File creation": "file_create",
    "File stat": "file_stat",
    "File read": "file_read",
    "File removal": "file_remove",
    "Directory creation": "directory_create",
    "Directory stat": "directory_stat",
    "Directory removal": "directory_remove",
}
_COMMAND = line("Command line used: (?P<command>.*)")
_RATES = line(r"SUMMARY(?: rate\b.*|:.*)")
_TIMES = line(r"SUMMARY time\b.*")
# Later versions print ms/op instead, under another title.
_SECONDS = line(r"SUMMARY time: \(of .*")
# Max, Min, Mean and Std Dev of the iterations: the mean counts, and the least time. With
# --showRankStatistics Max, Min and Mean of the ranks come before them.
_ROW = line(
    r"\ *(?P<key>(?:File|Directory) [a-z]+) *:?(?: +\S+ +\S+ +\S+)? +(?P<most>\S+) +(?P<least>\S+)"
    r" +(?P<value>\S+) +\S+"
)
_LEAST_SECONDS = 1
"""The barriers before and after a phase take milliseconds: a shorter phase measures them."""


def read(run: TextRun) -> None:
    """Read mdtest 1.9 to 4."""
    # -P prints a second table with the same rows: the times of the phases.
    rates = times = False
    for text in run.lines():
        if match := _COMMAND.fullmatch(text):
            run.command(match)
        elif _RATES.fullmatch(text):
            rates = True
        elif _TIMES.fullmatch(text):
            rates, times = False, times or bool(_SECONDS.fullmatch(text))
        elif (match := _ROW.fullmatch(text)) and (metric := _METRICS.get(match["key"].strip())):
            if rates:
                run.key(match, metric)
            if times:
                _check_time(run, metric, match["least"])
    if run.request and run.builders:
        _select(run, selected_metrics(run.request))
    items, tasks = run.facts.get("all_items"), run.facts.get("tasks")
    if "items" in run.facts or not (isinstance(items, int) and isinstance(tasks, int)):
        return
    if tasks and not items % tasks:  # with -I only the sum of the items of all processes is printed
        run.correct("items", items // tasks)


def _check_time(run: TextRun, metric: str, word: str) -> None:
    """Doubt a rate that was measured for a short time, or for an unknown one."""
    seconds, problem = measured(word)
    if seconds is not None and seconds < _LEAST_SECONDS:
        times = {"seconds": f"{seconds:g}", "least": f"{_LEAST_SECONDS:g}"}
        problem = Message("reader-short", metric=metric, **times)
    if problem:
        run.doubt(problem, [metric])


def _select(run: TextRun, selected: set[str]) -> None:
    """Leave out the metrics that the command line does not select; add the missing ones."""
    run.check_doubts()
    run.builders = [each for each in run.builders if each.metric in selected]
    found = {each.metric for each in run.builders}
    for metric in _METRICS.values():
        if metric in selected - found:
            run.unread(metric, Message("reader-no-metric", metric=metric))


def selected_metrics(request: StartedCommand) -> set[str]:
    """Return the phases that both groups of options select."""
    # mdtest prints each word in quotes: single ones, or double ones (1.9.3).
    words = {word.strip("'\"") for word in request.arguments}
    selected = _FILES | _DIRECTORIES
    for group in _PHASES:
        named = [phases for option, phases in group.items() if option in words]
        selected &= set().union(*(named or group.values()))
    return selected


def _option(option: str, value: str) -> Pattern:
    # mdtest prints each word without quotes, in single ones, or (1.9.3) in double ones.
    quote = "['\"]?"
    return line(f"Command line used.* {quote}{option}{quote} {quote}{value}{quote}(?: .*)?")


MDTEST = Reader(
    finds="mdtest rate",
    benchmark="mdtest",
    units=dict.fromkeys(_METRICS.values(), "ops/s"),
    parameters={
        "tasks": "int",
        "items": "int",
        "stride": "int",
        # -u: each process has its own directory.
        "own_directory": "word",
        "file_bytes": "int",
        "read_bytes": "int",
        # Seconds of the creation of files: then `items` is not the number of
        # items.
        "stonewall": "word",
        "iterations": "int",
    },
    # With -I the items of a process are those of its directories, and only
    # their sum is printed.
    aside={"all_items": "int", "most": "printed", "least": "printed"},
    agree=(
        *(Agreement(each, at_most="most", rounding=0.001) for each in _METRICS.values()),
        *(Agreement(each, at_least="least", rounding=0.001) for each in _METRICS.values()),
    ),
    # Read by other rules, or without an effect on a figure.
    no_setting=words(
        "-n -N -w -e -W -u -i -v -vv -vvv -P items iterations write_bytes read_bytes random_seed"
        " first last stride stone_wall_timer_seconds unique_dir_per_task nstride"
    ),
    read=read,
    # Version 1.9.3 prints the time of the start before it, others after it, some do not.
    starts=line(r"mdtest-\S+ was launched with \d+ total task\(s\) on .*"),
    once="ends",
    facts=(
        line(
            r"mdtest-\S+ was launched with (?P<tasks>\d+) total task\(s\)"
            r" on \d+ node.*"
        ),
        line(
            r" *\d+ tasks, (?P<all_items>\d+) (?:files/directories|files"
            r"|directories)\b.*"
        ),
        line(r"SUMMARY(?: rate)?.*\(of (?P<iterations>\d+) iterations\)"),
        _option("-n", r"(?P<items>\d+)"),
        _option("-N", r"(?P<stride>\d+)"),
        line("Command line used.* ['\"]?(?P<own_directory>-u)['\"]?(?: .*)?"),
        _option("-w", r"(?P<file_bytes>\d+)"),
        _option("-e", r"(?P<read_bytes>\d+)"),
        _option("-W", r"(?P<stonewall>[1-9]\d*)"),
    ),
    settings=(
        # Version 1.9.3 prints all options.
        line(r"(?P<key>[a-z_]+) *: (?P<value>\S.*)"),
        line(
            r"mdtest-\S+ was launched with \d+ total task\(s\) on"
            r" (?P<nodes>\d+) node.*"
        ),
    ),
    require={"-- finished at": line("-- finished at .* --")},
    reject=(
        # A directory or file that could not be made or removed was not measured.
        line(r"(?:ior )?(?:ERROR|error)\b.*"),
        line("WARNING: unable to .*"),
        line(r".*: Process \d+: FAILED in .*"),
    ),
    needs=("tasks", "items", "iterations"),
)
