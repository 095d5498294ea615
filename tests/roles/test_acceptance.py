"""acceptance.yml as a whole, with cases that take no time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes import running
from tests.roles.kit import NAP, Kit, assert_runnable_by, processes_of

pytestmark = pytest.mark.slow


@pytest.mark.fault("check-mode")
@pytest.mark.fault("interrupt-sigint")
@pytest.mark.fault("interrupt-sigterm")
def test_flow_ends_with_a_verdict_and_its_stages_work_alone(kit: Kit) -> None:
    """The control of what happens to it below; the fixture looks for children left behind."""
    played = kit.play("acceptance.yml")
    assert played.code == 0, played.output
    assert kit.verdict()["counts"] == {"PASS": 2, "FAIL": 0, "INVALID": 0, "UNJUDGED": 0}
    assert played.says(f"report: {kit.run()}/report.html; next: proofmark sign runs/")
    assert played.says("site: local, nodes: 1, BMCs: none")

    whens = kit.whens()
    stages = [f"playbooks/{stage}.yml" for stage in ("build", "scratch", "run", "collect")]
    again = kit.play(*stages, "-e", f"run_id={kit.run().name}")
    assert (again.code, again.recap["changed"]) == (0, 0), again.output
    assert kit.whens() == whens
    (kit.run() / "report.html").unlink()
    key, signers = signing_key(kit.folder.parent)
    named = ("-e", f"run_id={kit.run().name}", "-e", f"signing_key={key}")
    again = kit.play("playbooks/report.yml", *named)
    assert (again.code, again.recap["changed"]) == (0, 2), again.output
    assert_signed(kit, signers)
    assert len(list((kit.folder / "runs").glob("*Z-*"))) == 1


def signing_key(folder: Path) -> tuple[Path, Path]:
    """Make an ssh key in `folder`; return it, and the file that names it as a signer."""
    key, signers = folder / "key", folder / "signers"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)]
    subprocess.run(make, check=True)
    signers.write_text(f"chief@example.org {key.with_suffix('.pub').read_text()}")
    return key, signers


def assert_signed(kit: Kit, signers: Path) -> None:
    """Check that the playbook's signature holds, and that one byte more in an output breaks it."""
    verify = [str(Path(sys.executable).with_name("proofmark")), "verify", f"{kit.run()}"]
    verify += ["--signers", f"{signers}"]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(": ")[1:]) == (
        0,
        ["as chief@example.org signed it\n"],
    )
    output = next(kit.run().glob("steps/*/stdout"))
    with output.open("a", encoding="utf-8") as file:
        file.write("\n")
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{output.relative_to(kit.run())}: changed\n")


def test_report_is_written_first_then_the_play_fails(kit: Kit) -> None:
    assert "echo rate: 100" in NAP
    (kit.folder / "benchmarks/nap.yml").write_text(NAP.replace("rate: 100", "rate: 10"))
    played = kit.play("acceptance.yml")
    assert played.code == 2
    lines = [line.strip() for line in played.output.splitlines()]
    at = lines.index("FAIL: 0 PASS, 2 FAIL, 0 INVALID, 0 UNJUDGED; 2 of 2 steps measured")
    assert lines[at + 1].startswith("worst: FAIL nap rate (number=1 seconds=0) 10 MB/s: 0.111 × ")
    assert lines[at + 2].startswith(f"report: {kit.run()}/report.html; next: proofmark ")
    assert (kit.run() / "report.html").exists()


@pytest.mark.fault("check-mode")
def test_check_mode_says_what_would_happen_and_changes_no_file(kit: Kit) -> None:
    before = kit.files()
    played = kit.play("acceptance.yml", "--check", "--diff")
    assert played.code == 0, played.output
    assert kit.files() == before
    for words in (
        "would run: proofmark plan --create",
        "steps: 2",
        "nothing speaks against it; writing was not tried",
        "would run: proofmark execute",
        "would run: proofmark report",
    ):
        assert played.says(words)


@pytest.mark.fault("two-sites")
def test_second_site_is_refused_before_anything_is_done(kit: Kit) -> None:
    shutil.copytree(kit.folder / "inventory/local", kit.folder / "inventory/other")
    before = kit.files()
    sites = ["-i", "inventory/local", "-i", "inventory/other", "-l", "local"]
    played = kit.play("acceptance.yml", *sites)
    assert played.code == 2
    assert played.says("found 2 sites")
    assert played.says("exactly one site")
    assert kit.files() == before


@pytest.mark.fault("two-sites")
def test_either_site_alone_is_accepted(kit: Kit) -> None:
    """The control."""
    shutil.copytree(kit.folder / "inventory/local", kit.folder / "inventory/other")
    for site in ("local", "other"):
        played = kit.play("playbooks/validate.yml", "-i", f"inventory/{site}", "-l", "local")
        assert played.code == 0, played.output


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("sute=slow", "did you mean 'suite'?"),
        ("suite=slw", "did you mean 'slow'?"),
        ("strict=perhaps", "perhaps"),
    ],
)
def test_wrong_variables_are_refused_before_anything_is_done(
    kit: Kit, extra: str, words: str
) -> None:
    before = kit.files()
    played = kit.play("acceptance.yml", "-e", extra)
    assert played.code == 2
    assert played.says(words)
    assert kit.files() == before


def test_playbook_without_a_run_says_so(kit: Kit) -> None:
    played = kit.play("playbooks/report.yml", "-e", "run_id=none")
    assert played.code == 2
    assert played.says("no run there")


def terminate(process: subprocess.Popen[str]) -> None:
    process.terminate()


def interrupt(process: subprocess.Popen[str]) -> None:
    """Do what Ctrl-C does: the whole foreground process group gets the signal."""
    os.killpg(process.pid, signal.SIGINT)


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()


def stop_half_way(kit: Kit, stop: Callable[[subprocess.Popen[str]], None]) -> dict[str, str]:
    """Stop an acceptance during its second slow step; return the finished steps' when.json."""
    with running(kit.start("acceptance.yml", "-e", "suite=slow")) as process:
        wait_for(lambda: len(started(kit)) == 4, 600)
        stop(process)
        process.communicate(timeout=300)
    assert process.returncode != 0
    wait_for(lambda: processes_of(kit.folder) == [], 100)
    whens = kit.whens()
    assert len(whens) == 3
    return whens


def started(kit: Kit) -> list[Path]:
    return list(kit.run().glob("steps/*/started"))


@pytest.mark.root
def test_run_belongs_to_the_run_user(kit: Kit) -> None:
    kit.partition(run_user="nobody")
    (kit.folder / "runs").mkdir()
    shutil.chown(kit.folder / "runs", "nobody")
    assert_runnable_by("nobody")
    played = kit.play("acceptance.yml")
    assert played.code == 0, played.output
    steps = [*kit.run().glob("steps/*/*"), *kit.run().glob("report.html")]
    assert {path.owner() for path in steps} == {"nobody"}
    assert kit.scratch.owner() == "nobody"


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def goes_on(kit: Kit, whens: dict[str, str]) -> None:
    run = kit.run()
    played = kit.play("acceptance.yml", "-e", "suite=slow")
    assert played.code == 0, played.output
    assert kit.run() == run
    assert whens.items() <= kit.whens().items()
    assert kit.verdict()["counts"]["PASS"] == 4


@pytest.mark.fault("interrupt-sigint")
def test_ctrl_c_leaves_no_child_and_the_same_command_goes_on(kit: Kit) -> None:
    goes_on(kit, stop_half_way(kit, interrupt))


@pytest.mark.fault("interrupt-sigterm")
def test_sigterm_leaves_no_child_and_the_same_command_goes_on(kit: Kit) -> None:
    goes_on(kit, stop_half_way(kit, terminate))


@pytest.mark.fault("interrupt-sigterm")
def test_sigkill_leaves_no_child_either(kit: Kit) -> None:
    stop_half_way(kit, kill)
