"""Opens the evidence of a run for a command, and checks a signed acceptance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.progress_lines import say
from proofmark.runs.acceptance import CheckedAcceptance, check, private_copy, signed_folder
from proofmark.runs.evidence import open_evidence, read_evidence, seal
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


class ChangedAcceptance(BadInput):
    """A signed acceptance is not as it was signed.

    Args:
        folder: of the acceptance.
        checked: what differs.
    """

    def __init__(self, folder: Path, checked: CheckedAcceptance) -> None:
        accepted = f"as signed by {', '.join(checked.signers)}"
        super().__init__(*(InputError(f"{folder}", "", each, accepted) for each in checked.wrong))
        self.checked = checked


@contextmanager
def checked_acceptance(
    folder: Path, signers: Path, revoked: Path | None = None
) -> Iterator[tuple[CheckedAcceptance, Run]]:
    """Yield the check of a signed acceptance, and its run.

    What is checked is what the run is read from: a private copy if another user owns the folder.

    Raises:
        ChangedAcceptance, BadInput: see `checked_folder`; or the evidence is damaged.
    """
    with checked_folder(folder, signers, revoked) as (checked, place):
        yield checked, run_in(place)


def run_in(signed: Path) -> Run:
    """Return the run of a signed folder.

    Raises:
        BadInput: it has no evidence, or damaged evidence.
    """
    evidence = read_evidence(signed)
    if evidence is None:
        raise bad_input(signed, "", "no evidence", "a folder that proofmark sign made")
    return evidence.run()


@contextmanager
def checked_folder(
    folder: Path, signers: Path, revoked: Path | None = None
) -> Iterator[tuple[CheckedAcceptance, Path]]:
    """Yield the check of a signed folder, and the folder.

    Args:
        folder: a signed folder, or a run or acceptance, whose newest signed folder is taken.
        signers: see `check`.
        revoked: see `check`.

    Raises:
        ChangedAcceptance: a file is not as it was signed. Nothing is read from it.
        BadInput: nothing is signed, or no signature is accepted.
    """
    signed = signed_folder(folder)
    if signed is None:
        raise bad_input("RUN", "", f"{folder}: nothing is signed", "proofmark sign RUN")
    _refuse_inside(signed, "--signers", signers, "an allowed_signers file")
    if revoked:
        _refuse_inside(signed, "--revoked", revoked, "a list of revoked keys, or a KRL")
    with private_copy(signed) as place:
        checked = check(place, signers, revoked)
        if checked.wrong:
            raise ChangedAcceptance(signed, checked)
        yield checked, place


def _refuse_inside(folder: Path, option: str, file: Path, accepted: str) -> None:
    """Refuse a file that is missing or in the acceptance, which cannot name its own signers."""
    if not file.is_file():
        raise bad_input(option, "", f"{file}: no such file", accepted)
    if folder.resolve() in file.resolve().parents:
        raise bad_input(option, "", f"{file}: in the acceptance", f"{accepted} outside it")
