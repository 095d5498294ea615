"""The sealed runs of a site that this user knows: no run disappears with its folder.

``sealed/<run>-<evidence>.json`` in the state of the site is one sealed run with a contract. It is
written when the run is sealed, and again when a verdict is made from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pydantic import Field

from proofmark.cases.vocabulary import MEASURED
from proofmark.common.files import paths_in, read_json, write_atomic
from proofmark.common.strict_model import StrictModel
from proofmark.runs.run import Run, site_of
from proofmark.runs.state import check_safe, made, site_folder
from proofmark.runs.waivers import digest_of

FOLDER = "sealed"


class SealedRun(StrictModel):
    """A sealed run that can decide in an acceptance.

    Attributes:
        contract: the SHA-256 of its contract.
        evidence: the SHA-256 of its newest archive, which was `sealed` then.
        word: of the verdict on it; empty before there is one.
    """

    site: str
    run: str
    folder: Path
    partition: str
    contract: str
    evidence: str = Field(pattern="^[0-9a-f]{64}$")
    sealed: datetime
    word: str = ""

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.run}-{self.evidence[:16]}.json"


def sealed_of(run: Run, folder: Path, word: str = "") -> SealedRun | None:
    """Return `run`, read from its evidence in `folder`, with the word of its verdict.

    None if no acceptance can be decided by it: it is not measured, or has no contract.
    """
    site = site_of(run)
    if not run.seal or not site.contract or site.partition.origin != MEASURED or run.imported:
        return None
    return SealedRun(
        site=site.name,
        run=run.id,
        folder=folder.resolve(),
        partition=run.plan.partition,
        contract=digest_of(site.contract),
        evidence=run.seal.digest,
        sealed=run.seal.time,
        word=word,
    )


def keep(sealed: SealedRun | None, earlier: Sequence[str] = ()) -> None:
    """Keep a sealed run in place of those with the evidence `earlier`, its archives before.

    Raises:
        BadInput: the state cannot be written, or is damaged or not safe.
    """
    if sealed is None:
        return
    place = made(site_folder(sealed.site) / FOLDER)
    path = place / sealed.name
    known = read_json(path, SealedRun) if path.exists() else None
    if known:
        there = known.folder if known.folder.is_dir() else sealed.folder
        sealed = sealed.model_copy(update={"folder": there, "word": sealed.word or known.word})
    if sealed != known:
        write_atomic(path, sealed.model_dump_json() + "\n")
    for evidence in earlier:
        (place / sealed.model_copy(update={"evidence": evidence}).name).unlink(missing_ok=True)


def sealed_runs(site: str) -> list[SealedRun]:
    """Return the sealed runs of `site` that this user knows, by id.

    Raises:
        BadInput: the state is damaged or not safe.
    """
    place = site_folder(site) / FOLDER
    if not place.exists():
        return []
    check_safe(place)
    return [read_json(path, SealedRun) for path in paths_in(place, "*.json")]
