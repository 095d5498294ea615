"""The chosen site: ``proofmark site`` and ``init`` choose it, and commands without -i print it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.common.kit import VARIABLE
from proofmark.packages.survey.init import _choose
from proofmark.site.choice import LINK


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with the cases of the kit and two sites."""
    for name in ("benchmarks", "environments", "requirements"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "ansible.cfg").touch()
    for name in ("nurion", "tachyon"):
        (tmp_path / "inventory").mkdir(exist_ok=True)
        (tmp_path / "inventory" / name).symlink_to(ROOT / "inventory" / name)
    monkeypatch.setenv(VARIABLE, f"{tmp_path}")
    monkeypatch.chdir("/")
    return tmp_path


def test_a_command_without_a_site_uses_and_prints_the_chosen_one(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "-l", "knl", "--suite", "p2"]) == 3
    assert "-i: found no site, and none is chosen" in capsys.readouterr().err
    assert main(["site", f"{checkout}/inventory/nurion"]) == 0
    shown = f"site: nurion ({ROOT}/inventory/nurion)\n"
    assert capsys.readouterr().out == shown
    assert main(["site"]) == 0
    assert capsys.readouterr().out == shown
    assert main(["plan", "-l", "knl", "--suite", "p2"]) == 0
    assert capsys.readouterr().err.startswith("site: nurion, the chosen one (")


def test_init_chooses_a_new_site_of_the_checkout_if_none_is_chosen(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    new, second = checkout / "inventory/new", checkout / "inventory/second"
    outside = tmp_path_factory.mktemp("outside")
    for folder in (new, second):
        folder.mkdir()
        (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {}}))
    _choose(outside)
    assert not (checkout / LINK).is_symlink()
    _choose(new)
    assert (checkout / LINK).readlink() == Path("inventory/new")
    _choose(second)
    assert (checkout / LINK).readlink() == Path("inventory/new")
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "the chosen site: new; make site SITE=new chooses this one",
        "the chosen site: new; make site SITE=second chooses this one",
    ]


@pytest.mark.parametrize("command", ["status", "verdict", "report", "export --format csv -o NEW"])
def test_without_a_run_a_command_takes_the_newest_of_the_chosen_site(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (checkout / "galaxy.yml").touch()
    runs, words = checkout / "runs", command.replace("NEW", f"{tmp_path / 'new'}").split()
    adopted(checkout, "first")
    (runs / "latest-tachyon").symlink_to("first")
    assert main(words) == 3
    said = capsys.readouterr().err
    assert "RUN: found nothing, and no site is chosen; accepted: latest-tachyon, or " in said
    assert main(["site", f"{checkout}/inventory/nurion"]) == 0
    assert main(words) == 3
    said = capsys.readouterr().err
    assert "RUN: found nothing, and no run of the chosen site nurion; accepted: latest-t" in said
    (runs / "latest-nurion").symlink_to("first")
    assert main(words) == (4 if command == "verdict" else 0)  # nothing judges its figures
    assert f"{runs / 'latest-nurion'} is {runs / 'first'}" in capsys.readouterr().err


def adopted(checkout: Path, name: str) -> None:
    """Make a run of one output of another program."""
    (sample, *_) = sorted((checkout / "benchmarks/samples").glob("stream*.txt"))
    outputs = checkout / "outputs"
    outputs.mkdir()
    (outputs / "out.log").write_bytes(sample.read_bytes())
    words = ["adopt", f"{outputs}", "--case", "stream=*", "--nodes", "n1", "--run-id", name]
    assert main([*words, "--runs", f"{checkout / 'runs'}"]) == 0
