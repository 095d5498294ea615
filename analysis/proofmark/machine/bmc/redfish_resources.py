"""The resources of a BMC: its attribute registry, tasks, the queue of configuration jobs, resets.

An attribute registry has the values that the firmware accepts. A task is the work after status 202
(DSP0266, task monitor). The queue applies changed settings by a job at the next boot. A system is
restarted by one of the reset types that its BMC lists (DSP2046, ComputerSystem.Reset).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from proofmark.common.errors import nearest
from proofmark.machine.bmc.back_end import (
    AttributeSpec,
    Condition,
    RegistryRule,
    refused_settings,
    typed,
)
from proofmark.machine.bmc.client import (
    GONE,
    RedfishConnection,
    Response,
    messages_of,
    one_member,
    read_members,
)
from proofmark.machine.bmc.https import BodyPart, described
from proofmark.machine.outcome import TEMPORARY, NodeError, Outcome
from proofmark.site.firmware import BmcVendor, Firmware, JobQueue, Scalar, Settings

REGISTRIES = "/redfish/v1/Registries"
KIND = "attributeregistry"
"""A part of the names of registries that may be the one of the BIOS."""
MAKES = ("ReadOnly", "GrayOut", "CurrentValue")
"""The properties of an attribute that a dependency determines, and that a change depends on."""


@dataclass(frozen=True)
class Registry:
    """An attribute registry, the address of the BMC that sent it, and whether another BMC agrees.

    Nodes share a copy. A copy that refuses a setting is believed only if two BMCs sent it, so that
    one damaged answer affects one node.
    """

    specs: dict[str, AttributeSpec]
    address: str
    confirmed: bool = False


def doubtful(shared: Registry, address: str, wanted: Settings) -> bool:
    """Return whether a registry that one other BMC sent refuses a setting."""
    if shared.confirmed or shared.address == address:
        return False
    return any(refused_settings(typed(wanted, shared.specs), shared.specs))


def read_registry(bmc: RedfishConnection, name: str, vendor: BmcVendor) -> dict[str, AttributeSpec]:
    """Return the attributes of the registry `name`, as the BMC sends it.

    Raises:
        NodeError: REFUSED: the BMC has no such registry, or the registry has no file.
    """
    file = _file_of(bmc, name, vendor)
    entries = file.part("RegistryEntries")
    key = vendor.value_names
    rules = _rules(entries)
    return {
        attribute: _attribute_spec(item, key, rules.get(attribute, ()))
        for item in entries.items("Attributes")
        if (attribute := item.text("AttributeName"))
    }


def _file_of(bmc: RedfishConnection, name: str, vendor: BmcVendor) -> BodyPart:
    """Return the file of the registry `name`, of the first entry that has it.

    An entry without a file, or whose file the BMC does not send, is not the one: a BMC lists
    registries of parts that it does not have.
    """
    faults: list[NodeError] = []
    for entry in _entries(bmc, name, vendor, faults):
        with one_member(bmc, REGISTRIES, faults):
            file = _located(bmc, entry.body, name)
            if entry.named or name in (file.text("Id"), file.text("Registry")):
                return file
    if faults:
        raise faults[0]
    problem = f"no attribute registry {name}: settings cannot be checked"
    raise NodeError(Outcome.REFUSED, problem)


class _Entry(NamedTuple):
    """An entry of the list of registries; `named` if it is that of the registry by its names."""

    body: BodyPart
    named: bool


def _entries(
    bmc: RedfishConnection, name: str, vendor: BmcVendor, faults: list[NodeError]
) -> Iterator[_Entry]:
    """Yield the entries that may be that of the registry `name`, the likeliest first.

    BMCs list a registry under another path than its name, without the last part of its version, or
    with another version. This function adds the entries that cannot be read to `faults`.
    """
    direct = None
    with one_member(bmc, REGISTRIES, faults):
        direct = bmc.request("GET", f"{REGISTRIES}/{name}", accept=(200, 404))
    if direct and direct.status == 200:
        yield _Entry(direct.body, named=True)
    paths = [member.place for member in read_members(bmc, REGISTRIES)]
    listed = {path: path.rstrip("/").rpartition("/")[2] for path in paths}
    by_path = {path for path, last in listed.items() if last and name.startswith(last)}
    bodies: dict[str, BodyPart] = {}
    for path in sorted(listed, key=lambda each: (each in by_path, len(each)), reverse=True):
        with one_member(bmc, REGISTRIES, faults):
            bodies[path] = bmc.get(path).body
        if path in by_path and path in bodies:
            yield _Entry(bodies[path], named=True)
    for body in bodies.values():
        if name in (body.content.get("Id"), body.content.get("Registry")):
            yield _Entry(body, named=True)
    for body in bodies.values():
        names = (f"{body.content.get(key)}" for key in ("Id", "Registry", "Name"))
        if any(KIND in each.lower() for each in names):
            yield _Entry(body, named=False)
    for path, body in bodies.items():
        if vendor.registry and listed[path].startswith(vendor.registry):
            yield _Entry(body, named=True)


def _located(bmc: RedfishConnection, entry: BodyPart, name: str) -> BodyPart:
    """Return the file of the registry that `entry` describes, in English if there is a choice."""
    found: dict[str, str] = {}
    for item in entry.items("Location"):
        # iLO 4 and 5 have the path inside an object.
        nested = isinstance(item.content.get("Uri"), Mapping)
        uri = item.part("Uri").path("extref") if nested else item.path("Uri")
        if uri:
            found.setdefault(item.text("Language"), uri)
    english = next((uri for language, uri in found.items() if language.startswith("en")), "")
    uri = english or next(iter(found.values()), "")
    if not uri:
        problem = f"registry {name} has no file: settings cannot be checked"
        raise NodeError(Outcome.REFUSED, problem)
    return bmc.get(uri).body


def _attribute_spec(item: BodyPart, key: str, rules: tuple[RegistryRule, ...]) -> AttributeSpec:
    """Return the specification of an attribute; a damaged one is an attribute that cannot be set.

    A registry has hundreds of attributes, and the kit sets a few.
    """
    try:
        kind = item.text("Type")
        values: tuple[Scalar, ...] = tuple(each.text(key) for each in item.items("Value"))
        if kind == "Boolean":
            values = (True, False)
        limits = ("MinLength", "MaxLength") if kind == "String" else ("LowerBound", "UpperBound")
        lower, upper = (item.number(each) for each in limits)
        if lower is not None and upper is not None and upper < lower:
            lower = upper = None  # 0 and -1: the BMC states no limits
        return AttributeSpec(
            item.flag("ReadOnly"),
            values,
            lower,
            upper,
            gray_out=item.flag("GrayOut"),
            kind=kind,
            step=item.number("ScalarIncrement"),
            rules=rules,
        )
    except NodeError as error:
        return AttributeSpec(damage=error.text)


def _rules(entries: BodyPart) -> dict[str, tuple[RegistryRule, ...]]:
    """Return the dependencies of a registry that determine an attribute, by the attribute.

    A dependency on another property than the value of an attribute, and one in another form, is
    left out: the BMC itself refuses what it forbids.
    """
    rules: dict[str, tuple[RegistryRule, ...]] = {}
    for item in entries.items("Dependencies"):
        try:
            if item.text("Type") not in ("Map", ""):
                continue
            part = item.part("Dependency")
            makes, value = part.text("MapToProperty"), part.content.get("MapToValue")
            conditions = tuple(map(_condition, part.items("MapFrom")))
            attribute = part.text("MapToAttribute")
        except NodeError:
            continue
        if makes in MAKES and conditions and isinstance(value, (str, int)):
            rules[attribute] = (*rules.get(attribute, ()), RegistryRule(conditions, makes, value))
    return rules


def _condition(part: BodyPart) -> Condition:
    """Return one condition.

    Raises:
        NodeError: it is in another form.
    """
    value = part.content.get("MapFromValue")
    if part.text("MapFromProperty") != "CurrentValue" or not isinstance(value, (str, int)):
        raise NodeError(Outcome.UNEXPECTED, f"{part.place}: not a condition on a value")
    term = part.text("MapTerms") or "AND"
    return Condition(part.text("MapFromAttribute"), part.text("MapFromCondition"), value, term)


Found = TypeVar("Found")
ACCEPTED = 202
ENDED = (200, 201, 204, *GONE)
FAILED = ("Exception", "Killed", "Cancelled")
NOT_BEGUN = ("", "New", "Starting", "Pending", "Suspended", "Service")
"""States of a task that may wait for the next boot; without a state it is not known."""

TASKS = "/redfish/v1/TaskService/Tasks"
UPDATES = "/redfish/v1/UpdateService/"
"""The target of each task that updates firmware (its ``Payload``) is below this path."""
MISSING = (404, 405, 501)


@dataclass(frozen=True)
class Waits:
    """How long a BMC is waited for.

    Attributes:
        poll_s: seconds between two looks, if the BMC names no time.
        limit_s: seconds after which the wait has failed.
    """

    poll_s: float
    limit_s: float

    @classmethod
    def of(cls, firmware: Firmware, limit_s: float) -> Waits:
        """Return waits of this limit with the poll of a site, or a shorter one."""
        return cls(min(firmware.poll_s, limit_s / 10), limit_s)

    def until(self, look: Callable[[], Found], done: Callable[[Found], bool]) -> Found:
        """Look until the answer is `done`, or until the limit; return the last answer."""
        end = time.monotonic() + self.limit_s
        while not done(found := look()) and time.monotonic() <= end:
            time.sleep(self.poll_s)
        return found


def monitor_of(response: Response) -> str:
    """Return the path of the task monitor in a response; empty if the work is done, or unknown."""
    if response.status != ACCEPTED:
        return ""
    body = response.body
    of_task = body.path("@odata.id") if "TaskState" in body.content else ""
    return response.location or body.path("TaskMonitor") or of_task


def await_task(
    bmc: RedfishConnection, monitor: str, waits: Waits, waits_for_boot: Callable[[], bool]
) -> None:
    """Wait for the end of the task with the path `monitor`.

    Args:
        waits_for_boot: returns whether the BMC shows the change of the task already, so that a task
            that has not begun waits for the next boot only.

    Raises:
        NodeError: NOT_APPLIED: the task failed; BUSY: it has not ended in time.
    """
    end = time.monotonic() + waits.limit_s
    while True:
        state, said, pause = "", "", 0.0
        try:
            response = bmc.request("GET", monitor, accept=(ACCEPTED, *ENDED))
        except NodeError as error:
            if error.refused:
                raise NodeError(Outcome.NOT_APPLIED, f"the task failed: {error.text}") from None
            if error.outcome not in TEMPORARY:
                raise
            said = error.text
        else:
            if response.status in GONE:
                return
            state, said = response.body.text("TaskState"), messages_of(response.body)
            pause = response.retry_after
            bad = response.body.text("TaskStatus") == "Critical"
            if state in FAILED or (bad and state in ("", "Completed")):
                text = f"task {monitor} is {state or 'over'}: {said or 'no message'}"
                raise NodeError(Outcome.NOT_APPLIED, text)
            if state == "Completed" or (not state and response.status in ENDED):
                return
            if state in NOT_BEGUN[1:] and waits_for_boot():
                return
        left = end - time.monotonic()
        if left <= 0:
            if state in NOT_BEGUN and waits_for_boot():
                return
            text = f"task {monitor} is {state or 'not at its end'} after {waits.limit_s:g} s"
            raise NodeError(Outcome.BUSY, f"{text}: {said or 'no message'}")
        time.sleep(min(pause or waits.poll_s, left))


def open_update(bmc: RedfishConnection) -> str:
    """Return the task that updates firmware and has not ended; empty if the BMC shows none.

    A reset would interrupt the update, or execute it.

    Raises:
        NodeError: a request failed, or an answer has another form.
    """
    if bmc.request("GET", TASKS, accept=(200, *MISSING)).status != 200:
        return ""  # a BMC need not have tasks
    for task in read_members(bmc, TASKS, key="TaskState"):
        state, target = task.text("TaskState"), task.part("Payload").text("TargetUri")
        if target.startswith(UPDATES) and state not in ("", "Completed", *FAILED):
            return f"task {task.text('Id')} updates firmware and is {state}: wait for its end"
    return ""


NAME = re.compile(r"(?!\.)[\w.-]{1,100}", re.ASCII)
"""The name of a job, which becomes a part of a path."""


@dataclass(frozen=True)
class ConfigJob:
    """A job of the queue.

    Attributes:
        kind: its ``JobType``.
    """

    name: str
    kind: str
    state: str
    message: str
    sets_bios: bool
    running: bool


@dataclass(frozen=True)
class ConfigJobs:
    """The jobs of BMCs with one queue description; `waits` is for a state of a job."""

    queue: JobQueue
    waits: Waits

    def active(self, bmc: RedfishConnection) -> list[ConfigJob]:
        """Return the jobs that a boot executes and that have not ended.

        Raises:
            NodeError: a request failed; UNEXPECTED: the BMC does not show all of its jobs.
        """
        path = self.queue.collection + self.queue.expand
        whole = read_members(bmc, path, key="JobType", counted=True)
        kinds = (self.queue.kind, *self.queue.boot_kinds)
        jobs: list[ConfigJob] = []
        for each in whole:
            with one_member(bmc, path, []):
                jobs += [self._job(each)] if each.text("JobType") in kinds else []
        return [job for job in jobs if job.state in (*self.queue.waiting, *self.queue.running)]

    def delete(self, bmc: RedfishConnection, names: Iterable[str]) -> None:
        """Delete jobs that have not begun; their settings are no longer pending."""
        for name in names:
            path = f"{self.queue.collection}/{name}"
            response = bmc.request("DELETE", path, accept=(200, 202, 204, 404))
            if monitor := monitor_of(response):
                await_task(bmc, monitor, self.waits, lambda: False)

    def await_ready(self, bmc: RedfishConnection, location: str) -> str:
        """Wait until the next boot executes the job of a change; return its name.

        Args:
            location: the path of the job in the response; empty if the response had none.

        Raises:
            NodeError: NOT_APPLIED: there is no job, it failed, or it is not ready in time.
        """
        name = location.partition("?")[0].rstrip("/").rpartition("/")[2]
        if not name:  # the change joined a job
            jobs = self.active(bmc)
            name = next((job.name for job in jobs if job.sets_bios and not job.running), "")
        if not name:
            raise NodeError(Outcome.NOT_APPLIED, "the BMC has no job for the changed settings")
        _checked(name)
        begun = (*self.queue.ready, *self.queue.running, *self.queue.done)
        self._await(lambda: self._read(bmc, name), begun)
        return name

    def await_end(self, bmc: RedfishConnection, name: str) -> None:
        """Wait for the end of the job `name`; without a name, for the end of all jobs of the BIOS.

        The values in effect are not final before that.

        Raises:
            NodeError: NOT_APPLIED: a job failed, or it did not end in time.
        """
        if name:
            self._await(lambda: self._read(bmc, name), self.queue.done)
        else:
            self._await(lambda: self._any(bmc), ("",))

    def _any(self, bmc: RedfishConnection) -> ConfigJob:
        """Return a job that sets the BIOS and has not ended, or a job without a state."""
        none = ConfigJob("", self.queue.kind, "", "", sets_bios=True, running=False)
        return next((job for job in self.active(bmc) if job.sets_bios), none)

    def _read(self, bmc: RedfishConnection, name: str) -> ConfigJob:
        return self._job(bmc.get(f"{self.queue.collection}/{name}").body)

    def _job(self, part: BodyPart) -> ConfigJob:
        kind, state = part.text("JobType"), part.text("JobState")
        sets_bios, running = kind == self.queue.kind, state in self.queue.running
        name = _checked(part.text("Id"))
        return ConfigJob(
            name, kind, state, part.text("Message"), sets_bios=sets_bios, running=running
        )

    def _await(self, read: Callable[[], ConfigJob], states: Collection[str]) -> None:
        """Wait until the job is in one of `states`.

        Raises:
            NodeError: NOT_APPLIED: it failed, or it is in none of them at the limit.
        """
        unfinished = {*self.queue.waiting, *self.queue.running} - {*states}
        job = self.waits.until(read, lambda job: job.state not in unfinished)
        if job.state not in states:
            text = f"job {job.name} is {job.state}: {job.message or 'no message'}"
            raise NodeError(Outcome.NOT_APPLIED, text)


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        accepted = "letters, digits, '_', '.' and '-'"
        text = f"the name of a job: found {described(name)}; accepted: {accepted}"
        raise NodeError(Outcome.UNEXPECTED, text)
    return name


RESTARTS = ("GracefulRestart", "ForceRestart", "PowerCycle")
"""One request that restarts; the first one that the BMC lists is sent. The node is drained."""
OFF, ON = ("GracefulShutdown", "ForceOff"), ("On", "ForceOn")
"""Two requests that restart, for a BMC that lists no restart."""
DOWN = ("Off", "PoweringOff", "Paused")
"""States of a host that no restart reaches."""
LISTED = "ResetType@Redfish.AllowableValues"
INFO = "@Redfish.ActionInfo"


@dataclass(frozen=True)
class ResetWay:
    """How a system is restarted.

    Attributes:
        kinds: the reset types of one request, in the order in which they are tried.
        off: the reset types that switch the host off; needed if `kinds` is empty.
        on: the reset types that switch it on.
        problem: why the system cannot be restarted; empty if it can.
    """

    target: str = ""
    kinds: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    problem: str = ""


def reset_way(bmc: RedfishConnection, system: BodyPart, chosen: str) -> ResetWay:
    """Return how `system` is restarted, by what its BMC lists. Change nothing.

    Args:
        chosen: the only reset type that may be used (``firmware.reset_type``); empty for any. A BMC
            that lists none gets this one.

    Raises:
        NodeError: a request failed, or an answer has another form.
    """
    action = system.part("Actions").part("#ComputerSystem.Reset")
    target = action.path("target")
    if not target:
        return ResetWay(problem="the system has no reset action")
    listed = _listed(bmc, action)
    power = system.text("PowerState")
    problem = f"the host is {power}: switch it on first" if power in DOWN else ""
    if not listed and not chosen:
        text = f"the BMC lists no reset types, neither in {LISTED} nor in {INFO}"
        problem = f"{text}; set firmware.reset_type to one that it executes"
    if chosen:
        if listed and chosen not in listed:
            hint = nearest(chosen, listed)
            problem = f"no reset type {chosen!r}{hint}; offered: {', '.join(listed)}"
        return ResetWay(target, (chosen,), (), (), problem)
    kinds, off, on = (
        tuple(kind for kind in order if kind in listed) for order in (RESTARTS, OFF, ON)
    )
    if listed and not kinds and not (off and on):
        accepted = f"{', '.join(RESTARTS)}, or {OFF[1]} and {ON[0]}"
        found = ", ".join(listed)
        problem = f"no reset type restarts the host: found {found}; accepted: {accepted}"
    return ResetWay(target, kinds, off, on, problem)


def _listed(bmc: RedfishConnection, action: BodyPart) -> list[str]:
    """Return the reset types of the action; empty if the BMC lists none."""
    if listed := action.texts(LISTED):
        return listed
    linked = isinstance(action.content.get(INFO), dict)
    path = action.link(INFO) if linked else action.path(INFO)
    if not path:
        return []
    response = bmc.request("GET", path, accept=(200, 404))
    parameters = response.body.items("Parameters") if response.status == 200 else []
    named = (each for each in parameters if each.text("Name") == "ResetType")
    return next((each.texts("AllowableValues") for each in named), [])


def restart(bmc: RedfishConnection, system: str, way: ResetWay, waits: Waits) -> None:
    """Request the restart of the system with the path `system`; do not wait for its boot.

    A reset type that the BMC refuses is followed by the next one that it lists.

    Raises:
        NodeError: the BMC refused each reset type (`refused`), there was no answer, or the host did
            not switch off or on in time.
    """
    if way.kinds:
        try:
            _first_accepted(bmc, way.target, way.kinds, waits)
        except NodeError as error:
            tried = f"tried {', '.join(way.kinds)}; firmware.reset_type names another one"
            text = f"{error.text} ({tried})" if error.refused else error.text
            raise NodeError(error.outcome, text, refused=error.refused) from None
        return
    refusal: NodeError | None = None
    for kind in way.off:
        try:
            _first_accepted(bmc, way.target, (kind,), waits)
        except NodeError as error:
            if not error.refused:
                raise
            refusal = error
            continue
        refusal = None
        if waits.until(lambda: _is_off(bmc, system), bool):
            switch_on(bmc, way, waits)
            return
    if refusal:
        raise refusal
    text = f"the host is not off {waits.limit_s:g} s after {way.off[-1]}"
    raise NodeError(Outcome.NOT_RESET, text)


def switch_on(bmc: RedfishConnection, way: ResetWay, waits: Waits) -> None:
    """Switch a host on that a restart has switched off; repeat it while the BMC refuses it.

    Raises:
        NodeError: the BMC refuses it at the end of the wait.
    """

    def refusal() -> NodeError | None:
        try:
            _first_accepted(bmc, way.target, way.on, waits)
        except NodeError as error:
            if error.refused or error.outcome in TEMPORARY:
                return error
            raise _left_off(error) from None
        return None

    if error := waits.until(refusal, lambda error: error is None):
        raise _left_off(error)


def _left_off(error: NodeError) -> NodeError:
    text = f"the host is off and was not switched on: {error.text}"
    return NodeError(Outcome.NO_RETURN, text)


def _first_accepted(
    bmc: RedfishConnection, target: str, kinds: tuple[str, ...], waits: Waits
) -> None:
    """Send the first of `kinds` that the BMC accepts, and that its task does not fail.

    Raises:
        NodeError: it refuses the last one, or there was no answer.
    """
    for number, kind in enumerate(kinds, 1):
        try:
            response = bmc.request("POST", target, {"ResetType": kind}, accept=(200, 202, 204))
            if monitor := monitor_of(response):
                _await_reset(bmc, monitor, waits)
        except NodeError as error:
            last = number == len(kinds) or error.outcome is Outcome.DENIED
            if last or not error.refused:
                raise
        else:
            return


def _await_reset(bmc: RedfishConnection, monitor: str, waits: Waits) -> None:
    """Wait for the task of a reset; one that has not ended in time is shown by the boot."""
    try:
        await_task(bmc, monitor, waits, lambda: False)
    except NodeError as error:
        if error.outcome is Outcome.NOT_APPLIED:
            raise NodeError(Outcome.UNEXPECTED, error.text, refused=True) from None


def _is_off(bmc: RedfishConnection, system: str) -> bool:
    """Return whether a host is off; one whose BMC has no answer now is not."""
    try:
        return bmc.get(system).body.text("PowerState") == "Off"
    except NodeError as error:
        if error.outcome not in TEMPORARY:
            raise
        return False
