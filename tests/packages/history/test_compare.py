"""Comparison of runs: like figures are compared, others are listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import write_software
from tests.fixtures.fleet import fleet_run
from tests.folders import ROOT
from tests.unit.judge.test_verdict import record

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.common.message import NOTHING, Message
from proofmark.judge.verdict import Result
from proofmark.packages.history.trend_command import (
    OF_FILES,
    Difference,
    compare,
    program_differences,
)
from proofmark.software.software import Package, Software, software_of
from proofmark.software.spack.lock_file import (
    COMPILERS,
    FLAGS,
    NETWORK,
    Lock,
    Spec,
    build_of,
    read_lock,
)

ENVIRONMENTS = ROOT / "environments"


def result(*values: float, verdict: str = "PASS", **changes: Any) -> Result:
    return Result(record(value=values[0], **changes), values, verdict, NOTHING, ())


def difference(first: Sequence[float], later: Sequence[float]) -> Difference:
    """Return the difference of the only figure of two runs with these values."""
    (comparison,) = compare({"old": [result(*first)], "new": [result(*later)]})
    (found,) = comparison.differences
    return found


class TestLikeFigures:
    def test_a_change_has_an_interval_with_its_confidence(self) -> None:
        slower = difference((100, 101, 99, 100), (80, 81, 79, 80))
        assert slower.change == pytest.approx(-0.2)
        assert slower.interval is not None
        assert slower.interval.low <= -0.2 <= slower.interval.high
        assert slower.interval.confidence == pytest.approx(1 - 2 / 70)
        assert slower.clear

    def test_a_change_of_three_repeats_is_not_clear(self) -> None:
        """No interval of three and three values has a confidence above 90 %."""
        slower = difference((100, 101, 99), (80, 81, 79))
        assert slower.interval is not None
        assert slower.interval.high < 0
        assert slower.interval.confidence == pytest.approx(0.9)
        assert not slower.clear

    def test_a_figure_whose_first_median_is_0_has_no_change(self) -> None:
        grown = difference((0, 0, 0), (1, 2, 3))
        assert (grown.later, grown.change, grown.interval) == (2, None, None)

    def test_equal_runs_have_no_clear_change(self) -> None:
        equal = difference((100, 101, 99), (99, 100, 101))
        assert (equal.change, equal.clear) == (0, False)

    @pytest.mark.parametrize(("least", "clear"), [(100.5, True), (100.0, False), (99.5, False)])
    def test_a_change_is_clear_if_its_interval_does_not_contain_0(
        self, least: float, clear: bool
    ) -> None:
        first, later = [99.0, 99.5, 99.8, 100.0], [least, 103.0, 104.0, 105.0]
        for change in (difference(first, later), difference(later, first)):
            assert change.interval is not None
            assert change.interval.confidence == pytest.approx(1 - 2 / 70)
            assert change.clear is clear
        up, down = difference(first, later).change, difference(later, first).change
        assert up is not None
        assert down is not None
        assert up > 0 > down

    def test_values_that_are_not_positive_have_no_interval(self) -> None:
        change = difference((100, 101, 102), (0, 202, 202))
        assert (change.change, change.interval, change.clear) == (1, None, False)

    def test_single_measurements_have_no_interval_and_are_never_clear(self) -> None:
        change = difference([100], [50])
        assert (change.change, change.interval, change.clear) == (-0.5, None, False)

    @pytest.mark.parametrize(
        "other",
        [
            {"case": "other"},
            {"metric": "other"},
            {"benchmark": "OTHER"},
            {"mode": "flat"},
            {"placement": "spread"},
            {"parameters": {"size": 2}},
            {"unit": "GB/s"},
        ],
    )
    def test_figures_that_differ_are_not_compared_but_listed(self, other: dict[str, Any]) -> None:
        (comparison,) = compare({"old": [result(100)], "new": [result(100, **other)]})
        assert comparison.differences == ()
        assert [len(keys) for keys in comparison.alone.values()] == [1, 1]

    def test_a_figure_of_other_programs_is_compared_and_marked(self) -> None:
        runs = {"old": [result(100)], "new": [result(90, environment_hash="other")]}
        (comparison,) = compare(runs)
        (found,) = comparison.differences
        assert found.other_programs and found.change == pytest.approx(-0.1)
        assert not any(comparison.alone.values())

    def test_a_figure_of_several_programs_has_no_partner(self) -> None:
        """The same programs are partners; which of the others belong together is not known."""
        two = [result(90, environment_hash="b"), result(80, environment_hash="c")]
        (comparison,) = compare({"old": [result(100, environment_hash="a")], "new": two})
        assert comparison.differences == ()
        two.append(result(100, environment_hash="a"))
        (comparison,) = compare({"old": [result(100, environment_hash="a")], "new": two})
        assert [each.other_programs for each in comparison.differences] == [False]
        assert [len(keys) for keys in comparison.alone.values()] == [0, 2]

    def test_nodes_are_compared_together_or_one_by_one(self) -> None:
        runs = {"old": [result(100, node="n1")], "new": [result(90, node="n2")]}
        assert len(compare(runs)[0].differences) == 1
        assert compare(runs, nodes=True)[0].differences == ()

    def test_invalid_figures_are_not_compared(self) -> None:
        runs = {"old": [result(100)], "new": [result(1, verdict="INVALID")]}
        assert compare(runs)[0].differences == ()

    def test_runs_of_different_origins_are_refused(self) -> None:
        emulated = result(100, origin="emulated")
        with pytest.raises(BadInput, match="runs of one origin"):
            compare({"old": [result(100)], "new": [emulated]})

    def test_each_later_run_is_compared_with_the_first(self) -> None:
        runs = {"a": [result(100)], "b": [result(110)], "c": [result(120)]}
        changes = [each.differences[0].change for each in compare(runs)]
        assert changes == pytest.approx([0.1, 0.2])

    @given(st.lists(st.floats(1, 1e6), min_size=2, max_size=9), st.floats(0.5, 2))
    def test_scaled_values_change_by_the_scale(self, values: list[float], times: float) -> None:
        scaled = difference(values, [value * times for value in values])
        assert scaled.change == pytest.approx(times - 1, abs=1e-9)


def test_the_command_prints_changes_and_figures_without_a_partner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {f"n{number}": 100.0 + number for number in range(4)}
    old = fleet_run(tmp_path / "old", rates)
    new = fleet_run(tmp_path / "new", {host: rate / 2 for host, rate in rates.items()})
    assert main(["trend", str(old.folder), str(new.folder)]) == 0
    printed = capsys.readouterr().out
    assert "-50.0 % *" in printed
    assert "97.1 %" in printed
    assert "0 metrics only in" in printed
    assert main(["trend", str(old.folder), "--nodes"]) == 3
    assert main(["trend", str(old.folder), str(old.folder)]) == 3


LIBRARY = {"name": "libm.so", "path": "/m", "sha256": "3" * 64, "package": None}
MADE: dict[str, Any] = {
    "origin": "spack",
    "version": "2.3",
    "spec": "fake@2.3 ^openmpi",
    "hash": "abc",
    "target": "zen3",
    "launcher": "plain",
    "built": {
        "variants": "+openmp",
        "flags": "cflags=-O2",
        "compiler": "gcc@12.2.0",
        "blas": "openblas@0.3.28 threads=openmp",
        "mpi": "openmpi@4.1.4 fabrics=none",
        "network": "ucx@1.20.1 +rc",
    },
    "run_environment": {"UCX_TLS": "rc"},
}
PROGRAM: dict[str, Any] = {
    "name": "fake",
    "path": "/fake",
    "sha256": "1" * 64,
    "package": None,
    "libraries": (LIBRARY,),
    "missing": (),
    "blas": {
        "family": "openblas",
        "version": "0.3.28",
        "library": "/b",
        "chosen": "Zen",
        "why_unknown": None,
        "tried": {},
        "forced": None,
        "built_for": None,
    },
    "mpi": {"family": "openmpi", "version": "4.1.4", "library": "/mpi", "mpirun": None},
    "absent": {},
}
BUILT = MADE["built"]
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "release": ({"version": "2.2"}, {}, ["trait-version"]),
    "variants": ({"built": {**BUILT, "variants": "~openmp"}}, {}, ["trait-variants"]),
    "compiler": ({"built": {**BUILT, "compiler": "gcc@13.1.0"}}, {}, ["trait-compiler"]),
    "flags": ({"built": {**BUILT, "flags": "cflags=-O3"}}, {}, ["trait-flags"]),
    "no flags": ({"built": {**BUILT, "flags": ""}}, {}, ["trait-flags"]),
    "variants of the MPI": ({"built": {**BUILT, "mpi": "mpich@4.2"}}, {}, ["trait-mpi-built"]),
    "variants of the BLAS": ({"built": {**BUILT, "blas": "blis@1"}}, {}, ["trait-blas-built"]),
    "network": ({"built": {**BUILT, "network": "ucx@1.20.1 ~rc"}}, {}, ["trait-network-built"]),
    "request": ({"spec": "fake@2.3 ^mpich"}, {}, ["trait-request"]),
    "target": ({"target": "zen2"}, {}, ["trait-target"]),
    "provider": ({"origin": "easybuild"}, {}, ["trait-provider"]),
    "hash of the build": ({"hash": "xyz"}, {}, ["trait-build"]),
    "variable": ({"run_environment": {"UCX_TLS": "tcp"}}, {}, ["trait-variable"]),
    "BLAS": ({}, {"blas": {**PROGRAM["blas"], "version": "0.3.20"}}, ["trait-blas"]),
    "kernel": ({}, {"blas": {**PROGRAM["blas"], "chosen": "Haswell"}}, ["trait-kernel"]),
    "MPI": ({}, {"mpi": {**PROGRAM["mpi"], "family": "mpich"}}, ["trait-mpi"]),
    "program": ({}, {"sha256": "2" * 64}, ["trait-program"]),
    "program of a distribution": (
        {},
        {"package": "fake 2.3-1", "sha256": "2" * 64},
        ["trait-program"],
    ),
    "library": ({}, {"libraries": ({**LIBRARY, "sha256": "4" * 64},)}, ["trait-library"]),
}


def software(package: dict[str, Any], program: dict[str, Any]) -> Software:
    made = {**MADE, **package, "programs": {"fake": {**PROGRAM, **program}}}
    return Software(packages={"fake": Package(**made)})


@pytest.mark.parametrize("change", CHANGES)
def test_each_difference_of_programs_is_named(change: str) -> None:
    package, program, codes = CHANGES[change]
    found = program_differences(software({}, {}), software(package, program))
    assert [each.what.code for each in found] == codes
    (one,) = found
    assert one.package == "fake" and one.first != one.later
    (back,) = program_differences(software(package, program), software({}, {}))
    assert (back.first, back.later) == (one.later, one.first)


def test_the_same_programs_have_no_difference() -> None:
    """Control of the differences."""
    assert program_differences(software({}, {}), software({}, {})) == ()


def test_all_differences_are_in_one_order() -> None:
    package: dict[str, Any] = {}
    program: dict[str, Any] = {}
    for of_package, of_program, _ in CHANGES.values():
        package |= of_package
        program |= of_program
    package["built"] = {name: f"{text} other" for name, text in BUILT.items()}
    program["blas"] = {**PROGRAM["blas"], "version": "1", "chosen": "Haswell"}
    found = program_differences(software({}, {}), software(package, program))
    assert [each.what.code for each in found] == [
        *("trait-version", "trait-variants", "trait-compiler", "trait-flags"),
        *("trait-blas-built", "trait-mpi-built", "trait-network-built", "trait-request"),
        *("trait-target", "trait-provider", "trait-variable", "trait-blas", "trait-kernel"),
        *("trait-mpi", "trait-program", "trait-build", "trait-library"),
    ]


def test_a_package_of_one_run_is_named() -> None:
    (found,) = program_differences(software({}, {}), Software(packages={}))
    assert (found.what.code, found.first, found.later) == ("trait-only", "2.3", "")


def test_the_command_names_programs_first_and_then_compares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {f"n{number}": 100.0 + number for number in range(4)}
    slower = {host: rate / 2 for host, rate in rates.items()}
    old = fleet_run(tmp_path / "old", rates, package={**MADE, "programs": {"fake": PROGRAM}})
    mpich = {**PROGRAM, "mpi": {**PROGRAM["mpi"], "family": "mpich", "version": "4.0.2"}}
    built = {**BUILT, "mpi": "mpich@4.0.2 device=ch4"}
    other = {**MADE, "built": built, "programs": {"fake": mpich}}
    new = fleet_run(tmp_path / "new", slower, package=other)
    assert main(["trend", str(old.folder), str(new.folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    changed = [line for line in lines if line.startswith("changed: ")]
    assert lines[: len(changed)] == changed and len(changed) == 2
    assert changed[0].endswith("openmpi@4.1.4 fabrics=none → mpich@4.0.2 device=ch4")
    assert changed[1].endswith("openmpi 4.1.4 → mpich 4.0.2")
    assert "1 of 1 figures were measured with other programs" in lines
    assert any("-50.0 % *" in line for line in lines)
    assert main(["trend", str(old.folder), str(new.folder), "--all"]) == 0
    assert "(other programs)" in capsys.readouterr().out


def of_lock(arch: str) -> Software:
    """Return the packages of a shipped lock, as a run of them states them."""
    return stated_by(read_lock(ENVIRONMENTS / arch / "debian12" / "spack.lock"))


def stated_by(lock: Lock) -> Software:
    packages = {}
    for name in lock.roots:
        root = lock.root(name)
        stated: dict[str, Any] = {"version": root.version, "spec": root.requested}
        stated |= {"hash": root.hash, "target": root.target, "built": build_of(lock, name)}
        packages[name] = Package(**{**MADE, "run_environment": {}, **stated, "programs": {}})
    return Software(packages=packages)


def test_two_locks_differ_in_what_their_specs_say() -> None:
    """One shipped lock has MPICH and the other Open MPI: the six packages have other hashes."""
    found = program_differences(of_lock("zen3"), of_lock("power9"))
    by_package: dict[str, dict[str, tuple[str, str]]] = {}
    for each in found:
        by_package.setdefault(each.package, {})[each.what.code] = (each.first, each.later)
    assert len(by_package) == 6
    for name, differing in by_package.items():
        assert {"trait-build", "trait-target"} <= differing.keys()
        if name == "stream":
            before, after = differing["trait-variants"]
            assert "+nontemporal" in before and "~nontemporal" in after
            assert "trait-mpi-built" not in differing
        else:
            before, after = differing["trait-mpi-built"]
            assert before.startswith("mpich@") and after.startswith("openmpi@")
            assert "fabrics=" in after and "trait-blas-built" not in differing
    assert program_differences(of_lock("zen3"), of_lock("zen3")) == ()


PROVIDERS = {"mpich": "trait-mpi-built", "openmpi": "trait-mpi-built"}
PROVIDERS |= {"openblas": "trait-blas-built", "blis": "trait-blas-built"}
PROVIDERS |= dict.fromkeys(NETWORK, "trait-network-built")
PROVIDERS |= dict.fromkeys(COMPILERS, "trait-compiler")


def edits(lock: Lock) -> Iterator[tuple[Spec, Spec, str]]:
    """Yield each spec that a program is made of, another one in its place, and what names it.

    Each edit changes one fact: the version, or one variant.
    """
    for spec in lock.specs.values():
        root = spec.hash in lock.roots.values()
        if not root and spec.name not in PROVIDERS:
            continue
        named = PROVIDERS.get(spec.name, "trait-version")
        yield spec, replace(spec, version=f"{spec.version}.1"), named
        if spec.name in COMPILERS:
            continue
        for name, value in spec.variants.items():
            other = not value if isinstance(value, bool) else ["another"]
            what = "trait-flags" if name in FLAGS else "trait-variants"
            changed = replace(spec, variants={**spec.variants, name: other})
            yield spec, changed, what if root else named


@pytest.mark.fault("difference-of-programs-not-named")
@pytest.mark.parametrize("arch", ["zen3", "power9", "neoverse_v1", "knl"])
def test_each_fact_of_a_lock_that_differs_is_named_before_any_hash(arch: str) -> None:
    """Another hash alone says nothing: version and each variant of program, MPI, BLAS, network."""
    lock = read_lock(ENVIRONMENTS / arch / "debian12" / "spack.lock")
    before = stated_by(lock)
    seen = Counter[str]()
    for spec, changed, what in edits(lock):
        later = stated_by(replace(lock, specs={**lock.specs, spec.hash: changed}))
        codes: dict[str, list[str]] = {}
        for each in program_differences(before, later):
            codes.setdefault(each.package, []).append(each.what.code)
        assert codes and all(what in each for each in codes.values()), (spec.label, changed)
        assert all({*OF_FILES}.isdisjoint(each[: each.index(what) + 1]) for each in codes.values())
        seen[what] += 1
    assert {"trait-version", "trait-variants", "trait-flags", "trait-compiler"} <= seen.keys()
    assert {"trait-mpi-built", "trait-blas-built", "trait-network-built"} <= seen.keys()


def test_a_difference_of_several_packages_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another MPI is in each package. A difference of one package keeps a line of its own."""
    runs = []
    for name, mpi, version in (("old", "openmpi@4.1.4", "1"), ("new", "mpich@4.0.2", "2")):
        package = {**MADE, "built": {**BUILT, "mpi": mpi}, "programs": {"fake": PROGRAM}}
        run = fleet_run(tmp_path / name, {"n0": 100.0}, package=package)
        second = Package(**{**package, "launcher": "plain", "version": version})
        packages = {**software_of(run).packages, "second": second}
        write_software(run, Software(packages=packages))
        runs.append(str(run.folder))
    assert main(["trend", *runs]) == 0
    lines = capsys.readouterr().out.splitlines()
    changed = [line for line in lines if line.startswith("changed: ")]
    assert len(changed) == 2
    assert changed[0].startswith("changed: fake, second: ")
    assert changed[0].endswith("openmpi@4.1.4 → mpich@4.0.2")
    assert changed[1].startswith("changed: second: ") and changed[1].endswith("1 → 2")


@pytest.mark.parametrize("nodes", [False, True])
def test_each_line_about_programs_is_printed_before_each_figure(
    nodes: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {f"n{number}": 100.0 + number for number in range(4)}
    old = fleet_run(tmp_path / "old", rates, package={**MADE, "programs": {"fake": PROGRAM}})
    built = {name: f"{text} other" for name, text in BUILT.items()}
    other = {**MADE, "version": "9", "built": built, "programs": {"fake": PROGRAM}}
    new = fleet_run(tmp_path / "new", rates, package=other)
    words = ["--all", *(["--nodes"] if nodes else [])]
    assert main(["trend", str(old.folder), str(new.folder), *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [number for number, line in enumerate(lines) if line.startswith("changed: fake: ")]
    figures = [number for number, line in enumerate(lines) if "(other programs)" in line]
    assert named == [*range(1 + len(BUILT))] and figures and min(figures) > max(named)


class TestNoise:
    def test_two_noisy_runs_say_that_they_show_nothing(self) -> None:
        before, after = (100.0, 130.0, 90.0, 120.0), (95.0, 125.0, 105.0, 99.0)
        (difference,) = compare({"a": [result(*before)], "b": [result(*after)]})[0].differences
        assert difference.noise.code == "noisy"
        assert difference.visible > 0.1
        calm = (100.0, 100.1, 99.9, 100.2)
        (difference,) = compare({"a": [result(*calm)], "b": [result(*calm)]})[0].differences
        assert not difference.noise
        assert difference.visible < 0.1

    def test_runs_with_too_few_repeats_would_see_nothing(self) -> None:
        few = (100.0, 101.0, 99.0)
        (difference,) = compare({"a": [result(*few)], "b": [result(*few)]})[0].differences
        assert difference.visible == 1
        assert difference.noise.fields["needed"] == Message("needs-repeats", repeats="4")

    def test_a_clear_change_is_not_too_noisy(self) -> None:
        before, after = (100.0, 130.0, 90.0, 120.0), (10.0, 12.0, 9.0, 11.0)
        (difference,) = compare({"a": [result(*before)], "b": [result(*after)]})[0].differences
        assert difference.clear
        assert not difference.noise
