"""Rules of this test suite: tiers, no unlisted skip, no unknown fault, no process left."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, is_hypothesis_test, settings

from proofmark.cli.main import GC_THRESHOLD
from proofmark.common.kit import provide_home

HERE = Path(__file__).parent
Started = list[weakref.ref["subprocess.Popen[Any]"]]

_started: Started = []
"""The processes that the running test and its fixtures started."""
_numbers = itertools.count()
_of_fixtures: dict[int, Started] = {}
"""The processes of fixtures that outlive a test, by the id of the fixture."""
TIERS = ("test", "rest", "soak")
"""From the first to the last: make test, what make test-all adds, make soak."""
PLACES = {"core": "test", "rest": "rest"}
"""The tier of a test by the mark that gives the reason for it."""
OWN_FOLDER = pytest.StashKey[Path]()
"""The folder with the temporary folders of this pytest, if the command line names none."""
TOOLS = "TOOLS_OF_TESTS"
"""The environment variable from which `tests.forks` takes the folder of the commands."""
TRACE = "proofmark.trace"
"""The name of the logger of the trace."""
EXAMPLES = {"test": 5, "rest": 20, "soak": 2000}
"""The number of examples of a property, by tier; a test may take a share of it.

Each later tier runs the properties of all earlier ones again, with more examples.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--tier`. Without it every selected test runs, also one of the tier soak."""
    parser.addoption(
        "--tier",
        choices=TIERS,
        help="test: the core; rest: the other tests but those marked soak; soak: these. Each later "
        "tier also runs the properties of the earlier ones, with more examples",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the number of examples; prepare this process and those that it starts.

    The temporary folders of all pytests of a user are in one folder, which each pytest closes for
    other users when it begins. So each has a folder of its own here.

    They store compiled modules, whose compilation takes more CPU time than many a test. Their
    output is buffered, as that of a user: a command with other variables of Python than those of
    `tests.forks` is started, and not forked.

    They know their place: files that all can read, whatever the umask of the caller is; a locale
    with UTF-8, without which Ansible does not start; no time zone of the caller.

    A shell starts its background jobs with SIGINT ignored, nohup with SIGHUP. Children inherit
    this. A script cannot trap a signal that was ignored when it started (POSIX, trap).
    """
    gc.disable()  # until all tests are collected
    os.umask(0o022)
    for name in [name for name in os.environ if name in ("LANG", "LANGUAGE") or name[:3] == "LC_"]:
        del os.environ[name]
    os.environ |= {"LC_ALL": "C.UTF-8"}
    os.environ.pop("TZ", None)
    time.tzset()
    sys.dont_write_bytecode = False
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        os.environ.pop(name, None)
    for tier, examples in EXAMPLES.items():
        # A loaded machine makes examples slow, and few requests fit a strict placement.
        accepted = [HealthCheck.too_slow, HealthCheck.filter_too_much]
        settings.register_profile(
            tier, max_examples=examples, deadline=None, suppress_health_check=accepted
        )
    settings.load_profile(config.getoption("--tier") or "rest")
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if TOOLS not in os.environ:  # a worker of xdist has those of its pytest
        from tests.forks import forked_tools  # a test copies this file, but not its folder

        ends = contextlib.ExitStack()
        os.environ[TOOLS] = f"{ends.enter_context(forked_tools())}"
        ends.callback(os.environ.pop, TOOLS)
        config.add_cleanup(ends.close)
    subprocess.Popen.__init__ = _recording(subprocess.Popen.__init__)  # type: ignore[method-assign]
    if not config.option.basetemp:  # a worker of xdist has that of its pytest
        # The path of a socket below it has at most 108 bytes.
        config.stash[OWN_FOLDER] = Path(tempfile.mkdtemp(prefix="pm-"))
        config.option.basetemp = f"{config.stash[OWN_FOLDER] / 't'}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove the temporary folders of this pytest, unless a test failed."""
    if not session.testsfailed and OWN_FOLDER in session.config.stash:
        shutil.rmtree(session.config.stash[OWN_FOLDER], ignore_errors=True)


def _recording(start: Callable[..., None]) -> Callable[..., None]:
    """Return `start` with a record of each process, as a weak reference."""

    @functools.wraps(start)
    def recorded(process: subprocess.Popen[Any], *args: Any, **kwargs: Any) -> None:
        start(process, *args, **kwargs)
        _started.append(weakref.ref(process))

    return recorded


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
    """Record the processes of a fixture that outlives the test under that fixture."""
    before = len(_started)
    value = yield
    if fixturedef.scope != "function":
        _of_fixtures[id(fixturedef)] = _started[before:]
        del _started[before:]
    return value


def pytest_fixture_post_finalizer(fixturedef: pytest.FixtureDef[Any]) -> None:
    """Add the processes of such a fixture to the test with which it ends."""
    _started.extend(_of_fixtures.pop(id(fixturedef), []))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[Any]:
    """Fail a test that leaves a process, and kill the process.

    Otherwise the garbage collector would report it in another test.
    """
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
            accepted = "a process that was waited for, and whose pipes are closed"
            pytest.fail(f"{item.nodeid}: found {'; '.join(lost)}; accepted: {accepted}", False)


def _left(process: subprocess.Popen[Any]) -> bool:
    """Return whether `process` was not waited for, or has an open pipe."""
    if not hasattr(process, "returncode"):
        return False  # it was never started
    pipes = (process.stdin, process.stdout, process.stderr)
    return process.returncode is None or any(pipe and not pipe.closed for pipe in pipes)


def _set_state(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let commands keep the state of sites in `folder`, and not in that of this machine."""
    patch.setenv("PROOFMARK_STATE", str(folder / "root"))
    patch.setenv("XDG_STATE_HOME", str(folder))


@pytest.fixture(scope="session", autouse=True)
def state_of_fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give a state to the fixtures that several tests use."""
    with pytest.MonkeyPatch.context() as patch:
        _set_state(tmp_path_factory.getbasetemp() / "state", patch)
        yield


@pytest.fixture(autouse=True)
def private_state(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Give a state to each test. Most tests write none."""
    _set_state(tmp_path_factory.getbasetemp() / f"state-{next(_numbers)}", monkeypatch)


@pytest.fixture(scope="session", autouse=True)
def home_of_commands() -> Iterator[None]:
    """Let the commands that tests call in this process look once at each folder for HOME.

    A look starts eight processes. Commands in processes of their own look each time.
    """
    looked: set[str] = set()

    def provided() -> None:
        if os.environ.get("HOME") not in looked:
            provide_home()
            looked.add(os.environ["HOME"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("proofmark.cli.main.provide_home", provided)
        yield


@pytest.fixture(autouse=True)
def no_trace() -> Iterator[None]:
    """End the trace that a test starts: its stream closes with the test."""
    trace = logging.getLogger(TRACE)
    level, before = trace.level, list(trace.handlers)
    yield
    for handler in set(trace.handlers) - set(before):
        trace.removeHandler(handler)
        handler.close()
    trace.setLevel(level)


def allowed_skips() -> frozenset[str]:
    """Return the node ids, without parameters, of the skips that tests/skips.toml lists."""
    entries = tomllib.loads((HERE / "skips.toml").read_text(encoding="utf-8")).get("skip", [])
    return frozenset(entry["test"] for entry in entries)


def fault_tiers() -> dict[str, str]:
    """Return the tier of each fault of tests/faults.yml, by id."""
    text = (HERE / "faults.yml").read_text(encoding="utf-8")
    faults = yaml.load(text, Loader=yaml.CSafeLoader)  # each worker of xdist reads it
    return {fault: entry["tier"] for fault, entry in faults.items()}


@functools.cache
def later_folders() -> frozenset[Path]:
    """Return the folders of tests/tiers.yml, absolute."""
    known = yaml.safe_load((HERE / "tiers.yml").read_text(encoding="utf-8"))
    return frozenset(HERE.parent / name for name in known)


@functools.cache
def is_later(path: Path) -> bool:
    """Return whether the tests of the file `path` are those that make test-all adds."""
    return not later_folders().isdisjoint(path.parents)


def tier_of(item: pytest.Item) -> str:
    """Return the tier of `item`: that of the mark nearest to it, else that of its folder.

    Raises:
        pytest.UsageError: the mark has no reason.
    """
    if item.get_closest_marker("soak"):
        return "soak"
    for mark in item.iter_markers():
        if mark.name in PLACES:
            if not (len(mark.args) == 1 and isinstance(mark.args[0], str)):
                raise pytest.UsageError(
                    f"{item.nodeid}: found {mark.name}{mark.args}; accepted: one reason"
                )
            return PLACES[mark.name]
    return "rest" if is_later(item.path) else "test"


def runs_in(item: pytest.Item, tier: str) -> bool:
    """Return whether `tier` runs `item`, or runs the property `item` with more examples."""
    own = tier_of(item)
    if is_hypothesis_test(getattr(item, "obj", None)):
        return TIERS.index(own) <= TIERS.index(tier)
    return own == tier


def may_have(text: str, later: bool, tier: str) -> bool:
    """Return whether a file of tests can have one that `tier` runs.

    To import a file and to make its tests takes longer than to run many a test.

    Args:
        text: the content of the file.
        later: whether `make test-all` adds the tests of its folder.
        tier: one of `TIERS`.
    """
    if tier == "test":
        of_file = re.search(r"^pytestmark = (\[[^\]]*|.*)mark\.(rest|soak)\b", text, re.MULTILINE)
        return "mark.core" in text or not (later or of_file)
    return "hypothesis" in text or f"mark.{tier}" in text or (later and tier == "rest")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore a file without a test of this tier, unless the command line names the file."""
    tier = config.getoption("--tier")
    if not tier or not collection_path.match("test_*.py"):
        return None
    named = {Path(each.partition("::")[0]).resolve() for each in config.args}
    text = collection_path.read_text(encoding="utf-8")
    needed = collection_path in named or may_have(text, is_later(collection_path), tier)
    return None if needed else True


def _refuse_skip(report: Any) -> None:
    """Turn a skip that is not listed into a failure; `report` is that of a test or a collector."""
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
    """Refuse a `fault` mark without exactly one id, or on a test before the tier of the fault."""
    tiers = fault_tiers()
    for item in items:
        for mark in item.iter_markers("fault"):
            if len(mark.args) != 1 or mark.args[0] not in tiers:
                raise pytest.UsageError(
                    f"{item.nodeid}: found fault{mark.args}; accepted: one of {sorted(tiers)}"
                )
            tier = tiers[mark.args[0]]
            if TIERS.index(own := tier_of(item)) < TIERS.index(tier):
                raise pytest.UsageError(
                    f"{item.nodeid}: found a test of the tier {own}; accepted: {tier} or later, as "
                    f"tests/faults.yml has for the fault {mark.args[0]}, or {own} there"
                )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Check the faults, deselect tests, and put the long tests first.

    Deselected are the tests of the other tier and, without root, those with the mark ``root``.

    Two processes share the files. A long file that starts last would run alone.
    """
    check_faults(items)
    if tier := config.getoption("--tier"):
        kept = [item for item in items if runs_in(item, tier) and _may_run(item)]
        config.hook.pytest_deselected(items=list(set(items) - set(kept)))
        items[:] = kept
    items.sort(key=lambda item: "/unit/" in item.nodeid.partition("::")[0])


def _may_run(item: pytest.Item) -> bool:
    return os.geteuid() == 0 or item.get_closest_marker("root") is None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the time of each folder, and name the tests that this user cannot run.

    The time is that of all workers together, with setup and teardown, in seconds.
    """
    if not config.getoption("--tier"):
        return
    times: defaultdict[str, float] = defaultdict(float)
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            times[report.nodeid.partition("::")[0].rpartition("/")[0]] += report.duration
    terminalreporter.write_sep("=", "time of each folder")
    for folder, seconds in sorted(times.items(), key=lambda each: -each[1]):
        terminalreporter.write_line(f"{seconds:.2f}s {folder or '.'}")
    if os.geteuid() != 0:
        line = "without root: the tests with the mark root were left out; root runs all tests"
        terminalreporter.write_line(line)


def pytest_collection_finish() -> None:
    """Start the garbage collector, which then ignores all present objects, also those of no use.

    The modules and tests exist until the end. With the default threshold, the collector takes a
    twelfth of the CPU time of the tests, and a tenth of that of their collection.
    """
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    gc.enable()
