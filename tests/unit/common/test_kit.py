"""The folder of the kit and those of its results, for a checkout and for a collection."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.folders import ROOT

import proofmark
from proofmark.common import kit
from proofmark.common.errors import BadInput
from proofmark.common.kit import PROGRAMS, SUITES, VARIABLE, code_folder, kit_folder, result_folder
from proofmark.common.trust import Untrusted


def folder_with_cases(folder: Path, version: str = "") -> Path:
    """Make a folder with cases; with `version` it is an installed collection."""
    (folder / SUITES).parent.mkdir(parents=True)
    (folder / SUITES).touch()
    if version:
        manifest = {"collection_info": {"version": version, "name": "kit"}, "format": 1}
        (folder / "MANIFEST.json").write_text(json.dumps(manifest), encoding="utf-8")
    else:
        (folder / "galaxy.yml").touch()
    return folder


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the package be that of pip, start in an empty folder, and return a path of Ansible."""
    monkeypatch.setattr(kit, "_folder_of_code", lambda: tmp_path / "site-packages")
    monkeypatch.setattr("ansible.constants.COLLECTIONS_PATHS", [f"{tmp_path / 'collections'}"])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "collections"


def test_a_checkout_as_the_current_folder_is_used_before_that_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = folder_with_cases(tmp_path / "checkout")
    monkeypatch.chdir(tmp_path)
    assert kit_folder({}) == ROOT
    monkeypatch.chdir(checkout)
    assert kit_folder({}) == checkout
    assert code_folder() == ROOT


def test_the_variable_is_used_before_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder_with_cases(tmp_path / "checkout"))
    other = folder_with_cases(tmp_path / "other")
    assert kit_folder({VARIABLE: f"{other}"}) == other
    with pytest.raises(BadInput, match=f"{VARIABLE}: found {tmp_path}; accepted: a checkout, or"):
        kit_folder({VARIABLE: f"{tmp_path}"})


def test_an_installed_package_uses_the_collection_that_ansible_finds(installed: Path) -> None:
    collection = folder_with_cases(installed / kit.COLLECTION, proofmark.__version__)
    assert kit_folder({}) == code_folder() == collection


def test_an_installed_package_without_its_collection_is_an_error(installed: Path) -> None:
    with pytest.raises(BadInput, match="the kit: found no folder with benchmarks"):
        kit_folder({})


@pytest.mark.fault("collection-of-another-version")
def test_a_collection_of_another_version_is_refused(installed: Path) -> None:
    collection = folder_with_cases(installed / kit.COLLECTION, "99.1.0")
    with pytest.raises(BadInput) as refused:
        kit_folder({})
    assert str(refused.value) == (
        f"{collection}/MANIFEST.json: collection_info.version: found 99.1.0; accepted: "
        f"{proofmark.__version__}, that of the Python package; `pip install {collection}` "
        "installs 99.1.0"
    )


@pytest.mark.fault("collection-of-another-version")
@pytest.mark.parametrize("text", ["", "[]", '{"collection_info": {}}'])
def test_a_damaged_manifest_is_refused(installed: Path, text: str) -> None:
    collection = folder_with_cases(installed / kit.COLLECTION, "99.1.0")
    (collection / "MANIFEST.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=r"MANIFEST\.json: found unreadable: .*; accepted: a"):
        kit_folder({})


def test_results_are_in_the_checkout_or_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = folder_with_cases(tmp_path / "checkout")
    collection = folder_with_cases(tmp_path / "collection", "1.0.0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", f"{tmp_path / 'home'}")
    assert result_folder(checkout, "runs") == checkout / "runs"
    assert result_folder(collection, "runs") == tmp_path / "runs"
    assert result_folder(checkout, "runs", "all/runs") == tmp_path / "all/runs"
    assert result_folder(collection, "runs", "~/runs") == tmp_path / "home/runs"


@pytest.mark.root
@pytest.mark.fault("files-of-another-user")
def test_programs_of_another_user_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package has them in the current folder, which may be one of all users."""
    collection = folder_with_cases(tmp_path / "collection", "1.0.0")
    monkeypatch.chdir(tmp_path)
    assert result_folder(collection, PROGRAMS) == tmp_path / PROGRAMS
    (tmp_path / PROGRAMS).mkdir()
    os.chown(tmp_path / PROGRAMS, 65534, -1)
    with pytest.raises(Untrusted, match="a folder of the user nobody"):
        result_folder(collection, PROGRAMS)
    assert result_folder(collection, PROGRAMS, "theirs") == tmp_path / "theirs"
