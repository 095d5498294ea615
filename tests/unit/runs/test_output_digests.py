"""Only a digest proves an output: what was changed, what is missing and what appeared is named."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.common.test_files import special

from proofmark.runs.attempts import ReadOnce, changed_output
from proofmark.runs.run_files import StepFiles

DIGESTS = StepFiles.digests.path
ALWAYS = ("started", "stdout", "stderr", "rc", "when.json", "binding.json", "noise.json")
NAMES = (*ALWAYS, "out.txt")
CONTENTS = st.lists(st.binary(max_size=20), min_size=len(NAMES), max_size=len(NAMES))
ALSO_READ = (
    *("telemetry.jsonl", "copies.json", "scratch.json", "files.json", "layout.txt", "load.json"),
)


def write(folder: Path, contents: list[bytes], mark: str = " ") -> None:
    """Write the files and their digests as sha256sum (mark " ") or openssl (mark "*") does."""
    lines = []
    for name, content in zip(NAMES, contents, strict=True):
        (folder / name).write_bytes(content)
        lines.append(f"{sha256(content).hexdigest()} {mark}{name}\n")
    (folder / DIGESTS).write_text("".join(lines), encoding="utf-8")


@given(
    contents=CONTENTS, name=st.sampled_from(NAMES), new=st.binary(max_size=20), read=st.booleans()
)
def test_exactly_a_change_is_reported(
    contents: list[bytes], name: str, new: bytes, read: bool
) -> None:
    """It makes no difference whether the caller has read the file already."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder, contents)
        (folder / name).write_bytes(new)
        same = new == contents[NAMES.index(name)]
        contents_of = ReadOnce(temporary)
        if read:
            contents_of.read(name)
        found = changed_output(contents_of)
        assert found == ("" if same else f"{name} changed after the step ended")


@pytest.mark.fault("proof-missing")
@pytest.mark.parametrize("content", [b"1", b""])
@pytest.mark.parametrize("mark", [" ", "*"])
@pytest.mark.parametrize("name", NAMES)
def test_a_removed_output_is_missing(tmp_path: Path, name: str, mark: str, content: bytes) -> None:
    write(tmp_path, [content] * len(NAMES), mark)
    assert changed_output(ReadOnce(str(tmp_path))) == ""
    (tmp_path / name).unlink()
    assert changed_output(ReadOnce(str(tmp_path))) == f"{name} is missing"


@pytest.mark.fault("proof-missing")
@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "device", "link", "sparse"])
@pytest.mark.parametrize("name", [*NAMES, DIGESTS])
def test_a_file_that_is_no_regular_file_is_damaged(tmp_path: Path, name: str, kind: str) -> None:
    write(tmp_path, [b"1"] * len(NAMES))
    (tmp_path / name).unlink()
    special(tmp_path / name, kind)
    assert changed_output(ReadOnce(str(tmp_path))).startswith(f"{name} is damaged: ")


@pytest.mark.fault("proof-missing")
@pytest.mark.parametrize("name", ALWAYS)
def test_each_output_needs_its_line(tmp_path: Path, name: str) -> None:
    write(tmp_path, [b"1"] * len(NAMES))
    digests = (tmp_path / DIGESTS).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in digests if not line.endswith(f" {name}\n")]
    (tmp_path / DIGESTS).write_text("".join(kept), encoding="utf-8")
    expected = f"{DIGESTS} is damaged: it has no line for {name}"
    assert changed_output(ReadOnce(str(tmp_path))) == expected


@pytest.mark.fault("proof-missing")
def test_an_output_that_the_step_did_not_write_is_named(tmp_path: Path) -> None:
    write(tmp_path, [b"1"] * len(NAMES))
    contents = ReadOnce(str(tmp_path))
    assert contents.content("made.txt") == b""
    assert changed_output(contents) == ""
    (tmp_path / "made.txt").write_bytes(b"rate 900\n")
    contents = ReadOnce(str(tmp_path))
    contents.read("made.txt")
    assert changed_output(contents) == "made.txt appeared after the step ended"


@pytest.mark.fault("proof-missing")
@pytest.mark.parametrize("content", [b"", b"{}"])
@pytest.mark.parametrize("name", ALSO_READ)
def test_a_file_that_would_be_read_and_has_no_line_is_named(
    tmp_path: Path, name: str, content: bytes
) -> None:
    write(tmp_path, [b"1"] * len(NAMES))
    (tmp_path / "notes").write_bytes(content)  # control: nothing reads it
    assert changed_output(ReadOnce(str(tmp_path))) == ""
    (tmp_path / name).write_bytes(content)
    assert changed_output(ReadOnce(str(tmp_path))) == f"{name} appeared after the step ended"


def test_a_content_is_empty_if_the_file_is_no_file_or_larger_than_the_limit(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(b"12345")
    contents = ReadOnce(str(tmp_path))
    assert contents.content("folder") == contents.content("missing") == b""
    assert contents.content("large", 4) == b""
    assert contents.content("large", 5) == b"12345"
    assert contents.content("large", 4) == b"", "also after it was read with a larger limit"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.fault("proof-missing")
@pytest.mark.parametrize(
    ("change", "found"),
    [
        (Path.unlink, f"{DIGESTS} is missing: the outputs are not proven"),
        (empty, f"{DIGESTS} is damaged"),
        (cut, f"{DIGESTS} is damaged"),
    ],
)
def test_an_execution_without_its_digests_is_not_proven(
    tmp_path: Path, change: Callable[[Path], None], found: str
) -> None:
    write(tmp_path, [b"1"] * len(NAMES))
    change(tmp_path / DIGESTS)
    assert changed_output(ReadOnce(str(tmp_path))) == found


@pytest.mark.parametrize("text", ["x", f"{'0' * 64}  ../stdout\n", "\x00\xff\n"])
def test_a_damaged_list_is_named(tmp_path: Path, text: str) -> None:
    write(tmp_path, [b"1"] * len(NAMES))
    with (tmp_path / DIGESTS).open("a", encoding="utf-8") as file:
        file.write(text)
    assert changed_output(ReadOnce(str(tmp_path))) == f"{DIGESTS} is damaged"
