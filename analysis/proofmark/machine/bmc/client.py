"""One BMC over HTTPS: retries, time limits, outcomes for errors, and lines kept between verbs."""

from __future__ import annotations

import json
import random
import resource
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from proofmark.common.command import traced
from proofmark.common.errors import bad_input
from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.bmc.https import HttpsConnection, ProtocolError
from proofmark.machine.outcome import NodeError, Outcome

MOST_FILES = 32768
"""Where the system sets no limit to open files."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0
TRY_LATER = (429, 503)
SESSIONS = "/redfish/v1/SessionService/Sessions"


@dataclass(frozen=True)
class ConnectionSettings:
    """What all the connections of a site share."""

    context: ssl.SSLContext
    port: int
    credentials: Credentials
    timeout_s: float
    max_attempts: int
    session: bool = False


@dataclass(frozen=True)
class Response:
    """Response with an accepted status. `body` is {} if the response had no JSON object."""

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


class ConnectionPool:
    """The lines to the BMCs of a site; one that is kept saves the next verb its handshake."""

    def __init__(self, line: ConnectionSettings) -> None:
        self._line = line
        self._kept: dict[str, RedfishConnection] = {}
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_FILES if hard == resource.RLIM_INFINITY else hard
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        # The other half is for lines in use, journals, and what runs beside.
        self._room = most // 2

    @contextmanager
    def to(self, address: str) -> Iterator[RedfishConnection]:
        """Give the line to a BMC; one thread a BMC at a time."""
        bmc = self._kept.pop(address, None) or RedfishConnection(address, self._line)
        try:
            bmc.begin()
            yield bmc
        except BaseException:
            bmc.end()
            raise
        # A session is ended with its verb: a BMC has few of them.
        if self._line.session or len(self._kept) >= self._room:
            bmc.end()
        else:
            self._kept[address] = bmc


class RedfishConnection:
    """The line to one BMC, opened when first needed."""

    def __init__(self, address: str, line: ConnectionSettings) -> None:
        self._line, self.address = line, address
        self._wire: HttpsConnection | None = None
        self._headers = {"Accept": "application/json", "Authorization": line.credentials.basic}
        self._session = ""

    def begin(self) -> None:
        """Make ready for a verb: log in, where that is the way; forget a line that was cut.

        Raises:
            NodeError: the log-in failed.
        """
        if self._wire and self._wire.stale:
            self._drop()
        if self._line.session:
            self._log_in()

    def _log_in(self) -> None:
        who = self._line.credentials
        del self._headers["Authorization"]
        asked = {"UserName": who.user, "Password": who.password}
        made = self.ask("POST", SESSIONS, asked, accept=(200, 201))
        if not made.token:
            raise NodeError(Outcome.UNEXPECTED, "a session without X-Auth-Token")
        self._headers["X-Auth-Token"] = made.token
        self._session = made.location

    def end(self) -> None:
        """Log out and hang up."""
        try:
            if self._session and self._wire:
                # A BMC has few sessions; that one of them stays behind is no failure of ours.
                self._once("DELETE", self._session, None, {})
        except (OSError, ProtocolError):
            pass
        finally:
            self._drop()

    def get(self, path: str) -> Response:
        """Return a resource."""
        return self.ask("GET", path)

    def ask(
        self,
        method: str,
        path: str,
        content: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (200,),
    ) -> Response:
        """Send one request, again where the BMC asks for time or cut a line that only reads.

        Raises:
            NodeError: no answer, or one of another status than `accept`.
        """
        body = None if content is None else json.dumps(content).encode()
        for left in reversed(range(self._line.max_attempts)):
            kept = self._wire is not None
            try:
                status, header, raw = self._once(method, path, body, headers or {})
            except (OSError, ProtocolError) as error:
                self._drop()
                failed = self._failure(error)
                # What changes something may have been done: only its caller can find out.
                again = failed.outcome in (Outcome.UNREACHABLE, Outcome.NO_ANSWER)
                if not left or method != "GET" or not again:
                    raise failed from None
                if not kept:  # one that was idle may have been cut as we spoke
                    self._pause(left, "")
                continue
            if status not in TRY_LATER:
                return self._answer(method, path, status, header, raw, accept)
            if left:
                self._pause(left, header.get("retry-after", ""))
        raise NodeError(
            Outcome.BUSY, f"{status} at each of {self._line.max_attempts} tries of {path}"
        )

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        line = self._line
        if self._wire is None:
            self._wire = HttpsConnection(self.address, line.port, line.context, line.timeout_s)
        with traced(f"{method} https://{self.address}:{line.port}{path}") as outcome:
            answer = self._wire.ask(method, path, {**self._headers, **headers}, body)
            outcome.append(f"status {answer[0]}")
        if self._wire.closing:
            self._drop()
        return answer

    def _answer(
        self,
        method: str,
        path: str,
        status: int,
        header: Mapping[str, str],
        raw: bytes,
        accept: tuple[int, ...],
    ) -> Response:
        try:
            body = json.loads(raw) if raw.strip() else {}
        except ValueError:
            body = {}
        if not isinstance(body, dict):
            body = {}
        if status not in accept:
            told = self._line.credentials.hide(_complaint(body))
            outcome = Outcome.DENIED if status in (401, 403) else Outcome.UNEXPECTED
            raise NodeError(outcome, f"{method} {path}: {status}: {told}")
        return Response(
            status,
            header.get("etag") or str(body.get("@odata.etag", "")),
            header.get("location", ""),
            header.get("x-auth-token", ""),
            body,
        )

    def _failure(self, error: Exception) -> NodeError:
        told = f"{self.address}:{self._line.port}: {self._line.credentials.hide(str(error))}"
        match error:
            case ssl.SSLCertVerificationError():
                reason = f"{self.address}: {error.verify_message}"
                return NodeError(Outcome.BAD_CERTIFICATE, reason)
            case TimeoutError():
                where, limit = f"{self.address}:{self._line.port}", self._line.timeout_s
                return NodeError(Outcome.NO_ANSWER, f"{where}: no answer within {limit:g} s")
            case ConnectionError():
                return NodeError(Outcome.UNREACHABLE, told)
            case ssl.SSLError() | ProtocolError():
                return NodeError(Outcome.UNEXPECTED, told or type(error).__name__)
            case socket.gaierror():
                return NodeError(Outcome.UNREACHABLE, f"{self.address}: no such name")
        return NodeError(Outcome.UNREACHABLE, told)

    def _pause(self, left: int, asked: str) -> None:
        """Wait longer each time, and never at the same moment as a thousand others."""
        spent = self._line.max_attempts - 1 - left
        pause = float(asked) if asked.isdecimal() else FIRST_PAUSE_S * 2**spent
        time.sleep(min(pause, LONGEST_PAUSE_S) * random.uniform(0.5, 1.5))

    def _drop(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None


def _complaint(body: Mapping[str, Any]) -> str:
    """Return what a Redfish error says: its extended messages, or its own."""
    error = body.get("error")
    if not isinstance(error, dict):
        return ""
    extended = error.get("@Message.ExtendedInfo") or []
    told = [str(item.get("Message", "")) for item in extended if isinstance(item, dict)]
    return " / ".join(filter(None, told)) or str(error.get("message", ""))
