"""Names of hosts: one pattern for every source, and node sets that are measured first."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from proofmark.common.input_limits import MAX_NODES
from proofmark.common.nodesets import (
    Nodes,
    check_name,
    fold,
    folded,
    hostlist,
    hosts_of,
    is_name,
    unfold,
)
from proofmark.machine.scheduler_commands import one_by_one
from proofmark.plan.plan import Job
from proofmark.plan.rank_cpus import RankCpusList
from proofmark.site.node.cpu import cpu_list, cpu_mask

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,30}", fullmatch=True)
ODD = [
    "",
    "-x",
    ".",
    "..",
    "a/b",
    "a b",
    "a;b",
    "$(id)",
    "@all",
    "*",
    "a\n",
    "a\x00",
    "é",
    "a" * 254,
]
HUGE = ["n[0-999999999]", "n[0-99999]x[0-99999]", "n[0-9]" * 9, "n[0-999999999999],a"]


class Model(BaseModel):
    nodes: Nodes = []
    ranks: RankCpusList = []


@pytest.mark.parametrize("name", ["n1", "knl0001", "login-1.site.example", "A_b", "a" * 253, "7"])
def test_a_host_name_is_accepted(name: str) -> None:
    """Control: no fault is injected."""
    assert check_name(name) == name
    assert unfold(fold([name, "other"])) == [name, "other"]


@pytest.mark.fault("host-name-odd")
@pytest.mark.parametrize("name", ODD)
def test_an_odd_name_is_refused_from_every_source(name: str) -> None:
    assert not is_name(name)
    for refusing in (fold, unfold):
        with pytest.raises(ValueError, match=r"host name|node set"):
            refusing([name])
    with pytest.raises(ValidationError):
        Model.model_validate({"nodes": [name]})
    with pytest.raises(ValidationError):
        Job.model_validate({"id": name or "/", "nodes": [], "steps": []})
    assert name in folded(["n1", name])


@pytest.mark.fault("node-set-huge")
@pytest.mark.parametrize("text", HUGE)
def test_a_huge_node_set_is_refused_before_it_is_expanded(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match=f"more than {MAX_NODES}|host name"):
        unfold([text])
    with pytest.raises(ValueError, match=f"more than {MAX_NODES}|host name"):
        hosts_of(text)
    with pytest.raises(ValidationError):
        Model.model_validate({"nodes": [text]})
    assert time.process_time() - start < 5  # an expansion takes minutes


@pytest.mark.parametrize(
    "text",
    ["n[0-9", "n]0[", "n[9-0]", "n[a-b]", "n[1-2]!n1", "a,", ",", "n[1-2/0]", "n[]"],
)
def test_what_is_no_node_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        unfold([text])


@given(st.lists(names, max_size=20, unique=True))
def test_names_survive_a_node_set(given_names: list[str]) -> None:
    assert unfold(fold(given_names)) == given_names


@given(st.text(max_size=40))
def test_any_text_is_names_or_refused(text: str) -> None:
    try:
        assert all(map(is_name, unfold([text])))
    except ValueError as error:
        assert str(error)


@pytest.mark.fault("cpu-list-huge")
@pytest.mark.parametrize("text", ["0-999999999", "0-65536", "0-65535,0-65535", "9" * 5000])
def test_a_huge_list_of_cpus_is_refused_before_it_is_expanded(text: str) -> None:
    with pytest.raises(ValueError, match="is not a list of processors"):
        cpu_list(text)
    with pytest.raises(ValueError, match="processors"):
        cpu_mask("f" * 50_000_000)
    with pytest.raises(ValidationError, match="accepted"):
        Model.model_validate({"ranks": [[0, 999_999_999, [[0]]]]})


def test_a_list_of_cpus_is_read() -> None:
    """Control: no fault is injected."""
    assert cpu_list("0-3,8,16-20:2\n") == {0, 1, 2, 3, 8, 16, 18, 20}
    assert cpu_mask("00000001,0000000f") == {0, 1, 2, 3, 32}
    assert len(Model.model_validate({"ranks": [[0, 9, [[0], [1]]]]}).ranks) == 20


@pytest.mark.fault("host-name-in-a-script")
@pytest.mark.parametrize("shell", ["sh", "dash"])
def test_a_name_is_one_word_of_a_script(tmp_path: Path, shell: str) -> None:
    """A name that no check refused is still data: the script prints it and runs nothing."""
    odd = "a b; touch ran $(touch ran) `touch ran` '"
    script = "\n".join(
        [*one_by_one(["n1", odd], "printf '[%s]\\n' \"$node\" >&2; :"), "on_all true"]
    )
    done = subprocess.run(
        [shell, "-c", script],
        env={"HOST": "other", "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert sorted(done.stderr.splitlines()) == sorted(["[n1]", f"[{odd}]"])
    assert not (tmp_path / "ran").exists()


@given(st.lists(names, min_size=1, max_size=8, unique=True))
def test_a_host_list_has_one_range_in_each_name(given: list[str]) -> None:
    text = hostlist(given)
    assert sorted(unfold([text])) == sorted(given)
    assert all(part.count("[") <= 1 for part in re.split(r",(?![^\[]*\])", text))


def test_a_host_list_has_fewer_ranges_than_a_node_set() -> None:
    racks = [f"r{rack}n{node}" for rack in (1, 2) for node in (1, 2)]
    assert (folded(racks), hostlist(racks)) == ("r[1-2]n[1-2]", "r1n[1-2],r2n[1-2]")
