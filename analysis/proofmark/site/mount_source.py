"""Whether the mount that a kernel shows can be the one that a site names.

``machine/shell/mount-source.sh`` decides it on a node, where host names can be resolved. What is
here needs no node: a host name may be any address.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from itertools import zip_longest


def same_type(shown: str, wanted: str) -> bool:
    """Return whether `shown` is the type `wanted`; a mount of type nfs can be shown as nfs4.

    Source: nfs(5), the option `nfsvers`; /proc/mounts of a client of an NFS 4 server.
    """
    return shown == wanted or (shown, wanted) == ("nfs4", "nfs")


def may_be_same(shown: str, wanted: str) -> bool:
    """Return whether two sources can be of one file system, if their host names are looked up.

    Source: mount.lustre(8) gives the kernel addresses instead of host names, and ``tcp`` instead
    of no network.
    """
    if shown == wanted:
        return True
    pairs = zip_longest(_parts(shown), _parts(wanted), fillvalue=("", ""))
    return all(
        network == other_network and (host == other or _is_name(host) or _is_name(other))
        for (host, network), (other, other_network) in pairs
    )


def _parts(source: str) -> list[tuple[str, str]]:
    """Return the servers of a source with their networks, and its path as ``("", "/PATH")``."""
    servers, colon, path = source.rpartition(":")
    if not colon:
        return [("", source)]
    bracketed = re.fullmatch(r"\[(.*)\]", servers)
    parts = [("", f"/{path.strip('/')}")]
    for server in [bracketed[1]] if bracketed else re.split("[,:]", servers):
        host, _, network = server.partition("@")
        parts.append((host, re.sub(r"(?<=[a-z])0$", "", network) or "tcp"))
    return parts


def _is_name(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return bool(re.search("[A-Za-z]", host))
    return False
