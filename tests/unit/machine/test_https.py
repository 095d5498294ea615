"""HTTPS connections to BMCs: valid and damaged responses, deadlines, and the connection pool."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.emulators.bmc.certificates import Authority
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.fixtures.kit import until
from tests.fixtures.shells import remote_shell

from proofmark.machine.bmc import https
from proofmark.machine.bmc.back_end import BackEndContext, Credentials, Host, back_end
from proofmark.machine.bmc.client import ConnectionPool, ConnectionSettings
from proofmark.machine.bmc.https import HttpsConnection, ProtocolError, tls_context
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import Firmware

ADDRESS = "127.9.9.9"
Serve = Callable[..., int]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


def whole_request(connection: ssl.SSLSocket) -> bytes:
    """Read a request to its end: a close before the end would reset the connection."""
    request = b""
    while more := connection.recv(65536):
        request += more
        head, separator, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if separator and len(body) >= int(length[1] if length else 0):
            break
    return request


@pytest.fixture
def serve(authority: Authority) -> Iterator[Serve]:
    """Return a function that serves connections in a thread and returns their port.

    Its arguments are the responses of each connection, one per request; then it closes.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.certificate(ADDRESS), authority.key)
    server = socket.create_server((ADDRESS, 0))
    requests: list[bytes] = []

    def accept(connections: list[list[bytes]]) -> None:
        for responses in connections:
            bare, _ = server.accept()
            # A client closes the connection when its time limit ends.
            with suppress(OSError), bare, context.wrap_socket(bare, server_side=True) as connection:
                for response in responses:
                    requests.append(whole_request(connection))
                    with suppress(OSError):
                        connection.sendall(response)

    threads: list[threading.Thread] = []

    def start(*connections: list[bytes]) -> int:
        threads.append(threading.Thread(target=accept, args=[list(connections)], daemon=True))
        threads[-1].start()
        port: int = server.getsockname()[1]
        return port

    start.requests = requests  # type: ignore[attr-defined]
    yield start
    for thread in threads:
        thread.join(10)
    server.close()


def connect(port: int, authority: Authority) -> HttpsConnection:
    return HttpsConnection(ADDRESS, port, tls_context(f"{authority.ca}", verify=True), 5)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("response", "status", "body"),
    [
        (OK, 200, b"{}"),
        (CHUNKED + b'3;x=y\r\n{"a\r\n4\r\n":1}\r\n0\r\nTrailer: x\r\n\r\n', 200, b'{"a":1}'),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, b"{}"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.0 200 OK\r\n\r\n{}", 200, b"{}"),
        (b"HTTP/1.1 503\r\ncontent-LENGTH:0\r\nRetry-After: 3\r\n\r\n", 503, b""),
    ],
)
def test_valid_responses_are_read(
    serve: Serve, authority: Authority, response: bytes, status: int, body: bytes
) -> None:
    connection = connect(serve([response]), authority)
    received, headers, content = connection.request("GET", "/x", {"Accept": "*/*"}, None)
    assert (received, content) == (status, body)
    assert headers.get("retry-after") == ("3" if status == 503 else None)
    connection.close()


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "BadStatusLine"),
        (CHUNKED + b"zz\r\n", "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200 + b"\r\n", "more than 100 headers"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 70_000, "more than 65536 bytes"),
    ],
)
def test_a_response_that_is_not_http_is_refused(
    serve: Serve, authority: Authority, response: bytes, message: str
) -> None:
    connection = connect(serve([response]), authority)
    with pytest.raises(ProtocolError, match=message):
        connection.request("GET", "/x", {}, None)
    connection.close()


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        CHUNKED,
    ],
    ids=["content length", "until close", "chunks"],
)
def test_a_response_larger_than_the_limit_is_refused(
    serve: Serve, authority: Authority, monkeypatch: pytest.MonkeyPatch, response: bytes
) -> None:
    monkeypatch.setattr(https, "LARGEST", 100_000)
    part = b"fff\r\n" + b"x" * 4095 + b"\r\n"
    connection = connect(serve([response + part * 60]), authority)
    with pytest.raises(ProtocolError, match="more than 100000 bytes"):
        connection.request("GET", "/x", {}, None)
    connection.close()


SLOW_RESPONSES = {
    "a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"x"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"x"),
    "interim responses": (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "trailers": (CHUNKED + b"0\r\n", b"x: y\r\n"),
}


@pytest.mark.parametrize("slow", SLOW_RESPONSES)
def test_a_slow_response_ends_at_the_deadline(authority: Authority, slow: str) -> None:
    """Each part arrives within the timeout of the socket, but the response has no end."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.certificate(ADDRESS), authority.key)
    first, part = SLOW_RESPONSES[slow]
    stop = threading.Event()

    def accept() -> None:
        bare, _ = server.accept()
        with suppress(OSError), context.wrap_socket(bare, server_side=True) as served:
            served.recv(65536)
            served.sendall(first)
            while not stop.wait(0.05):
                served.sendall(part)

    with socket.create_server((ADDRESS, 0)) as server:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        port: int = server.getsockname()[1]
        tls = tls_context(f"{authority.ca}", verify=True)
        connection = HttpsConnection(ADDRESS, port, tls, 1.0)
        start = time.monotonic()
        with pytest.raises((TimeoutError, ProtocolError)):
            connection.request("GET", "/x", {}, None)
        seconds = time.monotonic() - start
        stop.set()
        connection.close()
        thread.join(10)
    assert seconds < 20  # without the deadline the request has no end


def slow_server(first: bytes, part: bytes) -> Iterator[int]:
    """Accept connections without TLS and send `first`, then `part` without end; yield the port."""
    stop = threading.Event()
    threads: list[threading.Thread] = []

    def send(bare: socket.socket) -> None:
        with bare, suppress(OSError):
            bare.sendall(first)
            while not stop.wait(0.05):
                if part:
                    bare.sendall(part)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threads.append(threading.Thread(target=send, args=server.accept()[:1], daemon=True))
                threads[-1].start()

    with socket.create_server((ADDRESS, 0)) as server:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        stop.set()
        server.shutdown(socket.SHUT_RDWR)
        for each in [thread, *threads]:
            each.join(10)


HANDSHAKES = {
    "no answer": (b"", b""),
    "a record byte by byte": (b"\x16\x03\x03\x40\x00", b"\x02"),
}
"""A TLS record (RFC 8446, section 5.1) with a length of 16 KiB takes 14 min at this speed."""


@pytest.mark.parametrize("slow", HANDSHAKES)
def test_a_slow_handshake_ends_at_the_deadline(authority: Authority, slow: str) -> None:
    with contextmanager(slow_server)(*HANDSHAKES[slow]) as port:
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            HttpsConnection(ADDRESS, port, tls_context(f"{authority.ca}", verify=True), 1.0)
        assert time.monotonic() - start < 60


def test_a_full_queue_of_connections_ends_at_the_deadline(authority: Authority) -> None:
    """The kernel does not answer a connection if the server accepts none."""
    with socket.create_server((ADDRESS, 0), backlog=0) as server, ExitStack() as kept:
        port: int = server.getsockname()[1]
        for _ in range(4):
            waiting = kept.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((ADDRESS, port))
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            HttpsConnection(ADDRESS, port, tls_context(f"{authority.ca}", verify=True), 1.0)
        assert time.monotonic() - start < 60


@pytest.mark.fault("bmc-operation-slow")
def test_an_operation_has_one_deadline_over_all_its_requests(
    serve: Serve, authority: Authority
) -> None:
    """The BMC asks for pauses that together take over a minute."""
    busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: 20\r\n\r\n"
    tls = tls_context(f"{authority.ca}", verify=True)
    settings = ConnectionSettings(tls, serve([busy]), Credentials(USER, PASSWORD), 0.3, 9)
    start = time.monotonic()
    with pytest.raises(NodeError) as error, ConnectionPool(settings).connection(ADDRESS) as bmc:
        bmc.get("/x")
    assert error.value.outcome is Outcome.NO_ANSWER
    assert time.monotonic() - start < 60


def test_the_same_response_without_delay_is_read(serve: Serve, authority: Authority) -> None:
    """The control of the slow responses: the same parts are a valid response."""
    response = b"HTTP/1.1 102 Processing\r\n\r\n" * 3 + CHUNKED + b"2\r\n{}\r\n0\r\nx: y\r\n\r\n"
    connection = connect(serve([response]), authority)
    assert connection.request("GET", "/x", {}, None)[::2] == (200, b"{}")
    connection.close()


def test_a_line_break_in_a_header_is_never_sent(serve: Serve, authority: Authority) -> None:
    connection = connect(serve([OK]), authority)
    with pytest.raises(ProtocolError, match="control characters"):
        connection.request("GET", "/x\r\nHost: other", {}, None)
    assert connection.closed
    assert serve.requests in ([], [b""])  # type: ignore[attr-defined]


def pool_of(port: int, authority: Authority) -> ConnectionPool:
    context = tls_context(f"{authority.ca}", verify=True)
    return ConnectionPool(ConnectionSettings(context, port, Credentials(USER, PASSWORD), 5, 2))


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_connection_that_the_bmc_closed_is_opened_again(
    serve: Serve, authority: Authority, method: str
) -> None:
    """Also for a PATCH: no byte of it has been sent."""
    pool = pool_of(serve([OK], [OK]), authority)
    with pool.connection(ADDRESS) as bmc:
        bmc.get("/x")
    until(lambda: bmc._connection is None or bmc._connection.stale)
    with pool.connection(ADDRESS) as bmc:
        assert bmc.request(method, "/x", {} if method == "PATCH" else None).status == 200


def test_a_change_is_not_sent_twice(serve: Serve, authority: Authority) -> None:
    """The connection ends before the response: the BMC may have executed the change."""
    port = serve([OK, b""], [OK])
    pool = pool_of(port, authority)
    with pytest.raises(NodeError) as error, pool.connection(ADDRESS) as bmc:
        bmc.get("/x")
        bmc.request("PATCH", "/x", {})
    assert error.value.outcome is Outcome.UNREACHABLE
    with pool.connection(ADDRESS) as bmc:
        bmc.get("/x")
    methods = [request[:5] for request in serve.requests]  # type: ignore[attr-defined]
    assert methods.count(b"PATCH") == 1


def test_all_operations_share_one_connection(tmp_path: Path) -> None:
    """With sessions each operation has its connection, and logs out."""
    wanted = {"ClusterMode": "SNC-4"}
    for auth, connections in (("basic", 1), ("session", 3)):
        with Emulator(["n1"], tmp_path / auth) as emulator:
            facts = {"back_end": "redfish", "port": emulator.port, "ca": f"{emulator.ca}"}
            firmware = Firmware.model_validate({**facts, "auth": auth})
            context = BackEndContext(
                firmware, Credentials(USER, PASSWORD), remote_shell(["false"], 1)
            )
            redfish, host = back_end(context), Host("n1", emulator.address("n1"))
            state = redfish.read(host, wanted)
            redfish.stage(host, state, wanted)
            redfish.reset(host, state, wanted)
            machine = emulator.machines["n1"]
            assert (machine.connections, machine.resets) == (connections, 1)
            assert emulator.sessions == 0
