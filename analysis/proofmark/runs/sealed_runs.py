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
from proofmark.common.files import paths_in, read_json, write_whole
from proofmark.common.strict_model import StrictModel
from proofmark.runs.run import Run, site_of
from proofmark.runs.state import check_safe, made, site_folder
from proofmark.runs.waivers import digest_of

FOLDER = "sealed"


class SealedRun(StrictModel):
    """A sealed run that can decide in an acceptance.

    Attributes:
        run: its id.
        folder: where it was.
        contract: the SHA-256 of its contract.
        evidence: the SHA-256 of its newest archive.
        sealed: when that was sealed, UTC.
        word: of the verdict on it; empty before there is one.
    """

    run: str
    folder: Path
    partition: str
    suite: str
    contract: str
    evidence: str = Field(pattern="^[0-9a-f]{64}$")
    sealed: datetime
    word: str = ""

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.run}-{self.evidence[:16]}.json"


def keep_sealed(run: Run, folder: Path, *, earlier: Sequence[str] = (), word: str = "") -> None:
    """Keep a sealed run, if an acceptance can be decided by it: it is measured by a contract.

    Args:
        run: the run, read from its evidence.
        folder: where it is.
        earlier: the SHA-256 of its archives before the newest one.
        word: of the verdict on it.

    Raises:
        BadInput: the state cannot be written, or is not safe.
    """
    site = site_of(run)
    if run.seal and site.contract and site.partition.origin == MEASURED and not run.imported:
        sealed = SealedRun(
            run=run.id,
            folder=folder.resolve(),
            partition=run.plan.partition,
            suite=run.plan.suite,
            contract=digest_of(site.contract),
            evidence=run.seal.digest,
            sealed=run.seal.time,
            word=word,
        )
        keep(site.name, sealed, earlier)


def keep(site: str, sealed: SealedRun, earlier: Sequence[str] = ()) -> None:
    """Write a sealed run in place of those with the evidence `earlier`, as `keep_sealed`."""
    place = made(site_folder(site) / FOLDER)
    path = place / sealed.name
    known = read_json(path, SealedRun) if path.exists() else sealed
    there = known.folder if known.folder.is_dir() else sealed.folder
    new = sealed.model_copy(update={"folder": there, "word": sealed.word or known.word})
    if new != known or known is sealed:
        write_whole(path, new.model_dump_json() + "\n")
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
