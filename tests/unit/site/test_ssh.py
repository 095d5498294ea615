"""The settings of ssh by host, from the variables of Ansible."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from proofmark.site.ssh import SshHost

from proofmark.site.inventory import Site, load_site


def load(folder: Path, hosts: Mapping[str, Any], **variables: Any) -> Site:
    facts = {
        "hardware": "discovered",
        "environment": "local",
        "provision_from": "system",
        "scheduler": "none",
        "scratch": {"path": "/scratch"},
        **variables.pop("facts", {}),
    }
    groups = {"compute": {"children": {"p": {"hosts": hosts}}}}
    (folder / "group_vars").mkdir()
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    values = {**variables, "partition": facts}
    (folder / "group_vars" / "p.yml").write_text(yaml.safe_dump(values))
    return load_site(folder, "p")


def test_each_host_has_its_own_settings(tmp_path: Path) -> None:
    """Templates are those of the host; what most hosts have is written once."""
    hosts = {
        "n1": {},
        "n2": {"ansible_host": "10.0.0.{{ inventory_hostname[1:] }}", "ansible_port": 2222},
        "n3": {},
        "n4": {"ansible_private_key_file": "/other", "ansible_ssh_common_args": "-J 'gate 4'"},
    }
    usual = SshHost(user="root", options=("-J", "gate"))
    site = load(tmp_path, hosts, ansible_user="root", ansible_ssh_common_args="-J gate")
    assert site.ssh is not None
    assert site.ssh.usual == site.ssh.of("n1") == site.ssh.of("n3") == usual
    assert site.ssh.hosts == {
        "n2": SshHost(host_name="10.0.0.2", user="root", port="2222", options=("-J", "gate")),
        "n4": SshHost(user="root", identity_file="/other", options=("-J", "gate 4")),
    }
    assert site.ssh.shell == "sh -s"
    assert Site.model_validate_json(site.model_dump_json()).ssh == site.ssh


def test_a_template_may_use_the_variables_of_another_host(tmp_path: Path) -> None:
    hosts = {"n1": {}, "n2": {"ansible_host": "{{ hostvars['n1'].gate }}"}}
    site = load(tmp_path, hosts, gate="10.0.0.1")
    assert site.ssh
    assert site.ssh.of("n2").host_name == "10.0.0.1"


def test_the_shell_is_that_of_root(tmp_path: Path) -> None:
    site = load(tmp_path, {"n1": {}}, ansible_become=True)
    assert site.ssh
    assert site.ssh.shell == "sudo -n sh -s"


@pytest.mark.parametrize(
    "variables",
    [
        {"ansible_connection": "local"},
        {"ansible_ssh_executable": "/opt/bin/ssh"},
        {"facts": {"firmware": {"back_end": "record", "remote_shell": ["rsh", "{node}", "sh"]}}},
    ],
)
def test_a_command_that_is_not_the_usual_ssh_has_no_settings(
    tmp_path: Path, variables: dict[str, Any]
) -> None:
    assert load(tmp_path, {"n1": {"ansible_host": "10.0.0.1"}}, **variables).ssh is None
