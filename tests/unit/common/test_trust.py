"""Which paths a process believes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proofmark.common.trust import Untrusted, refuse_untrusted, refuse_untrusted_below, weak_part

NOBODY = 65534


@pytest.fixture(name="own")
def own_folder(tmp_path: Path) -> Path:
    """Return a folder of this user that nobody else can write."""
    own = tmp_path / "own"
    own.mkdir(mode=0o755)
    return own


def test_own_files_are_trusted(own: Path) -> None:
    """A file of this user, a missing file and a link of this user are believed."""
    (own / "file").write_text("")
    (own / "link").symlink_to("file")
    for name in ("file", "missing", "missing/below", "link"):
        assert weak_part(own / name) is None


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757])
def test_a_folder_that_all_can_write_is_weak_at_the_end(own: Path, mode: int) -> None:
    """Another user can put files into it, also into a sticky one."""
    own.chmod(mode)
    weak = weak_part(own)
    assert weak is not None
    assert weak.path == own
    with pytest.raises(Untrusted, match="that other users can write"):
        refuse_untrusted(own, "a private folder")


def test_a_sticky_folder_is_trusted_on_the_way(own: Path) -> None:
    """Nobody can replace what belongs to others in it; without the bit everybody can."""
    (own / "file").write_text("")
    own.chmod(0o1777)
    assert weak_part(own / "file") is None
    own.chmod(0o777)
    weak = weak_part(own / "file")
    assert weak is not None
    assert weak.path == own


def test_links_are_followed_part_by_part(own: Path) -> None:
    """A link leads to the weak folder, also through ``..`` and a second link."""
    weak = own / "weak"
    weak.mkdir()
    weak.chmod(0o777)
    (weak / "file").write_text("")
    (own / "first").symlink_to("second/file")
    (own / "second").symlink_to("../own/weak")
    found = weak_part(own / "first")
    assert found is not None
    assert found.path == weak


def test_a_circle_of_links_is_weak(own: Path) -> None:
    """The walk ends."""
    (own / "a").symlink_to("b")
    (own / "b").symlink_to("a")
    assert weak_part(own / "a") is not None


@pytest.mark.root
def test_a_link_of_another_user_is_weak(own: Path) -> None:
    """Its owner chooses what is found, even if that is a file of root."""
    (own / "file").write_text("")
    own.chmod(0o1777)
    (own / "link").symlink_to(own / "file")
    os.chown(own / "link", NOBODY, NOBODY, follow_symlinks=False)
    found = weak_part(own / "link")
    assert found is not None
    assert found.path == own / "link"


@pytest.mark.root
def test_a_folder_of_another_user_is_weak(own: Path) -> None:
    """It is weak as a part of the way, too, and so is a group with other members."""
    (own / "file").write_text("")
    os.chown(own, NOBODY, NOBODY)
    found = weak_part(own / "file")
    assert found is not None
    assert found.path == own
    os.chown(own, 0, NOBODY)
    own.chmod(0o775)
    assert weak_part(own / "file") is not None
    os.chown(own, 0, 0)
    assert weak_part(own / "file") is None


@pytest.mark.parametrize("kind", ["file", "folder", "link", "behind a link"])
@pytest.mark.parametrize("mode", [0o777, 0o755])
def test_all_below_a_folder_counts(own: Path, kind: str, mode: int) -> None:
    """The control has the same files, which nobody else can write."""
    top, weak = own / "top", own / ("else/where" if "link" in kind else "top/deep/weak")
    (top / "deep").mkdir(parents=True)
    weak.parent.mkdir(exist_ok=True)
    if kind == "file":
        weak.write_text("")
    else:
        weak.mkdir()
    if kind == "link":
        (top / "deep/link").symlink_to(weak)
    if kind == "behind a link":
        (top / "deep/link").symlink_to(weak.parent)
    (top / "deep/round").symlink_to(top)
    weak.chmod(mode)
    if mode == 0o755:
        refuse_untrusted_below(top, "own")
    else:
        with pytest.raises(Untrusted, match="that other users can write"):
            refuse_untrusted_below(top, "own")
