"""The reservation of the gate to which a run belongs."""

from __future__ import annotations

import json
from argparse import Namespace

from tests.fixtures.kit import Kit, kit_with

from proofmark.cli.inputs import site_of_run
from proofmark.packages.service.gates import begin_gate
from proofmark.runs.node_locks import reservation_of

kit = kit_with()


def test_the_run_of_a_gate_has_its_reservation(kit: Kit) -> None:
    gate = begin_gate("here", "local", kit.folder / "runs", "bench", "n1", ["localhost"])
    assert reservation_of(kit.run()) == ""
    assert reservation_of(kit.run(run_id=gate.id)) == gate.reservation


def test_the_name_of_a_gate_gives_no_run_its_reservation(kit: Kit) -> None:
    """The run user chooses the name of a run and its folder."""
    gate = begin_gate("here", "local", kit.folder / "others", "bench", "n1", ["localhost"])
    assert reservation_of(kit.run(run_id=gate.id)) == ""
    assert reservation_of(kit.run(run_id="gate-of-nobody")) == ""


def test_the_site_of_a_run_names_the_reservation_of_its_gate(kit: Kit) -> None:
    """The commands that change nodes read this site, from the inventory."""
    inventory = kit.folder / "inventory/here"
    (inventory / "group_vars/local").mkdir(parents=True)
    hosts = {"localhost": {"ansible_connection": "local"}}
    groups = {"compute": {"children": {"local": {"hosts": hosts}}}}
    (inventory / "hosts.yml").write_text(json.dumps({"all": {"children": groups}}))
    partition = json.loads(kit.site().partition.model_dump_json(exclude_unset=True))
    partition["queue"] = {"reservation": "ours"}
    (inventory / "group_vars/local/partition.yml").write_text(json.dumps({"partition": partition}))
    gate = begin_gate("here", "local", kit.folder / "runs", "bench", "n1", ["localhost"])
    options = Namespace(inventory=[f"{inventory}"], limit="local", groups_fd=None)
    found = {
        run.id: site_of_run(options, run).partition.queue.reservation
        for run in (kit.run(run_id="usual"), kit.run(run_id=gate.id))
    }
    assert found == {"usual": "ours", gate.id: gate.reservation}
