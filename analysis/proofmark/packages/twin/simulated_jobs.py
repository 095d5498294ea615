"""The jobs of a twin: children of this process that simulate all nodes of a job.

SimGrid's smpirun runs the ranks of a real MPI program on the CPUs of the model of the partition.
All settings of the simulation are in the platform file of the run. See smpirun(1).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from proofmark.jobs.launcher import Launch, Launcher
from proofmark.machine.scheduler import Request
from proofmark.machine.schedulers.none import ChildJobs
from proofmark.packages.twin.platform import host_name
from proofmark.packages.twin.twin_files import TwinFiles
from proofmark.plan.plan import Group, Job, Plan
from proofmark.plan.step import Step
from proofmark.runs.run_files import RunFiles


def divided(plan: Plan, count: int) -> Plan:
    """Return `plan` for `count` jobs at the same time: each job is divided into this number.

    A simulated job needs no nodes, so that jobs with the same nodes can run at the same time. The
    steps are given to the jobs by their cost, the longest first, each to the job with the least
    time (R. L. Graham, "Bounds on multiprocessing timing anomalies", 1969). In a job they keep
    their order.
    """
    groups = [_divided(group, number, count) for number, group in enumerate(plan.groups)]
    wall_s = sum(_wall_s([job.wall_s for job in group.jobs], count) for group in groups)
    totals = {"jobs": sum(len(group.jobs) for group in groups), "wall_s": round(wall_s, 1)}
    update = {"groups": groups, "at_once": count}
    return plan.model_copy(update={**update, "totals": plan.totals.model_copy(update=totals)})


def _wall_s(jobs: Sequence[float], count: int) -> float:
    """Return the least time of jobs with these times, `count` of them at the same time."""
    return max(*jobs, sum(jobs) / count, 0.0)


def _divided(group: Group, number: int, count: int) -> Group:
    parts = []
    for job in group.jobs:
        parts += [(job.nodes, steps) for steps in _shares(job.steps, count) if steps]
    jobs = [
        Job(id=f"{number:02d}-{part:04d}", nodes=nodes, steps=steps)
        for part, (nodes, steps) in enumerate(parts, start=1)
    ]
    return group.model_copy(update={"jobs": jobs})


def _shares(steps: list[Step], count: int) -> list[list[Step]]:
    """Return `count` lists of steps with about the same time."""
    shares: list[list[int]] = [[] for _ in range(count)]
    times = [0.0] * count
    for step in sorted(range(len(steps)), key=lambda index: -steps[index].wall_s):
        least = times.index(min(times))
        shares[least].append(step)
        times[least] += steps[step].wall_s
    return [[steps[index] for index in sorted(share)] for share in shares]


class SimulatedNodes(ChildJobs):
    """The jobs of a twin: a child of this process simulates all nodes of a job."""

    isolates_jobs = True

    def header(self, request: Request) -> list[str]:
        """Return no lines: a simulation can have any number of nodes."""
        return []

    def fan_out(self, request: Request) -> list[str]:
        """Return a function that runs a script once: on the machine that simulates the nodes."""
        return ["on_all() {", '\tsh "$@"', "}"]


PLATFORM = TwinFiles(RunFiles(Path("../../..")).inputs).platform
"""The model, from the folder of a step in the work folder, which is in the run."""

REPORT = r"""awk '/\[rank [0-9]+\] -> / {
	sub(/^.*\[rank /, "")
	rank = $1 + 0
	cpu = $NF
	sub(/^.*\.cpu/, "", cpu)
	host = $NF
	sub(/\.cpu[0-9]+$/, "", host)
	file = ENVIRON["BINDING"] "/" rank
	printf "{\"rank\": %d, \"host\": \"%s\", \"cpus\": \"%s\"}\n", rank, host, cpu >file
	close(file)
}' stderr"""
"""Writes the CPU of each rank, as the option -map printed it, in place of the ranks."""


class SmpirunLauncher(Launcher):
    """SimGrid's smpirun."""

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines that write the CPU of each rank and start the simulation.

        The ranks are threads of one process, so that no wrapper can report their binding: the
        simulator does.
        """
        names = [host_name(launch.hosts[rank.node], rank.cpus[0]) for rank in launch.cpus]
        options = ["-map", "-np", str(len(names)), "-hostfile", "hostfile"]
        program = shlex.join([launch.program, *launch.arguments])
        return [
            *launch.exports(),
            launch.hostfile(names),
            f'smpirun {shlex.join(options)} -platform "$HERE/{PLATFORM}" {program}',
            "code=$?",
            REPORT,
            'exit "$code"',
        ]
