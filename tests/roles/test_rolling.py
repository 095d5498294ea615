"""acceptance.yml with rolling=true: one run that grows by -l."""

from __future__ import annotations

import json

import pytest
import yaml
from tests.roles.kit import Kit

pytestmark = pytest.mark.slow


@pytest.mark.fault("check-mode")
def test_a_rolling_run_is_continued_grows_by_l_and_is_checked(kit: Kit) -> None:
    hosts = {"n1": {"ansible_connection": "local"}, "n2": {"ansible_connection": "local"}}
    groups = {"compute": {"children": {"local": {"hosts": hosts}}}}
    path = kit.folder / "inventory/local/hosts.yml"
    path.write_text(yaml.safe_dump({"all": {"children": groups}}))
    kit.partition(origin="emulated")  # both nodes are this machine
    rolling = ("acceptance.yml", "-i", "inventory/local", "-e", "rolling=true")
    before = kit.files()
    checked = kit.play(*rolling, "-l", "local", "--check", "-e", "repeats=2")
    assert checked.code == 0, checked.output
    assert kit.files() == before
    for words in (
        "would run: proofmark plan --create",
        "no problem found; writing was not tried",
        "would run: proofmark stage execute",
        "would run: proofmark report",
    ):
        assert checked.printed(words)
    first = kit.play(*rolling, "-l", "n1")
    assert first.code == 0, first.output
    run, whens = kit.run(), kit.whens()
    assert len(whens) == 2
    again = kit.play(*rolling, "-l", "n1", "--tags", "plan,build,scratch,run")
    assert (again.code, again.recap["changed"]) == (0, 0), again.output
    joined = kit.play(*rolling, "-l", "n2")
    assert joined.code == 0, joined.output
    assert kit.run() == run
    assert kit.whens().items() > whens.items()
    assert len(kit.whens()) == 4
    state = json.loads((run / "verdict.json").read_text())["rolling"]
    assert [each["node"] for each in state["nodes"]] == ["n1", "n2"]
