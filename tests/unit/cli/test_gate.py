"""The commands ``gate`` and ``gate-decide``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fixtures.fleet import fleet_run
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.cli.parser import BAD_INPUT

RATES = {f"n{number}": 100.0 + number / 10 for number in range(1, 9)}


@pytest.mark.parametrize(("options", "action"), [([], "keep"), (["--accept-unjudged"], "resume")])
def test_gate_decide_prints_one_decision_for_each_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], action: str
) -> None:
    run = fleet_run(tmp_path, RATES | {"n3": 50.0})
    assert main(["stage", "gate-decide", f"{run.folder}", *options]) == 0
    decided = {each["node"]: each for each in json.loads(capsys.readouterr().out)["nodes"]}
    assert decided.keys() == RATES.keys()
    assert decided.pop("n3")["action"] == "keep"
    assert {each["action"] for each in decided.values()} == {action}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["hold", "-l", "knl"], "8 nodes, the whole partition knl; accepted: at most 64 nodes"),
        (["hold", "-l", "knl", "--runs", "/tmp"], "gate_whole_partition=true takes more"),
        (["conclude", "-l", "knl"], "GATE: found nothing"),
        (["release", "gate-x"], "no gate 'gate-x'; accepted: a gate that holds nodes: none"),
        (["next", "-l", "knl"], "--node-hours: found nothing"),
    ],
)
def test_a_gate_that_cannot_be_made_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], found: str
) -> None:
    code = main(["gate", *arguments, "-i", f"{ROOT / 'inventory/rehearsal'}"])
    assert code == BAD_INPUT
    assert found in capsys.readouterr().err


def test_a_scheduler_without_reservations_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    site = ROOT / "inventory/local"
    assert main(["gate", "hold", "-i", f"{site}", "-l", "local"]) == BAD_INPUT
    said = capsys.readouterr().err
    assert "partition.yml:" in said and ": partition.scheduler: found" in said
    assert "'none', whose nodes the kit cannot reserve; accepted: slurm" in said


SILENT = "slurm_load_node: Unable to contact slurm controller (connect failure)"


@pytest.mark.parametrize(
    "arguments", [["check"], ["hold"], ["next", "--node-hours=4"], ["hold", "--node-hours=4"]]
)
@pytest.mark.parametrize("mute", ["sinfo", "scontrol"])
def test_a_controller_that_does_not_answer_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    mute: str,
) -> None:
    """One of the two commands gets no answer; the other one finds idle nodes, none reserved."""
    idle = (
        'case $* in *StateComplete*) echo "rknl0001 idle" ;;\n'
        '*%E*) for word; do case $word in --format=*) echo "${word#--format=}" ;; esac; done |\n'
        "sed 's/%N %E/rknl0001 none/' ;;\n*) echo 'rknl0001|idle' ;; esac"
    )
    for name, script in {"sinfo": idle, "scontrol": "exit 0"}.items():
        body = f"echo '{SILENT}' >&2; exit 1" if name == mute else script
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    site = ["-i", f"{ROOT / 'inventory/rehearsal'}", "-l", "rknl0001", "--suite=rehearsal-short"]
    assert main(["gate", *arguments, *site, "--runs", f"{tmp_path}"]) == BAD_INPUT
    said = capsys.readouterr().err
    assert "proofmark: partition: scheduler: found NO_ANSWER: " + mute in said
    assert f": {SILENT}; accepted: a scheduler that answers" in said
    assert not [*tmp_path.glob("rehearsal/gates/*/journal/*")]


def test_status_of_a_site_without_gates_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", "status", "-i", f"{ROOT / 'inventory/rehearsal'}"]) == 0
    assert " holds a node or keeps one out of service" in capsys.readouterr().out
