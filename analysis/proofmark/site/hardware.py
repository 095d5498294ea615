"""What an inventory states about a node: its hardware, and the modes that its firmware sets."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from proofmark.cases.vocabulary import Name, Slug, Text
from proofmark.common.errors import KeyMistake
from proofmark.common.input_limits import MAX_COUNT, MAX_CPUS
from proofmark.common.shared_models import StrictModel
from proofmark.site.hardware_limits import KNOWN_RATES, Positive, link, shown_gbit

CURRENT = "current"
"""The only mode of a partition that declares none: the mode that its nodes are in."""
UNRECORDED = "not_recorded"
"""The mode of outputs that state none. No mode of an inventory can have this name (`Slug`)."""
Count = Annotated[int, Field(gt=0, le=MAX_COUNT)]


NODE = "node"
"""The key of `StatedNode` below ``partition``."""
MEMORY, RAILS, ACCELERATORS = "memory", "rails", "accelerators"
"""The keys of `StatedMemory`, `StatedRails` and `StatedAccelerators` below `NODE`."""
JUDGES = ("sockets", "cores", "avx_hz", MEMORY, RAILS, ACCELERATORS)
"""The facts that only judge. Each needs its source."""


def between(least: float, most: float, *units: float) -> AfterValidator:
    """Return the check of a number in its base unit.

    A number in another unit is refused with its value in the base unit.

    Args:
        units: the sizes of the units that data sheets have, in base units.
    """

    def checked(value: float) -> float:
        if least <= value <= most:
            return value
        meant = next((value * unit for unit in units if least <= value * unit <= most), None)
        hint = "" if meant is None else f"; did you mean {meant:.12g}?"
        raise ValueError(f"a number from {least:.4g} to {most:.4g}{hint}")

    return AfterValidator(checked)


Hertz = Annotated[float, between(1e8, 1e10, 1e6, 1e9)]
"""The frequency of a core in Hz; data sheets have MHz and GHz."""
Size = Annotated[Count, between(2**26, 2**60, 2**30)]
"""A memory in bytes; data sheets have GiB."""
BytesPerSecond = Annotated[float, between(1e6, 3.2e11, 1e9 / 8, 1 / 8)]
"""The rate of a link in bytes/s, at most that of 12 lanes of XDR. Data sheets give it in Gb/s."""
RailName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+:[0-9]+$")]


def _known_rate(rate: float | str) -> float | str:
    if isinstance(rate, str) and link(rate) is None:
        raise ValueError(f"bytes/s, or {KNOWN_RATES}: it is not in the table of links")
    return rate


Rate = Annotated[BytesPerSecond | Text, AfterValidator(_known_rate)]
"""The rate of one direction of a link: the text that sysfs has for the port, if
``site/data/links.yml`` has it (``100 Gb/sec (4X EDR)``), or bytes/s."""


def bytes_per_s(rate: float | str | None) -> float | None:
    """Return `rate`, a `Rate`, in bytes/s; None if it is None."""
    row = link(rate) if isinstance(rate, str) else None
    return row.bytes_per_s if row else rate if isinstance(rate, float) else None


class StatedMemory(StrictModel):
    """The memory of one node.

    Attributes:
        bytes: the memory, if it does not follow from the modules. Programs can use the topology's
            memory, or this if it is less. A node may show 5 % less, which firmware and kernel
            reserve.
        modules: the number of modules.
        module_bytes: the size of each.
        mt_per_s: the speed at which they must run, in MT/s.
        channels: the filled channels of all sockets. With `mt_per_s` they replace what the probe
            found, and give the bandwidth: channels × 8 bytes × MT/s.
        fast_bytes_per_s: bandwidth of the memory in the package of the processors.
    """

    bytes: Size | None = None
    modules: Count | None = None
    module_bytes: Size | None = None
    mt_per_s: Annotated[int, between(100, 50_000, 1e-6)] | None = None
    channels: Annotated[int, between(1, 256)] | None = None
    fast_bytes_per_s: Annotated[float, between(1e9, 1e15, 1e9)] | None = None

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.module_bytes and not self.modules:
            raise KeyMistake("only accepted with modules", "module_bytes")
        if self.module_bytes and self.bytes:
            raise KeyMistake("not with module_bytes, from which the memory follows", "bytes")
        return self

    @property
    def all_bytes(self) -> int | None:
        """The memory; None if nothing states it."""
        if self.modules and self.module_bytes:
            return self.modules * self.module_bytes
        return self.bytes

    @property
    def least_modules(self) -> int | None:
        """The number of modules: at least one in each filled channel; None if neither is stated."""
        return self.modules or self.channels

    @property
    def channel_speed(self) -> tuple[int, int] | None:
        """The filled channels and the MT/s of a module, if both are stated."""
        return (self.channels, self.mt_per_s) if self.channels and self.mt_per_s else None


class StatedRails(StrictModel):
    """The network ports of one node that MPI uses.

    Attributes:
        count: the number of ports that must be active, if `adapters` does not name them.
        rate: of one direction of each port. It replaces what the probe found.
        latency_s: of a small message between two adapters.
        adapters: the NUMA domain of each rail by its name (``mlx5_0:1``, ``hfi1_0:1``, ``cxi0:1``).
            The suites measure each of them alone. Without it, the rails of the probed node count.
    """

    count: Count | None = None
    rate: Rate | None = None
    latency_s: Positive | None = None
    adapters: dict[RailName, Annotated[int, Field(ge=0, le=MAX_CPUS)]] = {}

    @model_validator(mode="after")
    def _one_count(self) -> Self:
        if self.count and self.adapters:
            raise KeyMistake("not with adapters, which are the ports", "count")
        return self

    @property
    def number(self) -> int | None:
        """The number of ports that must be active; None if it is not stated."""
        return self.count or len(self.adapters) or None

    @property
    def bytes_per_s(self) -> float | None:
        """The data rate of one direction of a port; None if it is not stated."""
        return bytes_per_s(self.rate)

    @property
    def gbit_per_s(self) -> float | None:
        """The rate of a port as Linux prints it; None if it is not stated."""
        if isinstance(self.rate, str):
            return shown_gbit(self.rate)
        return self.rate and self.rate * 8 / 1e9


class StatedAccelerators(StrictModel):
    """The GPUs or other accelerators of one node. The kit measures none of them.

    Attributes:
        count: the number that must answer.
        lanes: the width of the PCIe link of each.
        gt_per_s: the rate that the link of each must be able to have, in GT/s: 16 for Gen4.
        ecc: whether the memory of each has ECC.
    """

    count: Count
    lanes: Annotated[int, Field(ge=1, le=32)] | None = None
    gt_per_s: Positive | None = None
    ecc: Literal[True] | None = None


class StatedNode(StrictModel):
    """What the site states about one node: what it is made of. A node with less has a fault.

    With a topology, plans are made for this node, and none is probed before a run. Without one, the
    node must be this machine, which is probed. A stated part is not compared with other nodes.

    Attributes:
        cpu_model: the name of the processor, in any spelling; needed with `topology`. A node with
            another one has a fault.
        architecture: archspec's name of the microarchitecture; needed with `topology`.
        topology: hwloc's synthetic notation, or the name of a file of hwloc's XML (``*.xml``) in
            the folder of the partition's variables. A mode may have another topology.
        operating_system: of the nodes. Steps run on Linux; for others, plans can be made.
        sockets: the number of processors that were bought.
        cores: the number of cores of all processors that were bought.
        clock_hz: nominal frequency of a core; with `flop_per_cycle` it gives the nominal peak.
        avx_hz: frequency that all cores sustain under the widest vector instructions.
        flop_per_cycle: of one core, in double precision.
        llc_bytes: all caches of the last level, if the topology has no caches or another size.
        sources: the source of each fact, by key.
        assumed: facts without a source, by key. The plan shows them.
    """

    cpu_model: Text | Literal[""] = ""
    architecture: Slug | Annotated[str, Field(pattern=r"^[a-z0-9_]*$")] = ""
    topology: Text | Literal[""] = ""
    operating_system: Literal["linux", "aix"] = "linux"
    sockets: Count | None = None
    cores: Count | None = None
    clock_hz: Hertz | None = None
    avx_hz: Hertz | None = None
    flop_per_cycle: Annotated[int, between(1, 128)] | None = None
    llc_bytes: Count | None = None
    memory: StatedMemory = StatedMemory()
    rails: StatedRails = StatedRails()
    accelerators: StatedAccelerators | None = None
    sources: dict[str, Text] = {}
    assumed: dict[str, Text] = {}

    @model_validator(mode="after")
    def _named(self) -> Self:
        for key in ("cpu_model", "architecture"):
            if self.topology and not getattr(self, key):
                raise KeyMistake("a name, because topology is stated", key)
        return self

    @model_validator(mode="after")
    def _sourced(self) -> Self:
        given = self.model_dump(include=set(JUDGES), exclude_defaults=True)
        if lacking := [key for key in given if key not in self.sources | self.assumed]:
            raise KeyMistake(f"the document that states {lacking[0]}", "sources", lacking[0])
        return self

    def source(self, key: str) -> str:
        """Return what states the fact `key`."""
        return self.sources.get(key) or self.assumed.get(key) or f"partition.{NODE}"


def _setting(given: Any) -> Any:
    """Return `given` as text: YAML reads ``on`` as true, and 4 as a number."""
    if isinstance(given, bool):
        return "on" if given else "off"
    return str(given) if isinstance(given, int) else given


SettingValue = Annotated[str, BeforeValidator(_setting)]


class Mode(StrictModel):
    """A state of a node that the firmware sets.

    Attributes:
        settings: the state in the firmware's terms (``cluster: Quadrant``, ``memory: Flat``), or in
            abstract ones (``smt: off``, ``numa_per_socket: 4``; `proofmark.site.bmc_vendors`).
        topology: of a node in this mode, if it is not that of `StatedNode`.
    """

    settings: dict[str, SettingValue] = {}
    topology: Text | None = None


Modes = Annotated[
    dict[Slug, Mode],
    Field(min_length=1),
    BeforeValidator(
        lambda given: {name: {} for name in given} if isinstance(given, list) else given,
        json_schema_input_type=dict[Slug, Mode] | list[Slug],
    ),
]
Facts = dict[Name, str | int | float]
