"""Redirects of a BMC to another path of itself (RFC 9110, section 15.4).

Some BMCs redirect a path to the one with ``/`` at its end, for example iLO 5 and older ones. A
redirect to another host, to another port or to HTTP is refused: it would get the password.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

from proofmark.machine.bmc.https import Answer, ProtocolError
from proofmark.machine.bmc.json_body import is_path

MOST = 5
"""The largest number of redirects of one request."""
KEEPS_METHOD = (307, 308)
"""Status of a redirect that keeps method and body, so each request follows it."""
OF_GET = (301, 302, 303)
"""Status of a redirect that turns other methods into GET: only a GET follows it."""
HTTPS_PORT = 443


def follow(
    send: Callable[[str], Answer], method: str, path: str, address: str, port: int
) -> Answer:
    """Send a request to `path`, and again to each path that the BMC names; return the answer.

    Args:
        send: sends the request to a path.
        method: of the request.
        path: its first path.
        address: the host of the BMC.
        port: the port of the BMC.

    Raises:
        ProtocolError: a redirect leaves the BMC, or there are more than `MOST` of them.
    """
    for _ in range(MOST + 1):
        status, headers, body = send(path)
        location = headers.get("location", "").strip()
        followed = status in KEEPS_METHOD or (status in OF_GET and method == "GET")
        if not followed or not location:
            return status, headers, body
        path = _path_of(location, path, address, port, status)
    raise ProtocolError(f"{method} {path}: more than {MOST} redirects")


def _path_of(location: str, path: str, address: str, port: int, status: int) -> str:
    """Return the path that `location` names on the same BMC."""
    host = address.strip("[]").lower().rstrip(".")
    base = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    try:
        parts = urlsplit(urljoin(base + path, location))
        endpoint = (parts.scheme, (parts.hostname or "").rstrip("."), parts.port or HTTPS_PORT)
        if endpoint == ("https", host, port) and "@" not in parts.netloc:
            target = parts._replace(scheme="", netloc="", fragment="").geturl()
            if is_path(target):
                return target
    except ValueError:
        pass  # no address
    accepted = f"a path of {base}, because the password is sent to no other host"
    raise ProtocolError(f"{path}: status {status} to {location:.100}; accepted: {accepted}")
