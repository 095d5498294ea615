"""Every committed lock is canonical, complete and made from the current recipes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.common.errors import BadInput, InputError
from proofmark.software.environments import check_environment
from proofmark.software.installed import spellings
from proofmark.software.spack import installation
from proofmark.software.spack.bundle import copy_repository
from proofmark.software.spack.install import check_recipes
from proofmark.software.spack.installation import (
    OperatingSystem,
    SpackInstallation,
    not_pinned,
    operating_system,
)
from proofmark.software.spack.lock_check import (
    OVERLAY,
    LockedEnvironment,
    canonicalise,
    check,
    check_lock,
    external_mistakes,
    overlay_digest,
    read_environment,
    root_names,
)
from proofmark.software.spack.lock_make import make

ARCHITECTURES = sorted(path.parent.name for path in ROOT.glob("environments/*/spack.yaml"))
LOCKS = sorted(ROOT.glob("environments/*/*/spack.lock"))
SUITE = {"hpl", "intel-mpi-benchmarks", "ior", "npb", "osu-micro-benchmarks", "stream"}


INCLUDED = "include: [../common/suite.yaml]"
"""What the spack.yaml of a site has of the kit, in the tests of versions."""


def compiler() -> dict[str, Any]:
    """Return an external gcc at /usr, as Spack writes it."""
    return spec(
        "gcc", "12.2.0", external={"path": "/usr", "extra_attributes": {"c": "/usr/bin/gcc"}}
    )


def spec(name: str, version: str, **more: Any) -> dict[str, Any]:
    """Return a concrete spec for the architecture of the tests."""
    arch = {"platform": "linux", "platform_os": "debian12", "target": {"name": "k10"}}
    fields = {"name": name, "version": version, "namespace": "builtin", "arch": arch}
    return {**fields, "parameters": {}, "package_hash": "p", **more}


def edge(name: str, spec_hash: str, *types: str) -> dict[str, Any]:
    """Return one dependency, as Spack writes it."""
    return {
        "name": name,
        "hash": spec_hash,
        "parameters": {"deptypes": list(types), "virtuals": []},
    }


def example() -> dict[str, Any]:
    """Return a small lock without errors."""
    dependencies = [edge("gcc", "g", "build"), edge("compiler-wrapper", "w", "build")]
    return {
        "_meta": {"lockfile-version": 6},
        "spack": {"commit": "c0ffee"},
        "roots": [{"hash": "i", "spec": "ior@4.0.0"}, {"hash": "h", "spec": "hpl@2.3"}],
        "concrete_specs": {
            "i": spec("ior", "4.0.0", dependencies=dependencies),
            "h": spec("hpl", "2.3", namespace="proofmark", parameters={"flags": ["b", "a"]}),
            "w": spec("compiler-wrapper", "1.1.0"),
            "g": compiler(),
        },
    }


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """Return an overlay with one recipe, hpl."""
    recipe = tmp_path / "overlay/packages/hpl/package.py"
    recipe.parent.mkdir(parents=True)
    recipe.write_text('"""Why."""\n')
    return tmp_path / "overlay"


def check_text(text: str, digest: str, overlay: Path, **changes: Any) -> list[InputError]:
    """Return the errors of a lock's text for the environment of `example`."""
    environment: dict[str, Any] = {
        "system": "debian12",
        "roots": {"ior", "hpl"},
        "target": "k10",
        **changes,
    }
    pins = environment.pop("pins", {"spack": {"commit": "c0ffee"}})
    return check_lock("lock", text, digest, LockedEnvironment(**environment), overlay, pins)


def mistakes(lock: dict[str, Any], overlay: Path, **changes: Any) -> list[str]:
    """Return the keys of the errors of a lock that is canonical and not stale."""
    errors = check_text(canonicalise(lock), overlay_digest(overlay), overlay, **changes)
    return [error.key for error in errors]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_environment_requests_the_six_packages(arch: str) -> None:
    assert read_environment(ROOT / "environments" / arch, "debian12").roots == SUITE


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_environment_has_a_lock(arch: str) -> None:
    """The gcc of Debian 12 has neither zen4 nor zen5: their locks are of Debian 13."""
    system = "debian13" if arch in ("zen4", "zen5") else "debian12"
    assert (ROOT / "environments" / arch / system / "spack.lock").is_file()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("zen3x", ", did you mean 'zen3'?"),
        ("zen", "; the programs of 'local' run on it"),
        ("haswell", "; the programs of 'local' run on it"),
        ("ivybridge", "; the programs of 'tachyon2' run on it"),
        ("neoverse_n1", "; the programs of no environment run on it"),
    ],
)
def test_a_missing_environment_names_one_whose_programs_run(name: str, hint: str) -> None:
    """The nearest name of `zen` was zen5, whose programs end with an illegal instruction there."""
    with pytest.raises(BadInput) as refused:
        check_environment(ROOT / "environments", name)
    assert f"found {name!r}{hint}; accepted: a64fx" in str(refused.value)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: f"{path.parts[-3]}-{path.parts[-2]}")
def test_the_ucx_of_a_committed_lock_drives_infiniband(lock: Path) -> None:
    """Without these variants the MPI uses TCP, and no message says so."""
    specs = json.loads(lock.read_text())["concrete_specs"].values()
    variants = [spec["parameters"] for spec in specs if spec["name"] == "ucx"]
    wanted = ("verbs", "rc", "ud", "dc", "mlx5_dv")
    assert [name for found in variants for name in wanted if found[name] is not True] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: f"{path.parts[-3]}-{path.parts[-2]}")
def test_a_committed_lock_has_no_errors(lock: Path) -> None:
    assert [str(m) for m in check(ROOT, lock.parts[-3], lock.parts[-2])] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: f"{path.parts[-3]}-{path.parts[-2]}")
def test_a_committed_lock_has_one_mpi_and_one_blas(lock: Path) -> None:
    specs = json.loads(lock.read_text())["concrete_specs"].values()
    providers: dict[str, set[str]] = {"mpi": set(), "blas": set()}
    for one in specs:
        for dependency in one.get("dependencies", []):
            for virtual in providers.keys() & set(dependency["parameters"]["virtuals"]):
                providers[virtual].add(dependency["name"])
    assert {virtual: len(names) for virtual, names in providers.items()} == {"mpi": 1, "blas": 1}


def test_the_example_has_no_errors(overlay: Path) -> None:
    assert mistakes(example(), overlay) == []


@given(st.permutations(list(example()["concrete_specs"])), st.booleans())
def test_the_canonical_text_does_not_depend_on_order(order: list[str], reverse: bool) -> None:
    shuffled = example()
    shuffled["concrete_specs"] = {key: shuffled["concrete_specs"][key] for key in order}
    if reverse:
        shuffled["roots"].reverse()
        shuffled["concrete_specs"]["i"]["dependencies"].reverse()
    assert canonicalise(shuffled) == canonicalise(example())


def test_the_canonical_text_of_a_canonical_lock_is_the_same() -> None:
    text = canonicalise(example())
    assert canonicalise(json.loads(text)) == text


def test_the_order_of_flags_is_kept() -> None:
    lock = example()
    lock["concrete_specs"]["h"]["parameters"] = {"cflags": ["-O3", "-O2"], "names": ["sp", "bt"]}
    parameters = json.loads(canonicalise(lock))["concrete_specs"]["h"]["parameters"]
    assert parameters == {"cflags": ["-O3", "-O2"], "names": ["bt", "sp"]}


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
def test_a_wrong_value_in_a_lock_is_named(overlay: Path, key: str, change: dict[str, Any]) -> None:
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
def test_a_lock_of_another_environment_is_refused(
    overlay: Path, key: str, change: dict[str, Any]
) -> None:
    assert mistakes(example(), overlay, **change) == [key]


@pytest.mark.parametrize(
    ("wanted", "accepted"),
    [
        ("4.0.0", True),
        ("4.0", True),
        ("4", True),
        ("4.0.1", False),
        ("4.0.0-1", False),
        ("40", False),
    ],
)
def test_a_locked_version_is_the_one_that_packages_require(
    overlay: Path, wanted: str, accepted: bool
) -> None:
    found = mistakes(example(), overlay, versions={"ior": wanted, "of_no_lock": "1"})
    assert found == ([] if accepted else ["ior.version"])


def test_each_version_stands_in_one_place() -> None:
    """The files of the environments name none, and the common files name each package once."""
    files = sorted((ROOT / "environments").glob("*/spack.yaml"))
    lines = [line for path in files for line in path.read_text().splitlines()]
    assert [line for line in lines if "@" in line and not line.startswith("#")] == []
    names = []
    for path in (ROOT / "environments/common").glob("*.yaml"):
        packages = yaml.safe_load(path.read_text()).get("packages", {})
        names += [name for name, each in packages.items() if isinstance(each.get("require"), str)]
    assert sorted(names) == sorted({*names, *SUITE, "openblas", "mpich", "openmpi", "mvapich2"})


def test_spack_itself_has_compared_the_versions_of_a_site(tmp_path: Path) -> None:
    """By what was asked when the lock was made (`packages.json`)."""
    source = tmp_path / "locks/local/debian12/spack.yaml"
    source.parent.mkdir(parents=True)
    source.write_text(f"spack: {{{INCLUDED}, specs: [ior]}}")
    kit = read_environment(ROOT / "environments/local", "debian12").versions
    assert kit["ior"] == "4.0.0"
    assert read_environment(ROOT / "environments/local", "debian12", source).versions == {}


def test_an_external_of_another_version_than_required_is_refused(tmp_path: Path) -> None:
    """Such files were written before packages required versions; Spack only finds no solution."""
    source = tmp_path / "locks/local/debian12/spack.yaml"
    source.parent.mkdir(parents=True)
    external = "{externals: [{spec: openmpi@4.1.4 +cxx, prefix: /usr}]}"
    source.write_text(f"spack: {{packages: {{openmpi: {external}}}}}")
    (mistake,) = external_mistakes(source, {"openmpi": {"require": "@5.0.10"}})
    assert mistake.key == "packages.openmpi.require"
    assert (mistake.found, "of the external (openmpi@4.1.4)" in mistake.accepted) == (
        "@5.0.10",
        True,
    )
    assert [*external_mistakes(source, {"openmpi": {"require": ["@4.1.4", "+cxx"]}})] == []


@pytest.mark.parametrize(
    ("external", "required", "refused"),
    [
        ("2.3.7-1", "@2.3.7", False),
        ("=2.3.7%gcc@12.2.0", "@2.3.7", False),
        ("2.3.7+debug", "@2.3.7", False),
        ("2.3.7", "@2.3.7-1", True),
        ("2.3.70", "@2.3.7", True),
    ],
)
def test_the_version_of_an_external_begins_with_the_required_one(
    tmp_path: Path, external: str, required: str, refused: bool
) -> None:
    source = tmp_path / "spack.yaml"
    entry = f"{{externals: [{{spec: 'mvapich2@{external}', prefix: /opt}}]}}"
    source.write_text(f"spack: {{packages: {{mvapich2: {entry}}}}}")
    mistakes = [*external_mistakes(source, {"mvapich2": {"require": required}})]
    assert bool(mistakes) is refused


def test_every_package_for_another_target_or_system_is_named(overlay: Path) -> None:
    assert mistakes(example(), overlay, target="nehalem") == [
        f"{name}.arch.target" for name in ("gcc", "hpl", "ior", "compiler-wrapper")
    ]
    assert len(mistakes(example(), overlay, system="rhel8")) == len(example()["concrete_specs"])


def test_a_builtin_recipe_in_place_of_an_overlay_recipe_is_refused(overlay: Path) -> None:
    lock = example()
    lock["concrete_specs"]["h"]["namespace"] = "builtin"
    assert mistakes(lock, overlay) == ["hpl.namespace"]


def test_only_a_declared_prefix_of_a_site_is_accepted(overlay: Path) -> None:
    lock = example()
    lock["concrete_specs"]["m"] = spec("openmpi", "4.1.4", external={"path": "/opt/openmpi"})
    wrong = ["openmpi.external", "openmpi.external.path"]
    assert mistakes(lock, overlay) == wrong
    assert mistakes(lock, overlay, externals={"openmpi": ("/opt/openmpi",)}) == []
    assert mistakes(lock, overlay, externals={"openmpi": ("/opt/other",)}) == wrong


def test_an_edited_recipe_makes_a_lock_stale(overlay: Path) -> None:
    before = overlay_digest(overlay)
    (overlay / "packages/hpl/package.py").write_text('"""Why not."""\n')
    errors = check_text(canonicalise(example()), before, overlay)
    assert [error.key for error in errors] == ["overlay.sha256"]


def test_the_digest_depends_on_names_and_contents_but_not_on_caches(overlay: Path) -> None:
    before = overlay_digest(overlay)
    for cache in ("packages/hpl/__pycache__", "packages/.ruff_cache"):
        (overlay / cache).mkdir()
        (overlay / cache / "left").write_bytes(b"machine")
    assert overlay_digest(overlay) == before
    (overlay / "packages/hpl/package.py").rename(overlay / "packages/hpl/other.py")
    assert overlay_digest(overlay) != before


def test_the_digest_does_not_depend_on_the_path_of_the_recipes(
    overlay: Path, tmp_path: Path
) -> None:
    hidden = tmp_path / ".checkout/overlay"
    shutil.copytree(overlay, hidden)
    assert overlay_digest(hidden) == overlay_digest(overlay)


def test_a_lock_that_is_not_canonical_is_refused(overlay: Path) -> None:
    errors = check_text(json.dumps(example()), overlay_digest(overlay), overlay)
    assert [error.found for error in errors] == ["a lock that is not canonical"]


def test_roots_are_read_from_lists_matrices_and_specs() -> None:
    definitions = {"suite": ["ior@4.0.0", "npb names=bt"], "arch": ["target=k10 os=debian12"]}
    specs = [{"matrix": [["$suite"], ["$arch"]]}, "stream@5.10 +openmp"]
    assert root_names({"specs": specs}, definitions) == {"ior", "npb", "stream"}


def test_the_wrappers_of_an_mpi_are_stated_for_each_root_of_each_environment() -> None:
    folders = [path.parent for path in (ROOT / "environments").glob("*/spack.yaml")]
    wrappers = spellings(ROOT / "environments").mpi_wrappers
    stated = {"stream"}.union(*wrappers.values())  # STREAM needs no MPI
    assert folders and all(read_environment(each, "debian12").roots == stated for each in folders)


@pytest.mark.parametrize(("arch", "system"), [("knll", "debian12"), ("knl", "beos5")])
def test_a_lock_that_is_not_there_is_named(arch: str, system: str) -> None:
    with pytest.raises(BadInput, match=f"{arch}.*; accepted: "):
        check(ROOT, arch, system)


def test_no_lock_is_made_from_a_checkout_that_is_not_at_its_pin(tmp_path: Path) -> None:
    options = ["lock", "local", "--spack", str(ROOT), "--spack-packages", str(tmp_path)]
    before = (ROOT / "environments/local/debian12/spack.lock").read_bytes()
    assert main([*options, "--prefixes", str(tmp_path / "p")]) == 3
    assert (ROOT / "environments/local/debian12/spack.lock").read_bytes() == before


@pytest.fixture
def pinned(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """Return a checkout that ignores its configuration, as Spack does, and its pin."""
    git = ("git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x")
    (tmp_path / ".gitignore").write_text("/etc/spack/*\n!/etc/spack/defaults\n")
    (tmp_path / "package.py").write_text("version = 1\n")
    (tmp_path / "etc/spack/defaults").mkdir(parents=True)
    (tmp_path / "etc/spack/defaults/config.yaml").write_text("config: {}\n")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "x")):
        subprocess.run([*git, *words], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return tmp_path, {"commit": done.stdout.strip(), "tag": "v1"}


def test_a_checkout_as_it_was_committed_is_at_its_pin(pinned: tuple[Path, dict[str, str]]) -> None:
    assert not_pinned(*pinned) == ""


@pytest.mark.fault("spack-checkout-changed")
@pytest.mark.parametrize(
    "file",
    ["package.py", "other.py", "etc/spack/packages.yaml", "etc/spack/site/config.yaml"],
)
def test_a_changed_checkout_is_not_at_its_pin(
    pinned: tuple[Path, dict[str, str]], file: str
) -> None:
    checkout, pin = pinned
    (checkout / file).parent.mkdir(exist_ok=True)
    (checkout / file).write_text("version = 2\n")
    assert not_pinned(checkout, pin) == f"the commit with 1 changed files: {file}"


OF_THE_USER = (
    *("SPACK_ENV", "SPACK_ENV_VIEW", "SPACK_ROOT", "SPACK_DISABLE_LOCAL_CONFIG", "SPACK_PYTHON"),
    *("SPACK_USER_CONFIG_PATH", "SPACK_SYSTEM_CONFIG_PATH", "SPACK_USER_CACHE_PATH"),
    *("SPACK_GNUPGHOME", "SPACK_CONFIG_PATH", "SPACK_SKIP_MODULES", "SPACK_LD_LIBRARY_PATH"),
    *("SPACK_BACKTRACE", "SPACK_COLOR", "SPACK_STACKTRACE", "SPACK_TEST_SOLVER_CACHE"),
    *("SPACK_EXPERIMENTAL", "SPACK_INCLUDE_DIRS", "SPACK_CC", "SPACK_ENV_PATH", "SPACK_SHELL"),
)
"""Variables of Spack 1.1 that a shell, a container or a job of CI can have."""


@pytest.mark.fault("spack-variables-of-the-user")
@pytest.mark.parametrize("name", OF_THE_USER)
def test_no_variable_of_spack_of_the_user_reaches_spack(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in OF_THE_USER:
        monkeypatch.delenv(other, raising=False)
    installation = SpackInstallation(tmp_path, tmp_path, tmp_path)
    before = installation.environment()
    monkeypatch.setenv(name, "/of/the/user")
    assert installation.environment() == before
    assert "SPACK_USER_CONFIG_PATH" in before and "PATH" in before


def test_the_other_variables_of_the_user_reach_spack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies, modules and compilers of a site are not Spack's."""
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    installation = SpackInstallation(tmp_path, tmp_path, tmp_path)
    assert installation.environment()["https_proxy"] == "http://proxy.example:3128"


HASHES = {
    "label": "ior@4.0.0",
    "locked_spec": "s",
    "spec": "s",
    "locked_recipe": "of-lock",
    "recipe": "of-recipe",
}


@pytest.mark.fault("recipe-of-another-program")
@pytest.mark.parametrize("printed", ["[]", json.dumps([HASHES]), "", "a warning"])
def test_recipes_that_would_build_other_programs_are_refused(tmp_path: Path, printed: str) -> None:
    """Git can be told not to look at a file; the hash of the recipe shows the change."""
    program = tmp_path / "spack/bin/spack"
    program.parent.mkdir(parents=True)
    command = f"echo '{printed}'" if printed else "exit 1"
    program.write_text(f"#!/bin/sh\n{command}\n")
    program.chmod(0o755)
    installation = SpackInstallation(tmp_path, tmp_path / "spack", tmp_path)
    if printed == "[]":
        check_recipes(installation, tmp_path)
        return
    with pytest.raises(BadInput) as raised:
        check_recipes(installation, tmp_path)
    (mistake,) = raised.value.mistakes
    assert mistake.file == f"{tmp_path / 'spack.lock'}"
    if "of-recipe" in printed:
        assert (mistake.key, mistake.found) == ("ior@4.0.0: package_hash", "of-recipe")
        assert mistake.accepted == "of-lock, the recipe of the lock"
    else:
        assert mistake.key == "hashes"
        assert mistake.found.strip() == (printed or "exit code 1")


def test_a_hook_of_git_does_not_change_which_checkout_is_read(
    pinned: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, pin = pinned
    monkeypatch.setenv("GIT_DIR", str(ROOT / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent")
    assert not_pinned(checkout, pin) == ""


@pytest.mark.root
@pytest.mark.fault("checkout-of-another-user")
def test_a_checkout_of_another_user_is_read(pinned: tuple[Path, dict[str, str]]) -> None:
    checkout, pin = pinned
    for path in (checkout, checkout / ".git"):
        os.chown(path, 1234, 1234)
    plain = subprocess.run(["git", "-C", checkout, "status"], capture_output=True, check=False)
    assert b"dubious ownership" in plain.stderr  # the control
    assert not_pinned(checkout, pin) == ""
    copy_repository(checkout, "v1", checkout / "copy.git")
    assert (checkout / "copy.git/refs/tags/v1").is_file() or (checkout / "copy.git/packed-refs")


@pytest.mark.fault("checkout-of-another-user")
def test_the_words_of_git_are_in_the_refusal(pinned: tuple[Path, dict[str, str]]) -> None:
    """A list that git cannot make is no list without changes."""
    checkout, pin = pinned
    (checkout / ".git/index").write_bytes(b"damaged")
    assert not_pinned(checkout, pin).startswith("git: ")
    (checkout / ".git/HEAD").write_text("")
    assert "not a git repository" in not_pinned(checkout, pin)


def test_pins_are_full_commits() -> None:
    pins = yaml.safe_load((ROOT / "environments/common/spack-pins.yaml").read_text())
    assert all(len(pins[key]["commit"]) == 40 for key in ("spack", "spack_packages"))


FAKE_SPACK = """#!/bin/sh
# Spack with the commands of `make`: it names the system of the os-release that distro reads.
case "$*" in
*'arch -o') . "$UNIXCONFDIR/os-release" && echo "$ID$VERSION_ID" ;;
*concretize*)
    while [ "$1" != -e ]; do shift; done
    [ -e "$2/../common/compilers-rhel9.yaml" ] || exit 1
    [ "$(cat "$0.result")" = 0 ] || exit 1
    echo '{"roots": [], "concrete_specs": {}}' >"$2/spack.lock"
    ;;
*sources) echo '{}' ;;
*) exit 2 ;;
esac
"""


def lock_of_rhel9(
    folder: Path, monkeypatch: pytest.MonkeyPatch, running: OperatingSystem, solved: bool
) -> Path:
    """Make the lock of knl for rhel9 on the system `running`; return its folder."""
    for part in ("environments", "spack-repo"):
        shutil.copytree(ROOT / part, folder / "kit" / part)
    program = folder / "spack/bin/spack"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE_SPACK)
    program.chmod(0o755)
    program.with_name("spack.result").write_text("0" if solved else "1")
    monkeypatch.setattr(installation, "this_system", lambda: running)
    spack = SpackInstallation(folder, folder / "spack", folder / "packages")
    knl = folder / "kit/environments/knl"
    make(folder / "kit", knl / "spack.yaml", knl / "rhel9", spack)
    return knl / "rhel9"


def test_a_lock_that_is_made_on_a_rebuild_has_the_name_of_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rocky = 'ID="rocky"\nID_LIKE="rhel centos"\nVERSION_ID="9.6"\nPLATFORM_ID="platform:el9"\n'
    made = lock_of_rhel9(tmp_path, monkeypatch, operating_system(rocky), solved=True)
    assert json.loads((made / "spack.lock").read_text())["roots"] == []
    assert (made / "overlay.sha256").read_text().strip() == overlay_digest(ROOT / OVERLAY)
    assert (made / "sources.json").read_text() == "{}\n"


def test_no_lock_is_made_on_another_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of both: the test above."""
    with pytest.raises(BadInput, match="OS: found rhel9; accepted: rhel8, because Spack runs on"):
        lock_of_rhel9(tmp_path, monkeypatch, OperatingSystem("rhel", "8"), solved=True)


def test_an_environment_without_a_solution_is_an_error_of_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match=r"knl: spack concretize: found no solution \(exit code 1"):
        lock_of_rhel9(tmp_path, monkeypatch, OperatingSystem("rhel", "9"), solved=False)
    assert not (tmp_path / "kit/environments/knl/rhel9").exists()
