"""No file of a run, however damaged, crashes a command that reads the run.

Each example damages one file of a finished run and calls the real command line. The exit code is
that of a verdict or of bad input, and never 70; nothing printed has a control character.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import END, START, seal, write_execution
from tests.fixtures.kit import SYMBOLS, Kit, make_kit, steps_of, topology
from tests.folders import PROBES, ROOT
from tests.unit.runs.test_damaged import limited

from proofmark.cli.main import main
from proofmark.packages.stability.stability_plan import stability_plan
from proofmark.packages.stability.terms import StabilityTerms
from proofmark.plan.expansion import make_plan
from proofmark.runs.job_folder import JobFolder, JobStatus, Look, State, add_look
from proofmark.runs.run import Run
from proofmark.site.contract_document import Contract
from proofmark.site.machines import Machine

HOST = os.uname().nodename
CODES = {0, 1, 2, 3}
WORDS: list[Any] = [
    *(None, True, -1, 0, 0.5, 10**19, 10**400, 1e308, -1e308, "", "x", "\0", "\x1b[2J", [], {}),
    *("0001-01-01", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "yesterday", "1e999"),
    *("2026-11-21T10:18:00", [[]], {"x": {}}, "a\nb", "../../x", "n[0-99999999]", "9" * 5000),
]
"""Values that a file of JSON can have instead of its own."""
TEXTS = [
    *(b"", b"\0", b"{", b"[]", b"{}", b"null", b"1e999", b"NaN", b"-1", b'"\\ud800"', b"\xff\xfe"),
    *(b"[" * 200_000, b'{"a":' * 200_000, b"9" * 5000, b"\x1b[2J\n", b"0x1", b"1\n" * 1000),
]
"""Contents that a file can have instead of its own."""
NUMBER = re.compile(rb"(?<![\w.-])\d+(?:\.\d+)?(?![\w.-])")


@dataclass(frozen=True)
class Finished:
    """A finished run, kept whole in `kept`."""

    kind: str
    run: Run
    kept: Path

    def files(self) -> list[str]:
        """Return the files that a person or a job can damage: all but scripts and products."""
        made = {"verdict.json", "report.html", "records.parquet", "rma.csv"}
        found = (path for path in sorted(self.kept.rglob("*")) if path.is_file())
        return [
            f"{path.relative_to(self.kept)}"
            for path in found
            if path.suffix not in (".sh", ".awk") and path.name not in made
        ]


def plain(kit: Kit, contract: Contract) -> Run:
    """Return a run of two steps that measured, with a contract."""
    kit.case(sweep={"size": [1, 2]})
    run = kit.run(site=kit.site().model_copy(update={"contract": contract}))
    for number, step in enumerate(steps_of(run), 1):
        rank = {"rank": 0, "host": HOST, "cpus": "0-1"}
        output = {"stdout": f"size {number}\nrate 100\nEND\n"}
        write_execution(step, HOST, output, binding=[rank])
    ((job,),) = ([job.id for job in group.jobs] for group in run.plan.groups)
    attempt = run.files.job(job).folder / "attempt-1"
    attempt.mkdir(parents=True)
    text = (PROBES / "live-kvm-zen3.txt").read_text(encoding="utf-8")
    text = text.replace("hostname: vm", f"hostname: {HOST}")
    for name, time in (("before", START), ("after", END)):
        dated = re.sub(r"(?m)^\| date: .*", f"| date: {time}", text)
        (attempt / f"{HOST}.{name}").write_text(dated, encoding="utf-8")
    return run


def stability(kit: Kit, contract: Contract) -> Run:
    """Return a stability run whose jobs ended, and whose nodes were looked at."""
    shutil.copyfile(ROOT / "benchmarks/stability.yml", kit.cases / "stability.yml")
    kit.suites(stability={"title": "Stability"})
    use = {"sweep": {"size": 1, "nodes": [1]}}
    kit.case(suites={"stability": use}, cost={"seconds": 150})
    hosts = ["n1", "n2"]
    site = kit.site(hosts=hosts)
    own = {"partition_hosts": hosts, "aliases": {}, "contract": contract}
    site = site.model_copy(update=own)
    machine = Machine({**SYMBOLS, "nodes": 2}, topology(2))
    normal = make_plan(kit.benchmarks(), "stability", site, machine)
    plan = stability_plan(normal, hosts, StabilityTerms(days=1 / 24, load=1))
    run = kit.run(site=site, plan=plan)
    for step in run.plan.steps():
        output = {"stdout": "size 1\nrate 100\nEND\n"}
        write_execution(run.files.step(step.id).folder, step.nodes[0], output)
    for at in range(0, 3600, 600):
        add_look(run.files, Look(1.7e9 + at, {"n1": "down"} if at == 1200 else {}))
    return run


def with_history(run: Run) -> Run:
    for group in run.plan.groups:
        for job in group.jobs:
            folder = JobFolder(run, job)
            folder.files.folder.mkdir(parents=True, exist_ok=True)
            submission = folder.create("none", "p1")
            for state in (State.WAITING, State.RUNNING, State.ENDED):
                folder.append_event(submission, JobStatus(state), over=state is State.ENDED)
    return run


def with_files_of_the_controller(run: Run) -> Run:
    texts: dict[Path, Any] = {
        run.files.decisions: {"more": {steps_of(run)[0].name: 1}} if run.plan.steps() else {},
        run.files.asked: {"language": "en"},
        run.files.mounted: {"n1": ["/x"]},
    }
    for path, content in texts.items():
        path.write_text(json.dumps(content))
    return run


ITEM = {"number": "4.1", "text": "t", "value": 50, "at_least": 1}
ITEMS = {
    "plain": {**ITEM, "case": "fake", "metric": "rate", "unit": "MB/s"},
    "stability": {
        **{**ITEM, "phase": "stability", "case": "stability"},
        **{"metric": "jobs_finished", "unit": "%"},
    },
}
CONTRACT = {"title": "T", "parties": {"buyer": "B"}, "signers": ["b@x ssh-ed25519 AAAA"]}


@pytest.fixture(scope="module", params=["plain", "stability"])
def finished(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Finished]:
    folder = tmp_path_factory.mktemp("damage")
    kit = make_kit(folder)
    make = {"plain": plain, "stability": stability}[request.param]
    document = Contract.model_validate({**CONTRACT, "items": [ITEMS[request.param]]})
    run = make(kit, document)
    with_history(run)
    with_files_of_the_controller(run)
    kept = folder / "kept"
    shutil.copytree(run.folder, kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROOFMARK_STATE", f"{folder / 'state'}")
        yield Finished(request.param, run, kept)


def commands(run: Run, output: Path) -> list[list[str]]:
    """Return commands that read a run; the slow one is the last."""
    folder = f"{run.folder}"
    return [
        ["status", folder],
        ["status", folder, "--json"],
        ["verdict", folder],
        ["verdict", folder, "--json"],
        ["stage", "collect", folder],
        ["export", folder, "--format", "csv", "-o", f"{output}"],
        ["report", folder, "--json"],
    ]


def damaged(dice: Random, content: bytes) -> bytes:
    """Return the content of a file with a damage."""
    lines = content.splitlines()
    jsonl = len(lines) > 1 and all(line[:1] == b"{" for line in lines)
    place = dice.randrange(len(lines)) if jsonl else 0
    kinds = ["whole", "cut", "bytes", "number"]
    with suppress(ValueError):
        values = json.loads(lines[place] if jsonl else content)
        if values and isinstance(values, (dict, list)):
            changed = json.dumps(other(dice, values)).encode()
            lines[place:] = [changed, *lines[place + 1 :], b""] if jsonl else [changed]
            kinds += 6 * ["value"]
    kind = dice.choice(kinds)
    if kind == "value":
        return b"\n".join(lines)
    word = dice.choice(TEXTS)
    if kind == "whole" or not content:
        return word
    at = dice.randrange(len(content))
    if kind == "cut":
        return content[:at]
    if kind == "number" and (found := NUMBER.search(content, at)):
        return content[: found.start()] + word + content[found.end() :]
    return content[:at] + word + content[at + dice.randrange(20) :]


def other(dice: Random, values: Any) -> Any:
    """Return a value of JSON with one of the values in it replaced or left out."""
    key = dice.choice(list(values) if isinstance(values, dict) else range(len(values)))
    changed, inside = copy(values), values[key]
    if isinstance(inside, (dict, list)) and inside and dice.random() < 0.7:
        changed[key] = other(dice, inside)
    elif dice.random() < 0.3:
        del changed[key]
    else:
        changed[key] = dice.choice(WORDS)
    return changed


def called(words: list[str]) -> tuple[int, str]:
    """Return the exit code of a command, and what it prints."""
    printed = io.StringIO()
    with limited(), redirect_stdout(printed), redirect_stderr(printed):
        code = main(words)
    return code, printed.getvalue()


def problem(finished: Finished, contents: Mapping[str, bytes], chosen: Iterable[int]) -> str:
    """Return what is wrong in commands after files get `contents`; empty if nothing is."""
    run = finished.run
    shutil.rmtree(run.folder)
    shutil.copytree(finished.kept, run.folder)
    for name, content in contents.items():
        path = run.folder / name
        path.write_bytes(content)
        if path.parent.name.startswith("execution-") and len(content) % 2:
            seal(path.parent)  # the job itself wrote it
    every = commands(run, finished.kept.parent / "out")
    for words in (every[number] for number in chosen):
        code, printed = called(words)
        odd = [line for line in printed.splitlines() if not line.isprintable()]
        if code not in CODES or odd:
            return f"{[*contents]} {words[0]}: {code} {odd[:1]} {printed[-300:]!r}"
    return ""


@given(st.randoms(use_true_random=False))
def test_no_damage_crashes_a_command(finished: Finished, dice: Random) -> None:
    name = dice.choice(finished.files())
    content = damaged(dice, (finished.kept / name).read_bytes())
    chosen = dice.sample(range(6), 2) if dice.random() < 0.8 else [-1]
    assert problem(finished, {name: content}, chosen) == ""


def test_a_whole_run_is_read(finished: Finished) -> None:
    """Control: no fault is injected."""
    assert problem(finished, {}, []) == ""
    every = commands(finished.run, finished.kept.parent / "out")
    expected = {"plain": {0}, "stability": {0, 1, 2}}[finished.kind]
    assert {called(words)[0] for words in every} <= expected


BAD_TIMES: list[Any] = [
    *("yesterday", "", "2026-11-21T10:18:00", "0001-01-01T00:00:00+23:59", "1969-12-31T23:00:00Z"),
    *("9999-12-31T23:59:59-23:59", "\0", True, None, 1e308, [], {}),
]


def with_time(name: str, content: bytes, time: Any) -> bytes:
    """Return the content of a file with another time; empty if it has none."""
    first, *rest = content.splitlines(keepends=True) or [b""]
    if name.endswith(("history.jsonl", "node-states.jsonl")):
        changed = json.dumps({**json.loads(first), "time": time}).encode()
        return b"".join([changed, b"\n", *rest])
    if name.endswith("when.json"):
        return json.dumps({**json.loads(content), "start": time}).encode()
    if name.endswith(("before", "after")):
        return re.sub(rb"(?m)^\| date: .*", lambda _: f"| date: {time}".encode(), content)
    return b""


@pytest.mark.fault("time-damaged")
@pytest.mark.parametrize("time", BAD_TIMES)
def test_a_damaged_time_is_named(finished: Finished, time: Any) -> None:
    """In the history of a job, in an execution, in a probe, and in a look at the nodes."""
    contents = {name: (finished.kept / name).read_bytes() for name in finished.files()}
    changed = {name: with_time(name, content, time) for name, content in contents.items()}
    assert problem(finished, {key: each for key, each in changed.items() if each}, [0, 2]) == ""
    code, printed = called(["verdict", f"{finished.run.folder}"])
    assert code == 2
    assert "history.jsonl: damaged lines: 1" in printed
    named = {"plain": "is damaged", "stability": "node-states.jsonl: 1 line is no look"}
    assert named[finished.kind] in printed
