"""One HTTP/1.1 connection over TLS (RFC 9112), no more of it than a BMC needs.

`http.client` reads headers by the parser of e-mail, at a fifth of a millisecond an answer: most of
what a request costs. Here an answer is a status, a dictionary and bytes.
"""

from __future__ import annotations

import select
import socket
import ssl
import weakref
from collections.abc import Mapping

LARGEST = 16 << 20
"""Bytes of an answer; a registry of attributes has less than two million."""
LARGEST_HEAD = 64 << 10
AT_A_TIME = 64 << 10
WITHOUT_BODY = (204, 304)


class ProtocolError(Exception):
    """What came is no answer by HTTP."""


class HttpsConnection:
    """A connection to `address`, made at once.

    Raises:
        OSError: nobody answers, or not with a certificate that `context` takes.
    """

    def __init__(self, address: str, port: int, context: ssl.SSLContext, timeout_s: float) -> None:
        bare = socket.create_connection((address, port), timeout_s)
        try:
            bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = context.wrap_socket(bare, server_hostname=address)
        except BaseException:
            bare.close()
            raise
        weakref.finalize(self, self._socket.close)
        self._host = f"[{address}]" if ":" in address else address
        self._rest = b""
        self.closing = False
        """Whether the other side has said that it will not take another request."""

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    @property
    def stale(self) -> bool:
        """Whether an idle connection has something to say: that it was hung up, for example."""
        asked = select.poll()
        asked.register(self._socket, select.POLLIN)
        return self.closing or bool(self._rest or self._socket.pending() or asked.poll(0))

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request; return status, headers by their names in small letters, and the body.

        Raises:
            OSError: the line is cut, or silent for too long.
            Nonsense: it is not HTTP, or larger than an answer of a BMC can be.
        """
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        elif method != "GET":
            lines.append("Content-Length: 0")
        if any("\r" in line or "\n" in line for line in lines):
            raise ProtocolError(f"a line break in {path!r} or a header")
        self._socket.sendall(
            "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + (body or b"")
        )
        status, found = self._head()
        while 100 <= status < 200:
            status, found = self._head()
        return status, found, self._body(status, found)

    def _head(self) -> tuple[int, dict[str, str]]:
        while (end := self._rest.find(b"\r\n\r\n")) < 0:
            if len(self._rest) > LARGEST_HEAD:
                raise ProtocolError("headers without an end")
            self._rest += self._more()
        head, self._rest = self._rest[:end].decode("latin-1"), self._rest[end + 4 :]
        first, *lines = head.split("\r\n")
        version, _, told = first.partition(" ")
        if not version.startswith("HTTP/1.") or not told[:3].isdecimal():
            raise ProtocolError(f"{first[:40]!r} where a status was awaited")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        manner = headers.get("connection", "").lower()
        self.closing = "close" in manner or (version == "HTTP/1.0" and "keep-alive" not in manner)
        return int(told[:3]), headers

    def _body(self, status: int, headers: Mapping[str, str]) -> bytes:
        if status in WITHOUT_BODY:
            return b""
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return self._chunks()
        length = headers.get("content-length")
        if length is None:
            return self._until_it_hangs_up()
        if not length.isdecimal() or int(length) > LARGEST:
            raise ProtocolError(f"an answer of {length[:20]} bytes")
        return self._exactly(int(length))

    def _chunks(self) -> bytes:
        parts: list[bytes] = []
        while size := self._size_of_chunk():
            if size + sum(map(len, parts)) > LARGEST:
                raise ProtocolError("an answer without an end")
            parts.append(self._exactly(size))
            self._line()
        while self._line():
            pass  # trailers
        return b"".join(parts)

    def _size_of_chunk(self) -> int:
        text = self._line().partition(b";")[0].strip()
        try:
            return int(text, 16)
        except ValueError:
            raise ProtocolError(f"{text[:20]!r} where the size of a chunk was awaited") from None

    def _line(self) -> bytes:
        while (end := self._rest.find(b"\r\n")) < 0:
            if len(self._rest) > LARGEST_HEAD:
                raise ProtocolError("a line without an end")
            self._rest += self._more()
        line, self._rest = self._rest[:end], self._rest[end + 2 :]
        return line

    def _exactly(self, length: int) -> bytes:
        parts, left = [self._rest], length - len(self._rest)
        while left > 0:
            parts.append(self._more())
            left -= len(parts[-1])
        whole = b"".join(parts)
        self._rest = whole[length:]
        return whole[:length]

    def _until_it_hangs_up(self) -> bytes:
        self.closing = True
        whole = self._rest
        while more := self._socket.recv(AT_A_TIME):
            whole += more
            if len(whole) > LARGEST:
                raise ProtocolError("an answer without an end")
        self._rest = b""
        return whole

    def _more(self) -> bytes:
        more = self._socket.recv(AT_A_TIME)
        if not more:
            raise ConnectionResetError("hung up in the middle of an answer, or before it")
        return more
