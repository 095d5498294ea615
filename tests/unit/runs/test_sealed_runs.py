"""What a site knows about its sealed runs, after a run is sealed or moved again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.common.errors import BadInput
from proofmark.runs import sealed_runs as of_sealed_runs
from proofmark.runs.sealed_runs import SealedRun, Sighting, check, keep, sealed_runs

OLD, NEW = "a" * 64, "b" * 64


def known(folder: Path, evidence: str = OLD, word: str = "") -> SealedRun:
    folder.mkdir(parents=True, exist_ok=True)
    return SealedRun(
        site="here",
        run="one",
        folder=folder,
        partition="local",
        contract="c" * 64,
        evidence=evidence,
        sealed=datetime(2026, 11, 30, tzinfo=UTC),
        word=word,
    )


def test_a_verdict_that_is_known_stays_until_another_is_made(tmp_path: Path) -> None:
    for word, kept in (("", ""), ("PASS", "PASS"), ("", "PASS"), ("FAIL", "FAIL")):
        keep(known(tmp_path / "one", word=word))
        assert [each.word for each in sealed_runs("here")] == [kept]


def test_a_run_stays_where_it_was_until_that_folder_is_gone(tmp_path: Path) -> None:
    """A copy of a run is not the run."""
    first = known(tmp_path / "one")
    keep(first)
    copy = known(tmp_path / "copy")
    keep(copy)
    assert sealed_runs("here") == [first]
    first.folder.rmdir()
    keep(copy)
    assert sealed_runs("here") == [copy]


def test_newer_evidence_of_a_run_takes_the_place_of_its_own_only(tmp_path: Path) -> None:
    other = known(tmp_path / "two").model_copy(update={"run": "two"})
    for each in (known(tmp_path / "one"), other):
        keep(each)
    newer = known(tmp_path / "one", NEW)
    keep(newer, [OLD])
    keep(None, [NEW])
    assert sealed_runs("here") == [newer, other]


@pytest.mark.parametrize(
    ("stderr", "stdout", "found"),
    [("no\nkey", "bad", "2: no key"), ("", "bad\n", "2: bad")],
)
def test_a_signature_of_nobody_is_refused_in_the_words_of_ssh_keygen(
    monkeypatch: pytest.MonkeyPatch, stderr: str, stdout: str, found: str
) -> None:
    done = SimpleNamespace(returncode=255, stdout=stdout, stderr=stderr)
    monkeypatch.setattr(of_sealed_runs, "run_keygen", lambda *_, **__: done)
    seen = Sighting(
        **{"item": "2", "contract": "c" * 64, "outcome": "PASS", "by": "ida@buyer"},
        **{"time": datetime(2026, 11, 30, tzinfo=UTC), "reason": "r"},
    )
    contract: Any = SimpleNamespace(lines=["ida@buyer ssh-ed25519 AAAA"])
    with pytest.raises(BadInput) as refused:
        check(seen, contract, "here")
    (mistake,) = refused.value.mistakes
    assert (mistake.file, mistake.key, mistake.found) == ("here", "signature", found)
    assert mistake.accepted == "signed by ida@buyer, a signer in contract.yml"
