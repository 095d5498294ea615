"""Emulates many Redfish BMCs in one process: one loopback address each, TLS, both log-in methods.

`Emulator` is for tests, ``python -m tests.emulators.bmc`` for a rehearsal.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.emulators.bmc import http_faults
from tests.emulators.bmc.certificates import Authority
from tests.emulators.bmc.machine import TASK_S, Machine, registry
from tests.emulators.bmc.mutations import Mutations
from tests.emulators.bmc.reply import Reply

USER, PASSWORD = "operator", "a test's own secret"
ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
SETTINGS = f"{SYSTEM}/Bios/Settings"
SESSIONS = "/redfish/v1/SessionService/Sessions"
MONITOR = f"{ROOT}/TaskService/TaskMonitors/1"
ACTION_INFO = f"{SYSTEM}/ResetActionInfo"
RESET_TYPES = ["On", "ForceOff", "GracefulRestart", "ForceRestart", "PowerCycle"]


def address(number: int, network: int = 9) -> str:
    """Return the loopback address of the BMC `number`, which counts from 0."""
    return f"127.{network}.{number // 250}.{number % 250 + 1}"


@dataclass
class Timing:
    """Delays in seconds: of each response, of a node that is off, of a boot."""

    latency: float = 0.0
    off: float = 0.02
    boot: float = 0.05


class Emulator:
    """Emulated BMCs that respond within this context.

    Args:
        names: the nodes.
        folder: the files of each node are in ``nodes/<name>``.
        shape: the type of the nodes, ``knl`` or ``skl``.
        port: of all BMCs; 0 for a free one.
        network: the second byte of the addresses.
        faults: the fault of a node, by its name.
        timing: delays.
        service_root: further properties of the service root, for example its vendor.
        hook: a command, or a function that returns at once; it is called with ``off NODE`` and
            ``on NODE``.

    Attributes:
        mutations: changes the answers, if it is set.
        logins: the headers ``Authorization`` and the texts of log-ins that were received.
        authority: signs the certificates of the BMCs.
    """

    def __init__(
        self,
        names: Sequence[str],
        folder: Path,
        *,
        shape: str = "knl",
        port: int = 0,
        network: int = 9,
        faults: Mapping[str, str] | None = None,
        timing: Timing | None = None,
        service_root: Mapping[str, Any] | None = None,
        hook: str | Callable[[str, str], object] = "",
    ) -> None:
        self.timing = timing or Timing()
        self.port, self._hook, self._network = port, hook, network
        self.mutations: Mutations | None = None
        self.logins: list[str] = []
        self._service_root = service_root or {}
        self.nodes = folder / "nodes"
        self.machines = {
            name: self.machine(name, shape, (faults or {}).get(name, "")) for name in names
        }
        self.authority = Authority(folder / "certificates")
        self.ca = self.authority.ca
        self._tokens: set[str] = set()
        self._loop: asyncio.AbstractEventLoop
        self._servers: list[asyncio.Server] = []
        self._thread: threading.Thread | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    def machine(self, name: str, shape: str, fault: str) -> Machine:
        """Return a new machine."""
        return Machine(name, self.nodes / name, shape, fault)

    def address(self, name: str) -> str:
        """Return the address of the BMC of the node `name`."""
        return address(list(self.machines).index(name), self._network)

    @property
    def sessions(self) -> int:
        """The number of sessions without a log-out."""
        return len(self._tokens)

    @property
    def remote_shell(self) -> list[str]:
        """The command that replaces ssh."""
        return ["sh", str(Path(__file__).with_name("remote-shell.sh")), str(self.nodes), "{node}"]

    def __enter__(self) -> Emulator:
        self._loop = asyncio.new_event_loop()
        try:
            self._loop.run_until_complete(self.open())
        except BaseException:
            self._loop.run_until_complete(self._close())
            self._loop.close()
            raise
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(200)
        self._loop.call_soon_threadsafe(self._loop.stop)
        assert self._thread is not None
        self._thread.join(200)
        self._loop.close()

    async def open(self) -> None:
        """Start the servers."""
        for machine in self.machines.values():
            if machine.fault == "unreachable":
                continue
            host = self.address(machine.name)
            certificate = self.authority.certificate(host, expired=machine.fault == "expired")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, self.authority.key)

            async def serve(
                reader: asyncio.StreamReader,
                writer: asyncio.StreamWriter,
                machine: Machine = machine,
            ) -> None:
                await self._serve(machine, reader, writer)

            server = await asyncio.start_server(serve, host, self.port, ssl=context, backlog=64)
            # With port 0 the first server gets a free port; the others use the same.
            self.port = server.sockets[0].getsockname()[1]
            self._servers.append(server)

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for writer in list(self._writers):
            writer.transport.abort()  # clients keep their connections open
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(3):  # iterations of the loop that close the transports
            await asyncio.sleep(0)
        await asyncio.get_running_loop().shutdown_default_executor()  # waits for the hooks to end

    async def _serve(
        self, machine: Machine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._writers.add(writer)
        machine.connections += 1
        host = f"{self.address(machine.name)}:{self.port}"
        try:
            while request := await _request(reader):
                machine.requests += 1
                if machine.fault == "hang":
                    await asyncio.sleep(3600)
                await asyncio.sleep(self.timing.latency)
                busy = (
                    machine.fault == "busy"
                    or (machine.fault == "busy-twice" and machine.requests <= 2)
                    or time.monotonic() < machine.busy_until
                )
                method, path, headers, raw = request
                moved = http_faults.redirect(machine.fault, method, path, host)
                reply = moved or (
                    _busy()
                    if busy
                    else self._reply(machine, method, path.rstrip("/"), headers, raw)
                )
                whole = http_faults.encoded(reply, machine.fault)
                pieces = self.mutations.pieces(reply) if self.mutations else [(0.0, whole)]
                for pause, piece in pieces:
                    await asyncio.sleep(pause)
                    writer.write(piece)
                    await writer.drain()
                if pieces[-1][1] != whole and len(pieces) > 1:
                    break  # a client cannot find the next answer
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the client closed the connection
        finally:
            self._writers.discard(writer)
            writer.close()

    def _reply(
        self, machine: Machine, method: str, path: str, headers: Mapping[str, str], raw: bytes
    ) -> Reply:
        content: dict[str, Any] = json.loads(raw) if raw else {}
        password = PASSWORD + "!" if machine.fault == "wrong-password" else PASSWORD
        if (method, path) == ("POST", SESSIONS):
            self.logins.append(raw.decode(errors="replace"))
            return self._log_in(machine, content, password)
        if sent := headers.get("authorization", ""):
            self.logins.append(sent)
        expected = "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()
        if machine.fault == "leak":
            plain = base64.b64decode(sent.removeprefix("Basic ")).decode()
            return error(401, f"no access with {sent} which is {plain}")
        if (method, path) == ("GET", ROOT):
            return Reply(200, self._resources(machine)[ROOT])  # without log-in (DSP0266)
        if machine.fault == "session-only" and "x-auth-token" not in headers:
            challenge = {"WWW-Authenticate": 'X-Auth-Token realm="BMC"'}
            return Reply(401, error(401, "no valid session").body, challenge)
        if sent != expected and headers.get("x-auth-token") not in self._tokens:
            return error(401, "no valid session")
        if method == "DELETE" and path.startswith(SESSIONS):
            self._tokens.discard(path.rpartition("/")[2])
            return Reply(204)
        return self.answer(machine, method, path, headers, content)

    def answer(
        self,
        machine: Machine,
        method: str,
        path: str,
        headers: Mapping[str, str],
        content: Mapping[str, Any],
    ) -> Reply:
        """Return the response to a request with a log-in."""
        reply = self._act(machine, method, path, headers, content)
        if reply is not None:
            return reply
        resource = self._resources(machine).get(path) if method == "GET" else None
        if resource is None:
            return error(404, f"no resource {path}")
        return self._tagged(machine, path, Reply(200, {"@odata.id": path, **resource}))

    def _act(
        self,
        machine: Machine,
        method: str,
        path: str,
        headers: Mapping[str, str],
        content: Mapping[str, Any],
    ) -> Reply | None:
        """Return the response to a request that is no GET of `_resources`; None for one."""
        on_bios = machine.fault == "no-settings"
        if (method, path) == ("PATCH", f"{SYSTEM}/Bios" if on_bios else SETTINGS):
            return self._patch(machine, headers, content)
        if (method, path) == ("GET", MONITOR):
            return self._task(machine)
        if path == SETTINGS and machine.fault == "settings-write-only":
            return error(405, "only PATCH is allowed")
        return self.reset(machine, content) if (method, path) == ("POST", RESET) else None

    def _tagged(self, machine: Machine, path: str, reply: Reply) -> Reply:
        """Return the response with a resource, with its ETag if it has one."""
        if path != SETTINGS:
            return reply
        return http_faults.with_etag(reply, machine.fault, machine.etag(), machine.requests)

    def _log_in(self, machine: Machine, content: Mapping[str, Any], password: str) -> Reply:
        if (content.get("UserName"), content.get("Password")) != (USER, password):
            return error(401, "no such user or password")
        token = secrets.token_hex(16)
        self._tokens.add(token)
        path = f"{SESSIONS}/{token}"
        location = {
            "session-address": f"https://{self.address(machine.name)}:{self.port}{path}",
            "session-relative": f"Sessions/{token}",
            "session-in-body": "",
        }.get(machine.fault, path)
        headers = {"X-Auth-Token": token} | ({"Location": location} if location else {})
        return Reply(201, {"Id": "1", "@odata.id": path}, headers)

    def _resources(self, machine: Machine) -> dict[str, dict[str, Any]]:
        early = machine.pending if machine.fault.startswith("early") else {}
        bios: dict[str, Any] = {
            "Id": "Bios",
            "Attributes": machine.current | early,
            "@Redfish.Settings": {
                "SettingsObject": {"@odata.id": SETTINGS},
                "SupportedApplyTimes": ["OnReset"],
            },
        }
        if machine.fault != "no-registry":
            bios["AttributeRegistry"] = f"{machine.shape}.v1_0_0"
        if machine.fault == "no-settings":
            del bios["@Redfish.Settings"]
        name = f"/redfish/v1/Registries/{machine.shape}.v1_0_0"
        types = reset_types(machine.fault)
        listed: dict[str, Any] = {"ResetType@Redfish.AllowableValues": types} if types else {}
        if machine.fault == "reset-in-action-info":
            listed = {"@Redfish.ActionInfo": ACTION_INFO}
        parameter = {"Name": "ResetType", "AllowableValues": types}
        return {
            ACTION_INFO: {"Id": "ResetActionInfo", "Parameters": [parameter]},
            **sensor_resources(machine),
            "/redfish/v1/Systems": {"Members": [{"@odata.id": SYSTEM}]},
            SYSTEM: {
                "Id": "1",
                "HostName": machine.name,
                "SerialNumber": machine.serial,
                "PowerState": "Off" if machine.fault == "host-off" else machine.power,
                "Bios": {"@odata.id": f"{SYSTEM}/Bios"},
                "Actions": {
                    "#ComputerSystem.Reset": {
                        "target": RESET,
                        **listed,
                    }
                },
            },
            f"{SYSTEM}/Bios": bios,
            SETTINGS: {"Id": "Settings", "Attributes": machine.pending},
            name: {"Location": [{"Language": "en", "Uri": f"{name}.json"}]},
            f"{name}.json": {"RegistryEntries": {"Attributes": registry(machine.shape)}},
            ROOT: {
                "RedfishVersion": "1.6.0",
                **self._service_root,
                **{name: {"@odata.id": f"{ROOT}/{name}"} for name in ("Systems", "Managers")},
            },
        }

    def _patch(
        self, machine: Machine, headers: Mapping[str, str], content: Mapping[str, Any]
    ) -> Reply:
        if machine.fault == "race" and not machine.version:
            machine.version += 1
        if machine.fault == "race-foreign" and not machine.version:
            machine.version += 1
            machine.pending["Turbo"] = "Disabled"
        if status := http_faults.unmet(machine.fault, headers, machine.etag()):
            return error(status, "the precondition of the settings is not met")
        if machine.fault == "wants-apply-time" and "@Redfish.SettingsApplyTime" not in content:
            return error(400, "SettingsApplyTime is missing")
        attributes = dict(content.get("Attributes", {}))
        if refusal := machine.refusal(attributes):
            return error(400, refusal)
        if machine.fault.startswith("partial") and len(attributes) > 1:
            later = bool(machine.pending) and machine.fault == "partial-once"
            if later:
                return error(400, "not now")
            name = next(iter(attributes))
            changed = {key: each for key, each in attributes.items() if key != name}
            machine.patch(attributes if machine.pending else changed)
            return Reply(200, {"Attributes": machine.pending}, {"ETag": machine.etag()})
        if machine.fault == "patch-closes":
            machine.patch(attributes)
            machine.fault = ""
            raise ConnectionError
        if machine.fault.startswith("task"):
            return self._begin_task(machine, attributes)
        machine.patch(attributes)
        return Reply(200, {"Attributes": machine.pending}, {"ETag": machine.etag()})

    def _begin_task(self, machine: Machine, attributes: dict[str, Any]) -> Reply:
        """Accept a change that is executed later."""
        machine.task_end = time.monotonic() + TASK_S
        loop = asyncio.get_running_loop()
        if machine.fault == "task-for-boot":
            machine.patch(attributes)
        elif machine.fault in ("task", "task-unnamed"):
            loop.call_later(TASK_S, machine.patch, attributes)
        location = {} if machine.fault == "task-unnamed" else {"Location": MONITOR}
        return Reply(202, None, location)

    def _task(self, machine: Machine) -> Reply:
        task: dict[str, Any] = {"Id": "1", "TaskState": "Running"}
        if machine.fault == "task-for-boot":
            return Reply(202, {**task, "TaskState": "Pending"}, {"Retry-After": "1"})
        if time.monotonic() < machine.task_end or machine.fault == "task-endless":
            return Reply(202, task, {"Retry-After": "1"} if machine.fault == "task" else {})
        if machine.fault == "task":
            return Reply(204)
        messages = [{"Message": "the setting was rejected by the host"}]
        return Reply(200, {**task, "TaskState": "Exception", "Messages": messages})

    def reset(self, machine: Machine, content: Mapping[str, Any]) -> Reply:
        """Restart the machine."""
        kind = str(content.get("ResetType"))
        machine.sent.append(kind)
        refused = {"reset-refused": RESET_TYPES, "reset-graceful-refused": ["GracefulRestart"]}
        accepted = reset_types(machine.fault) or ["ForceRestart"]
        if kind not in accepted or kind in refused.get(machine.fault, ()):
            return error(400, f"{kind} is not in the list of acceptable values")
        if machine.fault == "reset-task-fails" and kind == "GracefulRestart":
            return Reply(202, None, {"Location": MONITOR})
        if kind == "GracefulShutdown":
            return Reply(204)  # the operating system ignores it
        if kind in ("ForceOff", "On"):
            return self._switch(machine, kind)
        if machine.fault in ("stuck", "early-stuck"):
            return Reply(204)
        machine.go_down()
        self._call_hook("off", machine)
        loop = asyncio.get_running_loop()
        loop.call_later(self.timing.off + self.timing.boot, self._come_up, machine)
        return Reply(204)

    def _switch(self, machine: Machine, kind: str) -> Reply:
        """Switch the machine off or on."""
        loop = asyncio.get_running_loop()
        if kind == "On" and machine.power != "Off":
            return error(409, "the host is not off")
        if kind == "On":
            loop.call_later(self.timing.boot, self._come_up, machine)
        else:
            late = TASK_S if machine.fault == "reset-off-on-late" else 0.0
            loop.call_later(late, machine.go_down)
        return Reply(204)

    def _come_up(self, machine: Machine) -> None:
        if machine.fault == "busy-after-boot":
            machine.busy_until = time.monotonic() + 3 * TASK_S
        machine.come_up()
        self._call_hook("on", machine)

    def _call_hook(self, event: str, machine: Machine) -> None:
        if event == "on" and machine.fault == "no-return":
            return
        if callable(self._hook):
            self._hook(event, machine.name)
        elif self._hook:
            command = [self._hook, event, machine.name]
            hook = partial(subprocess.run, command, stdin=subprocess.DEVNULL, check=False)
            asyncio.get_running_loop().run_in_executor(None, hook)


def reset_types(fault: str) -> list[str]:
    """Return the reset types that a BMC with `fault` lists."""
    lists = {
        "reset-in-action-info": ["On", "ForceOff", "ForceRestart"],
        "reset-unlisted": [],
        "reset-off-on": ["On", "ForceOff", "GracefulShutdown", "Nmi"],
        "reset-off-on-late": ["On", "ForceOff"],
    }
    return lists.get(fault, RESET_TYPES)


def sensor_resources(machine: Machine) -> dict[str, dict[str, Any]]:
    """Return the chassis of a machine with its sensors."""
    chassis = f"{ROOT}/Chassis/1"
    newer = machine.sensors == "EnvironmentMetrics"
    kinds = ("EnvironmentMetrics", "ThermalSubsystem") if newer else ("Power", "Thermal")
    links = {kind: {"@odata.id": f"{chassis}/{kind}"} for kind in kinds if machine.sensors}
    metrics = f"{chassis}/ThermalSubsystem/ThermalMetrics"
    processors = [("CPU", machine.celsius), ("CPU", 40), ("PowerSupply", 99)]
    return {
        f"{ROOT}/Chassis": {"Members": [{"@odata.id": chassis}]},
        chassis: {"Id": "1", **links},
        f"{chassis}/Power": {"PowerControl": [{"PowerConsumedWatts": machine.watts}]},
        f"{chassis}/Thermal": {
            "Temperatures": [
                {"PhysicalContext": context, "ReadingCelsius": value}
                for context, value in processors
            ]
        },
        f"{chassis}/EnvironmentMetrics": {"PowerWatts": {"Reading": machine.watts}},
        f"{chassis}/ThermalSubsystem": {"ThermalMetrics": {"@odata.id": metrics}},
        metrics: {
            "TemperatureReadingsCelsius": [
                {"PhysicalContext": context, "Reading": value} for context, value in processors
            ]
        },
    }


async def _request(
    reader: asyncio.StreamReader,
) -> tuple[str, str, dict[str, str], bytes] | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return method, path, headers, body


def _busy() -> Reply:
    return Reply(503, error(503, "busy").body, {"Retry-After": "0"})


def error(status: int, text: str) -> Reply:
    """Return the response of a refused request."""
    message = {"MessageId": f"Base.1.8.{status}", "Message": text}
    error = {"code": "Base.1.8.GeneralError", "message": text}
    return Reply(status, {"error": {**error, "@Message.ExtendedInfo": [message]}})
