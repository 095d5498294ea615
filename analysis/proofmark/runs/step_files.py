"""The names of the files of a step of a run. No other room has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

NOISE, TELEMETRY = "noise.json", "telemetry.jsonl"
DISTURBED = "disturbed"
"""The job writes this file into an execution after its end, to plan repeats."""
_LAUNCH = re.compile(r"^launch\(\) \{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class StepFiles:
    """``steps/<id>/``, or the folder of one node or one execution in it."""

    folder: Path

    @property
    def script(self) -> Path:
        """The script that runs the step."""
        return self.folder / "run.sh"

    @property
    def node_script(self) -> Path:
        """The script of a node, if each node measures the step by itself."""
        return self.folder / "node.sh"

    @property
    def instances(self) -> Path:
        """The list of the folders of nodes, if each node measures the step by itself."""
        return self.folder / "instances"

    @property
    def exit_code(self) -> Path:
        """The exit code of an execution. A per-node step has it after its end."""
        return self.folder / "rc"

    @property
    def started(self) -> Path:
        """Host, process, start and kind of the execution. The step writes it at its start."""
        return self.folder / "started"

    @property
    def when(self) -> Path:
        """Start, end, host and ticks of the CPUs, as JSON."""
        return self.folder / "when.json"

    @property
    def stdout(self) -> Path:
        """The standard output of the program."""
        return self.folder / "stdout"

    @property
    def stderr(self) -> Path:
        """The standard error of the program."""
        return self.folder / "stderr"

    @property
    def binding(self) -> Path:
        """The CPUs and hosts that ranks and threads reported, as JSON."""
        return self.folder / "binding.json"

    @property
    def noise(self) -> Path:
        """The samples of the nodes while the program ran, as JSON."""
        return self.folder / NOISE

    @property
    def disturbed(self) -> Path:
        """The disturbed nodes of an execution; missing if there are none."""
        return self.folder / DISTURBED

    @property
    def telemetry(self) -> Path:
        """The temperatures, power, clock and throttling of the nodes while the program ran."""
        return self.folder / TELEMETRY

    @property
    def load(self) -> Path:
        """The folder of the program that runs beside the step: its script and its executions."""
        return self.folder / "load"

    @property
    def load_report(self) -> Path:
        """Whether the load ran during the whole program, and the CPUs of its ranks, as JSON."""
        return self.folder / "load.json"

    @property
    def files_report(self) -> Path:
        """Whether the node could write into the scratch folder after a failure, as JSON."""
        return self.folder / "files.json"

    def submitted(self, execution: StepFiles) -> list[Path]:
        """Return the files of a submission of one execution to the HPL list."""
        outputs = [execution.stdout, execution.stderr, execution.exit_code, execution.when]
        return [self.script, *outputs, execution.folder / "HPL.dat", execution.binding]


def launch_command(script: str) -> str:
    """Return the command that starts the program, from the text of ``run.sh``; may be empty."""
    found = _LAUNCH.search(script)
    return found[1].rstrip() if found else ""
