"""The commands of the tests: `proofmark` and `ansible-playbook` run in forks of imported ones.

Everything else about them is as in the folder of the commands of ``.venv``. A test whose subject is
the start itself takes the command from there: ``Path(sys.executable).parent``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypedDict

from tests.folders import ROOT

VARIABLE = "TOOLS_OF_TESTS"
"""The environment variable with the folder of the commands."""
REAL = Path(sys.executable).parent


class Wanted(TypedDict):
    """What is imported before a command is known."""

    modules: list[str]
    packages: list[str]
    """All modules of these packages."""
    around: list[str]
    """What these modules import, without modules that read the settings of Ansible at once."""


READ = "tests.forks.read_once"
SHARED = "multiprocessing.shared_memory"
PLAYED = (
    *("proofmark.api", "proofmark.site.extra_vars", "proofmark.software.environments"),
    *("multiprocessing.popen_fork", "multiprocessing.synchronize", SHARED),
    *("cmd", "pprint", "tomllib", "xml.dom.minidom"),
)
"""What a play imports late."""
WANTED = {
    "proofmark": Wanted(
        modules=["polars", "scipy.stats", "tomllib", "rich.table", SHARED, READ],
        packages=["proofmark"],
        around=["ansible.cli"],
    ),
    "ansible-playbook": Wanted(
        modules=["polars", "proofmark.cli.check", *PLAYED, READ],
        packages=[],
        around=["ansible.cli.playbook"],
    ),
}
"""What each command imports sooner or later. Polars starts its threads at its first use."""
ROOM = "_" * 4000
CLIENT = Path(__file__).with_name("client.py")


def tool(name: str) -> str:
    """Return the path of the command `name`."""
    return f"{tools() / name}"


def tools() -> Path:
    """Return the folder of the commands, that of an environment of Python."""
    return Path(os.environ.get(VARIABLE, REAL))


@contextmanager
def forked_tools() -> Iterator[Path]:
    """Yield the folder of the commands, while the processes exist that they are forks of."""
    with tempfile.TemporaryDirectory(prefix="pm-tools-") as name, ExitStack() as ends:
        top = Path(name)
        top.chmod(0o755)  # another user starts the real command
        _environment(top)
        for command, wanted in WANTED.items():
            (top / "bin" / command).unlink()
            # A command starts others beside its Python: these are forks, too.
            python, real = top / "bin/python", top / command
            lines = (REAL / command).read_text().splitlines()
            script(real, python, "\n".join(lines[1:]))
            ends.enter_context(served(top / "bin" / command, real, python, wanted))
        yield top / "bin"


def _environment(top: Path) -> None:
    """Make an environment of Python in `top`, with links to the commands of this one."""
    shutil.copy(REAL.parent / "pyvenv.cfg", top)
    (top / "pyvenv.cfg").chmod(0o644)
    (top / "lib").symlink_to(REAL.parent / "lib")
    (top / "bin").mkdir()
    (top / "bin").chmod(0o755)
    for path in REAL.iterdir():
        if path.name.startswith("python"):
            (top / "bin" / path.name).symlink_to(path.resolve())
        else:
            (top / "bin" / path.name).symlink_to(path)


@contextmanager
def served(client: Path, real: Path, python: Path, wanted: Wanted) -> Iterator[None]:
    """Write a client of the script `real`, while its server runs.

    Args:
        client: the path of the new command.
        real: what it runs in a fork of the server, or executes.
        python: the interpreter of the server.
        wanted: what the server imports.
    """
    own = client.with_name(f".{client.name}")
    own.mkdir()
    (own / "real").write_text(f"{real}")
    script(client, f"{python.resolve()} -ISE", CLIENT.read_text())
    words = [f"{own}", f"{real}", json.dumps(wanted), ROOM]
    usual = {**os.environ, "LC_ALL": "C.UTF-8"}  # as make and the plays have it
    call = [f"{python}", "-m", "tests.forks.server", *words]
    with subprocess.Popen(call, cwd=ROOT, env=usual, stdin=subprocess.PIPE) as server:
        try:
            yield
        finally:
            assert server.stdin
            server.stdin.close()


def script(path: Path, interpreter: Path | str, text: str) -> None:
    """Write the script `path`."""
    path.write_text(f"#!{interpreter}\n{text}\n")
    path.chmod(0o755)
