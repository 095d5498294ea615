"""HTTP as BMCs speak it, well and badly, and lines that are kept between verbs."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.emulators.bmc.certificates import Authority
from tests.emulators.bmc.server import PASSWORD, USER, Emulator
from tests.fixtures.kit import until

from proofmark.machine.bmc import https
from proofmark.machine.bmc.back_end import BackEndContext, back_end
from proofmark.machine.bmc.client import ConnectionPool, ConnectionSettings, tls_context
from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.bmc.https import HttpsConnection, ProtocolError
from proofmark.machine.bmc.model import Host
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.remote_shell import RemoteShell
from proofmark.site.firmware import Firmware

ADDRESS = "127.9.9.9"
Answers = Callable[..., int]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


def whole_request(line: ssl.SSLSocket) -> bytes:
    """Read a request to its end: who closes before is no BMC that hung up, but resets."""
    request = b""
    while more := line.recv(65536):
        request += more
        head, separator, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if separator and len(body) >= int(length[1] if length else 0):
            break
    return request


@pytest.fixture
def answers(authority: Authority) -> Iterator[Answers]:
    """Serve: for each connection its answers, one a request, then hang up; return the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.certificate(ADDRESS), authority.key)
    server = socket.create_server((ADDRESS, 0))
    asked: list[bytes] = []

    def serve(connections: list[list[bytes]]) -> None:
        for each in connections:
            bare, _ = server.accept()
            with bare, context.wrap_socket(bare, server_side=True) as line:
                for answer in each:
                    request = whole_request(line)
                    asked.append(request)
                    with suppress(OSError):  # who has read enough closes
                        line.sendall(answer)

    threads: list[threading.Thread] = []

    def start(*connections: list[bytes]) -> int:
        threads.append(threading.Thread(target=serve, args=[list(connections)], daemon=True))
        threads[-1].start()
        port: int = server.getsockname()[1]
        return port

    start.asked = asked  # type: ignore[attr-defined]
    yield start
    for thread in threads:
        thread.join(10)
    server.close()


def line_to(port: int, authority: Authority) -> HttpsConnection:
    return HttpsConnection(ADDRESS, port, tls_context(f"{authority.ca}", verify=True), 5)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (OK, 200, b"{}"),
        (CHUNKED + b'3;x=y\r\n{"a\r\n4\r\n":1}\r\n0\r\nTrailer: x\r\n\r\n', 200, b'{"a":1}'),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, b"{}"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.0 200 OK\r\n\r\n{}", 200, b"{}"),
        (b"HTTP/1.1 503\r\ncontent-LENGTH:0\r\nRetry-After: 3\r\n\r\n", 503, b""),
    ],
)
def test_answers(
    answers: Answers, authority: Authority, answer: bytes, status: int, body: bytes
) -> None:
    line = line_to(answers([answer]), authority)
    got, headers, content = line.ask("GET", "/x", {"Accept": "*/*"}, None)
    assert (got, content) == (status, body)
    assert headers.get("retry-after") == ("3" if status == 503 else None)
    line.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "BadStatusLine"),
        (CHUNKED + b"zz\r\n", "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200 + b"\r\n", "more than 100 headers"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 70_000, "more than 65536 bytes"),
    ],
)
def test_a_response_that_is_not_http(
    answers: Answers, authority: Authority, answer: bytes, words: str
) -> None:
    line = line_to(answers([answer]), authority)
    with pytest.raises(ProtocolError, match=words):
        line.ask("GET", "/x", {}, None)
    line.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        CHUNKED,
    ],
    ids=["length", "until it closes", "chunks"],
)
def test_a_response_is_never_larger_than_the_limit(
    answers: Answers, authority: Authority, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setattr(https, "LARGEST", 100_000)
    part = b"fff\r\n" + b"x" * 4095 + b"\r\n"
    line = line_to(answers([answer + part * 60]), authority)
    with pytest.raises(ProtocolError, match="more than 100000 bytes"):
        line.ask("GET", "/x", {}, None)
    line.close()


DRIPS = {
    "a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"x"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"x"),
    "interim responses": (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "trailers": (CHUNKED + b"0\r\n", b"x: y\r\n"),
}


@pytest.mark.parametrize("drip", DRIPS)
def test_a_slow_drip_ends_at_the_deadline(authority: Authority, drip: str) -> None:
    """Each part comes in time, the whole never does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.certificate(ADDRESS), authority.key)
    first, part = DRIPS[drip]
    stop = threading.Event()

    def serve() -> None:
        bare, _ = server.accept()
        with suppress(OSError), context.wrap_socket(bare, server_side=True) as line:
            line.recv(65536)
            line.sendall(first)
            while not stop.wait(0.05):
                line.sendall(part)

    with socket.create_server((ADDRESS, 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port: int = server.getsockname()[1]
        tls = tls_context(f"{authority.ca}", verify=True)
        line = HttpsConnection(ADDRESS, port, tls, 1.0)
        began = time.monotonic()
        with pytest.raises((TimeoutError, ProtocolError)):
            line.ask("GET", "/x", {}, None)
        took = time.monotonic() - began
        stop.set()
        line.close()
        thread.join(10)
    assert took < 20  # without the deadline it never ends


def test_without_a_drip_the_response_is_read(answers: Answers, authority: Authority) -> None:
    """The control of the drips: each of them is a response if it comes at once."""
    whole = b"HTTP/1.1 102 Processing\r\n\r\n" * 3 + CHUNKED + b"2\r\n{}\r\n0\r\nx: y\r\n\r\n"
    line = line_to(answers([whole]), authority)
    assert line.ask("GET", "/x", {}, None)[::2] == (200, b"{}")
    line.close()


def test_a_line_break_in_a_header_is_never_sent(answers: Answers, authority: Authority) -> None:
    line = line_to(answers([OK]), authority)
    with pytest.raises(ProtocolError, match="control characters"):
        line.ask("GET", "/x\r\nHost: other", {}, None)
    assert line.closing
    assert answers.asked in ([], [b""])  # type: ignore[attr-defined]


def lines(port: int, authority: Authority) -> ConnectionPool:
    context = tls_context(f"{authority.ca}", verify=True)
    return ConnectionPool(ConnectionSettings(context, port, Credentials(USER, PASSWORD), 5, 2))


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_line_that_was_hung_up_is_opened_again(
    answers: Answers, authority: Authority, method: str
) -> None:
    """Also before a change: of that nothing has been sent yet."""
    kept = lines(answers([OK], [OK]), authority)
    with kept.to(ADDRESS) as bmc:
        bmc.get("/x")
    until(lambda: bmc._wire is None or bmc._wire.stale)  # the other side hangs up
    with kept.to(ADDRESS) as bmc:
        assert bmc.ask(method, "/x", {} if method == "PATCH" else None).status == 200


def test_a_change_is_not_sent_twice(answers: Answers, authority: Authority) -> None:
    """The line is cut where the answer should come: the change may have been done."""
    port = answers([OK, b""], [OK])
    kept = lines(port, authority)
    with pytest.raises(NodeError) as cut, kept.to(ADDRESS) as bmc:
        bmc.get("/x")
        bmc.ask("PATCH", "/x", {})
    assert cut.value.outcome is Outcome.UNREACHABLE
    with kept.to(ADDRESS) as bmc:
        bmc.get("/x")
    sent = [request[:5] for request in answers.asked]  # type: ignore[attr-defined]
    assert sent.count(b"PATCH") == 1


def test_one_line_for_all_verbs(tmp_path: Path) -> None:
    """With sessions each verb has a line of its own, and logs out."""
    wanted = {"ClusterMode": "SNC-4"}
    for auth, connections in (("basic", 1), ("session", 3)):
        with Emulator(["n1"], tmp_path / auth) as emulator:
            facts = {"back_end": "redfish", "port": emulator.port, "ca": f"{emulator.ca}"}
            firmware = Firmware.model_validate({**facts, "auth": auth})
            given = BackEndContext(firmware, Credentials(USER, PASSWORD), RemoteShell(["false"], 1))
            end, host = back_end(given), Host("n1", emulator.address("n1"))
            reading = end.read(host, wanted)
            end.stage(host, reading, wanted)
            end.reset(host, reading, wanted)
            machine = emulator.machines["n1"]
            assert (machine.connections, machine.resets) == (connections, 1)
            assert emulator.sessions == 0
