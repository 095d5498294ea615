"""How ssh reaches each host of a site: what Ansible's variables declare."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from proofmark.common.strict_model import StrictModel

ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
VARIABLES = (
    *("ansible_host", "ansible_user", "ansible_port"),
    *("ansible_private_key_file", "ansible_ssh_private_key_file"),
    *ARGUMENTS,
)
"""The variables that can differ from host to host."""


class SshHost(StrictModel):
    """The settings of one host; an empty one is left to the ssh configuration of the user.

    Attributes:
        host_name: the address, if it is not the name in the inventory.
        options: further arguments of ssh.
    """

    host_name: str = ""
    user: str = ""
    port: str = ""
    identity_file: str = ""
    options: tuple[str, ...] = ()


class SshAccess(StrictModel):
    """The settings of all hosts of a site.

    Attributes:
        shell: the command that ssh runs on a host.
        usual: the settings of each host that `hosts` does not name.
    """

    shell: str
    usual: SshHost
    hosts: dict[str, SshHost] = {}

    def of(self, host: str) -> SshHost:
        """Return the settings of `host`."""
        return self.hosts.get(host, self.usual)


def ssh_access(shell: str, variables: Mapping[str, Mapping[str, Any]]) -> SshAccess:
    """Return the settings of hosts by their variables; the first host has the usual ones."""
    settings = {host: _ssh_host(values) for host, values in variables.items()}
    usual = next(iter(settings.values()))
    return SshAccess(
        shell=shell,
        usual=usual,
        hosts={host: each for host, each in settings.items() if each != usual},
    )


def ssh_options(variables: Mapping[str, Any]) -> list[str]:
    """Return the arguments of ssh that the variables of a host list."""
    return [word for key in ARGUMENTS for word in shlex.split(str(variables.get(key) or ""))]


def _ssh_host(variables: Mapping[str, Any]) -> SshHost:
    def text(*keys: str) -> str:
        return next((str(variables[key]) for key in keys if variables.get(key)), "")

    return SshHost(
        host_name=text("ansible_host"),
        user=text("ansible_user"),
        port=text("ansible_port"),
        identity_file=text("ansible_ssh_private_key_file", "ansible_private_key_file"),
        options=tuple(ssh_options(variables)),
    )
