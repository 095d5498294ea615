"""Back end for Slurm's node_features/knl_generic: the constraint of a job makes Slurm set the mode.

The features of a node (``quad,flat``) are its attributes here: ``{quad: true, flat: true}``. Slurm
restarts a node for a job, but not a drained node. Therefore the reset is a short job with the
constraint, and the node is not drained.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from proofmark.machine.bmc.back_end import BackEnd, BackEndContext, only
from proofmark.machine.bmc.bmc_model import AttributeSpec, FirmwareState, Host
from proofmark.machine.controller_tools import ask_tool
from proofmark.machine.slurm_jobs import of_cluster, queue_options
from proofmark.site.firmware import Settings

_WIDTH = 1024
"""Letters of a column of sinfo, which cuts a longer list of features."""


class KnlGeneric(BackEnd):
    """Changes modes by scontrol and sbatch on the controller."""

    sets = True
    drains = False
    reads_current_values = True

    def __init__(self, context: BackEndContext) -> None:
        self._timeout_s, self._queue = context.firmware.timeout_s, context.queue

    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Return the active and the available features."""
        # Not the output of scontrol: the reason of a drain can have words such as ActiveFeatures=x.
        form = f"--Format=Features:{_WIDTH},Features_Act:{_WIDTH}"
        which = ("--noheader", "--all", "--Node", f"--nodes={host.node}")
        line = self._run(*of_cluster(self._queue, "sinfo"), *which, form)
        available, active = _features(line[:_WIDTH]), _features(line[_WIDTH : 2 * _WIDTH])
        offers = {name: AttributeSpec(values=(True,)) for name in available}
        return FirmwareState(only(dict.fromkeys(active, True), wanted), offers=offers)

    def not_restorable(self, state: FirmwareState, wanted: Settings) -> Iterator[str]:
        """Yield a message if no feature is active; a feature that is not active has no value."""
        if not state.current:
            yield "no feature of a mode is active"

    def stage(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """Do nothing: Slurm sets the mode when the job starts."""

    def reset(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """Submit an empty job to the queue, whose constraint is the features of `wanted`.

        Of an option that is given twice sbatch takes the last.
        """
        constraint = "&".join(wanted)
        own = ["--exclusive", "--time=5", "--output=/dev/null"]
        name = ["--job-name=proofmark-mode", f"--nodelist={host.node}"]
        where = queue_options(self._queue)
        words = []
        for line in where:
            words += shlex.split(line, comments=True)
        request = [*own, *name, f"--constraint={constraint}", "--wrap=:"]
        self._run("sbatch", "--parsable", *words, *request)

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Return the active features."""
        return self.read(host, wanted).current

    def _run(self, *command: str) -> str:
        return ask_tool(*command, timeout_s=self._timeout_s)


def _features(column: str) -> list[str]:
    text = column.strip()
    return [] if text in ("", "(null)") else text.split(",")
