"""One BMC over HTTPS by the standard library: retries, time limits, and outcomes for errors."""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proofmark.bmc.credentials import Credentials
from proofmark.bmc.outcome import Failed, Outcome
from proofmark.errors import bad_input

LARGEST = 16 << 20
"""Bytes of an answer; a registry of attributes has less than two million."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0
TRY_LATER = (429, 503)
SESSIONS = "/redfish/v1/SessionService/Sessions"


@dataclass(frozen=True)
class Line:
    """What all the connections of a site share."""

    context: ssl.SSLContext
    port: int
    credentials: Credentials
    timeout_s: float
    tries: int
    session: bool = False


@dataclass(frozen=True)
class Answer:
    """An answer whose status the caller takes; `body` is empty where there is none."""

    status: int
    etag: str
    location: str
    token: str
    body: Mapping[str, Any]


def tls_context(ca: str | None, *, verify: bool) -> ssl.SSLContext:
    """Return what checks that a BMC is who it says: by the file `ca`, or by the system's.

    Raises:
        BadInput: `ca` cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        accepted = "a file of PEM certificates"
        raise bad_input(ca or "--ca", "", f"unreadable: {error}", accepted) from None
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Bmc:
    """A connection to one BMC, made when first needed and kept; use it in a ``with``."""

    def __init__(self, address: str, line: Line) -> None:
        self._line, self.address = line, address
        self._kept: http.client.HTTPSConnection | None = None
        self._headers = {"Accept": "application/json", "Authorization": line.credentials.basic}
        self._session = ""

    def __enter__(self) -> Bmc:
        if self._line.session:
            try:
                self._log_in()
            except BaseException:
                self._drop()
                raise
        return self

    def _log_in(self) -> None:
        who = self._line.credentials
        del self._headers["Authorization"]
        asked = {"UserName": who.user, "Password": who.password}
        made = self.ask("POST", SESSIONS, asked, accept=(200, 201))
        if not made.token:
            raise Failed(Outcome.UNEXPECTED, "a session without X-Auth-Token")
        self._headers["X-Auth-Token"] = made.token
        self._session = made.location

    def __exit__(self, *_: object) -> None:
        try:
            if self._session and self._kept:
                # A BMC has few sessions; that one of them stays behind is no failure of ours.
                self._once("DELETE", self._session, None, {})
        except (OSError, http.client.HTTPException):
            pass
        finally:
            self._drop()

    def get(self, path: str) -> Answer:
        """Return a resource."""
        return self.ask("GET", path)

    def ask(
        self,
        method: str,
        path: str,
        content: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (200,),
    ) -> Answer:
        """Send one request, again where the BMC asks for time or cut a line that only reads.

        Raises:
            Failed: no answer, or one of another status than `accept`.
        """
        body = None if content is None else json.dumps(content).encode()
        for left in reversed(range(self._line.tries)):
            try:
                status, header, raw = self._once(method, path, body, headers or {})
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                failed = self._failure(error)
                # What changes something may have been done: only its caller can find out.
                again = failed.outcome in (Outcome.UNREACHABLE, Outcome.NO_ANSWER)
                if not left or method != "GET" or not again:
                    raise failed from None
                self._pause(left, "")
                continue
            if status not in TRY_LATER:
                return self._answer(method, path, status, header, raw, accept)
            if left:
                self._pause(left, header.get("Retry-After", ""))
        raise Failed(Outcome.BUSY, f"{status} at each of {self._line.tries} tries of {path}")

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        if self._kept is None:
            line = self._line
            self._kept = http.client.HTTPSConnection(
                self.address, line.port, context=line.context, timeout=line.timeout_s
            )
        sent = {**self._headers, **headers}
        if body is not None:
            sent["Content-Type"] = "application/json"
        self._kept.request(method, path, body, sent)
        with self._kept.getresponse() as response:
            raw = response.read(LARGEST)
            return response.status, response.headers, raw

    def _answer(
        self,
        method: str,
        path: str,
        status: int,
        header: http.client.HTTPMessage,
        raw: bytes,
        accept: tuple[int, ...],
    ) -> Answer:
        try:
            body = json.loads(raw) if raw.strip() else {}
        except ValueError:
            body = {}
        if not isinstance(body, dict):
            body = {}
        if status not in accept:
            told = self._line.credentials.hide(_complaint(body))
            outcome = Outcome.DENIED if status in (401, 403) else Outcome.UNEXPECTED
            raise Failed(outcome, f"{method} {path}: {status}: {told}")
        return Answer(
            status,
            header.get("ETag") or str(body.get("@odata.etag", "")),
            header.get("Location", ""),
            header.get("X-Auth-Token", ""),
            body,
        )

    def _failure(self, error: Exception) -> Failed:
        told = f"{self.address}:{self._line.port}: {self._line.credentials.hide(str(error))}"
        match error:
            case ssl.SSLCertVerificationError():
                reason = f"{self.address}: {error.verify_message}"
                return Failed(Outcome.BAD_CERTIFICATE, reason)
            case TimeoutError():
                return Failed(Outcome.NO_ANSWER, f"{told} after {self._line.timeout_s:g} s")
            case ConnectionError():
                return Failed(Outcome.UNREACHABLE, told)
            case ssl.SSLError() | http.client.HTTPException():
                return Failed(Outcome.UNEXPECTED, told or type(error).__name__)
            case socket.gaierror():
                return Failed(Outcome.UNREACHABLE, f"{self.address}: no such name")
        return Failed(Outcome.UNREACHABLE, told)

    def _pause(self, left: int, asked: str) -> None:
        """Wait longer each time, and never at the same moment as a thousand others."""
        spent = self._line.tries - 1 - left
        pause = float(asked) if asked.isdecimal() else FIRST_PAUSE_S * 2**spent
        time.sleep(min(pause, LONGEST_PAUSE_S) * random.uniform(0.5, 1.5))

    def _drop(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None


def _complaint(body: Mapping[str, Any]) -> str:
    """Return what a Redfish error says: its extended messages, or its own."""
    error = body.get("error")
    if not isinstance(error, dict):
        return ""
    extended = error.get("@Message.ExtendedInfo") or []
    told = [str(item.get("Message", "")) for item in extended if isinstance(item, dict)]
    return " / ".join(filter(None, told)) or str(error.get("message", ""))
