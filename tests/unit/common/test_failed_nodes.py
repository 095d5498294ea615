"""The nodes that failed in a command are written to the file descriptor of an option."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.kit import make_kit
from tests.fixtures.shipped import shipped_site

from proofmark.cli.main import main
from proofmark.common.errors import (
    InputError,
    NodeFailure,
    note_failed_nodes,
    note_input_errors,
    take_failed_nodes,
)


@pytest.fixture(autouse=True)
def none_collected() -> Iterator[None]:
    take_failed_nodes()
    yield
    take_failed_nodes()


def test_a_node_keeps_its_first_reason() -> None:
    first, second, other = NodeFailure("first", "HELD"), NodeFailure("second"), NodeFailure("other")
    note_failed_nodes({"n1": first})
    note_failed_nodes({"n1": second, "n2": other})
    assert take_failed_nodes() == {"n1": first, "n2": other}
    assert take_failed_nodes() == {}


def test_nodes_are_those_in_the_keys_of_input_errors() -> None:
    errors = [
        InputError("/scratch", "", "on the root file system", "another", nodes="n[1-2]"),
        InputError("/scratch", "", "x", "y", nodes="no node!"),
        InputError("plan.json", "steps", "x", "y"),
        InputError("plan.json", "", "x", "y"),
    ]
    note_input_errors(errors)
    failure = NodeFailure("/scratch: on the root file system")
    assert take_failed_nodes() == dict.fromkeys(("n1", "n2"), failure)


@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("/bin/sh", ""),
        ("/no/such/program", "no such program: "),
        ("/etc/passwd", "not executable: "),
    ],
)
def test_a_command_writes_its_failed_nodes(tmp_path: Path, program: str, found: str) -> None:
    run = make_kit(tmp_path / "kit").run(site=shipped_site("local", "local"))
    path = tmp_path / "failed.json"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    option = f"--failed-nodes-fd={descriptor}"
    code = main([option, "stage", "check-programs", f"{run.folder}", f"--program={program}"])
    assert code == (3 if found else 0)
    written = json.loads(path.read_text())
    assert bool(written) == bool(found)
    assert all(f"{found}{program}" in reason for reason in written.values())
