"""How the firmware of a partition is set and verified: the key ``firmware`` of its facts.

A vendor of BMCs is a file of `proofmark.site.bmc_vendors`, and `BmcVendor` is its model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from proofmark.common.errors import KeyMistake, nearest
from proofmark.common.input_limits import MAX_NODES, MAX_WAIT_S
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import load

ON_OFF = ("on", "off")
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "smt": ON_OFF,
    "numa_per_socket": ("1", "2", "4"),
    "power_profile": ("performance", "balanced", "efficiency"),
    "c_states": ON_OFF,
    "turbo": ON_OFF,
    "prefetchers": ON_OFF,
}
"""The abstract settings of a mode, with their values."""
UNSEEN = ("power_profile", "c_states", "turbo", "prefetchers")
"""The abstract settings that the NUMA domains of a node do not show."""
Scalar = str | int | bool
Attributes = dict[str, Scalar]
ResourcePath = Annotated[str, Field(pattern=r"^/redfish/v1/[!-~]+$")]


def _pattern(text: str) -> str:
    re.compile(text)
    return text


class VendorBlock(StrictModel):
    """A state of the BMC in which it refuses changes.

    Attributes:
        name: of the state, for messages.
        resource: the path of the resource that reports the state.
        key: the keys from the resource to the value.
        values: the values that mean that changes are refused.
        remedy: what an administrator can do.
    """

    name: str
    resource: ResourcePath
    key: list[str] = Field(min_length=1)
    values: list[Scalar] = Field(min_length=1)
    remedy: str


class JobQueue(StrictModel):
    """The queue of a BMC that applies changed settings by a job at the next boot.

    Attributes:
        collection: the path of the collection of jobs.
        expand: the query that makes the BMC return the jobs in the collection.
        kind: the ``JobType`` of jobs that set the BIOS.
        boot_kinds: the ``JobType`` of other jobs that the next boot executes.
        waiting: the ``JobState`` of a job that has not begun, and can be deleted.
        ready: the states of these in which the next boot executes the job.
        running: the states of a job that has begun.
        done: the states of a job that succeeded. Every other state is a failure.
    """

    collection: ResourcePath
    expand: str = ""
    kind: str
    boot_kinds: list[str] = []
    waiting: list[str]
    ready: list[str]
    running: list[str]
    done: list[str]


class BmcVendor(StrictModel):
    """How the BMCs of one vendor set the BIOS.

    Attributes:
        title: the product.
        recognized_by: names of the vendor in the Redfish service root, or in ``ipmitool mc info``.
        sources: where each fact was published.
        registry: the attribute registry, as the BMC lists it without its version. It is used if
            the BIOS names no registry, or one that is not listed.
        value_names: the key of the registry whose text is a value of an attribute.
        suffix: a regular expression; the platform adds such a text to the names of attributes.
        patch: the resource that is changed: the settings resource, or the BIOS itself.
        apply_time: whether a change names its apply time, ``OnReset``.
        refuses_fixed: whether the BMC refuses an attribute of `needs` if the change has another
            value of what it needs. Other BMCs accept it, and the BIOS ignores it.
        blocks: states in which the BMC refuses changes.
        jobs: the queue of the BMC, if a change needs a job.
        inferred: values, as ``attribute=value``, that no source shows. They follow from other
            values of the attribute. They are set only if the registry of the BMC has them.
        needs: for each attribute, the attributes without which it is read-only.
        settings: for each abstract setting a list of alternatives. An alternative has the
            attributes of each value. The first one that the BMC offers is used.
    """

    title: str
    recognized_by: list[str] = []
    sources: list[str] = Field(min_length=1)
    registry: str = ""
    value_names: Literal["ValueName", "ValueDisplayName"] = "ValueName"
    suffix: Annotated[str, AfterValidator(_pattern)] = ""
    patch: Literal["settings", "bios"] = "settings"
    apply_time: bool
    refuses_fixed: bool = False
    blocks: list[VendorBlock] = []
    jobs: JobQueue | None = None
    needs: dict[str, Attributes] = {}
    inferred: list[str] = []
    settings: dict[str, list[dict[str, Attributes]]]

    @model_validator(mode="after")
    def _known_settings(self) -> Self:
        for name, alternatives in self.settings.items():
            if name not in SETTINGS:
                accepted = f"{', '.join(SETTINGS)}{nearest(name, SETTINGS)}"
                raise KeyMistake(accepted, "settings", name)
            if not {*chain(*alternatives)} <= {*SETTINGS[name]}:
                raise KeyMistake(", ".join(SETTINGS[name]), "settings", name)
        return self

    @model_validator(mode="after")
    def _all_used(self) -> Self:
        pairs = {f"{name}={value}" for name, value in self.pairs()}
        names = {name for name, _ in self.pairs()}
        for key, extra in (
            ("needs", {*self.needs} - names),
            ("inferred", {*self.inferred} - pairs),
        ):
            if extra:
                raise KeyMistake(f"no setting has {', '.join(sorted(extra))}", key)
        return self

    def pairs(self) -> Iterator[tuple[str, Scalar]]:
        """Yield each attribute of a setting with each value, also of those that others need."""
        for alternatives in self.settings.values():
            for values in alternatives:
                for attributes in values.values():
                    for name, value in attributes.items():
                        yield name, value
                        yield from self.needs.get(name, {}).items()

    def values(self, setting: str) -> list[str]:
        """Return the values of `setting` that an alternative has, in the order of `SETTINGS`."""
        offered = {*chain(*self.settings.get(setting, []))}
        return [value for value in SETTINGS[setting] if value in offered]

    def attributes(self, setting: str, value: str) -> set[str]:
        """Return the attributes that the `value` of a setting may change, in any alternative."""
        changed = {*chain(*(each.get(value, {}) for each in self.settings[setting]))}
        return changed.union(*(self.needs.get(name, {}) for name in changed))

    def is_name(self, name: str, attribute: str) -> bool:
        """Return whether the BMC may call `attribute` `name`: equal, or with the suffix."""
        return name == attribute or (
            bool(self.suffix)
            and name.startswith(attribute)
            and re.fullmatch(self.suffix, name[len(attribute) :]) is not None
        )


def vendors() -> list[str]:
    """Return the names of the vendors."""
    entries = files("proofmark.site.bmc_vendors").iterdir()
    return sorted(each.name[:-4] for each in entries if each.name.endswith(".yml"))


@cache
def vendor(name: str) -> BmcVendor:
    """Return the file of a vendor in `vendors`.

    Raises:
        BadInput: the file is damaged.
    """
    return load(Path(str(files("proofmark.site.bmc_vendors") / f"{name}.yml")), BmcVendor)


Settings = Mapping[str, Scalar]
Seconds = Annotated[float, Field(gt=0, le=MAX_WAIT_S)]
SSH = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "{node}", "sh -s"]


class Firmware(StrictModel):
    """How the modes of a partition are set, under which names, and with which time limits.

    Attributes:
        back_end: the name of a class of `proofmark.machine.bmc.backends`.
        vendor: a file of `proofmark.site.bmc_vendors`. It has the firmware's attributes of the
            abstract settings (``smt``, ``numa_per_socket``, …) that are not in `attributes`.
        bmc: address of a node's BMC. `{node}` is the name of the node, `{number}` its number in
            the partition, from 0 (``"10.1.{number // 250}.{number % 250 + 1}"``).
        ca: file of the authorities that sign the BMCs' certificates. The default is the system's.
        verify_tls: if False, the BMC's certificate is not verified; each use prints a warning.
        system: id of a node's system, if one BMC has several. `{node}` and `{number}` are those of
            `bmc` (``"Node{number % 2}"``).
        attributes: for each setting of a mode, the firmware's attribute with the same values; or,
            for each value of the setting, the attributes that make it.
        reset_type: as in Redfish. If empty, the gentlest restart that the BMC lists; needed for a
            BMC that lists none.
        smbios: the vendor's SMBIOS tables that distinguish modes which the operating system shows
            as the same.
        remote_shell: the command that runs ``sh -s`` on a node, with the script on stdin.
        boot_s: expected time until a node is back after a reset, in seconds. The limits of a boot
            and of a reset are multiples of it.
        timeout_s: time limit of one answer of a BMC or of a node, in seconds.
        batch_size: number of nodes that are reset together (limits of power and boot servers).
        max_failures: number of nodes of a batch that may fail before the change of modes stops.
    """

    # Jobs of others end within the hour in which an administrator repeats the command.
    drain_limit_s: ClassVar[float] = 3600
    # A BMC that is busy for a moment answers within the pauses of four attempts: 0.5, 1 and 2 s.
    max_attempts: ClassVar[int] = 4
    # BMCs at one time: each is a thread, and the default limit of open files is 1,024.
    max_parallel: ClassVar[int] = 256

    back_end: str
    vendor: str = ""
    bmc: str = "{node}-bmc"
    port: Annotated[int, Field(gt=0, lt=65536)] = 443
    ca: str | None = None
    verify_tls: bool = True
    auth: Literal["basic", "session"] = "basic"
    system: str = ""
    attributes: dict[str, str | dict[str, dict[str, Scalar]]] = {}
    reset_type: str = ""
    smbios: Literal["knl"] | None = None
    remote_shell: list[str] = SSH
    boot_s: Seconds = 1200
    timeout_s: Seconds = 30
    batch_size: Annotated[int, Field(gt=0, le=MAX_NODES)] = 500
    max_failures: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _known_vendor(self) -> Self:
        if self.vendor and self.vendor not in vendors():
            hint = nearest(self.vendor, vendors())
            raise KeyMistake(f"one of {', '.join(vendors())}{hint}", "vendor")
        if self.vendor and not get_close_matches(self.back_end, ["redfish"], 1, 0.8):
            raise KeyMistake("only accepted with back_end redfish", "vendor")
        return self

    @cached_property
    def boot_timeout_s(self) -> float:
        """Seconds after which a node that is not back is NO_RETURN.

        A boot that trains the memory again takes twice the usual time.
        """
        return max(60.0, 2.25 * self.boot_s)

    @cached_property
    def reset_timeout_s(self) -> float:
        """Seconds in which a reset that may have been sent must show.

        To stop its services is a small part of the time until a node is back.
        """
        return max(15.0, self.boot_s / 4)

    @cached_property
    def poll_s(self) -> float:
        """Seconds between two looks at a node or a BMC: its boot is seen within a hundredth."""
        return min(10.0, max(0.5, self.boot_s / 120))


def abstract(firmware: Firmware, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the `settings` of a mode whose attributes are those of the vendor."""
    names = SETTINGS.keys() - firmware.attributes.keys() if firmware.vendor else ()
    return {name: value for name, value in settings.items() if name in names}


def wanted(firmware: Firmware, settings: Mapping[str, str]) -> dict[str, Scalar]:
    """Return the site's attributes for the `settings` of a mode, without the `abstract` ones.

    Raises:
        KeyError: a setting or one of its values has no attribute; the argument names it.
    """
    attributes: dict[str, Scalar] = {}
    of_vendor = abstract(firmware, settings)
    for name, value in settings.items():
        if name in of_vendor:
            continue
        definition = firmware.attributes.get(name)
        if isinstance(definition, str):
            attributes[definition] = value
        elif definition is None or value not in definition:
            raise KeyError(f"{name}: {value}")
        else:
            attributes |= definition[value]
    return attributes


def check_vendor(firmware: Firmware, mode: str, settings: Mapping[str, str]) -> None:
    """Check that the vendor can make the abstract `settings` of `mode`.

    The attributes of a setting are known only from the BMC. An attribute that the site also sets
    in the mode is a mistake, whatever its value.

    Raises:
        KeyMistake: its key begins with ``modes``.
    """
    of_vendor = abstract(firmware, settings)
    own: dict[str, str] = {}
    for name in settings.keys() - of_vendor.keys():
        own |= {attribute: name for attribute in wanted(firmware, {name: settings[name]})}
    for name, value in of_vendor.items():
        table = vendor(firmware.vendor)
        values = table.values(name)
        if value not in values:
            known = [each for each in SETTINGS if table.values(each)]
            accepted = ", ".join(values) or f"no value; {firmware.vendor} has {', '.join(known)}"
            raise KeyMistake(f"{accepted}{nearest(value, values)}", "modes", mode, "settings", name)
        for attribute in table.attributes(name, value):
            if both := next((each for each in own if table.is_name(each, attribute)), None):
                places = f"firmware.attributes.{own[both]} and settings.{name} ({firmware.vendor})"
                accepted = f"one key that sets {both}; it is set twice: by {places}"
                raise KeyMistake(accepted, "modes", mode, "settings", name)


def check_same_settings(firmware: Firmware, modes: Mapping[str, Mapping[str, str]]) -> None:
    """Check that all `modes` (settings by name) have the same abstract settings.

    A node in a mode without a setting would keep the value of the mode before.

    Raises:
        KeyMistake: a mode lacks a setting of another one. Its key begins with ``modes``.
    """
    settings = {name: abstract(firmware, each) for name, each in modes.items()}
    for name, own in settings.items():
        for other, others in settings.items():
            if lacking := sorted(others.keys() - own.keys()):
                accepted = f"a value, because mode {other} has one"
                raise KeyMistake(accepted, "modes", name, "settings", lacking[0])
