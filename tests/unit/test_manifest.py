"""A run that was signed: whatever is changed, added or removed afterwards is named."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.unit.helpers import make_kit

from proofmark.cli.main import main
from proofmark.jobs.execute import execute
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
    assert "as alice@example.org signed it" in capsys.readouterr().out


@pytest.mark.fault("signed-run-changed")
@pytest.mark.parametrize("what", ["changed", "added", "removed"])
def test_every_difference_is_named(
    run: Run, keys: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = run.folder / "steps" / "0001-fake-1" / ("stdout" if what != "added" else "new")
    if what == "removed":
        target.unlink()
    else:
        target.write_text("rate 1000\n")
    assert verified(run, keys / "signers") == 1
    assert f"{target.relative_to(run.folder)}: {what}" in capsys.readouterr().out


def test_a_flipped_bit_in_any_file_is_seen(run: Run, keys: Path) -> None:
    for path in sorted(run.folder.rglob("*")):
        if path.is_file() and path.name not in ("lock", "manifest.json.sig"):
            content = path.read_bytes()
            path.write_bytes(bytes([content[0] ^ 1]) + content[1:] if content else b"x")
            assert verified(run, keys / "signers") == 1, path
            path.write_bytes(content)
    assert verified(run, keys / "signers") == 0


def test_a_manifest_made_to_fit_is_seen(
    run: Run, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signature = (run.folder / "manifest.json.sig").read_bytes()
    (run.folder / "verdict.json").write_text("{}")
    main(["sign", str(run.folder), "--key", str(keys / "mallory")])
    assert verified(run, keys / "signers") == 3
    (run.folder / "manifest.json.sig").write_bytes(signature)
    assert verified(run, keys / "signers") == 1
    assert "manifest.json: changed after it was signed" in capsys.readouterr().out


def test_unsigned_or_by_a_stranger_is_bad_input(
    run: Run, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verified(run, keys / "purpose") == 3
    strangers = tmp_path / "strangers"
    strangers.write_text(f"mallory@example.org {(keys / 'mallory.pub').read_text()}")
    assert verified(run, strangers) == 3
    assert "signer unknown" in capsys.readouterr().err
    assert verified(run, tmp_path / "nowhere") == 3
    (run.folder / "manifest.json.sig").write_text("nonsense")
    assert verified(run, keys / "signers") == 3
    (run.folder / "manifest.json.sig").unlink()
    assert verified(run, keys / "signers") == 3
    assert "unsigned" in capsys.readouterr().err


def test_signers_from_inside_the_run_are_refused(run: Run, keys: Path) -> None:
    inside = run.folder / "signers"
    inside.write_text((keys / "signers").read_text())
    assert verified(run, inside) == 3


def test_a_missing_key_is_named(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sign", str(run.folder), "--key", "nowhere"]) == 3
    assert "nowhere" in capsys.readouterr().err


def test_links_and_odd_names_are_listed(run: Run, keys: Path) -> None:
    (run.folder / "link").symlink_to("/etc/hostname")
    (run.folder / os.fsdecode(b"odd\xff\n")).write_text("x")
    assert main(["sign", str(run.folder), "--key", str(keys / "alice")]) == 0
    assert verified(run, keys / "signers") == 0
    (run.folder / "link").unlink()
    (run.folder / "link").symlink_to("/etc/passwd")
    assert verified(run, keys / "signers") == 1


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
        texts.append((run.folder / "manifest.json").read_bytes())
    assert texts[0] == texts[1]
