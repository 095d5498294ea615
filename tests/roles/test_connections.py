"""The play reaches each node as Ansible does: real sshd processes and a real sudo."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.sshd import PASSWORD, Sshd, sshd
from tests.roles.kit import DECLARED, Kit

pytestmark = [pytest.mark.slow, pytest.mark.root]

NODES = "nodes: host key, log-in, clock, uid"
PILOT = "pilot"
"""The user of ``-u``, whom only the servers have: without the option, no log-in works."""


@pytest.fixture
def servers(kit: Kit) -> Iterator[dict[str, Sshd]]:
    """Yield the servers of three nodes: of `PILOT`, of another user, and behind the first."""
    top = kit.folder.parent
    with ExitStack() as ends:
        yield {
            "plain": ends.enter_context(sshd(top / "plain", sudo_user=PILOT)),
            "sudo": ends.enter_context(sshd(top / "sudo", sudo_user="ops")),
            "behind": ends.enter_context(sshd(top / "behind", sudo_user=PILOT)),
        }


def write_site(kit: Kit, servers: dict[str, Sshd], secret: dict[str, Any]) -> None:
    """Write a dynamic inventory with a node for each server, and a vault file with `secret`."""
    site = kit.folder / "inventory/ssh"
    group = site / "group_vars/p"
    group.mkdir(parents=True)

    def options(server: Sshd) -> str:
        known = f"-o UserKnownHostsFile={server.folder}/known_hosts"
        return f"{known} -o GlobalKnownHostsFile=/dev/null -o IdentitiesOnly=yes -F none"

    hosts: dict[str, dict[str, Any]] = {
        name: {
            "ansible_host": "127.0.0.1",
            "ansible_port": server.port,
            "ansible_ssh_common_args": options(server),
        }
        for name, server in servers.items()
    }
    gate = servers["plain"]
    through = f"ssh -i {gate.folder}/key -p {gate.port} {options(gate)} -W %h:%p root@127.0.0.1"
    hosts["behind"]["ansible_ssh_extra_args"] = f"-o 'ProxyCommand={through}'"
    hosts["behind"]["ansible_ssh_private_key_file"] = f"{servers['behind'].folder}/key"
    hosts["sudo"]["ansible_ssh_private_key_file"] = f"{servers['sudo'].folder}/key"
    hosts["sudo"] |= {"ansible_user": "ops", "ansible_become": True}
    inventory = {
        "p": {"hosts": list(hosts)},
        "compute": {"children": ["p"]},
        "_meta": {"hostvars": hosts},
    }
    (site / "hosts.json").write_text(json.dumps(inventory))
    (site / "hosts.py").write_text('#!/bin/sh\ncat "${0%/*}/hosts.json"\n')
    (site / "hosts.py").chmod(0o755)
    (site / "ansible.cfg").write_text("")
    (group / "partition.yml").write_text(yaml.safe_dump({"partition": DECLARED}))
    (group / "secret.yml").write_text(yaml.safe_dump(secret))
    (kit.folder / "vault password").write_text("of the vault\n")
    tool = Path(sys.executable).with_name("ansible-vault")
    password = f"--vault-password-file={kit.folder}/vault password"
    subprocess.run([f"{tool}", "encrypt", password, f"{group}/secret.yml"], check=True)


def preflight(kit: Kit, *arguments: str) -> tuple[int, str]:
    played = kit.play("playbooks/preflight.yml", "-i", "inventory/ssh/hosts.py", *arguments)
    return played.code, " ".join(played.output.split())


def test_each_node_is_reached_by_its_own_settings(kit: Kit, servers: dict[str, Sshd]) -> None:
    """User, port, key, jump host, sudo with a password, vault file, dynamic inventory, options."""
    write_site(kit, servers, {"ansible_become_password": PASSWORD})
    key = f"--private-key={servers['plain'].folder}/key"
    vault = f"--vault-password-file={kit.folder}/vault password"
    code, output = preflight(kit, "-u", PILOT, key, vault)
    assert f"OK: {NODES}: behind,plain,sudo" in output, output
    assert code == 0, output
    assert set(servers["sudo"].accepted()) == {"ops"}
    assert set(servers["behind"].accepted()) == {PILOT}
    assert set(servers["plain"].accepted()) == {PILOT, "root"}  # root is that of the jump
    assert PASSWORD not in output


@pytest.mark.fault("wrong-sudo-password")
def test_a_wrong_password_of_sudo_affects_its_node(kit: Kit, servers: dict[str, Sshd]) -> None:
    """The password is that of the file of the command line."""
    write_site(kit, servers, {"ansible_become_user": "root"})
    (kit.folder / "sudo password").write_text("wrong one\n")
    code, output = preflight(
        kit,
        *("-u", PILOT, f"--private-key={servers['plain'].folder}/key"),
        f"--vault-password-file={kit.folder}/vault password",
        f"--become-password-file={kit.folder}/sudo password",
    )
    assert code != 0
    assert "sudo: 1 incorrect password attempt" in output, output
    assert f"OK: {NODES}: behind,plain" in output
    assert "wrong one" not in output
