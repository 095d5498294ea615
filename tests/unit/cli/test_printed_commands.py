"""Commands that the kit prints of a run whose files are hostile: root can paste each of them."""

from __future__ import annotations

import base64
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from html import unescape
from pathlib import Path

import pytest
from ansible.parsing.splitter import parse_kv
from tests.fixtures.report_run import HOST, Outputs, made_run
from tests.forks import tools
from tests.unit.common.test_printed_command import EVIL

from proofmark.cli.main import main
from proofmark.common.errors import NodeFailure, note_failed_nodes, take_failed_nodes
from proofmark.common.printed_command import LIMIT
from proofmark.common.rights import this_user
from proofmark.judge.ending import next_command
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.runs.identity import write_identity
from proofmark.runs.play_variables import (
    acceptance_command,
    not_in,
    play_variable_names,
    write_play_variables,
)
from proofmark.runs.run import Run, open_run, site_of
from proofmark.runs.stage_faults import noting_faults
from proofmark.site.extra_vars import call_variables

pytestmark = pytest.mark.rest("Ansible starts for each hostile value")

Print = Callable[..., str]
GOOD = {
    "repeats": "30",
    "rolling": "rack",
    "stability_days": "14.0",
    "stability_load": "0.5",
    "provision_from": "spack",
    "scratch_dir": "/a b/c,d",
    "baseline": "accepted",
    "accept_unjudged": "True",
}
"""A value of each variable that a plan keeps."""
PROGRAM = re.compile(r"(?:ansible-playbook|proofmark|sh) [^;\n`]*")
MARKS = ("{{", "{%", "{#", "lookup", "\x1b", "ssh_executable=")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Yield a run with a missing step, a failed step and a stage that failed."""
    take_failed_nodes()

    def without_last(outputs: Outputs) -> None:
        del outputs[max(outputs)]

    made = made_run(tmp_path / "runs", change=without_last)
    for stage in ("scratch", "restore"):
        with noting_faults(made.folder, stage):
            note_failed_nodes({HOST: NodeFailure("no response", "NO_ANSWER")})
    take_failed_nodes()
    yield made
    take_failed_nodes()


def edited(run: Run, plan: Mapping[str, str], site: Mapping[str, str]) -> None:
    """Change fields of the plan and of the site of `run`, as the run user can do."""
    for path, fields in ((run.files.plan, plan), (run.files.site, site)):
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    write_identity(run.folder, this_user().name)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Print:
    """Return a function that runs command lines, and returns what they print and the page."""

    def print_all(folder: Path, *options: str) -> str:
        capsys.readouterr()
        assert main(["report", f"{folder}", "--json", *options]) == 0
        for words in (["status", f"{folder}"], ["verdict"]):
            main([*words, *([f"{folder}"] if len(words) == 1 else [])])
        page = (folder / "report.html").read_text(encoding="utf-8")
        shown = re.findall(r"<(?:code|td)[^>]*>(.*?)</(?:code|td)>", page, re.DOTALL)
        cells = "\n".join(unescape(re.sub("<[^>]*>", "\n", each)) for each in shown)
        notes = unescape(re.sub("<[^>]*>", "\n", page))
        out, err = capsys.readouterr()
        written, end = json.JSONDecoder().raw_decode(out)
        return "\n".join([*written["lines"], out[end:], err, cells, notes])

    return print_all


def commands(text: str, program: str) -> list[list[str]]:
    """Return the words of each command of `program` in a text, without what follows it."""
    found = []
    for line in PROGRAM.findall(text):
        command = re.split(r": it |, then | lists | writes", line)[0].strip().rstrip('",')
        if command.startswith(f"{program} "):
            found.append(shlex.split(command))
    assert found, f"no command of {program}"
    return found


def check_plays(text: str) -> list[dict[str, str]]:
    """Check each printed play; return the extra variables of each."""
    variables = []
    for words in commands(text, "ansible-playbook"):
        program, playbook, i, inventory, limit_option, limit, *options = words
        assert (program, i, limit_option) == ("ansible-playbook", "-i", "-l")
        assert playbook in ("acceptance.yml", "playbooks/restore.yml")
        assert inventory in ("inventory/local", "INVENTORY")
        assert LIMIT.fullmatch(limit), limit
        assert options[::2] == ["-e"] * (len(options) // 2)
        read = [parse_kv(word) for word in options[1::2]]
        for word, each in zip(options[1::2], read, strict=True):
            ((name, value),) = each.items()
            literal = call_variables()[name].literal
            assert literal and literal.fullmatch(value), word
        variables.append({name: value for each in read for name, value in each.items()})
    return variables


def test_a_run_as_the_kit_wrote_it_has_its_commands(run: Run, printed: Print) -> None:
    """Control: no fault is injected."""
    write_play_variables(run, GOOD)
    text = printed(run.folder)
    known = {**GOOD, "suite": run.plan.suite, "run_id": run.id}
    acceptances = [each for each in check_plays(text) if "suite" in each]
    assert acceptances and all(each == known for each in acceptances)
    assert "not in the printed commands" not in text
    assert any("inventory/local" in words for words in commands(text, "ansible-playbook"))


@pytest.mark.fault("template-in-a-command")
def test_hostile_variables_are_in_no_command_and_are_named(run: Run, printed: Print) -> None:
    evil = "{{ lookup('pipe', 'id') }}"
    asked = {
        **dict.fromkeys(play_variable_names(), evil),
        **{"ansible_ssh_executable": "/tmp/x", "signing_key": "/key", "suite": evil},
        **{"run_id": evil, "x -e y": "1", "a\nb": "1", "\x1b[2J": "1", evil: "1", "": "1"},
    }
    write_play_variables(run, asked)
    text = printed(run.folder)
    for variables in check_plays(text):
        assert variables.keys() <= {"suite", "run_id", "confirm_reboot"}
        assert variables["run_id"] == run.id
    assert [mark for mark in MARKS if mark in text] == []
    lines = [line for line in text.splitlines() if "not in the printed commands" in line]
    assert len(lines) >= 2, "the terminal and the page name what is left out"
    command = acceptance_command(run, site_of(run))
    assert {"repeats", "scratch_dir", "accept_unjudged"} <= set(command.left_out)
    assert "…" in command.left_out
    write_play_variables(run, {"ansible_ssh_executable": "/tmp/x"})
    assert "ansible_ssh_executable" in not_in(acceptance_command(run, site_of(run)))


@pytest.mark.fault("template-in-a-command")
@pytest.mark.parametrize("name", play_variable_names())
def test_each_value_that_is_no_literal_is_left_out(run: Run, name: str) -> None:
    for value in EVIL:
        write_play_variables(run, {name: value})
        command = acceptance_command(run, site_of(run))
        assert command.left_out == (name,) and f"{name}=" not in command


EVIL_NAMES = ("{{ lookup('pipe', 'id') }}", "x' -e y='1", "@/tmp/x", "a\nb")


@pytest.mark.fault("template-in-a-command")
def test_hostile_names_of_plan_and_site_are_in_no_command(run: Run, printed: Print) -> None:
    """The last round gives the names different values; all that is printed is looked at there."""
    for rotated in (*((evil,) * 5 for evil in EVIL_NAMES), (*EVIL_NAMES, EVIL_NAMES[0])):
        suite, partition, site, name, partition_name = rotated
        edited(
            run,
            {"suite": suite, "partition": partition, "site": site},
            {
                "name": name,
                "partition_name": partition_name,
                "inventory": f"/tmp/inventory/{suite}",
            },
        )
        command = acceptance_command(open_run(run.folder), site_of(run))
        assert not any(evil in command for evil in rotated), rotated
        assert " -i INVENTORY -l LIMIT " in command
    text = printed(run.folder)
    check_plays(text)
    for words in [*commands(text, "proofmark"), *commands(text, "sh")]:
        assert not any(evil in word for word in words for evil in (*EVIL_NAMES, "pipe"))


@pytest.mark.fault("template-in-a-command")
def test_the_inventory_is_the_one_of_the_person(run: Run, printed: Print) -> None:
    """Ansible executes what an inventory states, and the run user can write the one of the run."""
    edited(run, {}, {"inventory": "/tmp/evil"})
    text = printed(run.folder)
    assert "/tmp/evil" not in text and " -i INVENTORY " in text
    check_plays(text)
    lines = printed(run.folder, "-i", "/etc/my site")
    assert " -i '/etc/my site' -l local " in lines and "/tmp/evil" not in lines


@pytest.mark.fault("template-in-a-command")
@pytest.mark.parametrize("name", ["{{ 1 }}", "x -e y=1", "a'b", "--key"])
def test_a_hostile_name_of_the_folder_is_no_run_id(run: Run, name: str) -> None:
    moved = Run(run.folder.rename(run.folder.with_name(name)), run.plan)
    command = acceptance_command(moved, site_of(moved))
    assert "run_id" not in command and command.left_out == ("run_id",)


@pytest.mark.fault("template-in-a-command")
def test_the_next_command_of_a_folder_with_a_strange_name_is_one_command(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = "runs/a b;id"
    monkeypatch.setattr(Verdict, "retest", lambda self: ("0001-x", "0002-$(id)"))
    text = next_command(judge_run(run), 1, folder)
    rerun, report = text.split(", then ")
    assert shlex.split(rerun) == ["proofmark", "rerun", folder, "0001-x", "STEP"]
    assert shlex.split(report) == ["proofmark", "report", folder]


PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "{{ dict(names | zip(names | map('extract', vars))) | to_json | b64encode }}"
      vars: {names: NAMES}
"""


def values_in_play(folder: Path, command: str, names: list[str]) -> dict[str, str]:
    """Run a printed command with a play that prints variables; return what Ansible reads."""
    (folder / "hosts.yml").write_text("all: {hosts: {local: {ansible_connection: local}}}\n")
    (folder / "acceptance.yml").write_text(PLAY.replace("NAMES", json.dumps(names)))
    line = command.replace("-i inventory/local", "-i hosts.yml")
    done = subprocess.run(
        ["sh", "-c", f'PATH="{tools()}:$PATH"; {line}'],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    encoded = re.search(r'"msg": "([A-Za-z0-9+/=]*)"', done.stdout)
    assert encoded, done.stdout
    read: dict[str, str] = json.loads(base64.b64decode(encoded[1]))
    return read


def test_ansible_evaluates_a_value_of_e(tmp_path: Path) -> None:
    """Control: the value that a printed command must not have is evaluated."""
    proof = tmp_path / "executed"
    word = shlex.quote(f'repeats=\'{{{{ lookup("pipe", "touch {proof}") }}}}\'')
    line = f"ansible-playbook acceptance.yml -i inventory/local -l local -e {word}"
    values_in_play(tmp_path, line, ["repeats"])
    assert proof.exists()


@pytest.mark.fault("template-in-a-command")
def test_ansible_reads_the_printed_command_as_it_is(run: Run, tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    expected = {**GOOD, "suite": run.plan.suite, "run_id": run.id}
    write_play_variables(run, GOOD)
    command = acceptance_command(run, site_of(run))
    assert values_in_play(tmp_path, command, [*expected]) == expected
    evil = f"{{{{ lookup('pipe', 'touch {proof}') }}}}"
    write_play_variables(
        run, {**dict.fromkeys(play_variable_names(), evil), "ansible_connection": evil}
    )
    command = acceptance_command(run, site_of(run))
    assert values_in_play(tmp_path, command, ["suite"]) == {"suite": run.plan.suite}
    assert not proof.exists()
