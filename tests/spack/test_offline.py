"""A real Spack asks no address if it has a source mirror: a proxy writes down who asks.

Needs the same variables as `test_install`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.folders import ROOT
from tests.spack.test_install import NEEDED

from proofmark.common.errors import BadInput
from proofmark.software.installed import ProvisionRequest, Sources
from proofmark.software.spack.install import choose_lock, install, prepare
from proofmark.software.spack.installation import this_system

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(any(name not in os.environ for name in NEEDED), reason="needs Spack"),
]


@contextmanager
def watched_proxy() -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a proxy that refuses each request, and the list of requests."""
    asked: list[str] = []

    class Refusal(BaseHTTPRequestHandler):
        def refuse(self) -> None:
            asked.append(self.path)
            self.send_error(502)

        do_GET = do_HEAD = do_CONNECT = refuse

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusal) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Let each process ask a proxy; yield the list of requests."""
    with watched_proxy() as (address, requests):
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, address)
            monkeypatch.setenv(name.upper(), address)
        yield requests


def fetch_stream(request: ProvisionRequest) -> int:
    """Let Spack fetch the source of STREAM; return its exit code."""
    chosen = choose_lock(request, this_system().name)
    with prepare(request, chosen) as spack:
        words = ("-e", str(spack.environment), "fetch", f"/{chosen.lock.root('stream').hash}")
        command = spack.installation.command(*words)
        return subprocess.run(command, env=spack.installation.environment()).returncode


def test_spack_asks_no_address_if_it_has_a_mirror(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test, because each part uses the Spack of the part before."""
    with tempfile.TemporaryDirectory(prefix="pm") as scratch:  # short, for the names in the store
        folder = Path(scratch)
        mirror, empty = folder / "mirror", folder / "empty"
        for place in (mirror, empty):
            place.mkdir()
        sources = Sources(Path(os.environ[NEEDED[0]]), Path(os.environ[NEEDED[1]]), mirror=empty)
        with monkeypatch.context() as online:  # pip may have to ask for the solver
            for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
                online.delenv(name)
            request = ProvisionRequest(ROOT, "local", {}, folder / "p", sources)
            with prepare(request, choose_lock(request, this_system().name)):
                pass

        assert fetch_stream(request) != 0
        assert asked == []

        stream = ProvisionRequest(ROOT, "local", {"stream": ["stream_c"]}, folder / "p", sources)
        with pytest.raises(BadInput, match=r"stream@5\.10"):
            install(stream, this_system().name)
        assert asked == []

        # The control: with the addresses of the recipes the proxy is asked.
        more = Sources(sources.spack, sources.packages, mirror=empty, upstream=True)
        assert fetch_stream(ProvisionRequest(ROOT, "local", {}, folder / "p", more)) != 0
        assert any("virginia.edu" in each for each in asked)
        asked.clear()

        given = Path(os.environ[NEEDED[2]])
        for number, path in enumerate(sorted(given.rglob("*"))):
            if path.is_file():
                (mirror / f"file-{number}").symlink_to(path.resolve())
        full = Sources(sources.spack, sources.packages, mirror=mirror)
        built = ProvisionRequest(ROOT, "local", stream.programs, folder / "p", full)
        assert "stream" in install(built, this_system().name).packages
        assert asked == []
