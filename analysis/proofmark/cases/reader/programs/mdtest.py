"""mdtest: the phases that its options select, and the items of a process (mdtest's options)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proofmark.cases.reader.command_line import StartedCommand
from proofmark.cases.reader.rules import Keys, Quantity, TextSpec, line, words
from proofmark.cases.reader.spec import Program, ReadSpec
from proofmark.cases.reader.values import Parameter

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


class Mdtest(Program):
    """mdtest 1.9 to 4."""

    def rules(self) -> ReadSpec:
        """Return how its output is read."""
        return ReadSpec(
            finds="mdtest rate",
            benchmark="mdtest",
            program="mdtest",
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
            aside={"all_items": "int"},
            # Read by other rules, or without an effect on a figure.
            no_setting=words(
                "-n -N -w -e -W -u -i -F -D -C -T -E -r -v -vv -vvv -P -d"
                " items iterations write_bytes read_bytes random_seed first"
                " last stride create_only dirs_only read_only files_only"
                " remove_only stat_only items_per_dir"
                " stone_wall_timer_seconds unique_dir_per_task nstride"
            ),
            text=TextSpec(
                # Version 1.9.3 prints the time of the start before it, others after it,
                # some do not.
                starts=line(r"mdtest-\S+ was launched with \d+ total task\(s\) on .*"),
                once="ends",
                command=line("Command line used: (?P<command>.*)"),
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
                    # mdtest prints each word without quotes, in single ones, or (1.9.3) in
                    # double ones.
                    line(
                        "Command line used.* ['\"]?-n['\"]?"
                        r""" ['"]?(?P<items>\d+)['"]?(?: .*)?"""
                    ),
                    line(
                        "Command line used.* ['\"]?-N['\"]?"
                        r""" ['"]?(?P<stride>\d+)['"]?(?: .*)?"""
                    ),
                    line("Command line used.* ['\"]?(?P<own_directory>-u)['\"]?(?: .*)?"),
                    line(
                        "Command line used.* ['\"]?-w['\"]?"
                        r""" ['"]?(?P<file_bytes>\d+)['"]?(?: .*)?"""
                    ),
                    line(
                        "Command line used.* ['\"]?-e['\"]?"
                        r""" ['"]?(?P<read_bytes>\d+)['"]?(?: .*)?"""
                    ),
                    line(
                        "Command line used.* ['\"]?-W['\"]?"
                        r""" ['"]?(?P<stonewall>[1-9]\d*)['"]?(?: .*)?"""
                    ),
                ),
                settings=(
                    # Version 1.9.3 prints all options.
                    line(r"(?P<key>[a-z_]+) *: (?P<value>\S.*)"),
                    line(
                        r"mdtest-\S+ was launched with \d+ total task\(s\) on"
                        r" (?P<nodes>\d+) node.*"
                    ),
                ),
                keys=(
                    # -P prints a second table with the same rows: the times of the phases,
                    # under "SUMMARY time".
                    Keys(
                        under=line(r"SUMMARY(?: rate\b.*|:.*)"),
                        until=line(r"SUMMARY time\b.*"),
                        # Max, Min, Mean and Std Dev of the iterations: the mean counts. With
                        # --showRankStatistics Max, Min and Mean of the ranks come before them.
                        match=line(
                            r"\ *(?P<key>(?:File|Directory) [a-z]+) *:?(?: +\S+ +\S+"
                            r" +\S+)? +\S+ +\S+ +(?P<value>\S+) +\S+"
                        ),
                        metrics={
                            "File creation": Quantity(metric="file_create", unit="ops/s"),
                            "File stat": Quantity(metric="file_stat", unit="ops/s"),
                            "File read": Quantity(metric="file_read", unit="ops/s"),
                            "File removal": Quantity(metric="file_remove", unit="ops/s"),
                            "Directory creation": Quantity(metric="directory_create", unit="ops/s"),
                            "Directory stat": Quantity(metric="directory_stat", unit="ops/s"),
                            "Directory removal": Quantity(metric="directory_remove", unit="ops/s"),
                        },
                    ),
                    # The least time of a phase (Min). The barriers before and after a phase
                    # take milliseconds: a shorter phase measures them. Later versions print
                    # ms/op instead, under another title.
                    Keys(
                        under=line(r"SUMMARY time: \(of .*"),
                        match=line(
                            r"\ *(?P<key>(?:File|Directory) [a-z]+) *:?(?: +\S+ +\S+"
                            r" +\S+)? +\S+ +(?P<value>\S+) +\S+ +\S+"
                        ),
                        least_seconds=1,
                        metrics={
                            "File creation": Quantity(metric="file_create", unit="s"),
                            "File stat": Quantity(metric="file_stat", unit="s"),
                            "File read": Quantity(metric="file_read", unit="s"),
                            "File removal": Quantity(metric="file_remove", unit="s"),
                            "Directory creation": Quantity(metric="directory_create", unit="s"),
                            "Directory stat": Quantity(metric="directory_stat", unit="s"),
                            "Directory removal": Quantity(metric="directory_remove", unit="s"),
                        },
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
            ),
        )

    def facts(self, printed: Mapping[str, Parameter]) -> Mapping[str, Parameter]:
        """Return the items of a process: with `-I` only the sum of all processes is printed."""
        items, tasks = printed.get("all_items"), printed.get("tasks")
        if "items" in printed or not (isinstance(items, int) and isinstance(tasks, int) and tasks):
            return {}
        return {} if items % tasks else {"items": items // tasks}

    def selected_metrics(self, request: StartedCommand) -> set[str]:
        """Return the phases that both groups of options select."""
        # mdtest prints each word in quotes: single ones, or double ones (1.9.3).
        words = {word.strip("'\"") for word in request.arguments}
        selected = _FILES | _DIRECTORIES
        for group in _PHASES:
            named = [phases for option, phases in group.items() if option in words]
            selected = selected & set().union(*(named or group.values()))
        return selected
