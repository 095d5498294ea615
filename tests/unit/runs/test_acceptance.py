"""A signed acceptance stays valid, names each difference, and is what its evidence gives."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fixtures.kit import FAKE, carried_out, execution, make_kit
from tests.fixtures.place import open_kit
from tests.folders import ROOT, let_all_enter
from tests.forks import tool

import proofmark
from proofmark.cli.main import main
from proofmark.report import products
from proofmark.site.contract_document import Contract

NOBODY, OTHER = 65534, 65533
NOW = datetime(2026, 11, 28, tzinfo=UTC)
CONTRACT: dict[str, Any] = {
    "title": "T",
    "parties": {"buyer": "B", "supplier": "S"},
    "items": [
        {
            **{"number": "1", "text": "a rate", "case": "fake", "metric": "rate"},
            **{"value": 1, "unit": "MB/s", "at_least": 1},
        }
    ],
}
PRODUCTS = (
    *("report.html", "records.parquet", "rma.csv"),
    *("verdict.json", "figures/*.csv", "figures/*.svg", "figures/*.png"),
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
        "starts": "fake",
        "untitled": True,
        "facts": [r"size (?P<bytes>\d+)"],
        "keys": {"(?P<key>rate) (?P<value>.*)": {"rate": "bandwidth"}},
        "require": {"END": "END"},
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


def keygen(*words: str | Path) -> bytes:
    """Return what ssh-keygen prints."""
    return subprocess.run(["ssh-keygen", *words], check=True, capture_output=True).stdout


def signed_run(folder: Path, keys: Path, *options: str, **case: Any) -> Path:
    """Return the folder of a signed run, whose report has `options` besides the language."""
    kit = make_kit(folder)
    kit.case(**case)
    made = carried_out(kit.run())
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
    (execution(run / "workdir/steps/0001-fake-1") / "stdout").write_text("rate 1000\n")
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
    monkeypatch.setattr(products, "__version__", "99.0")
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


def forged_signature(folder: Path, keys: Path, name: str = "alice", **changes: Any) -> None:
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
    of_statement = changes.pop("statement", {})
    statement["predicate"] |= changes
    statement |= of_statement
    path.write_text(json.dumps(statement, indent=1, ensure_ascii=False) + "\n")
    keygen("-q", "-Y", "sign", "-f", keys / name, "-n", "proofmark-run", path)


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
@pytest.mark.parametrize("name", ["verdict.json", "report.json", "rma.csv"])
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
    made = carried_out(make_kit(tmp_path).run())
    shutil.rmtree(execution(made.folder / "workdir/steps/0002-fake-2"))
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


class Caller:
    """Calls the real command line as this user, or as another ordinary user."""

    def __init__(self, folder: Path, keys: Path, user: int | None) -> None:
        self.folder, self.user = folder, user
        self.program = tool("proofmark") if user is None else f"{open_kit()[1] / 'proofmark'}"
        self.keys = Path(shutil.copytree(keys, folder / "keys of the caller"))
        let_all_enter(folder)
        self.owns(folder)

    def owns(self, *folders: Path) -> None:
        """Make the caller the owner of folders and all that is in them."""
        user = self.user
        for path in folders if user is not None else ():
            subprocess.run(["chown", "-R", "-h", f"{user}:{user}", path], check=True)

    def call(self, *words: object, **more: Any) -> subprocess.CompletedProcess[str]:
        who: dict[str, Any] = {"user": self.user, "group": self.user, "extra_groups": []}
        options: dict[str, Any] = {**(who if self.user is not None else {}), **more}
        return subprocess.run(
            [self.program, *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HOME": f"{self.folder}"},
            cwd=self.folder,
            **options,
        )

    def sign(self, folder: Path, name: str = "bob") -> subprocess.CompletedProcess[str]:
        return self.call("sign", folder, "--key", self.keys / name)

    def verify(self, folder: Path, signers: str = "signers") -> subprocess.CompletedProcess[str]:
        return self.call("verify", folder, "--signers", self.keys / signers)


ANOTHER_USER = [pytest.mark.root, pytest.mark.rest("each command as another user, too")]


@pytest.fixture(params=["self", pytest.param("nobody", marks=ANOTHER_USER)])
def caller(request: pytest.FixtureRequest, tmp_path: Path, keys: Path, run: Path) -> Caller:
    """Return who calls the commands; the run is a run of this user."""
    return Caller(tmp_path, keys, NOBODY if request.param == "nobody" else None)


def test_control_each_caller_verifies_and_signs(caller: Caller, run: Path) -> None:
    assert caller.verify(run).returncode == 0
    done = caller.sign(run)
    assert (done.returncode, done.stdout) == (0, f"{signed(run)}/statement.json.2.sig\n")
    printed = caller.verify(run).stdout.splitlines()
    assert printed[0] == f"{run.name}: as signed by alice@example.org, bob@example.org"


@pytest.mark.fault("run-of-another-signature")
@pytest.mark.parametrize("what", ["copied", "renamed", "moved"])
def test_the_signature_of_another_run_is_refused(caller: Caller, run: Path, what: str) -> None:
    other = run.with_name("20260101T000000Z-local-other")
    if what == "copied":
        shutil.copytree(run, other, ignore=shutil.ignore_patterns("signed"))
        shutil.copytree(run / "signed", other / "signed")
    else:
        run.rename(other)
    if what == "moved":  # the run of one name, and the evidence and signature of another
        identity = json.loads((other / "run.json").read_text())
        other = other.rename(run)
        identity["run"] = "20260101T000000Z-local-other"
        (other / "run.json").write_text(json.dumps(identity))
    caller.owns(caller.folder)
    done = caller.verify(other)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"the signature of {run.name}; accepted: that of" in done.stderr
    assert caller.verify(signed(other)).stdout.startswith(f"{run.name}: as signed by alice")


@pytest.mark.fault("product-newer-than-signature")
def test_a_product_that_is_not_the_signed_one_is_named(caller: Caller, run: Path) -> None:
    for name in ("report.html", "verdict.json"):
        path = run / name
        path.write_text(path.read_text().replace("UNJUDGED", "PASS"))
    (run / "figures/more.svg").write_text("PASS")
    done = caller.verify(run)
    assert done.returncode == 5
    lines = done.stdout.splitlines()
    for name in ("report.html", "verdict.json", "figures/more.svg"):
        (line,) = (each for each in lines if each.startswith(f"{run}: {name}: "))
        assert line.endswith(f"what was signed is in {signed(run)}")
    assert lines[-1].startswith("UNJUDGED: "), "the signed word"
    assert caller.verify(signed(run)).returncode == 0
    assert caller.sign(run).returncode == 3


def _only(folder: Path, *names: str) -> None:
    for path in folder.iterdir():
        if path.name not in names:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


SMUGGLED: dict[str, Callable[[Path], Any]] = {
    "page of an acceptance": lambda folder: (folder / "acceptance.json").write_text(
        '{"word": "PASS", "text": "20 of 20 items met", "runs": []}'
    ),
    "further page": lambda folder: (folder / "summary.html").write_text("PASS"),
    "page in a folder": lambda folder: (folder / "evidence/report.html").write_text("PASS"),
    "edited page": lambda folder: forge(folder / "report.html"),
    "edited verdict": lambda folder: forge(folder / "verdict.json"),
    "removed product": lambda folder: os.remove(folder / "rma.csv"),  # noqa: PTH107
    "further archive": lambda folder: (folder / "evidence/0002.tar").write_text("PASS"),
    "another contract": lambda folder: (folder / "contract.json").write_text("{}"),
    "no evidence": lambda folder: shutil.rmtree(folder / "evidence"),
    "shorter chain": lambda folder: (folder / "evidence/SHA256SUMS").write_text(""),
    "nothing but a page": lambda folder: _only(folder, "report.html", "statement.json"),
}


@pytest.mark.fault("statement-forged")
@pytest.mark.parametrize("what", SMUGGLED)
def test_what_the_evidence_does_not_give_is_refused(
    run: Path, keys: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Alice signed it by hand, with a statement that lists each file."""
    folder = signed(run)
    SMUGGLED[what](folder)
    forged_signature(folder, keys)
    assert sign(folder, keys, "bob") == 3
    no_evidence = what in ("no evidence", "shorter chain", "nothing but a page")
    assert verify(folder, keys / "signers") == (3 if no_evidence else 1)
    assert "as signed by" not in capsys.readouterr().out


@pytest.mark.fault("statement-forged")
def test_a_smuggled_page_is_refused_to_each_caller(caller: Caller, run: Path, keys: Path) -> None:
    SMUGGLED["page of an acceptance"](signed(run))
    forged_signature(signed(run), keys)
    caller.owns(run)
    assert caller.sign(signed(run)).returncode == 3
    done = caller.verify(run)
    assert done.returncode == 1
    assert "acceptance.json: no such file is made from the evidence" in done.stdout


UNTRUE: dict[str, tuple[int, dict[str, Any]]] = {
    "word": (1, {"word": "PASS"}),
    "counts": (1, {"counts": {"PASS": 2, "expected": 2, "measured": 2}}),
    "kinds": (1, {"kinds": {"contract": {"total": 9, "met": 9}}}),
    "site": (1, {"site": "other"}),
    "another run": (1, {"id": "20260101T000000Z-local-other"}),
    "runs": (1, {"runs": []}),
    "contract": (1, {"contract": 64 * "0"}),
    "kind": (3, {"kind": "summary"}),
    "kind of an acceptance": (3, {"kind": "acceptance"}),
    "further field": (3, {"note": "PASS"}),
    "nested field": (3, {"kinds": {"contract": {"total": 0, "note": "PASS"}}}),
    "form": (3, {"statement": {"_type": "https://in-toto.io/Statement/v9"}}),
    "predicate type": (3, {"statement": {"predicateType": "urn:proofmark:acceptance:99"}}),
}


@pytest.mark.fault("statement-forged")
@pytest.mark.parametrize("what", UNTRUE)
def test_a_statement_that_its_evidence_does_not_give_is_refused(
    run: Path, keys: Path, what: str
) -> None:
    code, changes = UNTRUE[what]
    forged_signature(signed(run), keys, **changes)
    assert verify(signed(run), keys / "signers") == code
    assert sign(signed(run), keys, "bob") == 3


def _length(folder: Path, length: int) -> None:
    path = folder / "statement.json"
    statement = json.loads(path.read_text())
    statement["subject"][0]["annotations"]["length"] = length
    path.write_text(json.dumps(statement, indent=1) + "\n")


def _a_word_before(folder: Path) -> None:
    """Write a key twice: people read the first, programs the last."""
    path = folder / "statement.json"
    text = path.read_text()
    path.write_text(text.replace('  "word": ', '  "word": "PASS",\n  "word": '))
    assert json.loads(path.read_text()) == json.loads(text)
    assert path.read_text() != text


@pytest.mark.fault("statement-forged")
@pytest.mark.parametrize(
    "change",
    [
        _a_word_before,
        lambda folder: _length(folder, -1),
        lambda folder: _length(folder, 1 << 70),
        lambda folder: (folder / "statement.json").write_text("{"),
        lambda folder: (folder / "statement.json").write_text(9999 * "["),
        lambda folder: (folder / "a b").write_text(""),
        lambda folder: os.mkfifo(folder / "pipe"),
        lambda folder: (folder / "link").symlink_to("report.html"),
        lambda folder: (folder / "a/b/c/d/e").mkdir(parents=True),
    ],
)
def test_a_damaged_statement_or_folder_is_refused(
    run: Path, keys: Path, change: Callable[[Path], Any]
) -> None:
    folder = signed(run)
    change(folder)
    assert sign(folder, keys, "bob") == 3
    (folder / "statement.json.sig").unlink()
    keygen("-Y", "sign", "-f", keys / "alice", "-n", "proofmark-run", folder / "statement.json")
    assert verify(folder, keys / "signers") == 3


def versions(**changes: str) -> dict[str, Any]:
    """Return the field of a statement with other versions."""
    made = json.loads(
        products.Made(written=NOW, language="en", versions=products.versions()).model_dump_json()
    )
    made["versions"] |= changes
    return {"made": made}


@pytest.mark.fault("statement-forged")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"numpy": "1.26.4"}, 6),
        ({"numpy": "2.0.0rc1"}, 6),
        ({"proofmark": "99.0"}, 3),
        ({"proofmark": "0.0.1"}, 3),
        ({"proofmark": ""}, 3),
        ({"numpy": "another"}, 3),
        ({"numpy": "1.0 and PASS"}, 3),
        ({"more": "1.0"}, 3),
    ],
)
def test_only_versions_that_exist_are_a_reason_not_to_judge(
    run: Path, keys: Path, changes: dict[str, str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    forged_signature(signed(run), keys, **versions(**changes))
    capsys.readouterr()
    assert verify(signed(run), keys / "signers") == code
    printed = capsys.readouterr()
    ((name, version),) = changes.items()
    if code == 3:
        found = (version or "nothing") if name == "proofmark" else f"{name} {version}"
        assert f"proofmark: versions: found {found}; accepted: " in printed.err
    else:
        assert printed.out.endswith(f"not judged again here: judged by numpy {version}\n")
    assert sign(signed(run), keys, "bob") == 3


def test_the_releases_are_those_of_the_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [*reversed(proofmark.RELEASES)] == re.findall(r"^## (\d\S*)$", text, re.MULTILINE)
    assert proofmark.RELEASES[-1] == proofmark.__version__


@pytest.mark.fault("one-key-two-signers")
class TestOneKeyIsOneSigner:
    def signers(self, tmp_path: Path, *lines: str) -> Path:
        path = tmp_path / "signers of a site"
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    def test_a_second_signature_by_one_key_is_not_added(self, run: Path, keys: Path) -> None:
        before = content(signed(run))
        assert sign(run, keys) == sign(signed(run), keys) == 0
        assert content(signed(run)) == before

    def test_one_key_under_two_names(
        self, run: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        key = (keys / "alice.pub").read_text().rstrip()
        signature = signed(run) / "statement.json.sig"
        shutil.copyfile(signature, signed(run) / "statement.json.2.sig")
        signers = self.signers(tmp_path, f"alice@example.org {key}", f"bob@example.org {key}")
        capsys.readouterr()
        assert verify(signed(run), signers) == 0
        printed = capsys.readouterr()
        assert f"{run.name}: as signed by alice@example.org\n" in printed.out
        assert "a second signature by the key of alice@example.org, SHA256:" in printed.err

    @pytest.mark.parametrize(
        "name", ["*", "*@example.org", "alice?example.org", "!bob,*", "alice,*"]
    )
    def test_a_pattern_is_no_signer(self, run: Path, keys: Path, tmp_path: Path, name: str) -> None:
        signers = self.signers(tmp_path, f"{name} {(keys / 'alice.pub').read_text().rstrip()}")
        assert verify(signed(run), signers) == 3

    def test_a_certificate_is_no_signer(
        self, run: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name in ("mallory", "mallory.pub"):
            shutil.copy(keys / name, tmp_path)
        key = tmp_path / "mallory"
        keygen("-q", "-s", keys / "bob", "-n", "alice@example.org", "-I", "id", f"{key}.pub")
        statement = signed(run) / "statement.json"
        (signed(run) / "statement.json.sig").unlink()
        keygen("-Y", "sign", "-f", f"{key}-cert.pub", "-n", "proofmark-run", statement)
        authority = (keys / "bob.pub").read_text().rstrip()
        signers = self.signers(tmp_path, f"alice@example.org cert-authority {authority}")
        find = ("-Y", "find-principals", "-f", signers, "-s", f"{statement}.sig")
        assert keygen(*find), "the control"
        capsys.readouterr()
        assert verify(signed(run), signers) == 3
        assert "the key of a certificate" in capsys.readouterr().err
        assert main(["sign", f"{run}", "--key", f"{key}-cert.pub"]) == 3

    def test_a_signer_of_the_contract_who_did_not_sign_is_named(
        self, tmp_path: Path, keys: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        lines = [
            f"{name}@example.org {(keys / f'{name}.pub').read_text().rstrip()}"
            for name in ("alice", "bob", "mallory")
        ]
        contract = Contract.model_validate({**CONTRACT, "signers": lines})
        kit = make_kit(tmp_path)
        kit.case()
        made = carried_out(kit.run(site=kit.site().model_copy(update={"contract": contract})))
        assert main(["stage", "collect", f"{made.folder}"]) == 0
        main(["report", f"{made.folder}"])
        assert sign(made.folder, keys) == sign(made.folder, keys, "mallory") == 0
        capsys.readouterr()
        assert verify(made.folder, keys / "signers") == 0
        printed = capsys.readouterr()
        assert "not signed by: bob@example.org, mallory@example.org\n" in printed.out
        assert "not accepted: " in printed.err and "unknown signer" in printed.err

    @pytest.mark.parametrize(
        "line", ["* KEY", "a,b KEY", "a? KEY", '"a b" KEY', "a cert-authority KEY", "KEY", "# KEY"]
    )
    def test_a_contract_names_one_person_for_each_key(self, keys: Path, line: str) -> None:
        key = (keys / "alice.pub").read_text().rstrip()
        good = {
            **CONTRACT,
            "signers": [f"a {key}", f'b namespaces="x" {(keys / "bob.pub").read_text()}'],
        }
        assert len(Contract.model_validate(good).keys) == 2
        with pytest.raises(ValidationError, match="one name and one public key"):
            Contract.model_validate({**CONTRACT, "signers": [line.replace("KEY", key)]})
        with pytest.raises(ValidationError, match="has two names"):
            Contract.model_validate({**CONTRACT, "signers": [f"a {key}", f"b {key}"]})


@pytest.mark.rest("a signature for each folder that is weak")
@pytest.mark.root
@pytest.mark.fault("signed-by-another-user")
@pytest.mark.parametrize("weak", ["folder", "file", "archive", "above", "mode", "signers"])
def test_what_another_user_can_change_is_refused(caller: Caller, run: Path, weak: str) -> None:
    assert caller.verify(run).returncode == 0
    places = {
        "folder": signed(run),
        "file": signed(run) / "report.html",
        "archive": signed(run) / "evidence/0001.tar",
        "above": run.parent,
        "mode": signed(run),
        "signers": caller.keys / "signers",
    }
    path = places[weak]
    if weak == "mode":
        path.chmod(0o777)
    else:
        os.chown(path, OTHER, OTHER)
    calls = [caller.verify(run)]
    calls += [] if weak == "signers" else [caller.sign(signed(run)), caller.sign(run)]
    for done in calls:
        assert (done.returncode, done.stdout) == (3, "")
        assert f"{path}: " in done.stderr
        assert "other users can write" in done.stderr or f"of the user {OTHER}" in done.stderr
    copied = caller.folder / "a copy of its own" / "0001"
    shutil.copytree(signed(run), copied)
    caller.owns(copied.parent)
    if weak != "signers":
        copied.chmod(0o755)
        assert caller.verify(copied).returncode == 0


KILLS = """
import os, signal, sys
from proofmark.cli.main import main
left = int(sys.argv[1])

def watch(event, arguments):
    global left
    if event in ("os.rename", "os.link", "os.mkdir", "os.chmod", "subprocess.Popen") or (
        event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_WRONLY
    ):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
code = main(sys.argv[2:])
print("events left:", left)
sys.exit(code)
"""


@pytest.mark.rest("a kill at each write")
@pytest.mark.fault("signing-stopped")
def test_after_a_kill_the_next_call_signs(run: Path, keys: Path, tmp_path: Path) -> None:
    """The process is killed before each of its changes of files that a number chooses."""
    shutil.rmtree(run / "signed")

    def killed(number: int) -> subprocess.CompletedProcess[str]:
        words = ["sign", f"{run}", "--key", f"{keys / 'alice'}"]
        command = [sys.executable, "-c", KILLS, f"{number}", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = killed(9999)
    assert done.returncode == 0, done.stderr
    events = 9999 - int(done.stdout.split()[-1])
    shutil.rmtree(run / "signed")
    for number in sorted({1, 2, 4, events // 2, events - 4, events - 3, events - 2, events - 1}):
        assert killed(number).returncode == -signal.SIGKILL, number
        assert verify(run, keys / "signers") in (0, 3)
        assert [path.name for path in signed(run).parent.glob("0*")] in ([], ["0001"])
    assert sign(run, keys) == 0
    assert verify(run, keys / "signers") == 0
    assert sorted(path.name for path in (run / "signed").iterdir()) == ["0001", "lock"]


@pytest.mark.fault("signing-stopped")
def test_a_second_signature_that_was_killed_leaves_the_first(run: Path, keys: Path) -> None:
    (signed(run) / "statement.json.2.sig.new").write_text("half")
    assert verify(run, keys / "signers") == 0
    assert sign(run, keys, "bob") == 0
    assert not (signed(run) / "statement.json.2.sig.new").exists()


@pytest.mark.fault("signing-stopped")
def test_a_full_disk_leaves_nothing(caller: Caller, run: Path) -> None:
    """The largest size of a file stands for the space: ``errno`` differs, and the way is one."""
    largest = (run / "evidence/0001.tar").stat().st_size // 4
    before = content(run / "signed")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    page = run / "report.html"
    page.write_text(page.read_text() + " ")
    assert caller.call("report", run).returncode in (0, 4)
    done = caller.call("sign", run, "--key", caller.keys / "bob", preexec_fn=limit)
    assert done.returncode == 3, done.stdout + done.stderr
    assert content(run / "signed") == before
    assert not [*(run / "signed").glob(".new-*")]
    assert caller.sign(run).returncode == 0


@pytest.mark.root
@pytest.mark.fault("signing-stopped")
def test_a_read_only_folder_is_named(run: Path, keys: Path, tmp_path: Path) -> None:
    caller = Caller(tmp_path, keys, NOBODY)
    for folder in (signed(run), run / "signed"):
        folder.chmod(0o555)
    for folder in (run, signed(run)):
        done = caller.sign(folder)
        assert done.returncode == 3 and "cannot be written" in done.stderr
        assert caller.verify(folder).returncode == 0
    for folder in (signed(run), run / "signed"):
        folder.chmod(0o755)
    assert caller.sign(run).returncode == 0


@pytest.mark.fault("signed-folder-too-large")
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("name", ["report.html", "evidence/0001.tar", "more.bin", "statement.json"])
def test_a_sparse_file_costs_nothing(
    run: Path, keys: Path, name: str, capsys: pytest.CaptureFixture[str], *, listed: bool
) -> None:
    path = signed(run) / name
    path.touch()
    path.chmod(0o644)
    os.truncate(path, 1 << 42)
    if listed and name != "statement.json":
        statement = json.loads((signed(run) / "statement.json").read_text())
        about = {"name": name, "digest": {"sha256": 64 * "0"}, "annotations": {"length": 1 << 42}}
        others = [each for each in statement["subject"] if each["name"] != name]
        statement["subject"] = [*others, about]
        (signed(run) / "statement.json").write_text(json.dumps(statement))
    assert verify(signed(run), keys / "signers") in (1, 3)
    assert sign(signed(run), keys, "bob") == 3
    assert "as signed" not in capsys.readouterr().out
