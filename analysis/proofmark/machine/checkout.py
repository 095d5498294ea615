"""Checks whether the nodes see the checkout and the runs at their paths on this machine.

The scripts of jobs and steps are in the folder of the run, and the nodes run them there.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from pathlib import Path

from proofmark.common.errors import BadInput, InputError
from proofmark.common.host_names import same_host
from proofmark.common.nodesets import folded
from proofmark.machine.node_scripts import run_text
from proofmark.machine.preflight import Finding
from proofmark.site.inventory import Site

MOUNTS = Path("/proc/self/mounts")
IN_MEMORY = frozenset({"devtmpfs", "ramfs", "tmpfs"})
"""Types of file systems in the memory of one machine."""
OF_ONE_MACHINE = ("/tmp", "/var/tmp")
"""Folders of temporary files, which each machine has for itself (Filesystem Hierarchy Standard)."""
MARK = Path("benchmarks/suites.yml")
"""A file of each checkout. Its content shows a checkout of another version at the same path."""
ACCEPTED = "a folder that all nodes see at this path, for example below a shared home directory"
SCRIPT = """#: checkout-mark.sh FILE
if test -r "$1"; then sha256sum <"$1"; else echo none; fi
"""
WHAT = "checkout: seen by the nodes"


def unseen(site: Site, folder: Path) -> InputError | None:
    """Return the error of a `folder` that only this machine can see, if other hosts must see it.

    Virtual nodes are on this machine.
    """
    hosts = other_hosts(site)
    if not hosts or site.partition.origin == "emulated":
        return None
    path = folder.resolve()
    reason = only_here(path, MOUNTS.read_text(encoding="utf-8", errors="replace"))
    if not reason:
        return None
    found = f"a folder {reason}, which {folded(hosts)} cannot see"
    return InputError(f"{path}", "", found, ACCEPTED)


def refuse_unseen(site: Site, folder: Path) -> None:
    """Refuse to run steps of `site` from a `folder` that its hosts cannot see.

    Raises:
        BadInput: the folder is one that only this machine can see.
    """
    if mistake := unseen(site, folder):
        raise BadInput(mistake)


def other_hosts(site: Site) -> list[str]:
    """Return the hosts of `site` that are not this machine."""
    if site.connection == "local":
        return []
    here = ("localhost", os.uname().nodename)
    return [host for host in site.hosts if not any(same_host(host, name) for name in here)]


def only_here(path: Path, mounts: str) -> str:
    """Return why no other machine can see `path`; empty if others may see it.

    Args:
        path: an absolute path without symbolic links.
        mounts: the text of ``/proc/self/mounts``.
    """
    points = (line.split(" ")[1:3] for line in mounts.splitlines() if line.count(" ") >= 2)
    types = {Path(point): kind for point, kind in points}
    kind = next((types[each] for each in (path, *path.parents) if each in types), "")
    if kind in IN_MEMORY:
        return f"on a file system in memory ({kind})"
    inside = (folder for folder in OF_ONE_MACHINE if path.is_relative_to(folder))
    return next((f"below {folder}" for folder in inside), "")


def checkout_findings(site: Site, kit: Path) -> list[Finding]:
    """Return the findings of the nodes that can be reached: whether they see the checkout `kit`.

    The nodes are read as the user of the connection.
    """
    if not other_hosts(site):
        return [Finding(WHAT, "NOT_NEEDED", "no other node than this machine")]
    path = kit.resolve() / MARK
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    processes, _ = run_text(site, site.hosts, f"set -- {shlex.quote(str(path))}\n{SCRIPT}")
    nodes_of: dict[str, list[str]] = {}
    for node, process in processes.items():
        seen = process.stdout.split(" ")[0].strip()
        outcome = {digest: "OK", "none": "NO_CHECKOUT"}.get(seen, "OTHER_CHECKOUT")
        nodes_of.setdefault(outcome, []).append(node)
    texts = {
        "OK": f"{path.parents[1]}",
        "NO_CHECKOUT": f"{path} is missing there, or not readable; accepted: {ACCEPTED}",
        "OTHER_CHECKOUT": f"{path} differs from the file of this machine; accepted: {ACCEPTED}",
    }
    return [
        Finding(WHAT, outcome, f"{folded(nodes)}: {texts[outcome]}")
        for outcome, nodes in nodes_of.items()
    ]
