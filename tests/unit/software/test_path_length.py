"""Folders under which Spack cannot install are refused before the first build."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.software.installed import ProvisionRequest
from proofmark.software.provider import check_provider
from proofmark.software.spack.install import missing_specs
from proofmark.software.spack.installation import BELOW, LONGEST, SHEBANG_LIMIT, check_path

LONG = Path("/" + "x" * LONGEST)
SHORT = Path("/" + "x" * (LONGEST - 1))
NODE = {
    "cpu_model": "x",
    "architecture": "x86_64",
    "topology": "pack:1 [numa(memory=16GiB)] l3(size=32MiB) core:2 pu:1",
}
"""The caches of this machine may be larger than the arrays of STREAM in the inventory."""


def test_the_longest_folder_keeps_the_path_of_sbang_at_the_limit() -> None:
    assert len(f"{SHORT}{BELOW}") == SHEBANG_LIMIT
    check_path(SHORT)


@pytest.mark.fault("path-too-long")
def test_a_longer_folder_is_refused_with_both_lengths_and_the_variable() -> None:
    with pytest.raises(BadInput) as raised:
        check_path(LONG)
    (mistake,) = raised.value.mistakes
    assert mistake.file == "provision_prefixes"
    assert mistake.found == f"{LONG}, {LONGEST + 1} characters"
    assert mistake.accepted.startswith(f"at most {LONGEST} characters")
    assert "set provision_prefixes to a shorter folder" in mistake.accepted


@pytest.mark.fault("path-too-long")
def test_a_new_run_and_the_check_of_install_refuse_it(tmp_path: Path) -> None:
    check_provider("spack", SHORT)
    for name in ("system", "easybuild", "preinstalled"):
        check_provider(name, LONG)
    with pytest.raises(BadInput, match="provision_prefixes"):
        check_provider("spack", LONG)
    with pytest.raises(BadInput, match="provision_prefixes"):
        missing_specs(ProvisionRequest(tmp_path, "local", {}, LONG), "debian12")


@pytest.mark.parametrize(
    "words",
    [["check"], ["plan"], ["plan", "--create", "--no-link"]],
    ids=["check", "plan", "create"],
)
def test_a_checkout_in_any_folder_is_validated_and_planned(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "local-spack"
    shutil.copytree(ROOT / "inventory" / "local-spack", folder)
    path = folder / "group_vars" / "local" / "partition.yml"
    facts = yaml.safe_load(path.read_text(encoding="utf-8"))
    facts["partition"]["node"] = NODE
    path.write_text(yaml.safe_dump(facts), encoding="utf-8")
    site = ["-i", f"{folder}", "-l", "local", "--suite", "p2"]
    code = main([*words, *site, "--prefixes", f"{LONG}"])
    printed, said = capsys.readouterr()
    if "--create" in words:
        assert (code, "characters" in said) == (3, True)
        return
    assert code == 0, said
    (place,) = (line for line in printed.splitlines() if line.startswith("no run from here"))
    assert f"{LONGEST + 1} characters" in place
    assert "node-hours" in printed
    assert "required: stream copy, scale, add, triad (memory ddr): only a floor" in printed
    assert "without -e accept_unjudged=true" in printed


@pytest.mark.fault("path-with-blank")
def test_a_folder_with_a_blank_is_refused_before_the_build(tmp_path: Path) -> None:
    request = ProvisionRequest(tmp_path, "local", {}, Path("/srv/my kit"))
    with pytest.raises(BadInput, match=r"provision_prefixes.*/srv/my kit.*without blanks"):
        missing_specs(request, "debian12")
