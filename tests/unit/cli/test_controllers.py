"""A controller without a usable lock or EasyBuild: check, plan and install give one answer.

The operating systems are stand-ins (`tests.fixtures.controllers`). The commands are the real ones.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.controllers import SYSTEMS, on_system
from tests.fixtures.site_locks import write_site_lock
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.software.providers.easybuild import AS_ROOT
from proofmark.software.spack.installation import operating_system

pytestmark = pytest.mark.rest("each verb on controllers with a venv or a lock of their own")

WITH_LOCK = "debian12"
CODE = re.compile(r"partition\.provision_from: ([A-Z_]+): found .*?(?:; run: (.+))?$", re.M)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a copy of the site local-spack, whose only host is this machine."""
    folder = tmp_path / "mysite"
    ignored = shutil.ignore_patterns("locks", "baselines")
    shutil.copytree(ROOT / "inventory/local-spack", folder, ignore=ignored)
    facts = folder / "group_vars/local/partition.yml"
    # Four times the caches of any machine on which this test runs: a rule of STREAM, not of locks.
    facts.write_text(facts.read_text().replace("64000000", "4000000000"))
    return folder


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Path:
    """Return a run of `site` that was planned where the kit has a lock."""
    with on_system(WITH_LOCK):
        words = ["--create", "--no-link", "--run-id", "one", "--accept-unjudged"]
        assert main([*of_plan(site, tmp_path), *words]) == 0
    return tmp_path / "runs/one"


def of_plan(site: Path, tmp_path: Path) -> list[str]:
    runs = ["--runs", f"{tmp_path / 'runs'}", *prefixes(tmp_path)]
    return ["plan", "-i", f"{site}", "-l", "local", "--suite", "p3", *runs]


def prefixes(tmp_path: Path) -> list[str]:
    """Return the option of a folder that suits each origin, whatever the checkout's path is."""
    return ["--prefixes", f"{tmp_path / 'p'}"]


def answers(
    site: Path, run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], *words: str
) -> Iterator[tuple[str, set[tuple[str, str]]]]:
    """Yield each verb with the codes and commands that it prints; empty if it accepts."""
    planned = [*of_plan(site, tmp_path), *words]
    origin = words[1] if words else "spack"
    install = ["install", f"{run}", "-i", f"{site}", *prefixes(tmp_path)]
    verbs = {
        "check": ["check", "-i", f"{site}", "--suite", "p3", *prefixes(tmp_path)],
        "plan --json": [*planned, "--json"],
        "plan --create": [*planned, "--create", "--no-link", "--fresh", "--accept-unjudged"],
        "install --check": [*install, "--from", origin, "--check"],
    }
    if words:
        del verbs["check"]  # it has no option for another origin
    capfd.readouterr()
    for verb, line in verbs.items():
        code = main(line)
        found = {(match[1], match[2] or "") for match in CODE.finditer(capfd.readouterr().err)}
        assert code == (3 if found else 0), (verb, found)
        yield verb, found
    assert main(planned) == 0
    printed = capfd.readouterr().out
    yield "plan", {(match[1], match[2] or "") for match in CODE.finditer(printed)}


def same(found: dict[str, set[tuple[str, str]]], wanted: set[tuple[str, str]]) -> None:
    """Assert that each verb has the answer `wanted`."""
    assert len(found) > 3
    for verb, codes in found.items():
        assert codes == wanted, verb


@pytest.mark.fault("no-lock-of-the-controller")
@pytest.mark.parametrize("system", SYSTEMS)
def test_each_verb_has_the_same_answer_about_the_lock(
    site: Path, run: Path, system: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wanted = {("NO_LOCK", f"proofmark lock local -i {site} --find")}
    with on_system(system):
        found = dict(answers(site, run, tmp_path, capfd))
    same(found, set() if system == WITH_LOCK else wanted)


def damage_lock(folder: Path, damage: str) -> None:
    """Damage the site lock in `folder`."""
    lock = folder / "spack.lock"
    if damage == "recipes":
        (folder / "overlay.sha256").write_text("0" * 64)
    elif damage == "pins":
        text = lock.read_text()
        lock.write_text(text.replace(json.loads(text)["spack"]["commit"], "0" * 40))
    else:
        (folder / damage).unlink()


@pytest.mark.fault("site-lock-is-stale")
def test_a_site_lock_that_no_longer_serves_is_refused_by_each_verb_with_its_command(
    site: Path, run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_site_lock(ROOT, site, "osu-micro-benchmarks", WITH_LOCK)
    again = f"proofmark lock local -i {site}"
    with on_system(WITH_LOCK):
        same(dict(answers(site, run, tmp_path, capfd)), set())
        sound = shutil.copytree(folder, tmp_path / "sound")
        for damage, answer in {
            "recipes": ("LOCK_STALE", again),
            "pins": ("LOCK_STALE", again),
            "overlay.sha256": ("LOCK_STALE", again),
            "spack.lock": ("LOCK_NOT_MADE", again),
            "spack.yaml": ("LOCK_STALE", f"{again} --find"),
        }.items():
            damage_lock(folder, damage)
            same(dict(answers(site, run, tmp_path, capfd)), {answer})
            shutil.rmtree(folder)
            shutil.copytree(sound, folder)


@pytest.fixture
def eb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an emulated EasyBuild that is sound, and that has nothing to install, first in PATH."""
    folder = tmp_path / "eb"
    folder.mkdir()
    modules = "OSU-Micro-Benchmarks/7.5.2-gompi-2023b"
    dry_run = f"echo ' * [ ] /e/OSU-Micro-Benchmarks-7.5.2-gompi-2023b.eb (module: {modules})'"
    for name, text in (("eb", dry_run), ("eb-python", "echo 5.4.1")):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{ROOT / '.venv/bin'}:/usr/bin:/bin")
    monkeypatch.setenv("EB_PYTHON", f"{folder}/eb-python")
    monkeypatch.setenv("LMOD_CMD", "/opt/lmod")
    monkeypatch.setenv(AS_ROOT, "1")
    return folder


@pytest.mark.fault("toolchain-too-old")
@pytest.mark.usefixtures("eb")
def test_a_toolchain_that_does_not_know_the_processor_is_refused_by_each_verb(
    site: Path,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The gcc of foss does not know zen5. That of the system is chosen in the inventory."""
    words = ("--provision-from", "easybuild")
    found = dict(answers(site, run, tmp_path, capfd, *words))
    same(found, set())
    facts = site / "group_vars/local/partition.yml"
    facts.write_text(facts.read_text().replace("environment: local", "environment: zen5"))
    found = dict(answers(site, run, tmp_path, capfd, *words))
    same(found, {("OLD_COMPILER", "")})
    assert main([*of_plan(site, tmp_path), *words, "--json"]) == 3
    assert "provision_toolchain: system in the inventory" in capfd.readouterr().err
    settings = site / "group_vars/local/settings.yml"
    settings.write_text(settings.read_text() + "provision_toolchain: system\n")
    (tmp_path / "eb/gcc").write_text("#!/bin/sh\necho 14.2.0\n")
    (tmp_path / "eb/gcc").chmod(0o755)
    found = dict(answers(site, run, tmp_path, capfd, *words))
    same(found, set())


@pytest.mark.fault("easybuild-not-usable")
@pytest.mark.parametrize(
    ("variable", "code"),
    [
        ("PATH", "NO_EASYBUILD"),
        ("LMOD_CMD", "NO_MODULE_TOOL"),
        pytest.param(AS_ROOT, "AS_ROOT", marks=pytest.mark.root),
    ],
)
@pytest.mark.usefixtures("eb")
def test_a_controller_on_which_easybuild_cannot_run_is_refused_by_each_verb(
    site: Path,
    run: Path,
    tmp_path: Path,
    variable: str,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, "/usr/bin:/bin" if variable == "PATH" else "")
    found = dict(answers(site, run, tmp_path, capfd, "--provision-from", "easybuild"))
    for verb, codes in found.items():
        assert {each for each, _ in codes} == {code}, verb


def test_an_unknown_toolchain_is_a_mistake_with_its_file(
    site: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = site / "group_vars/local/settings.yml"
    settings.write_text(settings.read_text() + "provision_toolchain: sytem\n")
    assert main(["check", "-i", f"{site}"]) == 3
    printed = capfd.readouterr().err
    assert "provision_toolchain: found 'sytem', did you mean 'system'?; accepted: foss, system" in (
        printed
    )
    assert f"{settings}:" in printed


@pytest.mark.core("the control")
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_stand_in_has_the_name_that_spack_gives_the_system(name: str) -> None:
    text = (ROOT / "tests/data/os-release" / name).read_text()
    assert operating_system(text).name == name
