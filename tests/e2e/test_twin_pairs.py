"""The suite `twin-p3`: pairs of ranks inside a node and between two, on the twin of Tachyon 2."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from pathlib import Path

import pytest
import yaml
from tests.folders import DATA, ROOT

from proofmark.cli.main import main
from proofmark.judge.judging import read_and_judge
from proofmark.runs.run import open_run

FOLDER = "pairs-1.0"


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kit whose source of the OSU benchmarks is a small program of the project."""
    folder = tmp_path / "kit"
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks")
    shutil.copytree(ROOT / "environments", folder / "environments")
    shutil.copy(ROOT / "galaxy.yml", folder)
    (tmp_path / "mirror").mkdir()
    archive = tmp_path / "mirror/pairs.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(DATA / "twin-pairs", FOLDER)
    source = {
        "version": "1.0",
        "url": "https://127.0.0.1:9/pairs.tar.gz",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "folder": FOLDER,
        "configure": ["CC=smpicc"],
        "make": ["all"],
        "programs": {"osu_bw": "osu_bw", "osu_mbw_mr": "osu_mbw_mr"},
    }
    (folder / "environments/twin/sources.yml").write_text(
        yaml.safe_dump({"packages": {"osu-micro-benchmarks": source}})
    )
    monkeypatch.setenv("PROOFMARK_KIT", f"{folder}")
    return folder


def test_pairs_on_a_twin_answer_the_claim_of_their_shares(
    kit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = kit.parent
    options = [
        "--runs",
        f"{folder / 'runs'}",
        "--run-id",
        "model",
        "--sources",
        f"{folder / 'mirror'}",
    ]
    site = ["-i", f"{ROOT / 'inventory/tachyon'}", "-l", "tachyon2-0001,tachyon2-0002"]
    options += ["--prefixes", f"{folder / 'prefixes'}", "--sources", f"{folder / 'mirror'}"]
    assert main(["twin", *site, "--suite", "twin-p3", *options]) == 0
    run = open_run(folder / "runs/model")
    verdict = read_and_judge(run)[1]
    assert not verdict.coverage.missing
    assert {(each.verdict, each.record.reason) for each in verdict.results} == {("UNJUDGED", "")}
    rates = {
        (record.placement, record.parameters.get("pairs"), record.parameters["bytes"]): record.value
        for record in (result.record for result in verdict.results)
        if record.metric == "bandwidth"
    }
    largest = 4 * 2**20
    same, other = (rates[place, None, largest] for place in ("same-socket", "other-socket"))
    assert same is not None and other is not None and same > 2 * other
    sums = [rates["other-node", pairs, largest] for pairs in range(1, 9)]
    assert sums == pytest.approx([4000.0] * 8, rel=0.02), "the slowest link of the route"
    capsys.readouterr()
    assert main(["verdict", "--claims", "--json", f"{run.folder}"]) == 0
    answers = json.loads(capsys.readouterr().out)
    (shares,) = [
        each for each in answers if (each["claim"], each["systems"]) == ("C3.3", ["tachyon2"])
    ]
    assert shares["answer"] == "holds"
    assert shares["numbers"]["worst_miss"] < 0.02
