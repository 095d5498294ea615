"""A site: its Ansible inventory, read with Ansible's own library so that both always agree."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from archspec.cpu import TARGETS
from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from proofmark.cases.models import Reference, Slug
from proofmark.common.errors import BadInput, Mistake, bad_input, nearest
from proofmark.common.nodesets import Nodes
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import accepted_keys, placed
from proofmark.site.firmware import SSH, Firmware, wanted
from proofmark.site.hardware import (
    CURRENT,
    Fabric,
    Facts,
    FileSystem,
    Hardware,
    Mode,
    Modes,
    Queue,
    StandIns,
    Starting,
)

COMPUTE = "compute"
"""The parent group of all partitions; plays target it."""


class Mount(StrictModel):
    """What the kit mounts on the nodes, and takes away again; without it the kit only checks.

    ``source`` is needed where the type's mount command names it otherwise than ``/proc/mounts``.
    """

    point: str = Field(pattern=r"^/.")
    source: str | None = None
    options: list[str] = []


class Scratch(StrictModel):
    """The directory in which benchmarks write, and what it must be.

    ``type``, ``source`` (both as in ``/proc/mounts``) and ``off_root`` are demands that the guard
    enforces; None or False demand nothing. ``layout`` is how new files are laid out, by the names
    that the type's command has for it (``stripe_count``, ``stripe_size``).
    """

    path: str = Field(pattern=r"^/")
    type: str | None = None
    source: str | None = None
    off_root: bool = False
    mount: Mount | None = None
    layout: dict[str, str | int] = {}

    @model_validator(mode="after")
    def _mounted_and_demanded(self) -> Self:
        if self.mount is None:
            return self
        if self.type is None or not (self.source or self.mount.source):
            raise ValueError("a mount needs type and source, to tell it from another one")
        if not f"{self.path}/".startswith(f"{self.mount.point.rstrip('/')}/"):
            raise ValueError(f"path {self.path} does not lie under the mount point")
        return self


def _known_target(name: str) -> str:
    if name and name not in TARGETS:
        raise ValueError(f"{name!r} is no processor that archspec knows{nearest(name, TARGETS)}")
    return name


class Preinstalled(StrictModel):
    """One package that the site has already.

    Programs are relative to ``prefix``, ``bin/<program>`` where not told. The site's ``modules``
    are loaded first, then ``environment`` is set. ``target`` is archspec's name of the processor
    that it was built for: told, no job starts it on a node that lacks what it needs.
    """

    prefix: str = Field(pattern=r"^/")
    version: str
    target: Annotated[str, AfterValidator(_known_target)] = ""
    programs: dict[str, str] = {}
    modules: list[str] = []
    environment: dict[str, str] = {}


class Limit(Reference):
    """A contract limit of the site: a reference that also names its case."""

    case: Slug
    kind: Literal["contract"] = "contract"


class Partition(StrictModel):
    """What the kit must know of one partition: the variable ``partition`` of its group.

    ``hardware: discovered`` asks the machine; ``run_user`` None is whoever starts the play.
    ``current_mode`` is the one the machine stands in, the first of ``modes`` if not told;
    ``facts`` are further names for the expressions of the cases, such as what the environment was
    built with. ``preinstalled`` says where programs are, for the origin of that name.
    ``nodes_per_job`` is the most that the site gives to one job. ``family_level`` is
    the probability that any node of a healthy partition is called an outlier. ``firmware`` None is
    firmware that nobody has described: no other mode than the current one is ever entered.
    ``stand_ins`` are for virtual nodes only, whose records are emulated.
    """

    hardware: Annotated[
        Annotated[Literal["discovered"], Tag("discovered")] | Annotated[Hardware, Tag("declared")],
        Discriminator(lambda given: "discovered" if isinstance(given, str) else "declared"),
    ]
    environment: Slug
    scheduler: Slug
    provision_from: Literal["system", "spack", "easybuild", "preinstalled"]
    preinstalled: dict[Slug, Preinstalled] = {}
    scratch: Scratch
    run_user: str | None = None
    origin: Literal["measured", "emulated"] = "measured"
    modes: Modes = {CURRENT: Mode()}
    current_mode: Slug = ""
    facts: Facts = {}
    fabric: Fabric = Fabric()
    file_systems: list[FileSystem] = []
    nodes_per_job: int | None = Field(default=None, ge=1)
    family_level: float = Field(default=0.01, gt=0, lt=1)
    firmware: Firmware | None = None
    queue: Queue = Queue()
    starting: Starting = Starting()
    stand_ins: StandIns | None = None
    limits: list[Limit] = []

    @model_validator(mode="before")
    @classmethod
    def _first_mode(cls, given: Any) -> Any:
        if isinstance(given, dict) and "current_mode" not in given:
            return {**given, "current_mode": next(iter(given.get("modes") or [CURRENT]))}
        return given

    @model_validator(mode="after")
    def _known_mode(self) -> Self:
        if self.current_mode not in self.modes:
            hint = nearest(self.current_mode, self.modes)
            raise ValueError(f"current_mode {self.current_mode!r}{hint}: one of modes")
        return self

    @model_validator(mode="after")
    def _firmware_knows_the_modes(self) -> Self:
        for name, mode in self.modes.items():
            try:
                wanted(self.firmware, mode.settings) if self.firmware else None
            except KeyError as error:
                raise ValueError(f"firmware.attributes: mode {name} needs {error}") from None
        return self

    @model_validator(mode="after")
    def _real_cpus(self) -> Self:
        if self.stand_ins and self.origin != "emulated":
            raise ValueError("stand_ins: only where origin is emulated")
        return self

    @property
    def scratches(self) -> dict[str, FileSystem]:
        """The file systems by name; without further ones, that of ``scratch``."""
        own = [FileSystem(name="scratch", path=self.scratch.path)]
        return {each.name: each for each in self.file_systems or own}


class Site(StrictModel):
    """One partition's hosts under a limit, and how they are reached.

    ``reach`` is the command that runs ``sh -s`` on a node, whose name replaces ``{node}``.
    ``partition_hosts`` are all of the partition, in the inventory's order: by their numbers the
    switch levels are counted.
    """

    name: str
    inventory: Path
    limit: str
    partition_name: str
    partition: Partition
    hosts: tuple[str, ...]
    connection: str
    reach: list[str] = [*SSH]
    partition_hosts: Nodes = []

    @cached_property
    def _numbers(self) -> dict[str, int]:
        hosts = self.partition_hosts or self.hosts
        return {host: number for number, host in enumerate(hosts)}

    def location(self, host: str) -> dict[str, str]:
        """Return the switch of each level, and the rack, of `host`."""
        return self.partition.fabric.location(self._numbers[host], host)

    def pair_apart(self, level: str) -> list[str]:
        """Return the first two hosts whose nearest common switch level is `level`, or nothing."""
        fabric, numbers = self.partition.fabric, self._numbers
        wanted = next((each for each in fabric.levels if each.name == level), None)
        first: dict[str | None, str] = {}
        for host in self.hosts:
            here = (numbers[host], host)
            other = first.setdefault(wanted.group(*here) if wanted else None, host)
            if other != host and fabric.apart((numbers[other], other), here) == level:
                return [other, host]
        return []

    @property
    def facts(self) -> Path:
        """Where the inventory keeps the partition's facts."""
        return self.inventory / "group_vars" / self.partition_name


def choose_inventory(given: Sequence[str], environment: Mapping[str, str] = os.environ) -> Path:
    """Return the one inventory to use: ``-i`` or ``PROOFMARK_SITE``.

    Raises:
        BadInput: none or more than one site is named, or the folder does not exist.
    """
    sites = [item for text in given for item in text.split(",") if item]
    site = environment.get("PROOFMARK_SITE")
    if site and [Path(item).name for item in sites] != [site]:
        sites.append(f"inventory/{site}")
    if len(sites) != 1:
        found = f"{len(sites)} sites ({', '.join(sites)})" if sites else "no site"
        raise bad_input("-i", "", found, "exactly one site: -i inventory/<site> or PROOFMARK_SITE")
    path = Path(sites[0])
    if not path.exists():
        there = sorted(p.name for p in path.parent.glob("*") if p.is_dir())
        hint = nearest(path.name, there)
        raise bad_input("-i", "", f"no inventory {path}{hint}", ", ".join(there) or "a folder")
    return path


def load_site(
    inventory: Path, limit: str, overrides: Mapping[str, str | None] | None = None
) -> Site:
    """Read the hosts and the partition that `limit` selects.

    `overrides` are the extra variables ``provision_from`` and ``scratch_dir``; None leaves
    what the inventory says.

    Raises:
        BadInput: the limit selects no host or hosts of several partitions, or the partition's
            facts are wrong.
    """
    found = load_sites(inventory, limit, overrides)
    if len(found) != 1:
        names = [site.partition_name for site in found]
        several = f"{limit!r}: hosts of {', '.join(names)}"
        raise bad_input("-l", "", several, "hosts of exactly one partition")
    return found[0]


def load_sites(
    inventory: Path, limit: str, overrides: Mapping[str, str | None] | None = None
) -> list[Site]:
    """Read the hosts and facts of every partition that `limit` selects, in the inventory's order.

    Raises:
        BadInput: as `load_site`, with the mistakes of all the partitions.
    """
    sites, mistakes = read_sites(inventory, limit, overrides)
    if mistakes:
        raise BadInput(*mistakes)
    if not sites:
        raise bad_input("-l", "", f"{limit!r}: no host", "hosts of a partition")
    return sites


def read_sites(
    inventory: Path,
    limit: str,
    overrides: Mapping[str, str | None] | None = None,
    broken: list[Site] | None = None,
) -> tuple[list[Site], list[Mistake]]:
    """Return the partitions whose facts are right, and the mistakes of the others.

    `broken` gets what can be read of the latter, for who looks for further mistakes.

    Raises:
        BadInput: Ansible cannot read the inventory.
    """
    sites: list[Site] = []
    mistakes: list[Mistake] = []

    def site_of(name: str, asked: _Asked, partition: Partition) -> Site:
        return Site(
            name=inventory.name,
            inventory=inventory,
            limit=limit,
            partition_name=name,
            partition=partition,
            hosts=asked.hosts,
            connection=asked.variables.get("ansible_connection", "ssh"),
            reach=_reach(asked.variables, partition.firmware),
            partition_hosts=list(asked.all_hosts),
        )

    for name, asked in _ask_ansible(inventory, limit).items():
        file = inventory / "group_vars" / name
        if "partition" not in asked.variables:
            mistakes.append(Mistake(str(file), "partition", "nothing", "the partition's facts"))
            continue
        raw = _override(asked.variables["partition"], overrides or {})
        try:
            partition = Partition.model_validate(raw)
        except ValidationError as error:
            mistakes += (_mistake(file, item) for item in error.errors())
            if broken is not None and (rest := _readable(raw, error)):
                broken.append(site_of(name, asked, rest))
            continue
        sites.append(site_of(name, asked, partition))
    return sites, mistakes


_HARMLESS: Mapping[str, Any] = {
    "hardware": "discovered",
    "environment": "local",
    "scheduler": "none",
    "provision_from": "system",
    "scratch": {"path": "/"},
}


def _readable(raw: Any, error: ValidationError) -> Partition | None:
    """Return a partition of those facts in which `error` sees nothing wrong, if they make one."""
    wrong = {item["loc"][0] for item in error.errors() if item["loc"]}
    right = {key: value for key, value in raw.items() if key not in wrong} if wrong else {}
    try:
        return Partition.model_validate({**_HARMLESS, **right})
    except ValidationError:
        return None


def variable_files(folder: Path) -> list[Path]:
    """Return the files in which Ansible looks for the variables of the group of `folder`."""
    return [folder.with_suffix(".yml"), *sorted(folder.glob("*.yml"))]


def _mistake(facts: Path, item: ErrorDetails) -> Mistake:
    key = ".".join(["partition", *map(str, item["loc"])])
    file, there = placed(variable_files(facts), ["partition", *item["loc"]])
    if there:
        key = f"{there}.{item['loc'][-1]}" if item["type"] == "missing" else there
    file = file or f"{facts}"
    if item["type"] == "extra_forbidden":
        words = accepted_keys(Partition, item["loc"])
        hint = nearest(str(item["loc"][-1]), words)
        return Mistake(str(file), key, f"unknown key{hint}", f"one of {', '.join(words)}")
    found = "nothing" if item["type"] == "missing" else repr(item["input"])
    return Mistake(str(file), key, found, item["msg"])


def _override(raw: Any, overrides: Mapping[str, str | None]) -> Any:
    if not isinstance(raw, dict):
        return raw
    changed = dict(raw)
    if source := overrides.get("provision_from"):
        changed["provision_from"] = source
    if directory := overrides.get("scratch_dir"):
        scratch = changed.get("scratch")
        changed["scratch"] = {**(scratch if isinstance(scratch, dict) else {}), "path": directory}
    return changed


class _Asked(NamedTuple):
    """A partition as Ansible sees it; the variables are those of the first host, templated."""

    hosts: tuple[str, ...]
    all_hosts: tuple[str, ...]
    variables: dict[str, Any]


def _ask_ansible(inventory: Path, limit: str) -> dict[str, _Asked]:
    """Return the partitions that have hosts under `limit`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from ansible.errors import AnsibleError
        from ansible.inventory.manager import InventoryManager
        from ansible.parsing.dataloader import DataLoader
        from ansible.plugins.loader import init_plugin_loader
        from ansible.template import Templar
        from ansible.utils.collection_loader import AnsibleCollectionConfig
        from ansible.vars.manager import VariableManager

        if AnsibleCollectionConfig.collection_finder is None:
            init_plugin_loader()  # variables may hold lookups and filters
        loader = DataLoader()
        asked: dict[str, _Asked] = {}
        try:
            manager = InventoryManager(loader=loader, sources=[str(inventory)])
            compute = manager.groups.get(COMPUTE)
            everything = {
                group.name: tuple(host.name for host in group.get_hosts())
                for group in (compute.child_groups if compute else ())
            }
            manager.subset(limit)
            chosen = {host.name: host for host in manager.get_hosts(COMPUTE) if compute}
            variables = VariableManager(loader=loader, inventory=manager)
            for name, hosts in everything.items():
                under = tuple(host for host in hosts if host in chosen)
                if not under:
                    continue
                scope = variables.get_vars(host=chosen[under[0]])
                kept = {key: scope[key] for key in _ASKED_FOR if key in scope}
                values = Templar(loader=loader, variables=scope).template(kept)
                asked[name] = _Asked(under, hosts, _plain(values))
        except AnsibleError as error:
            raise bad_input(inventory, "", str(error), "a valid Ansible inventory") from None
    return asked


_SSH_WORDS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
_ASKED_FOR = (
    "partition",
    "ansible_connection",
    "ansible_ssh_executable",
    "ansible_user",
    "ansible_port",
    "ansible_become",
    *_SSH_WORDS,
)


def _reach(variables: Mapping[str, Any], firmware: Firmware | None) -> list[str]:
    """Return how a node is reached: as the firmware's facts say, or else as Ansible would."""
    if firmware and "reach" in firmware.model_fields_set:
        return firmware.reach
    shell = ["sudo -n sh -s"] if variables.get("ansible_become") else ["sh -s"]
    if variables.get("ansible_connection") == "local":
        return shell[0].split()
    user, port = variables.get("ansible_user"), variables.get("ansible_port")
    return [
        str(variables.get("ansible_ssh_executable") or SSH[0]),
        *SSH[1:-2],
        *(word for key in _SSH_WORDS for word in shlex.split(str(variables.get(key) or ""))),
        *(["-p", str(port)] if port else []),
        f"{user}@{{node}}" if user else "{node}",
        *shell,
    ]


def _plain(value: Any) -> Any:
    """Strip Ansible's tagged subclasses: pydantic's strict types want the plain ones."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value
