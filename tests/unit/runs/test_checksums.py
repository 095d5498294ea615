"""The verification of a signed run names each file that was changed, added or removed."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import execution, make_kit
from tests.folders import let_all_enter

from proofmark.cli.main import main
from proofmark.jobs.execute import execute
from proofmark.runs import checksums
from proofmark.runs.anchors import NOT_ANCHORED
from proofmark.runs.checksums import _line, read_checksums
from proofmark.runs.run import Run, open_run


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two keys, and files of signers for the first."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "mallory"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name]
        subprocess.run(command, check=True)
    public = (folder / "alice.pub").read_text()
    (folder / "signers").write_text(f"alice@example.org {public}")
    for name, times in {
        "expired": 'valid-before="20200101"',
        "not yet": 'valid-after="20990101"',
        "now": 'valid-after="20200101",valid-before="20990101"',
    }.items():
        (folder / name).write_text(f"alice@example.org {times} {public}")
    for name in ("alice", "mallory"):
        (folder / f"list of {name}").write_text((folder / f"{name}.pub").read_text())
        krl = ["ssh-keygen", "-q", "-k", "-f", f"{folder}/krl of {name}", f"{folder}/{name}.pub"]
        subprocess.run(krl, check=True)
    (folder / "purpose").write_text(f'alice@example.org namespaces="git" {public}')
    return folder


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    """Return the folder of a signed run, which no test changes."""
    made = make_kit(tmp_path_factory.mktemp("original")).run()
    execute(made, "none", lambda line: None)
    assert main(["stage", "collect", str(made.folder)]) == 0
    assert main(["report", str(made.folder)]) == 0
    assert main(["sign", str(made.folder), "--key", str(keys / "alice")]) == 0
    return made.folder


@pytest.fixture
def run(tmp_path: Path, original: Path) -> Run:
    folder = tmp_path / "a site's kit" / "runs" / original.name
    return open_run(shutil.copytree(original, folder, symlinks=True))


def verified(run: Run, signers: Path) -> int:
    return main(["verify", str(run.folder), "--signers", str(signers)])


def test_control_what_was_signed_is_good(
    run: Run, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert verified(run, keys / "signers") == 0
    printed = capsys.readouterr()
    assert printed.err == f"not checked: {NOT_ANCHORED}\n"
    assert printed.out.splitlines() == [
        f"{run.id}: as signed by alice@example.org",
        "UNJUDGED: nothing was judged; 0 PASS, 0 FAIL, 0 INVALID, 2 UNJUDGED; "
        "2 of 2 steps measured",
    ]


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
    (run.folder / "report.html").write_text("PASS")
    checksums.sign(run.folder, keys / "mallory", checksums.whole_checksums(run.folder))
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
    assert "link: a symbolic link\n" in capsys.readouterr().out
    assert main(["sign", str(run.folder), "--key", str(keys / "alice")]) == 3
    assert "link: found a symbolic link" in capsys.readouterr().err


def test_a_run_in_the_folder_of_another_is_named(
    run: Run, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = run.folder.rename(run.folder.with_name("another"))
    assert main(["verify", str(moved), "--signers", str(keys / "signers")]) == 1
    assert f"run.json: of the run {run.id}" in capsys.readouterr().out


@pytest.mark.fault("link-leaves-run")
@pytest.mark.parametrize("name", ["SHA256SUMS", "SHA256SUMS.sig", "steps"])
def test_a_link_in_place_of_a_file_is_refused(run: Run, keys: Path, name: str) -> None:
    path = run.folder / name
    path.rename(run.folder.parent / "moved")
    path.symlink_to(run.folder.parent / "moved")
    assert verified(run, keys / "signers") == (1 if name == "steps" else 3)


@pytest.mark.fault("key-revoked")
@pytest.mark.parametrize("form", ["list", "krl"])
def test_a_revoked_key_is_refused(
    run: Run, keys: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control is the revocation of another key."""
    command = ["verify", f"{run.folder}", "--signers", f"{keys / 'signers'}", "--revoked"]
    assert main([*command, f"{keys / f'{form} of mallory'}"]) == 0
    capsys.readouterr()
    assert main([*command, f"{keys / f'{form} of alice'}"]) == 3
    printed = capsys.readouterr()
    assert "--revoked: found" in printed.err
    assert "UNJUDGED" not in printed.out
    assert main([*command, f"{keys / 'nowhere'}"]) == 3
    inside = run.folder / "krl"
    inside.write_bytes((keys / "krl of mallory").read_bytes())
    assert main([*command, f"{inside}"]) == 3


@pytest.mark.fault("key-revoked")
@pytest.mark.parametrize(("name", "code"), [("expired", 3), ("not yet", 3), ("now", 0)])
def test_a_key_is_accepted_only_during_its_validity(
    run: Run, keys: Path, name: str, code: int
) -> None:
    assert verified(run, keys / name) == code


def signed(run: Run, keys: Path) -> int:
    return main(["sign", f"{run.folder}", "--key", f"{keys / 'alice'}"])


@pytest.mark.fault("verdict-edited")
def test_a_run_whose_written_verdict_differs_is_not_signed(
    run: Run, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control is the fixture: the unchanged run is signed."""
    path = run.files.verdict
    text = path.read_text()
    signature = (run.folder / "SHA256SUMS.sig").read_bytes()
    assert '"UNJUDGED": 2' in text
    path.write_text(text.replace('"UNJUDGED": 2', '"UNJUDGED": 0').replace('S": 0', 'S": 2', 1))
    assert signed(run, keys) == 3
    assert "found verdict.json: another content" in capsys.readouterr().err
    path.unlink()
    assert signed(run, keys) == 3
    assert "found verdict.json: missing" in capsys.readouterr().err
    assert (run.folder / "SHA256SUMS.sig").read_bytes() == signature
    assert main(["report", f"{run.folder}"]) == 0
    assert signed(run, keys) == 0


@pytest.mark.fault("verdict-edited")
def test_an_output_that_was_changed_after_the_report_is_not_signed(run: Run, keys: Path) -> None:
    output = execution(run.folder / "steps/0001-fake-1") / "stdout"
    output.write_text(output.read_text().replace("rate 100", "rate 200"))
    assert signed(run, keys) == 3


@pytest.mark.fault("run-unfinished")
def test_an_unfinished_run_is_neither_signed_nor_verified(
    run: Run, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control is the fixture: the finished run is signed."""
    shutil.rmtree(execution(run.folder / "steps/0002-fake-2"))
    assert main(["report", f"{run.folder}"]) == 0
    assert signed(run, keys) == 3
    assert "found unfinished: 1 of 2 steps are missing" in capsys.readouterr().err
    # As an earlier version did it.
    checksums.sign(run.folder, keys / "alice", checksums.whole_checksums(run.folder))
    assert verified(run, keys / "signers") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "unfinished: 1 of 2 steps are missing"
    assert lines[-1] == f"{run.id}: 1 differences from what alice@example.org signed"


@pytest.mark.fault("run-renamed")
def test_a_renamed_run_is_neither_signed_nor_verified(
    run: Run, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control is `test_a_copy_elsewhere_is_as_good`."""
    moved = Run(run.folder.rename(run.folder.with_name("another")), run.plan)
    assert verified(moved, keys / "signers") == 1
    assert f"verdict.json: of the run {run.id}" in capsys.readouterr().out
    assert main(["report", f"{moved.folder}"]) == 0
    assert signed(moved, keys) == 3


PLANTS = """#!/bin/sh
for name in SHA256SUMS SHA256SUMS.new SHA256SUMS.sig SHA256SUMS.sig.new; do
    rm -f "{run}/$name"
    ln -s {target} "{run}/$name"
done
exec {keygen} "$@"
"""


@pytest.mark.root
@pytest.mark.fault("signature-of-another-user")
def test_root_signs_a_run_of_another_user_and_follows_no_link(
    run: Run, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The links are put there after the run was read, in place of the files that root writes."""
    target = tmp_path / "precious"
    target.write_text("precious")
    for path in (run.folder, *run.folder.rglob("*")):
        os.chown(path, 65534, 65534)
    let_all_enter(run.folder.parent)
    key = (keys / "alice").stat()
    assert (key.st_uid, key.st_mode & 0o777) == (0, 0o600)
    plants = tmp_path / "bin/ssh-keygen"
    plants.parent.mkdir()
    keygen = shutil.which("ssh-keygen")
    plants.write_text(PLANTS.format(run=run.folder, target=target, keygen=keygen))
    plants.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{plants.parent}:{os.environ['PATH']}")
        assert signed(run, keys) == 0
    assert target.read_text() == "precious"
    assert target.stat().st_uid == 0
    for name in ("SHA256SUMS", "SHA256SUMS.sig"):
        status = (run.folder / name).lstat()
        assert (stat.S_ISREG(status.st_mode), status.st_uid) == (True, 65534)
    assert verified(run, keys / "signers") == 0


def test_a_trace_does_not_change_what_is_signed(run: Run, keys: Path) -> None:
    for name in ("SHA256SUMS", "SHA256SUMS.sig"):
        (run.folder / name).unlink()
    code = "import sys; from proofmark.cli.main import main; sys.exit(main(sys.argv[1:]))"
    for words in (
        ["sign", f"{run.folder}", "--key", f"{keys / 'alice'}"],
        ["verify", f"{run.folder}", "--signers", f"{keys / 'signers'}"],
    ):
        command = [sys.executable, "-c", code, "-v", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "ssh-keygen" in done.stderr


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
