"""The names of the scripts in an input, for the trace."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.folders import ROOT

from proofmark.common.processes import script_names
from proofmark.machine.bmc.backends import without_bmc
from proofmark.machine.preflight import CLOCK_AND_UID

SCRIPTS = sorted((ROOT / "analysis/proofmark/machine").rglob("*.sh"))
BODY = "#!/bin/sh\n# {name} does something\nset -- of the body\n"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_each_script_of_a_node_is_named(script: Path) -> None:
    text = f"set -- a 'b c'\n{script.read_text(encoding='utf-8')}"
    assert script_names(text) == f"{script.name} a 'b c'"


@pytest.mark.parametrize(
    "text", [CLOCK_AND_UID, without_bmc.SHOW, without_bmc.SET, without_bmc.RESTART]
)
def test_each_short_script_is_named(text: str) -> None:
    assert script_names(text).endswith(".sh")


@pytest.mark.parametrize("text", ["", "secret", "#!/bin/sh\necho secret\n", "set -- secret\n"])
def test_nothing_of_another_input_is_shown(text: str) -> None:
    assert script_names(text) == ""


@given(
    st.lists(st.lists(st.text(st.characters(codec="utf-8"), max_size=9), max_size=3), max_size=3)
)
def test_several_scripts_are_named_in_their_order(arguments: list[list[str]]) -> None:
    text = "secret\n" + "".join(
        f"(\nset -- {shlex.join(words)}\n{BODY.format(name=f'part-{number}.sh')}\n"
        ") </dev/null || exit\n"
        for number, words in enumerate(arguments)
    )
    expected = (
        f"part-{number}.sh {shlex.join(words).strip()}".strip()
        for number, words in enumerate(arguments)
    )
    assert script_names(text) == "; ".join(expected)
