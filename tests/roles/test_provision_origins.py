"""The role provision with emulated Spack and EasyBuild, and with the programs of the site.

`tests/spack` has the same tests with a real Spack.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.kit import until
from tests.folders import ROOT
from tests.processes import running
from tests.roles.kit import Kit, Played, processes_of

from proofmark.software.providers.easybuild import AS_ROOT
from proofmark.software.spack.installation import this_system
from proofmark.software.spack.lock_check import canonicalise, digest_of_inputs, overlay_digest
from proofmark.software.spack.lock_file import REQUEST, SiteRequest
from proofmark.software.spack.mirror import canonical_sources

pytestmark = pytest.mark.slow

FAKE = ROOT / "tests/emulators/spack.py"
LIBRARY, SHELL, SITE_SHELL = "a" * 32, "b" * 32, "c" * 32
LAST = "next: shell@1.0"


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=Site", "-c", "user.email=site@example.org"]
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def repository(folder: Path, tag: str) -> dict[str, str]:
    """Make a git repository of the files in `folder`; return its pin."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=x")
    git(folder, "tag", tag)
    return {"git": f"file://{folder}", "tag": tag, "commit": git(folder, "rev-parse", "HEAD")}


def spec(name: str, key: str, *needs: str) -> dict[str, Any]:
    names = {LIBRARY: "lib-one"}
    return {
        "name": name,
        "version": "1.0",
        "hash": key,
        "arch": {"platform": "linux", "platform_os": this_system().name, "target": "x86_64"},
        "namespace": "builtin",
        "package_hash": "x====",
        "parameters": {},
        "dependencies": [
            {
                "hash": other,
                "name": names[other],
                "parameters": {"deptypes": ["link"], "virtuals": []},
            }
            for other in needs
        ],
    }


@pytest.fixture
def spack(kit: Kit) -> Kit:
    """Return a kit that has an environment with a lock, and pins of an emulated Spack."""
    top = kit.folder.parent
    for name in ("upstream", "recipes", "orders"):
        (top / name).mkdir()
    (top / "upstream/bin").mkdir()
    shutil.copy(FAKE, top / "upstream/bin/spack")
    (top / "recipes/README").write_text("recipes\n")
    pins = {
        "spack": repository(top / "upstream", "v1"),
        "spack_packages": repository(top / "recipes", "v2"),
    }
    overlay = kit.folder / "spack-repo/spack_repo/proofmark"
    overlay.mkdir(parents=True)
    (overlay / "repo.yaml").write_text("repo: {namespace: proofmark, api: v2.0}\n")
    lock = {
        "spack": {"commit": pins["spack"]["commit"]},
        "roots": [{"hash": SHELL, "spec": "shell@1.0"}],
        "concrete_specs": {
            SHELL: spec("shell", SHELL, LIBRARY),
            LIBRARY: spec("lib-one", LIBRARY),
        },
    }
    environment = {"spack": {"definitions": [{"arch": ["target=x86_64"]}], "specs": ["shell@1.0"]}}
    place = kit.folder / "environments/local" / this_system().name
    place.mkdir(parents=True)
    common = kit.folder / "environments/common"
    common.mkdir()
    (kit.folder / "requirements").mkdir()
    for path, text in {
        place / "spack.lock": canonicalise(lock),
        place / "overlay.sha256": overlay_digest(overlay),
        place / "sources.json": canonical_sources({"lib-one@1.0": (), "shell@1.0": ()}),
        place.parent / "spack.yaml": yaml.safe_dump(environment),
        common / "spack-pins.yaml": yaml.safe_dump(pins),
        common / "programs.yml": "{programs: {}, spack: {}, easybuild: {shell: {name: Shell}}, "
        "easybuild_gcc: '13.2.0', mpi_wrappers: {}}\n",
        kit.folder / "requirements/spack.txt": "# nothing: the emulated Spack has no solver\n",
    }.items():
        path.write_text(text)
    kit.partition(provision_from="spack")
    return dataclasses.replace(kit, environment={"PROOFMARK_FAKE": str(top / "orders")})


def order(kit: Kit, what: str, package: str) -> None:
    """Make the emulated Spack fail or hang (`what`) at a package."""
    (kit.folder.parent / "orders" / what).write_text(package)


def build(kit: Kit, *arguments: str) -> Played:
    return kit.play("playbooks/plan.yml", "playbooks/build.yml", *arguments)


def software(kit: Kit) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((kit.run() / "software.json").read_text())
    package: dict[str, Any] = content["packages"]["shell"]
    return package


@pytest.mark.fault("check-mode")
def test_lock_is_installed_with_progress_and_a_second_time_changes_nothing(spack: Kit) -> None:
    planned = spack.play("playbooks/plan.yml")
    assert planned.code == 0, planned.output
    checked = spack.play("playbooks/build.yml", "--check")
    assert (checked.code, checked.recap["changed"]) == (0, 1), checked.output
    assert checked.printed("spack: lib-one@1.0 shell@1.0")
    assert not (spack.folder / ".provision").exists()

    built = spack.play("playbooks/build.yml")
    assert built.code == 0, built.output
    assert built.printed("2 packages to install from their sources:")
    assert built.printed("lib-one@1.0, shell@1.0")
    package = software(spack)
    assert (package["origin"], package["spec"], package["hash"]) == ("spack", "shell@1.0", SHELL)
    program = package["programs"]["sh"]
    assert program["path"].endswith(f"shell-1.0-{SHELL}/bin/sh")
    assert any(library["name"].startswith("libc.") for library in program["libraries"])

    again = spack.play("playbooks/build.yml")
    assert (again.code, again.recap["changed"]) == (0, 0), again.output


@pytest.mark.fault("build-fails")
@pytest.mark.fault("interrupt-sigterm")
def test_failed_and_stopped_installs_leave_no_builder_and_continue(spack: Kit) -> None:
    """The lock is that of the site. It is used, and labelled.

    With tee, in CI and under nohup the output is no terminal. There, too, the progress of a build
    appears while it runs.
    """
    site_lock(spack)
    solver = spack.folder / ".provision/spack/venv"
    solver.mkdir(parents=True)  # it is installed already: this is in the test above
    shutil.copy(spack.folder / "requirements/spack.txt", solver / "lock.txt")
    order(spack, "fails", "shell")
    failed = build(spack)
    assert failed.code == 2
    assert failed.printed("HEADER_MISSING: found shell-1.0: a.c:2: fatal error: mpi.h")
    assert failed.printed("Debian: libopenmpi-dev; RHEL: openmpi-devel")
    assert failed.printed("spack-build-out.txt")
    assert failed.printed("run the same command again to continue")
    assert not (spack.run() / "software.json").exists()
    order(spack, "fails", "")

    order(spack, "hangs", "shell")
    lines: list[str] = []
    with running(spack.start("playbooks/build.yml")) as process:
        assert process.stdout
        reader = threading.Thread(target=lines.extend, args=(process.stdout,))
        reader.start()
        # The builder sleeps in the last package, and its line has arrived.
        until(lambda: any(LAST in line for line in lines) or not reader.is_alive(), 1200)
        seen = [*lines]
        assert builders(spack) != [], "".join(seen)
        os.kill(process.pid, signal.SIGTERM)
        reader.join(600)
        assert process.wait(600) != 0
    text = "".join(seen)
    assert "1 package to install from their sources:" in text
    until(lambda: builders(spack) == [])
    order(spack, "hangs", "")

    continued = build(spack)
    assert continued.code == 0, continued.output
    assert continued.printed("1 package to install from their sources:")
    assert not continued.printed("lib-one@2.0, for")
    package = software(spack)
    assert package["hash"] == SITE_SHELL
    (finding,) = package["findings"]
    assert finding["code"] == "derived"
    assert finding["fields"]["parts"] == ["lib-one 2.0 built by Spack, instead of lib-one@1.0"]


def site_lock(kit: Kit) -> None:
    """Write a lock of the site, with another version of the library."""
    ours = kit.folder / "environments/local" / this_system().name
    site = kit.folder / "inventory/local/locks/local" / this_system().name
    shutil.copytree(ours, site)
    lock = json.loads((site / "spack.lock").read_text())
    lock["concrete_specs"][LIBRARY]["version"] = "2.0"
    text = canonicalise(lock).replace(SHELL, SITE_SHELL)
    (site / "spack.lock").write_text(canonicalise(json.loads(text)))
    (site / "sources.json").write_text(canonical_sources({"lib-one@2.0": (), "shell@1.0": ()}))
    shutil.copy(ours.parent / "spack.yaml", site)
    inputs = digest_of_inputs(site / "spack.yaml", ours.parent, ours.name)
    (site / REQUEST).write_text(SiteRequest(inputs=inputs, packages={}).model_dump_json())


def builders(kit: Kit) -> list[str]:
    """Return the command lines of running Spack processes."""
    return [line for line in processes_of(kit.folder) if "--only-concrete" in line]


@pytest.mark.fault("stale-lock")
def test_stale_lock_and_moved_tag_are_refused_before_anything_is_installed(spack: Kit) -> None:
    recipes = spack.folder / "spack-repo/spack_repo/proofmark/repo.yaml"
    text = recipes.read_text()
    recipes.write_text(text + "# edited\n")
    played = build(spack)
    assert played.code == 2
    assert played.printed("recipes changed: make lock")
    assert played.printed("rc: 3")
    assert not (spack.folder / ".provision").exists()

    recipes.write_text(text)
    upstream = spack.folder.parent / "upstream"
    git(upstream, "commit", "--quiet", "--allow-empty", "--message=moved")
    git(upstream, "tag", "--force", "v1")
    played = build(spack)
    assert played.code == 2
    assert played.printed("the pinned commit")
    assert not (spack.folder / ".provision/spack/spack").exists()


def preinstalled(kit: Kit, **facts: Any) -> Path:
    """Name a package in the inventory; return the path of its program, which does not exist yet."""
    prefix = kit.folder.parent / "site/shell"
    (prefix / "bin").mkdir(parents=True)
    package = {"prefix": str(prefix), "version": "7.1", "programs": {"sh": "bin/own-sh"}, **facts}
    kit.partition(provision_from="preinstalled", preinstalled={"shell": package})
    return prefix / "bin/own-sh"


@pytest.mark.fault("program-missing")
def test_programs_of_the_site_are_used_with_their_modules_or_reported(kit: Kit) -> None:
    home = kit.folder.parent / "home"
    home.mkdir()
    (home / "modules/suite").mkdir(parents=True)
    (home / "modules/suite/7.lua").write_text('setenv("SUITE", "suite/7")\n')
    (home / ".bash_profile").write_text(f"module use {home}/modules\n")
    kit = dataclasses.replace(kit, environment={"HOME": str(home)})
    program = preinstalled(kit, modules=["suite/7"], environment={"TUNED": "1"})
    played = build(kit)
    assert played.code == 2
    assert played.printed("no such program:")
    assert played.printed("site/shell/bin/own-sh")
    shutil.copy("/bin/sh", program)
    built = kit.play("playbooks/build.yml")
    assert built.code == 0, built.output
    package = software(kit)
    assert (package["origin"], package["version"]) == ("preinstalled", "7.1")
    assert package["environment"].items() >= {"SUITE": "suite/7", "TUNED": "1"}.items()
    assert "HOME" not in package["environment"]
    again = kit.play("playbooks/build.yml")
    assert (again.code, again.recap["changed"]) == (0, 0), again.output


FAKE_EB = r"""#!/bin/sh
for word; do
    case $word in --prefix=*) prefix=${word#*=} ;; --optarch=GCC:-m*) target=yes ;; esac
done
[ "$target" ] || { echo "no --optarch" >&2; exit 1; }
[ "${COLUMNS:-80}" -gt 1000 ] || { echo "lines are broken" >&2; exit 1; }
bin=$prefix/software/Shell/1.0-GCC/bin
case " $* " in
*' --dry-run '*)
    [ -x "$bin/sh" ] && state=x || state=' '
    echo " * [$state] /easyconfigs/Shell-1.0-GCC.eb (module: Shell/1.0-GCC)" ;;
*)
    echo "== processing EasyBuild easyconfig Shell-1.0-GCC.eb"
    mkdir -p "$bin" && cp /bin/sh "$bin" ;;
esac
"""


def easybuild(kit: Kit) -> Kit:
    (kit.folder / "environments/common/easystack.yml").write_text("easyconfigs: [Shell-1.0-GCC]\n")
    kit.partition(provision_from="easybuild")
    tools = kit.folder.parent / "tools"
    tools.mkdir()
    return kit


def test_a_missing_easybuild_is_reported_and_with_it_the_easystack_is_installed(
    spack: Kit,
) -> None:
    kit = dataclasses.replace(easybuild(spack), environment={"PATH": "/usr/bin:/bin"})
    played = build(kit)
    assert played.code == 2
    assert played.printed("no such command on the controller")
    assert played.printed("another provision_from")

    program = kit.folder.parent / "tools/eb"
    program.write_text(FAKE_EB)
    program.chmod(0o755)
    kit = dataclasses.replace(
        kit,
        environment={
            "PATH": f"{program.parent}:/usr/bin:/bin",
            "LMOD_CMD": "/bin/true",
            "EB_PYTHON": sys.executable,
            AS_ROOT: "1",
        },
    )
    built = build(kit)
    assert built.code == 0, built.output
    assert built.printed("processing EasyBuild easyconfig Shell-1.0-GCC.eb")
    package = software(kit)
    assert (package["origin"], package["version"]) == ("easybuild", "1.0")
    assert package["spec"] == "Shell/1.0-GCC"
    again = kit.play("playbooks/build.yml")
    assert (again.code, again.recap["changed"]) == (0, 0), again.output
