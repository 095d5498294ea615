"""The recap of a play: the nodes that failed, each with its reason, and no others."""

from __future__ import annotations

import re

import pytest
import yaml
from tests.roles.kit import NAP, Kit, Played

pytestmark = pytest.mark.slow

NODES = ("n1", "n2", "n3")
HERE = {"ansible_connection": "local"}
SHELL = 'case " $CLOSED " in *" {node} "*) echo "{node}: Connection refused" >&2; exit 255;; esac'


def with_nodes(kit: Kit, *closed: str) -> tuple[str, ...]:
    """Give the site three nodes, of which `closed` cannot be reached; return the limit."""
    partition = {"local": {"hosts": dict.fromkeys(NODES, HERE)}}
    hosts = {"all": {"children": {"compute": {"children": partition}}}}
    path = kit.folder / "inventory/local/hosts.yml"
    path.write_text(yaml.safe_dump(hosts), encoding="utf-8")
    shell = ["sh", "-c", f"{SHELL.replace('$CLOSED', ' '.join(closed))}; exec sh -s"]
    case = yaml.safe_load(NAP) | {"suites": {"quick": {"scope": "each-node"}}}
    (kit.folder / "benchmarks/nap.yml").write_text(yaml.safe_dump(case, sort_keys=False))
    (kit.folder / "benchmarks/suites.yml").write_text("suites: {quick: {title: naps}}\n")
    kit.partition(firmware={"back_end": "manual", "remote_shell": shell, "max_failures": 0})
    return "-l", "local"


def recap(played: Played) -> dict[str, dict[str, int]]:
    """Return the counts of each host in the recap that are not 0."""
    lines = played.output.partition("PLAY RECAP")[2].splitlines()[1:]
    pairs = (line.split(":", 1) for line in lines if "ok=" in line)
    return {
        host.strip(): {word: int(count) for word, count in re.findall(r"(\w+)=([1-9]\d*)", counts)}
        for host, counts in pairs
    }


def marked(played: Played) -> set[str]:
    return {host for host, counts in recap(played).items() if "failed" in counts}


STAGES = [("plan", "scratch"), ("preflight",)]


@pytest.mark.parametrize("stages", STAGES, ids=lambda names: names[-1])
def test_no_host_is_marked_if_no_node_failed(kit: Kit, stages: tuple[str, ...]) -> None:
    """The control."""
    played = kit.play(*[f"playbooks/{stage}.yml" for stage in stages], *with_nodes(kit))
    assert played.code == 0, played.output
    assert marked(played) == set()
    assert "rescued" not in recap(played)["n1"]


@pytest.mark.fault("recap-of-a-failed-node")
@pytest.mark.parametrize("stages", STAGES, ids=lambda names: names[-1])
@pytest.mark.parametrize("closed", [("n2",), ("n1", "n3")])
def test_the_nodes_that_failed_are_marked_and_the_others_are_ok(
    kit: Kit, stages: tuple[str, ...], closed: tuple[str, ...]
) -> None:
    playbooks = [f"playbooks/{stage}.yml" for stage in stages]
    played = kit.play(*playbooks, *with_nodes(kit, *closed))
    assert played.code == 2, played.output
    assert recap(played).keys() == set(NODES)
    assert marked(played) == set(closed)
    for node in closed:
        message = rf"fatal: \[{node}\]: FAILED! =>.*?Connection refused"
        assert re.search(message, " ".join(played.output.split())), played.output


@pytest.mark.fault("recap-of-a-failed-node")
def test_the_next_stage_does_not_begin(kit: Kit) -> None:
    playbooks = [f"playbooks/{stage}.yml" for stage in ("plan", "scratch", "run")]
    played = kit.play(*playbooks, *with_nodes(kit, "n2"))
    assert "PLAY [Run]" not in played.output
    assert kit.whens() == {}


def test_the_other_nodes_are_not_listed_if_there_are_many(kit: Kit) -> None:
    """The number of nodes is that of the first stage, although later stages have one host."""
    limit = with_nodes(kit, "n2")
    playbooks = ("playbooks/plan.yml", "playbooks/scratch.yml")
    marks = kit.folder / "playbooks/nodes.yml"
    marks.write_text(marks.read_text().replace("nodes_most: 256", "nodes_most: 2"))
    played = kit.play(*playbooks, *limit)
    assert recap(played).keys() == {"n1", "n2"}, played.output
    assert marked(played) == {"n2"}


def test_verbose_output_has_each_command_with_its_node_script_and_exit_code(kit: Kit) -> None:
    played = kit.play("playbooks/preflight.yml", *with_nodes(kit, "n2"), "-vvv")
    output = " ".join(played.output.split())
    for node, code in (("n1", 0), ("n2", 255), ("n3", 0)):
        line = rf"{node}: sh -c [^<]* < clock-and-uid\.sh \w+: exit code {code} after \d+\.\d+ s"
        assert re.search(line, output), played.output


def test_a_failure_that_is_not_that_of_a_node_marks_the_representative(kit: Kit) -> None:
    limit = with_nodes(kit)
    assert kit.play("playbooks/plan.yml", *limit).code == 0
    (kit.run() / "plan.json").write_text("{")
    played = kit.play("playbooks/scratch.yml", *limit)
    assert played.code == 2
    assert recap(played).keys() == marked(played) == {"n1"}


def test_a_node_without_a_valid_figure_is_marked_by_the_report(kit: Kit) -> None:
    """The control is the first test of test_acceptance.py."""
    assert kit.play("acceptance.yml").code == 0
    for output in kit.run().glob("steps/*/execution-1/stdout"):
        output.write_text("damaged")
    played = kit.play("playbooks/report.yml")
    assert played.code == 2
    assert recap(played)["localhost"]["failed"] == 1
    marks = " ".join(played.output.partition("PLAY [Nodes that failed]")[2].split())
    assert re.search(r"fatal: \[localhost\]: FAILED! =>.*msg: .*INVALID nap", marks), played.output
