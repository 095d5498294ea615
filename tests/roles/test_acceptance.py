"""acceptance.yml with cases that take no time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixtures.kit import write_contract
from tests.forks import tool
from tests.roles.kit import NAP, Kit, processes_of

pytestmark = pytest.mark.slow

SLOW_LIMIT = {
    "case": "nap",
    "metric": "rate",
    "where": {"seconds": 4},
    "source": "tender",
    "value": 90,
    "unit": "MB/s",
    "at_least": 1.0,
}
"""A limit of the contract for figures that only the suite slow has."""
MET, MISSED = "1 of 1 contract limits", "0 of 1 contract limits; 0 PASS"
IDLE = "not in this suite: limit nap rate (seconds=4), of slow"


@pytest.mark.core("the play of an acceptance")
@pytest.mark.fault("check-mode")
@pytest.mark.fault("interrupt-sigint")
@pytest.mark.fault("interrupt-sigterm")
def test_flow_ends_with_a_verdict_and_its_stages_work_alone(kit: Kit) -> None:
    """The control of the tests below; the fixture checks that no child is left.

    Tags select whole stages, which continue the newest run of the site. A run of another site, and
    a link that moves, change nothing.
    """
    kit.partition()
    write_contract(kit.folder / "inventory/local", [SLOW_LIMIT])
    first = kit.play("acceptance.yml", "--tags", "plan,build,scratch")
    assert first.code == 0, first.output
    assert first.output.count(f"{IDLE}\n") == 1
    assert (kit.run() / "software.json").exists() and not kit.whens()
    run = kit.run()
    (kit.folder / "runs/latest-other").symlink_to("gone")
    played = kit.play("acceptance.yml", "--skip-tags", "plan,build,scratch")
    assert played.code == 0, played.output
    assert played.output.count(f"runs/latest-local is {run}\n") == 1
    assert kit.run() == run
    assert kit.verdict()["counts"] == {"PASS": 2, "FAIL": 0, "INVALID": 0, "UNJUDGED": 0}
    assert played.printed(f"report: {kit.run()}/report.html; next: proofmark sign runs/")
    assert played.printed("site: local, nodes: 1")

    whens = kit.whens()
    (kit.run() / "report.html").unlink()
    key, signers = signing_key(kit.folder.parent)
    stages = [f"playbooks/{stage}.yml" for stage in ("build", "scratch", "run", "collect")]
    named = ("-e", f"run_id={kit.run().name}", "-e", f"signing_key={key}")
    again = kit.play(*stages, "playbooks/report.yml", *named)
    assert (again.code, again.recap["changed"]) == (0, 2), again.output  # report and signature
    assert kit.whens() == whens
    assert (kit.run() / "report.html").exists()
    assert len(list((kit.folder / "runs").glob("*Z-*"))) == 1
    assert_signed(kit, signers, f"PASS: {MET}; 2 PASS, 0 FAIL, 0 INVALID, 0 UNJUDGED")


def signing_key(folder: Path) -> tuple[Path, Path]:
    """Make an ssh key in `folder`; return the key, and the file that lists it as a signer."""
    key, signers = folder / "key", folder / "signers"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)]
    subprocess.run(make, check=True)
    signers.write_text(f"chief@example.org {key.with_suffix('.pub').read_text()}")
    return key, signers


def assert_signed(kit: Kit, signers: Path, verdict: str) -> None:
    """Check that this verdict is signed, and stays so after one byte more in an output."""
    verify = [tool("proofmark"), "verify", f"{kit.run()}"]
    verify += ["--signers", f"{signers}"]
    own = {**os.environ, **kit.environment}
    done = subprocess.run(verify, capture_output=True, text=True, check=False, env=own)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            f"{kit.run().name}: as signed by chief@example.org",
            f"{verdict}; 2 of 2 steps measured",
        ],
    )
    output = next(kit.run().glob("workdir/steps/*/execution-1/stdout"))
    with output.open("a", encoding="utf-8") as file:
        file.write("\n")
    assert subprocess.run(verify, capture_output=True, check=False, env=own).returncode == 0


@pytest.mark.root
def test_report_is_written_before_the_play_fails(kit: Kit) -> None:
    """The outputs belong to the run user, who cannot read the key of the user who signs."""
    assert "echo rate: 100" in NAP
    (kit.folder / "benchmarks/nap.yml").write_text(NAP.replace("rate: 100", "rate: 10"))
    kit.partition(run_user="nobody")
    key, signers = signing_key(kit.folder.parent)
    # The run user runs this Python, and cannot enter a closed checkout.
    played = kit.play("acceptance.yml", "-e", f"signing_key={key}", command=("env",))
    assert played.code == 2
    lines = [line.strip() for line in played.output.splitlines()]
    at = lines.index(f"FAIL: {MISSED}, 2 FAIL, 0 INVALID, 0 UNJUDGED; 2 of 2 steps measured")
    assert lines[at + 1].startswith("worst: FAIL nap rate (number=1 seconds=0) 10 MB/s: 0.111 × ")
    assert lines[at + 2].startswith(f"report: {kit.run()}/report.html; next: proofmark ")
    assert lines[-3:] == lines[at : at + 3], "below the recap"
    assert {path.owner() for path in kit.run().glob("workdir/steps/*/*")} == {"nobody"}
    assert (key.owner(), key.stat().st_mode & 0o777) == ("root", 0o600)
    assert {path.owner() for path in kit.run().rglob("*") if not path.is_symlink()} == {"root"}
    assert_signed(kit, signers, f"FAIL: {MISSED}, 2 FAIL, 0 INVALID, 0 UNJUDGED")
    assert kit.scratch.owner() == "nobody"


@pytest.mark.fault("two-sites")
def test_second_site_is_refused_before_anything_is_done(kit: Kit) -> None:
    shutil.copytree(kit.folder / "inventory/local", kit.folder / "inventory/other")
    before = kit.files()
    sites = ["-i", "inventory/local", "-i", "inventory/other", "-l", "local"]
    played = kit.play("acceptance.yml", *sites)
    assert played.code == 3
    assert played.printed("found 2 sites")
    assert played.printed("exactly one site")
    assert kit.files() == before


@pytest.mark.fault("two-sites")
def test_the_second_site_alone_is_accepted(kit: Kit) -> None:
    """The control. The first test of this file is the control for the first site."""
    kit.partition()
    write_contract(kit.folder / "inventory/local", [SLOW_LIMIT])
    shutil.copytree(kit.folder / "inventory/local", kit.folder / "inventory/other")
    played = kit.play("playbooks/validate.yml", "-i", "inventory/other", "-l", "local")
    assert played.code == 0, played.output
    assert played.output.count(f"{IDLE}\n") == 1


@pytest.mark.parametrize(
    ("extra", "words", "code"),
    [
        ("sute=slow strict=perhaps", "found an unknown variable, did you mean 'suite'?", 3),
        ("suite=slw", "did you mean 'slow'?", 2),
        ("suite=slow and more", "-e: found 'and more' without a name", 3),
    ],
)
def test_wrong_variables_are_refused_before_anything_is_done(
    kit: Kit, extra: str, words: str, code: int
) -> None:
    before = kit.files()
    played = kit.play("acceptance.yml", "-e", extra)
    assert played.code == code
    assert played.printed(words)
    assert kit.files() == before


def test_a_playbook_without_a_run_reports_it(kit: Kit) -> None:
    played = kit.play("playbooks/report.yml", "-e", "run_id=none")
    assert played.code == 2
    assert played.printed("not a run")


def terminate(process: subprocess.Popen[str]) -> None:
    process.terminate()


def interrupt(process: subprocess.Popen[str]) -> None:
    """Do what Ctrl-C does: the whole foreground process group gets the signal."""
    os.killpg(process.pid, signal.SIGINT)


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.2)  # most conditions read all processes


SLOW = ("acceptance.yml", "-e", "suite=slow")


def stop(process: subprocess.Popen[str], how: Callable[[subprocess.Popen[str]], None]) -> str:
    """Stop a play and return what it printed. It is an error if it has to be killed."""
    try:
        how(process)
        printed, _ = process.communicate(timeout=600)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0
    return printed


def in_the_last_step(kit: Kit, *play: str) -> subprocess.Popen[str]:
    """Start `play`, and wait until the last step of the run waits."""
    process = kit.start(*play)
    try:
        wait_for(lambda: any("[ 24 = 24 ]" in line for line in processes_of(kit.folder)), 1200)
    except AssertionError:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process


@pytest.mark.fault("interrupt-sigint")
@pytest.mark.fault("interrupt-sigterm")
@pytest.mark.fault("same-run-id")
def test_a_stopped_play_leaves_no_child_and_the_same_command_continues(kit: Kit) -> None:
    """While it continues, a second play of the same run is refused.

    With tee, in CI and under nohup the output of a play is no terminal: its progress appears in the
    pipe while the last step runs.
    """
    assert "sleep {seconds}" in NAP
    waits = f"while [ {{number}}{{seconds}} = 24 ] && [ ! -e {kit.folder}/go ]; do sleep 0.1; done"
    (kit.folder / "benchmarks/nap.yml").write_text(NAP.replace("sleep {seconds}", waits))
    temporary = kit.folder.parent / "temporary"
    kit = replace(kit, environment={**kit.environment, "ANSIBLE_LOCAL_TEMP": f"{temporary}"})
    whens: list[dict[str, str]] = []
    for how, play in (
        (interrupt, SLOW),
        (terminate, ("playbooks/run.yml",)),
        (kill, ("playbooks/run.yml",)),
    ):
        printed = stop(in_the_last_step(kit, *play), how)
        if how is interrupt:
            assert "the same command continues" in printed.splitlines()[-1]
        wait_for(lambda: processes_of(kit.folder) == [], 120)
        assert how is kill or not any(temporary.iterdir())
        whens.append(kit.whens())
    assert len(whens[0]) == 3
    assert whens[0] == whens[1] == whens[2]

    run = kit.run()
    first = kit.start(*SLOW)
    try:
        assert first.stdout
        # A loaded machine prints a line between the end of a step and the start of the next one.
        assert next((line for line in first.stdout if "3/4 steps · running 0004-nap" in line), "")
        wait_for(lambda: len([*run.glob("workdir/steps/*/unfinished-*")]) == 4, 120)
        assert first.poll() is None
        *interrupted, running = sorted(run.glob("workdir/steps/*/unfinished-*"))
        assert running.name == "unfinished-4"
        second = kit.play(*SLOW, "-e", f"run_id={run.name}")
        assert second.code == 2
        assert second.printed(f"{run.name}: in use by process")
        (kit.folder / "go").touch()
        output, _ = first.communicate(timeout=1200)
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
    assert first.returncode == 0, output
    assert sorted(run.glob("workdir/steps/*/unfinished-*")) == interrupted
    assert [path.name for path in kit.folder.glob("runs/[!.l]*")] == [run.name]
    assert whens[0].items() <= kit.whens().items()
    assert kit.verdict()["counts"]["PASS"] == 4


def test_fail_fast_ends_with_a_verdict_that_says_what_did_not_run(kit: Kit) -> None:
    fails = "if [ {number} = 1 ]; then exit 7; fi"
    (kit.folder / "benchmarks/nap.yml").write_text(NAP.replace("sleep {seconds}", fails))
    played = kit.play(*SLOW, "-e", "fail_fast=true")
    assert played.code == 2, played.output
    assert "stopped by fail_fast: step 0001-nap" in played.output
    verdict = kit.verdict()
    assert (verdict["coverage"]["measured"], verdict["coverage"]["expected"]) == (1, 4)
    (stopped,) = verdict["coverage"]["stopped"]
    assert stopped.endswith("exit code 7; 3 of 4 steps left")
