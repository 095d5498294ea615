"""A host of another domain than all others is another host, also if its short name is planned."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.fleet import fleet_run

from proofmark.judge.judging import judge_run
from proofmark.runs.run import Run

RATES = {f"n{number}": 100.0 for number in range(1, 4)}
OTHER = "n3.evil.example"


def invalid(run: Run) -> dict[str, str]:
    return {each.record.node: str(each.reason) for each in judge_run(run).of("INVALID")}


def report_as(run: Run, names: dict[str, str]) -> None:
    """Let nodes report other names in their executions and their probes."""
    for host, name in names.items():
        for path in list(run.folder.glob(f"workdir/jobs/*/*/{host}.*")):
            text = path.read_text(encoding="utf-8")
            path.unlink()
            text = text.replace(f"| hostname: {host}\n", f"| hostname: {name}\n")
            path.with_name(f"{name}{path.suffix}").write_text(text, encoding="utf-8")


@pytest.mark.fault("host-of-other-domain")
def test_measurements_of_another_domain_are_invalid(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, RATES, executions={"n3": {"host": OTHER}})
    report_as(run, {"n3": OTHER})
    (reason,) = invalid(run).values()
    assert f"ran on {OTHER}, planned on n3" in reason


@pytest.mark.fault("host-of-other-domain")
def test_a_probe_of_another_domain_proves_no_node(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, RATES)
    report_as(run, {"n3": OTHER})
    found = invalid(run)
    assert [*found] == ["n3"]
    assert "n3.before is missing" in found["n3"]


def test_a_domain_that_all_hosts_share_is_theirs(tmp_path: Path) -> None:
    names = {host: f"{host}.site" for host in RATES}
    executions = {host: {"host": name} for host, name in names.items()}
    run = fleet_run(tmp_path, RATES, executions=executions)
    report_as(run, names)
    assert invalid(run) == {}
