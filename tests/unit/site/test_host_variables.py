"""Hosts of one kind share one merge of variables; each value is that of Ansible for this host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

from proofmark.site.groups import HostVariables

HOSTS: dict[str, dict[str, Any] | None] = {
    "n1": None,
    "n2": {"ansible_user": "own"},
    "n3": None,
    "n4": None,
    "n5": None,
    "n6": None,
    "n7": {"rack": "r7"},
}
NAMES = ("ansible_user", "ansible_port", "ansible_host", "proofmark_aliases")


@pytest.fixture
def of_ansible(tmp_path: Path) -> tuple[InventoryManager, VariableManager, DataLoader]:
    """Return Ansible's objects of an inventory whose hosts get variables in each way."""
    groups = {"a": {"hosts": HOSTS}, "b": {"hosts": {"n3": None}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    files: dict[str, dict[str, Any]] = {
        "group_vars/a.yml": {"ansible_user": "all", "ansible_host": "{{ inventory_hostname }}.ib"},
        "group_vars/b.yml": {"ansible_port": 2222},
        "host_vars/n4.yml": {"ansible_user": "file", "proofmark_aliases": ["login"]},
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(yaml.safe_dump(content))
    if AnsibleCollectionConfig.collection_finder is None:
        init_plugin_loader()
    loader = DataLoader()
    manager = InventoryManager(loader=loader, sources=[f"{tmp_path}"])
    variables = VariableManager(loader=loader, inventory=manager)
    HostVars(inventory=manager, variable_manager=variables, loader=loader)
    variables.set_nonpersistent_facts("n5", {"ansible_user": "fact"})
    return manager, variables, loader


def test_each_host_has_the_variables_that_ansible_has(
    of_ansible: tuple[InventoryManager, VariableManager, DataLoader],
) -> None:
    manager, variables, _ = of_ansible
    read = HostVariables(*of_ansible, [*manager.hosts.values()])
    for names in (NAMES, NAMES[:2]):  # with and without a template
        found = {name: read.of(manager.get_host(name), names) for name in HOSTS}
        hosts = variables._hostvars
        assert found == {
            host: {name: hosts[host][name] for name in names if name in hosts[host]}
            for host in HOSTS
        }
    users = {host: each["ansible_user"] for host, each in found.items()}
    assert users == {**dict.fromkeys(HOSTS, "all"), "n2": "own", "n4": "file", "n5": "fact"}
    assert found["n3"]["ansible_port"] == 2222


def test_hosts_of_one_kind_are_merged_once(
    of_ansible: tuple[InventoryManager, VariableManager, DataLoader],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manager, variables, _ = of_ansible
    merged: list[str] = []
    get_vars = variables.get_vars

    def counted(host: Any) -> Any:
        merged.append(host.name)
        return get_vars(host=host)

    monkeypatch.setattr(variables, "get_vars", counted)
    read = HostVariables(*of_ansible, [*manager.hosts.values()])
    for name in ("n1", "n6", "n3", "n4", "n5", "n1", "n6"):
        read.of(manager.get_host(name), NAMES[:2])
    assert merged == ["n1", "n3", "n4", "n5"]
