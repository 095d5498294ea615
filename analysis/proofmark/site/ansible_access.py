"""How Ansible would reach each host: the options of its plug-ins ``ssh`` and ``sudo``.

Ansible's own plug-ins resolve the options. So variables, ansible.cfg, the environment and, in a
play, the command line (``-u``, ``--private-key``, ``-b``) count in Ansible's order. A setting that
the kit cannot use is refused, because without it another machine or user would be reached.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from proofmark.common.errors import BadInput, InputError
from proofmark.site.access import HostAccess

CONNECTION = "ansible_connection"
_BECOME = ("ansible_become", "ansible_become_method")
_ADDRESS = ("ansible_host", "ansible_ssh_host")
_SSH = ("ssh", "ansible.builtin.ssh", "smart")
_LOCAL = ("local", "ansible.builtin.local")
_SUDO = ("sudo", "ansible.builtin.sudo")
_NOT_USED = ("password", "private_key", "private_key_passphrase", "pkcs11_provider")
"""Options of Ansible's ssh that choose a credential and that the kit does not use."""
_USER = re.compile(r"[A-Za-z_][\w.-]*\$?")
_PROGRAM = re.compile(r"[\w./+-]+")


@dataclass(frozen=True)
class Passwords:
    """The passwords that Ansible asked for: of ssh (``-k``) and of sudo (``-K``)."""

    ssh: str = ""
    become: str = ""


class AnsibleAccess:
    """Resolves the access to hosts by Ansible's plug-ins.

    Attributes:
        names: the variables of a host that the plug-ins read.
    """

    def __init__(self, passwords: Passwords) -> None:
        from ansible import constants
        from ansible.playbook.play_context import PlayContext
        from ansible.plugins.loader import become_loader, connection_loader

        self._passwords = passwords
        self._ssh = connection_loader.get("ssh", PlayContext(), "/dev/null")
        self._sudo = become_loader.get("sudo")
        plugins = (("connection", "ssh"), ("become", "sudo"))
        definitions = [
            option
            for plugin in plugins
            for option in constants.config.get_configuration_definitions(*plugin).values()
        ]
        listed = {each["name"] for option in definitions for each in option.get("vars", ())}
        internal = {name for name in listed if not name.startswith("ansible_")}
        self.names = (*sorted(listed - internal), CONNECTION, *_BECOME)
        self._defaults = {
            name: option.get("default")
            for plugin in plugins
            for name, option in constants.config.get_configuration_definitions(*plugin).items()
        }
        self._known: dict[tuple[tuple[str, str], ...], HostAccess] = {}

    def of(self, host: str, variables: Mapping[str, Any]) -> HostAccess:
        """Return how `host` with these templated `variables` is reached.

        Raises:
            BadInput: it names each variable or option that the kit cannot use.
        """
        address = next((str(variables[key]) for key in _ADDRESS if variables.get(key)), "")
        key = tuple(sorted((k, repr(v)) for k, v in variables.items() if k not in _ADDRESS))
        if key not in self._known:
            mistakes = [InputError(f"host {host}", *words) for words in self._refused(variables)]
            if mistakes:
                raise BadInput(*mistakes)
            self._known[key] = self._access(variables)
        known = self._known[key]
        return known if known.local else known.model_copy(update={"host_name": address})

    def _access(self, variables: Mapping[str, Any]) -> HostAccess:
        become: dict[str, Any] = {}
        if _is_become(variables):
            option = self._option_of_sudo
            become = {
                "become_user": str(option("become_user") or "root"),
                "sudo": str(option("become_exe") or "sudo"),
                "password": SecretStr(str(option("become_pass") or self._passwords.become)),
            }
        if _connection(variables) in _LOCAL:
            return HostAccess(local=True, **become)
        get = self._ssh.get_option
        checked = get("host_key_checking")
        given = [
            str(get(name) or "")
            for name in ("ssh_args", "ssh_common_args", "ssh_extra_args")
            if get(name) != self._defaults[name]
        ]
        options = [word for text in given for word in shlex.split(text)]
        return HostAccess(
            program=str(get("ssh_executable")),
            user=str(get("remote_user") or ""),
            port=str(get("port") or ""),
            identity_file=str(get("private_key_file") or ""),
            options=(*options, *(() if checked else ("-o", "StrictHostKeyChecking=no"))),
            timeout_s=int(get("timeout")),
            **become,
        )

    def _option_of_sudo(self, name: str) -> Any:
        return self._sudo.get_option(name)

    def _refused(self, variables: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Set the options of the plug-ins; yield key, found and accepted of each refused one."""
        connection = _connection(variables)
        if connection not in (*_SSH, *_LOCAL):
            yield CONNECTION, repr(connection), "ssh, local, or partition.firmware.remote_shell"
            return
        if _is_become(variables):
            method = _become_method(variables)
            if method not in _SUDO:
                yield "ansible_become_method", repr(method), "sudo"
                return
            self._sudo.set_options(var_options=dict(variables))
            yield from self._refused_sudo()
        if connection in _LOCAL:
            return
        self._ssh.set_options(var_options=dict(variables))
        for name in _NOT_USED:
            if self._ssh.get_option(name) or (name == "password" and self._passwords.ssh):
                yield f"ansible_{name}", "a value", "a key of ssh: ansible_private_key_file"
        program = str(self._ssh.get_option("ssh_executable"))
        if not _PROGRAM.fullmatch(program):
            yield "ansible_ssh_executable", repr(program), "one program without blanks"

    def _refused_sudo(self) -> Iterator[tuple[str, str, str]]:
        user = str(self._option_of_sudo("become_user") or "root")
        if not _USER.fullmatch(user):
            yield "ansible_become_user", repr(user), "the name of a user"
        program = str(self._option_of_sudo("become_exe") or "sudo")
        if not _PROGRAM.fullmatch(program):
            yield "ansible_become_exe", repr(program), "one program without blanks"
        for name in ("become_flags", "sudo_chdir"):
            value, default = self._option_of_sudo(name), self._defaults[name]
            if value not in (default, None, ""):
                yield f"ansible_{name}", repr(value), f"nothing, or {default!r}"


def _connection(variables: Mapping[str, Any]) -> str:
    return str(variables.get(CONNECTION) or _of_command_line("connection", "DEFAULT_TRANSPORT"))


def _is_become(variables: Mapping[str, Any]) -> bool:
    from ansible.module_utils.parsing.convert_bool import boolean

    given = variables.get("ansible_become")
    if given is None:
        given = _of_command_line("become", "DEFAULT_BECOME")
    return bool(boolean(given, strict=False))


def _become_method(variables: Mapping[str, Any]) -> str:
    given = variables.get("ansible_become_method")
    return str(given or _of_command_line("become_method", "DEFAULT_BECOME_METHOD"))


def _of_command_line(option: str, setting: str) -> Any:
    """Return an option of the command line of a play; without one, a setting of ansible.cfg."""
    from ansible import constants, context

    return context.CLIARGS.get(option) or getattr(constants, setting)
