"""The recap of a play: the nodes that failed, each with its reason, and no others."""

from __future__ import annotations

import re

import pytest
import yaml
from tests.roles.kit import DECLARED, NAP, Kit

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
    firmware = {"back_end": "manual", "remote_shell": shell, "max_failures": 0}
    kit.partition(node=DECLARED["node"], firmware=firmware)
    return "-l", "local"


@pytest.mark.core("the last lines of a play")
def test_no_host_is_marked_if_no_node_failed(kit: Kit) -> None:
    """The control; then a failure that is not that of a node marks the representative."""
    limit = with_nodes(kit)
    stages = ("plan", "scratch", "preflight")
    played = kit.play(*[f"playbooks/{stage}.yml" for stage in stages], *limit)
    assert played.code == 0, played.output
    assert played.failed_hosts == set()
    assert "rescued" not in played.of_hosts["n1"]
    (kit.run() / "plan.json").write_text("{")
    played = kit.play("playbooks/scratch.yml", *limit)
    assert played.code == 2
    assert played.of_hosts.keys() == played.failed_hosts == {"n1"}


@pytest.mark.fault("recap-of-a-failed-node")
@pytest.mark.parametrize(
    ("stages", "closed"),
    [(("plan", "scratch", "run"), ("n1", "n3")), (("preflight",), ("n2",))],
)
def test_the_nodes_that_failed_are_marked_and_the_others_are_ok(
    kit: Kit, stages: tuple[str, ...], closed: tuple[str, ...]
) -> None:
    """The next stage does not begin. Verbose output has the command of each node."""
    playbooks = [f"playbooks/{stage}.yml" for stage in stages]
    played = kit.play(*playbooks, *with_nodes(kit, *closed), "-vvv")
    assert played.code == 2, played.output
    assert played.of_hosts.keys() == set(NODES)
    assert played.failed_hosts == set(closed)
    output = " ".join(played.output.split())
    for node in closed:
        message = rf"fatal: \[{node}\]: FAILED! =>.*?Connection refused"
        assert re.search(message, output), played.output
    assert "PLAY [Run]" not in played.output
    assert kit.whens() == {}
    for node in NODES if stages == ("preflight",) else ():
        code = 255 if node in closed else 0
        line = rf"{node}: sh -c [^<]* < clock-and-uid\.sh \w+: exit code {code} after \d+\.\d+ s"
        assert re.search(line, output), played.output


def test_the_other_nodes_are_not_listed_if_there_are_many(kit: Kit) -> None:
    """The number of nodes is that of the first stage, although later stages have one host."""
    limit = with_nodes(kit, "n2")
    playbooks = ("playbooks/plan.yml", "playbooks/scratch.yml")
    marks = kit.folder / "playbooks/nodes.yml"
    marks.write_text(marks.read_text().replace("nodes_most: 256", "nodes_most: 2"))
    played = kit.play(*playbooks, *limit)
    assert played.of_hosts.keys() == {"n1", "n2"}, played.output
    assert played.failed_hosts == {"n2"}
