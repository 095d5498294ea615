"""How the web servers of BMCs differ: redirects, forms of an ETag, and encodings of a body."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace

from tests.emulators.bmc.reply import Reply

REDIRECTS = {
    "redirect-308": "status 308 to the path with a slash at its end, as iLO 5; Location is a path",
    "redirect-307": "the same with status 307; Location is an address",
    "redirect-301": "status 301 for each GET, to the path with a slash at its end",
    "redirect-302": "status 302 for each request, also for those that change something",
    "redirect-relative": "status 308; Location is relative to the path",
    "redirect-host": "status 308 to the same path of another host",
    "redirect-port": "status 307 to the same path at another port",
    "redirect-http": "status 308 to the same path with HTTP",
    "redirect-loop": "status 308 without an end",
}
ETAGS = {
    "etag-quoted-twice": "the header has quotes twice; only the value of the body matches",
    "etag-weak": "a weak ETag; only the strong one of the same value matches",
    "etag-weak-only": "a weak ETag that matches itself, and nothing else does",
    "etag-bare": "only the value without quotes matches",
    "etag-body": "the ETag is only in the body, and a change without it gets status 428",
    "etag-body-differs": "header and body have different ETags; that of the body matches",
    "etag-missing": "there is no ETag, and a change without If-Match gets status 428",
    "etag-refused": "status 412 to each change with If-Match",
    "etag-each-time": "each response has another ETag; only * matches",
}
BODIES = {
    "gzip": "each body is compressed by gzip, which the client has not accepted",
    "deflate": "each body is compressed by deflate",
    "chunked": "each body is sent in chunks",
}
FAULTS = REDIRECTS | ETAGS | BODIES


def redirect(fault: str, method: str, path: str, host: str) -> Reply | None:
    """Return the redirect of a request; None if it is answered.

    Args:
        fault: of the BMC.
        method: of the request.
        path: of the request, as it was sent.
        host: address and port of the BMC.
    """
    slashed = path.endswith("/")
    name = path.rpartition("/")[2]
    match fault:
        case "redirect-loop":
            return _moved(308, path + "x")
        case "redirect-301" if method != "GET":
            return None
        case "redirect-host":
            return _moved(308, f"https://127.9.255.1:{host.partition(':')[2]}{path}")
        case "redirect-port":
            return _moved(307, f"https://{host.partition(':')[0]}:1{path}")
        case "redirect-http":
            return _moved(308, f"http://{host}{path}")
        case _ if slashed or fault not in REDIRECTS:
            return None
        case "redirect-307":
            return _moved(307, f"https://{host}{path}/")
        case "redirect-relative":
            return _moved(308, f"{name}/")
    return _moved(int(fault.rpartition("-")[2]), f"{path}/")


def _moved(status: int, location: str) -> Reply:
    return Reply(status, None, {"Location": location})


def with_etag(reply: Reply, fault: str, etag: str, count: int) -> Reply:
    """Return the response with `etag`, in the form of the BMC.

    Args:
        reply: the response.
        fault: of the BMC.
        etag: the ETag of its resource, with its quotes.
        count: the number of requests until now.
    """
    weak, other = f"W/{etag}", etag.replace('"', '"0', 1)
    forms = {
        "etag-quoted-twice": (f'"{etag}"', etag),
        "etag-weak": (weak, ""),
        "etag-weak-only": (weak, ""),
        "etag-body": ("", etag),
        "etag-body-differs": (other, etag),
        "etag-missing": ("", ""),
        "etag-each-time": (f'"{count}"', f'"{count}"'),
    }
    header, body = forms.get(fault, (etag, ""))
    headers = reply.headers | ({"ETag": header} if header else {})
    return replace(
        reply,
        headers=headers,
        body={**(reply.body or {}), **({"@odata.etag": body} if body else {})},
    )


def unmet(fault: str, headers: Mapping[str, str], etag: str) -> int:
    """Return 412 or 428 if the condition of a change is not met, else 0; `etag` as above."""
    sent = headers.get("if-match")
    if sent is None:
        return 428 if fault in ("etag-body", "etag-missing") else 0
    if fault == "etag-refused":
        return 412
    accepted = {
        "etag-weak-only": (f"W/{etag}",),
        "etag-bare": (etag.strip('"'),),
        "etag-each-time": ("*",),
    }
    return 0 if sent in accepted.get(fault, (etag, "*")) else 412


def encoded(reply: Reply, fault: str) -> bytes:
    """Return the bytes of a response, with the encoding of the BMC."""
    if reply.body is None or fault not in BODIES:
        return reply.raw
    raw = json.dumps(reply.body).encode()
    head = Reply(reply.status, None, dict(reply.headers))
    if fault == "chunked":
        lines = head.raw.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        middle = len(raw) // 2
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in (raw[:middle], raw[middle:]) if c)
        return lines + chunks + b"0\r\n\r\n"
    body = gzip.compress(raw) if fault == "gzip" else zlib.compress(raw)
    head.headers["Content-Encoding"] = fault
    return head.raw.replace(b"Content-Length: 0", b"Content-Length: %d" % len(body)) + body
