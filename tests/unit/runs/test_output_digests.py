"""An output that changed after the end of its step is named."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.runs.output_digests import DIGESTS, changed_output

NAMES = ("stdout", "stderr", "rc", "when.json", "binding.json", "out.txt")
CONTENTS = st.lists(st.binary(max_size=20), min_size=len(NAMES), max_size=len(NAMES))


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
        found = changed_output(temporary, {name: new} if read else {})
        assert found == ("" if same else f"{name} changed after the step ended")


@pytest.mark.parametrize("mark", [" ", "*"])
@pytest.mark.parametrize("name", NAMES)
def test_a_removed_output_is_a_changed_output(tmp_path: Path, name: str, mark: str) -> None:
    write(tmp_path, [b"1"] * len(NAMES), mark)
    assert changed_output(str(tmp_path), {}) == ""
    (tmp_path / name).unlink()
    assert changed_output(str(tmp_path), {}) == f"{name} changed after the step ended"


def test_an_output_that_the_step_did_not_write_is_named(tmp_path: Path) -> None:
    write(tmp_path, [b"1"] * len(NAMES))
    assert changed_output(str(tmp_path), {"made.txt": b""}) == ""
    found = changed_output(str(tmp_path), {"made.txt": b"rate 900\n"})
    assert found == "made.txt appeared after the step ended"


@pytest.mark.parametrize(
    "text", ["", "x", f"{'0' * 64}  stdout\n", f"{'0' * 64}  ../stdout\n", "\x00\xff\n"]
)
def test_a_damaged_list_is_named(tmp_path: Path, text: str) -> None:
    write(tmp_path, [b"1"] * len(NAMES))
    if text.endswith("../stdout\n"):
        text = (tmp_path / DIGESTS).read_text(encoding="utf-8") + text
    (tmp_path / DIGESTS).write_text(text, encoding="utf-8")
    assert changed_output(str(tmp_path), {}) == f"{DIGESTS} is damaged"


def test_an_execution_without_digests_is_not_checked(tmp_path: Path) -> None:
    write(tmp_path, [b"1"] * len(NAMES))
    (tmp_path / DIGESTS).unlink()
    (tmp_path / "stdout").write_bytes(b"2")
    assert changed_output(str(tmp_path), {}) == ""
