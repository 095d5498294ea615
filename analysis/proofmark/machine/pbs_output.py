"""The outputs of PBS commands, and the states of its nodes.

Source: ``src/cmds`` and ``src/lib/Libattr/attr_node_func.c`` of PBS Pro 18 to OpenPBS 23.06.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proofmark.common.json_text import parse_printed_json
from proofmark.machine.node_states import Use, states_of
from proofmark.runs.job_state import State
from proofmark.site.survey.listed import ListedNode

Entries = dict[str, dict[str, Any]]
"""The attributes of each node, job or server."""

NODE_STATES = {
    "Stale": Use.OUT,  # its MoM no longer reports this vnode
    "busy": Use.PROMISED,  # its load is high, perhaps without a job
    "down": Use.OUT,
    "free": Use.IN_SERVICE,
    "initializing": Use.OUT,
    "job-busy": Use.OCCUPIED,
    "job-exclusive": Use.OCCUPIED,
    "job-sharing": Use.OCCUPIED,
    "maintenance": Use.OUT,
    "offline": Use.OUT,
    "offline_by_mom": Use.OUT,
    "provisioning": Use.OUT,  # gets another operating system, and restarts
    "resv-exclusive": Use.RESERVED,
    "sleep": Use.BOOTS,  # without power
    "stale": Use.OUT,
    "state-unknown": Use.OUT,
    "unresolvable": Use.OUT,
    "wait-provisioning": Use.OUT,
}

_STALE = {"Stale", "stale"}

FIRST_NODE_DIED = -20

EXITS = {
    -1: (State.NODE_FAILED, "not started, before its files were staged"),
    -2: (State.NODE_FAILED, "not started, after its files were staged"),
    -3: (State.NODE_FAILED, "not started, to be retried"),
    -4: (State.NODE_FAILED, "aborted when the daemon of its node started"),
    -5: (State.NODE_FAILED, "aborted when the daemon of its node started"),
    -6: (State.NODE_FAILED, "aborted when the daemon of its node started"),
    -7: (State.NODE_FAILED, "not restarted from its checkpoint"),
    -10: (State.REFUSED, "its user or group is not valid on the node"),
    -11: (State.REQUEUED, "run again"),
    -12: (State.KILLED, "after a checkpoint"),
    -13: (State.REFUSED, "the password of its user is wrong"),
    -14: (State.NODE_FAILED, "another of its nodes failed"),
    -15: (State.REQUEUED, "from its checkpoint"),
    -16: (State.REFUSED, "by a hook of the site, to be retried"),
    -17: (State.REFUSED, "by a hook of the site"),
    -18: (State.REQUEUED, "by a hook of the site"),
    -19: (State.CANCELLED, "by a hook of the site"),
    FIRST_NODE_DIED: (State.NODE_FAILED, "its first node does not answer"),
    -21: (State.REFUSED, "a folder of PBS on its node can be written by others"),
    -22: (State.REFUSED, "a hook of the site failed"),
    -23: (State.REFUSED, "it has no Kerberos credentials"),
    -24: (State.KILLED, "it used too many processors"),
    -25: (State.KILLED, "it used too many processors"),
    -26: (State.KILLED, "it used too much virtual memory"),
    -27: (State.KILLED, "it used too much memory"),
    -28: (State.TIME_LIMIT, "its limit of processor time"),
    -29: (State.TIME_LIMIT, ""),
    -30: (State.NODE_FAILED, "one of its nodes did not join it"),
}
"""The states and meanings of negative exit statuses: ``JOB_EXEC_*`` of ``src/include/job.h``."""

_NOT_ACTIVE = {
    *("RESV_NONE", "RESV_UNCONFIRMED", "RESV_CONFIRMED", "RESV_WAIT"),
    *("RESV_FINISHED", "RESV_DELETED"),
}
"""States of reservations that keep no node now (pbs_rstat(1))."""

_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([kmgtpe]?)([bw]?)", re.IGNORECASE)
_WORD_BYTES = 8
_POWERS = "kmgtpe"


def entries(text: str, key: str) -> Entries:
    """Return the entries below `key` in JSON of PBS; empty if there are none.

    Raises:
        ValueError: it is no JSON of PBS.
    """
    whole = parse_printed_json(text)
    found = whole.get(key, {}) if isinstance(whole, dict) else None
    if not isinstance(found, dict):
        raise ValueError(f"no entries of {key}")
    return {name: fields for name, fields in found.items() if isinstance(fields, dict)}


def node_states(fields: Mapping[str, Any]) -> dict[str, Use]:
    """Return the states of a node with these attributes, and their meanings."""
    return states_of(node_words(fields), NODE_STATES)


def node_words(fields: Mapping[str, Any]) -> list[str]:
    """Return the words of the state of a node with these attributes."""
    return [word for word in re.split(r"[,\s]+", str(fields.get("state", ""))) if word]


def joined(vnodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the attributes of a host from those of its virtual nodes.

    The host has all their states, jobs and comments: it is free if all of them are. A vnode that
    the daemon of the host no longer reports counts only if it reports no other: PBS keeps a vnode
    that an admin has removed from the definitions of the host.
    """
    reported = [each for each in vnodes if not _STALE & {*node_words(each)}] or vnodes
    states = dict.fromkeys(state for each in reported for state in node_words(each))
    comments = dict.fromkeys(str(each["comment"]) for each in vnodes if each.get("comment"))
    used = {state for state in states if state != "free"}
    return {
        "state": ",".join(state for state in states if state in used or not used),
        "jobs": [each["jobs"] for each in vnodes if each.get("jobs")],
        **({"comment": "; ".join(comments)} if comments else {}),
    }


def size_of(text: str) -> int:
    """Return the bytes of a size of PBS: ``196607040kb``, ``1.5tb``, ``16gw``, ``4096``.

    A size without a unit has bytes. ``w`` is a word of 8 bytes, and a unit without ``b`` and ``w``
    is one of bytes (PBS Professional Reference Guide, "Formats", size).

    Raises:
        ValueError: the text is not a size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a size: {text[:40]!r}")
    number, prefix, unit = match[1], match[2].lower(), match[3].lower()
    factor = 1024 ** (_POWERS.index(prefix) + 1) if prefix else 1
    return round(float(number) * factor) * (_WORD_BYTES if unit == "w" else 1)


def active_reservations(text: str) -> dict[str, list[str]]:
    """Return the nodes of each active reservation in the output of ``pbs_rstat -F``.

    A reservation has the name of its queue. A host has its own name beside those of its vnodes.
    """
    found: dict[str, list[str]] = {}
    for block in re.split(r"^Resv ID: ", text, flags=re.MULTILINE)[1:]:
        name, _, lines = block.partition("\n")
        pairs = (line.partition(" = ") for line in lines.split("\n"))
        fields: dict[str, str] = {}
        for key, _, value in pairs:
            fields.setdefault(key.strip(), value.strip())
        if fields.get("reserve_state", "") not in _NOT_ACTIVE:
            nodes = dict.fromkeys(_nodes_of(fields.get("resv_nodes", "")))
            found[fields.get("queue") or name.partition(".")[0]] = list(nodes)
    return found


def _nodes_of(text: str) -> Iterator[str]:
    """Yield the vnodes and hosts of ``(n1:ncpus=4+n2[0]:ncpus=2)+(n3:ncpus=4)``."""
    for chunk in text.split("+"):
        vnode = chunk.strip("() ").partition(":")[0]
        if vnode:
            yield vnode
            yield vnode.partition("[")[0]


Vnode = tuple[str, int, int, frozenset[str], str]
"""Host, CPUs, bytes of memory, queues, and the accelerators of a virtual node."""


def vnode_of(name: str, fields: Mapping[str, Any]) -> Vnode:
    """Return a virtual node; a resource that cannot be read is 0."""
    resources = fields.get("resources_available")
    resources = resources if isinstance(resources, dict) else {}
    queues = [str(fields.get("queue", "")), *str(resources.get("Qlist", "")).split(",")]
    cpus = str(resources.get("ncpus", ""))
    return (
        str(resources.get("host") or name),
        int(cpus) if re.fullmatch("[0-9]{1,6}", cpus) else 0,
        _bytes(str(resources.get("mem", ""))),
        frozenset(queue.strip() for queue in queues if queue.strip()),
        str(resources.get("ngpus", "")),
    )


def _bytes(text: str) -> int:
    try:
        return size_of(text)
    except ValueError:
        return 0


def host_of(host: str, vnodes: list[Vnode]) -> ListedNode:
    """Return a host with the resources of all of its virtual nodes."""
    cpus = sum(each[1] for each in vnodes)
    gpus = sorted({each[4] for each in vnodes if each[4]})
    return ListedNode(
        name=host,
        kind=(f"CPUs={cpus}", *(f"GPUs={each}" for each in gpus)),
        memory_bytes=sum(each[2] for each in vnodes),
        groups=tuple(sorted(frozenset.union(*(each[3] for each in vnodes)))),
        cpus=cpus,
    )
