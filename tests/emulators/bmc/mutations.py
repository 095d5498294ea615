"""Odd answers of BMCs: real answers, changed by a seeded generator."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tests.emulators.bmc.reply import Reply, head_of

Pieces = list[tuple[float, bytes]]
"""The parts of an answer, each with the pause before it in seconds."""

FORGED = "\x1b[2J\r\nOK: 20 nodes (n[1-20])\nproofmark: \u202edone\x07"
"""A text that would imitate a line of the kit on a terminal."""
VALUES: list[Any] = [
    None, True, False, 0, -1, 5, 1.5, 10**400, float("inf"), float("nan"), "", "odd", FORGED,
    "\ud800", [], [1], [None], [[]], {}, {"odd": 1}, {"@odata.id": 7},
]  # fmt: skip
LINKS = [
    "https://192.0.2.1/redfish/v1", "//192.0.2.1/x", "../../etc/passwd", "redfish/v1", "",
    "/redfish/v1/\r\nHost: other", "/redfish/v1/\x00", "/é", "file:///etc/passwd",
    "/" + "a/" * 40_000,
]  # fmt: skip


class Mutations:
    """Changes answers until `limit` of them are changed.

    Attributes:
        share: the share of the answers that are changed.
        counts: the number of changed answers of each kind.
    """

    def __init__(
        self,
        seed: int,
        limit: int,
        *,
        share: float = 0.2,
        slow_s: float = 1.0,
        large: int = 1 << 24,
    ) -> None:
        """Draw from `seed`.

        Args:
            seed: of the generator.
            limit: the number of answers to change.
            share: the share of the answers that are changed.
            slow_s: the time in seconds after which a client should have ended a request.
            large: the number of bytes that a client should refuse.
        """
        self._dice = random.Random(seed)
        self._limit, self._slow_s, self._large = limit, slow_s, large
        self.share = share
        self.counts: Counter[str] = Counter()
        self._kinds: dict[str, tuple[int, Callable[[Reply], Pieces]]] = {
            "type": (30, self._type),
            "missing": (15, self._missing),
            "depth": (10, self._depth),
            "size": (5, self._size),
            "encoding": (15, self._encoding),
            "link": (10, self._link),
            "status": (8, self._status),
            "delay": (2, self._delay),
        }

    @property
    def left(self) -> int:
        """The number of answers that will still be changed."""
        return self._limit - self.counts.total()

    def pieces(self, reply: Reply) -> Pieces:
        """Return the parts of the answer to send."""
        if self.left <= 0 or self._dice.random() >= self.share:
            return [(0.0, reply.raw)]
        names, weights = zip(*((name, kind[0]) for name, kind in self._kinds.items()), strict=True)
        (name,) = self._dice.choices(names, weights)
        self.counts[name] += 1
        return self._kinds[name][1](reply)

    def _type(self, reply: Reply) -> Pieces:
        body = _copy(reply)
        nodes = list(_nodes(body))
        if not nodes or self._dice.random() < 0.1:
            return _whole(reply, json.dumps(self._dice.choice(VALUES)).encode())
        holder, key = self._dice.choice(nodes)
        holder[key] = self._dice.choice(VALUES)
        return _whole(reply, json.dumps(body).encode())

    def _missing(self, reply: Reply) -> Pieces:
        body = _copy(reply)
        nodes = list(_nodes(body))
        if not nodes or self._dice.random() < 0.1:
            return _whole(reply, b"")
        holder, key = self._dice.choice(nodes)
        del holder[key]
        return _whole(reply, json.dumps(body).encode())

    def _depth(self, reply: Reply) -> Pieces:
        levels = self._dice.choice([10, 70, 1_000, 100_000])
        inside = self._dice.choice([b"1", b"", b'"x"'])
        left, right = self._dice.choice([(b"[", b"]"), (b'{"a":', b"}")])
        nested = left * levels + inside + right * self._dice.choice([levels, levels - 1, 0])
        body = _copy(reply)
        nodes = list(_nodes(body))
        if not nodes:
            return _whole(reply, nested)
        holder, key = self._dice.choice(nodes)
        holder[key] = "@nested@"
        return _whole(reply, json.dumps(body).encode().replace(b'"@nested@"', nested))

    def _size(self, reply: Reply) -> Pieces:
        match self._dice.randrange(10):
            case 0:  # larger than the limit of a client
                head = head_of(reply, self._large + 2)
                part = b" " * (1 << 20)
                return [(0.0, head), *([(0.0, part)] * (self._large // len(part))), (0.0, b"{}")]
            case 1:
                return [(0.0, b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200 + b"\r\n")]
            case 2:
                return [(0.0, b"HTTP/1.1 200 OK\r\nx: " + b"x" * 70_000)]
        body = _copy(reply)
        for number in range(self._dice.choice([10, 1_000, 5_000])):
            body[f"Oem{number}"] = [{"odd": number}] * 3
        body["Members"] = [{"@odata.id": f"/redfish/v1/{number}"} for number in range(5_000)]
        return _whole(reply, json.dumps(body).encode())

    def _encoding(self, reply: Reply) -> Pieces:
        text = json.dumps({**_copy(reply), "Name": "Größe"}, ensure_ascii=False)
        raw = text.encode()
        return _whole(
            reply,
            self._dice.choice(
                [
                    text.encode("latin-1", errors="replace"),
                    text.encode("utf-16"),
                    text.encode("utf-32"),
                    b"\xef\xbb\xbf" + raw,
                    raw.replace(b'"', b"'"),
                    raw.replace(b"{", b"{\x00", 1),
                    raw[: self._dice.randrange(len(raw))],
                    raw + b"}",
                    raw + raw,
                    b"<html>" + FORGED.encode() + b"</html>",
                    self._dice.randbytes(200),
                    bytes(byte ^ (self._dice.random() < 0.01) for byte in raw),
                ]
            ),
        )

    def _link(self, reply: Reply) -> Pieces:
        body = _copy(reply)
        links = [
            (holder, key)
            for holder, key in _nodes(body)
            if key in ("@odata.id", "Uri", "target", "AttributeRegistry")
        ]
        if not links:
            return self._type(reply)
        holder, key = self._dice.choice(links)
        holder[key] = self._dice.choice(LINKS)
        return _whole(reply, json.dumps(body).encode())

    def _status(self, reply: Reply) -> Pieces:
        status = self._dice.choice(
            [100, 199, 204, 206, 301, 307, 400, 401, 404, 412, 418, 500, 599]
        )
        message = {"Message": FORGED * self._dice.choice([1, 1_000])}
        error = {"message": FORGED, "@Message.ExtendedInfo": [message, 5, None, {"Message": [1]}]}
        errors: list[Any] = [error, FORGED, {"message": []}, None, 5]
        body = {"error": self._dice.choice(errors)}
        headers = self._dice.choice([{}, {"Location": "https://192.0.2.1/x"}, {"ETag": "\x01é"}])
        return [(0.0, Reply(status, body, headers).raw)]

    def _delay(self, reply: Reply) -> Pieces:
        raw, pause = reply.raw, self._slow_s / 4
        match self._dice.randrange(5):
            case 0:
                return [(2 * self._slow_s, raw)]
            case 1:
                return [(pause, raw[at : at + 1]) for at in range(12)]
            case 2:
                return [(pause, b"HTTP/1.1 102 Processing\r\n\r\n")] * 12
            case 3:
                chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
                return [(0.0, chunked), *([(pause, b"x: y\r\n")] * 12)]
        return [(0.0, raw[: len(raw) // 2]), (2 * self._slow_s, b"")]


def _copy(reply: Reply) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(json.dumps(reply.body or {}))
    return body


def _whole(reply: Reply, raw: bytes) -> Pieces:
    return [(0.0, head_of(reply, len(raw)) + raw)]


def _nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every object or list below `value` with each of its keys."""
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in keys:
        yield value, key
        yield from _nodes(value[key])
