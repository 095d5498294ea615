"""Archives are unpacked with the filter `data` where Python has it, and without a warning."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from proofmark.packages.twin.smpi import unpack


def packed(path: Path, name: str) -> Path:
    with tarfile.open(path, "w:xz") as archive:
        member = tarfile.TarInfo(name)
        member.size = 4
        member.mode = 0o755
        archive.addfile(member, io.BytesIO(b"text"))
    return path


def test_an_archive_is_unpacked(tmp_path: Path) -> None:
    """The control. Warnings are errors in tests."""
    unpack(packed(tmp_path / "a.tar.xz", "made/program"), tmp_path)
    program = tmp_path / "made/program"
    assert (program.read_text(), program.stat().st_mode & 0o777) == ("text", 0o755)


def test_a_member_outside_is_refused_where_python_has_filters(tmp_path: Path) -> None:
    """Python 3.11.2 has none. The control is the test above."""
    folder = tmp_path / "folder"
    folder.mkdir()
    archive = packed(tmp_path / "a.tar.xz", "../outside")
    if hasattr(tarfile, "data_filter"):
        with pytest.raises(tarfile.TarError):
            unpack(archive, folder)
        assert not (tmp_path / "outside").exists()
    else:
        unpack(archive, folder)
        assert (tmp_path / "outside").exists()
