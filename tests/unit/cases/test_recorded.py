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


def test_other_former_keys_have_the_values_of_today(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    shutil.copytree(ROOT / "benchmarks", folder, ignore=shutil.ignore_patterns("samples"))
    today = load_benchmarks(folder, recorded=True)

    def change(name: str, **keys: Any) -> None:
        path = folder / f"{name}.yml"
        case = yaml.safe_load(path.read_text(encoding="utf-8"))
        path.write_text(yaml.safe_dump({**case, **keys}, sort_keys=False), encoding="utf-8")

    pairs = today.cases["osu-contention"]
    seconds = {"copy": "pair", "seconds": pairs.concurrent, "spread": ["bandwidth_spread"]}
    change("osu-contention", concurrent=seconds)
    stream = yaml.safe_load((folder / "stream.yml").read_text(encoding="utf-8"))
    ((holds, accepted),) = stream["facts"]["stream_array_size"].items()
    columns = stream["read"]["text"]["tables"][0]["columns"]
    columns["Rate (GB/s)"] = {"unit": "MB/s", "power": 3}
    facts = {"stream_array_size": {"holds": holds, "accepted": accepted}}
    change("stream", facts=facts, read=stream["read"])
    bt = yaml.safe_load((folder / "npb-btio.yml").read_text(encoding="utf-8"))["read"]
    del bt["program"], bt["aside"]["active"]
    active = next(line for line in bt["text"]["facts"] if "active" in line)
    bt["text"]["facts"].remove(active)
    bt["text"]["corrects"] = [active.replace("?P<active>", "?P<ranks>")]
    change("npb-btio", read=bt)
    links = yaml.safe_load((folder / "imb-links.yml").read_text(encoding="utf-8"))
    for use in links["suites"]["rehearsal-links"]:
        use |= {"at_most": 2} | ({"pairs": "rounds", "alone": True} if "alone" in f"{use}" else {})
    metric = {**links["metrics"]["bandwidth"], "material": {"change": 0.2, "why": "x"}}
    change("imb-links", suites=links["suites"], metrics={**links["metrics"], "bandwidth": metric})
    suites = yaml.safe_load((folder / "suites.yml").read_text(encoding="utf-8"))
    for suite in suites["suites"].values():
        if kind := suite.pop("kind", ""):
            suite |= {kind: True}
    (folder / "suites.yml").write_text(yaml.safe_dump(suites), encoding="utf-8")
    found = load_benchmarks(folder, recorded=True)
    assert {name: case for name, case in found.cases.items() if case != today.cases[name]} == {}
    assert {**found.suites} == {**today.suites}
    with pytest.raises(BadInput):
        load_benchmarks(folder)


def test_a_new_case_with_a_former_key_is_refused(tmp_path: Path) -> None:
    folder = former(tmp_path / "cases")
    load_benchmarks(folder, recorded=True)  # the control
    with pytest.raises(BadInput) as caught:
        load_benchmarks(folder)
    assert {"json", "command"} <= {
        mistake.key.rpartition(".")[2] for mistake in caught.value.mistakes
    }
