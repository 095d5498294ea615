"""The response of an emulated BMC, and its bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

REASONS = {200: "OK", 201: "Created", 204: "No Content", 400: "Bad Request", 401: "Unauthorized"}


@dataclass
class Reply:
    """The response of a BMC."""

    status: int
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    other: bytes = b""
    """What is sent without a `body`."""

    @property
    def raw(self) -> bytes:
        """The bytes of the response."""
        content = self.other if self.body is None else json.dumps(self.body).encode()
        return head_of(self, len(content)) + content


def head_of(reply: Reply, length: int) -> bytes:
    """Return the status line and the headers of a response with a body of `length` bytes."""
    reason = REASONS.get(reply.status, "Error")
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(length),
        "OData-Version": "4.0",
        **reply.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {reply.status} {reason}\r\n{lines}\r\n".encode()
