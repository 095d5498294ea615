"""Bundles and build caches: whole and signed, or refused by name."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofmark.common.errors import BadInput
from proofmark.software.spack.buildcache import MANIFESTS, SUFFIX, trust, verify
from proofmark.software.spack.bundle import Manifest, digest, pack, unpack
from proofmark.software.spack.installation import SpackInstallation

HASH = "x" * 32


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Make a bundle of three files and a link."""
    folder = tmp_path / "content"
    for name, content in (("spack.git/HEAD", "ref"), ("mirror/a.tar", "a" * 5000), ("run", "x")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    (folder / "run").chmod(0o755)
    (folder / "mirror/link").symlink_to("a.tar")
    (tmp_path / "spack.lock").write_text("a lock")
    write(folder, tmp_path / "knl.tar", tmp_path / "spack.lock")
    return tmp_path / "knl.tar"


def write(folder: Path, target: Path, lock: Path) -> Manifest:
    commits = {"spack": "1", "spack_packages": "2"}
    return pack(
        folder,
        target,
        arch="knl",
        os="debian12",
        commits=commits,
        lock=digest(lock),
        packages=("ior",),
    )


def install(bundle: Path) -> Path:
    said: list[str] = []
    return unpack(bundle, bundle.parent / "out", bundle.parent / "spack.lock", said.append)


def test_bundle_comes_out_as_it_went_in(bundle: Path) -> None:
    folder = install(bundle)
    assert (folder / "mirror/a.tar").read_text() == "a" * 5000
    assert os.access(folder / "run", os.X_OK)
    assert not (folder / "mirror/link").exists()
    assert install(bundle) == folder


def test_equal_content_gives_an_equal_bundle(bundle: Path) -> None:
    before = digest(bundle)
    for path in (bundle.parent / "content").rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    (bundle.parent / "content/manifest.json").unlink()
    write(bundle.parent / "content", bundle, bundle.parent / "spack.lock")
    assert digest(bundle) == before


@pytest.mark.fault("bundle-damaged")
def test_damaged_file_is_named_and_nothing_stays(bundle: Path) -> None:
    raw = bytearray(bundle.read_bytes())
    raw[raw.index(b"a" * 5000) + 700] = ord("b")
    bundle.write_bytes(raw)
    with pytest.raises(BadInput, match=r"knl\.tar: mirror/a\.tar: found damaged") as raised:
        install(bundle)
    assert len(raised.value.mistakes) == 1
    assert list((bundle.parent / "out").iterdir()) == []


@pytest.mark.fault("bundle-damaged")
def test_cut_bundle_is_refused(bundle: Path) -> None:
    raw = bundle.read_bytes()
    for length in (0, 100, 3000, raw.index(b"a" * 5000) + 1000):
        bundle.write_bytes(raw[:length])
        with pytest.raises(BadInput, match=r"knl\.tar"):
            install(bundle)


@pytest.mark.fault("bundle-damaged")
def test_added_and_missing_files_are_named(bundle: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.tar"
    with tarfile.open(bundle) as old, tarfile.open(changed, "w") as new:
        for member in old:
            if member.name != "run":
                new.addfile(member, old.extractfile(member))
        new.add(tmp_path / "spack.lock", "../../evil")
    changed.rename(bundle)
    with pytest.raises(BadInput) as raised:
        install(bundle)
    assert "../../evil: found not in the manifest" in str(raised.value)
    assert "run: found missing" in str(raised.value)
    assert not (tmp_path.parent / "evil").exists()


def test_bundle_of_another_lock_is_refused(bundle: Path) -> None:
    (bundle.parent / "spack.lock").write_text("made anew")
    with pytest.raises(BadInput, match="made for another lock of knl debian12"):
        install(bundle)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make GnuPG's home with two keys, and their public halves beside it."""
    folder = tmp_path_factory.mktemp("k")
    folder.chmod(0o700)
    for name in ("site", "other"):
        gpg(folder, "--passphrase", "", "--quick-gen-key", f"{name}@example.org", "ed25519", "sign")
        (folder / f"{name}.pub").write_text(
            gpg(folder, "--armor", "--export", f"{name}@example.org")
        )
    yield folder
    subprocess.run(["gpgconf", "--homedir", str(folder), "--kill", "all"], check=True)


def gpg(home: Path, *words: str) -> str:
    command = ["gpg", "--homedir", str(home), "--batch", "--no-tty", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def signed(cache: Path, keys: Path, name: str) -> Path:
    """Write the manifest of one spec, signed by the key `name`, or by none."""
    path = cache / MANIFESTS / "ior" / f"ior-4.0.0-{HASH}{SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".plain").write_text('{"version": 3}\n')
    if name:
        words = ("--yes", "--clearsign", "--output", str(path), "--local-user")
        gpg(keys, *words, f"{name}@example.org", str(path.with_suffix(".plain")))
    else:
        path.write_bytes(path.with_suffix(".plain").read_bytes())
    return path


def look(tmp_path: Path, keys: Path) -> None:
    home = SpackInstallation(tmp_path / "home", tmp_path, tmp_path)
    trust(home, keys / "site.pub")
    verify(home, tmp_path / "cache", {HASH})


def test_signature_of_the_site_is_taken(tmp_path: Path, keys: Path) -> None:
    signed(tmp_path / "cache", keys, "site")
    look(tmp_path, keys)


@pytest.mark.fault("cache-not-signed")
@pytest.mark.parametrize(("by", "why"), [("", "no signature"), ("other", "signed by another key")])
def test_other_signatures_are_refused(tmp_path: Path, keys: Path, by: str, why: str) -> None:
    path = signed(tmp_path / "cache", keys, by)
    with pytest.raises(BadInput, match=why) as raised:
        look(tmp_path, keys)
    assert str(path) in str(raised.value)


@pytest.mark.fault("cache-not-signed")
def test_changed_after_signing_is_refused(tmp_path: Path, keys: Path) -> None:
    path = signed(tmp_path / "cache", keys, "site")
    path.write_text(path.read_text().replace("3", "4", 1))
    with pytest.raises(BadInput, match="does not fit"):
        look(tmp_path, keys)


def test_cache_without_a_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="provision_cache_key"):
        trust(SpackInstallation(tmp_path, tmp_path, tmp_path), None)


def test_digest_is_sha256(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert digest(tmp_path / "x") == hashlib.sha256(b"abc").hexdigest()
