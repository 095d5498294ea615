"""The sealed runs of a site that this user knows: no run disappears with its folder.

``sealed/<run>-<evidence>.json`` in the state of the site is one sealed run with a contract. It is
written when the run is sealed, and again when a verdict is made from it.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from proofmark.cases.vocabulary import MEASURED
from proofmark.common.errors import bad_input
from proofmark.common.files import exists, paths_in, read_json, write_atomic
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import one_line
from proofmark.plan.kinds import origin_of
from proofmark.runs.acceptance import Sha256, keygen, run_keygen
from proofmark.runs.run import Run, site_of
from proofmark.runs.state import check_safe, made, site_folder
from proofmark.site.contract_document import Contract

NAMESPACE = "proofmark-waiver"
"""Namespace of the signature: a signature for another purpose does not verify (ssh-keygen, -n)."""
_MOST = 10_000
"""The largest number of waivers."""
_Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=2000)]
"""A text of one line. ssh-keygen gets it as an argument, and it is printed."""
_Signature = Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=10_000)]


class _Signed(StrictModel):
    """What a party signs."""

    @property
    def line(self) -> bytes:
        """The signed line: all fields but the signature."""
        return f"{self.model_dump_json(exclude={'signature'})}\n".encode()


class Waiver(_Signed):
    """A party accepts that a partition misses an item of the contract.

    Attributes:
        evidence: the SHA-256 of the newest archive of each run that decides.
        outcome: FAIL or UNJUDGED. What is INVALID measured nothing that could be accepted.
        worst: the worst value of its figures; None if it has none.
        differs: what changed since these runs: its name, what they had, and what is there now.
        by: the principal of the signer (ssh-keygen(1), ALLOWED SIGNERS).
        signature: of `line`, as ssh-keygen writes it.
    """

    item: _Line
    partition: _Line
    contract: Sha256
    evidence: dict[_Line, Sha256]
    outcome: Literal["FAIL", "UNJUDGED"]
    worst: float | None
    differs: list[dict[str, _Line]] = []
    by: _Line
    date: date
    reason: _Line
    signature: _Signature = ""


class Attachment(StrictModel):
    """A file that belongs to what was seen."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=200)]
    sha256: Sha256

    @property
    def path(self) -> str:
        """Its path beside the contract, and in a signed folder."""
        return f"{SEEN}/{self.sha256[:16]}-{self.name}"


class Sighting(_Signed):
    """A party saw what an item of the contract is about.

    Attributes:
        outcome: whether the item is met.
        by: the principal of the signer (ssh-keygen(1), ALLOWED SIGNERS).
        reason: what was seen.
        signature: of `line`, as ssh-keygen writes it.
    """

    item: _Line
    contract: Sha256
    outcome: Literal["PASS", "FAIL"]
    by: _Line
    time: datetime
    reason: _Line
    attachments: list[Attachment] = Field(default=[], max_length=100)
    signature: _Signature = ""

    @property
    def id(self) -> str:
        """Who saw it, in the place of a run."""
        return self.by

    @property
    def date(self) -> str:
        """The day on which it was seen, UTC."""
        return f"{self.time:%Y-%m-%d}"

    @property
    def evidence(self) -> str:
        """The SHA-256 of what was signed."""
        return hashlib.sha256(self.line).hexdigest()

    @property
    def text(self) -> str:
        """What was seen, and the attached files."""
        files = (f"{each.name} (SHA-256 {each.sha256})" for each in self.attachments)
        return "; ".join((self.reason, *files))


WAIVERS = "waivers.json"
"""The file of what parties signed about single items, beside the contract."""
SEEN = "seen"
"""The folder of the attachments, beside the contract and in a signed folder."""
Given = TypeVar("Given", Waiver, Sighting)


class Waivers(StrictModel):
    """The content of ``waivers.json``, the oldest first."""

    waivers: list[Waiver] = Field(default=[], max_length=_MOST)
    seen: list[Sighting] = Field(default=[], max_length=_MOST)


def digest_of(contract: Contract) -> str:
    """Return the SHA-256 of a contract in hexadecimal digits."""
    return hashlib.sha256(contract.model_dump_json().encode()).hexdigest()


def signed(waiver: Given, key: Path) -> Given:
    """Return `waiver` with the signature by the private ssh key in the file `key`.

    Raises:
        BadInput: ssh-keygen refuses, or is not there.
    """
    words = ("-f", str(key), "-n", NAMESPACE)
    signature = keygen("sign", *words, place="--key", content=waiver.line)
    return waiver.model_copy(update={"signature": signature})


def read_waivers(inventory: Path, contract: Contract) -> Waivers:
    """Return what was signed about a contract, each with a signature of one of its signers.

    Raises:
        BadInput: the file is damaged, or a signature is not that of a signer.
    """
    path, digest = inventory / WAIVERS, digest_of(contract)
    known = read_json(path, Waivers) if exists(path) else Waivers()
    waivers = [each for each in known.waivers if each.contract == digest]
    seen = [each for each in known.seen if each.contract == digest]
    every: list[Waiver | Sighting] = [*waivers, *seen]
    for each in every:
        check(each, contract, str(path))
    return Waivers(waivers=waivers, seen=seen)


def add_waiver(inventory: Path, given: Waiver | Sighting) -> None:
    """Add a waiver or what was seen to the file of a site.

    Raises:
        BadInput: the file cannot be read or written.
    """
    path = inventory / WAIVERS
    known = read_json(path, Waivers) if exists(path) else Waivers()
    if isinstance(given, Waiver):
        known.waivers.append(given)
    else:
        known.seen.append(given)
    write_atomic(path, known.model_dump_json(indent=1) + "\n")


def check(waiver: Waiver | Sighting, contract: Contract, place: str) -> None:
    """Refuse a waiver, or what was seen, without a signature of a signer of the contract.

    Raises:
        BadInput: see above; `place` is the file or option that it names.
    """
    with tempfile.TemporaryDirectory() as folder:
        signers, signature = Path(folder, "signers"), Path(folder, "signature")
        signers.write_text("".join(f"{one_line(each)}\n" for each in contract.lines), "utf-8")
        signature.write_text(waiver.signature, "utf-8")
        names = ("-f", str(signers), "-I", waiver.by, "-n", NAMESPACE, "-s", str(signature))
        done = run_keygen("verify", *names, content=waiver.line)
    if done.returncode:
        found = f"{waiver.item}: {one_line(done.stderr or done.stdout)}"
        accepted = f"signed by {waiver.by}, a signer in contract.yml"
        raise bad_input(place, "signature", found, accepted)


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
    if not run.seal or not site.contract or origin_of(run.plan, site) != MEASURED:
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
