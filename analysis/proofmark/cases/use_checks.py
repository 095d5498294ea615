"""Checks the uses of a case that search, and those that read the files of another use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proofmark.cases.models import Case, SuiteUse
from proofmark.common.errors import InputError, nearest


def use_mistakes(file: str, case: Case) -> Iterator[InputError]:
    """Yield the mistakes in the keys ``search``, ``name`` and ``reads`` of the uses of `case`."""
    for suite, uses in case.suites.items():
        for number, use in enumerate(uses):
            key = f"suites.{suite}.{number}"
            yield from _search_mistakes(file, key, case, use)
            yield from _reading_mistakes(file, key, uses, use)


def _search_mistakes(file: str, key: str, case: Case, use: SuiteUse) -> Iterator[InputError]:
    if use.search is None:
        return
    axes = [*case.sweep, *use.sweep]
    names = [(axis, axes, f"{key}.search.axes") for axis in use.search.axes]
    names.append((use.search.metric, [*case.metrics], f"{key}.search.metric"))
    for given, known, place in names:
        if given not in known:
            yield InputError(file, place, f"{given!r}{nearest(given, known)}", ", ".join(known))
    if use.reads is not None:
        found = "a search in a use that reads files"
        yield InputError(file, f"{key}.search", found, "a search in the use that writes them")


def _reading_mistakes(
    file: str, key: str, uses: Sequence[SuiteUse], use: SuiteUse
) -> Iterator[InputError]:
    if use.name is not None and sum(each.name == use.name for each in uses) > 1:
        yield InputError(file, f"{key}.name", f"{use.name!r} of several uses", "a name of one use")
    if use.reads is None:
        return
    names = [each.name for each in uses if each.name is not None]
    writer = next((each for each in uses if each.name == use.reads), None)
    if writer is None:
        found = f"{use.reads!r}{nearest(use.reads, names)}"
        yield InputError(file, f"{key}.reads", found, ", ".join(names) or "a use with a name")
        return
    if sum(each.reads == use.reads for each in uses) > 1:
        found = f"{use.reads!r} in several uses"
        yield InputError(file, f"{key}.reads", found, "one use that reads the files of a use")
    for same in ("repeats", "at_most", "modes"):
        own, other = getattr(use, same), getattr(writer, same)
        if own != other:
            yield InputError(file, f"{key}.{same}", f"{own!r}", f"{other!r}, as {use.reads} has")
