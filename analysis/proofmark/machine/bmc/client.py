"""Redfish requests to one BMC: retries, time limits, outcomes of errors, and a connection pool.

Some BMCs redirect a path to the one with ``/`` at its end (RFC 9110, section 15.4), for example iLO
5 and older ones. A redirect to another host, to another port or to HTTP is refused: it would get
the password. Collections of resources (DSP0266) are read to their end over all their pages. The
systems of a BMC are one: it may have several, for example that of a blade with two nodes. The
service root needs no log-in.
"""

from __future__ import annotations

import json
import random
import resource
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from proofmark.common.processes import traced
from proofmark.common.progress_lines import say
from proofmark.common.text import whole_number
from proofmark.machine.bmc.back_end import Credentials
from proofmark.machine.bmc.https import (
    Answer,
    BodyPart,
    HttpsConnection,
    JsonError,
    ProtocolError,
    is_path,
    parse,
)
from proofmark.machine.outcome import NodeError, Outcome

MAX_REDIRECTS = 5
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

    Raises:
        ProtocolError: a redirect leaves the BMC, or there are more than `MAX_REDIRECTS` of them.
    """
    for _ in range(MAX_REDIRECTS + 1):
        status, headers, body = send(path)
        location = headers.get("location", "").strip()
        followed = status in KEEPS_METHOD or (status in OF_GET and method == "GET")
        if not followed or not location:
            return status, headers, body
        path = _path_of(location, path, address, port, status)
    raise ProtocolError(f"{method} {path}: more than {MAX_REDIRECTS} redirects")


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


MAX_FILES = 32768
"""The limit of open files that is set if the system has none."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0
REQUESTS_OF_AN_OPERATION = 12
"""The most requests that an operation on one BMC sends, if no request is repeated."""
RETRY_STATUS = (429, 503)
MESSAGES = 10
"""The limit of the extended messages of an error that are quoted."""
SESSIONS = "/redfish/v1/SessionService/Sessions"


@dataclass(frozen=True)
class ConnectionSettings:
    """The settings that all connections of a site share.

    Attributes:
        context: checks the certificates of the BMCs.
        timeout_s: seconds for one request and its response.
        max_attempts: the number of times a request is sent to a BMC that is busy.
        session: whether to log in with a session (DSP0266) instead of HTTP basic authentication.
    """

    context: ssl.SSLContext
    port: int
    credentials: Credentials
    timeout_s: float
    max_attempts: int
    session: bool = False

    @property
    def operation_s(self) -> float:
        """The time limit of all requests of one operation, with repetitions and pauses."""
        return self.timeout_s * max(REQUESTS_OF_AN_OPERATION, self.max_attempts)


@dataclass(frozen=True)
class Response:
    """A response with an accepted status; `body` is empty if the response has no JSON object.

    Attributes:
        etag: the header ``ETag``; empty if there is none.
        body_etag: ``@odata.etag`` of the body; empty if there is none.
        location: path and query of the header ``Location``.
        retry_after: the header ``Retry-After`` in seconds; 0 if it has no number.
    """

    status: int
    etag: str
    body_etag: str
    location: str
    token: str
    body: BodyPart
    retry_after: float = 0.0


class ConnectionPool:
    """The connections to the BMCs of a site.

    An idle connection is kept: the next operation needs no TLS handshake.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._idle: dict[str, RedfishConnection] = {}
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = MAX_FILES if hard == resource.RLIM_INFINITY else hard
        if soft != resource.RLIM_INFINITY and soft < limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        # The other half is for active connections, journals, and other files of the process.
        self._max_idle = limit // 2

    @contextmanager
    def connection(self, address: str) -> Iterator[RedfishConnection]:
        """Yield the connection to a BMC; only one thread per BMC may use it at a time."""
        bmc = self._idle.pop(address, None) or RedfishConnection(address, self._settings)
        try:
            bmc.open()
            yield bmc
        except BaseException:
            bmc.close()
            raise
        # A session ends with its operation: a BMC allows few of them.
        if self._settings.session or len(self._idle) >= self._max_idle:
            bmc.close()
        elif (other := self._idle.pop(address, None)) is not None:
            # Another node has the same BMC: one idle connection is enough.
            other.close()
            self._idle[address] = bmc
        else:
            self._idle[address] = bmc


class RedfishConnection:
    """The connection to one BMC, opened by the first request."""

    def __init__(self, address: str, settings: ConnectionSettings) -> None:
        self._settings, self.address = settings, address
        self._connection: HttpsConnection | None = None
        self._headers = {"Accept": "application/json", "Authorization": settings.credentials.basic}
        self._session = ""
        self._end = 0.0

    def open(self) -> None:
        """Begin an operation: drop a stale connection, and log in if sessions are used.

        Raises:
            NodeError: the log-in failed.
        """
        self._end = time.monotonic() + self._settings.operation_s
        if self._connection and self._connection.stale:
            self._drop()
        if self._settings.session:
            self._log_in()

    def _log_in(self) -> None:
        credentials = self._settings.credentials
        del self._headers["Authorization"]
        content = {"UserName": credentials.user, "Password": credentials.password}
        response = self.request("POST", SESSIONS, content, accept=(200, 201))
        if not response.token:
            raise NodeError(Outcome.UNEXPECTED, "the new session has no X-Auth-Token")
        self._headers["X-Auth-Token"] = response.token
        self._session = response.location or response.body.path("@odata.id")

    def close(self) -> None:
        """Log out and close the connection."""
        try:
            if self._session and self._connection:
                # A failed log-out leaves a session on the BMC, but the operation did not fail.
                self._followed("DELETE", self._session, None, {})
        except (OSError, ProtocolError, NodeError):
            pass
        finally:
            self._drop()

    def get(self, path: str) -> Response:
        """Return a resource.

        Raises:
            NodeError: there is no response, its status is not 200, or it is no JSON object.
        """
        return self.request("GET", path)

    def request(
        self,
        method: str,
        path: str,
        content: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (200,),
    ) -> Response:
        """Send one request and return its response.

        The request is sent again if the BMC is busy (status 429 or 503), and a GET also if the
        connection failed, but not after the time limit of the operation.

        Raises:
            NodeError: there is no response, the BMC is busy, or its status is not in `accept`; only
                then the error is `refused`.
        """
        body = None if content is None else json.dumps(content).encode()
        for left in reversed(range(self._settings.max_attempts)):
            was_open = self._connection is not None
            try:
                status, response_headers, raw = self._followed(method, path, body, headers or {})
            except (OSError, ProtocolError) as error:
                self._drop()
                failure = self._failure(error)
                # The BMC may have executed a change: only the caller can check that.
                temporary = failure.outcome in (Outcome.UNREACHABLE, Outcome.NO_ANSWER)
                if not left or method != "GET" or not temporary or self._over():
                    raise failure from None
                if not was_open:  # the BMC may have closed an idle connection: no pause for that
                    self._pause(left, "")
                continue
            if status not in RETRY_STATUS:
                return self._response(method, path, status, response_headers, raw, accept)
            if left:
                self._pause(left, response_headers.get("retry-after", ""))
        attempts = f"{self._settings.max_attempts} attempts"
        said = ""
        with suppress(JsonError):
            said = self._settings.credentials.hide(messages_of(BodyPart(path, parse(raw))))
        text = f"{path}: status {status} at each of {attempts}{said and f': {said}'}"
        raise NodeError(Outcome.BUSY, text)

    def _followed(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        """Send one request, and again to each path to which the BMC redirects it."""
        address, port = self.address, self._settings.port
        every = {**self._headers, **headers}

        def send(path: str) -> Answer:
            timeout_s = self._time_left()
            end = time.monotonic() + timeout_s
            connection = self._connection or HttpsConnection(
                address, port, self._settings.context, timeout_s
            )
            self._connection = connection
            with traced(f"{method} https://{address}:{port}{path}") as outcome:
                answer = connection.request(method, path, every, body, end - time.monotonic())
                outcome.append(f"status {answer[0]}")
            if connection.closed:
                self._drop()
            return answer

        return follow(send, method, path, address, port)

    def _response(
        self,
        method: str,
        path: str,
        status: int,
        headers: Mapping[str, str],
        raw: bytes,
        accept: tuple[int, ...],
    ) -> Response:
        try:
            body = BodyPart(path, parse(raw))
        except JsonError as error:
            if (method, status) == ("GET", 200) and status in accept:
                raise NodeError(Outcome.UNEXPECTED, f"{method} {path}: {error}") from None
            body = BodyPart(path, {})
        if status not in accept:
            message = self._settings.credentials.hide(messages_of(body) + self._hint(headers))
            outcome = Outcome.DENIED if status in (401, 403) else Outcome.UNEXPECTED
            text = f"{method} {path}: {status}: {message}"
            raise NodeError(outcome, text, refused=True)
        return Response(
            status,
            headers.get("etag", ""),
            body.text("@odata.etag"),
            _local_path(path, headers.get("location", "")),
            headers.get("x-auth-token", ""),
            body,
            whole_number(headers.get("retry-after", "").strip()) or 0,
        )

    def _hint(self, headers: Mapping[str, str]) -> str:
        """Return how to log in, if the BMC asks for another way than HTTP basic authentication."""
        offered = headers.get("www-authenticate", "")
        if not offered or self._settings.session or "basic" in offered.lower():
            return ""
        return f" (the BMC offers {offered:.80}; firmware.auth: session logs in with a session)"

    def _failure(self, error: Exception) -> NodeError:
        endpoint = f"{self.address}:{self._settings.port}"
        message = f"{endpoint}: {self._settings.credentials.hide(str(error))}"
        match error:
            case ssl.SSLCertVerificationError():
                reason = f"{self.address}: {error.verify_message}"
                return NodeError(Outcome.BAD_CERTIFICATE, reason)
            case TimeoutError():
                reason = f"{endpoint}: no response within {self._settings.timeout_s:g} s"
                return NodeError(Outcome.NO_ANSWER, reason)
            case ConnectionError():
                return NodeError(Outcome.UNREACHABLE, message)
            case ssl.SSLError() | ProtocolError():
                return NodeError(Outcome.UNEXPECTED, message)
            case socket.gaierror():
                return NodeError(Outcome.UNREACHABLE, f"{self.address}: unknown host name")
        return NodeError(Outcome.UNREACHABLE, message)

    def _pause(self, left: int, retry_after: str) -> None:
        """Wait before the next attempt: exponential back-off, with a random part.

        The random part keeps requests to thousands of BMCs from being sent at the same moment.
        """
        failed = self._settings.max_attempts - 1 - left
        given = whole_number(retry_after.strip())
        pause = FIRST_PAUSE_S * 2**failed if given is None else given
        pause = min(pause, LONGEST_PAUSE_S) * random.uniform(0.5, 1.5)
        time.sleep(max(0.0, min(pause, self._end - time.monotonic())))

    def _over(self) -> bool:
        """Return whether the time limit of the operation has passed."""
        return time.monotonic() >= self._end

    def _time_left(self) -> float:
        """Return the seconds for the next request.

        Raises:
            NodeError: the time limit of the operation has passed.
        """
        if self._over():
            limit = f"{self._settings.operation_s:g} s for all requests of an operation"
            raise NodeError(Outcome.NO_ANSWER, f"{self.address}: not finished within {limit}")
        return min(self._settings.timeout_s, self._end - time.monotonic())

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _local_path(path: str, location: str) -> str:
    """Return path and query of the header ``Location`` in the response to a request to `path`.

    It may be an absolute address, an absolute path or a relative one (RFC 9110).
    """
    try:
        parts = urlsplit(urljoin(path, location))
        target = parts._replace(scheme="", netloc="", fragment="").geturl() if location else ""
    except ValueError:
        return ""
    return target if is_path(target) else ""


def messages_of(body: BodyPart) -> str:
    """Return the messages of an error or of a task (DSP0266), separated by slashes.

    It accepts any content: an error is reported also if its own message has another form.
    """
    error = body.content.get("error")
    holder = error if isinstance(error, Mapping) else {}
    found = (
        holder.get("@Message.ExtendedInfo"),
        body.content.get("@Message.ExtendedInfo"),
        body.content.get("Messages"),
    )
    texts = []
    for each in found:
        items = each[:MESSAGES] if isinstance(each, list) else []
        texts += [item.get("Message") for item in items if isinstance(item, Mapping)]
    messages = [text for text in texts if isinstance(text, str) and text]
    text = holder.get("message")
    return " / ".join(messages) or (text if isinstance(text, str) else "")


SYSTEMS = "/redfish/v1/Systems"

NEXT = "Members@odata.nextLink"

COUNT = "Members@odata.count"

GONE = (404, 410)
"""The BMC has forgotten what it listed, for example a task that has ended."""

MOST_PAGES = 1000
"""The largest number of pages of a collection; a BMC that has more sends its pages in a circle."""


def path_of_system(bmc: RedfishConnection, system: str, known: MutableMapping[str, str]) -> str:
    """Return the path of `system`; without an id that of the only system of the BMC.

    Args:
        system: the id (``firmware.system``), or empty.
        known: the path of the only system by address; this function adds to it.

    Raises:
        NodeError: a request failed; UNEXPECTED: the BMC has not exactly one system.
    """
    if system:
        return f"{SYSTEMS}/{system}"
    if bmc.address not in known:
        paths = [each.place for each in read_members(bmc, SYSTEMS)]
        if len(paths) != 1:
            names = ", ".join(path.rstrip("/").rpartition("/")[2] for path in paths)
            text = f"the BMC has {len(paths)} systems ({names}); name that of each node: "
            example = 'firmware.system, for example "Node{number % 2}"'
            raise NodeError(Outcome.UNEXPECTED, f"{text}{example}")
        known[bmc.address] = paths[0]
    return known[bmc.address]


OF_MEMBER = (Outcome.REFUSED, Outcome.UNEXPECTED)
"""The faults of one member; after others the BMC is asked whether it answers at all."""


@contextmanager
def one_member(bmc: RedfishConnection, collection: str, faults: list[NodeError]) -> Iterator[None]:
    """Add the fault of one member to `faults`: the search over all members goes on.

    Raises:
        NodeError: the BMC does not send the collection either.
    """
    try:
        yield
    except NodeError as error:
        if error.outcome not in OF_MEMBER:
            bmc.get(collection)
        faults.append(error)


def read_members(
    bmc: RedfishConnection, path: str, *, key: str = "", counted: bool = False
) -> list[BodyPart]:
    """Return all members of the collection at `path`, of all pages.

    A member without a path, and one that the BMC does not send, is left out and named.

    Args:
        path: of the collection, with its query.
        key: a key of a whole member: one without it is read; empty: none is read.
        counted: whether the number of members must be at least that which the BMC states.

    Raises:
        NodeError: a request failed; UNEXPECTED: a page follows itself, or members are missing.
    """
    faults: list[NodeError] = []
    found: list[BodyPart] = []
    for member in _listed_members(bmc, path, counted=counted):
        with one_member(bmc, path, faults):
            place = member.path("@odata.id")
            if not place:
                raise member.wrong("@odata.id", None, "a path")
            whole = not key or key in member.content
            # A BMC forgets tasks and parts between its list and the request.
            read = None if whole else bmc.request("GET", place, accept=(200, *GONE))
            if read is None or read.status == 200:
                found.append(BodyPart(place, (read.body if read else member).content))
    for fault in faults:
        if fault.text not in _NAMED:
            _NAMED.add(fault.text)
            say(f"{bmc.address}: left out: {fault.text}")
    return found


_NAMED: set[str] = set()
"""The faults of members that were printed. Many BMCs can have the same fault."""


def _listed_members(bmc: RedfishConnection, path: str, *, counted: bool) -> list[BodyPart]:
    members: list[BodyPart] = []
    seen: set[str] = set()
    page, count, listed = path, 0, 0
    while page:
        if page in seen or len(seen) >= MOST_PAGES:
            text = f"{path}: the page {page} of the collection follows itself"
            raise NodeError(Outcome.UNEXPECTED, text)
        seen.add(page)
        body = bmc.get(page).body
        members += body.items("Members")
        listed += len(body.content.get("Members") or ())
        count = max(count, body.number(COUNT) or 0)
        page = body.path(NEXT)
    if counted and listed < count:
        text = f"{path}: found {listed} members; accepted: {count}, which it states"
        raise NodeError(Outcome.UNEXPECTED, text)
    return members
