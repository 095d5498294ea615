"""`proofmark lock -i SITE`: finds the parts of a site, writes its spack.yaml and its lock."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from tests.folders import ROOT

from proofmark.cli import install as software
from proofmark.cli import lock
from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.software.installed import ProvisionRequest
from proofmark.software.spack import installation as of_spack
from proofmark.software.spack import site_choice
from proofmark.software.spack.install import choose_lock
from proofmark.software.spack.installation import OperatingSystem, SpackInstallation
from proofmark.software.spack.lock_check import OVERLAY, check, overlay_digest

FAKE_SPACK = f"""#!/bin/sh
# An emulated Spack. It has the commands that `proofmark lock` calls. Its lock has stream only.
case "$*" in
*'arch -o') echo debian12 ;;
*'external find'*)
    echo "$PATH" >"$0.path"
    cp "$0.packages" "$SPACK_USER_CONFIG_PATH/packages.yaml"
    ;;
*concretize*)
    echo "$*" >>"$0.calls"
    while [ "$1" != -e ]; do
        [ "$1" = --config-scope ] && cp "$2/packages.yaml" "$0.scope"
        shift
    done
    [ ! -e "$0.fails" ] || [ "${{2##*/}}" != "$(cat "$0.fails")" ] || exit 1
    cp "$2/spack.yaml" "$0.used"
    cp "$0.lock" "$2/spack.lock"
    ;;
*'config get packages') exec '{sys.executable}' '{ROOT}/tests/emulators/spack_config.py' "$@" ;;
*' unmet '*) echo '[]' ;;
*hashes) cat "$0.hashes" ;;
*' python '*) cat "$0.sources" ;;
*) exit 2 ;;
esac
"""
PACKAGES = """
packages:
  automake: {externals: [{spec: automake@1.16.5, prefix: /usr}]}
  gcc: {externals: [{spec: "gcc@12.2.0 languages:='c,c++,fortran'", prefix: /usr}]}
"""


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of a system with Debian's MPICH, for the command with an emulated Spack."""
    program = tmp_path / "spack/bin/spack"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE_SPACK)
    program.chmod(0o755)
    program.with_name("spack.packages").write_text(PACKAGES)
    kit_lock = json.loads((ROOT / "environments/local/debian12/spack.lock").read_text())
    kit_lock["roots"] = [root for root in kit_lock["roots"] if root["spec"].startswith("stream")]
    program.with_name("spack.lock").write_text(json.dumps(kit_lock))
    sources = ROOT / "environments/local/debian12/sources.json"
    program.with_name("spack.sources").write_bytes(sources.read_bytes())
    root = tmp_path / "root"
    for name, text in (
        ("usr/bin/mpicc.mpich", ""),
        ("usr/include/x86_64-linux-gnu/mpich/mpi.h", '#define MPICH_VERSION "4.0.2"\n'),
        *((f"usr/bin/{wrapper}", "") for wrapper in ("mpicxx", "mpif77", "mpif90")),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "usr/bin/mpicc").symlink_to("mpicc.mpich")
    installation = SpackInstallation(tmp_path / "own", tmp_path / "spack", tmp_path / "packages")
    debian = OperatingSystem("debian", "12")
    monkeypatch.setattr(lock, "ROOT", root)
    monkeypatch.setattr(site_choice, "ARCHIVE", root / "no-autoconf-archive")
    monkeypatch.setattr(lock, "ready", lambda options, kit: installation)
    monkeypatch.setattr(of_spack, "this_system", lambda: debian)
    monkeypatch.setattr(software, "this_system", lambda: debian)
    return root


def test_the_parts_of_the_site_are_in_its_spack_yaml_and_the_kit_stays(
    system: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The lock lacks packages, which is an error at the end: its files are written before."""
    toolset = system / "opt/rh/gcc-toolset-14/root/usr/bin"
    toolset.mkdir(parents=True)
    site = tmp_path / "mysite"
    site.mkdir()
    before = (ROOT / "environments/local/debian12/spack.lock").read_bytes()
    assert main(["lock", "local", "-i", str(site), "--find"]) == 3
    searched = (tmp_path / "spack/bin/spack.path").read_text().strip().split(":")
    assert searched[-1] == str(toolset)
    printed = capfd.readouterr().err
    assert "mpich@4.0.2: /usr/bin/mpicc.mpich" in printed
    assert "chosen BLAS: built by Spack" in printed
    assert "built from its source: openblas threads=none: no library that was found" in printed
    (lacking,) = [line for line in printed.splitlines() if line.startswith("not found, and built")]
    assert "m4" in lacking and "automake" not in lacking
    assert "packages to build:" in printed and "stream@5.10" in printed
    assert "roots: found stream; accepted: hpl, " in printed
    folder = site / "locks/local/debian12"
    assert {path.name for path in folder.iterdir()} == {
        *("spack.yaml", "spack.lock", "sources.json", "overlay.sha256", "packages.json")
    }
    assert (folder / "overlay.sha256").read_text().strip() == overlay_digest(ROOT / OVERLAY)
    assert (tmp_path / "spack/bin/spack.used").read_text() == (folder / "spack.yaml").read_text()
    packages = yaml.safe_load((folder / "spack.yaml").read_text())["spack"]["packages"]
    assert packages["mpich"]["externals"] == [{"spec": "mpich@4.0.2", "prefix": "/usr"}]
    assert packages["mpich"]["require"] == "@4.0.2", "it replaces the version of the kit"
    assert packages["automake"]["buildable"] is False
    assert "gcc" not in packages, "it is the gcc of the kit"
    assert (ROOT / "environments/local/debian12/spack.lock").read_bytes() == before


def test_a_lock_that_is_current_stays_and_one_of_other_parts_does_not(
    system: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`make acceptance PROGRAMS=spack` asks each time: MPI=kit after a first run counts."""
    whole = ROOT / "environments/local/debian12/spack.lock"
    mpich = json.loads(whole.read_text())
    of_system = {"mpich": "4.0.2", "automake": "1.16.5"}
    for spec in mpich["concrete_specs"].values():
        if spec["name"] in of_system:
            spec["version"] = of_system[spec["name"]]
            spec["external"] = {"path": "/usr", "module": None, "extra_attributes": {}}
    (tmp_path / "spack/bin/spack.lock").write_text(json.dumps(mpich))
    sources = tmp_path / "spack/bin/spack.sources"
    of_kit = json.loads(sources.read_text())
    built = {
        label: files for label, files in of_kit.items() if label.partition("@")[0] not in of_system
    }
    sources.write_text(json.dumps(built))
    site = tmp_path / "mysite"
    shutil.copytree(ROOT / "inventory/local", site)
    folder = site / "locks/local/debian12"
    find = ["lock", "local", "-i", str(site), "--find"]
    assert main(find) == 0
    made = (folder / "spack.lock").stat().st_mtime_ns
    assert main(find) == 0
    assert "stays: it was made from these parts" in capfd.readouterr().err
    assert (folder / "spack.lock").stat().st_mtime_ns == made
    # Now Spack builds the MPI.
    for spec in mpich["concrete_specs"].values():
        if spec["name"] == "mpich":
            spec["version"] = "4.3.2"
            del spec["external"]
    (tmp_path / "spack/bin/spack.lock").write_text(json.dumps(mpich))
    sources.write_text(json.dumps({**built, "mpich@4.3.2": of_kit["mpich@4.3.2"]}))
    assert main([*find, "--mpi", "kit"]) == 0
    kit_made = (folder / "spack.lock").stat().st_mtime_ns
    assert kit_made != made
    assert "mpi" not in yaml.safe_load((folder / "spack.yaml").read_text())["spack"][
        "packages"
    ] or ("chosen MPI: built by Spack" in capfd.readouterr().err)
    for stale in ("overlay.sha256", "spack.lock"):
        (folder / stale).write_text("0" * 64)
        assert main([*find, "--mpi", "kit"]) == 0
        assert (folder / stale).read_text() != "0" * 64
    program = tmp_path / "spack/bin/spack"
    program.write_text(program.read_text().replace("*concretize*)", "*concretize*) exit 1"))
    assert main(find) == 3, "a stopped solver"
    assert not (folder / "spack.lock").exists(), "the lock of the former parts does not stay"


def test_a_fact_of_the_site_is_a_variant_of_its_programs(system: Path, tmp_path: Path) -> None:
    """The caches of a processor may ask for a larger array: one line says so for both."""
    site = tmp_path / "mysite"
    shutil.copytree(ROOT / "inventory/local", site)
    settings = site / "group_vars/local/partition.yml"
    text = settings.read_text()
    settings.write_text(text.replace("stream_array_size: 64000000", "stream_array_size: 90000000"))
    assert settings.read_text() != text
    main(["lock", "local", "-i", str(site), "--find"])
    made = yaml.safe_load((site / "locks/local/debian12/spack.yaml").read_text())["spack"]
    kit = yaml.safe_load((ROOT / "environments/local/spack.yaml").read_text())["spack"]
    assert f"{made['definitions']}" == f"{kit['definitions']}".replace("=64000000", "=90000000")
    assert f"{made['definitions']}" != f"{kit['definitions']}"


@pytest.mark.parametrize(
    ("wrapper", "needs"),
    [
        ("mpicxx", "intel-mpi-benchmarks, osu-micro-benchmarks"),
        ("mpif77", "npb"),
        ("mpif90", "npb"),
    ],
)
def test_an_mpi_without_a_wrapper_that_a_package_needs_is_refused_before_the_solver(
    system: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], wrapper: str, needs: str
) -> None:
    """Only the build would say so, after hours."""
    site = tmp_path / "mysite"
    site.mkdir()
    words = ["lock", "local", "-i", str(site), "--find", "--mpi", "mpich"]
    (system / "usr/bin" / wrapper).unlink()
    assert main(words) == 3
    said = capfd.readouterr().err
    assert f"--mpi: found mpich@4.0.2 (/usr/bin): no {wrapper}; accepted: " in said
    assert f"an MPI with it, for the build of {needs}" in said
    assert list(site.rglob("*")) == []
    assert not (tmp_path / "spack/bin/spack.calls").exists(), "no solver has run"
    (system / "usr/bin" / wrapper).write_text("")
    main(words)
    assert "--mpi: " not in capfd.readouterr().err, "the control"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--find"], "-i: found nothing; accepted: the folder of a site"),
        (["-i", "missing"], "-i: found no inventory missing"),
        (["-i", "{site}"], "spack.yaml: found no such file"),
        (["-i", "{site}", "--find", "--mpi", "openmpi"], "--mpi: found openmpi; accepted: mpich"),
        (["-i", "{site}", "--find", "--module", "none/1"], "--module: none/1: found"),
    ],
)
def test_a_wrong_request_writes_nothing(
    system: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    options: list[str],
    complaint: str,
) -> None:
    site = tmp_path / "mysite"
    site.mkdir()
    words = [word.format(site=site) for word in options]
    assert main(["lock", "local", *words]) == 3
    assert complaint in capfd.readouterr().err
    assert list(site.rglob("*")) == []


def test_a_spack_yaml_without_its_lock_is_not_replaced_by_the_lock_of_the_kit(
    tmp_path: Path,
) -> None:
    """The solver was interrupted. With the kit's lock Spack would build all the site has."""
    request = ProvisionRequest(
        kit=ROOT, arch="local", programs={}, prefixes=tmp_path, site_locks=tmp_path / "locks"
    )
    assert choose_lock(request, "debian12").of_site is False
    (tmp_path / "locks/local/debian12").mkdir(parents=True)
    (tmp_path / "locks/local/debian12/spack.yaml").write_text("spack: {}\n")
    with pytest.raises(
        BadInput, match=r"LOCK_NOT_MADE: found .*; run: proofmark lock local -i \S+$"
    ):
        choose_lock(request, "debian12")


@pytest.fixture
def kit(system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the kit with locks of local and knl alone."""
    folder = tmp_path / "kit"
    for part in ("environments", "spack-repo"):
        shutil.copytree(ROOT / part, folder / part)
    for path in folder.glob("environments/*/*/spack.lock"):
        if path.parts[-3] not in ("local", "knl"):
            path.unlink()
    monkeypatch.setattr(lock, "kit_folder", lambda: folder)
    return folder


def test_all_makes_each_lock_of_the_system_also_after_a_failure(
    kit: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first lock fails: the second is made, its changes are said, and the exit code is 3."""
    (tmp_path / "spack/bin/spack.fails").write_text("knl")
    before = (kit / "environments/knl/debian12/spack.lock").read_bytes()
    assert main(["lock", "all"]) == 3
    printed = capfd.readouterr()
    assert printed.out == f"{kit}/environments/local/debian12/spack.lock\n"
    assert "environments/knl: spack concretize: found no solution" in printed.err
    assert "every package is as before" in printed.err
    assert (kit / "environments/knl/debian12/spack.lock").read_bytes() == before
    (tmp_path / "spack/bin/spack.fails").unlink()
    assert main(["lock", "all"]) == 0
    changed = capfd.readouterr().err
    assert "blis: 2.0 before, none now\n" in changed
    assert "openblas: none before, 0.3.28 now\n" in changed
    assert "the same version, built again: " in changed


def test_all_of_a_site_without_a_lock_is_refused(
    system: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mysite").mkdir()
    assert main(["lock", "all", "-i", str(tmp_path / "mysite")]) == 3
    assert "all: found no lock of debian12" in capfd.readouterr().err


def _recipes(tmp_path: Path, *names: str) -> None:
    for name in names:
        (tmp_path / "packages/repos/spack_repo/builtin/packages" / name).mkdir(parents=True)


def test_what_a_site_asks_is_a_scope_of_spack_above_all_others(
    system: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line in one file is for all environments of the site, also after --find."""
    site = tmp_path / "mysite"
    (site / "locks").mkdir(parents=True)
    _recipes(tmp_path, "openblas")
    choice = 'packages: {openblas: {require: "@0.3.99"}}\n'
    (site / "locks/packages.yaml").write_text(choice)
    assert main(["lock", "local", "-i", str(site), "--find"]) == 3, "the lock has only stream"
    calls = (tmp_path / "spack/bin/spack.calls").read_text()
    assert calls.index("--config-scope ") < calls.index(" -e ")
    assert (tmp_path / "spack/bin/spack.scope").read_text() == choice
    made = json.loads((site / "locks/local/debian12/packages.json").read_text())
    assert made["packages"]["openblas"]["require"] == "@0.3.99"
    assert made["packages"]["ior"]["require"] == "@4.0.0", "what the kit asks"
    assert "openblas.version" not in capfd.readouterr().err, "Spack has solved it"


@pytest.mark.parametrize(
    "asked",
    [
        '{ior: {require: "+lustre"}}',
        '{ior: {require: ["@4.0.0", "+lustre"]}}',
        '{ior: {require: "@3.3:4.0"}}',
        '{ior: {prefer: ["+lustre"]}}',
        "{ior: {variants: +lustre}}",
        '{ior: {require: [{any_of: ["@4.0.0", "@3.3.0"]}]}}',
    ],
)
def test_a_lock_is_made_again_for_whatever_the_site_asks(
    system: Path, tmp_path: Path, asked: str
) -> None:
    """Each form counts: a requirement, a list, a range, a preference."""
    _recipes(tmp_path, "ior")
    folder = tmp_path / "mysite/locks/local/debian12"
    folder.mkdir(parents=True)
    find = ["lock", "local", "-i", str(tmp_path / "mysite"), "--find"]
    assert main(find) == 3, "the lock has only stream"
    calls = tmp_path / "spack/bin/spack.calls"
    solved = len(calls.read_text().splitlines())
    choice = folder.parents[1] / "packages.yaml"
    choice.write_text(f"packages: {asked}\n")
    assert [each.key for each in check(ROOT, "local", "debian12", folder.parents[1])][-1] == (
        "inputs"
    )
    assert main(find) == 3
    assert len(calls.read_text().splitlines()) == solved + 1
    keys = [each.key for each in check(ROOT, "local", "debian12", folder.parents[1])]
    assert "inputs" not in keys, "the lock is of what the site asks"
    choice.write_text(f"# why\n{choice.read_text()}")
    assert keys == [each.key for each in check(ROOT, "local", "debian12", folder.parents[1])]
    (folder / "packages.json").unlink()
    with pytest.raises(BadInput, match=r"packages\.json: found no such file"):
        check(ROOT, "local", "debian12", folder.parents[1])


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ("{iro: {require: +lustre}}", "packages.yaml: iro: found no recipe has this name"),
        (
            "{ior: {requires: x}}",
            "spack.yaml: packages: found ==> Error: packages.yaml:1: 'requires'",
        ),
        (
            '{"all:": {prefer: [+x]}}',
            "packages.all.require: found nothing",
        ),
        (
            '{}\n"packages:": {ior: {prefer: [+x]}}',
            "packages.all.require: found nothing",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused_before_the_solver(
    system: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    asked: str,
    complaint: str,
) -> None:
    _recipes(tmp_path, "ior")
    site = tmp_path / "mysite"
    (site / "locks").mkdir(parents=True)
    (site / "locks/packages.yaml").write_text(f"packages: {asked}\n")
    program = tmp_path / "spack/bin/spack"
    if "requires" in asked:
        answer = "echo \"==> Error: packages.yaml:1: 'requires' was unexpected\" >&2; exit 1"
        refusing = f"'config get packages') {answer}; exit ;;\n*no)"
        program.write_text(program.read_text().replace("'config get packages')", refusing))
    assert main(["lock", "local", "-i", str(site), "--find"]) == 3
    assert complaint in capfd.readouterr().err
    assert not (tmp_path / "spack/bin/spack.calls").exists(), "nothing was solved"


def test_a_wish_that_the_solver_did_not_follow_is_refused_and_nothing_is_written(
    system: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _recipes(tmp_path, "ior")
    choice = tmp_path / "mysite/locks/packages.yaml"
    choice.parent.mkdir(parents=True)
    choice.write_text('packages: {ior: {prefer: ["@3.3.0"]}}\n')
    program = tmp_path / "spack/bin/spack"
    unmet = json.dumps([{"key": "ior.prefer", "found": "ior@4.0.0", "asked": "@3.3.0"}])
    program.write_text(program.read_text().replace("echo '[]'", f"echo '{unmet}'"))
    assert main(["lock", "local", "-i", str(tmp_path / "mysite"), "--find"]) == 3
    mistake = "packages.ior.prefer: found @3.3.0, but the solver gives ior@4.0.0; accepted: "
    assert f"{choice}: {mistake}" in capfd.readouterr().err
    folder = choice.parent / "local/debian12"
    assert [path.name for path in folder.iterdir()] == ["spack.yaml"]


def test_an_error_of_spack_names_the_files_of_the_site(
    system: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Spack reads copies in a temporary folder."""
    choice = tmp_path / "mysite/locks/packages.yaml"
    choice.parent.mkdir(parents=True)
    choice.write_text("packages: {}\n")
    program = tmp_path / "spack/bin/spack"
    fails = """echo "a warning" >&2
    while [ "$1" != --config-scope ]; do shift; done
    echo "==> Error: $2/packages.yaml:1: x was unexpected" >&2; exit 1"""
    emulated = program.read_text().replace("get packages') exec", f"get packages') {fails}; exec")
    program.write_text(emulated)
    assert main(["lock", "local", "-i", str(tmp_path / "mysite"), "--find"]) == 3
    source = choice.parent / "local/debian12/spack.yaml"
    words = f"{source}: packages: found ==> Error: {choice}:1: x was unexpected; accepted: "
    assert words in capfd.readouterr().err


def hashes(**changes: str | None) -> dict[str, str | None]:
    """Return the hashes of a spec that is equal, with changes."""
    equal = {"locked_spec": "s", "spec": "s", "locked_recipe": "r", "recipe": "r"}
    return {"label": "ior@4.0.0", **equal, **changes}


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({}, 0, "1 of 1 specs are equal"),
        ({"recipe": "other"}, 1, "ior@4.0.0: the recipe, its source or a patch differs"),
        ({"spec": "other"}, 1, "ior@4.0.0: the lock was edited"),
        ({"recipe": None}, 1, "ior@4.0.0: no recipe at the pins"),
    ],
)
def test_a_lock_is_compared_with_the_pinned_recipes(
    kit: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    changes: dict[str, str | None],
    code: int,
    words: str,
) -> None:
    (tmp_path / "spack/bin/spack.hashes").write_text(json.dumps([hashes(**changes)]))
    before = {path: path.read_bytes() for path in kit.rglob("*") if path.is_file()}
    assert main(["lock", "local", "--compare"]) == code
    printed = capfd.readouterr()
    assert words in printed.out
    assert "Spack reads the lock and its recipes: hashes" in printed.err
    assert {path: path.read_bytes() for path in kit.rglob("*") if path.is_file()} == before
