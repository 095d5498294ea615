"""No planted bad machine gets PASS, or exit code 0 without its fault in the last lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.bars.bad_machines import BAD, HOSTS, BadMachine, forged
from tests.bars.judged import called, judged, make_keys
from tests.fixtures.fleet import write_inventory

from proofmark.site.accepted_baseline import baseline_folder

GOOD = BadMachine("healthy", 0, ())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys, an inventory, and the accepted run of the healthy machine."""
    folder = tmp_path_factory.mktemp("bars")
    make_keys(folder)
    write_inventory(folder / "inventory/here", HOSTS)
    run = GOOD.run(folder / "first", None, "first")
    assert called("report", f"{run.folder}")[0] == 0
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert called("sign", f"{run.folder}", "--key", f"{folder}/key")[0] == 0
        accept = ("baseline", "accept", f"{run.folder}", "--signers", f"{folder}/signers")
        code, text = called(*accept, "-i", "inventory/here")
        assert code == 0, text
    finally:
        os.chdir(before)
    return folder


def baseline(place: Path) -> Path:
    return baseline_folder(place / "inventory/here", "local", "accepted")


@pytest.mark.core("no bad machine may pass, whatever a change is for")
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_machine_does_not_pass(bad: BadMachine, place: Path, tmp_path: Path) -> None:
    run = bad.run(tmp_path, baseline(place))
    code, lines = judged(run)
    if bad.edit is forged:
        code, lines = called("sign", f"{run.folder}", "--key", f"{place}/key")
        assert not [*run.folder.glob("signed/0*")]
    assert code == bad.code, lines
    assert code == 0 or not lines.startswith("PASS"), lines
    for text in bad.shown:
        assert text in lines


@pytest.mark.parametrize(
    "good",
    [GOOD, BadMachine("healthy, with a baseline", 0, (), contract=False, baseline=True)],
    ids=lambda good: good.name,
)
def test_the_healthy_machine_passes(good: BadMachine, place: Path, tmp_path: Path) -> None:
    """The control: nothing but the injection makes a machine bad."""
    run = good.run(tmp_path, baseline(place))
    code, lines = judged(run)
    assert code == 0, lines
    assert lines.startswith("PASS"), lines


def test_there_are_sixty_machines() -> None:
    names = [bad.name for bad in BAD]
    assert len(set(names)) == len(names) >= 60
    assert all(bad.code != 0 or bad.shown for bad in BAD)
