"""acceptance.yml with the real programs, at sizes that take little time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from tests.fixtures.kit import snapshot
from tests.forks import tool
from tests.roles.kit import Kit, Played, accept_disturbance, make_real_kit, processes_of

from proofmark.site.node.cpu import cpu_list

pytestmark = [pytest.mark.slow, pytest.mark.root]

NODE = "localhost"
"""The machine in the inventory of the kit."""
USES: dict[str, Any] = {
    "hpcc": {
        "sweep": {"memory_share": 0.001, "blas_kernel": "right"},
        "let": {"n": 960},
    },
    "imb-pingpong": {"sweep": {"largest_log2": 12}},
    "imb-collectives": {"let": {"largest_log2": 8}},
    "fio-cache": {"sweep": {"block_bytes": "{2 * MiB}"}},
    "likwid-triad": {"let": {"arrays_bytes": 1}},
}


def small_kit(top: Path) -> Kit:
    """Make a kit of the real cases and programs, with the sizes of `USES` in its suite `quick`."""
    kit = make_real_kit(top)
    suites = yaml.safe_load((kit.folder / "benchmarks/suites.yml").read_text(encoding="utf-8"))
    # They do not run with the programs of the distribution.
    uses = USES | {
        name: yaml.safe_load((kit.folder / f"benchmarks/{name}.yml").read_text())["suites"]["quick"]
        for name in suites["suites"]["quick"]["alternatives"][-1]["cases"]
    }
    for path in (kit.folder / "benchmarks").glob("*.yml"):
        case = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.name != "suites.yml":
            others = {name: use for name, use in case.get("suites", {}).items() if name != "quick"}
            case["suites"] = others | ({"quick": uses[path.stem]} if path.stem in uses else {})
            path.write_text(yaml.safe_dump(case, sort_keys=False), encoding="utf-8")
    accept_disturbance(kit)
    return kit


@pytest.fixture(scope="module")
def flow() -> Iterator[tuple[Kit, Played]]:
    """Yield a kit after one acceptance, with its output."""
    with tempfile.TemporaryDirectory(prefix="proofmark-e2e-") as top:
        kit = small_kit(Path(top))
        yield kit, kit.play("acceptance.yml")
        assert processes_of(kit.folder) == []


def proofmark(kit: Kit, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [tool("proofmark"), *arguments]
    return subprocess.run(command, cwd=kit.folder, capture_output=True, text=True, check=False)


class TestFlow:
    def test_everything_is_measured_once_and_valid(self, flow: tuple[Kit, Played]) -> None:
        kit, played = flow
        verdict = kit.verdict()
        coverage = verdict["coverage"]
        assert coverage["measured"] == coverage["expected"] == 6 - len(coverage["not_needed"])
        assert verdict["coverage"]["duplicate"] == 0
        invalid = [result for result in verdict["results"] if result["verdict"] == "INVALID"]
        assert invalid == [], played.output
        assert {result["case"] for result in verdict["results"]} == USES.keys()

    def test_at_least_two_floors_judge_on_any_machine(self, flow: tuple[Kit, Played]) -> None:
        verdict = flow[0].verdict()
        assert verdict["headline"]["kinds"]["floor"]["total"] >= 2
        assert verdict["counts"]["PASS"] == 0, "nothing on an unknown machine makes a PASS"
        assert verdict["headline"]["word"] in ("NO FAULT FOUND", "FAIL")

    def test_the_exit_code_of_the_play_follows_the_verdict(self, flow: tuple[Kit, Played]) -> None:
        kit, played = flow
        code = proofmark(kit, "verdict", "runs/latest-local").returncode
        assert code == (1 if kit.verdict()["counts"]["FAIL"] else 0)
        assert (played.code == 0) is (code == 0), played.output
        strict = kit.play("playbooks/report.yml", "-e", "strict=true")
        assert strict.code == 2
        assert (kit.run() / "report.html").exists()

    def test_the_run_has_the_files_of_the_contract(self, flow: tuple[Kit, Played]) -> None:
        run = flow[0].run()
        for name in ("plan.json", "records.parquet", "verdict.json", "report.html"):
            assert (run / name).stat().st_size > 0
        for step in (run / "workdir/steps").iterdir():
            assert (step / "run.sh").exists()
            files = {path.name for path in (step / "execution-1").iterdir()}
            outputs = {"stdout", "stderr", "rc", "when.json", "binding.json", "outputs.sha256"}
            assert files >= outputs
        members: set[str] = set()
        for archive in sorted((run / "evidence").glob("*.tar")):
            with tarfile.open(archive) as packed:
                members.update(packed.getnames())
        assert {name for name in members if name.startswith("nodes/")} == {f"nodes/{NODE}.json"}
        sums = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
        subprocess.run(sums, cwd=run / "evidence", check=True, capture_output=True)
        records = pl.read_parquet(run / "records.parquet")
        assert set(records["node"]) == {NODE}
        assert set(records["origin"]) == {"measured"}

    def test_ranks_ran_on_the_planned_cpus(self, flow: tuple[Kit, Played]) -> None:
        run = flow[0].run()
        plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
        steps = [step for job in plan["groups"][0]["jobs"] for step in job["steps"]]
        bound = 0
        for step in (each for each in steps if (run / "workdir/steps" / each["id"]).exists()):
            execution = run / "workdir/steps" / step["id"] / "execution-1"
            text = (execution / "binding.json").read_text(encoding="utf-8")
            for entry in json.loads(text) if step["cpus"] else []:
                assert cpu_list(entry["cpus"]) == set(step["cpus"][entry["rank"]][1])
                bound += 1
        assert bound >= 4

    def test_a_second_judgement_of_the_run_gives_the_same_verdict(
        self, flow: tuple[Kit, Played], tmp_path: Path
    ) -> None:
        kit, _ = flow
        shutil.copytree(kit.run(), tmp_path / kit.run().name)
        again = proofmark(kit, "verdict", str(tmp_path / kit.run().name), "--json")
        assert json.loads(again.stdout) == kit.verdict()

    def test_the_scratch_is_left_empty(self, flow: tuple[Kit, Played]) -> None:
        kit, _ = flow
        assert list(kit.scratch.rglob("*")) == []

    def test_any_step_runs_again_by_hand(self, flow: tuple[Kit, Played]) -> None:
        """The second output changes only the number of executions."""
        run = flow[0].run()
        step = next((run / "workdir/steps").glob("*-fio-cache-*"))
        before = snapshot(step)
        subprocess.run(["sh", "run.sh"], cwd=step, check=True, env={"PATH": os.environ["PATH"]})
        after = snapshot(step)
        assert {name: after[name] for name in before} == before
        assert after["execution-2/rc"][1] == b"0\n"
