"""Folders under which Spack cannot install are refused before the first build."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.common.errors import BadInput
from proofmark.software.provider import check_provider
from proofmark.software.request import ProvisionRequest
from proofmark.software.spack.install import missing_specs
from proofmark.software.spack.installation import BELOW, LONGEST, SHEBANG_LIMIT, check_length

LONG = Path("/" + "x" * LONGEST)
SHORT = Path("/" + "x" * (LONGEST - 1))


def test_the_longest_folder_keeps_the_path_of_sbang_at_the_limit() -> None:
    assert len(f"{SHORT}{BELOW}") == SHEBANG_LIMIT
    check_length(SHORT)


@pytest.mark.fault("path-too-long")
def test_a_longer_folder_is_refused_with_both_lengths_and_the_variable() -> None:
    with pytest.raises(BadInput) as raised:
        check_length(LONG)
    (mistake,) = raised.value.mistakes
    assert mistake.file == "provision_prefixes"
    assert mistake.found == f"{LONG}, {LONGEST + 1} characters"
    assert mistake.accepted.startswith(f"at most {LONGEST} characters")
    assert "set provision_prefixes to a shorter folder" in mistake.accepted


@pytest.mark.fault("path-too-long")
def test_plan_and_validate_and_the_check_of_install_refuse_it(tmp_path: Path) -> None:
    check_provider("spack", SHORT)
    for name in ("system", "easybuild", "preinstalled"):
        check_provider(name, LONG)
    with pytest.raises(BadInput, match="provision_prefixes"):
        check_provider("spack", LONG)
    with pytest.raises(BadInput, match="provision_prefixes"):
        missing_specs(ProvisionRequest(tmp_path, "local", {}, LONG), "debian12")


@pytest.mark.fault("path-with-blank")
def test_a_folder_with_a_blank_is_refused_before_the_build(tmp_path: Path) -> None:
    request = ProvisionRequest(tmp_path, "local", {}, Path("/srv/my kit"))
    with pytest.raises(BadInput, match=r"provision_prefixes.*/srv/my kit.*without blanks"):
        missing_specs(request, "debian12")
