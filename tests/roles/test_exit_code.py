"""The exit code is that of the verdict: nothing from outside replaces facts or leaves out tasks."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.folders import ROOT
from tests.roles.kit import NAP, Kit, make_kit

from proofmark.site.access import connection_variables
from proofmark.site.extra_vars import (
    call_variables,
    internal_names,
    refused_extra_variables,
    refused_of_inventory,
)

pytestmark = pytest.mark.slow

FAILED = 2
REFUSED = 3


@pytest.fixture(scope="module")
def failed() -> Iterator[Kit]:
    """Yield a kit with a finished run that FAILs."""
    with tempfile.TemporaryDirectory(prefix="proofmark-kit-") as top:
        kit = make_kit(Path(top))
        case = kit.folder / "benchmarks/nap.yml"
        case.write_text(NAP.replace("value: 90", "value: 9000"))
        played = kit.play("acceptance.yml")
        assert played.code == FAILED, played.output
        assert kit.verdict()["counts"]["FAIL"] == 2
        yield kit


VARIABLES: dict[str, Any] = {
    "stage_failed_nodes": {},
    "run_failed_nodes": {},
    "nodes_shown": [],
    "nodes_first": "x",
    "failed_name": "x",
    "failed_fact": "x",
    "report_written": {"json": {"exit_code": 0}},
    "ansible_facts": {"proofmark_failed_nodes": {}},
    "ansible_failed_result": {"failed_nodes": {}},
    "report_run": "/other",
    "plan_run": {"folder": "/other"},
    "selection_stages": ["report"],
    "selection_whole": True,
    "ansible_host": "n1",
    "ansible_check_mode": True,
    "our_variable": 1,
}
"""Facts, results, variables of plays and magic variables, as extra variables."""
SETTINGS = {
    "ANSIBLE_RUN_TAGS": "report",
    "ANSIBLE_SKIP_TAGS": "report",
    "ANSIBLE_STRATEGY": "free",
    "ANSIBLE_ENABLE_TASK_DEBUGGER": "1",
    "ANSIBLE_CACHE_PLUGIN": "jsonfile",
}
CONFIG = """
[tags]
run = report
skip = report
"""
FROM_OUTSIDE: dict[str, tuple[tuple[str, ...], dict[str, str], tuple[str, ...]]] = {
    "variables, files of variables and the environment": (
        ("-e", json.dumps(VARIABLES), "-e", "@vars.yml", "-e", "@vars.json"),
        SETTINGS,
        (*VARIABLES, "failed_before", "nodes_previewed", *(f"{name}: found " for name in SETTINGS)),
    ),
    "ansible.cfg": (
        ("--step", "--start-at-task", "Mark the nodes that failed"),
        {"ANSIBLE_CONFIG": "tags.cfg", "ANSIBLE_STRATEGY": "debug"},
        (
            *("found TAGS_RUN", "found TAGS_SKIP", "--step: found", "--start-at-task: found"),
            "_STRATEGY debug",
        ),
    ),
    "an option beside the environment": (
        ("--tags", "report"),
        {"ANSIBLE_SKIP_TAGS": "always"},
        ("found TAGS_SKIP always",),
    ),
    "ANSIBLE_RUN_TAGS without a stage": ((), {"ANSIBLE_RUN_TAGS": "always"}, ("found TAGS_RUN",)),
}
"""Options of ansible-playbook, its environment, and what the refusal names."""


@pytest.mark.fault("verdict-replaced-from-outside")
@pytest.mark.parametrize("name", FROM_OUTSIDE)
def test_nothing_from_outside_replaces_the_verdict(failed: Kit, name: str) -> None:
    """A refusal names everything that is refused, so one play shows several."""
    options, environment, found = FROM_OUTSIDE[name]
    (failed.folder / "vars.yml").write_text("failed_before: {}\n")
    (failed.folder / "vars.json").write_text('{"nodes_previewed": []}\n')
    config = (failed.folder / "ansible.cfg").read_text()
    (failed.folder / "tags.cfg").write_text(f"{config}{CONFIG}")
    kit = replace(failed, environment={**failed.environment, **environment})
    played = kit.play("playbooks/report.yml", *options)
    assert played.code == REFUSED, played.output
    assert "accepted" in played.output
    assert [each for each in found if not played.printed(each)] == []
    assert "PLAY [" not in played.output


@pytest.mark.parametrize("name", VARIABLES)
def test_each_variable_alone_is_refused(name: str) -> None:
    assert [*refused_extra_variables({name: VARIABLES[name]}, connection_variables(), ROOT, ())]


HARMLESS = {
    "ANSIBLE_FORCE_HANDLERS": "1",
    "ANSIBLE_ANY_ERRORS_FATAL": "0",
    "ANSIBLE_NO_LOG": "1",
    "ANSIBLE_CHECK_MODE_MARKERS": "1",
    "ANSIBLE_DIFF_ALWAYS": "1",
    "ANSIBLE_ERROR_ON_MISSING_HANDLER": "0",
    "ANSIBLE_ERROR_ON_UNDEFINED_VARS": "0",
    "ANSIBLE_ALLOW_BROKEN_CONDITIONALS": "1",
    "ANSIBLE_HASH_BEHAVIOUR": "merge",
    "ANSIBLE_INJECT_FACT_VARS": "1",
    "ANSIBLE_PRIVATE_ROLE_VARS": "1",
    "ANSIBLE_HOST_PATTERN_MISMATCH": "ignore",
    "ANSIBLE_INVALID_TASK_ATTRIBUTE_FAILED": "0",
    "ANSIBLE_TASK_DEBUGGER_IGNORE_ERRORS": "1",
    "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "0",
    "ANSIBLE_DISPLAY_FAILED_STDERR": "1",
    "ANSIBLE_GATHERING": "explicit",
    "ANSIBLE_RUN_VARS_PLUGINS": "start",
    "ANSIBLE_PLAYBOOK_VARS_ROOT": "all",
}
"""Settings that could change which tasks run or fail, and do not."""


@pytest.mark.core("the exit code of a play")
def test_a_verdict_of_fail_is_the_exit_code(failed: Kit) -> None:
    """The control: the stage report alone has the same code, whatever the other settings are."""
    kit = replace(failed, environment={**failed.environment, **HARMLESS})
    played = kit.play("playbooks/report.yml", "--force-handlers", "--flush-cache")
    assert played.code == FAILED, played.output


@pytest.mark.fault("verdict-replaced-from-outside")
def test_the_inventory_does_not_replace_a_fact(failed: Kit, tmp_path: Path) -> None:
    """The variables of the site are in three places."""
    site = tmp_path / "local"
    shutil.copytree(failed.folder / "inventory/local", site)
    hosts = yaml.safe_load((site / "hosts.yml").read_text())
    hosts["all"]["vars"] = {"report_run": "/other"}
    for place, content in {
        "host_vars/localhost.yml": {"failed_fact": "x"},
        "group_vars/all.yml": {"nodes_fact": "y"},
        "hosts.yml": hosts,
    }.items():
        (site / place).parent.mkdir(exist_ok=True)
        (site / place).write_text(yaml.safe_dump(content))
    played = failed.play("playbooks/report.yml", "-i", f"{site}", "-l", "local")
    assert played.code == REFUSED, played.output
    for name in ("failed_fact", "nodes_fact", "report_run"):
        assert f"the inventory: {name}: found a variable; accepted: another name" in played.output


@pytest.mark.fault("verdict-replaced-from-outside")
def test_the_exit_code_does_not_depend_on_the_marks_of_nodes(failed: Kit, tmp_path: Path) -> None:
    """The last play reads the verdict itself, if no node was marked."""
    copy = tmp_path / "kit"
    shutil.copytree(failed.folder, copy, symlinks=True)
    report = copy / "playbooks/report.yml"
    plays = yaml.safe_load(report.read_text())
    rest = [play for play in plays if play.get("ansible.builtin.import_playbook") != "nodes.yml"]
    assert len(rest) == len(plays) - 1
    report.write_text(yaml.safe_dump(rest))
    played = replace(failed, folder=copy).play("playbooks/report.yml")
    assert played.code == FAILED
    assert played.printed("[ERROR]: found FAIL; accepted: PASS")


def names_of(node: Any) -> Iterator[str]:
    """Yield each name that a playbook or task file sets, by another rule than the kit's."""
    if isinstance(node, list):
        for each in node:
            yield from names_of(each)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in ("register", "loop_var"):
                yield value
            if key in ("vars", "ansible.builtin.set_fact"):
                yield from (name for name in value if "{" not in name)
            yield from names_of(value)


def names_in_files() -> set[str]:
    files = [*(ROOT / "playbooks").glob("**/*.yml"), *(ROOT / "roles").glob("*/tasks/*.yml")]
    texts = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    names = {name for text in texts for name in names_of(text)}
    for file in (ROOT / "roles").glob("*/vars/*.yml"):
        names |= set(yaml.safe_load(file.read_text(encoding="utf-8")))
    return names


def options() -> dict[str, Any]:
    """Return the options of all roles with their defaults."""
    found: dict[str, Any] = {}
    for file in (ROOT / "roles").glob("*/defaults/*.yml"):
        found.update(yaml.safe_load(file.read_text(encoding="utf-8")))
    return found


def options_of_roles() -> set[str]:
    return set(options())


@pytest.mark.core("nothing else decides")
@pytest.mark.fault("verdict-replaced-from-outside")
def test_each_name_of_the_playbooks_and_roles_is_documented_or_refused() -> None:
    assert names_in_files() & call_variables().keys() == set()
    names = names_in_files() - {"ansible_python_interpreter"}
    assert {"stage_failed_nodes", "nodes_shown", "failed_name", "report_written"} <= names
    assert names <= internal_names(ROOT)
    for name in names:
        assert [*refused_of_inventory([name], ROOT)], name
    for name in names | options_of_roles() - call_variables().keys():
        assert [*refused_extra_variables({name: ""}, connection_variables(), ROOT, ())], name


def test_the_inventory_may_set_options_of_roles_that_are_not_those_of_the_play() -> None:
    of_play = {"report_run", "scratch_run", "plan_folder", "plan_limit", "collect_run", "plan_only"}
    assert of_play <= internal_names(ROOT)
    others = {"scratch_user", "report_strict", "provision_jobs", "gate_timer_start"}
    assert others & internal_names(ROOT) == set()
    assert others <= options_of_roles()


def test_documented_variables_and_those_of_connections_are_accepted() -> None:
    """The control."""
    values = {"bool": True, "int": 3, "float": 3.5}
    given = {name: values.get(each.type, "text") for name, each in call_variables().items()}
    own = {"language": "ko", "window_ends": "2026-12-01T18:00:00+09:00", "signing_key": __file__}
    given |= own | {"rolling": "node", "stability_days": "36h", "scratch_dir": "/scratch"}
    settings = dict.fromkeys(("ansible_user", "ansible_become", "ansible_ssh_common_args"), "x")
    every = {**given, **settings}
    stages = ("mode", "gate")
    assert [*refused_extra_variables(every, connection_variables(), ROOT, stages)] == []
    assert [*refused_of_inventory([*given, "ansible_user", "partition", "our_own"], ROOT)] == []


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("repeats", "many", "a whole number"),
        ("fresh", "perhaps", "true, false, yes, no, on, off, 1 or 0"),
        ("gate_node_hours", "long", "a number"),
        ("language", "de", "en, ko"),
        ("window_ends", "tomorrow", "a time with its zone, 2026-12-01T18:00:00Z"),
        ("window_ends", "2026-12-01T18:00:00", "a time with its zone, 2026-12-01T18:00:00Z"),
        ("signing_key", "/no/such/key", "a file that exists"),
        ("rolling", "nodes", "true, false, node or rack"),
        ("stability_days", "2weeks", "days, or a number with h, min or s: 14, 36h, 20min"),
        ("scratch_dir", "tmp/x", "an absolute path"),
    ],
)
def test_a_wrong_value_of_a_documented_variable_is_refused_before_the_run(
    name: str, value: str, accepted: str
) -> None:
    """A language, the end of a window or a key was first read after hours of measurements."""
    (mistake,) = refused_extra_variables({name: value}, (), ROOT, ())
    assert f"{mistake}" == f"-e {name}: found {value!r}; accepted: {accepted}"


def test_the_variable_that_names_a_case_is_that_of_the_suite() -> None:
    (mistake,) = refused_extra_variables({"cases": "stream"}, (), ROOT, ())
    assert f"{mistake}" == (
        "-e cases: found 'stream'; accepted: -e suite=stream: each case is a suite of its name"
    )


@pytest.mark.parametrize(("name", "playbook"), [("mode", "mode"), ("gate_whole_partition", "gate")])
def test_a_variable_that_the_playbook_does_not_read_names_the_one_that_does(
    name: str, playbook: str
) -> None:
    """`-e mode=quad` of an acceptance was passed over. The control is the playbook itself."""
    (mistake,) = refused_extra_variables({name: "true"}, (), ROOT, ("plan", "run"))
    accepted = f"playbooks/{playbook}.yml, which alone reads it"
    assert f"{mistake}" == f"-e {name}: found 'true' for another playbook; accepted: {accepted}"
    assert [*refused_extra_variables({name: "true"}, (), ROOT, (playbook,))] == []


@pytest.mark.parametrize(
    ("found", "accepted", "name"),
    [
        ("a setting of the site", "this name in the inventory", "provision_jobs"),
        ("a setting of the site", "this name in the inventory", "gate_timer_schedule"),
    ],
)
def test_a_setting_of_the_site_has_its_place(found: str, accepted: str, name: str) -> None:
    (mistake,) = refused_extra_variables({name: "1"}, (), ROOT, ())
    assert f"{mistake}".startswith(f"-e {name}: found {found}; accepted: {accepted}")


def test_to_start_a_run_resumes_no_node_that_nothing_judged() -> None:
    """The option of the gate has a value of its own, whatever `accept_unjudged` is."""
    assert options()["gate_accept_unjudged"] is False
