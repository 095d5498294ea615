"""``plan -o`` and ``plan --step``: the scripts of a run before there is a machine or a program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.fixtures.shipped import shipped_benchmarks, shipped_site
from tests.folders import DATA, ROOT
from tests.sites import NAMES, SMALL

from proofmark.cli.main import main
from proofmark.cli.plan import Planned
from proofmark.common.errors import NothingToRun
from proofmark.jobs.scripts import Scripts
from proofmark.packages.stability.stability_plan import counted_step, stability_plan
from proofmark.packages.stability.terms import StabilityTerms
from proofmark.packages.twin.smpi import unpack
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan, Step
from proofmark.runs.run import benchmarks_of, open_run, reported_names, site_of
from proofmark.runs.run_files import launch_command
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of
from proofmark.software.provision import PREFIX, planned_software
from proofmark.software.software import software_of

STRIDE = 5
"""In the tier test, a partition has each fifth suite, and a suite each fifth partition."""
UNKNOWN = re.compile(r"@PREFIX@|@RUN_ID@|\{scratch\}")


def plans_of(site: Site, place: int | None) -> list[Plan]:
    """Return the plans of the suites of a place in the stride; None: of all suites."""
    benchmarks, (machines, _) = shipped_benchmarks(), machines_of(site)
    plans = []
    suites = [*benchmarks.suites]
    for suite in suites if place is None else suites[place % STRIDE :: STRIDE]:
        try:
            made = make_plan(benchmarks, suite, site, machines, digest=False)
            of_days = counted_step(made) is not None
            terms = StabilityTerms(days=1)
            plans.append(stability_plan(made, site.hosts, terms) if of_days else made)
        except NothingToRun:
            continue
    return plans


def kinds_of(plan: Plan) -> list[Step]:
    """Return one step of each kind: they differ in more than the values of their axes."""
    kinds = {
        (step.case, step.launch, step.scope, step.ranks > 1, step.copies > 1): step
        for step in plan.steps()
    }
    return list(kinds.values())


@pytest.mark.rest("the scripts of all sites")
@pytest.mark.parametrize(
    ("name", "place"),
    [
        *((name, place) for place, name in enumerate(SMALL)),
        *(pytest.param(name, None, marks=pytest.mark.soak) for name in NAMES),
    ],
)
def test_each_suite_of_each_site_has_a_launch_line_for_each_step(
    name: str, place: int | None, tmp_path: Path
) -> None:
    benchmarks, site = shipped_benchmarks(), shipped_site(*name.split("/"))
    machines, probe = machines_of(site)
    for plan in plans_of(site, place):
        planned = Planned(site, plan, benchmarks, machines, tmp_path, probe)
        lines = planned.summary()
        assert len(lines) <= 60, plan.suite
        assert any(line.startswith("longest job: ") for line in lines)
        assert any(line.startswith(("modes: only", "mode ")) for line in lines)
        refused = planned.preview.refused
        assert not refused or site.partition.scheduler == "none"
        for step in kinds_of(plan):
            texts = planned.preview.step(step)
            launches = [launch_command(text) for text in texts.values() if "launch()" in text]
            assert launches
            for launch in launches:
                assert not UNKNOWN.search(launch)
            assert any(step.program.rpartition("/")[2] in text for text in launches) or (
                site.partition.provision_from in ("spack", "easybuild")
            )
            for file in step.inputs:
                assert texts[f"steps/{step.id}/{file}"]
        job = planned.preview.jobs[0]
        if job.id not in refused:
            script = planned.preview.job(job)[f"jobs/{job.id}/job.sh"]
            assert job.steps[0].id in script


@pytest.mark.parametrize("archive", ["local-quick", "knl-cluster", "skl-lost-node"])
def test_launch_lines_are_those_of_a_real_run(archive: str, tmp_path: Path) -> None:
    """A run knows the folders of programs, and the variables of the right BLAS kernel, in addition.

    Open MPI was started in another way when the run ``local-quick`` was made: its lines are those
    of its recorded programs.
    """
    unpack(DATA / "runs" / f"{archive}.tar.xz", tmp_path)
    (folder,) = (path.parent for path in tmp_path.rglob("plan.json"))
    run = open_run(folder)
    site, benchmarks, recorded = site_of(run), benchmarks_of(run), software_of(run)
    planned, _ = planned_software(ROOT, site, run.plan)
    names = reported_names(run, site)
    before = Scripts.of(site.partition, planned, names, benchmarks)
    after = Scripts.of(site.partition, recorded, names, benchmarks)
    compared = 0
    for step in run.plan.steps():
        if any(choice != "as-installed" for choice in step.variants.values()):
            continue
        now = after.of_step(run.id, step)
        for path, text in before.of_step(run.id, step).items():
            launch = launch_command(text).replace(PREFIX, recorded.packages[step.package].prefix)
            assert launch == launch_command(now[path]), step.id
            stored = run.files.scripts_folder / path
            is_known = stored.is_file() and archive != "local-quick"
            written = stored.read_text() if is_known else ""
            if real := launch_command(written):
                # These runs are older than the mark of the end of a list of hosts, and than the
                # option that hands the environment to the ranks.
                older = launch.replace("+END+", "END").replace(" -genvall", "")
                assert older == real, step.id
                compared += 1
    assert compared >= 5 or archive == "local-quick"


@pytest.mark.parametrize(
    ("suite", "program"), [("p4", "npb/bin/bt.C."), ("p5", "imb/bin/IMB-MPI1")]
)
def test_the_scripts_of_aix_are_written(
    suite: str, program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """P4 and P5 of the Power 595: LoadLeveler and POE, which no machine of the tests has."""
    site = ["-i", f"{ROOT / 'inventory/p595'}", "-l", "p595"]
    words = ["plan", *site, "--suite", suite, "--repeats", "1", "-o", f"{tmp_path / suite}"]
    assert main(words) == 0
    assert "steps run on Linux only" in capsys.readouterr().out
    (job,) = tmp_path.glob("*/jobs/*/job.sh")
    assert "# @ job_type = parallel\n" in job.read_text()
    assert "# @ wall_clock_limit = " in job.read_text()
    launches = [launch_command(path.read_text()) for path in tmp_path.glob("*/steps/*/run.sh")]
    for launch in launches:
        assert "export MP_HOSTFILE=hostfile\n" in launch
        assert 'exec $PREFIX/bin/poe sh "$HERE/run.sh" --bind /usr/local/' in launch
    assert any(program in launch for launch in launches)
    assert main(words) == 3  # the folder exists


def test_one_step_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "-i", f"{ROOT / 'inventory/nurion'}", "-l", "skl", "--suite", "full"]
    assert main(words) == 0
    assert "0002-hpl" not in capsys.readouterr().out
    assert main([*words, "--step", "2"]) == 0
    printed = capsys.readouterr().out
    assert "#PBS -l walltime=" in printed
    assert "exec $PREFIX/bin/mpiexec.hydra -machinefile hostfile -genvall -n " in printed
    assert "\nOMP_NUM_THREADS=20\n" in printed
    assert re.search(r"^\d+ +NBs$", printed, re.MULTILINE)
    assert main([*words, "--step", "9999"]) == 3


def test_modes_and_resets_are_shown_by_mode(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "-i", f"{ROOT / 'inventory/nurion'}", "-l", "knl", "--suite", "p1"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "mode snc4-flat: Cluster Mode=SNC-4; resets of 16 nodes, else 96 steps" in printed
    assert "resets of nodes: 80, of which 16 back to quadrant-flat" in printed
    assert main([*words[:-1], "twin-p3"]) == 3
    assert "twin-p3: found nothing that knl can run" in capsys.readouterr().err
