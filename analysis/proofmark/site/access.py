"""How each host of a site is reached: by this machine itself or by ssh, and as which user."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, SecretStr

from proofmark.common.input_limits import MAX_WAIT_S
from proofmark.common.strict_model import StrictModel

NO_PASSWORD = SecretStr("")


class HostAccess(StrictModel):
    """The settings of one host; an empty one is left to the ssh configuration of the user.

    Attributes:
        local: whether the host is this machine. The settings of ssh do not apply then.
        program: the program of ssh.
        host_name: the address, if it is not the name in the inventory.
        first_options: arguments of ssh before those of the other settings. Of two values, ssh uses
            the first.
        options: arguments of ssh after those of the other settings.
        timeout_s: the time limit of a connection, in seconds; 0 is that of the kit.
        attempts: how often ssh tries to connect.
        become_user: the user who runs the scripts, by sudo; empty is the user who logs in.
        sudo: the program of sudo.
        password: for sudo. No file has it.
    """

    local: bool = False
    program: str = "ssh"
    host_name: str = ""
    user: str = ""
    port: str = ""
    identity_file: str = ""
    first_options: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    timeout_s: int = Field(default=0, ge=0, le=MAX_WAIT_S)
    attempts: int = Field(default=1, ge=1)
    become_user: str = ""
    sudo: str = "sudo"
    password: SecretStr = Field(default=NO_PASSWORD, exclude=True)


class Access(StrictModel):
    """The settings of all hosts of a site.

    Attributes:
        shell: the command that runs on a host without `HostAccess.become_user`.
        usual: the settings of each host that `hosts` does not name.
    """

    shell: str = "sh -s"
    usual: HostAccess
    hosts: dict[str, HostAccess] = {}

    def of(self, host: str) -> HostAccess:
        """Return the settings of `host`."""
        return self.hosts.get(host, self.usual)


def access(settings: Mapping[str, HostAccess]) -> Access:
    """Return the settings of hosts; the first host has the usual ones."""
    usual = next(iter(settings.values()))
    return Access(
        usual=usual, hosts={host: each for host, each in settings.items() if each != usual}
    )
