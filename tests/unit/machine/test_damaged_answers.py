"""Answers of schedulers that are damaged, or that contain a text which somebody typed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.folders import ROOT

from proofmark.common.files import parse_printed_json
from proofmark.machine.outcome import NodeError
from proofmark.machine.scheduler import (
    SCHEDULERS,
    DrainingScheduler,
    Request,
    Scheduler,
    SchedulerError,
    SchedulerUnavailable,
    scheduler,
)
from proofmark.machine.schedulers import flux, loadleveler, lsf, pbs, sge, slurm
from proofmark.packages.survey.listings import LISTINGS
from proofmark.runs.job_folder import JobStatus
from proofmark.site.execution import Queue

DATA = ROOT / "tests/data/schedulers"
MODULES = {m.__name__.rpartition(".")[2]: m for m in (flux, loadleveler, lsf, pbs, sge, slurm)}
IDS = {
    **{"flux": "fM7Zq9AKHno", "loadleveler": "srv24ib.840220", "lsf": "771"},
    **{"pbs": "1234.pbs01", "sge": "17", "slurm": "17"},
}
JOBS = {
    "flux": "fM7Zq9AKHno|R|16|||\nfM7Zq9AKHnp|F|16||exec|\n",
    "loadleveler": "srv24ib.840220.0!R!p1\nsrv24ib.1.0!I!p2\n",
    "lsf": '{"COMMAND":"bjobs","JOBS":1,"RECORDS":[\n{\n"JOBID":"771",\n"STAT":"RUN"\n}\n]}\n',
    "pbs": '{\n"Jobs":{\n"1234.pbs01":{\n"job_state":"R",\n"comment":"x"\n}\n}\n}\n',
    "sge": "<job_info>\n<job_list>\n<JB_job_number>17</JB_job_number>\n<state>r</state>\n"
    "</job_list>\n<Queue-List>\n<name>all.q@n1</name>\n</Queue-List>\n</job_info>\n",
    "slurm": "17|RUNNING|None\n18|PENDING|Priority\n",
}
"""An answer of each scheduler to the question for its jobs, as its command prints it."""
NODES = {
    "flux": "free|n[1-2]\nallocated|n3\n",
    "loadleveler": "n1!Idle\nn2!Run\n",
    "lsf": "HOST_NAME STATUS JL/U MAX NJOBS RUN SSUSP USUSP RSV\nn1 ok - 4 0 0 0 0 0\n",
    "pbs": '{\n"nodes":{\n"n1":{\n"state":"free",\n"comment":"x",\n"jobs":[\n"1"\n]\n}\n}\n}\n',
    "sge": JOBS["sge"],
    "slurm": "n1|idle\nn2|drained*\n",
}
WORDS = st.sampled_from(
    [
        *('"', "\\", "\\x27", "'", "\n", "|", "!", "[", "]", "{", "}", "<", "&", "]]>", "\x00"),
        *("\x1b[31m", "\udc80", "\ufffd", "\u2028", "0042", "nan", "1e999", "9" * 5000, ":", ","),
        *("n[1-", "n[1-99999999]", "state", "%", "=", "slurmstepd: error", "<!DOCTYPE a>"),
    ]
)


@st.composite
def damaged(draw: st.DrawFn, whole: list[str]) -> str:
    """Return an answer of which parts are removed, repeated or replaced."""
    text = draw(st.sampled_from([*whole, ""]))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(len(text), at + 20)))
        inside = draw(st.one_of(WORDS, st.text(max_size=10), st.just(text[at:end] * 2)))
        text = text[:at] + inside + text[end:]
    return text


def calls(name: str, folder: Path) -> dict[str, Callable[[], object]]:
    """Return all questions to a scheduler."""
    module, job = scheduler(name), IDS[name]
    script = folder / "job.sh"
    script.write_text("")
    request = Request("p1", ("n1",), 60, folder / "log", Queue())
    found: dict[str, Callable[[], object]] = {
        "states": lambda: module.states([job]),
        "ended": lambda: module.ended(job),
        "find": lambda: module.find("p1"),
        "nodes": lambda: module.nodes(["n1", "n2"]),
        "cancel": lambda: module.cancel([job]),
        "submit": lambda: module.submit(script, request),
    }
    if isinstance(module, DrainingScheduler):
        draining = module
        found["node_status"] = lambda: draining.node_status(["n1", "n2"])
        found["reservations"] = draining.reservations
        found["missing_permission"] = lambda: draining.missing_permission("n1")
    return found


def check(name: str, question: str, answer: object) -> None:
    """Fail if an answer is not of the type that the base class promises."""
    states = [*answer.values()] if isinstance(answer, dict) else []
    if question == "states":
        assert all(isinstance(state, JobStatus) for state in states)
    elif question == "nodes":
        assert all(state.split()[0] in ("idle", "busy", "reserved", "down") for state in states)
    elif question in ("find", "submit"):
        assert isinstance(answer, str)
        assert not set(answer) & set(" \n|<\"'\\")


@pytest.mark.fault("poll-unreadable")
@pytest.mark.parametrize("name", MODULES)
@given(data=st.data())
def test_no_answer_raises_another_exception(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    text = data.draw(damaged([JOBS[name], NODES[name]]))
    module: Any = MODULES[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ask_scheduler", lambda *words, **options: text, raising=False)
        for question, call in calls(name, tmp_path_factory.getbasetemp()).items():
            try:
                check(name, question, call())
            except (SchedulerError, SchedulerUnavailable, NodeError):
                continue


LISTED = {
    "lsf": ["lsf-bhosts.txt", "lsf-bmgroup.txt", "lsf-lshosts.txt"],
    "pbs": ["pbsnodes.json"],
    "sge": ["sge-qhost.xml"],
    "slurm": ["slurm-nodes.txt", "slurm-partitions.txt", "slurm-topology.txt"],
}


@pytest.mark.parametrize("name", LISTED)
@given(data=st.data())
def test_no_listing_raises_another_exception(name: str, data: st.DataObject) -> None:
    whole = [(DATA / file).read_text(encoding="utf-8") for file in LISTED[name]]
    listing = LISTINGS.get(name)()

    def ask(*command: str) -> str:
        return data.draw(damaged(whole))

    for question in (listing.nodes, SCHEDULERS.get(name)().queue_limits, listing.fabric):
        try:
            question(ask)
        except NodeError:
            continue


HUGE = "9" * 5000
"""Python refuses to convert so many digits, with a ValueError."""


@pytest.mark.parametrize("name", LISTED)
def test_a_number_of_any_length_is_no_other_exception(name: str) -> None:
    listing = LISTINGS.get(name)()
    for file in LISTED[name]:
        text = (DATA / file).read_text(encoding="utf-8")
        for number in list(re.finditer(r"[0-9]+", text))[:200]:
            long = text[: number.start()] + HUGE + text[number.end() :]
            for question in (listing.nodes, SCHEDULERS.get(name)().queue_limits, listing.fabric):
                with suppress(NodeError):
                    question(lambda *command, answer=long: answer)


def test_limits_of_flux_of_any_length_are_no_other_exception() -> None:
    for line in (f"q|enabled|enabled|{HUGE}|2", f"q|enabled|enabled|60|{HUGE}"):
        limits = SCHEDULERS.get("flux")().queue_limits(lambda *command, answer=line: answer)
        assert None in (limits["q"].max_walltime_s, limits["q"].max_nodes)


OLD = """{{
    "timestamp":1772445600,
    "pbs_version":"18.1.4",
    "nodes":{{
        "cn001":{{
            "state":"free",
            "resources_available":{{
                "host":"cn001",
                "ncpus":40
            }},
            "comment":{comment}
        }},
        "cn002":{{
            "state":"job-busy",
            "jobs":[
                "42.pbs01"
            ]
        }}
    }}
}}
"""
"""JSON of pbsnodes before OpenPBS 20: one pair a line, and a text with a line break has \\n."""


def test_whole_json_of_pbs_is_read() -> None:
    printed = parse_printed_json(OLD.format(comment='"a \\"quoted\\" \\u00e9"'))
    assert printed["nodes"]["cn001"]["comment"] == 'a "quoted" \xe9'
    assert printed["nodes"]["cn002"]["jobs"] == ["42.pbs01"]


@pytest.mark.fault("pbs-text-breaks-json")
@pytest.mark.parametrize(
    ("comment", "read"),
    [
        ('"HEALTH: mount "scratch" lost"', 'HEALTH: mount "scratch" lost'),
        (r'"can\'t reach BMC"', "can't reach BMC"),
        (r'"can\x27t reach BMC"', "can't reach BMC"),
        (r'"C:\Users\new"', "C:\\Users\new"),
        ('"ends with \\"', "ends with \\"),
        ('"bell \x07 and \x1b[31m"', "bell \x07 and \x1b[31m"),
        ("0042", "0042"),
        ("nan", "nan"),
        ("-inf", "-inf"),
        ('"x","state":"offline"', 'x","state":"offline'),
        ('"}}"', "}}"),
        ('"{"', "{"),
        ('""', ""),
        ('"', '"'),
        ("", None),
    ],
)
def test_a_text_does_not_hide_its_node_or_another(comment: str, read: str | None) -> None:
    nodes = parse_printed_json(OLD.format(comment=comment))["nodes"]
    assert nodes["cn001"].get("comment") == read
    assert nodes["cn001"]["state"] == "free"
    assert nodes["cn001"]["resources_available"] == {"host": "cn001", "ncpus": 40}
    assert nodes["cn002"] == {"state": "job-busy", "jobs": ["42.pbs01"]}


@pytest.mark.fault("pbs-text-breaks-json")
@given(st.text(alphabet=st.characters(exclude_characters="\n"), max_size=40))
def test_any_comment_stays_that_of_its_node(comment: str) -> None:
    nodes = parse_printed_json(OLD.format(comment=f'"{comment}"'))["nodes"]
    assert nodes["cn001"]["state"] == "free"
    assert nodes["cn002"] == {"state": "job-busy", "jobs": ["42.pbs01"]}


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_json_is_read_as_it_is(value: Any) -> None:
    for indent in (None, 1):
        assert parse_printed_json(json.dumps(value, indent=indent)) == value


def test_a_bad_name_in_the_xml_of_grid_engine_hides_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = (
        "<?xml version='1.0'?>\n<job_info>\n<job_list>\n<JB_job_number>1</JB_job_number>\n"
        "<JB_name>a & b < c\x07</JB_name>\n<state>r</state>\n</job_list>\n<job_list>\n"
        "<JB_job_number>2</JB_job_number>\n<JB_name>p1</JB_name>\n<state>qw</state>\n"
        "</job_list>\n</job_info>\n"
    )
    monkeypatch.setattr(sge, "ask_scheduler", lambda *words, **options: printed)
    module: Scheduler = sge.GridEngine()
    assert sorted(module.states(["1", "2"])) == ["1", "2"]
    assert module.find("p1") == "2"
