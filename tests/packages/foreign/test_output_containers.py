"""Outputs that a container, a launcher, a mail or Ansible has put marks around."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.fixtures.outputs import output_sample, read_of_others, readings_of

from proofmark.cases.reader.own_rules import reader_of
from proofmark.packages.foreign.output_text import may_begin, output_text

OUTPUTS = {
    "hpl": "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt",
    "osu-bw": "osu-7.4_bw_n2.txt",
    "ior": "ior-4.0.0_posix_wr_b16m_t1m_n2_fpp.txt",
    "fio-cache": "fio-3.33_4m_2m_n2_fpp.json",
}


def before(mark: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{mark}{line}" for line in text.splitlines(keepends=True))


def of_ansible(text: str) -> str:
    return json.dumps({"changed": True, "rc": 0, "stdout": text.rstrip("\n")}, indent=4) + "\n"


MARKS: dict[str, Callable[[str], str]] = {
    "compose": before("app-1  | "),
    "kubectl": before("[pod/hpl-0/bench] "),
    "Hydra": before("[0@n001] "),
    "Intel MPI": before("0:n001 "),
    "mail": before("> > "),
    "pod": before("hpl-7f9c-x2z app "),
    "grep": before("results/n01.out:"),
    "diff": before("+"),
    "table": before("| "),
    "logger": before("INFO:root:"),
    "rank": before("PE 0: "),
    "NUL": lambda text: "\0" * 5000 + text,
    "blanks": lambda text: text.replace(" ", "\xa0"),
    "Ansible": of_ansible,
    "one line": lambda text: f"n001 | CHANGED => {of_ansible(text)}",
    "ansible -o": lambda text: (
        "n001 | CHANGED | rc=0 | (stdout) " + text.rstrip("\n").replace("\n", "\\n") + "\n"
    ),
    "message": lambda text: f"ok: [n001] => {json.dumps({'msg': text}, indent=4)}\n",
    "lines of a message": lambda text: (
        f"ok: [n001] => {json.dumps({'msg': text.splitlines()}, indent=4)}\n"
    ),
    "rank and host": before("0@n001,"),
    "markdown": lambda text: f"Results:\n\n```\n{text}```\n",
    "clush -b": lambda text: f"---------------\nn001\n---------------\n{text}",
    "job of a forge": before("bench\trun\t2026-11-28T00:15:01.1234567Z "),
}


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("case", OUTPUTS)
def test_marks_around_an_output_change_no_figure(case: str, mark: str) -> None:
    text = output_sample(OUTPUTS[case])
    marked = output_text(MARKS[mark](text).encode())
    values = [(each.metric, each.value, each.valid) for each in read_of_others(case, marked)]
    assert values == [(each.metric, each.value, each.valid) for each in readings_of(case, text)]


def test_lines_of_two_containers_are_no_output() -> None:
    """What both printed at the same time would be one table."""
    lines = output_sample(OUTPUTS["hpl"]).splitlines(keepends=True)
    text = "".join(f"bench-{number % 2 + 1} | {line}" for number, line in enumerate(lines))
    assert not any(each.valid for each in read_of_others("hpl", text))


def test_a_line_of_another_program_hides_no_reason() -> None:
    text = output_sample(OUTPUTS["osu-bw"]).replace("\n1024 ", "\n1024 x ")
    found = read_of_others("osu-bw", f"sysbench 1.0.20 (using system LuaJIT 2.1.0)\n{text}")
    assert len(found) > 1
    assert "reader-foreign" not in {each.reason.code for each in found}


@pytest.mark.parametrize("program", ["hpl", "osu", "ior", "stream", "imb", "mdtest", "npb"])
def test_each_banner_has_fixed_words(program: str) -> None:
    begins = [each for each in reader_of(program).begins if each.pattern != r"\{.*"]
    assert not may_begin(">UniRef100_A 247 1.00\nDVQLQESGPSLVKPS\n", begins)
