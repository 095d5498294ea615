"""The programs of the kit itself are compiled, and os_noise names what disturbs a core."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.software.environments import (
    build,
    not_built,
    own_packages,
    own_prefix,
    system_needs,
    with_own,
)
from proofmark.software.installed import Installed, Provided

ENVIRONMENTS = ROOT / "environments"
BUSY = "while :; do :; done"
ROW = re.compile(r"^ *(?P<cpu>\d+) .*? (?P<available>\d+\.\d{4}) .* (?P<source>\S+)$", re.MULTILINE)
CPUS = sorted(os.sched_getaffinity(0))[:2]


@pytest.fixture(scope="module")
def os_noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = build(ENVIRONMENTS, "os-noise", tmp_path_factory.mktemp("own"))
    return Path(built.programs["os_noise"])


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Return a folder of environments with one small program."""
    folder = tmp_path / "environments/common/sources/small"
    folder.mkdir(parents=True)
    (folder / "small.c").write_text("int main(void) { return 0; }\n")
    return tmp_path / "environments"


def test_a_program_is_compiled_once(sources: Path, tmp_path: Path) -> None:
    assert own_packages(sources) == {"small"}
    assert not_built(sources, ["small"], tmp_path) == ["small"]
    first = build(sources, "small", tmp_path)
    program = Path(first.programs["small"])
    assert subprocess.run([program], check=False).returncode == 0
    made = program.stat().st_mtime_ns
    assert (build(sources, "small", tmp_path), program.stat().st_mtime_ns) == (first, made)
    assert not_built(sources, ["small"], tmp_path) == []
    assert [path.name for path in program.parents[1].iterdir()] == ["bin"]


def test_another_source_has_another_folder(sources: Path, tmp_path: Path) -> None:
    first = build(sources, "small", tmp_path)
    (sources / "common/sources/small/small.c").write_text("int main(void) { return 3; }\n")
    second = build(sources, "small", tmp_path)
    assert first.prefix != second.prefix
    assert subprocess.run([second.programs["small"]], check=False).returncode == 3


@pytest.mark.parametrize("package", ["large", "small"])
def test_what_cannot_be_compiled_is_refused(sources: Path, tmp_path: Path, package: str) -> None:
    (sources / "common/sources/small/small.c").write_text("int main(void) { return x; }\n")
    with pytest.raises(BadInput, match=r"0 C files|gcc ended with 1"):
        build(sources, package, tmp_path)
    assert not list(tmp_path.glob("small-*/bin/*"))


def test_the_own_programs_are_added_to_those_of_a_provider(sources: Path, tmp_path: Path) -> None:
    hpl = Provided(version="2.3", prefix="/apps/hpl", programs={"xhpl": "/apps/hpl/bin/xhpl"})
    installed = Installed(origin="preinstalled", packages={"hpl": hpl})
    both = with_own(installed, sources, ["small"], tmp_path)
    assert both.packages.keys() == {"hpl", "small"}
    assert both.packages["small"].prefix == f"{own_prefix(sources, 'small', tmp_path)}"
    assert with_own(installed, sources, [], tmp_path) == installed


def test_the_distribution_has_the_same_folder() -> None:
    (noise,) = system_needs(ENVIRONMENTS, "local", ["os-noise"], Path("/p"))
    prefix = own_prefix(ENVIRONMENTS, "os-noise", Path("/p"))
    assert (noise.own, noise.programs) == (True, (f"{prefix}/bin/os_noise",))


@contextmanager
def disturbers(folder: Path, cpu: int, number: int) -> Iterator[None]:
    """Run `number` programs named ``disturber`` that use all the time of a CPU."""
    program = Path(shutil.copy("/bin/sh", folder / "disturber"))
    words = ["taskset", "-c", f"{cpu}", f"{program}", "-c", BUSY]
    # A session of its own: the kernel gives each session the same share (sched_autogroup).
    started = [subprocess.Popen(words, start_new_session=True) for _ in range(number)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def rows(program: Path) -> dict[int, tuple[float, str]]:
    """Return the available part and the source of each core, in percent."""
    places = ",".join(f"{{{cpu}}}" for cpu in CPUS)
    bound = {"OMP_PLACES": places, "OMP_NUM_THREADS": f"{len(CPUS)}", "OMP_PROC_BIND": "close"}
    environment = {**os.environ, **bound}
    done = subprocess.run(
        [program, "1"], env=environment, check=True, capture_output=True, text=True
    )
    found = ROW.finditer(done.stdout)
    return {int(row["cpu"]): (float(row["available"]), row["source"]) for row in found}


@pytest.mark.fault("disturbed-core")
@pytest.mark.parametrize("number", [0, 16], ids=["control", "disturbed"])
def test_a_disturbed_core_and_its_source_are_named(
    os_noise: Path, tmp_path: Path, number: int
) -> None:
    """Other programs may use the machine too; sixteen more on one CPU take most of it."""
    with disturbers(tmp_path, CPUS[-1], number):
        measured, named = list[dict[int, tuple[float, str]]](), 0
        while len(measured) < (3 if number else 1) and named < 2:
            measured.append(rows(os_noise))
            named += measured[-1][CPUS[-1]][1] == "task:disturber"
    assert named == (2 if number else 0)
    for found in measured:
        assert list(found) == CPUS
        assert not number or found[CPUS[-1]][0] < 40
        others = [source for cpu, (_, source) in found.items() if cpu != CPUS[-1]]
        assert "task:disturber" not in others


@pytest.mark.parametrize("words", [["0"], ["x"], ["1", "2"]])
def test_wrong_arguments_are_refused(os_noise: Path, words: list[str]) -> None:
    done = subprocess.run([os_noise, *words], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "at most 86400" in done.stderr
