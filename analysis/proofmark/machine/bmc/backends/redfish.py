"""Back end for Redfish (DMTF DSP0266; BIOS and settings: DSP2046) over HTTPS to each node's BMC.

Settings are checked against the attribute registry before a change: BMCs, and tools in front of
them, may accept a misspelt attribute without an error. Current values and values of the next boot
are read separately.
"""

from __future__ import annotations

import operator
import re
import threading
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from proofmark.machine.bmc.back_end import (
    AttributeSpec,
    BackEnd,
    BackEndContext,
    FirmwareState,
    Host,
    foreign_pending,
    format_settings,
    to_change,
)
from proofmark.machine.bmc.client import (
    REQUESTS_OF_AN_OPERATION,
    ConnectionPool,
    ConnectionSettings,
    RedfishConnection,
    Response,
    path_of_system,
)
from proofmark.machine.bmc.https import BodyPart, is_path, tls_context
from proofmark.machine.bmc.redfish_resources import (
    ACCEPTED,
    ConfigJobs,
    Registry,
    ResetWay,
    Waits,
    await_task,
    doubtful,
    monitor_of,
    open_update,
    read_registry,
    reset_way,
    restart,
    switch_on,
)
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import BmcVendor, Scalar, Settings, VendorBlock, vendor

ANY = "*"
"""Matches each version of a resource that exists."""

_VALUE = re.compile(r"[!-~]{1,200}")
"""What is sent in a header: printable ASCII without a blank."""

Offers = Mapping[str, AttributeSpec]

REGISTRY = re.compile(r"[\w.+-]+", re.ASCII)
"""The name of an attribute registry, which becomes a part of a path."""

UNREADABLE = (204, 404, 405, 501)
"""Status of a settings resource that can be changed and not read, or that does not exist."""

PRECONDITION = (412, 428)
"""The precondition of a request failed, or is missing (RFC 9110, RFC 6585)."""

PATCH_ATTEMPTS = 3
"""How often a PATCH is sent in one form if the ETag of the settings changes each time."""

APPLY_TIME = {
    "@odata.type": "#Settings.v1_3_0.PreferredApplyTime",
    "ApplyTime": "OnReset",
}

GENERIC = BmcVendor(title="Redfish", sources=["DMTF DSP2046"], apply_time=True, settings={})
"""A BMC whose vendor the inventory does not name."""


def blocking(bmc: RedfishConnection, blocks: Sequence[VendorBlock]) -> str:
    """Return the state that blocks changes, and its remedy; empty if there is none.

    A BMC without the resource of a state does not have this state.

    Raises:
        NodeError: a request failed, or the resource has another form.
    """
    for block in blocks:
        response = bmc.request("GET", block.resource, accept=(200, 404))
        if response.status == 200 and _value(response.body, block.key) in block.values:
            return f"{block.name}: the BMC refuses changes; {block.remedy}"
    return ""


def _value(body: BodyPart, keys: Sequence[str]) -> object:
    for key in keys[:-1]:
        body = body.part(key)
    return body.content.get(keys[-1])


class Etags(NamedTuple):
    """The ETags of one response: the header ``ETag``, and ``@odata.etag`` of its body."""

    header: str = ""
    body: str = ""

    @classmethod
    def of(cls, response: Response | None) -> Etags:
        """Return the ETags of a response; without one there are none."""
        return cls(response.etag, response.body_etag) if response else cls()


class Resources(NamedTuple):
    """The resources of a system, for the requests after `Redfish.read`.

    Attributes:
        settings: the path of the settings resource; empty if there is none.
        patch: the path that a change is sent to: that of the settings or of the BIOS.
        etags: those of `patch`.
        apply_time: whether a change states when it is applied.
        jobs: the waiting jobs that set the BIOS.
    """

    system: str
    bios: str
    settings: str
    patch: str
    etags: Etags
    apply_time: bool
    jobs: list[str]
    reset: ResetWay


def conditions(etags: Etags) -> list[dict[str, str]]:
    """Return the headers of a conditional request, in the order in which they are tried.

    A weak ETag never matches (RFC 9110, section 13.1.1), but some BMCs send weak ones and accept
    them. Others compare without quotes, put a second pair of quotes around the header, have the
    right value only in the body, or accept none. Clients of Redfish try these forms one after the
    other: the module utils of community.general take the header, then ``@odata.etag``, and have
    options to remove the quotes and to send no If-Match. Sushy (OpenStack) changes weak ETags to
    strong ones, and the scripts of Lenovo send ``@odata.etag`` or ``*``.

    The exact forms come first. The last two are the condition that the resource exists, and no
    condition. Without an ETag these two come in the other order.
    """
    given = [value.strip() for value in etags if value.strip()]
    opaque = [value.removeprefix("W/").replace("\\", "").strip('"') for value in given]
    exact = [*given, *(f'"{value}"' for value in opaque if value), *opaque]
    usable = [value for value in dict.fromkeys(exact) if _VALUE.fullmatch(value)]
    matches = [{"If-Match": value} for value in dict.fromkeys((*usable, ANY))]
    return [*matches, {}] if usable else [{}, *matches]


def resolve(
    vendor: BmcVendor, settings: Mapping[str, str], offers: Offers, current: Settings
) -> dict[str, Scalar]:
    """Return the attributes that make the abstract `settings`, with those that a change needs.

    Args:
        current: the values in effect. An attribute that has its value needs no other one.

    Raises:
        NodeError: REFUSED: the BMC offers no alternative of a setting, or two settings need
            different values of an attribute.
    """
    attributes: dict[str, Scalar] = {}
    owners: dict[str, str] = {}
    for setting, value in settings.items():
        owner = f"{setting}={value}"
        chosen = _chosen(vendor, setting, value, offers)
        for name, wanted in _with_needs(vendor, chosen, current).items():
            if attributes.setdefault(name, wanted) != wanted:
                text = f"{owners[name]} sets {name}={attributes[name]}, and {owner} {name}={wanted}"
                raise NodeError(Outcome.REFUSED, text)
            owners.setdefault(name, owner)
    return attributes


def _chosen(vendor: BmcVendor, setting: str, value: str, offers: Offers) -> dict[str, Scalar]:
    alternatives = [each[value] for each in vendor.settings.get(setting, []) if value in each]
    for alternative in alternatives:
        named = {offered_name(vendor, name, offers): v for name, v in alternative.items()}
        if all(name and v in (offers[name].values or (v,)) for name, v in named.items()):
            return named
    pairs = []
    for each in alternatives:
        pairs += [f"{name}={v}" for name, v in each.items()]
    tried = dict.fromkeys(pairs)
    known: dict[str, str] = {}
    for alternative in alternatives:
        for attribute in alternative:
            if name := offered_name(vendor, attribute, offers):
                known[name] = ", ".join(map(str, offers[name].values))
    found = "; ".join(f"{name} with {values}" for name, values in known.items()) or "none of them"
    text = f"{setting}={value}: looked for {', '.join(tried)}; the BMC offers {found}"
    raise NodeError(Outcome.REFUSED, text)


def _with_needs(vendor: BmcVendor, attributes: Settings, current: Settings) -> dict[str, Scalar]:
    needed: dict[str, Scalar] = {}
    for attribute, wanted in attributes.items():
        if current.get(attribute) != wanted:
            needed |= vendor.needs.get(attribute, {})
    return {**needed, **attributes}


def offered_name(vendor: BmcVendor, attribute: str, offers: Collection[str]) -> str:
    """Return the name under which the BMC offers `attribute`; empty if it does not."""
    if attribute in offers or not vendor.suffix:
        return attribute if attribute in offers else ""
    return next((name for name in offers if vendor.is_name(name, attribute)), "")


def offered_names(vendor: BmcVendor, offers: Collection[str]) -> dict[str, None]:
    """Return every attribute of the vendor's settings that the BMC offers."""
    attributes = dict.fromkeys(name for name, _ in vendor.pairs())
    names = (offered_name(vendor, attribute, offers) for attribute in attributes)
    return dict.fromkeys(name for name in names if name)


def unlocked(vendor: BmcVendor, offers: dict[str, AttributeSpec]) -> Offers:
    """Return `offers` in which an attribute that needs another one is not read-only.

    The registry of a BMC has it as read-only as long as the other one has another value.
    """
    specs = {
        name: replace(offers[name], read_only=False, gray_out=False, rules=())
        for name in vendor.needs
        if name in offers
    }
    return ChainMap(specs, offers)


def settable(vendor: BmcVendor, wanted: Settings, current: Settings) -> Settings:
    """Return `wanted` without the attributes that the BMC refuses because a profile fixes them.

    In a profile, and after a return to it, the profile determines these attributes.
    """
    if not vendor.refuses_fixed:
        return wanted
    next_boot = {**current, **wanted}
    return {
        name: value
        for name, value in wanted.items()
        if all(
            next_boot.get(other, needed) == needed
            for other, needed in vendor.needs.get(name, {}).items()
        )
    }


class Redfish(BackEnd):
    """Changes BIOS attributes by Redfish; nodes with the same attribute registry share one copy.

    What differs between vendors is data (`proofmark.site.bmc_vendors`).
    """

    name = "redfish"
    sets = True
    reads_current_values = True
    uses_bmcs = True

    def __init__(self, context: BackEndContext) -> None:
        firmware = context.firmware
        self._system, self._reset_type = firmware.system, firmware.reset_type
        self._timeout_s = firmware.timeout_s
        self._pool = ConnectionPool(
            ConnectionSettings(
                tls_context(firmware.ca, verify=firmware.verify_tls),
                firmware.port,
                context.credentials,
                firmware.timeout_s,
                firmware.max_attempts,
                session=firmware.auth == "session",
            )
        )
        self._vendor = vendor(firmware.vendor) if firmware.vendor else GENERIC
        # A wait is a part of an operation, which has a limit of its own.
        limit_s = firmware.timeout_s * REQUESTS_OF_AN_OPERATION / 2
        self._task_waits = Waits.of(firmware, limit_s)
        self._reset_waits = Waits.of(firmware, min(firmware.reset_timeout_s, limit_s))
        queue = self._vendor.jobs
        self._jobs = ConfigJobs(queue, self._reset_waits) if queue else None
        self._job_names: dict[Host, str] = {}
        self._tasks: dict[Host, str] = {}
        self._systems: dict[str, str] = {}
        self._registries: dict[str, Registry] = {}
        self._registry_locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Return the BIOS attributes and the pending settings of the system."""
        with self._pool.connection(host.address) as bmc:
            system_path = self._path_of_system(bmc, host)
            system = bmc.get(system_path).body
            path = system.link("Bios")
            response = bmc.get(path)
            bios = response.body
            annotation = bios.part("@Redfish.Settings")
            linked = annotation.content.get("SettingsObject") is not None
            settings = annotation.link("SettingsObject") if linked else ""
            next_boot = _next_boot(bmc, settings)
            times = annotation.texts("SupportedApplyTimes")
            if times and "OnReset" not in times:
                offered = ", ".join(times)
                problem = f"the BMC applies settings {offered}; needed: OnReset"
                raise NodeError(Outcome.REFUSED, problem)
            offers = self._offers(bmc, system, bios, wanted)
            names = {**wanted, **offered_names(self._vendor, offers)}
            names |= _causes(bios, offers, names)
            pending, blocked = _pending(bios, next_boot), blocking(bmc, self._vendor.blocks)
            jobs = self._jobs.active(bmc) if self._jobs else []
            if running := [job.name for job in jobs if job.running]:
                blocked = blocked or f"job {', '.join(running)} runs now"
            if not self._jobs:
                blocked = blocked or open_update(bmc)
            foreign = [job for job in jobs if not job.running and not (job.sets_bios and pending)]
            pending |= {f"job {job.name} ({job.kind})": job.state for job in foreign}
            way = reset_way(bmc, system, self._reset_type)
            on_settings = bool(settings) and self._vendor.patch == "settings"
            return FirmwareState(
                current=bios.settings("Attributes", names),
                pending=pending,
                offers=unlocked(self._vendor, offers),
                serial=system.text("SerialNumber").strip() or system.text("UUID").strip(),
                handle=Resources(
                    system=system_path,
                    bios=path,
                    settings=settings,
                    patch=settings if on_settings else path,
                    etags=Etags.of(next_boot if on_settings else response),
                    apply_time=bool(times) and self._vendor.apply_time,
                    jobs=[job.name for job in jobs if job.sets_bios and not job.running],
                    reset=way,
                ),
                blocked=blocked,
                no_reset=way.problem,
            )

    def attributes(self, state: FirmwareState, settings: Mapping[str, str]) -> Settings:
        """Return the vendor's attributes that the registry offers and the BIOS reports."""
        offers = state.offers or {}
        reported = {name: offers[name] for name in state.current if name in offers}
        return resolve(self._vendor, settings, reported, state.current)

    def stage(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """PATCH the settings, unless another client has changed them since `read`.

        A waiting job of this kit is deleted first, and the job of the change is awaited.
        """
        with self._pool.connection(host.address) as bmc:
            deleted = state.handle.jobs
            if self._jobs:
                self._jobs.delete(bmc, deleted)
            sent = settable(self._vendor, wanted, state.current)
            unneeded = self._jobs and not to_change(state, wanted)
            if unneeded and (deleted or not state.pending):
                missing = self._missing(bmc, state, sent)
            else:
                response = self._patch(bmc, state, sent)
                if self._jobs:
                    job = self._jobs.await_ready(bmc, response.location)
                    self._job_names[host] = job
                    missing = self._missing(bmc, state, sent)
                else:
                    missing = self._await_pending(bmc, host, state, sent, response)
        if missing:
            problem = f"accepted and not pending: {format_settings(missing)}"
            raise NodeError(Outcome.NOT_APPLIED, problem)

    def _await_pending(
        self,
        bmc: RedfishConnection,
        host: Host,
        state: FirmwareState,
        sent: Settings,
        response: Response,
    ) -> dict[str, Scalar]:
        """Wait until the BMC has done what it accepted; return the settings that are not pending.

        Raises:
            NodeError: the task of the change failed, or it has not ended in time.
        """
        if monitor := monitor_of(response):
            self._tasks[host] = monitor
            try:
                await_task(
                    bmc, monitor, self._task_waits, lambda: not self._missing(bmc, state, sent)
                )
            except NodeError as error:
                if error.outcome is Outcome.NOT_APPLIED:  # it has ended
                    del self._tasks[host]
                raise
            del self._tasks[host]
        look = partial(self._missing, bmc, state, sent)
        if response.status == ACCEPTED and not monitor:  # it works on, and names no task
            return self._task_waits.until(look, operator.not_)
        return look()

    def _missing(
        self, bmc: RedfishConnection, state: FirmwareState, sent: Settings
    ) -> dict[str, Scalar]:
        """Return the settings of `sent` that are neither pending nor shown as in effect.

        Without a readable settings resource there is none: only the boot shows what is set.
        """
        settings = _next_boot(bmc, state.handle.settings)
        if settings is None:
            return {}
        staged = settings.body.part("Attributes").content

        def lacking(current: Settings) -> dict[str, Scalar]:
            next_boot = {**current, **staged}
            return {name: value for name, value in sent.items() if next_boot.get(name) != value}

        if not lacking(state.current):
            return {}
        return lacking(bmc.get(state.handle.bios).body.settings("Attributes", sent))

    def outstanding(self, host: Host) -> str:
        """Return the path of the task of a change that has not ended."""
        return self._tasks.get(host, "")

    def await_outstanding(self, host: Host, name: str) -> None:
        """Wait for the end of the task with the path `name`."""
        if not is_path(name):
            return
        with self._pool.connection(host.address) as bmc:

            def shown() -> bool:
                bios = bmc.get(bmc.get(self._path_of_system(bmc, host)).body.link("Bios")).body
                settings = bios.part("@Redfish.Settings").part("SettingsObject").path("@odata.id")
                return bool(_pending(bios, _next_boot(bmc, settings)))

            try:
                await_task(bmc, name, self._task_waits, shown)
            except NodeError as error:
                if error.outcome is not Outcome.NOT_APPLIED:
                    raise

    def _patch(self, bmc: RedfishConnection, state: FirmwareState, sent: Settings) -> Response:
        """PATCH the settings; return the response."""
        path = state.handle.patch
        content: dict[str, Any] = {"Attributes": dict(sent)}
        if state.handle.apply_time:
            content["@Redfish.SettingsApplyTime"] = APPLY_TIME
        etags: Etags = state.handle.etags
        if not any(etags):
            etags = self._new_etags(bmc, state, sent)
        form = changes = 0
        while form < len(conditions(etags)):
            response = bmc.request(
                "PATCH", path, content, conditions(etags)[form], (200, 202, 204, *PRECONDITION)
            )
            if response.status not in PRECONDITION:
                return response
            # If another client had set something, this would raise FOREIGN_PENDING. So either the
            # ETag has another reason to change, or the BMC does not accept this form of it.
            now = self._new_etags(bmc, state, sent)
            changes += now != etags
            form += now == etags or changes >= PATCH_ATTEMPTS
            etags = now
        problem = (
            f"status {response.status} to each form of its ETag; nothing was changed meanwhile"
        )
        raise NodeError(Outcome.UNEXPECTED, f"{path}: {problem}", refused=True)

    def _new_etags(self, bmc: RedfishConnection, state: FirmwareState, wanted: Settings) -> Etags:
        """Return the present ETags of the settings, if no other client has changed them.

        Raises:
            NodeError: FOREIGN_PENDING: another client has changed them since `read`.
        """
        settings, bios = _next_boot(bmc, state.handle.settings), bmc.get(state.handle.bios)
        pending = _pending(bios.body, settings)
        requested = {*state.pending.items(), *wanted.items()}
        if foreign := foreign_pending(FirmwareState(current={}, pending=pending), requested):
            problem = f"another client has set since the check: {format_settings(foreign)}"
            raise NodeError(Outcome.FOREIGN_PENDING, problem)
        patch = bios if state.handle.patch == state.handle.bios else settings
        return Etags.of(patch)

    def reset(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """Request the restart by the types that the BMC lists."""
        way: ResetWay = state.handle.reset
        if way.problem:
            raise NodeError(Outcome.REFUSED, way.problem)
        with self._pool.connection(host.address) as bmc:
            restart(bmc, state.handle.system, way, self._reset_waits)

    def resume_reset(self, host: Host) -> None:
        """Switch a host on that an interrupted reset by two requests has left off."""
        with self._pool.connection(host.address) as bmc:
            system = bmc.get(self._path_of_system(bmc, host)).body
            way = reset_way(bmc, system, self._reset_type)
            if way.on and not way.kinds and system.text("PowerState") == "Off":
                switch_on(bmc, way, self._reset_waits)

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Return the BIOS attributes that are in effect, after the job that sets them."""
        with self._pool.connection(host.address) as bmc:
            if self._jobs:
                self._jobs.await_end(bmc, self._job_names.get(host, ""))
                self._job_names.pop(host, None)
            system = bmc.get(self._path_of_system(bmc, host)).body
            return bmc.get(system.link("Bios")).body.settings("Attributes", wanted)

    def _path_of_system(self, bmc: RedfishConnection, host: Host) -> str:
        return path_of_system(bmc, host.system or self._system, self._systems)

    def _offers(
        self, bmc: RedfishConnection, system: BodyPart, bios: BodyPart, wanted: Settings
    ) -> dict[str, AttributeSpec]:
        name = bios.text("AttributeRegistry") or self._vendor.registry
        if not name or not REGISTRY.fullmatch(name):
            problem = f"no attribute registry {name!r:.80}: settings cannot be checked"
            raise NodeError(Outcome.REFUSED, problem)
        # Some BMCs have the same name for the registries of all their systems.
        key = f"{name} {system.text('Model')} {system.text('BiosVersion')}"
        with self._guard:
            lock = self._registry_locks.setdefault(key, threading.Lock())
        # The first node reads the registry while the others wait, but not for a slow BMC.
        locked = lock.acquire(timeout=self._timeout_s)
        try:
            shared = self._registries.get(key)
            reported = offered_names(self._vendor, bios.part("Attributes").content)
            if shared and not reported.keys() <= shared.specs.keys():
                return read_registry(bmc, name, self._vendor)  # another BIOS, under the same name
            if shared is None or doubtful(shared, bmc.address, wanted):
                own = read_registry(bmc, name, self._vendor)
                confirmed = shared is not None and shared.specs == own
                self._registries[key] = Registry(own, bmc.address, confirmed)
                return own
            return shared.specs
        finally:
            if locked:
                lock.release()


def _next_boot(bmc: RedfishConnection, path: str) -> Response | None:
    """Return the settings resource; None if the BIOS has none, or one that cannot be read."""
    if not path:
        return None
    response = bmc.request("GET", path, accept=(200, *UNREADABLE))
    return response if response.status == 200 else None


def _pending(bios: BodyPart, settings: Response | None) -> dict[str, Any]:
    """Return the values that the next boot changes.

    Some BMCs list all attributes in the settings resource, others only the changed ones.
    """
    current = bios.required("Attributes").content
    next_boot = settings.body.part("Attributes").content if settings else {}
    return {name: value for name, value in next_boot.items() if current.get(name) != value}


def _causes(
    bios: BodyPart, offers: Mapping[str, AttributeSpec], names: Collection[str]
) -> dict[str, None]:
    """Return the attributes of the BIOS on which those of `names` depend."""
    reported = bios.part("Attributes").content
    causes: dict[str, None] = {}
    for name in names:
        for rule in offers[name].rules if name in offers else ():
            causes |= dict.fromkeys(each.attribute for each in rule.conditions)
    return {name: None for name in causes if isinstance(reported.get(name), (str, int))}
