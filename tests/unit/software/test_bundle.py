"""Bundles that are damaged are refused, with the file's name."""

from __future__ import annotations

import copy
import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from proofmark.common.errors import BadInput
from proofmark.software.spack.bundle import LOCK, PYTHON, SUMS, digest, pack, python_version, unpack


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return a bundle of three files and a link."""
    folder = tmp_path / "content"
    for name, content in (("spack.git/HEAD", "ref"), ("mirror/a.tar", "a" * 5000), ("run", "x")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    (folder / "run").chmod(0o755)
    (folder / "mirror/link").symlink_to("a.tar")
    (tmp_path / "spack.lock").write_text("a lock")
    pack(folder, tmp_path / "knl.tar", tmp_path / "spack.lock")
    return tmp_path / "knl.tar"


def unpacked(bundle: Path) -> Path:
    return unpack(bundle, bundle.parent / "out", bundle.parent / "spack.lock")


def test_an_unpacked_bundle_has_the_packed_files(bundle: Path) -> None:
    folder = unpacked(bundle)
    assert (folder / "mirror/a.tar").read_text() == "a" * 5000
    assert os.access(folder / "run", os.X_OK)
    assert not (folder / "mirror/link").exists()
    assert unpacked(bundle) == folder


def test_equal_content_gives_an_equal_bundle(bundle: Path) -> None:
    before = digest(bundle)
    for path in (bundle.parent / "content").rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    pack(bundle.parent / "content", bundle, bundle.parent / "spack.lock")
    assert digest(bundle) == before


@pytest.mark.fault("bundle-damaged")
def test_a_damaged_file_is_named_and_no_file_is_kept(bundle: Path) -> None:
    raw = bytearray(bundle.read_bytes())
    raw[raw.index(b"a" * 5000) + 700] = ord("b")
    bundle.write_bytes(raw)
    with pytest.raises(BadInput, match=r"knl\.tar: mirror/a\.tar: found a damaged file") as raised:
        unpacked(bundle)
    assert len(raised.value.mistakes) == 1
    assert list((bundle.parent / "out").iterdir()) == []


@pytest.mark.fault("bundle-damaged")
def test_a_truncated_bundle_is_refused(bundle: Path) -> None:
    raw = bundle.read_bytes()
    for length in (0, 100, 3000, raw.index(b"a" * 5000) + 1000):
        bundle.write_bytes(raw[:length])
        with pytest.raises(BadInput, match=r"knl\.tar"):
            unpacked(bundle)


@pytest.mark.fault("bundle-damaged")
def test_added_and_missing_files_of_a_bundle_are_named(bundle: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.tar"
    with tarfile.open(bundle) as old, tarfile.open(changed, "w") as new:
        for member in old:
            if member.name != "run":
                new.addfile(member, old.extractfile(member))
        new.add(tmp_path / "spack.lock", "added")
    changed.rename(bundle)
    with pytest.raises(BadInput) as raised:
        unpacked(bundle)
    assert "added: found a file without its sum" in str(raised.value)
    assert "run: found no such file" in str(raised.value)
    assert list((tmp_path / "out").iterdir()) == []


def evil(folder: Path, *extra: tuple[tarfile.TarInfo, bytes]) -> Path:
    """Write a bundle of a good file and the members `extra`, all listed in its sums."""
    folder.mkdir(exist_ok=True)
    lock = folder / LOCK
    lock.write_text("a lock")
    own = [(LOCK, b"a lock"), (PYTHON, python_version().encode()), ("good", b"good")]
    members = [*((tarfile.TarInfo(name), content) for name, content in own), *extra]
    sums = [f"{hashlib.sha256(content).hexdigest()}  {each.name}\n" for each, content in members]
    first = (tarfile.TarInfo(SUMS), "".join(sums).encode())
    with tarfile.open(folder / "knl.tar", "w") as tar:
        for member, content in (first, *members):
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return folder / "knl.tar"


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


@pytest.mark.parametrize("name", ["new", "deep/er/new", "..dots", "a..b/c"])
def test_control_a_listed_file_below_the_folder_is_written(tmp_path: Path, name: str) -> None:
    folder = unpacked(evil(tmp_path / "made", (member(name), b"evil")))
    assert (folder / name).read_bytes() == b"evil"


ESCAPES = {
    "parent": ((member("../../escaped"), b"evil"),),
    "inner parent": ((member("good/../../../escaped"), b"evil"),),
    "absolute": ((member("{top}/escaped"), b"evil"),),
    "dot": ((member("./good"), b"evil"),),
    "symbolic link": (
        (member("link", tarfile.SYMTYPE, "{top}"), b""),
        (member("link/escaped"), b"evil"),
    ),
    "hard link": ((member("link", tarfile.LNKTYPE, "{top}/made/spack.lock"), b""),),
    "device": ((member("null", tarfile.CHRTYPE), b""),),
    "FIFO": ((member("pipe", tarfile.FIFOTYPE), b""),),
    "twice": ((member("good"), b"evil"), (member("good"), b"other")),
    "below a file": ((member("good/new"), b"evil"),),
}


@pytest.mark.fault("bundle-escapes")
@pytest.mark.parametrize("kind", ESCAPES)
def test_of_a_bundle_with_a_member_that_leaves_the_folder_nothing_stays(
    tmp_path: Path, kind: str
) -> None:
    extra = copy.deepcopy(ESCAPES[kind])
    for each, _ in extra:
        each.name = each.name.format(top=tmp_path)
        each.linkname = each.linkname.format(top=tmp_path)
    bundle = evil(tmp_path / "made", *extra)
    with pytest.raises(BadInput) as raised:
        unpacked(bundle)
    assert extra[0][0].name.removeprefix("./").partition("/new")[0] in str(raised.value)
    inside = kind in ("dot", "twice", "below a file")
    assert inside != ("is a link, a special file, or leaves the folder" in str(raised.value))
    names = {f"{path.relative_to(tmp_path)}" for path in tmp_path.rglob("*")}
    assert names == {"made", "made/knl.tar", "made/spack.lock", "made/out"}


@pytest.mark.fault("bundle-damaged")
def test_a_chain_of_headers_is_refused(tmp_path: Path) -> None:
    """`tarfile` calls itself for each of them."""
    bundle = evil(tmp_path / "made")
    content = bundle.read_bytes()
    long_name = tarfile.TarInfo("x")
    long_name.type, long_name.size = tarfile.GNUTYPE_LONGNAME, 5
    chain = 400 * (long_name.tobuf() + b"good\0".ljust(512, b"\0"))
    bundle.write_bytes(content[:1024] + chain + content[1024:])
    with pytest.raises(BadInput, match="recursion depth"):
        unpacked(bundle)


def test_the_sums_of_a_bundle_are_those_of_sha256sum(bundle: Path) -> None:
    folder = unpacked(bundle)
    subprocess.run(["sha256sum", "--check", "--strict", SUMS], cwd=folder, check=True)


def test_a_bundle_of_another_python_is_refused(bundle: Path, tmp_path: Path) -> None:
    (unpacked(bundle) / PYTHON).write_text("3.6\n")
    with pytest.raises(BadInput, match=r"python: found wheels for 3\.6; accepted: wheels for 3"):
        unpacked(bundle)


def test_a_bundle_of_another_lock_is_refused(bundle: Path) -> None:
    (bundle.parent / "spack.lock").write_text("made anew")
    with pytest.raises(
        BadInput, match=r"knl\.tar: spack\.lock: found a bundle made for another lock"
    ):
        unpacked(bundle)


def test_the_digest_of_a_file_is_its_sha256(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert digest(tmp_path / "x") == hashlib.sha256(b"abc").hexdigest()
