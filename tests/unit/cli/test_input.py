"""Standard input of commands: the JSON of playbooks, and credentials."""

from __future__ import annotations

import io
import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from proofmark.cli import inputs
from proofmark.cli.command import SECRETS
from proofmark.cli.inputs import credentials_of, read_stdin
from proofmark.common.errors import BadInput
from proofmark.common.input_limits import MAX_SMALL_BYTES
from proofmark.software.provision import ProgramProbes

PROBES = {"node": "facts", "packages": {"fio-3": {"output": "a probe"}}}
LOGIN = b'{"user": "admin", "password": "hunter2"}'


def give(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Make `content` the standard input of this process."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


class TestJson:
    def test_probes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Control: nothing is wrong."""
        give(monkeypatch, json.dumps(PROBES).encode())
        probes = read_stdin(ProgramProbes)
        assert (probes.node, probes.packages["fio-3"].output) == ("facts", "a probe")

    @pytest.mark.parametrize("content", [b"", b"fio", b'{"node": "\xff"}', b"[" * 100_000])
    def test_no_json(self, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
        give(monkeypatch, content)
        with pytest.raises(BadInput, match=r"^stdin: found Invalid JSON: .*JSON of the playbooks"):
            read_stdin(ProgramProbes)

    @pytest.mark.parametrize(
        ("changes", "key"),
        [
            ({"nodes": "facts"}, "nodes"),
            ({"node": 3}, "node"),
            ({"packages": {"fio": {}}}, "packages.fio.output"),
            ({"packages": {"fio": {"output": "", "prefx": "/p"}}}, "packages.fio.prefx"),
        ],
    )
    def test_a_wrong_key(
        self, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], key: str
    ) -> None:
        give(monkeypatch, json.dumps({**PROBES, **changes}).encode())
        with pytest.raises(BadInput, match=f"^stdin: {key}: found .*JSON of the playbooks"):
            read_stdin(ProgramProbes)

    @pytest.mark.parametrize("name", ["", "..", "../fio", "a/b", "-fio", "Fio", "fio\n", "fio.x"])
    def test_a_name_that_no_package_of_a_case_can_have(
        self, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """The probe of a package is written into a file of this name."""
        give(monkeypatch, json.dumps({**PROBES, "packages": {name: {"output": ""}}}).encode())
        with pytest.raises(BadInput, match=r"found String should match pattern"):
            read_stdin(ProgramProbes)

    @pytest.mark.parametrize("more", [0, 1])
    def test_the_limit_of_bytes(self, monkeypatch: pytest.MonkeyPatch, more: int) -> None:
        content = json.dumps(PROBES).encode()
        monkeypatch.setattr(inputs, "MAX_RUN_FILE_BYTES", len(content))
        give(monkeypatch, content + more * b" ")
        if more:
            with pytest.raises(BadInput, match=r"^stdin: found more bytes; accepted: at most"):
                read_stdin(ProgramProbes)
        else:
            assert read_stdin(ProgramProbes).node == "facts"


class TestCredentials:
    @staticmethod
    def of(source: str | Path | None, **secrets: str) -> tuple[str, str]:
        """Return user and password of a command with the option ``--credentials``."""
        option = None if source is None else f"{source}"
        SECRETS.set(secrets)
        found = credentials_of(Namespace(credentials=option))
        return found.user, found.password

    def test_stdin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        give(monkeypatch, LOGIN)
        assert self.of("-") == ("admin", "hunter2")

    def test_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "login.json"
        path.write_bytes(LOGIN)
        assert self.of(path) == ("admin", "hunter2")

    @pytest.mark.parametrize("source", [None, "-"])
    def test_variables_if_nothing_else_is_given(
        self, monkeypatch: pytest.MonkeyPatch, source: str | None
    ) -> None:
        give(monkeypatch, b"\n" if source else LOGIN)
        secrets = {"PROOFMARK_BMC_USER": "root", "PROOFMARK_BMC_PASSWORD": "calvin"}
        assert self.of(source, **secrets) == ("root", "calvin")

    @pytest.mark.parametrize(
        "content",
        [
            b'{"user": "admin", "password": "hunter2"',
            b'{"user": "admin", "pasword": "hunter2"}',
            b'["hunter2"]',
            b'"hunter2\xff"',
            b'{"user": "hunter2", "password": ' + b"[" * 1000 + b"]" * 1000 + b"}",
        ],
    )
    def test_another_format_is_refused_and_not_shown(
        self, monkeypatch: pytest.MonkeyPatch, content: bytes
    ) -> None:
        give(monkeypatch, content)
        with pytest.raises(BadInput, match=r"^--credentials: found another format") as error:
            self.of("-")
        assert "hunter2" not in str(error.value)

    def test_more_bytes_are_refused(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        content = LOGIN + b" " * MAX_SMALL_BYTES
        path = tmp_path / "login.json"
        path.write_bytes(content)
        with pytest.raises(BadInput, match=r"login\.json: found more bytes; accepted: at most"):
            self.of(path)
        give(monkeypatch, content)
        with pytest.raises(BadInput, match=r"stdin: found more bytes; accepted: at most 64\.0 KiB"):
            self.of("-")
