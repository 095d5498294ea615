"""One TLS connection to a BMC, and the JSON bodies of its responses.

The connection is `http.client` with a deadline and a size limit. The timeout of a socket restarts
with each byte. Therefore a timer ends the connection at the deadline: it also ends a response that
is sent byte by byte, endless interim responses and endless trailers. The policy for the
certificates is the same with each version of Python.

A BMC may send anything. Each function that reads a body raises an exception of the package that
names what was found.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import threading
import weakref
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any

from proofmark.common.errors import ProofmarkError, bad_input
from proofmark.common.files import parse_json
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import Scalar

POLICY = ssl.VerifyFlags.VERIFY_X509_TRUSTED_FIRST | ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
"""All flags of a verification. `ssl.create_default_context` has other ones in each version.

VERIFY_X509_STRICT (default since Python 3.13) is not one of them. It refuses certificates without
an Authority Key Identifier, and authorities without a key usage. BMCs and the authorities of sites
have both. With VERIFY_X509_PARTIAL_CHAIN a certificate of the file is trusted also if it is that
of an intermediate authority or of the BMC itself. Signature, dates and name are always checked.
"""

LARGEST = 16 << 20
"""Limit of a body in bytes; an attribute registry has under two million."""

LEAST_S = 0.001
"""The least timeout of a socket; 0 would make it non-blocking."""

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers by lower-case name, and body."""

_ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""The windows of zlib for each encoding of a body (``wbits``)."""


def tls_context(ca: str | None, *, verify: bool) -> ssl.SSLContext:
    """Return a TLS context that checks BMCs against the file `ca`, or the system's authorities.

    Args:
        ca: file of PEM certificates; None for the authorities of the system.
        verify: False accepts any certificate.

    Raises:
        BadInput: `ca` cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        accepted = "a file of PEM certificates"
        raise bad_input(ca or "--ca", "", f"unreadable: {error}", accepted) from None
    context.verify_flags = POLICY
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class ProtocolError(ProofmarkError):
    """The response is not HTTP, or larger than `LARGEST`."""


class HttpsConnection:
    """A connection to `address`; the constructor opens it.

    Raises:
        OSError: the BMC cannot be reached, or `context` does not accept its certificate.
    """

    def __init__(self, address: str, port: int, context: ssl.SSLContext, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._connection = HTTPSConnection(address, port, context=context, timeout=timeout_s)
        self._connection.response_class = _Response
        self._connection.connect()
        weakref.finalize(self, self._connection.close)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @property
    def closed(self) -> bool:
        """Whether the connection is closed."""
        return self._connection.sock is None

    @property
    def stale(self) -> bool:
        """Whether an idle connection has input, for example because the BMC closed it."""
        if self._connection.sock is None:
            return True
        poll = select.poll()
        poll.register(self._connection.sock, select.POLLIN)
        return bool(self._connection.sock.pending() or poll.poll(0))

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float | None = None,
    ) -> Answer:
        """Send a request; return status, headers by lower-case name, and the body.

        A body is decompressed: some BMCs send gzip to each client (HPE iLO: attribute registries).

        `timeout_s` is the limit for the request and its response; None: that of the constructor.

        Raises:
            OSError: the connection is closed, or the response is incomplete at the deadline.
            ProtocolError: the response is not HTTP, or larger than `LARGEST`.
        """
        content = {"Content-Type": "application/json"} if body is not None else {}
        connected = self._connection.sock
        if connected is None:
            raise ConnectionResetError("the connection is closed")
        seconds = self._timeout_s if timeout_s is None else timeout_s
        late: list[bool] = []

        def end() -> None:
            late.append(True)
            with suppress(OSError):
                socket.socket.shutdown(connected, socket.SHUT_RDWR)

        connected.settimeout(max(seconds, LEAST_S))
        timer = threading.Timer(seconds, end)
        timer.start()
        try:
            self._connection.request(method, path, body, {**headers, **content})
            response = self._connection.getresponse()
            raw = response.read(LARGEST + 1)
            if late or (len(raw) <= LARGEST and response.length):
                raise IncompleteRead(raw, response.length)
        except (OSError, HTTPException, ValueError) as error:
            self.close()
            if late or isinstance(error, TimeoutError):
                raise TimeoutError("no complete response before the deadline") from None
            if isinstance(error, OSError):
                raise
            raise ProtocolError(f"{type(error).__name__}: {error}"[:200]) from None
        finally:
            timer.cancel()
        if len(raw) > LARGEST:
            self.close()
            raise ProtocolError(f"a response of more than {LARGEST} bytes")
        names = {name.lower(): value for name, value in response.getheaders()}
        return response.status, names, _decoded(raw, names.get("content-encoding", ""))


def _decoded(raw: bytes, encodings: str) -> bytes:
    """Return a body without its content encoding.

    Raises:
        ProtocolError: the encoding is unknown, the body is damaged, or larger than `LARGEST`.
    """
    encoding = encodings.strip().lower()
    if not raw or encoding in ("", "identity"):
        return raw
    if encoding not in _ENCODINGS:
        accepted = f"identity, {', '.join(_ENCODINGS)}"
        raise ProtocolError(f"Content-Encoding: found {encoding:.40}; accepted: {accepted}")
    engine = zlib.decompressobj(_ENCODINGS[encoding])
    try:
        body = engine.decompress(raw, LARGEST + 1)
    except zlib.error as error:
        raise ProtocolError(f"Content-Encoding {encoding}: {error}") from None
    if len(body) > LARGEST:
        raise ProtocolError(f"a response of more than {LARGEST} bytes")
    if not engine.eof:
        raise ProtocolError(f"Content-Encoding {encoding}: the end is missing")
    return body


class _Response(HTTPResponse):
    """The response after all interim responses; `http.client` skips only status 100."""

    def begin(self) -> None:
        super().begin()
        while 100 <= self.status < 200:
            self.headers = self.msg = None  # type: ignore[assignment]  # as in a new response
            super().begin()


PATH = re.compile(r"/(?!/)[!-~]{0,1000}")
"""A path on the same host: printable ASCII, and no host name after a second slash."""
KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number"}
SHOWN = 80
"""Limit of a quoted value in characters."""


class JsonError(ProofmarkError):
    """The body is no JSON object within the limits."""


def parse(raw: bytes) -> Mapping[str, Any]:
    """Return the JSON object in `raw`.

    Raises:
        JsonError: `raw` is not JSON (`parse_json`), or is no object.
    """
    try:
        body = parse_json(raw)
    except ValueError as error:
        found = f"a body that is not JSON ({error})" if raw.strip() else "no body"
        raise JsonError(f"found {found}; accepted: a JSON object") from None
    if not isinstance(body, dict):
        raise JsonError(f"found {described(body)}; accepted: a JSON object")
    return body


def is_path(text: str) -> bool:
    """Return whether `text` is an absolute path on the same host."""
    return PATH.fullmatch(text) is not None


def described(value: object) -> str:
    """Return the type of `value`, and the value if it is short."""
    if value is None:
        return "nothing"
    kind = KINDS.get(type(value), "a number")
    return f"{kind} ({value!r:.{SHOWN}})" if isinstance(value, (str, int, float)) else kind


@dataclass(frozen=True)
class BodyPart:
    """One object of a response.

    The methods return an empty value if the object does not have the key, or has null. `required`
    and `link` raise then. A value of another type raises `NodeError`, UNEXPECTED.

    Attributes:
        place: the path of the resource and the keys to the object, for messages.
    """

    place: str
    content: Mapping[str, Any]

    def part(self, key: str) -> BodyPart:
        """Return the object at `key`."""
        return BodyPart(f"{self.place} {key}", self._typed(key, dict, {}))

    def required(self, key: str) -> BodyPart:
        """Return the object at `key`."""
        if self.content.get(key) is None:
            raise self.wrong(key, None, "an object")
        return self.part(key)

    def items(self, key: str) -> list[BodyPart]:
        """Return the objects in the list at `key`; another item is left out."""
        values = self._typed(key, list, [])
        return [
            BodyPart(f"{self.place} {key}[{number}]", value)
            for number, value in enumerate(values)
            if isinstance(value, dict)
        ]

    def texts(self, key: str) -> list[str]:
        """Return the list of texts at `key`."""
        values: list[Any] = self._typed(key, list, [])
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise self.wrong(f"{key}[{number}]", value, "a text")
        return values

    def text(self, key: str) -> str:
        """Return the text at `key`."""
        return str(self._typed(key, str, ""))

    def flag(self, key: str) -> bool:
        """Return the truth value at `key`."""
        return bool(self._typed(key, bool, False))

    def number(self, key: str) -> int | None:
        """Return the whole number at `key`."""
        value = self.content.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self.wrong(key, value, "a whole number")

    def path(self, key: str) -> str:
        """Return the path at `key`; empty if there is none."""
        value = self.text(key)
        if value and not is_path(value):
            raise self.wrong(key, value, "a path on the same BMC")
        return value

    def link(self, key: str) -> str:
        """Return the path that the link at `key` has."""
        path = self.part(key).path("@odata.id")
        if not path:
            raise self.wrong(key, self.content.get(key), "a link")
        return path

    def settings(self, key: str, names: Mapping[str, object]) -> dict[str, Scalar]:
        """Return the attributes of the object at `key` that `names` contains."""
        attributes = self.required(key)
        found = {name: attributes.content.get(name) for name in names}
        for name, value in found.items():
            if value is not None and not isinstance(value, (str, int)):
                raise attributes.wrong(name, value, "a text, a whole number, true or false")
        return {name: value for name, value in found.items() if value is not None}

    def _typed(self, key: str, kind: type, empty: Any) -> Any:
        value = self.content.get(key)
        if value is None:
            return empty
        if not isinstance(value, kind):
            raise self.wrong(key, value, KINDS[kind])
        return value

    def wrong(self, key: str, value: object, accepted: str) -> NodeError:
        """Return the failure of an object with this value at `key`."""
        text = f"{self.place}: {key}: found {described(value)}; accepted: {accepted}"
        return NodeError(Outcome.UNEXPECTED, text)
