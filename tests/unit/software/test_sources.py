"""The sources of a lock: listed without Spack, found under any name, and no other address asked."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.site_locks import write_site_lock
from tests.folders import ROOT

from proofmark.cli import install as of_install
from proofmark.cli.main import main
from proofmark.common.errors import BadInput, bad_input
from proofmark.software.installed import ProvisionRequest, Sources
from proofmark.software.spack import install
from proofmark.software.spack.install import ChosenLock
from proofmark.software.spack.installation import (
    OperatingSystem,
    SpackInstallation,
    installation_in,
)
from proofmark.software.spack.lock_file import Lock, Spec, read_lock
from proofmark.software.spack.mirror import (
    SOURCES_FILE,
    Located,
    SourceFile,
    SourcesOfLock,
    canonical_sources,
    check_sources,
    link,
    locate,
    located_sources,
    read_sources,
)

CONTENT = b"the source of IOR"
SUM = hashlib.sha256(CONTENT).hexdigest()
PLACE = f"_source-cache/archive/{SUM[:2]}/{SUM}.tar.gz"


def source(**changes: Any) -> SourceFile:
    fields: dict[str, Any] = {
        "addresses": ("https://example.org/archive/4.0.0.tar.gz",),
        "name": "ior-4.0.0.tar.gz",
        "place": PLACE,
        "sha256": SUM,
    }
    return SourceFile(**{**fields, **changes})


IOR: SourcesOfLock = {"ior@4.0.0": (source(),), "gcc-runtime@12": ()}


def lock(folder: Path, sources: SourcesOfLock = IOR) -> Lock:
    """Return a lock of one package and of the runtime of gcc, with a list of sources beside it."""
    folder.mkdir(exist_ok=True)
    (folder / SOURCES_FILE).write_text(canonical_sources(sources))
    specs = [
        Spec("ior", "4.0.0", "i", "zen3", "ior@4.0.0", False, ("r", "g"), ()),
        Spec("gcc-runtime", "12", "r", "zen3", "gcc-runtime@12", False, (), ()),
        Spec("gcc", "12", "g", "zen3", "gcc@12", True, (), ()),
    ]
    return Lock(folder / "spack.lock", {spec.hash: spec for spec in specs}, {"ior": "i"})


def found_in(folder: Path, sources: SourcesOfLock = IOR) -> Located:
    (found,) = locate(sources, sources, [folder])
    return found


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", ["plain.tgz", "below/4.0.0.tar.gz", PLACE])
def test_a_file_is_found_by_its_checksum_under_any_name(mirror: Path, name: str) -> None:
    (mirror / name).parent.mkdir(parents=True, exist_ok=True)
    (mirror / name).write_bytes(CONTENT)
    found = found_in(mirror)
    assert (found.state, found.file) == ("found", mirror / name)


@pytest.mark.parametrize("name", ["4.0.0.tar.gz", "ior-4.0.0.tar.gz", PLACE])
def test_a_file_with_the_name_and_another_content_is_not_used(mirror: Path, name: str) -> None:
    (mirror / name).parent.mkdir(parents=True, exist_ok=True)
    (mirror / name).write_bytes(CONTENT + b"!")
    found = found_in(mirror)
    assert found.state == "other-checksum"


def test_a_source_without_a_checksum_is_not_found(mirror: Path) -> None:
    """Spack refuses it: the site brings another version."""
    unknown: SourcesOfLock = {"imb-era@3.2": (source(sha256=None, place="imb-era/IMB_3.2.tgz"),)}
    (mirror / "IMB_3.2.tgz").write_bytes(CONTENT)
    assert found_in(mirror, unknown).state != "found"


def test_a_fifo_in_the_mirror_is_not_read(mirror: Path) -> None:
    os.mkfifo(mirror / "ior-4.0.0.tar.gz")
    assert found_in(mirror).state == "missing"


def test_found_files_are_linked_to_where_spack_searches_them(mirror: Path, tmp_path: Path) -> None:
    (mirror / "any").write_bytes(CONTENT)
    (tmp_path / "links").mkdir()
    (tmp_path / "links/left").touch()
    link([found_in(mirror)], tmp_path / "links")
    assert [path for path in (tmp_path / "links").rglob("*") if path.is_file()] == [
        tmp_path / "links" / PLACE
    ]
    assert (tmp_path / "links" / PLACE).read_bytes() == CONTENT


def search(tmp_path: Path, sources: Sources) -> SpackInstallation:
    installation = installation_in(tmp_path / "prefixes", sources)
    link(
        located_sources(lock(tmp_path / "lock"), ["ior"], installation, sources),
        installation.mirror,
    )
    return installation


def test_control_a_mirror_with_every_source_is_linked(mirror: Path, tmp_path: Path) -> None:
    (mirror / "any").write_bytes(CONTENT)
    installation = search(tmp_path, Sources(mirror=mirror))
    assert (installation.mirror / PLACE).read_bytes() == CONTENT


@pytest.mark.fault("source-missing")
@pytest.mark.parametrize("name", ["unrelated", "ior-4.0.0.tar.gz"])
def test_a_missing_source_is_named_before_spack_is_started(
    mirror: Path, tmp_path: Path, name: str
) -> None:
    (mirror / name).write_bytes(b"another")
    with pytest.raises(BadInput) as caught:
        search(tmp_path, Sources(mirror=mirror))
    (mistake,) = caught.value.mistakes
    assert (mistake.file, mistake.key) == (str(mirror), "ior@4.0.0")
    for word in ("ior-4.0.0.tar.gz", SUM, "https://example.org/archive/4.0.0.tar.gz"):
        assert word in mistake.accepted
    assert (str(mirror / name) in mistake.found) == (name != "unrelated")


@pytest.mark.fault("source-missing")
def test_the_check_of_an_installation_names_the_missing_sources(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lock(tmp_path / "lock")
    monkeypatch.setattr(install, "choose_lock", lambda *_: ChosenLock(made))
    request = ProvisionRequest(tmp_path, "a", {"ior": []}, tmp_path, Sources(mirror=mirror))
    with pytest.raises(BadInput, match=f"ior-4.0.0.tar.gz .*{SUM}"):
        install.missing_specs(request, "debian12")
    (mirror / "any").write_bytes(CONTENT)
    missing = install.missing_specs(request, "debian12")
    assert [spec.label for spec in missing] == ["gcc-runtime@12", "ior@4.0.0"]


def test_sources_of_a_bundle_may_come_from_the_addresses(mirror: Path, tmp_path: Path) -> None:
    search(tmp_path, Sources(mirror=mirror, upstream=True))


def test_an_installed_package_needs_no_source(mirror: Path, tmp_path: Path) -> None:
    sources = Sources(mirror=mirror)
    installation = installation_in(tmp_path / "prefixes", sources)
    record = {"installed": True, "path": str(mirror)}
    index = installation.root / "store/.spack-db/index.json"
    index.parent.mkdir(parents=True)
    index.write_text(json.dumps({"database": {"installs": {"i": record, "r": record}}}))
    located = located_sources(lock(tmp_path / "lock"), ["ior"], installation, sources)
    assert not any(each.state == "found" for each in located)


def test_a_mirror_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="provision_sources"):
        search(tmp_path, Sources(mirror=tmp_path / "nowhere"))


def test_a_lock_without_a_list_of_sources_is_refused(mirror: Path, tmp_path: Path) -> None:
    made = lock(tmp_path / "lock")
    (tmp_path / "lock" / SOURCES_FILE).unlink()
    sources = Sources(mirror=mirror)
    with pytest.raises(BadInput, match=f"{SOURCES_FILE}: found No such file"):
        located_sources(made, ["ior"], installation_in(tmp_path / "prefixes", sources), sources)


def configured(folder: Path, sources: Sources) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the content of ``mirrors.yaml``, and the variables of Spack."""
    installation = installation_in(folder, sources)
    installation.mirror.mkdir(parents=True)
    installation.configure(sources)
    text = (installation.root / "user/mirrors.yaml").read_text()
    return yaml.safe_load(text), installation.environment()


@pytest.mark.parametrize("offline", [True, False])
def test_offline_the_mirrors_of_spack_are_replaced_and_no_address_is_reached(
    mirror: Path, tmp_path: Path, offline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example.org:3128")
    sources = Sources(mirror=mirror, upstream=not offline)
    mirrors, variables = configured(tmp_path / "prefixes", sources)
    (key,) = mirrors
    assert key == ("mirrors:" if offline else "mirrors")  # a colon at the end: replace, not merge
    assert list(mirrors[key]) == ["links", "sources"]
    assert all(each["url"].startswith("file://") for each in mirrors[key].values())
    assert (variables["https_proxy"] == "http://127.0.0.1:9") == offline
    assert (variables.get("GIT_ALLOW_PROTOCOL") == "file") == offline


def test_without_a_mirror_or_bundle_the_addresses_are_asked(tmp_path: Path) -> None:
    mirrors, variables = configured(tmp_path, Sources())
    assert list(mirrors) == ["mirrors"]
    assert "GIT_ALLOW_PROTOCOL" not in variables


@pytest.mark.parametrize("field", ["name", "place"])
@pytest.mark.parametrize("path", ["/etc/passwd", "../up", ""])
def test_a_path_that_leaves_the_mirror_is_refused(tmp_path: Path, field: str, path: str) -> None:
    made = lock(tmp_path / "lock")
    raw = json.loads((tmp_path / "lock" / SOURCES_FILE).read_text())
    raw["ior@4.0.0"][0][field] = path
    (tmp_path / "lock" / SOURCES_FILE).write_text(json.dumps(raw))
    with pytest.raises(BadInput, match=f"ior@4.0.0.0.{field}"):
        read_sources(made)


def test_control_the_sources_of_a_lock_have_no_errors(tmp_path: Path) -> None:
    assert list(check_sources(lock(tmp_path / "lock"))) == []


def test_a_list_that_does_not_fit_its_lock_is_refused(tmp_path: Path) -> None:
    made = lock(tmp_path / "lock", {"ior@4.0.0": ()})
    with pytest.raises(BadInput, match="gcc-runtime@12"):
        read_sources(made)
    made = lock(tmp_path / "lock", {**IOR, "left@1": ()})
    assert [mistake.key for mistake in check_sources(made)] == ["left@1"]
    made = lock(tmp_path / "lock", {**IOR, "ior@4.0.0": (source(place="ior/ior-4.0.0.tar.gz"),)})
    assert [mistake.key for mistake in check_sources(made)] == ["ior@4.0.0"]
    made = lock(tmp_path / "lock")
    (tmp_path / "lock" / SOURCES_FILE).write_text(json.dumps(json.loads(canonical_sources(IOR))))
    assert [mistake.found for mistake in check_sources(made)] == ["a file that is not canonical"]


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a command line that lists the sources of STREAM."""
    monkeypatch.chdir(ROOT)
    return ["install", "sources", "local", "--os", "debian12", "--package", "stream"]


def test_the_command_lists_address_and_checksum_without_a_mirror(
    stream: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*stream, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    committed = read_sources(read_lock(ROOT / "environments/local/debian12/spack.lock"))
    expected = {row["package"]: row["sha256"] for row in rows}
    assert {label.partition("@")[0] for label in expected} == {"compiler-wrapper", "stream"}
    assert all(committed[label][0].sha256 == checksum for label, checksum in expected.items())


def test_the_command_names_the_files_to_bring(
    stream: list[str], mirror: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*stream, "--mirror", str(mirror)]) == 1
    output = capsys.readouterr().out
    assert "has 0 of 2: bring compiler-wrapper-1.1.0.tar.gz, stream-5.10" in output


SYSTEM = "debian12"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a site with a lock of its own, in which only STREAM is built."""
    site = tmp_path / "inventory/mine"
    write_site_lock(ROOT, site, "stream", SYSTEM)
    (site / "hosts.yml").write_text("all: {}\n")
    return site


@pytest.mark.parametrize("with_site", [True, False])
def test_the_lock_of_a_site_is_listed_if_the_site_is_named(
    site: Path, with_site: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["-i", str(site)] if with_site else []
    assert main(["install", "sources", "local", "--os", SYSTEM, "--format", "json", *words]) == 0
    packages = {row["package"] for row in json.loads(capsys.readouterr().out)}
    assert ("ior@4.0.0" in packages) != with_site
    assert "stream@5.10" in packages


@pytest.mark.parametrize("with_site", [True, False])
def test_a_bundle_is_made_of_the_lock_of_a_site_if_it_is_named(
    site: Path, with_site: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[tuple[ProvisionRequest, ChosenLock]] = []

    def refuse(request: ProvisionRequest, chosen: ChosenLock) -> None:
        prepared.append((request, chosen))
        raise bad_input("spack", "", "the end of the test", "nothing")

    monkeypatch.setattr(install, "prepare", refuse)
    monkeypatch.setattr(of_install, "this_system", lambda: OperatingSystem("debian", "12"))
    words = ["-i", str(site)] if with_site else []
    words += ["--sources", str(site)]
    assert main(["install", "bundle", "local", str(site / "made"), *words]) == 3
    ((request, chosen),) = prepared
    assert chosen.lock.source.is_relative_to(site) == with_site
    assert (list(chosen.lock.roots) == ["stream"]) == with_site
    assert not request.sources.offline  # files that the folder lacks come from the addresses
