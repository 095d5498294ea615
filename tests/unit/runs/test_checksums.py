"""A run that was signed: whatever is changed, added or removed afterwards is named."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import execution, make_kit

from proofmark.cli.main import main
from proofmark.jobs.execute import execute
from proofmark.runs.checksums import _line, read_checksums
from proofmark.runs.run import Run


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two keys, and files of signers for the first."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "mallory"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name]
        subprocess.run(command, check=True)
    public = (folder / "alice.pub").read_text()
    (folder / "signers").write_text(f"alice@example.org {public}")
    (folder / "purpose").write_text(f'alice@example.org namespaces="git" {public}')
    return folder


@pytest.fixture
def run(tmp_path: Path, keys: Path) -> Run:
    kit = make_kit(tmp_path / "a site's kit")
    made = kit.run()
    execute(made, "none", lambda line: None)
    assert main(["report", str(made.folder)]) == 0
    assert main(["sign", str(made.folder), "--key", str(keys / "alice")]) == 0
    return made


def verified(run: Run, signers: Path) -> int:
    return main(["verify", str(run.folder), "--signers", str(signers)])


def test_control_what_was_signed_is_good(
    run: Run, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verified(run, keys / "signers") == 0
    assert "as signed by alice@example.org" in capsys.readouterr().out


@pytest.mark.fault("signed-run-changed")
@pytest.mark.parametrize("what", ["changed", "added", "removed"])
def test_every_difference_is_named(
    run: Run, keys: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    step = run.folder / "steps" / "0001-fake-1"
    target = execution(step) / ("stdout" if what != "added" else "new")
    if what == "removed":
        target.unlink()
    else:
        target.write_text("rate 1000\n")
    assert verified(run, keys / "signers") == 1
    assert f"{target.relative_to(run.folder)}: {what}" in capsys.readouterr().out


def test_a_flipped_bit_in_any_file_is_seen(run: Run, keys: Path) -> None:
    for path in sorted(run.folder.rglob("*")):
        if path.is_file() and path.name not in ("lock", "SHA256SUMS.sig"):
            content = path.read_bytes()
            path.write_bytes(bytes([content[0] ^ 1]) + content[1:] if content else b"x")
            assert verified(run, keys / "signers") == 1, path
            path.write_bytes(content)
    assert verified(run, keys / "signers") == 0


def test_a_manifest_made_to_fit_is_seen(
    run: Run, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signature = (run.folder / "SHA256SUMS.sig").read_bytes()
    (run.folder / "verdict.json").write_text("{}")
    main(["sign", str(run.folder), "--key", str(keys / "mallory")])
    assert verified(run, keys / "signers") == 3
    (run.folder / "SHA256SUMS.sig").write_bytes(signature)
    assert verified(run, keys / "signers") == 1
    assert "SHA256SUMS: changed after it was signed" in capsys.readouterr().out


def test_unsigned_or_by_a_stranger_is_bad_input(
    run: Run, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verified(run, keys / "purpose") == 3
    strangers = tmp_path / "strangers"
    strangers.write_text(f"mallory@example.org {(keys / 'mallory.pub').read_text()}")
    assert verified(run, strangers) == 3
    assert "unknown signer" in capsys.readouterr().err
    assert verified(run, tmp_path / "nowhere") == 3
    (run.folder / "SHA256SUMS.sig").write_text("nonsense")
    assert verified(run, keys / "signers") == 3
    (run.folder / "SHA256SUMS.sig").unlink()
    assert verified(run, keys / "signers") == 3
    assert "unsigned" in capsys.readouterr().err


def test_signers_from_inside_the_run_are_refused(run: Run, keys: Path) -> None:
    inside = run.folder / "signers"
    inside.write_text((keys / "signers").read_text())
    assert verified(run, inside) == 3


def test_a_missing_key_is_named(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sign", str(run.folder), "--key", "nowhere"]) == 3
    assert "nowhere" in capsys.readouterr().err


ODD_NAMES = [b"odd\xff", b"new\nline", b"back\\slash", b"\\n", b" leading blank", "µ".encode()]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_listed_as_sha256sum_lists_them(run: Run, keys: Path, name: bytes) -> None:
    path = run.folder / os.fsdecode(name)
    path.write_text("x")
    assert main(["sign", str(run.folder), "--key", str(keys / "alice")]) == 0
    assert verified(run, keys / "signers") == 0
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(check, cwd=run.folder, check=True)
    path.write_text("y")
    assert verified(run, keys / "signers") == 1
    assert subprocess.run(check, cwd=run.folder, check=False, capture_output=True).returncode == 1


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.binary()))
def test_a_list_of_checksums_comes_back(files: dict[str, bytes]) -> None:
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    text = "".join(_line(name, checksum) for name, checksum in sums.items())
    assert read_checksums(text) == sums


def test_a_signed_run_contains_no_symbolic_link(
    run: Run, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run.folder / "link").symlink_to("/etc/hostname")
    assert verified(run, keys / "signers") == 1
    assert "link: added" in capsys.readouterr().out
    assert main(["sign", str(run.folder), "--key", str(keys / "alice")]) == 3
    assert "link: found a symbolic link" in capsys.readouterr().err


def test_a_run_in_the_folder_of_another_is_named(
    run: Run, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = run.folder.rename(run.folder.with_name("another"))
    assert main(["verify", str(moved), "--signers", str(keys / "signers")]) == 1
    assert f"run.json: of the run {run.id}" in capsys.readouterr().out


def sign_as_before(folder: Path, key: Path) -> None:
    """Sign a run as an earlier version did: by manifest.json, without run.json."""
    for name in ("run.json", "SHA256SUMS", "SHA256SUMS.sig"):
        (folder / name).unlink(missing_ok=True)
    files = {}
    for path in sorted(folder.rglob("*")):
        content = os.fsencode(path.readlink()) if path.is_symlink() else b""
        if not path.is_symlink() and not path.is_file():
            continue
        content = content or path.read_bytes()
        entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        name = f"{path.relative_to(folder)}"
        if name != "lock":
            files[name] = {**entry, **({"link": True} if path.is_symlink() else {})}
    document = {"algorithm": "sha256", "run": folder.name, "files": files}
    (folder / "manifest.json").write_text(json.dumps(document))
    command: list[str | Path] = ["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "proofmark-run"]
    subprocess.run([*command, folder / "manifest.json"], check=True, capture_output=True)


@pytest.mark.parametrize("changed", [False, True])
def test_a_run_that_an_earlier_version_signed_still_verifies(
    run: Run, keys: Path, changed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    link = run.folder / "link"
    link.symlink_to("/etc/hostname")
    sign_as_before(run.folder, keys / "alice")
    if changed:
        link.unlink()
        link.symlink_to("/etc/passwd")
        (run.folder / "verdict.json").write_text("{}")
    assert verified(run, keys / "signers") == int(changed)
    out = capsys.readouterr().out
    assert ("link: changed" in out, "verdict.json: changed" in out) == (changed, changed)


def test_a_copy_elsewhere_is_as_good(run: Run, keys: Path, tmp_path: Path) -> None:
    copied = tmp_path / "else" / run.id
    subprocess.run(["cp", "-a", "--", run.folder, f"{tmp_path}/copy"], check=True)
    copied.parent.mkdir()
    (tmp_path / "copy").rename(copied)
    assert verified(Run(copied, run.plan), keys / "signers") == 0


def test_one_run_gives_one_manifest(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    texts = []
    for _ in range(2):
        assert main(["report", str(run.folder)]) == 0
        texts.append((run.folder / "SHA256SUMS").read_bytes())
    assert texts[0] == texts[1]
