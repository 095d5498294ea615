"""Releases that are compiled for a twin: with make alone, or with configure before it."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.packages.twin import smpi
from proofmark.software.installed import Provided

CONFIGURE = """#!/bin/sh
printf '%s\\n' "$SMPI_PRETEND_CC" "$@" >configured
"""
MAKEFILE = """program:
\tprintf '%s' "$$SMPI_PRETEND_CC" >pretends
\tcat pretends configured >program
"""
ARGUMENTS = ["CC=smpicc -O1", "--with=$(touch broken); touch broken"]


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an archive whose program prints how it was configured."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "Makefile").write_text(MAKEFILE)
    (source / "configured").write_text("not configured\n")
    (source / "configure").write_text(CONFIGURE)
    (source / "configure").chmod(0o755)
    folder = tmp_path / "mirror"
    folder.mkdir()
    with tarfile.open(folder / "tool-1.0.tar.gz", "w:gz") as packed:
        packed.add(source, "tool-1.0")
    monkeypatch.setattr(smpi, "COMPILER", "sh")
    return folder


def build(mirror: Path, **changes: Any) -> Provided:
    folder = mirror.parent
    digest = hashlib.sha256((mirror / "tool-1.0.tar.gz").read_bytes()).hexdigest()
    release = {
        "version": "1.0",
        "url": "https://127.0.0.1:9/tool-1.0.tar.gz",
        "sha256": digest,
        "folder": "tool-1.0",
        "make": ["program"],
        "programs": {"tool": "program"},
    }
    (folder / "twin").mkdir(exist_ok=True)
    (folder / smpi.SOURCES).write_text(yaml.safe_dump({"packages": {"tool": release | changes}}))
    return smpi.build(folder, "tool", folder / "prefixes", mirror)


def test_a_release_without_configure_is_only_made(mirror: Path) -> None:
    made = build(mirror)
    assert Path(made.programs["tool"]).read_text() == "not configured\n"
    assert made.spec == "make program"


def test_configure_gets_each_argument_as_it_is(mirror: Path) -> None:
    """No shell reads them. The compiler makes ordinary programs for configure, but not for make."""
    made = build(mirror, configure=ARGUMENTS)
    assert Path(made.programs["tool"]).read_text().splitlines() == ["1", *ARGUMENTS]
    assert made.spec == " ".join(("configure", *ARGUMENTS, "make program"))
    assert not [*mirror.parent.rglob("broken")]


def test_other_arguments_of_configure_have_another_folder(mirror: Path) -> None:
    prefixes = {
        build(mirror).prefix,
        build(mirror, configure=[]).prefix,
        build(mirror, configure=["CC=smpicc"]).prefix,
    }
    assert len(prefixes) == 3


def test_a_configure_that_fails_is_named_with_its_last_lines(mirror: Path) -> None:
    script = mirror.parent / "source/configure"
    script.write_text("#!/bin/sh\necho no acceptable ld\nexit 2\n")
    with tarfile.open(mirror / "tool-1.0.tar.gz", "w:gz") as packed:
        packed.add(script.parent, "tool-1.0")
    with pytest.raises(BadInput, match="configure: found exit code 2: no acceptable ld"):
        build(mirror, configure=[])
    assert not [*(mirror.parent / "prefixes").iterdir()]


def test_a_shell_line_is_no_list_of_arguments(mirror: Path) -> None:
    with pytest.raises(BadInput, match="configure"):
        build(mirror, configure="CC=smpicc")


def test_each_release_of_the_kit_has_its_checksum_and_programs() -> None:
    for release in smpi.releases(ROOT / "environments").values():
        assert release.version in release.archive
        assert release.make
        assert release.programs
