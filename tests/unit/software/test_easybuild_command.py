"""What EasyBuild lacks on the controller is named before it is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from proofmark.common.errors import BadInput
from proofmark.software.providers.easybuild import AS_ROOT, easybuild_command, easybuild_version

LMOD = {"LMOD_CMD": "/opt/lmod"}


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def environment(folder: Path, version: str = "5.4.1") -> dict[str, str]:
    """Return the variables of a controller whose EasyBuild reports `version`."""
    program(folder / "eb", "exit 1")
    program(folder / "python3", f"echo {version}")
    return {"PATH": str(folder)}


def mistakes(environment: dict[str, str], user: int = 1000) -> str:
    with pytest.raises(BadInput) as raised:
        easybuild_command(environment, user)
    return str(raised.value)


def test_a_sound_easybuild_gets_the_options_of_its_module_tool(tmp_path: Path) -> None:
    sound = environment(tmp_path)
    eb = f"{tmp_path}/eb"
    assert easybuild_command({**sound, **LMOD}, 1000) == [eb, "--modules-tool=Lmod"]
    assert easybuild_command({**sound, "MODULES_CMD": "/opt/modulecmd.tcl"}, 1000) == [
        eb,
        "--modules-tool=EnvironmentModules",
        "--module-syntax=Tcl",
    ]
    assert easybuild_command({**sound, **LMOD, AS_ROOT: "1"}, 0) == [eb, "--modules-tool=Lmod"]


def test_everything_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    lines = mistakes({"PATH": str(tmp_path)}, user=0).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["eb", "LMOD_CMD, MODULES_CMD", "eb"]
    assert "accepted: EasyBuild in PATH, or another provision_from" in lines[0]
    assert "accepted: Lmod, or Environment Modules" in lines[1]
    assert f"root, which EasyBuild refuses; accepted: another user, or {AS_ROOT}=1" in lines[2]


def test_an_old_easybuild_is_refused(tmp_path: Path) -> None:
    said = mistakes({**environment(tmp_path, version="4.9.4"), **LMOD})
    assert said == "eb: version: NO_EASYBUILD: found 4.9.4; accepted: 5.0 or later"
    assert easybuild_command({**environment(tmp_path, version="5.0.0"), **LMOD}, 1000)


def test_the_python_of_eb_is_searched_as_eb_does(tmp_path: Path) -> None:
    sound = {**environment(tmp_path), **LMOD}
    program(tmp_path / "other", "echo 5.0.0")
    assert easybuild_version({**sound, "EB_PYTHON": str(tmp_path / "other")}) == "5.0.0"
    assert easybuild_version({**sound, "EB_PYTHON": str(tmp_path / "absent")}) == "5.4.1"
    program(tmp_path / "python3", "exit 1")
    assert "found none that has EasyBuild" in mistakes(sound)


def test_the_easybuild_of_the_requirements_is_accepted_without_pyyaml(tmp_path: Path) -> None:
    """A plain ``pip install easybuild`` gives no PyYAML."""
    code = f"exec '{sys.executable}' -c \"import sys; sys.modules['yaml'] = None\n$2\""
    program(tmp_path / "python-easybuild", code)
    variables = {**environment(tmp_path), **LMOD, "EB_PYTHON": f"{tmp_path}/python-easybuild"}
    assert easybuild_version(variables) == "5.4.1"
    assert easybuild_command(variables, 1000)
