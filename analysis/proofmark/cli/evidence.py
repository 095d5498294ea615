"""Opens the evidence of a run for a command, and checks a signed folder."""

from __future__ import annotations

from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.common.progress_lines import say
from proofmark.common.trust import refuse_untrusted
from proofmark.runs.acceptance import OWN, STATEMENT, CheckedStatement, check, signed_folders
from proofmark.runs.evidence import open_evidence, seal
from proofmark.runs.run import Run, open_run

COLLECT = "proofmark stage collect RUN"


def evidence_of(folder: Path) -> Run:
    """Return the sealed run of `folder`. A run that was never sealed is sealed now.

    Raises:
        BadInput: the evidence is damaged, or as `seal`.
    """
    return open_evidence(folder) or seal(folder).run()


def run_to_show(folder: Path) -> Run:
    """Return the sealed run of `folder`, or its folder as it is now, which stderr then states.

    Raises:
        BadInput: the evidence is damaged, or the folder is no run.
    """
    if sealed := open_evidence(folder):
        return sealed
    run = open_run(folder)
    say(f"{run.id}: nothing is sealed yet; its folder is read as it is now: {COLLECT}")
    return run


def checked_folder(folder: Path, signers: Path, revoked: Path | None = None) -> CheckedStatement:
    """Return the check of a signed folder: of its signatures and its files.

    Args:
        folder: a signed folder, or a run or acceptance, whose newest signed folder is taken.

    Raises:
        BadInput: nothing is signed, no signature is accepted, or another user can change a file.
    """
    refuse_untrusted(folder, OWN)
    resolved = folder.resolve()
    found = [resolved] if (resolved / STATEMENT).exists() else signed_folders(resolved)
    if not found:
        raise bad_input("RUN", "", f"{folder}: nothing is signed", "proofmark sign RUN")
    _refuse_inside(found[0], "--signers", signers, "an allowed_signers file")
    if revoked:
        _refuse_inside(found[0], "--revoked", revoked, "a list of revoked keys, or a KRL")
    return check(found[0], signers, revoked)


def _refuse_inside(folder: Path, option: str, file: Path, accepted: str) -> None:
    """Refuse a file that is missing or in the folder, or that another user can change."""
    if not file.is_file():
        raise bad_input(option, "", f"{file}: no such file", accepted)
    if folder in file.resolve().parents:
        raise bad_input(option, "", f"{file}: in the signed folder", f"{accepted} outside it")
    refuse_untrusted(file, f"{accepted} that only this user can change")
