"""Judges planted machines as the commands do: the last lines of an acceptance, its exit code."""

from __future__ import annotations

import io
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.judge.ending import ending
from proofmark.judge.judging import judge_run
from proofmark.runs.run import Run, open_run


def report(run: Run) -> None:
    """Judge a run and write all of its products."""
    code, text = called("report", f"{run.folder}")
    assert code == 0, text


def judged(run: Run) -> tuple[int, str]:
    """Return the exit code of the verdict on the folder of `run`, and the first two lines."""
    try:
        verdict = judge_run(open_run(run.folder))
    except BadInput as refusal:
        return 3, f"{refusal}"
    first, second, _ = ending(verdict, "report.html", f"{run.folder}")
    return verdict.exit_code(), f"{first}\n{second}"


def make_keys(folder: Path) -> None:
    """Write a key, and the file of accepted signers."""
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/key"]
    subprocess.run(make, check=True)
    public = (folder / "key.pub").read_text().split()
    (folder / "signers").write_text(f"admin@site {public[0]} {public[1]}\n")


def called(*words: str) -> tuple[int, str]:
    """Return the exit code of a command, and what it prints."""
    text = io.StringIO()
    with redirect_stdout(text), redirect_stderr(text):
        try:
            code = main([*words])
        except SystemExit as end:
            code, more = (end.code, "") if isinstance(end.code, int) else (3, f"{end.code}")
            text.write(more)
        except BadInput as refusal:
            code = 3
            text.write(f"{refusal}")
    return code, text.getvalue()
