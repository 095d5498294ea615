"""How each host is reached: what Ansible's plug-ins resolve from variables and settings."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.site.access import AnsibleAccess, HostAccess
from proofmark.site.inventory import Site, load_site

FACTS = {
    "environment": "local",
    "provision_from": "system",
    "scheduler": "none",
    "scratch": {"path": "/scratch"},
}


def write(folder: Path, hosts: Mapping[str, Any], **variables: Any) -> None:
    facts = {**FACTS, **variables.pop("facts", {})}
    groups = {"compute": {"children": {"p": {"hosts": hosts}}}}
    (folder / "group_vars").mkdir()
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    values = {**variables, "partition": facts}
    (folder / "group_vars" / "p.yml").write_text(yaml.safe_dump(values))


def load(folder: Path, hosts: Mapping[str, Any], **variables: Any) -> Site:
    write(folder, hosts, **variables)
    return load_site(folder, "p")


def usual(**settings: Any) -> HostAccess:
    """Return the access of a host with `settings`; Ansible's time limit is that of ansible.cfg."""
    return HostAccess(timeout_s=30, **settings)


def test_each_host_has_its_own_settings(tmp_path: Path) -> None:
    """Templates are those of the host; what most hosts have is written once."""
    hosts = {
        "n1": {},
        "n2": {"ansible_host": "10.0.0.{{ inventory_hostname[1:] }}", "ansible_port": 2222},
        "n3": {},
        "n4": {"ansible_private_key_file": "/other", "ansible_ssh_common_args": "-J 'gate 4'"},
    }
    site = load(tmp_path, hosts, ansible_user="root", ansible_ssh_common_args="-J gate")
    assert site.ssh is not None
    assert site.ssh.usual == usual(user="root", options=("-J", "gate"))
    assert site.ssh.usual == site.ssh.of("n1") == site.ssh.of("n3")
    assert site.ssh.hosts == {
        "n2": usual(host_name="10.0.0.2", user="root", port="2222", options=("-J", "gate")),
        "n4": usual(user="root", identity_file="/other", options=("-J", "gate 4")),
    }
    assert Site.model_validate_json(site.model_dump_json()).ssh == site.ssh


def test_a_template_may_use_the_variables_of_another_host(tmp_path: Path) -> None:
    hosts = {"n1": {}, "n2": {"ansible_host": "{{ hostvars['n1'].gate }}"}}
    site = load(tmp_path, hosts, gate="10.0.0.1")
    assert site.ssh
    assert site.ssh.of("n2").host_name == "10.0.0.1"


@pytest.mark.parametrize(
    ("variables", "settings"),
    [
        ({"ansible_become": True}, {"become_user": "root"}),
        ({"ansible_become": "yes", "ansible_become_user": "ops"}, {"become_user": "ops"}),
        ({"ansible_become": False}, {}),
        (
            {"ansible_become": True, "ansible_become_exe": "/opt/bin/sudo"},
            {"become_user": "root", "sudo": "/opt/bin/sudo"},
        ),
        (
            {"ansible_host_key_checking": False},
            {"first_options": ("-o", "StrictHostKeyChecking=no")},
        ),
        ({"ansible_ssh_args": "-o ProxyJump=gate"}, {"first_options": ("-o", "ProxyJump=gate")}),
        ({"ansible_ssh_executable": "/opt/bin/ssh"}, {"program": "/opt/bin/ssh"}),
        ({"ansible_ssh_timeout": 7}, {"timeout_s": 7}),
        ({"ansible_ssh_user": "a", "ansible_ssh_port": 9}, {"user": "a", "port": "9"}),
        ({"ansible_ssh_retries": 4}, {"attempts": 5}),
        # Ansible does not become the user who logs in.
        ({"ansible_become": True, "ansible_user": "root"}, {"user": "root"}),
        (
            {"ansible_become": True, "ansible_user": "root", "ansible_become_user": "ops"},
            {"user": "root", "become_user": "ops"},
        ),
    ],
)
def test_a_setting_of_ansible_counts(
    tmp_path: Path, variables: dict[str, Any], settings: dict[str, Any]
) -> None:
    site = load(tmp_path, {"n1": {}}, **variables)
    assert site.ssh
    assert site.ssh.of("n1") == HostAccess(**{"timeout_s": 30, **settings})


def test_the_environment_of_ansible_counts_less_than_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSIBLE_REMOTE_USER", "ops")
    site = load(tmp_path, {"n1": {}, "n2": {"ansible_user": "root"}})
    assert site.ssh
    assert (site.ssh.of("n1").user, site.ssh.of("n2").user) == ("ops", "root")


@pytest.mark.fault("connection-not-usable")
@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"ansible_connection": "docker"}, "ansible_connection: found 'docker'; accepted: ssh"),
        ({"ansible_become": True, "ansible_become_method": "su"}, "become_method: found 'su'"),
        ({"ansible_become": True, "ansible_become_user": "a b"}, "become_user: found 'a b'"),
        ({"ansible_become": True, "ansible_become_flags": "-i"}, "become_flags: found '-i'"),
        ({"ansible_become": True, "ansible_become_exe": "s x"}, "become_exe: found 's x'"),
        ({"ansible_password": "geheim"}, "ansible_password: found a value; accepted: a key"),
        ({"ansible_private_key": "geheim"}, "ansible_private_key: found a value"),
        ({"ansible_ssh_executable": "ssh -v"}, "ansible_ssh_executable: found 'ssh -v'"),
    ],
)
def test_a_setting_that_the_kit_cannot_use_is_refused_by_name(
    tmp_path: Path, variables: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput) as refused:
        load(tmp_path, {"n1": {}}, **variables)
    assert message in str(refused.value)
    assert "host n1: " in str(refused.value)
    assert "geheim" not in str(refused.value)


def test_the_command_of_the_firmware_replaces_the_settings(tmp_path: Path) -> None:
    """A connection that the kit cannot use is no mistake then."""
    facts = {"firmware": {"back_end": "manual", "remote_shell": ["rsh", "{node}", "sh"]}}
    site = load(tmp_path, {"n1": {}}, ansible_connection="docker", facts=facts)
    assert (site.ssh, site.remote_shell) == (None, ["rsh", "{node}", "sh"])


def test_hosts_of_one_partition_may_differ_in_their_connection(tmp_path: Path) -> None:
    site = load(tmp_path, {"n1": {"ansible_connection": "local"}, "n2": {}})
    assert site.ssh
    assert (site.ssh.of("n1").local, site.ssh.of("n2").local) == (True, False)
    assert (site.connection, list(site.aliases)) == ("ssh", ["n1"])


def test_the_password_of_sudo_is_in_no_file(tmp_path: Path) -> None:
    site = load(tmp_path, {"n1": {}}, ansible_become=True, ansible_become_password="geheim")
    assert site.ssh
    assert site.ssh.of("n1").password.get_secret_value() == "geheim"
    assert "geheim" not in site.model_dump_json() + repr(site)


VAULTED = """
import sys
from pathlib import Path
from proofmark.site.inventory import load_site
site = load_site(Path(sys.argv[1]), "p")
print(site.ssh.of("n1").user, site.ssh.of("n1").password.get_secret_value())
"""


@pytest.fixture(scope="module")
def password(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a password; beside it is an encrypted file."""
    folder = tmp_path_factory.mktemp("vault")
    secret, password = folder / "secret.yml", folder / "password"
    secret.write_text("{ansible_user: ops, ansible_become_password: geheim}\n")
    password.write_text("of the vault\n")
    tool = Path(sys.executable).with_name("ansible-vault")
    encrypt = [f"{tool}", "encrypt", f"--vault-password-file={password}", f"{secret}"]
    subprocess.run(encrypt, check=True, capture_output=True)
    assert secret.read_text().startswith("$ANSIBLE_VAULT;")
    return password


@pytest.mark.fault("vault-without-password")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
def test_files_of_the_vault_are_read_with_the_password_of_ansible(
    tmp_path: Path, password: Path, monkeypatch: pytest.MonkeyPatch, injected: bool
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    write(site, {"n1": {}}, ansible_become=True)
    (site / "group_vars/p").mkdir()
    (site / "group_vars/p.yml").rename(site / "group_vars/p/facts.yml")
    shutil.copy(password.with_name("secret.yml"), site / "group_vars/p")
    if not injected:
        monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(password))
    done = subprocess.run(
        [sys.executable, "-c", VAULTED, str(site)], capture_output=True, text=True, check=False
    )
    if injected:
        assert "no password for it" in done.stderr
    else:
        assert done.stdout == "ops geheim\n", done.stderr


def test_a_dynamic_inventory_is_read(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    write(site, {})
    (site / "hosts.yml").unlink()
    script = site / "hosts.py"
    script.write_text(
        "#!/bin/sh\n"
        'echo \'{"p": {"hosts": ["n1"]}, "compute": {"children": ["p"]},'
        ' "_meta": {"hostvars": {"n1": {"ansible_host": "10.0.0.1"}}}}\'\n'
    )
    script.chmod(0o755)
    loaded = load_site(site, "p")
    assert loaded.ssh
    assert loaded.hosts == ("n1",)
    assert loaded.ssh.of("n1").host_name == "10.0.0.1"


DOCUMENTED = (ROOT / "docs/connections.md").read_text(encoding="utf-8")
COUNTS, REFUSED, IGNORED = (
    set(re.findall(r"`(ansible_\w+)[`:]", " ".join(re.findall(r"(?m)^\| (.*)\|", section))))
    for section in re.split(r"\n#+ Settings [^\n]*\n", DOCUMENTED)[1:]
)
"""The variables of the three tables."""
WITHOUT_A_VALUE = {"ansible_connection": "docker", "ansible_become_method": "su"}
SAMPLES = {"int": 7, "integer": 7}


def variables_of_ansible() -> dict[str, Any]:
    """Return a value that is not the default for each variable of Ansible's ssh and sudo."""
    from ansible.constants import config

    AnsibleAccess()  # loads the plug-ins
    found: dict[str, Any] = {}
    for plugin in (("connection", "ssh"), ("become", "sudo")):
        for option in config.get_configuration_definitions(*plugin).values():
            kind = option.get("type")
            value: Any = SAMPLES.get(kind, "other")
            if kind in ("bool", "boolean"):
                value = not bool(option.get("default"))
            if choices := option.get("choices"):
                value = next(each for each in choices if each != option["default"])
            for variable in option.get("vars", ()):
                found[str(variable["name"])] = value if isinstance(value, int) else str(value)
    own = ("inventory_hostname", "delegated_vars")
    return {name: value for name, value in found.items() if not name.startswith(own)}


def test_each_variable_of_the_plug_ins_of_ansible_is_in_one_table() -> None:
    """A new variable of another version of Ansible is in none."""
    tables = [*COUNTS, *REFUSED - WITHOUT_A_VALUE.keys(), *IGNORED]
    others = {"ansible_connection", "ansible_become", "ansible_become_method"}
    assert sorted(set(tables) - others) == sorted(variables_of_ansible())
    assert not COUNTS & IGNORED


@pytest.mark.parametrize("name", sorted(variables_of_ansible()))
def test_a_variable_has_the_effect_of_its_table(tmp_path: Path, name: str) -> None:
    value = variables_of_ansible()[name]
    become = {"ansible_become": True} if "become" in name or "sudo" in name else {}
    for folder in (tmp_path / "with", tmp_path / "without"):
        folder.mkdir()
    usual_site = load(tmp_path / "without", {"n1": {}}, **become)
    given = {**become, name: value}
    if name in REFUSED:
        with pytest.raises(BadInput, match="host n1: ansible_"):
            load(tmp_path / "with", {"n1": {}}, **given)
        return
    site = load(tmp_path / "with", {"n1": {}}, **given)
    assert site.ssh and usual_site.ssh
    same = site.ssh.of("n1") == usual_site.ssh.of("n1")
    assert same == (name in IGNORED)
