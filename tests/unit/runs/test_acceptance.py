"""A signed acceptance stays valid, names each difference, and is what its evidence gives."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import FAKE, execution, make_kit
from tests.folders import ROOT, let_all_enter
from tests.forks import tool

import proofmark
from proofmark.cli.main import main
from proofmark.jobs.execute import execute
from proofmark.report import write

NOBODY = 65534
PRODUCTS = (
    *("report.html", "junit.xml", "records.parquet", "rma.csv"),
    *("verdict.json", "claims.json", "figures/*.csv", "figures/*.svg", "figures/*.png"),
    "report.json",
)
PLOTTED: dict[str, Any] = {
    "arguments": ["{bytes}"],
    "sweep": {"bytes": [1, 2]},
    "metrics": {"bandwidth": {**FAKE["metrics"]["rate"]}},
    "read": {
        "finds": "rate",
        "benchmark": "PingPong",
        "parameters": {"bytes": "int"},
        "text": {
            "starts": "fake",
            "untitled": True,
            "facts": [r"size (?P<bytes>\d+)"],
            "keys": [
                {
                    "match": "(?P<key>rate) (?P<value>.*)",
                    "metrics": {"rate": {"metric": "bandwidth", "unit": "MB/s"}},
                }
            ],
            "require": {"END": "END"},
        },
    },
}
"""A case whose figures are in a plot."""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make three keys, and files of signers for the first two."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "bob", "mallory"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name]
        subprocess.run(command, check=True)
        krl = ["ssh-keygen", "-q", "-k", "-f", f"{folder}/krl of {name}", f"{folder}/{name}.pub"]
        subprocess.run(krl, check=True)
        (folder / f"list of {name}").write_text((folder / f"{name}.pub").read_text())
    public = (folder / "alice.pub").read_text()
    (folder / "alice only").write_text(f"alice@example.org {public}")
    (folder / "signers").write_text(
        f"alice@example.org {public}bob@example.org {(folder / 'bob.pub').read_text()}"
    )
    for name, times in {
        "expired": 'valid-before="20200101"',
        "not yet": 'valid-after="20990101"',
        "now": 'valid-after="20200101",valid-before="20990101"',
    }.items():
        (folder / name).write_text(f"alice@example.org {times} {public}")
    (folder / "purpose").write_text(f'alice@example.org namespaces="git" {public}')
    return folder


def signed_run(folder: Path, keys: Path, *options: str, **case: Any) -> Path:
    """Return the folder of a signed run, whose report has `options` besides the language."""
    kit = make_kit(folder)
    kit.case(**case)
    made = kit.run()
    execute(made, "none", lambda line: None)
    assert main(["stage", "collect", f"{made.folder}"]) == 0
    assert main(["report", f"{made.folder}", "--language", "ko", *options]) == 0
    assert sign(made.folder, keys) == 0
    return made.folder


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    """Return the folder of a signed run with a report in Korean, which no test changes."""
    return signed_run(tmp_path_factory.mktemp("original"), keys)


@pytest.fixture(scope="module")
def original_of_all(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    """Return such a folder with each product; plots take most of the time of a report."""
    return signed_run(tmp_path_factory.mktemp("original"), keys, **PLOTTED)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROOFMARK_STATE", f"{tmp_path}/state")
    monkeypatch.setenv("XDG_STATE_HOME", f"{tmp_path}/state")


@pytest.fixture
def run(tmp_path: Path, original: Path) -> Path:
    folder = tmp_path / "a site's kit" / "runs" / original.name
    return Path(shutil.copytree(original, folder, symlinks=True))


@pytest.fixture
def run_of_all(tmp_path: Path, original_of_all: Path) -> Path:
    """Return a run with each product of `PRODUCTS`."""
    folder = tmp_path / "a kit" / original_of_all.name
    return Path(shutil.copytree(original_of_all, folder, symlinks=True))


def sign(folder: Path, keys: Path, name: str = "alice") -> int:
    return main(["sign", f"{folder}", "--key", f"{keys / name}"])


def verify(folder: Path, signers: Path) -> int:
    return main(["verify", f"{folder}", "--signers", f"{signers}"])


def signed(run: Path, number: int = 1) -> Path:
    return run / f"signed/{number:04d}"


def product(folder: Path, pattern: str) -> Path:
    """Return a product; the names of plots are not known."""
    return min(folder.glob(pattern))


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {f"{path.relative_to(folder)}": path.read_bytes() for path in files}


def test_control_what_was_signed_is_good(
    run_of_all: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of_all
    capsys.readouterr()
    for folder in (run, signed(run)):
        assert verify(folder, keys / "signers") == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        assert printed.out.splitlines() == [
            f"{run.name}: as signed by alice@example.org",
            "UNJUDGED: nothing was judged; 0 PASS, 0 FAIL, 0 INVALID, 2 UNJUDGED; "
            "2 of 2 steps measured",
        ]


def test_the_documented_commands_check_a_folder_without_the_kit(run: Path, keys: Path) -> None:
    text = (ROOT / "docs/design/evidence.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```sh\n(.*?statement\.json.*?)```", text, re.DOTALL)
    script = script.replace("allowed_signers", f"'{keys / 'signers'}'")
    script = script.replace("NAME", "alice@example.org")
    command = ["sh", "-ec", script]
    subprocess.run(command, cwd=signed(run), check=True, capture_output=True)
    forge(signed(run) / "report.html")
    assert subprocess.run(command, cwd=signed(run), capture_output=True, check=False).returncode


def test_each_product_is_in_the_list_of_this_test(run_of_all: Path) -> None:
    """A product of which no test forges the content fails here."""
    listed = {product(signed(run_of_all), pattern).suffix for pattern in PRODUCTS}
    names = {
        name
        for name in content(signed(run_of_all))
        if not name.startswith(("evidence", "statement"))
    }
    assert {Path(name).parts[0] for name in names} == {Path(each).parts[0] for each in PRODUCTS}
    assert {Path(name).suffix for name in names} <= listed


@pytest.mark.fault("signed-run-changed")
@pytest.mark.parametrize("what", ["changed", "added", "removed"])
@pytest.mark.parametrize("name", ["report.html", "evidence/0001.tar", "figures/new.svg"])
def test_every_difference_is_named(
    run_of_all: Path, keys: Path, what: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of_all
    path = signed(run) / name
    if what == "added":
        path = path.with_name(f"more-{path.name}")
    elif not path.exists():
        path = product(signed(run), "figures/*.svg")
    if what == "removed":
        path.unlink()
    else:
        path.unlink(missing_ok=True)
        path.write_text("PASS")
    assert verify(run, keys / "signers") == 1
    said = {"changed": "4 bytes, and ", "added": "not listed", "removed": "listed in the statement"}
    assert f"{path.relative_to(signed(run))}: {said[what]}" in capsys.readouterr().out


def test_a_flipped_bit_in_any_file_is_seen(run: Path, keys: Path) -> None:
    for name, whole in content(signed(run)).items():
        path = signed(run) / name
        path.chmod(0o644)
        path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        assert verify(run, keys / "signers") in (1, 3), name
        path.write_bytes(whole)
    assert verify(run, keys / "signers") == 0


def _rerun(run: Path) -> None:
    assert main(["rerun", f"{run}", "1"]) == 0
    assert main(["report", f"{run}"]) == 0


def _report_in_another_language(run: Path) -> None:
    assert main(["report", f"{run}", "--language", "en"]) == 0


def _edit_the_run(run: Path) -> None:
    (execution(run / "steps/0001-fake-1") / "stdout").write_text("rate 1000\n")
    (run / "inputs/site.json").write_text("{}")
    assert main(["stage", "collect", f"{run}"]) == 0


def _remove_the_run(run: Path) -> None:
    for path in run.iterdir():
        if path.name != "signed":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    "later", [_rerun, _report_in_another_language, _edit_the_run, _remove_the_run]
)
def test_a_signed_acceptance_stays_valid(
    run: Path, keys: Path, later: Callable[[Path], None]
) -> None:
    before = content(signed(run))
    later(run)
    assert content(signed(run)) == before
    assert verify(signed(run), keys / "signers") == 0


def test_after_an_upgrade_signature_and_digests_are_checked(
    run: Path, keys: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(write, "__version__", "99.0")
    capsys.readouterr()
    assert verify(run, keys / "signers") == 6
    last = f"{run.name}: not judged again here: judged by proofmark {proofmark.__version__}"
    assert capsys.readouterr().out.splitlines()[-1] == last
    assert sign(signed(run), keys, "bob") == 3
    (signed(run) / "report.html").write_text("PASS")
    assert verify(run, keys / "signers") == 1


def test_a_copy_elsewhere_is_as_good(run: Path, keys: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(signed(run), tmp_path / "elsewhere" / "of the vendor")
    shutil.rmtree(run)
    assert verify(copied, keys / "signers") == 0


def test_a_later_acceptance_is_signed_beside_the_first(run: Path, keys: Path) -> None:
    _rerun(run)
    assert sign(run, keys) == 0
    assert verify(run, keys / "signers") == 0
    for number, archives in ((1, 1), (2, 2)):
        folder = signed(run, number)
        assert len(list((folder / "evidence").glob("*.tar"))) == archives
        assert verify(folder, keys / "signers") == 0


def test_a_second_party_adds_a_signature(
    run: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = shutil.copytree(signed(run), tmp_path / "of bob")
    assert sign(run, keys, "bob") == 0
    assert sign(copied, keys, "bob") == 0
    capsys.readouterr()
    for folder in (signed(run), copied):
        assert verify(folder, keys / "signers") == 0
        printed = capsys.readouterr().out
        assert f"{run.name}: as signed by alice@example.org, bob@example.org" in printed
        assert verify(folder, keys / "alice only") == 0
        assert "not accepted: " in capsys.readouterr().err
    assert not signed(run, 2).exists()


def forge(path: Path) -> None:
    bad = path.read_bytes()
    bad = bad.replace(b"UNJUDGED", b"PASS") if b"UNJUDGED" in bad else bad + b" "
    path.write_bytes(bad)


def forged_signature(
    folder: Path, keys: Path, name: str = "alice", **changes: Any
) -> None:
    """Sign what is there with ssh-keygen, as no kit does: a statement that lists each file.

    `changes` are other fields of the predicate.
    """
    path = folder / "statement.json"
    statement = json.loads(path.read_text())
    for old in folder.glob("statement.json*"):
        old.unlink()
    statement["subject"] = [
        {
            "name": name,
            "digest": {"sha256": sha256(whole).hexdigest()},
            "annotations": {"length": len(whole)},
        }
        for name, whole in sorted(content(folder).items())
    ]
    statement["predicate"] |= changes.pop("predicate", changes)
    path.write_text(json.dumps(statement | changes.get("statement", {})))
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", keys / name, "-n", "proofmark-run", path]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.fault("product-forged")
def test_each_forged_product_is_named_and_neither_signed_nor_verified(
    run_of_all: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of_all
    names = [f"{product(run, pattern).relative_to(run)}" for pattern in PRODUCTS[:-1]]
    for name in names:
        forge(run / name)
    assert sign(run, keys) == 3
    said = capsys.readouterr().err
    for name in names:
        assert f"found {name}: another content" in said
        forge(signed(run) / name)
    assert verify(run, keys / "signers") == 1
    said = capsys.readouterr().out
    for name in names:
        assert f"{name}: " in said
    forged_signature(signed(run), keys)
    assert verify(run, keys / "signers") == 1
    said = capsys.readouterr().out
    for name in names:
        assert f"{name}: another content" in said
    assert sign(signed(run), keys, "bob") == 3


@pytest.mark.fault("product-forged")
@pytest.mark.parametrize("name", ["verdict.json", "report.json", "junit.xml"])
def test_one_forged_product_is_neither_signed_nor_verified(
    run: Path, keys: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    forge(run / name)
    assert sign(run, keys) == 3
    forge(signed(run) / name)
    assert verify(run, keys / "signers") == 1
    assert f"{name}: " in capsys.readouterr().out
    forged_signature(signed(run), keys)
    assert verify(run, keys / "signers") == 1
    assert sign(signed(run), keys, "bob") == 3


@pytest.mark.fault("product-forged")
def test_a_plot_of_no_evidence_is_not_signed(
    run: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "figures").mkdir(exist_ok=True)
    (run / "figures/best.svg").write_text("{}")
    assert sign(run, keys) == 3
    assert "found figures/best.svg: no such file is made" in capsys.readouterr().err


@pytest.mark.fault("verdict-edited")
def test_a_run_whose_written_verdict_differs_is_not_signed(
    run: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run / "verdict.json"
    before = content(signed(run))
    path.unlink()
    assert sign(run, keys) == 3
    assert "found verdict.json: missing" in capsys.readouterr().err
    assert content(signed(run)) == before
    assert not [*(run / "signed").glob(".new-*")]
    (run / "report.json").unlink()
    assert sign(run, keys) == 3
    assert "report.json: found no such file" in capsys.readouterr().err
    assert main(["report", f"{run}"]) == 0
    assert sign(run, keys) == 0


def test_a_report_of_another_version_is_not_signed(
    run: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run / "report.json"
    made = json.loads(path.read_text())
    made["versions"]["numpy"] = "1.0"
    path.write_text(json.dumps(made))
    assert sign(run, keys) == 3
    assert "written by other versions: numpy 1.0" in capsys.readouterr().err


@pytest.mark.fault("run-unfinished")
def test_an_unfinished_run_is_not_signed(
    tmp_path: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_kit(tmp_path).run()
    execute(made, "none", lambda line: None)
    shutil.rmtree(execution(made.folder / "steps/0002-fake-2"))
    assert main(["stage", "collect", f"{made.folder}"]) in (0, 1)
    assert main(["report", f"{made.folder}"]) == 0
    assert sign(made.folder, keys) == 3
    assert "found unfinished: 1 of 2 steps are missing" in capsys.readouterr().err


def test_unsigned_or_by_a_stranger_is_bad_input(
    run: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(run, keys / "purpose") == 3
    strangers = tmp_path / "strangers"
    strangers.write_text(f"mallory@example.org {(keys / 'mallory.pub').read_text()}")
    assert verify(run, strangers) == 3
    assert "unknown signer" in capsys.readouterr().err
    assert verify(run, tmp_path / "nowhere") == 3
    (signed(run) / "statement.json.sig").write_text("nonsense")
    assert verify(run, keys / "signers") == 3
    (signed(run) / "statement.json.sig").unlink()
    assert verify(run, keys / "signers") == 3
    shutil.rmtree(run / "signed")
    capsys.readouterr()
    assert verify(run, keys / "signers") == 3
    assert "nothing is signed" in capsys.readouterr().err


def test_a_list_made_to_fit_is_seen(run: Path, keys: Path) -> None:
    folder = signed(run)
    signature = (folder / "statement.json.sig").read_bytes()
    (folder / "report.html").write_text("PASS")
    forged_signature(folder, keys, "mallory")
    assert verify(run, keys / "signers") == 3
    (folder / "statement.json.sig").write_bytes(signature)
    assert verify(run, keys / "signers") == 3


def test_signers_from_inside_the_acceptance_are_refused(run: Path, keys: Path) -> None:
    inside = signed(run) / "signers"
    inside.write_text((keys / "signers").read_text())
    assert verify(run, inside) == 3


def test_a_missing_key_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sign", f"{run}", "--key", "nowhere"]) == 3
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.fault("link-leaves-run")
@pytest.mark.parametrize(
    "name", ["statement.json", "statement.json.sig", "report.html", "evidence/0001.tar"]
)
def test_a_link_in_place_of_a_file_is_refused(run: Path, keys: Path, name: str) -> None:
    path = signed(run) / name
    path.rename(run.parent / "moved")
    path.symlink_to(run.parent / "moved")
    assert verify(run, keys / "signers") in (1, 3)


@pytest.mark.fault("key-revoked")
@pytest.mark.parametrize("form", ["list", "krl"])
def test_a_revoked_key_is_refused(
    run: Path, keys: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control is the revocation of another key."""
    command = ["verify", f"{run}", "--signers", f"{keys / 'signers'}", "--revoked"]
    assert main([*command, f"{keys / f'{form} of mallory'}"]) == 0
    capsys.readouterr()
    assert main([*command, f"{keys / f'{form} of alice'}"]) == 3
    printed = capsys.readouterr()
    assert "--revoked: found" in printed.err
    assert "UNJUDGED" not in printed.out
    assert main([*command, f"{keys / 'nowhere'}"]) == 3
    inside = signed(run) / "krl"
    inside.write_bytes((keys / "krl of mallory").read_bytes())
    assert main([*command, f"{inside}"]) == 3


@pytest.mark.fault("key-revoked")
@pytest.mark.parametrize(("name", "code"), [("expired", 3), ("not yet", 3), ("now", 0)])
def test_a_key_is_accepted_only_during_its_validity(
    run: Path, keys: Path, name: str, code: int
) -> None:
    assert verify(run, keys / name) == code


def test_a_trace_does_not_change_what_is_signed(run_of_all: Path, keys: Path) -> None:
    for words in (
        ["sign", f"{run_of_all}", "--key", f"{keys / 'bob'}"],
        ["verify", f"{run_of_all}", "--signers", f"{keys / 'signers'}"],
    ):
        command = [tool("proofmark"), "-v", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "ssh-keygen" in done.stderr
