"""A private ssh_config with an entry for each node, and the command that uses it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from proofmark.common import nodesets
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import SSH
from proofmark.site.ssh import SshAccess, SshHost

ENTRIES_PER_FILE = 256
"""ssh reads the whole file at each start: one of 8,305 entries costs 12 ms."""
USER_FILES = ("~/.ssh/config", "/etc/ssh/ssh_config")
"""The files that ssh reads without ``-F``, in its order."""
_VALUE = re.compile(r"\w[\w.:%@+\\-]*")
_PATH = re.compile(r'[^"\x00-\x1f\x7f]+')


def check_name(node: str) -> None:
    """Check that the name of a node is one word for ssh and for a shell.

    Raises:
        NodeError: it is not.
    """
    if not nodesets.is_name(node):
        raise _refused(node, f"this is no host name; accepted: {nodesets.ACCEPTED}")


def ssh_commands(
    access: SshAccess, nodes: Iterable[str], folder: Path
) -> tuple[dict[str, list[str]], dict[str, NodeError]]:
    """Write the entries of `nodes` into `folder`; return the commands, and the refused nodes.

    With ``-F`` ssh reads no other file, so the files that it would read are included after the
    entries: of several values of a setting ssh uses the first one.
    """
    groups: dict[tuple[str, ...], list[tuple[str, str, tuple[str, ...]]]] = {}
    refused: dict[str, NodeError] = {}
    for node in nodes:
        host = access.of(node)
        try:
            entry = _entry(node, host)
        except NodeError as failed:
            refused[node] = failed
        else:
            included, options = _split_options(host)
            groups.setdefault(included, []).append((node, entry, options))
    program, *usual = SSH[:-2]
    commands: dict[str, list[str]] = {}
    for included, group in groups.items():
        for start in range(0, len(group), ENTRIES_PER_FILE):
            chunk = group[start : start + ENTRIES_PER_FILE]
            file = folder / f"ssh_config.{len(commands)}"
            _write(file, [*(entry for _, entry, _ in chunk), "Host *\n", *map(_include, included)])
            for node, _, options in chunk:
                commands[node] = [program, "-F", f"{file}", *usual, *options, node, access.shell]
    return commands, refused


def _entry(node: str, host: SshHost) -> str:
    check_name(node)
    for value in filter(None, (host.host_name, host.user, host.port)):
        if not _VALUE.fullmatch(value):
            accepted = "letters, digits and _.:%@+\\-, the first a letter or digit"
            raise _refused(node, f"{value!r} in its variables of ssh; accepted: {accepted}")
    if host.identity_file and not _PATH.fullmatch(host.identity_file):
        accepted = "a path without quotation marks and control characters"
        raise _refused(node, f"the key file {host.identity_file!r}; accepted: {accepted}")
    lines = {
        "HostName": host.host_name.replace("%", "%%"),
        "User": host.user,
        "Port": host.port,
        "IdentityFile": host.identity_file and f'"{host.identity_file}"',
    }
    settings = "".join(f"  {key} {value}\n" for key, value in lines.items() if value)
    return f"Host {node}\n{settings}"


def _refused(node: str, problem: str) -> NodeError:
    return NodeError(Outcome.UNREACHABLE, f"{node}: {problem}")


def _split_options(host: SshHost) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the configuration files to include, and the options without ``-F``.

    Of several ``-F`` ssh uses the last one: that of the site would replace the private file.
    """
    files: tuple[str, ...] = USER_FILES
    options: list[str] = []
    words = iter(host.options)
    for word in words:
        if word.startswith("-F"):
            file = word[2:] or next(words, "none")
            files = () if file == "none" else (f"{Path(file).absolute()}",)
        else:
            options.append(word)
    return files, tuple(options)


def _include(file: str) -> str:
    return f'  Include "{file}"\n'


def _write(file: Path, lines: Iterable[str]) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.writelines(lines)
