"""The functions and classes for Ansible plug-ins and for the plug-ins and programs of a site.

A name in `MODULES` keeps its meaning until the next major version. Other modules can change without
notice. A name is loaded at its first use. May import: every room but cli.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proofmark.common.errors import BadInput as BadInput
    from proofmark.common.errors import ProofmarkError as ProofmarkError
    from proofmark.common.kit import result_folder as result_folder
    from proofmark.jobs.launcher import Launch as Launch
    from proofmark.jobs.launcher import Launcher as Launcher
    from proofmark.judge.judging import judge_run as judge_run
    from proofmark.judge.verdict import Verdict as Verdict
    from proofmark.machine.bmc.back_end import BackEnd as BackEnd
    from proofmark.machine.bmc.back_end import BackEndContext as BackEndContext
    from proofmark.machine.bmc.back_end import FirmwareState as FirmwareState
    from proofmark.machine.bmc.back_end import Host as Host
    from proofmark.machine.node_commands import known_packages as known_packages
    from proofmark.machine.outcome import NodeError as NodeError
    from proofmark.machine.outcome import Outcome as Outcome
    from proofmark.machine.scheduler import DrainingScheduler as DrainingScheduler
    from proofmark.machine.scheduler import NodeState as NodeState
    from proofmark.machine.scheduler import NodeStatus as NodeStatus
    from proofmark.machine.scheduler import NodeUse as NodeUse
    from proofmark.machine.scheduler import Request as Request
    from proofmark.machine.scheduler import Scheduler as Scheduler
    from proofmark.machine.scheduler import SchedulerError as SchedulerError
    from proofmark.machine.scheduler import SchedulerUnavailable as SchedulerUnavailable
    from proofmark.records.columns import Record as Record
    from proofmark.runs.job_folder import JobStatus as JobStatus
    from proofmark.runs.job_folder import State as State
    from proofmark.runs.run import Run as Run
    from proofmark.runs.run import open_run as open_run
    from proofmark.site.access import connection_variables as connection_variables
    from proofmark.site.access import keywords_of as keywords_of
    from proofmark.site.choice import limit_of_names as limit_of_names
    from proofmark.site.choice import refuse_sources as refuse_sources
    from proofmark.site.extra_vars import refused_extra_variables as refused_extra_variables
    from proofmark.site.extra_vars import refused_of_inventory as refused_of_inventory
    from proofmark.site.groups import RESOLVED as RESOLVED
    from proofmark.site.groups import apply_limit as apply_limit
    from proofmark.site.groups import refuse_unread as refuse_unread
    from proofmark.site.groups import resolved_groups as resolved_groups
    from proofmark.site.inventory import has_contract as has_contract
    from proofmark.site.node.facts import parse_probe as parse_probe
    from proofmark.software.environments import system_needs as system_needs
    from proofmark.software.installed import Installed as Installed
    from proofmark.software.installed import Provided as Provided
    from proofmark.software.installed import ProvisionRequest as ProvisionRequest
    from proofmark.software.program import candidate_kernels as candidate_kernels
    from proofmark.software.provider import Provider as Provider

MODULES = {
    "BackEnd": "proofmark.machine.bmc.back_end",
    "BackEndContext": "proofmark.machine.bmc.back_end",
    "BadInput": "proofmark.common.errors",
    "DrainingScheduler": "proofmark.machine.scheduler",
    "FirmwareState": "proofmark.machine.bmc.back_end",
    "Host": "proofmark.machine.bmc.back_end",
    "Installed": "proofmark.software.installed",
    "JobStatus": "proofmark.runs.job_folder",
    "Launch": "proofmark.jobs.launcher",
    "Launcher": "proofmark.jobs.launcher",
    "NodeError": "proofmark.machine.outcome",
    "NodeState": "proofmark.machine.scheduler",
    "NodeStatus": "proofmark.machine.scheduler",
    "NodeUse": "proofmark.machine.scheduler",
    "Outcome": "proofmark.machine.outcome",
    "ProofmarkError": "proofmark.common.errors",
    "Provided": "proofmark.software.installed",
    "Provider": "proofmark.software.provider",
    "ProvisionRequest": "proofmark.software.installed",
    "RESOLVED": "proofmark.site.groups",
    "Record": "proofmark.records.columns",
    "Request": "proofmark.machine.scheduler",
    "Run": "proofmark.runs.run",
    "Scheduler": "proofmark.machine.scheduler",
    "SchedulerError": "proofmark.machine.scheduler",
    "SchedulerUnavailable": "proofmark.machine.scheduler",
    "State": "proofmark.runs.job_folder",
    "Verdict": "proofmark.judge.verdict",
    "apply_limit": "proofmark.site.groups",
    "candidate_kernels": "proofmark.software.program",
    "connection_variables": "proofmark.site.access",
    "judge_run": "proofmark.judge.judging",
    "has_contract": "proofmark.site.inventory",
    "keywords_of": "proofmark.site.access",
    "limit_of_names": "proofmark.site.choice",
    "known_packages": "proofmark.machine.node_commands",
    "open_run": "proofmark.runs.run",
    "parse_probe": "proofmark.site.node.facts",
    "refuse_sources": "proofmark.site.choice",
    "refuse_unread": "proofmark.site.groups",
    "refused_extra_variables": "proofmark.site.extra_vars",
    "refused_of_inventory": "proofmark.site.extra_vars",
    "resolved_groups": "proofmark.site.groups",
    "result_folder": "proofmark.common.kit",
    "system_needs": "proofmark.software.environments",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(MODULES)
