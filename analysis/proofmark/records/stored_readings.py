"""The records of sealed evidence, stored beside its archives.

The file is a cache, and never evidence: without it a run has the same verdict. Its key has the
digest of the newest archive and the digest of the code that reads. The digest of an archive is
computed each time the evidence is opened, and has those of the archives before it in it. So new
evidence and another reader make the file stale. It is used only if nobody but root and the user of
this process can write it.
"""

from __future__ import annotations

import json
import platform
import zipfile
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pydantic

import proofmark
from proofmark.common.files import open_regular, parquet, write_atomic_bytes
from proofmark.common.message import NOTHING, Message, rendered
from proofmark.common.progress_lines import say
from proofmark.common.shared_models import StrictModel
from proofmark.common.trust import weak_part
from proofmark.plan.kinds import kind_of
from proofmark.records.columns import NUMBERS, Execution, Measurand, Records, intern
from proofmark.records.read import read_parts
from proofmark.records.run_facts import RunParts, run_parts
from proofmark.runs.run import Run

READERS = ("common", "cases", "site", "plan", "runs", "software", "records")
"""The rooms whose code and data decide what is read from an output of the kit."""
PACKAGES = "packages"
"""They too read the outputs of a run whose kind is of a package."""
_MESSAGES = ("disturbed", "unsteady")
_EXECUTION: Mapping[str, Any] = {
    **dict.fromkeys(Execution._fields, pl.Float64),
    **dict.fromkeys(("step", "disturbers"), pl.String),
    **dict.fromkeys(("attempt", "repeat", *_MESSAGES), pl.Int64),
}
_UNUSABLE = (
    *(OSError, zipfile.BadZipFile, ValueError, LookupError, NotImplementedError, EOFError),
    *(AttributeError, TypeError),
    *(pl.exceptions.PolarsError, pl.exceptions.PanicException),
)


class _Words(StrictModel):
    """What the numbers of the columns refer to."""

    measurands: list[tuple[str, ...]]
    nodes: list[str]
    reasons: int
    messages: list[Message]


def stored_or_read(run: Run, steps: Collection[str] | None = None) -> tuple[RunParts, Records]:
    """Return what `read_parts` returns, from what is stored if it is of this evidence.

    What is stored and cannot be used is named on stderr.
    """
    stored = _stored(run) if steps is None and run.seal else None
    if isinstance(stored, Message):
        say(rendered(stored))
    if isinstance(stored, Records):
        return run_parts(run), stored
    return read_parts(run, steps)


def store(run: Run, records: Records | None = None) -> None:
    """Store the records of sealed evidence, if they are not stored; None: they are read.

    Raises:
        BadInput: a file of the run is damaged, or the file cannot be written.
    """
    if run.seal is None or not kind_of(run.plan).has_figures or _is_stored(run):
        return
    records = read_parts(run)[1] if records is None else records
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.comment = _key(run)
        for name, member in _members(records):
            archive.writestr(zipfile.ZipInfo(name), member)
    write_atomic_bytes(run.products.readings, content.getvalue(), mode=0o444)


def _is_stored(run: Run) -> bool:
    path = run.products.readings
    try:
        with open_regular(path) as file:
            return not weak_part(path) and zipfile.ZipFile(file).comment == _key(run)
    except _UNUSABLE:
        return False


def _stored(run: Run) -> Records | Message | None:
    path = run.products.readings
    try:
        with open_regular(path) as file:
            if weak_part(path):
                return Message("readings-foreign", path=f"{path}")
            with zipfile.ZipFile(file) as archive:
                if archive.comment != _key(run):
                    return Message("readings-stale", path=f"{path}")
                if any(each.compress_type for each in archive.infolist()):
                    raise ValueError("compressed: its size is not that of its members")
                words = _Words.model_validate_json(archive.read("words.json"))
                about = pl.read_parquet(archive.read("executions.parquet")).to_dict(as_series=False)
                columns = pl.read_parquet(archive.read("records.parquet"))
                messages = [*words.messages, NOTHING]
                for name in _MESSAGES:
                    about[name] = [messages[number] for number in about[name]]
                about["disturbers"] = [
                    tuple((name, share) for name, share in json.loads(shares))
                    for shares in about["disturbers"]
                ]
                return Records(
                    run.id,
                    [*map(Execution, *(about[name] for name in Execution._fields))],
                    [Measurand(*each) for each in words.measurands],
                    words.nodes,
                    words.messages[: words.reasons],
                    **{name: np.array(columns[name]) for name in NUMBERS},
                )
    except FileNotFoundError:
        return None
    except _UNUSABLE as error:
        return Message("readings-damaged", path=f"{path}", problem=f"{type(error).__name__}")


def _key(run: Run) -> bytes:
    """Return the digest of the evidence, of its place, which reasons name, and of the reader."""
    assert run.seal is not None
    rooms = (*READERS, PACKAGES) if run.plan.kind else READERS
    return (
        sha256(f"{run.seal.digest}\n{run.folder}\n{_reader(rooms)}".encode()).hexdigest().encode()
    )


@cache
def _reader(rooms: tuple[str, ...]) -> str:
    """Return the digest of all that decides what is read: code, data, versions of libraries."""
    digest = sha256()
    versions = (platform.python_version(), np.__version__, pl.__version__, pydantic.VERSION)
    digest.update(" ".join(versions).encode())
    package = Path(proofmark.__file__).parent
    for room in rooms:
        for path in sorted((package / room).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                content = sha256(path.read_bytes()).hexdigest()
                digest.update(f"\n{path.relative_to(package)} {content}".encode())
    return digest.hexdigest()


def _members(records: Records) -> Iterator[tuple[str, bytes]]:
    numbers, first = dict[Message, int](), len(records.reasons)
    columns = dict(zip(Execution._fields, zip(*records.executions, strict=True), strict=False))
    if columns:
        for name in _MESSAGES:
            found = columns[name]
            columns[name] = tuple(first + intern(numbers, each) if each else -1 for each in found)
        columns["disturbers"] = tuple(map(json.dumps, columns["disturbers"]))
    words = _Words(
        measurands=[*records.measurands],
        nodes=[*records.nodes],
        reasons=first,
        messages=[*records.reasons, *numbers],
    )
    yield "words.json", words.model_dump_json().encode()
    yield "executions.parquet", parquet(pl.DataFrame(columns, _EXECUTION))
    yield "records.parquet", parquet(pl.DataFrame(records.numbers))
