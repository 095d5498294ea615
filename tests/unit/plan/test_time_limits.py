"""The time of a step is estimated, its limit follows from it, and an endless step is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fixtures.kit import Kit
from tests.fixtures.shipped import shipped_benchmarks, shipped_site
from tests.folders import ROOT
from tests.unit.plan.test_papers import plan

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.common.network_time import imb_s
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan, Step
from proofmark.plan.totals import job_times
from proofmark.site.execution import Queue
from proofmark.site.fabric import UNKNOWN_LINK, Fabric
from proofmark.site.hardware_limits import LANES, LaneLimit, links
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of


def with_queue(site: Site, **queue: Any) -> Site:
    return site.model_copy(
        update={"partition": site.partition.model_copy(update={"queue": Queue(**queue)})}
    )


@pytest.mark.fault("step-longer-than-its-limit")
@pytest.mark.parametrize("seconds", [100, 101])
def test_a_step_that_cannot_finish_within_its_limit_is_refused(kit: Kit, seconds: int) -> None:
    kit.case(cost={"seconds": "{seconds * size / 2}"}, let={"seconds": seconds}, timeout=100)
    if seconds == 100:
        assert [step.seconds for step in kit.plan().steps()] == [50, 100]
        return
    with pytest.raises(BadInput) as error:
        kit.plan()
    (mistake,) = error.value.mistakes
    assert (Path(mistake.file).name, mistake.key) == ("fake.yml", "timeout")
    assert mistake.found == "step fake-2: estimated 1 min 41 s, limit 1 min 40 s"
    assert "a larger timeout" in mistake.accepted


@pytest.mark.fault("step-longer-than-its-limit")
@pytest.mark.parametrize("longest", [100, 99])
def test_a_step_that_is_longer_than_the_longest_job_is_refused(kit: Kit, longest: int) -> None:
    kit.case(cost={"seconds": 100})
    site = with_queue(kit.site(), max_walltime_s=longest)
    if longest == 100:
        assert kit.plan(site=site).totals.steps == 2
        return
    with pytest.raises(BadInput, match=r"partition\.queue\.max_walltime_s") as error:
        kit.plan(site=site)
    assert len(error.value.mistakes) == 2


@pytest.mark.parametrize(
    ("longest", "jobs"), [(None, [5]), (1000, [5]), (999, [4, 1]), (450, [2, 2, 1]), (100, [1] * 5)]
)
def test_jobs_are_split_so_that_each_fits_the_queue(
    kit: Kit, longest: int | None, jobs: list[int]
) -> None:
    kit.case(cost={"seconds": 100}, sweep={"size": [1, 2, 3, 4, 5]})
    whole = kit.plan(site=with_queue(kit.site()))
    made = kit.plan(site=with_queue(kit.site(), max_walltime_s=longest))
    assert [len(job.steps) for job in made.groups[0].jobs] == jobs
    assert [*made.steps()] == [*whole.steps()]
    assert len({job.id for job in made.groups[0].jobs}) == made.totals.jobs == len(jobs)
    times = job_times(made, Queue(max_walltime_s=longest))
    assert [each.expected_s for each in times] == [100 * steps for steps in jobs]
    assert all(each.requested_s <= (longest or 1000) for each in times)


@pytest.mark.fault("step-longer-than-its-limit")
@pytest.mark.parametrize("rate", ["12.5e+9", "1.0e+6"])
def test_the_plan_of_a_site_whose_link_is_too_slow_is_refused(
    tmp_path: Path, rate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in sorted((ROOT / "inventory" / "template").rglob("*.yml")):
        target = tmp_path / path.relative_to(ROOT / "inventory" / "template")
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
        text = text.replace("    rack: 4\n", f"    rack: 4\n    rate: {rate}\n")
        text = text.replace("provision_from: system", "provision_from: spack")
        text = text.replace(
            "scheduler: none\n", "scheduler: none\n  queue: {max_walltime_s: 86400}\n"
        )
        target.write_text(text, encoding="utf-8")
    code = main(["plan", "-i", str(tmp_path), "-l", "cluster", "--suite", "full"])
    stderr = capsys.readouterr().err
    assert code == (0 if rate == "12.5e+9" else 3), stderr
    if code:
        assert "hpl.yml: cost.seconds: found step hpl-2-32: estimated" in stderr
        assert "partition.fabric.rate" in stderr


def of_case(made: Plan, case: str) -> Iterator[Step]:
    return (step for step in made.steps() if step.case == case)


def at_wire_speed(size: int) -> float:
    """Return the time of an alltoall over 64 nodes of 68 ranks by a link of 12.5 GB/s."""
    return 68 * (64 - 1) * 68 * size / 12.5e9


@pytest.mark.fault("iterations-without-end")
def test_osu_alltoall_on_64_nodes_has_time_at_wire_speed() -> None:
    """OSU's own iterations take 714 s at wire speed; the limit was 360 s."""
    found = {
        str(step.parameters["message_range"]): step
        for step in of_case(plan("full", "nurion", "knl"), "osu-collectives")
        if len(step.nodes) == 64 and step.parameters["collective"] == "alltoall"
    }
    own, measured = 0.0, set()
    for name, step in found.items():
        options = dict(zip(step.arguments[1::2], step.arguments[2::2], strict=True))
        smallest, largest = map(int, options["-m"].split(":"))
        sizes = [1 << power for power in range(23) if smallest <= 1 << power <= largest]
        measured |= set(sizes)
        wire = sum(map(at_wire_speed, sizes))
        assert (int(options["-i"]) + int(options["-x"])) * wire < step.seconds
        own += wire * (1100 if name == "small" else 110)
    assert own == pytest.approx(714, rel=0.01)
    assert measured == {1 << power for power in range(17)}  # 512 MiB ÷ 4,352 ranks


@pytest.mark.fault("sizes-skipped-by-imb")
def test_imb_measures_all_sizes_of_p5_on_1024_ranks() -> None:
    steps = [step for step in of_case(plan("p5", "p595", "p595"), "imb-collectives")]
    assert {step.ranks for step in steps} >= {2, 1024}
    for step in steps:
        options = dict(zip(step.arguments[1::2], step.arguments[2::2], strict=True))
        smallest, largest = map(int, options["-msglog"].split(":"))
        assert smallest == 0
        assert largest >= 20  # the claims need 1 B to 1 MiB
        # IMB skips sizes after (doublings - 1) × the value of -time.
        assert (largest - smallest - 1) * int(options["-time"]) >= step.timeout
        count, volume = map(int, options["-iter"].split(","))
        assert count >= 25
        assert imb_s([1e-9] * 2, [0, 1 << largest], count, volume) < step.seconds


@pytest.mark.parametrize("count", LANES)
@pytest.mark.parametrize("row", links().lanes, ids=[row.speed or "none" for row in links().lanes])
def test_the_rate_of_a_link_is_that_of_its_lanes(row: LaneLimit, count: int) -> None:
    name = f"{count}X {row.speed}".strip()
    text = f"{row.shown_gbit * count:g} Gb/sec ({name})"
    assert Fabric(rate=text).link_bytes_per_s == count * row.lane_bytes_per_s


def test_the_rate_of_a_link_is_a_number_or_unknown() -> None:
    assert Fabric(rate=2.5e9).link_bytes_per_s == 2.5e9
    assert Fabric().link_bytes_per_s == UNKNOWN_LINK == 1e9 / 8
    for wrong in ("100 Gb", 0, -1.0):
        with pytest.raises(ValidationError, match="rate"):
            Fabric(rate=wrong)


def test_an_undeclared_link_gives_longer_estimates_than_a_declared_one() -> None:
    site = shipped_site("nurion", "skl")
    fabric = site.partition.fabric.model_copy(update={"rate": None})
    partition = site.partition.model_copy(update={"fabric": fabric})
    made = make_plan(
        shipped_benchmarks(),
        "full",
        site.model_copy(update={"partition": partition}),
        machines_of(site)[0],
    )
    pairs = zip(made.steps(), plan("full", "nurion", "skl").steps(), strict=True)
    longer = {
        one.case for one, other in pairs if one.seconds > other.seconds and len(one.nodes) > 1
    }
    assert "with 125 MB/s for each node" in made.assumed["fabric.rate"]
    assert "fabric.rate" not in plan("full", "nurion", "skl").assumed
    assert longer >= {"hpl", "imb-collectives", "osu-bw", "osu-collectives", "osu-mbw-mr"}
