"""A run over many like nodes, each with a probe of its own: for the tests of the fleet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.unit.helpers import make_kit

from proofmark.runs.nodes import collect_nodes
from proofmark.runs.run import Run
from proofmark.runs.start import start_or_continue
from proofmark.site.fabric import Fabric
from proofmark.site.partition import Partition

BEGAN, ENDED = "2026-11-21T10:18:00Z", "2026-11-21T10:19:00Z"
"""Around the moment at which the probes were taken."""
PROBES = Path(__file__).parents[1] / "data" / "probe"


def fleet_run(
    folder: Path,
    rates: Mapping[str, float | Sequence[float]],
    *,
    changes: Mapping[str, Mapping[str, str]] | None = None,
    after: Mapping[str, Mapping[str, str]] | None = None,
    rack: int = 10,
    partition: Mapping[str, Any] | None = None,
    writes: bool = False,
) -> Run:
    """Write a finished run of one figure on every node.

    Args:
        folder: where the kit is made.
        rates: of each host, once or as often as it was measured.
        changes: replacements in a host's probes, by host.
        after: further ones in its probe behind the job.
        rack: nodes of a rack.
        partition: further facts of the partition.
        writes: whether the figure is measured with a file in the scratch folder.
    """
    kit = make_kit(folder)
    suites = {"quick": {"scope": "each-node", "sweep": {"size": 1}}}
    kit.case(suites=suites, cost={"seconds": 1, "bytes": 1000 if writes else 0})
    site = kit.site(hosts=tuple(rates))
    told = {**site.partition.model_dump(), "fabric": Fabric(rack=rack), **(partition or {})}
    site = site.model_copy(
        update={
            "partition": Partition.model_validate(told),
            "partition_hosts": list(rates),
        }
    )
    run, _ = start_or_continue(
        folder / "runs", kit.plan(site=site), kit.benchmarks(), site, "", run_id="fleet"
    )
    (run.folder / "software.json").write_text(kit.software().model_dump_json(), encoding="utf-8")
    (step,) = run.plan.steps()
    for host, measured in rates.items():
        values = [measured] if isinstance(measured, (int, float)) else list(measured)
        for number, value in enumerate(values):
            here = run.folder / "steps" / step.id / host
            _execution(here / f"again-{number}" if number else here, host, value)
    attempt = run.folder / "jobs" / run.plan.groups[0].jobs[0].id / "attempt-1"
    attempt.mkdir(parents=True, exist_ok=True)
    facts = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
    for host in rates:
        own = (changes or {}).get(host, {})
        before = _changed(_named(facts, host), own)
        (attempt / f"{host}.before").write_text(before, encoding="utf-8")
        behind = _changed(before, (after or {}).get(host, {}))
        (attempt / f"{host}.after").write_text(behind, encoding="utf-8")
    collect_nodes(run)
    return run


def _named(probe: str, host: str) -> str:
    lines = [
        f"| hostname: {host}" if line.startswith("| hostname: ") else line
        for line in probe.splitlines()
    ]
    return "\n".join(lines) + "\n"


def _changed(probe: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        assert old in probe, old
        probe = probe.replace(old, new)
    return probe


def _execution(folder: Path, host: str, rate: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    when = {"start": BEGAN, "end": ENDED, "seconds": 1.0, "host": host, "timed_out": False}
    (folder / "when.json").write_text(json.dumps(when))
    (folder / "binding.json").write_text("[]")
    (folder / "stdout").write_text(f"size 1\nrate {rate}\nEND\n")
    (folder / "rc").write_text("0\n")
