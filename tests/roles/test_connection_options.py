"""The ssh of the kit has the settings of Ansible's own ssh, whatever states them.

One play reaches each host twice: by Ansible (`raw`) and by the kit (`check --nodes`). A program in
place of ssh records both command lines. ``ssh -G`` prints the settings that follow from each.
"""

from __future__ import annotations

import configparser
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import yaml
from tests.roles.kit import DECLARED, Kit, Played

pytestmark = pytest.mark.slow

RECORDER = """#!/usr/bin/env python3
import json, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv) + "\\n")
"""
TWICE = """
- hosts: compute
  gather_facts: false
  ignore_errors: true
  {keywords}
  tasks:
    - {{name: Ansible, ansible.builtin.raw: "true"}}
    - name: The kit
      run_once: true
      proofmark.kit.cli:
        argv: [check, --nodes]
        groups: true
        options: {{inventory: "{{{{ ansible_inventory_sources }}}}", limit: p, suite: quick}}
"""
KIT_OWN = {
    # No key is asked for a passphrase and no host for a password.
    *("batchmode", "passwordauthentication", "kbdinteractiveauthentication"),
    *("preferredauthentications", "numberofpasswordprompts"),
    # Each script has a connection of its own, without a terminal.
    *("controlmaster", "controlpath", "controlpersist", "compression", "requesttty"),
    # Ansible repeats the whole command; the kit repeats the connection.
    "connectionattempts",
}
"""Settings of ssh in which the kit differs from Ansible on purpose (docs/connections.md)."""


@dataclass(frozen=True)
class Case:
    """What states the settings of the connections, with values that are not the default.

    Attributes:
        hosts: variables of hosts.
        options: of ansible-playbook.
        environment: of ansible-playbook.
        ini: keys of ansible.cfg, as ``section.key``.
        keywords: of the play, as YAML.
    """

    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"n1": {}})
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ini: Mapping[str, str] = field(default_factory=dict)
    keywords: str = ""


KEY, OTHER_KEY = "/keys/one key", "~/keys/other"
VARIABLES: dict[str, dict[str, Any]] = {
    "address": {"ansible_host": "10.9.8.7"},
    "old-address": {"ansible_ssh_host": "fe80::1%eth0"},
    "user": {"ansible_user": "ops"},
    "old-user": {"ansible_ssh_user": "ops"},
    "port": {"ansible_port": 2222},
    "old-port": {"ansible_ssh_port": "2223"},
    "key": {"ansible_ssh_private_key_file": KEY},
    "old-key": {"ansible_private_key_file": OTHER_KEY},
    "args": {"ansible_ssh_args": "-o ServerAliveInterval=7 -o User=first -o Port=21"},
    "args-first": {"ansible_ssh_args": "-o User=first", "ansible_user": "second"},
    "common": {"ansible_ssh_common_args": "-J gate -o User=late", "ansible_user": "ops"},
    "extra": {"ansible_ssh_extra_args": "-o 'ProxyCommand=ssh -W %h:%p gate'"},
    "extra-late": {"ansible_ssh_extra_args": "-p 99", "ansible_port": 98},
    "timeout": {"ansible_ssh_timeout": 47},
    "unchecked": {"ansible_host_key_checking": False},
    "ssh-unchecked": {"ansible_ssh_host_key_checking": "no"},
    "unchecked-late": {
        "ansible_host_key_checking": False,
        "ansible_ssh_common_args": "-o StrictHostKeyChecking=yes",
    },
    "template": {"ansible_user": "u-{{ inventory_hostname }}", "ansible_port": "{{ 20 + 4 }}"},
}
BECOME: dict[str, dict[str, Any]] = {
    "become": {"ansible_become": True, "ansible_become_user": "boss"},
    "sudo": {"ansible_become": "yes", "ansible_sudo_user": "other"},
    "become-exe": {"ansible_become": True, "ansible_become_exe": "/opt/bin/sudo"},
    "become-root": {"ansible_become": True, "ansible_user": "root"},
    "become-not": {"ansible_become": False},
}
ENVIRONMENT = {
    "ANSIBLE_BECOME": "1",
    "ANSIBLE_BECOME_USER": "boss",
    "ANSIBLE_REMOTE_USER": "ops",
    "ANSIBLE_REMOTE_PORT": "2224",
    "ANSIBLE_PRIVATE_KEY_FILE": OTHER_KEY,
    "ANSIBLE_SSH_ARGS": "-o ServerAliveInterval=8",
    "ANSIBLE_SSH_COMMON_ARGS": "-o ForwardAgent=yes",
    "ANSIBLE_SSH_EXTRA_ARGS": "-o 'ProxyCommand=nc %h %p'",
    "ANSIBLE_TIMEOUT": "48",
    "ANSIBLE_SSH_TIMEOUT": "49",
    "ANSIBLE_HOST_KEY_CHECKING": "False",
}
INI = {
    "privilege_escalation.become": "1",
    "privilege_escalation.become_user": "boss",
    "defaults.remote_user": "ops",
    "defaults.remote_port": "2225",
    "defaults.private_key_file": KEY,
    "defaults.timeout": "51",
    "defaults.host_key_checking": "False",
    "ssh_connection.timeout": "52",
    "ssh_connection.ssh_args": "-o ServerAliveInterval=9",
    "ssh_connection.ssh_common_args": "-o ForwardAgent=yes",
    "ssh_connection.ssh_extra_args": "-o LogLevel=ERROR",
}
OPTIONS = (
    *("-b", "--become-user", "boss"),
    *("-u", "ops", "--private-key", OTHER_KEY, "-T", "53"),
    *("--ssh-common-args", "-o ForwardAgent=yes", "--ssh-extra-args", "-o LogLevel=ERROR"),
)
KEYWORDS = ("remote_user: ops", "port: 2226", "become: true", "become_user: boss")
CASES = {
    "variables": Case(hosts={**VARIABLES, **BECOME}, options=("--become-user", "late")),
    "environment": Case(environment=ENVIRONMENT),
    "ansible.cfg": Case(ini=INI),
    "options": Case(options=OPTIONS),
    "keywords": Case(
        keywords="remote_user: ops\n  port: 2226\n  become: true\n  become_user: boss"
    ),
    "a variable before the option and the environment": Case(
        hosts={"n1": {"ansible_user": "mine", "ansible_port": 2227}, "n2": {}},
        options=("-u", "ops"),
        environment={"ANSIBLE_REMOTE_USER": "other", "ANSIBLE_REMOTE_PORT": "2228"},
    ),
    "a keyword before the option": Case(keywords="remote_user: mine", options=("-u", "ops")),
    "extra variables": Case(options=("-e", "ansible_user=ops", "-e", "ansible_port=2229")),
}


BOSS = ("variables", "environment", "ansible.cfg", "options", "keywords")
"""The cases in which Ansible becomes the user boss."""
SUDO = {
    "root": Case(options=("-b",)),
    "the user of the log-in": Case(options=("-b", "--become-user", "ops", "-u", "ops")),
}


def play(kit: Kit, case: Case) -> Played:
    """Play `case`, with a program in place of ssh that records its command lines."""
    site, log = kit.folder / "inventory/ssh", kit.folder / "log"
    (site / "group_vars").mkdir(parents=True)
    groups = {"compute": {"children": {"p": {"hosts": dict(case.hosts)}}}}
    (site / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    (site / "group_vars/p.yml").write_text(yaml.safe_dump({"partition": DECLARED}))
    (kit.folder / "twice.yml").write_text(TWICE.format(keywords=case.keywords))
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(kit.folder / "ansible.cfg")
    for name, value in case.ini.items():
        section, key = name.split(".")
        if not settings.has_section(section):
            settings.add_section(section)
        settings[section][key] = value
    with (kit.folder / "ansible.cfg").open("w") as file:
        settings.write(file)
    program = kit.folder / "ssh"
    program.write_text(RECORDER.format(log=f"{log}"))
    program.chmod(0o755)
    environment = {
        **kit.environment,
        "ANSIBLE_SSH_EXECUTABLE": f"{program}",
        "HOME": f"{kit.folder}",
        **case.environment,
    }
    played = replace(kit, environment=environment).play(
        "twice.yml", "-i", "inventory/ssh", *case.options
    )
    assert "TASK [The kit]" in played.output, played.output
    return played


def recorded(kit: Kit, case: Case) -> list[list[str]]:
    """Play `case`; return the command lines of ssh that name a host."""
    played = play(kit, case)
    lines = [json.loads(line) for line in (kit.folder / "log").read_text().splitlines()]
    assert any("BatchMode=yes" in words for words in lines), played.output
    return [words for words in lines if len(words) > 4]


def settings_of(words: list[str]) -> dict[str, str]:
    """Return the settings that ssh would use for the command line `words`, by name."""
    command = ["ssh", "-G", "-F", "none", *words[1:-1]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    of_batch_mode = "serveraliveinterval 300"  # Debian's BatchMode sets it
    text = done.stdout.replace(of_batch_mode, "serveraliveinterval 0")
    lines = [line.partition(" ") for line in text.splitlines()]
    return {key: value for key, _, value in lines if key not in KIT_OWN}


def by_host(lines: list[list[str]]) -> dict[str, dict[str, str]]:
    """Return the settings of each host; all command lines to one host must agree."""
    found: dict[str, dict[str, str]] = {}
    for words in lines:
        settings = settings_of([word for word in words if word != "-tt"])
        assert found.setdefault(words[-2], settings) == settings
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_ssh_of_the_kit_has_the_settings_of_ansible(kit: Kit, name: str) -> None:
    case = CASES[name]
    lines = recorded(kit, case)
    assert ("boss" in {user for _, user in same_sudo(lines).values()}) == (name in BOSS)
    mine = by_host([words for words in lines if "BatchMode=yes" in words])
    ansible = by_host([words for words in lines if "BatchMode=yes" not in words])
    assert len(ansible) == len(case.hosts)
    assert mine.keys() == ansible.keys()
    differences = {
        host: {key: (mine[host].get(key), value)}
        for host, settings in ansible.items()
        for key, value in settings.items()
        if mine[host].get(key) != value
    }
    assert differences == {}


def sudo_of(lines: list[list[str]]) -> dict[str, tuple[str, str]]:
    """Return the program of sudo and its user by host; two empty texts without sudo."""
    found: dict[str, tuple[str, str]] = {}
    for words in lines:
        match = re.search(r"([^\s']*sudo)(?: +-[HSn])*(?: +-u (\S+))? +(?:/bin/)?sh", words[-1])
        sudo = (match[1], match[2] or "root") if match else ("", "")
        assert found.setdefault(words[-2], sudo) == sudo
    return found


def same_sudo(lines: list[list[str]]) -> dict[str, tuple[str, str]]:
    """Return the sudo of each host; that of the kit and that of Ansible must agree."""
    mine = sudo_of([words for words in lines if "BatchMode=yes" in words])
    assert mine == sudo_of([words for words in lines if "BatchMode=yes" not in words])
    return mine


@pytest.mark.parametrize("name", SUDO)
def test_the_kit_becomes_the_user_of_ansible(kit: Kit, name: str) -> None:
    """The cases above have further users."""
    assert same_sudo(recorded(kit, SUDO[name]))


def test_a_password_of_the_command_line_is_refused(kit: Kit) -> None:
    (kit.folder / "password").write_text("geheim\n")
    played = play(kit, Case(options=("--connection-password-file", "password")))
    assert played.printed("host n1: ansible_password: found a value; accepted: a key of ssh")
    assert "geheim" not in played.output
