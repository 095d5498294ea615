"""How each host of a site is reached: by this machine itself or by ssh, and as which user.

Ansible's own plug-ins ``ssh`` and ``sudo`` resolve their options. So variables, ansible.cfg, the
environment and, in a play, the keywords of the task and the command line (``-u``,
``--private-key``, ``-b``) count in Ansible's order. A setting that the kit cannot use is refused,
because without it another machine or user would be reached.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr

from proofmark.common.errors import InputError, nearest, refuse
from proofmark.common.input_limits import MAX_WAIT_S
from proofmark.common.shared_models import StrictModel

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


CONNECTION = "ansible_connection"
_ADDRESS = ("ansible_host", "ansible_ssh_host")
_SSH = ("ssh", "ansible.builtin.ssh", "smart")
_LOCAL = ("local", "ansible.builtin.local")
_SUDO = ("sudo", "ansible.builtin.sudo")
_NOT_USED = ("password", "private_key", "private_key_passphrase", "pkcs11_provider")
"""Options of Ansible's ssh that choose a credential and that the kit does not use."""
_USER = re.compile(r"[A-Za-z_][\w.-]*\$?")
_PROGRAM = re.compile(r"[\w./+-]+")


def keywords_of(task: Any, play_context: Any) -> dict[str, Any]:
    """Return the keywords of a task that the plug-ins of a connection read, as Ansible passes them.

    An option of the command line is the default of its keyword (``-u`` of ``remote_user``). The
    time limit and the passwords of ``-k`` and ``-K`` are in the context of the play
    (``TaskExecutor._set_connection_options`` of ansible-core 2.19).

    Args:
        task: Ansible's ``Task``; outside of a play, a task without keywords.
    """
    keywords = {name: value for name, value in task.dump_attrs().items() if value is not None}
    keywords["timeout"] = play_context.timeout
    passwords = {"password": play_context.password, "become_pass": play_context.become_pass}
    return keywords | {name: value for name, value in passwords.items() if value}


def connection_variables() -> tuple[str, ...]:
    """Return the names of the variables that decide how a host is reached."""
    return AnsibleAccess({}).names


class AnsibleAccess:
    """Resolves the access to hosts by Ansible's plug-ins.

    Attributes:
        names: the variables of a host that the plug-ins read.
        types: their types, as Ansible's configuration names them.
    """

    def __init__(self, keywords: Mapping[str, Any] | None = None) -> None:
        """Load the plug-ins; `keywords` are those of `keywords_of`, None outside of a play."""
        from ansible import constants
        from ansible.playbook.play_context import PlayContext
        from ansible.playbook.task import Task
        from ansible.plugins.loader import become_loader, connection_loader

        self._keywords = keywords_of(Task(), PlayContext()) if keywords is None else keywords
        self._ssh = connection_loader.get("ssh", PlayContext(), "/dev/null")
        self._sudo = become_loader.get("sudo")
        plugins = (("connection", "ssh"), ("become", "sudo"))
        self.types = {CONNECTION: "str", "ansible_become": "bool", "ansible_become_method": "str"}
        self._defaults: dict[Any, Any] = {}
        for plugin in plugins:
            options = constants.config.get_configuration_definitions(*plugin)
            self._defaults |= {name: option.get("default") for name, option in options.items()}
            for option in options.values():
                for each in option.get("vars", ()):
                    self.types[each["name"]] = f"{option.get('type')}"
        self.names = tuple(sorted(name for name in self.types if name.startswith("ansible_")))
        self._known: dict[tuple[tuple[str, str], ...], HostAccess] = {}

    def of(self, host: str, variables: Mapping[str, Any]) -> HostAccess:
        """Return how `host` with these templated `variables` is reached.

        Raises:
            BadInput: it names each variable or option that the kit cannot use.
        """
        address = next((str(variables[key]) for key in _ADDRESS if variables.get(key)), "")
        key = tuple(sorted((k, repr(v)) for k, v in variables.items() if k not in _ADDRESS))
        if key not in self._known:
            refuse(InputError(f"host {host}", *words) for words in self._refused(variables))
            self._known[key] = self._access(variables)
        known = self._known[key]
        return known if known.local else known.model_copy(update={"host_name": address})

    def _access(self, variables: Mapping[str, Any]) -> HostAccess:
        from ansible import constants

        get = self._ssh.get_option
        local = self._connection(variables) in _LOCAL
        user, option = "" if local else str(get("remote_user") or ""), self._sudo.get_option
        become = {}
        # Ansible uses no sudo for a host on which the user logs in anyway.
        if self._is_become(variables) and (
            not user or user != option("become_user") or constants.BECOME_ALLOW_SAME_USER
        ):
            become = {
                "become_user": str(option("become_user") or "root"),
                "sudo": str(option("become_exe") or "sudo"),
                "password": SecretStr(str(option("become_pass") or "")),
            }
        if local:
            return HostAccess(local=True, **become)
        key = get("private_key_file")
        unchecked = () if get("host_key_checking") else ("-o", "StrictHostKeyChecking=no")
        return HostAccess(
            program=str(get("ssh_executable")),
            first_options=(*self._arguments("ssh_args"), *unchecked),
            user=user,
            port=str(get("port") or ""),
            # ssh takes the home folder of ``~`` from passwd(5).
            identity_file=f"{Path(key).expanduser()}" if key else "",
            options=(*self._arguments("ssh_common_args"), *self._arguments("ssh_extra_args")),
            timeout_s=int(get("timeout")),
            attempts=1 + int(get("reconnection_retries")),
            **become,
        )

    def _arguments(self, name: str) -> list[str]:
        """Return the words of an option with arguments of ssh; none for the value of Ansible."""
        given = self._ssh.get_option(name)
        return [] if given == self._defaults[name] else shlex.split(str(given or ""))

    def _refused(self, variables: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Set the options of the plug-ins; yield key, found and accepted of each refused one."""
        connection = self._connection(variables)
        if connection not in (*_SSH, *_LOCAL):
            found = f"{connection!r}{nearest(connection, ('ssh', 'local'))}"
            yield CONNECTION, found, "ssh, local, or partition.firmware.remote_shell"
            return
        if self._is_become(variables):
            method = self._stated(variables, "become_method", "DEFAULT_BECOME_METHOD")
            if method not in _SUDO:
                yield "ansible_become_method", repr(method), "sudo"
                return
            self._sudo.set_options(task_keys=self._keywords, var_options=dict(variables))
            yield from self._refused_sudo()
        if connection in _LOCAL:
            return
        self._ssh.set_options(task_keys=self._keywords, var_options=dict(variables))
        for name in _NOT_USED:
            if self._ssh.get_option(name):
                yield f"ansible_{name}", "a value", "a key of ssh: ansible_private_key_file"
        program = str(self._ssh.get_option("ssh_executable"))
        if not _PROGRAM.fullmatch(program):
            yield "ansible_ssh_executable", repr(program), "one program without blanks"

    def _refused_sudo(self) -> Iterator[tuple[str, str, str]]:
        option = self._sudo.get_option
        user = str(option("become_user") or "root")
        if not _USER.fullmatch(user):
            yield "ansible_become_user", repr(user), "the name of a user"
        program = str(option("become_exe") or "sudo")
        if not _PROGRAM.fullmatch(program):
            yield "ansible_become_exe", repr(program), "one program without blanks"
        for name in ("become_flags", "sudo_chdir"):
            value, default = option(name), self._defaults[name]
            if value not in (default, None, ""):
                yield f"ansible_{name}", repr(value), f"nothing, or {default!r}"

    def _connection(self, variables: Mapping[str, Any]) -> str:
        return str(self._stated(variables, "connection", "DEFAULT_TRANSPORT"))

    def _is_become(self, variables: Mapping[str, Any]) -> bool:
        from ansible.module_utils.parsing.convert_bool import boolean

        return bool(boolean(self._stated(variables, "become", "DEFAULT_BECOME"), strict=False))

    def _stated(self, variables: Mapping[str, Any], name: str, setting: str) -> Any:
        """Return the value of a variable, else of a keyword, else of a setting of ansible.cfg."""
        from ansible import constants

        stated = (variables.get(f"ansible_{name}"), self._keywords.get(name))
        given = (each for each in stated if each not in (None, ""))
        return next(given, getattr(constants, setting))
