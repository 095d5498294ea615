"""The cases of an earlier run: its files may have keys that a case has no longer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.outputs import text_of
from tests.folders import ROOT

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.reader.engine import Reading, read_output
from proofmark.common.errors import BadInput

DOUBLING = {"parameter": "bytes", "option": "-m", "largest": [], "memory_option": "-M", "memory": 9}
FORMER: dict[str, dict[str, Any]] = {
    "fio-cache": {"json": {"each": {"job": "output.jobs"}, "values": {}}},
    "ior": {"command": {"exact": {"block_bytes": "-b"}}, "json": {"each": {}, "values": {}}},
    "mdtest": {"command": {"phases": [{"-F": ["file_create"]}]}},
    "osu-latency": {"command": {"doubling": DOUBLING}},
}
"""The former keys of the readers that have a program now."""
OUTPUTS = {
    "fio-cache": "fio-3.33_4m_2m_n2_shared.json",
    "ior": "ior-3.3.0_posix_b4m_t1m_n2_fpp.json",
    "mdtest": "mdtest-4.0.0_create_files_n2.txt",
    "osu-latency": "osu-7.4_allreduce_n2.txt",
}


def former(folder: Path) -> Path:
    """Return a copy of the cases with the keys that they had."""
    shutil.copytree(ROOT / "benchmarks", folder, ignore=shutil.ignore_patterns("samples"))
    for name, keys in FORMER.items():
        path = folder / f"{name}.yml"
        case = yaml.safe_load(path.read_text(encoding="utf-8"))
        read = case["read"]
        del read["program"]
        if "json" in keys:
            read["json"] = keys["json"]
        if "text" in read:
            read["text"]["command"] = {"match": read["text"]["command"], **keys.get("command", {})}
        path.write_text(yaml.safe_dump(case, sort_keys=False), encoding="utf-8")
    return folder


@pytest.mark.parametrize("case", [*FORMER])
def test_an_output_is_read_as_by_the_cases_of_today(tmp_path: Path, case: str) -> None:
    def readings(folder: Path, *, recorded: bool) -> list[Reading]:
        reader = load_benchmarks(folder, recorded=recorded).case(case).reader()
        return read_output(reader, case, text_of(OUTPUTS[case]))

    today = readings(ROOT / "benchmarks", recorded=False)
    assert today and readings(former(tmp_path / "cases"), recorded=True) == today


def test_a_new_case_with_a_former_key_is_refused(tmp_path: Path) -> None:
    folder = former(tmp_path / "cases")
    load_benchmarks(folder, recorded=True)  # the control
    with pytest.raises(BadInput) as caught:
        load_benchmarks(folder)
    assert {"json", "command"} <= {
        mistake.key.rpartition(".")[2] for mistake in caught.value.mistakes
    }
