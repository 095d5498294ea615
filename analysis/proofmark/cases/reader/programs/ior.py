"""IOR: its document of JSON, its exact sizes, and the rows that prove its end (IOR's options)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.command_line import StartedCommand, size_of, value_of
from proofmark.cases.reader.program import Item, Program, at, truth, words_of

_OPERATIONS = {"-w": "write", "-r": "read", "-R": "read"}
_DIRECT = ("-B", "useO_DIRECT=1", "--posix.odirect")
"""The options of O_DIRECT, which differ by version."""
_ORDERINGS = ("no", "constant", "random")


class Ior(Program):
    """IOR 2 to 4."""

    units = {"write": "MiB/s", "read": "MiB/s"}
    keys = ("Version", "tests")
    stated = frozenset({"api", "layout", "block_bytes", "transfer_bytes", "tasks", "iteration"})
    numbered = "iteration"
    refused = (
        re.compile(r"(?:ior )?WARNING: (?:fsync\(.*\) failed|inconsistent file size).*", re.ASCII),
    )

    def problems(self, document: object) -> Iterator[str]:
        """Yield the reason if the document has no end."""
        if not truth(at(document, "Finished")):
            yield 'no "Finished": cut off'

    def items(self, document: object) -> Iterator[Item]:
        """Yield the rows. IOR 3 nests the results of each repetition, IOR 4 does not."""
        tests = at(document, "tests")
        for test in tests if isinstance(tests, list) else []:
            parameters = _parameters(test, _command(document))
            options, given = at(test, "Options"), at(test, "Parameters")
            settings: Mapping[str, object] = {}
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

    def exact_sizes(self, request: StartedCommand) -> Mapping[str, int]:
        """Return the sizes of blocks and transfers; without those that cannot be read."""
        options = {"block_bytes": "-b", "transfer_bytes": "-t"}
        sizes = {name: size_of(value_of(request, option)) for name, option in options.items()}
        return {name: size for name, size in sizes.items() if size is not None}

    def has_requested_rows(
        self, request: StartedCommand, builders: Iterable[ReadingBuilder]
    ) -> bool:
        """Return whether each requested operation has an intact row in each repetition.

        IO500 ends the program in another way than IOR itself. With `-f` the requests are in a file.
        """
        words = request.arguments
        repeats = value_of(request, "-i") or "1"
        if not repeats.isdecimal() or "-f" in words:
            return False
        rows = {
            (builder.metric, builder.parameters.get(self.numbered))
            for builder in builders
            if not builder.problems
        }
        metrics = {metric for option, metric in _OPERATIONS.items() if option in words}
        needed: set[tuple[str, object]] = set()
        for metric in metrics or self.units:
            needed |= {(metric, row) for row in range(int(repeats))}
        return needed <= rows


def _command(document: object) -> list[str]:
    """Return the words of the command line. Hints have commas between them."""
    return words_of(at(document, "Command line")).replace(",", " ").split()


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
        "amount": at(test, "Options", "aggregate filesize"),
    }
