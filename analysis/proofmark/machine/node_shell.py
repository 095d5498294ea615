"""The command that runs a POSIX shell script on a node: one function for every node and purpose."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from proofmark.common import nodesets
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.access import HostAccess
from proofmark.site.inventory import Site

TIMEOUT_S = 30
"""The time limit of a connection of ssh in seconds, if Ansible has none."""
SUDO_WITH_PASSWORD = """\
IFS= read -r password
"$1" -n -u "$2" true 2>/dev/null && exec "$1" -n -u "$2" sh -s
printf '%s\\n' "$password" | "$1" -S -p '' -v || exit
{ printf '%s\\n' "$password"; exec cat; } | "$1" -k -S -p '' -u "$2" sh -s
"""
"""Reads the password from the first line of stdin, and runs the rest by sudo.

A password that sudo does not ask for would be the first command of the script. So it is used only
after sudo has refused to run without it, and a wrong one is used once.
"""
_VALUE = re.compile(r"\w[\w.:%@+\\-]*")


class NodeCommand(NamedTuple):
    """A command that runs ``sh -s`` on a node.

    Attributes:
        words: the program and its arguments.
        secret: text that its standard input must have before the script. It is never traced.
    """

    words: list[str]
    secret: str = ""


def node_command(site: Site, node: str) -> NodeCommand:
    """Return the command that runs ``sh -s`` on `node`, as Ansible would reach it.

    Raises:
        NodeError: the name of the node or one of its settings is not one word for ssh.
    """
    if site.ssh is None:
        check_name(node)
        return NodeCommand([word.replace("{node}", node) for word in site.remote_shell])
    return host_command(node, site.ssh.of(node), site.ssh.shell)


def host_command(node: str, host: HostAccess, shell: str = "sh -s") -> NodeCommand:
    """Return the command that runs ``sh -s`` on `node`, which is reached as `host` states.

    Args:
        node: the name of the node.
        host: how the node is reached.
        shell: the command on the node if `host` has no user to become.

    Raises:
        NodeError: the name of the node or one of its settings is not one word for ssh.
    """
    check_name(node)
    words, secret = _shell(host, shell)
    if host.local:
        return NodeCommand(words, secret)
    return NodeCommand([*_ssh(node, host), shlex.join(words)], secret)


def check_name(node: str) -> None:
    """Check that the name of a node is one word for ssh and for a shell.

    Raises:
        NodeError: it is not.
    """
    if not nodesets.is_name(node):
        raise _refused(node, f"this is no host name; accepted: {nodesets.ACCEPTED}")


def _shell(host: HostAccess, usual: str) -> tuple[list[str], str]:
    """Return the words that run ``sh -s`` on `host`, and the secret that stdin begins with."""
    if not host.become_user:
        return shlex.split(usual), ""
    password = host.password.get_secret_value()
    if password:
        words = ["sh", "-c", SUDO_WITH_PASSWORD, "sh", host.sudo, host.become_user]
        return words, f"{password}\n"
    user = [] if host.become_user == "root" else ["-u", host.become_user]
    return [host.sudo, "-n", *user, "sh", "-s"], ""


def _ssh(node: str, host: HostAccess) -> list[str]:
    for value in filter(None, (host.host_name, host.user, host.port)):
        if not _VALUE.fullmatch(value):
            accepted = "letters, digits and _.:%@+\\-, the first a letter or digit"
            raise _refused(node, f"{value!r} in its variables of ssh; accepted: {accepted}")
    settings = {
        "Port": host.port,
        "IdentityFile": host.identity_file and f'"{host.identity_file}"',
        "User": host.user,
        "ConnectTimeout": host.timeout_s or TIMEOUT_S,
        "ConnectionAttempts": host.attempts if host.attempts > 1 else "",
    }
    words = [host.program, "-o", "BatchMode=yes", *host.first_options]
    for key, given in settings.items():
        if given:
            words += ["-o", f"{key}={given}"]
    return [*words, *host.options, host.host_name or node]


def _refused(node: str, problem: str) -> NodeError:
    return NodeError(Outcome.UNREACHABLE, f"{node}: {problem}")
