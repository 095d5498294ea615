"""Rules of this test suite: its tiers, no unlisted skip, no unknown fault."""

from __future__ import annotations

import signal
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, is_hypothesis_test, settings

HERE = Path(__file__).parent
TIERS = ("test", "soak")
EXAMPLES = {"test": 50, "soak": 2000}
"""The number of examples of a property, by tier; a test may take a share of it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--tier`. Without it every selected test runs, also one of the tier soak."""
    parser.addoption(
        "--tier",
        choices=TIERS,
        help="test: all but the tests marked soak; soak: these and the properties, longer",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the number of examples, and let signals through to what the tests start.

    A shell starts its background jobs with SIGINT ignored, nohup with SIGHUP; children inherit
    that, and a script cannot trap a signal that was ignored when it started (POSIX, trap).
    """
    for tier, examples in EXAMPLES.items():
        # A slow example on a loaded machine is not wrong.
        slow = [HealthCheck.too_slow]
        settings.register_profile(
            tier, max_examples=examples, deadline=None, suppress_health_check=slow
        )
    settings.load_profile(config.getoption("--tier") or "test")
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def allowed_skips() -> frozenset[str]:
    """Return the node ids, without parameters, of the tests that tests/skips.toml lets skip."""
    entries = tomllib.loads((HERE / "skips.toml").read_text(encoding="utf-8")).get("skip", [])
    return frozenset(entry["test"] for entry in entries)


def fault_tiers() -> dict[str, str]:
    """Return the tier of each fault of tests/faults.yml, by id."""
    faults = yaml.safe_load((HERE / "faults.yml").read_text(encoding="utf-8"))
    return {fault: entry["tier"] for fault, entry in faults.items()}


def runs_in(item: pytest.Item, tier: str) -> bool:
    """Return whether `item` is a test of `tier`."""
    soak = item.get_closest_marker("soak") is not None
    if tier == "soak":
        return soak or is_hypothesis_test(getattr(item, "obj", None))
    return not soak


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


def check_faults(items: list[pytest.Item]) -> None:
    """Refuse a `fault` mark without exactly one id, or on a test outside the tier of the fault."""
    tiers = fault_tiers()
    for item in items:
        for mark in item.iter_markers("fault"):
            if len(mark.args) != 1 or mark.args[0] not in tiers:
                raise pytest.UsageError(
                    f"{item.nodeid}: found fault{mark.args}; accepted: one of {sorted(tiers)}"
                )
            tier = tiers[mark.args[0]]
            if not runs_in(item, tier):
                raise pytest.UsageError(
                    f"{item.nodeid}: found a test outside the tier {tier} of the fault "
                    f"{mark.args[0]}; accepted: the mark soak for the tier soak, none for test"
                )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Check the faults, leave out the tests of the other tier, and begin with the long ones.

    Two processes share the files: one that begins last and runs for minutes would run alone.
    """
    check_faults(items)
    if tier := config.getoption("--tier"):
        others = [item for item in items if not runs_in(item, tier)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if runs_in(item, tier)]
    items.sort(key=lambda item: "unit" in item.path.relative_to(HERE).parts)
