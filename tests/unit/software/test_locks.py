"""Every committed lock is canonical, complete and fresh; shown without Spack."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.folders import ROOT

from proofmark.cli.spacklock import main
from proofmark.common.errors import BadInput, InputError
from proofmark.software.spack.lock_check import check, guard, make, read_environment
from proofmark.software.spack.lock_rules import (
    canonicalise,
    check_lock,
    forbidden_instructions,
    overlay_digest,
    root_names,
)

ARCHITECTURES = sorted(path.parent.name for path in ROOT.glob("environments/*/spack.yaml"))
LOCKS = sorted(ROOT.glob("environments/*/*/spack.lock"))
SUITE = {"hpl", "intel-mpi-benchmarks", "ior", "npb", "osu-micro-benchmarks", "stream"}


def compiler() -> dict[str, Any]:
    """An external gcc at /usr, as Spack writes it."""
    return spec(
        "gcc", "12.2.0", external={"path": "/usr", "extra_attributes": {"c": "/usr/bin/gcc"}}
    )


def spec(name: str, version: str, **more: Any) -> dict[str, Any]:
    """A concrete spec for the architecture of the tests."""
    arch = {"platform": "linux", "platform_os": "debian12", "target": {"name": "k10"}}
    kept = {"name": name, "version": version, "namespace": "builtin", "arch": arch}
    return {**kept, "parameters": {}, "package_hash": "p", **more}


def edge(name: str, spec_hash: str, *types: str) -> dict[str, Any]:
    """One dependency, as Spack writes it."""
    return {
        "name": name,
        "hash": spec_hash,
        "parameters": {"deptypes": list(types), "virtuals": []},
    }


def example() -> dict[str, Any]:
    """A small lock that is right in everything."""
    needs = [edge("gcc", "g", "build"), edge("compiler-wrapper", "w", "build")]
    return {
        "_meta": {"lockfile-version": 6},
        "spack": {"commit": "c0ffee"},
        "roots": [{"hash": "i", "spec": "ior@4.0.0"}, {"hash": "h", "spec": "hpl@2.3"}],
        "concrete_specs": {
            "i": spec("ior", "4.0.0", dependencies=needs),
            "h": spec("hpl", "2.3", namespace="proofmark", parameters={"flags": ["b", "a"]}),
            "w": spec("compiler-wrapper", "1.1.0"),
            "g": compiler(),
        },
    }


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """An overlay with one recipe, hpl."""
    recipe = tmp_path / "overlay/packages/hpl/package.py"
    recipe.parent.mkdir(parents=True)
    recipe.write_text('"""Why."""\n')
    return tmp_path / "overlay"


def check_text(text: str, digest: str, overlay: Path, **changes: Any) -> list[InputError]:
    """Check the text of a lock against the environment that `example` belongs to."""
    accepted: dict[str, Any] = {
        "roots": {"ior", "hpl"},
        "target": "k10",
        "os": "debian12",
        "pins": {"spack": {"commit": "c0ffee"}},
        **changes,
    }
    return check_lock("lock", text, digest, overlay=overlay, **accepted)


def mistakes(lock: dict[str, Any], overlay: Path, **changes: Any) -> list[str]:
    """Return the keys of what is wrong with a lock that is canonical and fresh."""
    found = check_text(canonicalise(lock), overlay_digest(overlay), overlay, **changes)
    return [mistake.key for mistake in found]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_environment_asks_for_the_six_packages(arch: str) -> None:
    assert read_environment(ROOT / "environments" / arch, "debian12").roots == SUITE


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_environment_is_locked_for_debian12(arch: str) -> None:
    assert (ROOT / "environments" / arch / "debian12/spack.lock").is_file()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: f"{path.parts[-3]}-{path.parts[-2]}")
def test_committed_lock_may_be_shipped(lock: Path) -> None:
    assert [str(m) for m in check(ROOT, lock.parts[-3], lock.parts[-2])] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: f"{path.parts[-3]}-{path.parts[-2]}")
def test_one_mpi_and_one_blas(lock: Path) -> None:
    specs = json.loads(lock.read_text())["concrete_specs"].values()
    providers: dict[str, set[str]] = {"mpi": set(), "blas": set()}
    for one in specs:
        for dependency in one.get("dependencies", []):
            for virtual in providers.keys() & set(dependency["parameters"]["virtuals"]):
                providers[virtual].add(dependency["name"])
    assert {virtual: len(names) for virtual, names in providers.items()} == {"mpi": 1, "blas": 1}


def test_a_right_lock_has_no_mistakes(overlay: Path) -> None:
    assert mistakes(example(), overlay) == []


@given(st.permutations(list(example()["concrete_specs"])), st.booleans())
def test_order_does_not_reach_the_canonical_text(order: list[str], reverse: bool) -> None:
    shuffled = example()
    shuffled["concrete_specs"] = {key: shuffled["concrete_specs"][key] for key in order}
    if reverse:
        shuffled["roots"].reverse()
        shuffled["concrete_specs"]["i"]["dependencies"].reverse()
    assert canonicalise(shuffled) == canonicalise(example())


def test_canonical_text_is_its_own_canonical_text() -> None:
    text = canonicalise(example())
    assert canonicalise(json.loads(text)) == text


def test_order_of_flags_is_kept() -> None:
    lock = example()
    lock["concrete_specs"]["h"]["parameters"] = {"cflags": ["-O3", "-O2"], "names": ["sp", "bt"]}
    kept = json.loads(canonicalise(lock))["concrete_specs"]["h"]["parameters"]
    assert kept == {"cflags": ["-O3", "-O2"], "names": ["bt", "sp"]}


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("ior.version", {"version": ""}),
        ("ior.namespace", {"namespace": "elsewhere"}),
        ("ior.package_hash", {"package_hash": None}),
        ("ior.parameters.dev_path", {"parameters": {"dev_path": "here"}}),
        ("ior.dependencies", {"dependencies": [edge("compiler-wrapper", "w", "build")]}),
        ("ior.external", {"external": {"path": "/usr"}}),
        ("ior.annotations", {"annotations": "/home/someone/ior"}),
        ("ior.parameters.ldflags", {"parameters": {"ldflags": ["-Wl,-rpath=/opt/site"]}}),
    ],
)
def test_what_a_shipped_lock_may_not_hold(overlay: Path, key: str, change: dict[str, Any]) -> None:
    lock = example()
    lock["concrete_specs"]["i"].update(change)
    assert mistakes(lock, overlay) == [key]


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("roots", {"roots": {"ior"}}),
        ("spack.commit", {"pins": {"spack": {"commit": "another"}}}),
    ],
)
def test_lock_of_another_environment(overlay: Path, key: str, change: dict[str, Any]) -> None:
    assert mistakes(example(), overlay, **change) == [key]


def test_every_package_of_another_target_or_system_is_named(overlay: Path) -> None:
    assert mistakes(example(), overlay, target="nehalem") == [
        f"{name}.arch.target" for name in ("gcc", "hpl", "ior", "compiler-wrapper")
    ]
    assert len(mistakes(example(), overlay, os="rhel8")) == len(example()["concrete_specs"])


def test_builtin_recipe_in_place_of_ours_is_caught(overlay: Path) -> None:
    lock = example()
    lock["concrete_specs"]["h"]["namespace"] = "builtin"
    assert mistakes(lock, overlay) == ["hpl.namespace"]


def test_edited_recipe_makes_a_lock_stale(overlay: Path) -> None:
    before = overlay_digest(overlay)
    (overlay / "packages/hpl/package.py").write_text('"""Why not."""\n')
    found = check_text(canonicalise(example()), before, overlay)
    assert [mistake.key for mistake in found] == ["overlay.sha256"]


def test_digest_sees_names_and_contents_but_no_caches(overlay: Path) -> None:
    before = overlay_digest(overlay)
    for cache in ("packages/hpl/__pycache__", "packages/.ruff_cache"):
        (overlay / cache).mkdir()
        (overlay / cache / "left").write_bytes(b"machine")
    assert overlay_digest(overlay) == before
    (overlay / "packages/hpl/package.py").rename(overlay / "packages/hpl/other.py")
    assert overlay_digest(overlay) != before


def test_digest_does_not_depend_on_where_the_recipes_lie(overlay: Path, tmp_path: Path) -> None:
    hidden = tmp_path / ".checkout/overlay"
    shutil.copytree(overlay, hidden)
    assert overlay_digest(hidden) == overlay_digest(overlay)


def test_lock_as_spack_writes_it_is_refused(overlay: Path) -> None:
    found = check_text(json.dumps(example()), overlay_digest(overlay), overlay)
    assert [mistake.found for mistake in found] == ["a lock that is not canonical"]


def test_roots_come_from_lists_matrices_and_plain_specs() -> None:
    definitions = {"suite": ["ior@4.0.0", "npb names=bt"], "arch": ["target=k10 os=debian12"]}
    specs = [{"matrix": [["$suite"], ["$arch"]]}, "stream@5.10 +openmp"]
    assert root_names({"specs": specs}, definitions) == {"ior", "npb", "stream"}


PHI = "  401: vrcp28pd %zmm0,%zmm1\n  402: vgatherpf0dpd (%rax,%ymm1,8){%k1}\n  403: vaddpd %zmm0"


@pytest.mark.parametrize(
    ("features", "found"),
    [
        (frozenset[str](), ["vgatherpf0dpd", "vrcp28pd"]),
        (frozenset({"avx512er"}), ["vgatherpf0dpd"]),
        (frozenset({"avx512er", "avx512pf"}), []),
    ],
)
def test_phi_instructions_stay_on_a_phi(features: frozenset[str], found: list[str]) -> None:
    assert forbidden_instructions(PHI, features) == found


def test_ordinary_reciprocals_are_no_phi_instructions() -> None:
    assert forbidden_instructions("vrcp14pd %zmm0 vgatherdpd vexpandpd", frozenset()) == []


def test_guard_passes_a_program_of_this_machine() -> None:
    assert guard("skylake_avx512", [Path("/bin/sh")]) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "knll", "debian12"],
        ["check", "knl", "beos5"],
        ["check", "knl"],
        ["guard", "--target", "knights", "/bin/sh"],
    ],
)
def test_bad_input_has_its_exit_code(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--root", str(ROOT), *arguments]) == 3
    assert capsys.readouterr().err


def test_lock_is_not_made_with_unpinned_recipes(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="HEAD"):
        make(ROOT, "local", "debian12", spack=ROOT, packages=tmp_path)


def test_pins_are_full_commits() -> None:
    pins = yaml.safe_load((ROOT / "environments/common/spack-pins.yaml").read_text())
    assert all(len(pins[key]["commit"]) == 40 for key in ("spack", "spack_packages"))
