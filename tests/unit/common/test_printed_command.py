"""A printed command has constants of the code, and parts with a form."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
from ansible.parsing.splitter import parse_kv
from hypothesis import example, given
from hypothesis import strategies as st
from tests.folders import PACKAGE

from proofmark.common import printed_command
from proofmark.common.printed_command import (
    LIMIT,
    MOST_LEFT_OUT,
    NAME,
    SCRIPT,
    STEP,
    PrintedCommand,
    of_person,
    of_run,
    without,
)
from proofmark.site.extra_vars import call_variables, literal_variable
from proofmark.site.groups import is_template

EVIL = [
    "{{ lookup('pipe', 'id') }}",
    "{% x %}",
    "{# x #}",
    "#jinja2: variable_start_string:'[['\n[[ x ]]",
    r"\x7b\x7b lookup('pipe', 'id') \x7d\x7d",
    "a -e ansible_ssh_executable=/tmp/x",
    "a' -e ansible_ssh_executable=/tmp/x '",
    'a" b=c',
    "a\nb=c",
    "a\x1b[2J",
    "a\u202eb",
    "@/tmp/x",
    "!unsafe x",
    "$(id)",
    "`id`",
    "--key",
    " a",
    "a ",
    "",
    "\x00",
]
PLACEHOLDERS = {"RUN", "STEP", "LIMIT"}


@pytest.mark.fault("template-in-a-command")
@pytest.mark.parametrize("form", [NAME, STEP, SCRIPT, LIMIT])
def test_a_text_of_a_run_without_its_form_is_in_no_command(form: re.Pattern[str]) -> None:
    for text in EVIL:
        command = PrintedCommand("proofmark", "report", of_run(text, form, "RUN"))
        assert (command, command.left_out) == ("proofmark report RUN", ("RUN",)), text


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("20261121T083000Z-local-quick", NAME),
        ("0001-osu/n1+n2", STEP),
        ("runs/a/workdir/steps/0001-x/run.sh", SCRIPT),
        ("knl:!n1,!n2.site", LIMIT),
    ],
)
def test_a_text_with_its_form_is_a_word(text: str, form: re.Pattern[str]) -> None:
    """Control: no fault is injected."""
    command = PrintedCommand("proofmark", "report", of_run(text, form, "RUN"), "--json")
    assert shlex.split(command) == ["proofmark", "report", text, "--json"]
    assert command.left_out == ()


def test_a_text_of_a_person_is_quoted_and_never_reads_as_an_option() -> None:
    command = PrintedCommand("proofmark", "sign", of_person("/a b/$(id)", "RUN"), "--key", "FILE")
    assert shlex.split(command) == ["proofmark", "sign", "/a b/$(id)", "--key", "FILE"]
    for text in ("-x", "a\nb", "\x1b[2J", ""):
        assert PrintedCommand("proofmark", of_person(text, "SITE", "-i")) == "proofmark -i SITE"


@pytest.mark.parametrize("text", ["{{ x }}", "a b", "a;b", "$x", "a\n", ""])
def test_a_text_that_is_no_constant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no constant"):
        PrintedCommand("proofmark", text)


def test_left_out_texts_are_named_once_and_not_without_end() -> None:
    parts = [without("-e", name) for name in ("x" * 999, "{{ x }}", "", "a", "a")]
    command = PrintedCommand("proofmark", *parts)
    assert command == "proofmark"
    assert command.left_out == ("x" * 64, "___x___".replace("_", "?"), "?", "a")
    many = PrintedCommand(*(without("-e", f"n{number}") for number in range(99)))
    assert len(many.left_out) == MOST_LEFT_OUT + 1 and many.left_out[-1] == "…"


LITERALS = [name for name, each in call_variables().items() if each.literal]


class TestVariables:
    @pytest.mark.fault("template-in-a-command")
    @pytest.mark.parametrize("name", LITERALS)
    def test_a_value_that_is_no_literal_is_left_out_and_named(self, name: str) -> None:
        for value in EVIL:
            command = PrintedCommand("ansible-playbook", "x.yml", literal_variable(name, value))
            assert (command, command.left_out) == ("ansible-playbook x.yml", (name,)), value

    @pytest.mark.fault("template-in-a-command")
    @pytest.mark.parametrize("name", ["ansible_ssh_executable", "signing_key", "bmc_password", ""])
    def test_a_name_that_no_command_has_is_left_out(self, name: str) -> None:
        assert PrintedCommand("ansible-playbook", literal_variable(name, "1")) == "ansible-playbook"

    @given(st.sampled_from(LITERALS), st.text())
    @example("scratch_dir", "/a b/c,d")
    @example("repeats", "30")
    @example("stability_days", "14.0")
    @example("accept_unjudged", "True")
    def test_ansible_reads_exactly_the_value_or_nothing(self, name: str, value: str) -> None:
        words = shlex.split(PrintedCommand("ansible-playbook", literal_variable(name, value)))
        if words != ["ansible-playbook"]:
            _program, option, word = words
            assert (option, parse_kv(word)) == ("-e", {name: value})
            assert not is_template(value) and value.isprintable()


class TestPackage:
    """No module but `printed_command` builds a command from texts."""

    PROGRAMS = re.compile(r"\b(?:ansible-playbook|ansible|proofmark) [^`]*\Z|(?:^|[\s`])sh \Z")
    OTHERS = {
        "cli/parser.py": "the parser names its commands in the help",
        "judge/ending.py": "a sentence has the run id, a part, without a command",
    }

    def found(self, source: str) -> list[int]:
        """Return the lines of a module that put a text into the words of a command."""
        lines = []
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.JoinedStr):
                before = ""
                for part in node.values:
                    if isinstance(part, ast.Constant):
                        before += str(part.value)
                    elif self.PROGRAMS.search(before):
                        lines.append(node.lineno)
                        break
                    else:
                        before += "\0"
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                head, brace, rest = node.value.partition("{")
                if brace and re.match(r"\w+\}", rest) and self.PROGRAMS.search(head):
                    lines.append(node.lineno)
            elif isinstance(node, ast.List | ast.Tuple) and node.elts:
                first = node.elts[0]
                if isinstance(first, ast.Constant) and first.value == "ansible-playbook":
                    lines.append(node.lineno)
        return lines

    def test_no_module_builds_a_command_by_hand(self) -> None:
        wrong: dict[str, list[int]] = {}
        for path in sorted(PACKAGE.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if not re.search("ansible|proofmark |sh ", text):
                continue  # none of `PROGRAMS`
            lines = self.found(text)
            if lines and path != Path(printed_command.__file__):
                wrong[path.relative_to(PACKAGE).as_posix()] = lines
        assert wrong.keys() == self.OTHERS.keys(), wrong
        assert len(wrong["judge/ending.py"]) == 1

    @pytest.mark.parametrize(
        "source",
        [
            'f"proofmark rerun {run}"',
            'f"next: ansible-playbook acceptance.yml -e {name}={value}"',
            'f"sh {script}"',
            '"proofmark sign {run} --key FILE".format(run=run)',
            '_("then `proofmark report {run}` judges")',
            'words = ["ansible-playbook", "acceptance.yml", name]',
        ],
    )
    def test_a_command_that_is_built_by_hand_is_found(self, source: str) -> None:
        assert self.found(source) == [1]

    @pytest.mark.parametrize(
        "source", ['f"`proofmark check` lists {names}"', 'f"proofmark: {problem}"', '"{x} y"']
    )
    def test_a_text_without_a_command_is_not_found(self, source: str) -> None:
        assert self.found(source) == []
