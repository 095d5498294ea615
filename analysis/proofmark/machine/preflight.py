"""Day one: what has to be right before a machine is touched, each with a named outcome."""

from __future__ import annotations

import pwd
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files

from proofmark.common.errors import BadInput
from proofmark.common.nodesets import folded
from proofmark.common.text import duration
from proofmark.machine.bmc.back_end import BackEndContext, back_end
from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.fanout import fan_out, split
from proofmark.machine.modes.stage import hosts_of
from proofmark.machine.outcome import NodeError
from proofmark.machine.programs import SCRIPT as MISSING_PROGRAMS
from proofmark.machine.programs import lacking, plan_programs
from proofmark.machine.remote_shell import RemoteShell
from proofmark.machine.scheduler import draining, scheduler
from proofmark.plan.plan import Plan
from proofmark.plan.resets import resets_s
from proofmark.site.firmware import Firmware
from proofmark.site.inventory import Site

CLOCK_S = 2.0
"""Clocks that differ by more make logs, counters and certificates disagree."""
SCRIPT = 'date +%s\nid -u "$1"\n'
SSH_SAYS = {
    "Host key verification failed": "HOST_KEY",
    "REMOTE HOST IDENTIFICATION HAS CHANGED": "HOST_KEY",
    "Permission denied": "LOGIN",
    "no such user": "NO_USER",
}


@dataclass(frozen=True)
class Finding:
    """One check: ``OK``, ``NOT_NEEDED``, ``NOT_TOLD``, or what is wrong."""

    what: str
    outcome: str
    text: str

    @property
    def bad(self) -> bool:
        """Whether a run must not start with it."""
        return self.outcome not in ("OK", "NOT_NEEDED", "NOT_TOLD")


def preflight(
    site: Site, plan: Plan, who: Credentials, end: datetime | None, user: str
) -> list[Finding]:
    """Look at everything; change nothing (a node's comment in Slurm is set to what it is)."""
    firmware = site.partition.firmware
    there = firmware or Firmware(back_end="record", remote_shell=site.remote_shell)
    findings = _nodes(site, there, user)
    findings += _programs(site, there, plan_programs(plan))
    findings += _bmcs(site, firmware, who) if firmware else []
    return [*findings, _rights(site, plan), _window(plan, firmware, end), _stop(site)]


def _nodes(site: Site, firmware: Firmware, user: str) -> list[Finding]:
    shell = RemoteShell(firmware.remote_shell, firmware.timeout_s)
    uid = pwd.getpwnam(user).pw_uid

    def one(node: str) -> str:
        start = time.time()
        told = shell(node, SCRIPT, (user,)).split()
        between = start - CLOCK_S <= int(told[0]) + 1 and int(told[0]) <= time.time() + CLOCK_S
        if not between:
            return f"CLOCK_SKEW {int(told[0]) - start:+.0f} s"
        return "OK" if told[1] == str(uid) else f"OTHER_UID {user} is {told[1]}, here {uid}"

    good, bad = split(fan_out(site.hosts, one, firmware.max_parallel))
    words = {**good, **{node: _said(failed) for node, failed in bad.items()}}
    return _grouped("nodes: host key, log-in, clock, uid", words)


def _programs(site: Site, firmware: Firmware, needed: Mapping[str, str]) -> list[Finding]:
    """Look on every node that answers for the programs that the scripts of the steps call."""
    shell = RemoteShell(firmware.remote_shell, firmware.timeout_s)
    script = (files("proofmark.machine") / "shell" / MISSING_PROGRAMS).read_text(encoding="utf-8")

    def one(node: str) -> str:
        return lacking(shell(node, script, tuple(needed)), needed)

    good, _ = split(fan_out(site.hosts, one, firmware.max_parallel))
    alike: dict[str, list[str]] = {}
    for node, missing in good.items():
        alike.setdefault(missing, []).append(node)
    return [
        Finding(
            "programs: what the steps call",
            "NO_PROGRAM" if missing else "OK",
            f"{folded(nodes)}: {missing}".strip(": "),
        )
        for missing, nodes in alike.items()
    ]


def _said(failed: NodeError) -> str:
    known = (word for text, word in SSH_SAYS.items() if text in failed.text)
    return f"{next(known, failed.outcome)} {failed.text}"


def _bmcs(site: Site, firmware: Firmware, who: Credentials) -> list[Finding]:
    end = back_end(
        BackEndContext(firmware, who, RemoteShell(firmware.remote_shell, firmware.timeout_s))
    )
    hosts = hosts_of(site, firmware)

    def one(node: str) -> str:
        end.read(hosts[node], {})
        return "OK"

    good, bad = split(fan_out(site.hosts, one, firmware.max_parallel, threading.Event()))
    words = {**good, **{node: f"{each.outcome} {each.text}" for node, each in bad.items()}}
    return _grouped("BMCs: certificate, log-in, registry", words)


def _grouped(what: str, words: dict[str, str]) -> list[Finding]:
    nodes: dict[str, list[str]] = {}
    for node, word in words.items():
        nodes.setdefault(word.partition(" ")[0], []).append(node)
    return [
        Finding(what, outcome, f"{folded(those)}: {words[those[0]].partition(' ')[2]}".strip(": "))
        for outcome, those in nodes.items()
    ]


def _rights(site: Site, plan: Plan) -> Finding:
    what = "scheduler: may we drain?"
    if all(group.mode == plan.current_mode for group in plan.groups):
        return Finding(what, "NOT_NEEDED", "the plan changes no mode")
    try:
        why = draining(site.partition.scheduler).missing_permission(site.hosts[0])
    except BadInput as error:
        return Finding(what, "CANNOT_DRAIN", str(error))
    return Finding(what, "NO_RIGHTS" if why else "OK", why or site.partition.scheduler)


def _window(plan: Plan, firmware: Firmware | None, end: datetime | None) -> Finding:
    needs = plan.totals.wall_s + resets_s(plan, firmware)
    text = f"the plan takes about {duration(needs)}, resets included"
    if end is None:
        return Finding("maintenance window", "NOT_TOLD", f"{text}; --window-ends tells the end")
    left = (end - datetime.now(UTC)).total_seconds()
    outcome = "OK" if needs <= left else "TOO_SHORT"
    return Finding("maintenance window", outcome, f"{text}; {duration(max(0, left))} are left")


def _stop(site: Site) -> Finding:
    command = scheduler(site.partition.scheduler).stop_command
    text = f"Ctrl-C ends jobs by {command}; then playbooks/restore.yml"
    return Finding("stop command", "OK" if shutil.which(command) else "NO_STOP", text)
