"""The collection, built from a checkout, installed into an empty folder and used elsewhere."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.folders import ROOT
from tests.roles.kit import Kit, make_kit
from tests.roles.test_any_folder import python_in

pytestmark = pytest.mark.slow

NEEDED = ["LICENSE", "README.md", "meta", "pyproject.toml", "requirements"]
"""What the collection contains and `make_kit` does not copy."""
ARCHIVE = "proofmark-kit-*.tar.gz"
IMPORT = [{"name": "Acceptance", "ansible.builtin.import_playbook": "proofmark.kit.acceptance"}]


@dataclass(frozen=True)
class Site:
    """A folder of a user with an inventory and a playbook, beside an installed collection."""

    kit: Kit
    python: Path
    collection: Path

    def play(self, playbook: str, *arguments: str) -> tuple[int, str]:
        """Run a playbook with the Python that has the package of the collection."""
        played = self.kit.play(playbook, *arguments, command=(f"{self.python}",))
        return played.code, " ".join(played.output.split())

    def files(self) -> dict[str, bytes]:
        """Return the content of each file of the collection, by path."""
        paths = (path for path in self.collection.rglob("*") if "__pycache__" not in path.parts)
        return {f"{path}": path.read_bytes() for path in paths if path.is_file()}


def galaxy(*words: str, folder: Path) -> None:
    """Run ``ansible-galaxy collection`` in `folder`."""
    command = [f"{Path(sys.executable).with_name('ansible-galaxy')}", "collection", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def built(checkout: Path, folder: Path) -> Path:
    """Build the collection of `checkout`; return the archive in `folder`."""
    galaxy("build", f"--output-path={folder}", folder=checkout)
    (archive,) = folder.glob(ARCHIVE)
    return archive


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Build the collection of a kit whose cases take no time, install it, and make a site."""
    with tempfile.TemporaryDirectory(prefix="proofmark-collection-") as name:
        top = Path(name)
        (top / "source").mkdir()
        source = make_kit(top / "source").folder
        for each in NEEDED:
            path = ROOT / each
            (shutil.copytree if path.is_dir() else shutil.copy)(path, source / each)
        collections = top / "collections"
        archive = built(source, top)
        galaxy("install", "--offline", f"-p={collections}", f"{archive}", folder=top)
        collection = collections / "ansible_collections/proofmark/kit"
        python = python_in(top / "python")
        python.with_name("proofmark").unlink()  # pip writes it
        pip = [sys.executable, "-m", "pip", f"--python={python}", "install", "--quiet"]
        offline = ["--no-deps", "--no-build-isolation", "--no-index"]
        subprocess.run([*pip, *offline, f"{collection}"], check=True)
        # Only pip's copy of the package is left.
        shutil.rmtree(source)
        elsewhere = top / "elsewhere"
        shutil.copytree(ROOT / "inventory/local", elsewhere / "inventory/local")
        (elsewhere / "site.yml").write_text(yaml.safe_dump(IMPORT), encoding="utf-8")
        environment = {
            "ANSIBLE_COLLECTIONS_PATH": f"{collections}",
            "PROOFMARK_STATE": f"{top / 'state'}",
            "PYTHONPATH": "",
        }
        kit = Kit(elsewhere, top / "scratch", environment)
        kit.partition()
        yield Site(kit, python, collection)


def test_an_acceptance_runs_outside_the_checkout(site: Site) -> None:
    runs, before = site.kit.folder.parent / "all runs", site.files()
    code, output = site.play("site.yml", "-e", json.dumps({"proofmark_runs": f"{runs}"}))
    assert code == 0, output
    verdict = json.loads((runs / "latest-local/verdict.json").read_text(encoding="utf-8"))
    assert verdict["counts"] == {"PASS": 2, "FAIL": 0, "INVALID": 0, "UNJUDGED": 0}
    run = (runs / "latest-local").resolve()
    assert f"report: {run}/report.html; next: proofmark sign '{run}' --key FILE" in output
    assert site.files() == before
    assert not (site.kit.folder / "runs").exists()


def test_the_current_folder_gets_the_runs_by_default(site: Site) -> None:
    code, output = site.play("proofmark.kit.plan", "-e", "run_id=here")
    assert code == 0, output
    assert (site.kit.folder / "runs/here/plan.json").exists()
    assert not (site.collection / "runs").exists()


def test_the_command_finds_the_installed_collection(site: Site) -> None:
    listed = subprocess.run(
        [site.python.with_name("proofmark"), "cases"],
        cwd=site.kit.scratch.parent,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **site.kit.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, listed.stderr
    assert "A program that sleeps and prints a rate" in listed.stdout


def test_the_archive_has_the_tracked_files_that_a_site_needs(tmp_path: Path) -> None:
    """Results, tests and everything that make wrote are left out."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True)
    tracked = {name for name in done.stdout.splitlines() if (ROOT / name).exists()}
    with tarfile.open(built(ROOT, tmp_path)) as archive:
        packed = {member.name for member in archive if member.isfile() or member.issym()}
    own = {"MANIFEST.json", "FILES.json"}
    left_out = ("benchmarks/samples/", "extensions/", "tests/")
    hidden = {name for name in tracked if name.startswith(".")}
    expected = {name for name in tracked - hidden if not name.startswith(left_out)}
    assert packed - own == expected - {"galaxy.yml"}


def test_the_execution_environment_names_files_of_the_collection() -> None:
    path = ROOT / "meta/execution-environment.yml"
    named = yaml.safe_load(path.read_text(encoding="utf-8"))["dependencies"]
    assert named.keys() == {"python", "system"}
    requirement = [
        line
        for line in (ROOT / named["python"]).read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    folder = f"{galaxy['namespace']}/{galaxy['name']}"
    assert requirement == [
        f"proofmark @ file:///usr/share/ansible/collections/ansible_collections/{folder}"
    ]
    assert (ROOT / named["system"]).read_text(encoding="utf-8")
