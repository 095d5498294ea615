"""Rules of this test suite: no unlisted skip, no unknown fault."""

from __future__ import annotations

import signal
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent


def pytest_configure() -> None:
    """Let signals through to what the tests start.

    A shell starts its background jobs with SIGINT ignored, nohup with SIGHUP; children inherit
    that, and a script cannot trap a signal that was ignored when it started (POSIX, trap).
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def allowed_skips() -> frozenset[str]:
    """Return the node ids, without parameters, of the tests that tests/skips.toml lets skip."""
    entries = tomllib.loads((HERE / "skips.toml").read_text(encoding="utf-8")).get("skip", [])
    return frozenset(entry["test"] for entry in entries)


def fault_ids() -> frozenset[str]:
    """Return the ids of tests/faults.yml."""
    return frozenset(yaml.safe_load((HERE / "faults.yml").read_text(encoding="utf-8")))


def _refuse_skip(report: Any) -> None:
    """Make a failure of a skip that is not listed; `report` is a test's or a collector's."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    if report.nodeid.partition("[")[0] not in allowed_skips():
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: a skip that tests/skips.toml does not list\n" + str(
            report.longrepr
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[Any]:
    """Refuse the skip of a test."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[Any]:
    """Refuse the skip of a whole module."""
    report = yield
    _refuse_skip(report)
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a `fault` mark without exactly one id of tests/faults.yml; begin with the long ones.

    Two processes share the files: one that begins last and runs for minutes would run alone.
    """
    items.sort(key=lambda item: "unit" in item.path.relative_to(HERE).parts)
    known = fault_ids()
    for item in items:
        for mark in item.iter_markers("fault"):
            if len(mark.args) != 1 or mark.args[0] not in known:
                raise pytest.UsageError(
                    f"{item.nodeid}: found fault{mark.args}; accepted: one of {sorted(known)}"
                )
