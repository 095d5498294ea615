"""Rules of this test suite: its tiers, no unlisted skip, no unknown fault, no lost process."""

from __future__ import annotations

import functools
import signal
import subprocess
import tomllib
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, is_hypothesis_test, settings

HERE = Path(__file__).parent
Started = list[weakref.ref["subprocess.Popen[Any]"]]

_started: Started = []
"""What the test that runs now has started, with its own fixtures."""
_of_fixtures: dict[int, Started] = {}
"""What fixtures that outlive a test have started."""
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
        # A slow example on a loaded machine is not wrong, and few requests fit a strict placement.
        accepted = [HealthCheck.too_slow, HealthCheck.filter_too_much]
        settings.register_profile(
            tier, max_examples=examples, deadline=None, suppress_health_check=accepted
        )
    settings.load_profile(config.getoption("--tier") or "test")
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    subprocess.Popen.__init__ = _noting(subprocess.Popen.__init__)  # type: ignore[method-assign]


def _noting(start: Callable[..., None]) -> Callable[..., None]:
    """Note each process that `start` starts; nothing is kept alive by that."""

    @functools.wraps(start)
    def noted(process: subprocess.Popen[Any], *args: Any, **kwargs: Any) -> None:
        start(process, *args, **kwargs)
        _started.append(weakref.ref(process))

    return noted


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
    """Leave to a fixture that outlives the test what it starts."""
    before = len(_started)
    made = yield
    if fixturedef.scope != "function":
        _of_fixtures[id(fixturedef)] = _started[before:]
        del _started[before:]
    return made


def pytest_fixture_post_finalizer(fixturedef: pytest.FixtureDef[Any]) -> None:
    """Count what such a fixture has started to the test that it ends with."""
    _started.extend(_of_fixtures.pop(id(fixturedef), []))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[Any]:
    """Fail a test that leaves a process, and end that; else the collector fails another test."""
    try:
        return (yield)
    finally:
        left = [process for each in _started if (process := each()) and _left(process)]
        _started.clear()
        lost = [f"process {process.pid}, {process.args!r}" for process in left]
        for process in left:
            process.kill()
            with process:  # closes its pipes and waits for it
                pass
        if lost:
            wanted = "a process that was waited for, and whose pipes are closed"
            pytest.fail(f"{item.nodeid}: found {'; '.join(lost)}; accepted: {wanted}", False)


def _left(process: subprocess.Popen[Any]) -> bool:
    """Return whether `process` was not waited for, or has an open pipe."""
    if not hasattr(process, "returncode"):
        return False  # it never began
    pipes = (process.stdin, process.stdout, process.stderr)
    return process.returncode is None or any(pipe and not pipe.closed for pipe in pipes)


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
                    f"{mark.args[0]}; accepted: in the tier soak a test with the mark soak, in the "
                    "tier test a test without it"
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
