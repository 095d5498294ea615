"""The baseline of a partition, and figures that another site accepted.

A baseline has the figures and the state of the nodes of accepted runs. ``proofmark baseline
accept`` writes it into the inventory of the site. Each later run of the partition gets a copy.

``proofmark baseline export`` writes a file for other sites. Such a file is data of others. A site
takes it by its name in ``partition.expected.elsewhere``. The file names no host, no address and no
path (`identifying`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AwareDatetime, Field, PlainSerializer, PlainValidator

from proofmark.common.errors import bad_input, nearest
from proofmark.common.files import (
    copy_whole,
    read_json,
    read_regular,
    write_atomic,
    write_atomic_bytes,
)
from proofmark.common.message import Message
from proofmark.common.nodesets import hosts_of
from proofmark.common.shared_models import StrictModel
from proofmark.site.partition import PREDICTED

if TYPE_CHECKING:
    import polars as pl
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from typing import Self

import yaml
from pydantic import model_validator

from proofmark.cases.vocabulary import Scalar
from proofmark.common.errors import BadInput, InputError
from proofmark.common.yaml_models import load, placed
from proofmark.site.hardware_limits import product_name

FOLDER = "baselines"
"""The folder of the inventory with the baselines of each partition."""
ACCEPTED = "accepted"
"""The baseline with which a run is compared if no other is named."""
NONE = "none"
"""The name that stands for no comparison."""
"""The command that takes predictions."""
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
_Text = Annotated[str, Field(min_length=1)]
_Count = Annotated[int, Field(ge=0)]


class Capacity(StrictModel):
    """The hardware that a node offered to the run. A node must not lose any of it.

    Attributes:
        cores, sockets, numa: numbers of cores, sockets and NUMA domains; `numa` 0 if not known.
        memory_bytes: the memory of the machine.
        dimms: the number of DIMMs; 0 if they are not known.
        ports: the number of active ports of the fabric.
        dimm_mt_per_s: the speed of the slowest DIMM; 0 if it is not known.
        port_gbit_per_s: the rate of each of `ports`, the fastest first; empty if not known.
        accelerators: the number of accelerators; 0 if it is not known.
        virtual: the hypervisor; empty for a real node; None if an earlier version accepted it.
    """

    cores: _Count
    sockets: _Count
    numa: _Count
    memory_bytes: _Count
    dimms: _Count
    ports: _Count
    dimm_mt_per_s: _Count = 0
    port_gbit_per_s: tuple[float, ...] = ()
    accelerators: _Count = 0
    virtual: str | None = None


class AcceptedNodes(StrictModel):
    """The state of the nodes of a node set; traits by their name (`judge.traits`)."""

    nodes: _Text
    capacity: Capacity
    traits: dict[str, str]


@dataclass(frozen=True)
class ProgramTrait:
    """A property of a package or program in which two runs can differ.

    Attributes:
        code: of its text.
        name: of the program, library or variable; empty for a property of the package.
        package: empty where the package is known.
    """

    code: str
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


def _read_trait(value: Any) -> ProgramTrait:
    """Return a trait from the form of its text in a file.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, ProgramTrait):
        return value
    try:
        trait = value["fields"]["trait"]
        field = NAMED_TRAITS.get(trait["code"])
        name = trait["fields"][field] if field else ""
        read = ProgramTrait(trait["code"], name, value["fields"]["package"])
        _ = read.text  # an unknown code has none
    except (LookupError, TypeError) as error:
        raise ValueError(f"no trait: {error}") from None
    return read


StoredTrait = Annotated[
    ProgramTrait,
    PlainValidator(_read_trait),
    PlainSerializer(lambda trait: trait.text.stored()),
]


class AcceptedPrograms(StrictModel):
    """The programs of a package, as far as they decide its figures.

    Attributes:
        package: as the cases name it.
        version: of the package.
        blas: family and version of its BLAS; empty if it calls none, or an unknown one.
        kernel: the kernel that the BLAS chose; empty if it is not known.
        mpi: family and version of its MPI; empty if it calls none, or an unknown one.
        transport: the variables that choose the transport of its MPI
            (`proofmark.site.execution.transports`).
        streaming_stores: whether its stores pass the caches on x86; None if it is not known.
    """

    package: _Text
    version: str
    blas: str = ""
    kernel: str = ""
    mpi: str = ""
    transport: dict[str, str] = {}
    streaming_stores: bool | None = None


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
        programs: what decides the figures of the programs, by the value of the column ``program``;
            empty if an earlier version accepted the run.
        network: the technology between the nodes, as the site states it; else empty.
    """

    run: _Name
    accepted: AwareDatetime
    signer: _Text
    checksums: _Text
    verdict: Literal["PASS", "UNJUDGED"]
    reason: str = ""
    libraries: tuple[tuple[StoredTrait, str], ...] = ()
    programs: dict[str, AcceptedPrograms] = {}
    network: str = ""


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
    site: _Text
    partition: _Text
    origin: _Text
    label: str = ""
    runs: tuple[AcceptedRun, ...]
    nodes: tuple[AcceptedNodes, ...]
    figures: _Text

    def states(self) -> dict[str, AcceptedNodes]:
        """Return the state of each node."""
        states: dict[str, AcceptedNodes] = {}
        for state in self.nodes:
            states |= {host: state for host in hosts_of(state.nodes)}
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
    try:
        content = read_regular(path)
    except FileNotFoundError:
        raise bad_input(path, "", "no such file", "a whole baseline") from None
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


IN_BASELINES = f"{FOLDER}/elsewhere"
"""The folder of the inventory with the files of other sites."""
NEAR = 0.02
"""A size that a plan computes from the memory of a node differs by less: 2 %."""
LEAST_SIZE = 1000
"""Smaller whole numbers are counts, which are the same or not."""

_ShortText = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[ -~]+$")]
_Release = Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9 ._:+~-]*$")]
_Word = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][\w.+*-]*$")]
_Transports = Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9_^,;:*+-]+$")]
_Key = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=100)]
_AtLeastOne = Annotated[int, Field(ge=1)]
_Positive = Annotated[float, Field(gt=0)]
_Part = Annotated[float, Field(ge=0, lt=1)]
_Setting = Annotated[str, Field(max_length=200, pattern=r"^[ -~]*$")] | int | float


class NodeModel(StrictModel):
    """A kind of node. A part that is None or empty is not known.

    Attributes:
        processor: its one name (`product_name`).
        sockets, cores: their numbers in a node.
        memory_gib: the memory, rounded.
        dimms: the number of memory modules.
        dimm_mt_per_s: the speed of the slowest one.
        port_gbit_per_s: the rate of each active port of the fabric, the fastest first.
        accelerators: their number.
        virtual: the hypervisor; empty for a real node.
    """

    processor: str
    sockets: int
    cores: int
    memory_gib: int | None = None
    dimms: int | None = None
    dimm_mt_per_s: int | None = None
    port_gbit_per_s: tuple[float, ...] = ()
    accelerators: int | None = None
    virtual: str = ""

    def __str__(self) -> str:
        """Return the model in words."""
        cores = f"{self.sockets} × {self.cores // self.sockets} cores"
        parts = [self.processor, cores]
        parts += [f"{self.memory_gib} GiB"] if self.memory_gib else []
        speed = f" at {self.dimm_mt_per_s} MT/s" if self.dimm_mt_per_s else ""
        parts += [f"{self.dimms} modules{speed}"] if self.dimms else []
        parts += [self.virtual] if self.virtual else []
        return ", ".join(parts)


class StatedModel(NodeModel):
    """The kind of node in a file of another site."""

    processor: _ShortText
    sockets: _AtLeastOne
    cores: _AtLeastOne
    memory_gib: _AtLeastOne | None = None
    dimms: _AtLeastOne | None = None
    dimm_mt_per_s: _AtLeastOne | None = None
    port_gbit_per_s: tuple[_Positive, ...] = ()
    accelerators: _AtLeastOne | None = None
    virtual: Annotated[str, Field(max_length=50, pattern=r"^[a-z0-9-]*$")] = ""

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if self.processor != product_name(self.processor):
            raise ValueError(f"processor: the one name {product_name(self.processor)!r}")
        return self


class Programs(StrictModel):
    """The programs of figures, as far as they decide them.

    Attributes:
        package: as the cases name it.
        version: its release.
        blas: family and release of its BLAS; empty if it calls none.
        kernel: the kernel that the BLAS chose; it is information.
        mpi: family and release of its MPI; empty if it calls none.
        transport: the variables that choose the transport of the MPI, and their values.
        streaming_stores: whether its stores pass the caches on x86; None if that is not known.
    """

    package: _Key
    version: _Release
    blas: _Release = ""
    kernel: _Release = ""
    mpi: _Release = ""
    transport: dict[Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9_]*$")], _Transports] = {}
    streaming_stores: bool | None = None


class AcceptedFigure(StrictModel):
    """A figure that another site accepted.

    Attributes:
        model, programs: keys of the file.
        nodes: how many nodes measured it together.
        network: the technology between them, as their site states it; else empty.
        mode: the firmware mode.
        settings: the parameters of the figure by name.
        value: the median of `measured` nodes, or sets of nodes, in `unit`; of each the median.
        measured: their number.
        repeats: the least number of values of one of them.
        spread_nodes: the standard deviation of their medians, as a part of `value`; None for one.
        spread_repeats: that of the values of one of them; None without repeats.
    """

    model: _Key
    programs: _Key
    case: _Key
    benchmark: _Word
    metric: _Word
    unit: Annotated[str, Field(max_length=30, pattern=r"^[ -~]*$")]
    nodes: _AtLeastOne
    network: Literal["", "infiniband", "omni-path", "slingshot", "ethernet"] = ""
    mode: _Word
    placement: Annotated[str, Field(max_length=100, pattern=r"^[\w.-]*$")]
    settings: dict[_Word, _Setting] = {}
    value: _Positive
    measured: _AtLeastOne
    repeats: _AtLeastOne
    spread_nodes: _Part | None = None
    spread_repeats: _Part | None = None

    def other_settings(self, mode: str, placement: str, found: Mapping[str, Scalar]) -> list[str]:
        """Return the names of the settings that a figure with `found` has not in common."""
        names = [name for name in sorted({*found, *self.settings}) if not self._has(name, found)]
        names += ["mode"] if mode != self.mode else []
        return names + (["placement"] if placement != self.placement else [])

    def _has(self, name: str, found: Mapping[str, Scalar]) -> bool:
        if name not in found or name not in self.settings:
            return False
        return same_setting(self.settings[name], found[name])


def same_setting(one: Scalar, other: Scalar) -> bool:
    """Return whether two settings are the same, or sizes that follow from nearly the same memory.

    Two nodes of a model leave memories to their plans that differ by what their kernels keep.
    """
    if isinstance(one, str) or isinstance(other, str) or one == other:
        return one == other
    large = isinstance(one, int) and isinstance(other, int) and min(one, other) >= LEAST_SIZE
    return large and abs(one - other) <= NEAR * max(one, other)


class BaselineElsewhere(StrictModel):
    """The file of a baseline of another site.

    Attributes:
        format: of the file.
        label: who made the figures, as their site states it; empty if it states nothing.
        kit: the version of the kit that wrote the file.
        accepted: the day of the newest acceptance.
        verdict: of the newest accepted run.
        models, programs: by the keys that `figures` use.
    """

    format: Literal[1]
    label: Annotated[str, Field(max_length=100, pattern=r"^[ -~]*$")] = ""
    kit: _Release
    accepted: date
    verdict: Literal["PASS", "UNJUDGED"]
    models: dict[_Key, StatedModel]
    programs: dict[_Key, Programs]
    figures: Annotated[tuple[AcceptedFigure, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _known_keys(self) -> Self:
        for place, each in enumerate(self.figures):
            for key, name, known in (
                ("model", each.model, self.models),
                ("programs", each.programs, self.programs),
            ):
                if name not in known:
                    raise ValueError(f"figures.{place}.{key}: one of {', '.join(known)}")
        keys = Counter(each.model_dump_json(exclude=_MEASURED) for each in self.figures)
        if twice := [key for key, count in keys.items() if count > 1]:
            raise ValueError(f"figures: each of them once; twice: {twice[0]}")
        return self

    @property
    def source(self) -> str:
        """Who made the figures, when and with which kit."""
        by = f"{self.label}, " if self.label else ""
        return f"{by}accepted {self.accepted}, kit {self.kit}"


_MEASURED = {"value", "measured", "repeats", "spread_nodes", "spread_repeats"}
_PATH = re.compile(r"[/\\]")
_ADDRESS = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|(?:\b[0-9a-f]{2}:){5}[0-9a-f]{2}\b|[0-9a-f:]*::[0-9a-f:]*|@",
    re.IGNORECASE,
)
_DOMAIN = re.compile(r"\b[a-z][\w-]*(?:\.[a-z][\w-]*)*\.[a-z]{2,}\b", re.IGNORECASE)
Identity = Literal["host", "address", "path"]
"""What a text must not have."""


def identifying(text: str, names: Collection[str]) -> Identity | None:
    """Return what in a text tells which machine it is about; None if nothing does.

    Args:
        text: of a file for others.
        names: of hosts, in small letters.
    """
    small = text.casefold()
    for name in names:
        found = re.escape(name)
        if len(name) < 3:
            found = rf"(?<![a-z0-9]){found}(?![a-z0-9])"
        if re.search(found, small):
            return "host"
    if _DOMAIN.search(text):
        return "host"
    if _ADDRESS.search(text):
        return "address"
    return "path" if _PATH.search(text) else None


def names_of_hosts(hosts: Iterable[str], aliases: Mapping[str, Sequence[str]]) -> set[str]:
    """Return each name of hosts, whole and without its domain, in small letters."""
    names: set[str] = set()
    for host in hosts:
        for name in (host, *aliases.get(host, ())):
            names |= {name.casefold(), name.casefold().partition(".")[0]}
    return names - {"", "localhost"}


def texts_of_figure(figure: AcceptedFigure) -> Iterator[tuple[str, str]]:
    """Yield the texts of a figure that a program or a site chose, each with its key."""
    yield "benchmark", figure.benchmark
    yield "mode", figure.mode
    for name, value in figure.settings.items():
        yield "settings", name
        if isinstance(value, str):
            yield f"settings.{name}", value


def texts_of(content: BaselineElsewhere) -> Iterator[tuple[str, str]]:
    """Yield the texts of a file that a program or a site chose, each with its key."""
    yield "label", content.label
    for name, model in content.models.items():
        yield f"models.{name}", name
        yield f"models.{name}.processor", model.processor
        yield f"models.{name}.virtual", model.virtual
    for name, programs in content.programs.items():
        yield f"programs.{name}", name
        for key in ("version", "blas", "kernel", "mpi"):
            yield f"programs.{name}.{key}", getattr(programs, key)
        for variable, value in programs.transport.items():
            yield f"programs.{name}.transport.{variable}", value
    for place, figure in enumerate(content.figures):
        for key, text in texts_of_figure(figure):
            yield f"figures.{place}.{key}", text


NO_IDENTITY = "a text without a name of a host, an address and a path"


def identity_mistakes(
    file: Path, content: BaselineElsewhere, names: Collection[str]
) -> Iterator[InputError]:
    """Yield a mistake for each text of a file that tells which machine it is about."""
    for key, text in texts_of(content):
        if found := identifying(text, names):
            where, _ = placed([file], key.split("."))
            yield InputError(where or f"{file}", key, f"{text!r}: {found}", NO_IDENTITY)


def read_elsewhere(
    inventory: Path, files: Sequence[str], names: Collection[str]
) -> tuple[BaselineElsewhere, ...]:
    """Return the files of other sites in `IN_BASELINES`.

    Args:
        names: of the hosts of the site, in small letters.

    Raises:
        BadInput: a file is missing or wrong. It has the mistakes of all files.
    """
    found = []
    mistakes: list[InputError] = []
    for name in files:
        path = inventory / IN_BASELINES / name
        try:
            content = load(path, BaselineElsewhere)
        except BadInput as error:
            mistakes += error.mistakes
            continue
        mistakes += identity_mistakes(path, content, names)
        found.append(content)
    if mistakes:
        raise BadInput(*mistakes)
    return tuple(found)


def as_yaml(content: BaselineElsewhere) -> str:
    """Return the text of the file."""
    stored = content.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(stored, sort_keys=False, width=100)


def model_of(processor: str, capacity: Capacity) -> StatedModel:
    """Return the model of a node with an accepted processor and capacity."""
    return StatedModel(
        processor=product_name(processor),
        sockets=capacity.sockets,
        cores=capacity.cores,
        memory_gib=round(capacity.memory_bytes / 2**30) or None,
        dimms=capacity.dimms or None,
        dimm_mt_per_s=capacity.dimm_mt_per_s or None,
        port_gbit_per_s=capacity.port_gbit_per_s,
        accelerators=capacity.accelerators or None,
        virtual=capacity.virtual or "",
    )
