"""Schedulers that drain nodes: the status of a node, drain, resume, and the permission."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.emulators.bmc.rollouts import FileSlurm, path_with

from proofmark.common.errors import BadInput
from proofmark.common.rights import User
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import draining
from proofmark.machine.schedulers import pbs, slurm
from proofmark.machine.schedulers.pbs import Pbs
from proofmark.machine.schedulers.slurm import Slurm, read_reasons

MARK = "4f1d"


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (f"{MARK} n1 none\n", {"n1": ""}),
        (f"{MARK} n1 bad DIMM\n{MARK} n2 none\n", {"n1": "bad DIMM", "n2": ""}),
        (f"{MARK} n1 a  b \n{MARK} n1 a  b \n", {"n1": "a  b "}),
        (f"{MARK} n1 first\nn2 none\n\n{MARK} n2 none\n", {"n1": "first\nn2 none", "n2": ""}),
    ],
)
def test_reasons_of_sinfo_are_read_whole(text: str, reasons: dict[str, str]) -> None:
    assert read_reasons(text, MARK) == reasons


@given(st.dictionaries(st.sampled_from(["n1", "n2", "n3"]), st.text(min_size=1), min_size=1))
def test_no_reason_changes_that_of_another_node(given: dict[str, str]) -> None:
    kept = {node: text.replace(f"\n{MARK}", "") for node, text in given.items()}
    text = "".join(f"{MARK} {node} {reason}\n" for node, reason in kept.items())
    read = read_reasons(text, MARK)
    assert read == {
        node: "" if (whole := reason.rstrip("\n")) == "none" else whole
        for node, reason in kept.items()
    }


def test_slurm_drains_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = FileSlurm(tmp_path)
    monkeypatch.setenv("PATH", path_with(tmp_path))
    Slurm().drain(["n1"], "proofmark:r x")
    assert emulated.drained == {"n1": "proofmark:r x"}
    assert Slurm().node_status(["n1"])["n1"].reason == "proofmark:r x"
    Slurm().resume(["n1"])
    assert emulated.drained == {}


def test_pbs_reads_the_status_and_drains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = '{"nodes": {"n1": {"state": "offline,job-busy", "comment": "x", "jobs": ["1"]}}}'
    (tmp_path / "pbsnodes").write_text(f'#!/bin/sh\necho "$@" >>"$0.calls"\necho \'{output}\'\n')
    (tmp_path / "pbsnodes").chmod(0o755)
    monkeypatch.setenv("PATH", path_with(tmp_path))
    status = Pbs().node_status(["n1"])["n1"]
    assert (status.out, status.idle, status.reason) == (True, False, "x")
    Pbs().drain(["n1"], "proofmark:r")
    assert "-o -C proofmark:r n1" in (tmp_path / "pbsnodes.calls").read_text()


@pytest.mark.parametrize("output", ["{", "[]", '{"nodes": []}', "", "[" * 100_000])
def test_damaged_json_of_pbsnodes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    (tmp_path / "output").write_text(output)
    (tmp_path / "pbsnodes").write_text(f"#!/bin/sh\ncat {tmp_path}/output\n")
    (tmp_path / "pbsnodes").chmod(0o755)
    monkeypatch.setenv("PATH", path_with(tmp_path))
    with pytest.raises(NodeError, match="not JSON of PBS"):
        Pbs().node_status(["n1"])


def test_a_node_that_the_scheduler_does_not_list_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not change the status of the others."""
    FileSlurm(tmp_path)
    (tmp_path / "sinfo").rename(tmp_path / "real")
    (tmp_path / "sinfo").write_text(f'#!/bin/sh\n{tmp_path}/real "$@" | grep -v n2\n')
    (tmp_path / "sinfo").chmod(0o755)
    (tmp_path / "pbsnodes").write_text('#!/bin/sh\necho \'{"nodes": {"n1": {"state": "free"}}}\'\n')
    (tmp_path / "pbsnodes").chmod(0o755)
    monkeypatch.setenv("PATH", path_with(tmp_path))
    monkeypatch.setattr(slurm, "folded", ",".join)
    for scheduler, program in ((Slurm(), "sinfo"), (Pbs(), "pbsnodes")):
        statuses = scheduler.node_status(["n1", "n2"])
        assert not statuses["n1"].out
        assert (statuses["n2"].out, statuses["n2"].idle) == (True, False)
        assert statuses["n2"].reason == f"{program} does not list the node"


def test_a_scheduler_that_cannot_drain_is_refused() -> None:
    message = "'loadleveler', whose nodes the kit cannot drain; accepted: none, pbs, slurm"
    with pytest.raises(BadInput, match=message):
        draining("loadleveler")


def program(folder: Path, name: str, lines: str) -> None:
    """Write a program that keeps its command lines in calls, then runs `lines`."""
    text = f'#!/bin/sh\necho "{name} $*" >>{folder}/calls\n{lines}\n'
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


SCONTROL = """
[ "$*" = "show config" ] || exit 1
echo "AccountingStorageType   = accounting_storage/$STORAGE"
echo "SlurmUser               = slurm(64030)"
"""
SACCTMGR = """
[ "$*" = "--noheader --parsable2 show user name=eve format=AdminLevel" ] || exit 1
[ "$LEVEL" != silent ] || { echo "Problem talking to the database" >&2; exit 1; }
[ -z "$LEVEL" ] || echo "$LEVEL"
"""
"""sacctmgr prints no line for a user that is not in the accounting database."""


@pytest.mark.parametrize(
    ("uid", "storage", "level", "missing"),
    [
        (0, "none", "", ""),
        (64030, "none", "", ""),
        (1000, "slurmdbd", "Operator", ""),
        (1000, "slurmdbd", "Administrator", ""),
        (1000, "slurmdbd", "None", "eve has the admin level 'None'; accepted: root"),
        (1000, "slurmdbd", "", "eve has the admin level ''; accepted: root"),
        (1000, "none", "Operator", "eve has no admin level, because Slurm has no slurmdbd"),
    ],
)
def test_slurm_reports_the_permission_and_nothing_is_changed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    uid: int,
    storage: str,
    level: str,
    missing: str,
) -> None:
    program(tmp_path, "scontrol", f"STORAGE={storage}{SCONTROL}")
    program(tmp_path, "sacctmgr", f"LEVEL={level}{SACCTMGR}")
    monkeypatch.setenv("PATH", path_with(tmp_path))
    monkeypatch.setattr(slurm, "starting_user", lambda: User("eve", uid, uid, "/"))
    found = Slurm().missing_permission("n1")
    assert found.startswith(missing) and bool(found) == bool(missing)
    calls = {line.split()[1] for line in (tmp_path / "calls").read_text().splitlines()}
    assert calls <= {"show", "--noheader"}


@pytest.mark.parametrize("problem", ["silent", "no such program"])
def test_the_permission_is_unknown_without_an_answer_of_slurmdbd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    program(tmp_path, "scontrol", f"STORAGE=slurmdbd{SCONTROL}")
    if problem == "silent":
        program(tmp_path, "sacctmgr", f"LEVEL=silent{SACCTMGR}")
    monkeypatch.setenv("PATH", path_with(tmp_path))
    monkeypatch.setattr(slurm, "starting_user", lambda: User("eve", 1000, 1000, "/"))
    with pytest.raises(NodeError, match="sacctmgr show user name=eve format=AdminLevel") as raised:
        Slurm().missing_permission("n1")
    assert raised.value.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("user", "here", "lists", "missing"),
    [
        ("root", "head.example.org", {}, ""),
        ("root", "login.example.org", {"managers": "root@login.example.org"}, ""),
        ("eve", "head.example.org", {"operators": "adam@*,eve@*.example.org"}, ""),
        ("eve", "head.example.org", {}, "the managers and operators of head.example.org are not"),
        ("eve", "head.example.org", {"managers": "adam@*", "operators": "eva@*"}, "the managers"),
        ("root", "login.example.org", {"managers": "adam@*"}, "the managers"),
    ],
)
def test_pbs_reports_the_permission_and_nothing_is_changed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    user: str,
    here: str,
    lists: dict[str, str],
    missing: str,
) -> None:
    found = pbs_permission(tmp_path, monkeypatch, user, here, lists)
    assert found.startswith(missing) and bool(found) == bool(missing)
    assert (tmp_path / "calls").read_text() == "qstat -B -f -F json\n"


def test_the_permission_is_unknown_if_pbs_lists_the_user_on_another_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NodeError, match="this host is login; `getent hosts login`") as raised:
        pbs_permission(tmp_path, monkeypatch, "eve", "login", {"managers": "eve@l1.example.org"})
    assert raised.value.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("output", ["{", "[]", '{"Server": {}}', '{"Server": {"head": 1}}'])
def test_damaged_json_of_the_server_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    program(tmp_path, "qstat", f"echo '{output}'")
    monkeypatch.setenv("PATH", path_with(tmp_path))
    with pytest.raises(NodeError, match=r"not JSON of (PBS|one server)"):
        Pbs().missing_permission("n1")


def pbs_permission(
    folder: Path, patch: pytest.MonkeyPatch, user: str, here: str, lists: dict[str, str]
) -> str:
    """Return the missing permission of `user` on the host `here` with a server on head."""
    server: dict[str, Any] = {"server_state": "Active", "server_host": "head.example.org", **lists}
    program(folder, "qstat", f"echo '{json.dumps({'Server': {'head': server}})}'")
    patch.setenv("PATH", path_with(folder))
    patch.setattr(pbs, "starting_user", lambda: User(user, 1000, 1000, "/"))
    patch.setattr(pbs, "getfqdn", lambda: here)
    patch.setattr(pbs, "gethostname", lambda: here.partition(".")[0])
    return Pbs().missing_permission("n1")
