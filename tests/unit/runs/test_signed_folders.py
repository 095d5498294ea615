"""Signed folders that cannot be read or written, with what each refusal says."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from proofmark.common.errors import BadInput
from proofmark.runs import acceptance
from proofmark.runs.acceptance import (
    RUNS,
    STATEMENT,
    Annotations,
    Digest,
    Statement,
    Subject,
    differences,
    files_of,
    new_signed,
    read_statement,
    resting_on,
    run_keygen,
    signed_folders,
    take,
)


def subject(name: str, length: int = 1) -> Subject:
    digest = Digest(sha256="a" * 64)
    return Subject(name=name, digest=digest, annotations=Annotations(length=length))


def refused(call: Any, *arguments: Any) -> str:
    with pytest.raises(BadInput) as error:
        call(*arguments)
    (mistake,) = error.value.mistakes
    return f"{Path(mistake.file).name}|{mistake.key}|{mistake.found}|{mistake.accepted}"


def test_the_signed_folders_are_the_numbered_ones_the_newest_first(tmp_path: Path) -> None:
    run = tmp_path / "one"
    assert signed_folders(run) == resting_on(run) == []
    for name in ("signed/0002", "signed/0010", "signed/lock", "signed/.new-1"):
        (run / name).mkdir(parents=True)
    other = tmp_path / "acceptance-here/signed/0001" / RUNS / "one"
    other.mkdir(parents=True)
    assert [each.name for each in signed_folders(run)] == ["0010", "0002"]
    assert resting_on(run) == [*signed_folders(run), other]


def test_what_a_kill_left_is_removed_and_so_is_what_is_not_kept(tmp_path: Path) -> None:
    left = tmp_path / "signed/.new-left/inner"
    left.mkdir(parents=True)
    with new_signed(tmp_path) as new:
        assert new.parent == tmp_path / "signed" and not left.exists()
        (new / "file").touch()
    assert [each.name for each in (tmp_path / "signed").iterdir()] == ["lock"]


def test_a_place_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "signed").touch()
    found = refused(lambda: new_signed(tmp_path).__enter__())
    assert found == "signed||cannot be written: File exists|a folder with free space"


def test_without_links_the_content_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "source").write_text("x")
    take(tmp_path / "source", tmp_path / "inner/linked")
    assert (tmp_path / "inner/linked").samefile(tmp_path / "source")

    def none(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", none)
    take(tmp_path / "source", tmp_path / "copied")
    assert (tmp_path / "copied").read_text() == "x"
    assert not (tmp_path / "copied").samefile(tmp_path / "source")


def test_without_ssh_keygen_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert refused(run_keygen, "sign") == "ssh-keygen||not found|OpenSSH 8.2 or later"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (None, "||no such file|a folder that proofmark signed"),
        ("twice", "|subject|a name twice|each file once"),
        ("form", "||the same values in another form|as proofmark writes it"),
    ],
)
def test_a_statement_in_another_form_is_refused(
    tmp_path: Path, change: str | None, found: str
) -> None:
    names = ["a", "a"] if change == "twice" else ["a"]
    made = Statement(subject=[subject(name) for name in names], predicate={})
    content = made.content if change != "form" else json.dumps(json.loads(made.content)).encode()
    if change:
        (tmp_path / STATEMENT).write_bytes(content)
    assert refused(read_statement, tmp_path) == f"{STATEMENT}{found}"


def test_each_difference_has_its_own_words(tmp_path: Path) -> None:
    for name, text in (("same", "x"), ("long", "xy"), ("more", "x")):
        (tmp_path / name).write_text(text)
    for name in (STATEMENT, f"{STATEMENT}.sig", f"{STATEMENT}.12.sig", f"{STATEMENT}.2.sig.new"):
        (tmp_path / name).touch()
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/file").touch()
    assert files_of(tmp_path) == {"inner/file": 0, "long": 2, "more": 1, "same": 1}
    listed = [subject("same"), subject("long"), subject("none"), subject("inner/file", 0)]
    codes = {
        f"{each.fields['name']}": each.code
        for each in differences(tmp_path, Statement(subject=listed, predicate={}))
    }
    assert codes == {"more": "signed-unlisted", "long": "signed-length", "none": "signed-missing"}
    (tmp_path / "more").unlink()
    (tmp_path / "long").unlink()
    kept = Statement(subject=[subject("same"), subject("inner/file", 0)], predicate={})
    assert [each.code for each in differences(tmp_path, kept)] == ["signed-changed"] * 2


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        ("MAX_SIGNED_FILES", "||more files|at most 2 files"),
        ("MAX_VERDICT_BYTES", "||3 bytes|at most 2 bytes"),
        ("MAX_SIGNATURES", "||3 signatures|at most 2"),
    ],
)
def test_a_folder_beyond_a_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, found: str
) -> None:
    call = acceptance._signatures if limit == "MAX_SIGNATURES" else files_of
    for number in range(3):
        name = f"{STATEMENT}.{number + 2}.sig" if call is not files_of else f"f{number}"
        (tmp_path / name).write_text("xxx" if number == 1 else "")
    assert len(call(tmp_path)) == 3
    monkeypatch.setattr(acceptance, limit, 2)
    place = "f1" if limit == "MAX_VERDICT_BYTES" else tmp_path.name
    assert refused(call, tmp_path) == f"{place}{found}"
