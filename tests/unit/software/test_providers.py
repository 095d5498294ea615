"""What origins know without a builder: locks, progress, programs, modules, easystacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.site.partition import Preinstalled
from proofmark.software.easybuild import read_plan
from proofmark.software.installed import find_programs, spellings
from proofmark.software.preinstalled import changes, preinstalled
from proofmark.software.spack.build_progress import BuildProgress
from proofmark.software.spack.lock import Lock, Spec, differences, read_lock, spack_system
from proofmark.software.spack.lock_check import read_target

LOCKS = sorted((ROOT / "environments").glob("*/*/spack.lock"))


def spec(name: str, run: tuple[str, ...] = (), build: tuple[str, ...] = ()) -> Spec:
    """Return a spec whose hash is its name."""
    return Spec(name, "1.0", name, "zen3", f"{name}@1.0", False, run, build)


def lock(*specs: Spec) -> Lock:
    return Lock(Path("spack.lock"), {each.hash: each for each in specs}, {"ior": "ior"})


IOR = lock(
    spec("ior", ("mpich",), ("automake",)),
    spec("mpich", ("zlib",), ("python",)),
    spec("zlib"),
    spec("automake", (), ("perl",)),
    spec("perl"),
    spec("python", ("zlib",)),
)


def names(specs: list[Spec]) -> list[str]:
    return [each.name for each in specs]


def test_dependencies_come_first_and_what_is_built_needs_its_tools() -> None:
    assert names(IOR.missing(["ior"], ())) == [
        "perl",
        "automake",
        "zlib",
        "python",
        "mpich",
        "ior",
    ]


def test_what_is_installed_or_cached_needs_no_tools() -> None:
    assert names(IOR.missing(["ior"], {"mpich", "zlib"})) == ["perl", "automake", "ior"]
    assert names(IOR.missing(["ior"], (), {"ior", "mpich", "zlib"})) == ["zlib", "mpich", "ior"]
    assert IOR.missing(["ior"], {"ior", "mpich", "zlib"}) == []


@given(st.sets(st.sampled_from(sorted(IOR.specs))))
def test_each_is_missing_once_and_after_what_it_needs(installed: set[str]) -> None:
    todo = names(IOR.missing(["ior"], installed))
    assert len(todo) == len(set(todo))
    assert not set(todo) & installed
    for position, name in enumerate(todo):
        needed = {*IOR.specs[name].run, *IOR.specs[name].build}
        assert needed <= {*todo[:position], *installed}


def test_package_that_the_lock_lacks_is_named_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="nothing on 'iro', did you mean 'ior'"):
        IOR.missing(["iro"], ())


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.parent.parent.name)
def test_committed_locks_have_the_packages_of_the_cases(path: Path) -> None:
    found = read_lock(path)
    cases = [yaml.safe_load(p.read_text()) for p in (ROOT / "benchmarks").glob("*.yml")]
    packages = {case.get("package") for case in cases} & {"hpl", "ior", "npb", "stream"}
    todo = found.missing(packages, ())
    assert {"compiler-wrapper", *packages} <= set(names(todo))
    assert not {"gcc", "glibc"} & set(names(todo))
    assert {each.target for each in todo} == {read_target(path.parents[1])}


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "debian12"),
        ('NAME="Red Hat"\nID="rhel"\nVERSION_ID="8.10"\n', "rhel8"),
        ('ID=ubuntu\nVERSION_ID="22.04"\n', "ubuntu22.04"),
    ],
)
def test_system_is_spelt_as_spack_does(text: str, system: str) -> None:
    assert spack_system(text) == system


def test_system_without_a_version_is_refused() -> None:
    with pytest.raises(BadInput, match="os-release"):
        spack_system("ID=arch\n")


def test_lock_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spack.lock"
    with pytest.raises(BadInput, match="No such file"):
        read_lock(path)
    for text in ("{", "{}", '{"roots": [{"hash": "x", "spec": "y"}], "concrete_specs": {}}'):
        path.write_text(text)
        with pytest.raises((BadInput, KeyError)):
            read_lock(path)


def test_what_a_site_has_of_its_own_is_told() -> None:
    ours = lock(spec("ior", ("mpich",)), spec("mpich"))
    own = Spec("mpich", "4.1", "other", "zen3", "mpich@4.1", True, (), ())
    site = lock(Spec("ior", "1.0", "rebuilt", "zen3", "ior@1.0", False, ("other",), ()), own)
    assert differences(ours, site) == ["mpich: 1.0 → 4.1 of the site", "other builds of ior"]
    assert differences(ours, ours) == []


def hashed(name: str) -> Spec:
    return Spec(name, "1.0", (name * 32)[:32], "zen3", f"{name}@1.0", False, (), ())


def test_progress_counts_names_and_knows_earlier_times() -> None:
    clock = [0.0]
    said: list[str] = []
    one, two = hashed("a"), hashed("b")
    follower = BuildProgress([one, two], said.append, {"b": 90.0}, now=lambda: clock[0])
    follower.read(f"==> Installing a-1.0-{one.hash} [1/5]")
    clock[0] = 30.0
    follower.tell()
    follower.read(f"==> a: Successfully installed a-1.0-{one.hash}")
    follower.read(f"[+] /store/a-1.0-{one.hash}")
    follower.read(f"==> Installing b-1.0-{two.hash} [2/5]")
    follower.read("==> Error: b does not compile")
    assert said == [
        "1 of 2: a@1.0, for 0 s; about 3 min 00 s left",
        "1 of 2: a@1.0, for 30 s; about 2 min 30 s left",
        "2 of 2: b@1.0, for 0 s; about 1 min 30 s left",
    ]
    assert follower.times == {"a": 30.0, "b": 90.0}
    assert follower.errors == ["==> Error: b does not compile"]


def test_what_comes_from_a_cache_is_counted_once() -> None:
    said: list[str] = []
    one, two = hashed("a"), hashed("b")
    follower = BuildProgress([one, two], said.append, {}, now=lambda: 0.0)
    for name, spec in (("a", one), ("b", two)):
        follower.read(f"==> Extracting {name}-1.0-{spec.hash} from binary cache")
        follower.read(f"==> {name}: Successfully installed {name}-1.0-{spec.hash}")
        follower.read(f"[+] /store/{name}-1.0-{spec.hash}")
        follower.read(f"==> Installing {name}-1.0-{spec.hash} [1/2]")
    assert [line.partition(",")[0] for line in said] == ["1 of 2: a@1.0", "2 of 2: b@1.0"]


def test_first_build_of_a_machine_promises_no_time() -> None:
    said: list[str] = []
    one = hashed("a")
    BuildProgress([one], said.append, {}).read(f"==> Installing a-1.0-{one.hash} [1/1]")
    assert said == ["1 of 1: a@1.0, for 0 s; time left: not known yet"]


def program(folder: Path, name: str, mode: int = 0o755) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
    (folder / name).chmod(mode)


def test_programs_are_found_deep_and_under_their_own_spelling(tmp_path: Path) -> None:
    program(tmp_path / "bin", "stream")
    program(tmp_path / "libexec/osu-micro-benchmarks/mpi/pt2pt", "osu_bw")
    found = find_programs(tmp_path, ["stream_c", "osu_bw"], {"stream_c": "stream"})
    assert found["stream_c"] == f"{tmp_path}/bin/stream"
    assert found["osu_bw"].endswith("pt2pt/osu_bw")


@pytest.mark.fault("program-missing")
def test_all_lacking_programs_are_named(tmp_path: Path) -> None:
    program(tmp_path / "bin", "xhpl", 0o644)
    program(tmp_path / "bin", "ior")
    with pytest.raises(BadInput) as raised:
        find_programs(tmp_path, ["xhpl", "iorr"], {})
    assert "no program 'xhpl'" in str(raised.value)
    assert "no program 'iorr', did you mean 'ior'?" in str(raised.value)


def test_modules_change_only_what_they_change() -> None:
    text = (
        "PATH=/bin\nHOME=/home/x\nSHLVL=1\n=== loaded\n"
        "PATH=/opt/mpi/bin:/bin\nHOME=/home/x\nSHLVL=2\nMPI_HOME=/opt/mpi\n"
        "BASH_FUNC_module%%=() { x\n=y\n}\n_=/usr/bin/env\n"
    )
    assert changes(text) == {"PATH": "/opt/mpi/bin:/bin", "MPI_HOME": "/opt/mpi"}
    assert changes("") == {}


def test_site_may_name_paths_and_its_environment_wins() -> None:
    named = Preinstalled(
        prefix="/opt/hpl",
        version="2.3",
        programs={"xhpl": "/apps/xhpl"},
        modules=["mpi"],
        environment={"MPI_HOME": "/mine"},
        target="mic_knl",
    )
    loaded = {"hpl": "=== loaded\nMPI_HOME=/opt/mpi\nB=1\n"}
    found = preinstalled({"hpl": named}, {"hpl": {"xhpl", "other"}}, loaded).packages["hpl"]
    assert found.programs == {"xhpl": "/apps/xhpl", "other": "/opt/hpl/bin/other"}
    assert found.environment == {"MPI_HOME": "/mine", "B": "1"}
    assert found.target == "mic_knl"
    with pytest.raises(BadInput, match=r"partition\.preinstalled: hp: .* did you mean 'hpl'"):
        preinstalled({"hpl": named}, {"hp": {"xhpl"}}, {})


def test_processor_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValidationError, match="did you mean 'mic_knl'"):
        Preinstalled(prefix="/opt/hpl", version="2.3", target="mic_knk")


def test_plan_of_easybuild_is_read() -> None:
    text = (
        "== found valid index\n"
        " * [x] /e/GCC-13.2.0.eb (module: GCC/13.2.0)\n"
        " * [ ] /e/OSU-Micro-Benchmarks-7.2.eb (module: OSU-Micro-Benchmarks/7.2-gompi-2023b)\n"
    )
    first, second = read_plan(text)
    assert (first.name, first.installed) == ("GCC", True)
    assert (second.name, second.version, second.installed) == (
        "OSU-Micro-Benchmarks",
        "7.2-gompi-2023b",
        False,
    )


def test_every_easystack_has_a_target_and_every_package_a_name() -> None:
    spelt = spellings(ROOT / "environments")
    stacks = sorted((ROOT / "environments").glob("*/easystack.yml"))
    assert {path.parent.name for path in stacks} - {"common"} == spelt.optarch.keys()
    listed: dict[str, Any] = yaml.safe_load(stacks[-1].read_text())
    for spelling in spelt.easybuild.values():
        assert any(each.startswith(f"{spelling.name}-") for each in listed["easyconfigs"])


def test_solver_is_pinned_alike_twice() -> None:
    pins = yaml.safe_load((ROOT / "environments/common/spack-pins.yaml").read_text())
    wanted = f"clingo=={pins['python']['clingo']} "
    assert wanted in (ROOT / "requirements/spack.txt").read_text()


def test_lock_files_are_json_that_we_read() -> None:
    """A control: what is read above is what stands in the file."""
    raw = json.loads(LOCKS[0].read_text())
    assert len(read_lock(LOCKS[0]).specs) == len(raw["concrete_specs"])
