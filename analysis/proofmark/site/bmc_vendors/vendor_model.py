"""The model of the files of BMC vendors, and the abstract settings of a mode."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from proofmark.common.errors import nearest
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import load

OPENBMC = "openbmc"
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
Value = str | int | bool
Attributes = dict[str, Value]
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
    values: list[Value] = Field(min_length=1)
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
                raise ValueError(f"settings: {name!r}{nearest(name, SETTINGS)}")
            found: list[str] = []
            for alternative in alternatives:
                found += alternative
            for value in found:
                if value not in SETTINGS[name]:
                    accepted = ", ".join(SETTINGS[name])
                    raise ValueError(f"settings.{name}: {value!r}; accepted: {accepted}")
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
                raise ValueError(f"{key}: no setting has {', '.join(sorted(extra))}")
        return self

    def pairs(self) -> Iterator[tuple[str, Value]]:
        """Yield each attribute of a setting with each value, also of those that others need."""
        for alternatives in self.settings.values():
            for values in alternatives:
                for attributes in values.values():
                    for name, value in attributes.items():
                        yield name, value
                        yield from self.needs.get(name, {}).items()

    def values(self, setting: str) -> list[str]:
        """Return the values of `setting` that an alternative has, in the order of `SETTINGS`."""
        offered: set[str] = set()
        for each in self.settings.get(setting, []):
            offered.update(each)
        return [value for value in SETTINGS[setting] if value in offered]

    def attributes(self, setting: str, value: str) -> set[str]:
        """Return the attributes that the `value` of a setting may change, in any alternative."""
        changed: set[str] = set()
        for each in self.settings[setting]:
            changed.update(each.get(value, {}))
        found: set[str] = set()
        for name in changed:
            found.update(self.needs.get(name, {}))
        return changed | found

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
    return sorted(each.name[: -len(".yml")] for each in entries if each.name.endswith(".yml"))


@cache
def vendor(name: str) -> BmcVendor:
    """Return the file of a vendor in `vendors`.

    Raises:
        BadInput: the file is damaged.
    """
    return load(Path(str(files("proofmark.site.bmc_vendors") / f"{name}.yml")), BmcVendor)


def recognized(reported: str) -> str:
    """Return the vendor of a BMC by the name that it reports; empty if not exactly one fits.

    An OpenBMC with the name of the maker of its board is an OpenBMC.
    """
    found = [
        name
        for name in vendors()
        if any(
            re.search(rf"\b{re.escape(each)}\b", reported, re.IGNORECASE)
            for each in vendor(name).recognized_by
        )
    ]
    return OPENBMC if OPENBMC in found else (found[0] if len(found) == 1 else "")
