"""A back end that never ran with the real thing is named before the run and in the report."""

from __future__ import annotations

import pytest
from tests.fixtures.finished import judged
from tests.fixtures.kit import Kit, carried_out
from tests.fixtures.pages import plain
from tests.fixtures.report_run import page_of
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.jobs.launcher import LAUNCHERS
from proofmark.machine.bmc.back_end import BACK_ENDS
from proofmark.machine.scheduler import SCHEDULERS
from proofmark.report.run_data import gather
from proofmark.report.sections.signed_sheets import exceptions
from proofmark.site.file_systems import Mount, Scratch, kinds
from proofmark.site.firmware import Firmware
from proofmark.site.partition import tried, untried


def test_the_rows_name_back_ends_and_what_ran_them() -> None:
    names = {
        "scheduler": set(SCHEDULERS.names()),
        "launch.launcher": set(LAUNCHERS.names()),
        "firmware.back_end": set(BACK_ENDS.names()),
        "scratch.type": set(kinds()),
    }
    for row in tried():
        assert row.name in names[row.key], row
        assert (ROOT / "tests" / row.test).is_file() or (ROOT / row.test).is_file(), row


def test_a_new_back_end_never_ran(kit: Kit) -> None:
    partition = kit.site().partition
    assert untried(partition) == {}
    lustre = Scratch(path="/s/x", type="lustre", source="mgs:/s", mount=Mount(point="/s"))
    changed = partition.model_copy(
        update={
            "scheduler": "of_a_site",
            "launch": partition.launch.model_copy(update={"launcher": "pals"}),
            "firmware": Firmware.model_construct(back_end="syscfg"),
            "scratch": lustre,
        }
    )
    assert untried(changed) == {
        "scheduler": "of_a_site",
        "launch.launcher": "pals",
        "firmware.back_end": "syscfg",
        "scratch.type": "lustre",
    }
    # A file system that others mount needs no commands of the kit.
    unmounted = changed.model_copy(update={"scratch": lustre.model_copy(update={"mount": None})})
    assert "scratch.type" not in untried(unmounted)


@pytest.mark.parametrize(("partition", "named"), [("power10", True), ("graviton", False)])
def test_validate_and_plan_say_so(
    partition: str, named: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    site = ["-i", f"{ROOT / 'inventory' / 'example-current'}", "-l", partition, "--suite", "quick"]
    for command in ("check", "plan"):
        assert main([command, *site]) == 0
        text = "partition.scheduler: 'lsf' never ran with the real thing"
        assert (text in capsys.readouterr().out) == named


@pytest.mark.parametrize("scheduler", ["lsf", "slurm"])
def test_the_report_says_so(kit: Kit, scheduler: str) -> None:
    kit.case(sweep={"size": 1})
    site = kit.site()
    changed = site.partition.model_copy(update={"scheduler": scheduler})
    run = carried_out(kit.run(site=site.model_copy(update={"partition": changed})))
    verdict = judged(run)
    text = "never ran with the real thing: scheduler: lsf"
    said = scheduler == "lsf"
    assert (text in plain(page_of(run, verdict))) == said
    rows = exceptions(gather(run, verdict))
    assert any(text in f"{cell}" for row in rows for cell in row) == said
