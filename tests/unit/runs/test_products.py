"""A signature is of files that the raw outputs give: each product and input is compared."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import seal
from tests.fixtures.kit import FAKE, execution, make_kit
from tests.folders import let_all_enter

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute
from proofmark.report import products
from proofmark.runs import checksums
from proofmark.runs.anchors import NOT_ANCHORED
from proofmark.runs.format import Identity, add_input
from proofmark.runs.format import write_identity as write_start
from proofmark.runs.run import open_run

PRODUCTS = (
    *("report.html", "summary.html", "summary.pdf", "junit.xml", "records.parquet", "rma.csv"),
    *("verdict.json", "claims.json", "figures/*.csv", "figures/*.svg", "figures/*.png"),
    "nodes/*.json",
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
    folder = tmp_path_factory.mktemp("keys")
    key = f"{folder / 'alice'}"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    (folder / "signers").write_text(f"alice@example.org {(folder / 'alice.pub').read_text()}")
    return folder


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(autouse=True)
def own_state(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state folder is that of this module, for root and for another user."""
    monkeypatch.setenv("PROOFMARK_STATE", f"{state}")
    monkeypatch.setenv("XDG_STATE_HOME", f"{state}")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    """Return the folder of a signed run with a summary in Korean, which no test changes."""
    kit = make_kit(tmp_path_factory.mktemp("original"))
    kit.case(**PLOTTED)
    made = kit.run()
    execute(made, "none", lambda line: None)
    assert main(["stage", "collect", f"{made.folder}"]) == 0
    assert main(["report", f"{made.folder}", "--summary", "--language", "ko"]) == 0
    assert main(["sign", f"{made.folder}", "--key", f"{keys / 'alice'}"]) == 0
    return made.folder


@pytest.fixture
def run(tmp_path: Path, original: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "runs" / original.name))


def sign(run: Path, keys: Path) -> int:
    return main(["sign", f"{run}", "--key", f"{keys / 'alice'}"])


def verify(run: Path, keys: Path) -> int:
    return main(["verify", f"{run}", "--signers", f"{keys / 'signers'}"])


def forged_signature(run: Path, keys: Path) -> None:
    """Sign what is there, as a kit without these checks does."""
    checksums.sign(run, keys / "alice", checksums.whole_checksums(run))


def product(run: Path, pattern: str) -> Path:
    """Return a product of a run; the names of plots and nodes are not known."""
    return min(run.glob(pattern))


def test_control_the_run_is_signed_and_verified(
    run: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sign(run, keys) == 0
    assert f"not checked: {NOT_ANCHORED}" in capsys.readouterr().err
    assert verify(run, keys) == 0


def test_each_product_is_in_the_list_of_this_test(run: Path) -> None:
    """A product of which no test forges the content fails here."""
    made = json.loads((run / "report.json").read_text())
    assert made["language"] == "ko"
    names = products.products_of(open_run(run)).digests
    listed = {product(run, pattern).suffix for pattern in PRODUCTS}
    assert {Path(name).parts[0] for name in names} == {Path(each).parts[0] for each in PRODUCTS}
    assert {Path(name).suffix for name in names} <= listed


def forge(path: Path) -> None:
    content = path.read_bytes()
    bad = content.replace(b"UNJUDGED", b"PASS") if b"UNJUDGED" in content else content + b" "
    path.write_bytes(bad)


@pytest.mark.fault("product-forged")
def test_each_forged_product_is_named_and_neither_signed_nor_verified(
    run: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [product(run, pattern) for pattern in PRODUCTS]
    names = [f"{path.relative_to(run)}" for path in paths]
    for path in paths:
        forge(path)
    assert verify(run, keys) == 1
    printed = capsys.readouterr().out
    assert [name for name in names if f"{name}: changed" not in printed] == []
    assert sign(run, keys) == 3
    printed = capsys.readouterr().err
    assert [name for name in names if f"found {name}: another content" not in printed] == []
    forged_signature(run, keys)
    assert verify(run, keys) == 1
    printed = capsys.readouterr().out
    assert [name for name in names if f"{name}: another content" not in printed] == []
    rest = set(names) - {"summary.html", "report.json"}
    for name in rest:
        (run / name).unlink()
    (run / "summary.html").write_text("PASS")  # a run without a summary has none to compare
    assert sign(run, keys) == 3
    printed = capsys.readouterr().err
    assert [name for name in rest if f"found {name}: missing" not in printed] == []


@pytest.mark.fault("product-forged")
@pytest.mark.parametrize("pattern", ["report.html", "summary.pdf", "figures/*.png"])
def test_one_forged_product_is_enough(run: Path, keys: Path, pattern: str) -> None:
    forge(product(run, pattern))
    assert sign(run, keys) == 3


@pytest.mark.fault("product-forged")
@pytest.mark.parametrize("name", ["figures/best.svg", "nodes/n9.json"])
def test_a_product_of_no_output_is_not_signed(
    run: Path, keys: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / name).write_text("{}")
    assert sign(run, keys) == 3
    assert f"found {name}: no such file is made" in capsys.readouterr().err


def test_the_checksums_are_written_again_and_other_files_are_named(
    run: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "SHA256SUMS").write_text(f"{'0' * 64}  report.html\n")
    (run / "letter.html").write_text("PASS")
    assert main(["report", f"{run}"]) == 0  # the digest of the evidence is in the summary
    capsys.readouterr()
    assert sign(run, keys) == 0
    expected = "not checked: letter.html: not compared, because the kit does not write it"
    assert expected in capsys.readouterr().err.splitlines()
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=run, check=True)


def _without_made(run: Path) -> None:
    (run / "report.json").unlink()


def _of_another_version(run: Path) -> None:
    path = run / "report.json"
    made = json.loads(path.read_text())
    made["versions"]["proofmark"] = "0.0.1"
    path.write_text(json.dumps(made))


@pytest.mark.parametrize("change", [_without_made, _of_another_version])
def test_products_of_another_version_are_named(
    run: Path, keys: Path, change: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    change(run)
    assert sign(run, keys) == 3
    assert "not written again" in capsys.readouterr().err
    forged_signature(run, keys)
    assert verify(run, keys) == 0
    assert "not checked: the report and its files: not written again: " in capsys.readouterr().err


def _edit_limits(run: Path) -> None:
    site = run / "inputs/site.json"
    site.write_text(site.read_text().replace('"family_level": 0.01', '"family_level": 0.02'))


def write_identity(run: Path) -> None:
    """Write ``run.json`` anew, as the run user can."""
    write_start(run)
    if (run / "software.json").exists():
        add_input(run, run / "software.json")


def _edit_limits_and_identity(run: Path) -> None:
    _edit_limits(run)
    write_identity(run)


def _remove_identity(run: Path) -> None:
    _edit_limits(run)
    (run / "run.json").unlink()


def _older_format(run: Path) -> None:
    _edit_limits_and_identity(run)
    path = run / "run.json"
    known = Identity.model_validate_json(path.read_text())
    path.write_text(known.model_copy(update={"format": 1}).sealed().model_dump_json())


def _remove_digests(run: Path) -> None:
    folder = execution(run / "steps/0001-fake-1")
    (folder / "stdout").write_text((folder / "stdout").read_text().replace("100", "900"))
    (folder / "outputs.sha256").unlink()


@pytest.mark.fault("input-edited")
@pytest.mark.parametrize("edit", [_edit_limits, _remove_identity, _older_format, _remove_digests])
def test_no_check_is_switched_off_by_a_missing_or_an_older_file(
    run: Path, keys: Path, edit: Callable[[Path], None]
) -> None:
    edit(run)
    main(["report", f"{run}"])
    if edit is _remove_digests:  # the edited output is INVALID, so the run is not a PASS
        assert main(["verdict", f"{run}"]) == 2
        return
    assert sign(run, keys) == 3
    if edit is not _edit_limits:
        with pytest.raises(BadInput):
            forged_signature(run, keys)


@pytest.mark.fault("input-edited")
def test_inputs_that_fit_a_new_run_json_are_refused_by_the_state_of_the_site(
    run: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control is the first signature: then the inputs are those of the start."""
    assert main(["stage", "keep-inputs", f"{run}"]) == 0
    assert sign(run, keys) == 0
    assert NOT_ANCHORED not in capsys.readouterr().err
    assert verify(run, keys) == 0
    _edit_limits_and_identity(run)
    assert main(["report", f"{run}", "--language", "ko"]) == 0
    assert sign(run, keys) == 3
    line = "inputs/site.json: changed after the start of the run"
    assert line in capsys.readouterr().err
    forged_signature(run, keys)
    assert verify(run, keys) == 1
    assert line in capsys.readouterr().out
    assert main(["stage", "keep-inputs", f"{run}"]) == 3
    (run / "inputs/benchmarks/new.yml").write_text("title: x\n")
    write_identity(run)
    assert main(["stage", "keep-inputs", f"{run}"]) == 3
    assert "inputs/benchmarks/new.yml: added after the start" in capsys.readouterr().err


@pytest.mark.fault("input-edited")
def test_the_programs_are_kept_when_they_are_recorded(
    run: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = run / "software.json"
    content = programs.read_text()
    programs.unlink()
    write_identity(run)
    assert main(["stage", "keep-inputs", f"{run}"]) == 0
    programs.write_text(content)
    write_identity(run)
    assert main(["stage", "keep-inputs", f"{run}"]) == 0
    programs.write_text(content.replace("{", "{ ", 1))
    write_identity(run)
    assert main(["report", f"{run}", "--language", "ko"]) == 0
    assert sign(run, keys) == 3
    assert "software.json: changed after the start" in capsys.readouterr().err


@pytest.mark.root
@pytest.mark.fault("input-edited")
def test_the_run_user_cannot_replace_the_digests_of_root(
    run: Path, keys: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (run, *run.rglob("*")):
        os.chown(path, 65534, 65534)
    let_all_enter(run.parent)
    assert main(["stage", "keep-inputs", f"{run}"]) == 0
    digest = hashlib.sha256(os.fsencode(run)).hexdigest()[:16]
    (kept,) = state.glob(f"*/inputs/{run.name}-{digest}.json")
    assert (kept.stat().st_uid, kept.stat().st_mode & 0o022) == (0, 0)
    assert sign(run, keys) == 0
    _edit_limits_and_identity(run)
    assert sign(run, keys) == 3
    assert "inputs/site.json: changed after the start of the run" in capsys.readouterr().err


@pytest.mark.fault("output-edited")
def test_an_output_that_was_sealed_again_is_found(
    run: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report of the first output is refused. With the state also a new report is refused."""
    assert main(["stage", "keep-inputs", f"{run}"]) == 0
    folder = execution(run / "steps/0001-fake-1")
    (folder / "stdout").write_text((folder / "stdout").read_text().replace("100", "90"))
    seal(folder)
    assert sign(run, keys) == 3
    assert "found report.html: another content" in capsys.readouterr().err
    assert main(["report", f"{run}", "--language", "ko"]) == 0
    assert sign(run, keys) == 3
    name = (folder / "outputs.sha256").relative_to(run)
    assert f"{name}: changed after the execution" in capsys.readouterr().err
    shutil.rmtree(folder)
    assert main(["stage", "keep-inputs", f"{run}"]) == 3
    assert f"{name}: removed after the execution" in capsys.readouterr().err


def test_a_further_execution_is_no_change(run: Path, keys: Path) -> None:
    assert main(["stage", "keep-inputs", f"{run}"]) == 0
    step = run / "steps/0001-fake-1"
    shutil.copytree(execution(step), execution(step, 2))
    assert main(["report", f"{run}", "--language", "ko"]) == 0
    assert sign(run, keys) == 0
    assert main(["stage", "keep-inputs", f"{run}"]) == 0
