"""The baseline of a partition.

A baseline has the figures and the state of the nodes of accepted runs. ``proofmark baseline
accept`` writes it into the inventory of the site. Each later run of the partition gets a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field

from proofmark.cases.vocabulary import Text
from proofmark.common.errors import bad_input, nearest
from proofmark.common.files import (
    copy_whole,
    read_json,
    read_regular,
    write_atomic,
    write_atomic_bytes,
)
from proofmark.common.message import Message
from proofmark.common.message_table import MESSAGES
from proofmark.common.nodesets import hosts_of
from proofmark.common.shared_models import StrictModel
from proofmark.site.installed_parts import Parts
from proofmark.site.partition import PREDICTED

if TYPE_CHECKING:
    import polars as pl

FOLDER = "baselines"
"""The folder of the inventory with the baselines of each partition."""
ACCEPTED = "accepted"
"""The baseline with which a run is compared if no other is named."""
NONE = "none"
"""The name that stands for no comparison."""
STATE, FIGURES = "baseline.json", "figures.parquet"
"""The files of a baseline: runs and nodes; the values of the figures."""

COLUMNS: Mapping[str, type] = {
    "run": str,
    "case": str,
    "benchmark": str,
    "metric": str,
    "unit": str,
    "origin": str,
    "mode": str,
    "placement": str,
    "parameters": str,
    "program": str,
    "node": str,
    "kind": str,
    "value": float,
}
"""The columns of `FIGURES`, one row per repeat of a figure. `parameters` is JSON with sorted keys,
`program` the digest of the programs, `kind` the hardware of the nodes and their number."""

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]


class AcceptedNodes(StrictModel):
    """The state of the nodes of a node set; traits by their name (`judge.traits`).

    Attributes:
        parts: what each node offered to the run. A node must not lose any of it.
    """

    nodes: Text
    parts: Parts
    traits: dict[str, str]


def _known(code: str) -> str:
    if code not in MESSAGES:
        raise ValueError(f"no trait: {code!r}")
    return code


@dataclass(frozen=True)
class ProgramTrait:
    """A property of a package or program in which two runs can differ.

    Attributes:
        code: of its text.
        name: of the program, library or variable; empty for a property of the package.
        package: empty where the package is known.
    """

    __pydantic_config__ = StrictModel.model_config

    code: Annotated[str, AfterValidator(_known)]
    name: str = ""
    package: str = ""

    @property
    def text(self) -> Message:
        """The trait for people."""
        field = NAMED_TRAITS.get(self.code)
        own = Message(self.code, **({field: self.name} if field else {}))
        return Message("trait-of", package=self.package, trait=own) if self.package else own


NAMED_TRAITS: Mapping[str, str] = {
    "trait-program": "program",
    "trait-library": "library",
    "trait-variable": "name",
}
"""The field of the text with the name, for the codes that have one."""


class AcceptedRun(StrictModel):
    """A run of the baseline.

    Attributes:
        run: its id.
        accepted: the time of the acceptance.
        signer: the principal that signed the run.
        checksums: SHA-256 of its signed statement.
        verdict: the word of its verdict.
        reason: the reason of an acceptance although the verdict is not PASS; else empty.
        libraries: the traits of the programs and their libraries, each with its value.
    """

    run: _Name
    accepted: AwareDatetime
    signer: Text
    checksums: Text
    verdict: Literal["PASS", "UNJUDGED"]
    reason: str = ""
    libraries: tuple[tuple[ProgramTrait, str], ...] = ()


class Baseline(StrictModel):
    """The accepted runs of a partition, the newest last, and the state of the nodes in the newest.

    Attributes:
        name: of the baseline.
        origin: of its figures; figures of another origin are never compared with them.
        label: who made the figures, if this kit did not; else empty.
        figures: SHA-256 of the file of the figures.
    """

    format: Literal[1] = 1
    name: _Name
    site: Text
    partition: Text
    origin: Text
    label: str = ""
    runs: tuple[AcceptedRun, ...]
    nodes: tuple[AcceptedNodes, ...]
    figures: Text

    def states(self) -> dict[str, AcceptedNodes]:
        """Return the state of each node."""
        states: dict[str, AcceptedNodes] = {}
        for state in self.nodes:
            states |= dict.fromkeys(hosts_of(state.nodes), state)
        return states


def baseline_folder(inventory: Path, partition: str, name: str) -> Path:
    """Return the folder of a baseline in the inventory of its site."""
    return inventory / FOLDER / partition / name


def known_baselines(inventory: Path, partition: str) -> list[str]:
    """Return the names of the baselines of a partition."""
    return sorted(path.parent.name for path in (inventory / FOLDER / partition).glob(f"*/{STATE}"))


def chosen_baseline(inventory: Path, partition: str, name: str | None) -> Path | None:
    """Return the folder of the baseline `name`; None if the run is compared with none.

    Without a name it is `ACCEPTED`, if that exists.

    Raises:
        BadInput: the partition has no baseline `name`.
    """
    names = known_baselines(inventory, partition)
    if name == NONE or (not name and ACCEPTED not in names):
        return None
    if name and name not in names:
        accepted = ", ".join([*names, NONE])
        if "/" in name:
            accepted = f"the name of a baseline, not a folder: {accepted}"
        raise bad_input("baseline", "", f"{name!r}{nearest(name, names)}", accepted)
    return baseline_folder(inventory, partition, name or ACCEPTED)


def read_baseline(folder: Path) -> tuple[Baseline, pl.DataFrame]:
    """Return the baseline in `folder` and its figures, with the columns of `COLUMNS`.

    Raises:
        BadInput: a file is missing or damaged, or the figures are not those of the baseline.
    """
    baseline = read_json(folder / STATE, Baseline)
    path = folder / FIGURES
    content = read_regular(path, needed="a whole baseline")
    if (found := sha256(content).hexdigest()) != baseline.figures:
        raise bad_input(path, "", f"SHA-256 {found[:12]}", f"{baseline.figures[:12]} of {STATE}")
    import polars as pl  # most commands read no baseline

    figures = pl.read_parquet(content)
    if figures.schema != pl.Schema(COLUMNS):
        raise bad_input(path, "", f"the columns {figures.columns}", f"{list(COLUMNS)}")
    return baseline, figures


def write_baseline(folder: Path, baseline: Baseline, figures: pl.DataFrame) -> Baseline:
    """Write a baseline; the file with the runs is last. Return it with the digest of `figures`."""
    from proofmark.common.files import parquet

    folder.mkdir(parents=True, exist_ok=True)
    content = parquet(figures)
    write_atomic_bytes(folder / FIGURES, content)
    written = baseline.model_copy(update={"figures": sha256(content).hexdigest()})
    write_atomic(folder / STATE, written.model_dump_json(indent=1) + "\n")
    return written


def refuse_predicted(file: Path | str, origin: str) -> None:
    """Refuse predicted figures as a baseline: a prediction is no acceptance.

    Raises:
        BadInput: `origin`, which `file` states, is predicted.
    """
    if origin == PREDICTED:
        raise bad_input(file, "origin", PREDICTED, "measured figures")


def copy_baseline(source: Path, target: Path) -> None:
    """Copy the baseline in the folder `source` to the new folder `target`.

    Raises:
        BadInput: `source` is no baseline, it is damaged, or its figures are predicted.
    """
    baseline, _ = read_baseline(source)
    refuse_predicted(source / STATE, baseline.origin)
    target.mkdir(parents=True)
    for name in (STATE, FIGURES):
        copy_whole(source / name, target / name)
