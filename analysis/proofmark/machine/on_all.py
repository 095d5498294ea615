"""The shell function ``on_all`` of job scripts, for schedulers that start one process on a node."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def one_by_one(nodes: Sequence[str], command: str) -> list[str]:
    """Return ``on_all`` for a scheduler whose command starts a process on one node.

    `command` is for the node ``"$node"``. The script and its arguments are appended as one quoted
    text, which the shell on the node splits again. The local node, ``$HOST``, needs no `command`.
    A scheduler sends its signal to this shell, too, whichever it is: ``$SIGNALS`` of job.sh.
    """
    quote = r"s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"
    return [
        "on_all() {",
        "text=sh",
        f'for word; do text="$text $(printf "%s\\n" "$word" | sed "{quote}")"; done',
        "pids=",
        "trap 'kill $pids 2>/dev/null' ${SIGNALS:-TERM}",
        f"for node in {shlex.join(nodes)}; do",
        # As same_host of hosts.sh: an address, or a name in another domain, is another node.
        'if [ "$node" = "$HOST" ] || [ "${node%%.*}" = "$HOST" ] || [ "$node" = "${HOST%%.*}" ]',
        'then sh "$@" </dev/null &',
        f'else {command} "$text" </dev/null & fi',
        'pids="$pids $!"',
        "done",
        "failed=0",
        'for pid in $pids; do wait "$pid" || failed=$?; done',
        'return "$failed"',
        "}",
    ]


def ssh_to(nodes: Sequence[str]) -> list[str]:
    """Return ``on_all`` by ssh, for a scheduler without a command for the nodes of a job."""
    return one_by_one(nodes, 'ssh -o BatchMode=yes -o ConnectTimeout=30 "$node"')
