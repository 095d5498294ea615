"""SimGrid's smpirun: the ranks of a real MPI program on the CPUs of a model of the partition.

All settings of the simulation are in the platform file of the run. See smpirun(1).
"""

from __future__ import annotations

import shlex
from pathlib import Path

from proofmark.jobs.launcher import Launch, Launcher
from proofmark.packages.twin.platform import host_name
from proofmark.packages.twin.twin_files import TwinFiles
from proofmark.runs.run_files import RunFiles

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
