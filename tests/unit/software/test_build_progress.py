"""What an installation by Spack prints before, during and instead of a build."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.folders import ROOT

from proofmark.common.progress_lines import IDLE_S
from proofmark.software.build_process import run
from proofmark.software.spack.build_progress import (
    BuildProgress,
    MeasuredTime,
    expected,
    known_times,
    measured_times,
    read_times,
)
from proofmark.software.spack.install import (
    POLL_S,
    SPACK_JOBS,
    LockHolder,
    cores_of_build,
    one_at_a_time,
)
from proofmark.software.spack.lock_file import Spec, read_lock


def hashed(name: str) -> Spec:
    return Spec(name, "1.0", (name * 32)[:32], "zen3", f"{name}@1.0", False, (), ())


ONE, TWO = hashed("a"), hashed("b")


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_packages_and_expected_time_are_printed_before_spack_prints_anything() -> None:
    lines: list[str] = []
    clock = Clock()
    progress = BuildProgress([ONE, TWO], lines.append, {"a": 60.0}, 4, now=clock)
    progress.begin()
    progress.report()
    clock.seconds = 90.0
    progress.report()
    assert lines == [
        "2 packages to install, all from their sources:",
        "  a@1.0, b@1.0",
        "expected on 4 cores: about 1 min 00 s, and 1 package without a known time",
        "  no known time: b",
        "Spack reads its recipes before the first package, for 0 s",
        "Spack reads its recipes before the first package, for 1 min 30 s",
    ]


def test_processes_that_the_site_states_are_not_cut_to_the_cores() -> None:
    """So does ``spack install -j``, and so does not its setting ``build_jobs``."""
    assert cores_of_build(200) == 200
    assert cores_of_build(0) == min(SPACK_JOBS, len(os.sched_getaffinity(0)))


def test_progress_has_count_name_and_time_left() -> None:
    lines: list[str] = []
    clock = Clock()
    progress = BuildProgress([ONE, TWO], lines.append, {"a": 20.0, "b": 90.0}, 2, now=clock)
    progress.read(f"==> Installing a-1.0-{ONE.hash} [1/5]")
    clock.seconds = 15.0
    progress.report()
    clock.seconds = 30.0
    progress.report()
    progress.read(f"==> a: Successfully installed a-1.0-{ONE.hash}")
    progress.read(f"[+] /store/a-1.0-{ONE.hash}")
    progress.read(f"==> Installing b-1.0-{TWO.hash} [2/5]")
    assert lines == [
        "1 of 2: a@1.0, for 0 s; left: about 1 min 50 s",
        "1 of 2: a@1.0, for 15 s; left: about 1 min 35 s",
        "1 of 2: a@1.0, for 30 s, late by 10 s; left after it: about 1 min 30 s",
        "2 of 2: b@1.0, for 0 s; left: about 1 min 30 s",
    ]
    assert progress.built == {"a": 30.0}
    clock.seconds = 75.0
    progress.read("==> Error: ProcessError: Command exited with status 2:")
    assert lines[-1] == "b@1.0 failed after 45 s"
    assert progress.built == {"a": 30.0}


def test_a_late_build_says_by_how_much_and_its_lateness_grows() -> None:
    """The time left of the others stands still meanwhile, and alone it would be a promise."""
    lines: list[str] = []
    clock = Clock()
    progress = BuildProgress([ONE, TWO], lines.append, {"a": 60.0, "b": 78.0}, 2, now=clock)
    progress.read(f"==> Installing a-1.0-{ONE.hash} [1/5]")
    for clock.seconds in (60.0, 90.0, 540.0):
        progress.report()
    progress.read(f"[+] /store/a-1.0-{ONE.hash}")
    clock.seconds = 570.0
    progress.report()
    assert lines[1:] == [
        "1 of 2: a@1.0, for 1 min 00 s; left: about 1 min 18 s",
        "1 of 2: a@1.0, for 1 min 30 s, late by 30 s; left after it: about 1 min 18 s",
        "1 of 2: a@1.0, for 9 min 00 s, late by 8 min 00 s; left after it: about 1 min 18 s",
        "2 of 2: a@1.0, for 9 min 30 s; left: about 1 min 18 s",
    ]


def test_a_failed_package_is_named_once_and_the_next_one_is_not_accused() -> None:
    """Spack goes on, and repeats each error at its end."""
    lines: list[str] = []
    progress = BuildProgress([ONE, TWO], lines.append, {"a": 20.0, "b": 90.0}, 2, now=lambda: 0.0)
    progress.read(f"==> Installing a-1.0-{ONE.hash} [1/2]")
    progress.read("==> Error: ProcessError: Command exited with status 2:")
    progress.read(f"==> Installing b-1.0-{TWO.hash} [2/2]")
    progress.read(f"[+] /store/b-1.0-{TWO.hash}")
    progress.read(f"==> Error: a-1.0-{ONE.hash}: ProcessError: Command exited with status 2:")
    progress.read("==> Error: Installation request failed.")
    assert lines == [
        "1 of 2: a@1.0, for 0 s; left: about 1 min 50 s",
        "a@1.0 failed after 0 s",
        "2 of 2: b@1.0, for 0 s; left: about 1 min 30 s",
    ]


def test_a_build_does_not_see_the_variables_of_the_make_that_started_it(tmp_path: Path) -> None:
    """Automake has a variable PROGRAMS, too."""
    (tmp_path / "outer").write_text("all:\n\t$(COMMAND)\n")
    (tmp_path / "Makefile").write_text("PROGRAMS = own\nall:\n\t@echo $(PROGRAMS)\n")
    code = (
        "from pathlib import Path; from proofmark.software.build_process import run; "
        "from proofmark.common.processes import environment_of; "
        f"folder = Path('{tmp_path}'); "
        "run(['make', '-s'], environment_of(), folder / 'log', print, folder=folder)"
    )
    outer = ["make", "-f", f"{tmp_path}/outer", "PROGRAMS=spack"]
    command = f"COMMAND={shlex.join([sys.executable, '-c', code])}"
    subprocess.run([*outer, command], check=True, capture_output=True)
    assert (tmp_path / "log").read_text().split() == ["own"]


def test_a_spec_from_a_build_cache_is_counted_once_and_its_time_is_not_that_of_a_build() -> None:
    lines: list[str] = []
    cached = {ONE.hash, TWO.hash}
    progress = BuildProgress([ONE, TWO], lines.append, {}, 1, cached, now=lambda: 0.0)
    progress.begin()
    for name, spec in (("a", ONE), ("b", TWO)):
        progress.read(f"==> Extracting {name}-1.0-{spec.hash} from binary cache")
        progress.read(f"==> {name}: Successfully installed {name}-1.0-{spec.hash}")
        progress.read(f"[+] /store/{name}-1.0-{spec.hash}")
        progress.read(f"==> Installing {name}-1.0-{spec.hash} [1/2]")
    assert lines[0] == "2 packages to install, 2 of them from the build cache:"
    assert [line.partition(",")[0] for line in lines[3:]] == ["1 of 2: a@1.0", "2 of 2: b@1.0"]
    assert progress.built == {}


def test_a_time_that_nobody_measured_is_not_invented() -> None:
    lines: list[str] = []
    BuildProgress([ONE], lines.append, {}, 1).read(f"==> Installing a-1.0-{ONE.hash} [1/1]")
    assert lines == ["1 of 1: a@1.0, for 0 s; left: not known for 1 package"]


def test_more_cores_shorten_the_parallel_part_and_the_own_time_replaces_the_table() -> None:
    table = {"a": MeasuredTime(serial=10, parallel=80), "b": MeasuredTime(serial=5, parallel=0)}
    assert known_times({}, table, 1) == {"a": 90.0, "b": 5.0}
    assert known_times({"b": 7.0}, table, 8) == {"a": 20.0, "b": 7.0}
    whole = expected([ONE, TWO], {"a": 3.0})
    assert (whole.seconds, whole.unknown) == (3.0, (TWO,))
    assert expected([ONE, TWO], {"a": 3.0}, {TWO.hash}).unknown == ()


def test_the_table_has_the_benchmarks_and_only_packages_of_locks() -> None:
    locks = [read_lock(path) for path in sorted((ROOT / "environments").glob("*/*/spack.lock"))]
    built = {spec.name for lock in locks for spec in lock.specs.values() if not spec.external}
    local = read_lock(ROOT / "environments/local/debian12/spack.lock")
    assert measured_times().keys() <= built
    assert local.roots.keys() <= measured_times().keys()


@pytest.mark.parametrize("text", ["", "[1]", '{"a": "x"}', '{"a": null}', '{"a": NaN}'])
def test_a_damaged_file_of_times_is_not_used(tmp_path: Path, text: str) -> None:
    path = tmp_path / "times.json"
    path.write_text(text)
    assert read_times(path) == {}
    assert read_times(tmp_path / "none") == {}
    path.write_text('{"a": 2}')
    assert read_times(path) == {"a": 2.0}


def test_progress_is_due_also_while_the_builder_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proofmark.software.build_process.IDLE_S", 0.3)
    events: list[str] = []
    command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo x; sleep 0.2; done"]
    code = run(command, os.environ, tmp_path / "log", events.append, lambda: events.append("due"))
    assert code == 0
    assert events.count("x") == 8
    assert events.index("due") < max(at for at, event in enumerate(events) if event == "x")


class Ended(Exception):
    """Ends the wait of a test."""


def waits(path: Path, polls: int) -> list[str]:
    """Return the lines of an installation that waits `polls` times."""
    lines: list[str] = []
    left = [polls]

    def pause(seconds: float) -> None:
        assert seconds == POLL_S
        left[0] -= 1
        if left[0] < 0:
            raise Ended

    with pytest.raises(Ended), one_at_a_time(path, "knl", lines.append, pause):
        raise AssertionError("two installations at a time")
    return lines


@pytest.mark.fault("second-install-waits")
def test_a_second_installation_says_at_once_for_whom_it_waits_and_repeats_it(
    tmp_path: Path,
) -> None:
    path, lines = tmp_path / "lock", list[str]()
    with one_at_a_time(path, "local", lines.append):
        assert lines == []  # the first one does not wait
        at_once = waits(path, 0)
        repeated = waits(path, round(2 * IDLE_S / POLL_S))
    me = f"waiting for process {os.getpid()} on {os.uname().nodename}, which installs local"
    assert len(at_once) == 1
    assert at_once[0].startswith(f"{me} in the same folder since 20")
    assert [line.rpartition("; ")[2] for line in repeated] == [
        "waited for 0 s",
        "waited for 30 s",
        "waited for 1 min 00 s",
    ]
    with one_at_a_time(path, "local", lines.append):
        assert lines == []


def test_it_continues_when_the_other_one_has_ended(tmp_path: Path) -> None:
    path, lines = tmp_path / "lock", list[str]()
    other = path.open("w")
    fcntl.flock(other, fcntl.LOCK_EX)
    other.write("a text\x1b of nobody")
    other.flush()
    with one_at_a_time(path, "local", lines.append, lambda _: other.close()):
        holder = LockHolder.model_validate(json.loads(path.read_text()))
        assert (holder.process, holder.work) == (os.getpid(), "local")
    assert lines == [
        "waiting for another installation in the same folder; waited for 0 s",
        "the other installation has ended after 0 s",
    ]
    assert path.read_text() == ""
