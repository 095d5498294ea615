"""What a signed folder states, made from its evidence: when it is signed, and when it is verified.

A signed folder has one kind. ``run``: the archives of a run in ``evidence/``, with the products of
the run. ``acceptance``: the archives of each run that can decide in ``runs/<id>/evidence/``, with
the page of the acceptance of a site and its data. Both have ``contract.json``, if there is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from proofmark.common.errors import bad_input
from proofmark.common.files import names_in, sha256_of, write_atomic
from proofmark.common.message import Message, Term
from proofmark.common.shared_models import StrictModel
from proofmark.common.translation import in_language
from proofmark.judge.acceptance import (
    Acceptance,
    Part,
    RunLeftOut,
    Terms,
    text_of,
)
from proofmark.judge.headline import Judged, PrintedKind, line_of
from proofmark.report.acceptance_page import acceptance_page
from proofmark.report.products import Made, made_of, other_versions, versions, write_again
from proofmark.runs.acceptance import RUNS, Sha256, Statement, files_of
from proofmark.runs.evidence import evidence_files, read_evidence
from proofmark.runs.run import Run, site_of
from proofmark.runs.run_files import AcceptanceFiles, RunFiles
from proofmark.runs.sealed_runs import SEEN, Sighting, Waiver, check, digest_of
from proofmark.site.contract_document import Contract

CONTRACT = "contract.json"
"""The contract in a signed folder. Its SHA-256 is that of the page, of the data and of waivers."""
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][\w.-]*$", max_length=255)]


class SignedRun(StrictModel):
    """A run of which a signed folder has the evidence.

    Attributes:
        evidence: the SHA-256 of its newest archive.
        run_by: the user who ran the programs.
    """

    run: _Name
    evidence: Sha256
    sealed: datetime
    sealed_by: str
    run_by: str

    @classmethod
    def of(cls, run: Run) -> SignedRun:
        """Return what the evidence of `run` states."""
        assert run.seal is not None
        seal = run.seal
        return cls(
            run=run.id,
            evidence=seal.digest,
            sealed=seal.time,
            sealed_by=seal.by,
            run_by=seal.run_by,
        )


class Predicate(StrictModel):
    """What a statement says of its files. `made_again` makes each field again.

    An acceptance takes `id`, `site`, `partitions`, `left_out`, `waivers`, `seen` and `made` from
    the one who signs: the evidence has neither the present nodes of the site nor the runs that
    cannot decide.

    Attributes:
        contract: the SHA-256 of the contract; empty without one.
        counts: of results by verdict and of steps in a run; of items in an acceptance.
        made: time, language and versions of the products.
    """

    kind: Literal["run", "acceptance"]
    id: _Name
    site: str
    partitions: dict[str, Part]
    runs: list[SignedRun] = []
    left_out: list[RunLeftOut] = []
    waivers: list[Waiver] = []
    seen: list[Sighting] = []
    contract: str = ""
    word: str = ""
    kinds: dict[PrintedKind, Judged] = {}
    counts: dict[str, int] = {}
    made: Made

    @property
    def line(self) -> Message:
        """The verdict with its counts, as the last lines of the commands have it."""
        if self.kind == "run":
            return line_of(self.word, self.kinds, self.counts)
        return Message("acceptance-line", word=Term(self.word), text=text_of(self.counts))


def predicate_of(statement: Statement, place: Path) -> Predicate:
    """Return what a statement says; `place` is its folder.

    Raises:
        BadInput: it is of an unknown kind, or has other fields.
    """
    try:
        return Predicate.model_validate_json(json.dumps(statement.predicate))
    except ValidationError as error:
        found = f"unreadable: {error}"
        raise bad_input(place, "predicate", found, "a statement of this kit") from None


def against_evidence(folder: Path, statement: Statement, predicate: Predicate) -> list[Message]:
    """Return what of a signed folder is not what its evidence gives.

    If other versions made it, only the evidence itself is compared.

    Raises:
        BadInput: a run has no evidence or damaged evidence, or a version is none of a release.
    """
    runs = runs_in(folder, predicate.kind)
    if other_versions(predicate.made):
        same = [SignedRun.of(run) for run in runs] == predicate.runs
        known = predicate.kind != "run" or predicate.id == runs[0].id
        return [] if same and known else [Message("predicate-other", name="runs")]
    with TemporaryDirectory(prefix="proofmark-") as temporary:
        target = Path(temporary).resolve()
        again = made_again(runs, predicate, target)
        written = {path.relative_to(target).as_posix(): path for path in target.rglob("*")}
        made = {name: sha256_of(path) for name, path in written.items() if path.is_file()}
        for each in predicate.seen:
            made |= {attached.path: attached.sha256 for attached in each.attachments}
        given = set[str]()
        for run in runs:
            archives = evidence_files(run.products.folder)
            given |= {path.relative_to(folder).as_posix() for path in archives}
        wrong = [
            Message("product-not-made", name=name)
            for name in statement.files
            if name not in made and name not in given
        ]
        for name, digest in made.items():
            listed = statement.files.get(name)
            if listed is None:
                wrong.append(Message("product-missing", name=name))
            elif listed.digest.sha256 != digest:
                wrong.append(Message("product-other", name=name))
    stated = again.model_dump(mode="json")
    wrong += [
        Message("predicate-other", name=name)
        for name, value in stated.items()
        if statement.predicate.get(name) != value
    ]
    return [*wrong, *unfinished(again)]


def unfinished(predicate: Predicate) -> Iterator[Message]:
    """Yield that a run has no result of each planned step: it must not be signed."""
    if predicate.kind == "run":
        measured, expected = (predicate.counts[name] for name in ("measured", "expected"))
        if measured < expected:
            yield Message("signed-unfinished", missing=expected - measured, expected=expected)


def runs_in(folder: Path, kind: str) -> list[Run]:
    """Return the runs whose evidence a signed folder has.

    Raises:
        BadInput: there is none, it is damaged, or it is that of another run than its folder.
    """
    if kind == "run":
        return [_run_in(folder)]
    runs = []
    for name in sorted(names_in(folder / RUNS)):
        runs.append(_run_in(folder / RUNS / name))
        if runs[-1].id != name:
            raise bad_input(folder / RUNS / name, "", f"evidence of {runs[-1].id}", f"of {name}")
    if not runs:
        raise bad_input(folder, "", "no evidence", "a folder that proofmark signed")
    return runs


def _run_in(folder: Path) -> Run:
    evidence = read_evidence(folder)
    if evidence is None:
        raise bad_input(folder, "", "no evidence", "a folder that proofmark signed")
    return evidence.run()


def made_again(runs: Sequence[Run], asked: Predicate, target: Path) -> Predicate:
    """Write all that the evidence gives into `target`; return what is to be stated.

    Args:
        target: the signed folder itself while it is made, or another folder.

    Raises:
        BadInput: a file of a run is damaged, or a run decides nothing here.
    """
    if asked.kind == "run":
        run = runs[0]
        files = RunFiles(target)
        verdict = write_again(run, asked.made, files).verdict
        headline, coverage = verdict.headline(), verdict.coverage
        return Predicate(
            kind="run",
            id=run.id,
            site=run.plan.site,
            partitions={
                run.plan.partition: Part(hosts=run.plan.nodes(), mode=run.plan.current_mode)
            },
            runs=[SignedRun.of(run)],
            contract=_contract(site_of(run).contract, target),
            word=headline.word,
            kinds=dict(headline.kinds),
            counts={**verdict.counts, "measured": coverage.measured, "expected": coverage.expected},
            made=made_of(files),
        )
    contract = site_of(runs[0]).contract
    known = acceptance_name(asked.site), acceptance_name(asked.site, asked.partitions)
    if asked.id not in known:
        raise bad_input("statement", "id", asked.id, " or ".join(known))
    if contract is None:
        raise bad_input(runs[0].products.folder, "", "no contract", "a run with a contract")
    given: list[Waiver | Sighting] = [*asked.waivers, *asked.seen]
    for each in given:
        check(each, contract, "statement")
    terms = Terms(asked.site, contract, asked.partitions, asked.waivers, asked.seen)
    judged = []
    for run in runs:
        if why := terms.refuses(run):
            raise bad_input(run.products.folder, "", f"{why}", "a run that decides here")
        judged.append(terms.judged(run))
    found = terms.acceptance(judged, asked.left_out)
    with in_language(asked.made.language):
        for name, text in acceptance_files(found, terms).items():
            write_atomic(target / name, text)
    written = max(each.sealed for each in judged)
    return Predicate(
        kind="acceptance",
        id=asked.id,
        site=asked.site,
        partitions=asked.partitions,
        runs=sorted(map(SignedRun.of, runs), key=lambda each: each.run),
        left_out=asked.left_out,
        waivers=asked.waivers,
        seen=asked.seen,
        contract=_contract(contract, target),
        word=found.word,
        counts=found.counts,
        made=Made(written=written, language=asked.made.language, versions=versions()),
    )


def products_of(folder: Path) -> list[str]:
    """Return the files of a signed folder that people open beside ``signed/`` too."""
    names = (name for name in files_of(folder) if name != CONTRACT)
    beside = (f"{RUNS}/", f"{SEEN}/")
    return [name for name in names if not name.startswith(beside) and not name.endswith(".tar")]


def acceptance_name(site: str, partitions: Iterable[str] = ()) -> str:
    """Return the name of the folder of an acceptance; no partition: of the whole site."""
    return "-".join(["acceptance", site, *partitions])


def acceptance_files(found: Acceptance, terms: Terms) -> dict[str, str]:
    """Return the page of an acceptance and its data, by the names of the files."""
    text = json.dumps(acceptance_data(found, terms), indent=1) + "\n"
    digest = sha256(text.encode()).hexdigest()
    return {
        AcceptanceFiles.data.path: text,
        AcceptanceFiles.page.path: acceptance_page(found, terms, digest),
    }


def acceptance_data(found: Acceptance, terms: Terms) -> dict[str, Any]:
    """Return the content of ``acceptance.json``."""
    contract = terms.contract
    about = {"title": contract.title, "parties": dict(contract.parties)}
    return {
        "contract": {**about, "sha256": digest_of(contract)},
        "partitions": {name: part.model_dump() for name, part in terms.partitions.items()},
        **found.as_json(),
    }


def _contract(contract: Contract | None, target: Path) -> str:
    if contract is None:
        return ""
    write_atomic(target / CONTRACT, contract.model_dump_json())
    return digest_of(contract)
