"""Slurm's node_features/knl_generic: a job's constraint makes Slurm set the mode and restart.

The features of a node (``quad,flat``) are its attributes here, one each: ``{quad: true}``. Slurm
restarts nodes for jobs, not for drained ones, so a short job of ours with the constraint is what
resets, and the node is not drained.
"""

from __future__ import annotations

from proofmark.machine.bmc.back_end import BackEnd, BackEndContext, only
from proofmark.machine.bmc.model import AttributeSpec, FirmwareState, Host
from proofmark.machine.controller_tools import ask_tool
from proofmark.site.firmware import Settings


class KnlGeneric(BackEnd):
    """The verbs by scontrol and sbatch on the controller."""

    sets = True
    drains = False
    reads_current_values = True

    def __init__(self, context: BackEndContext) -> None:
        self._timeout_s = context.firmware.timeout_s

    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Read the active and the available features."""
        words = self._run("scontrol", "--oneliner", "show", "node", host.node).split()
        told = dict(word.partition("=")[::2] for word in words)
        available = _features(told.get("AvailableFeatures", ""))
        active = _features(told.get("ActiveFeatures", ""))
        offers = {name: AttributeSpec(values=(True,)) for name in available}
        return FirmwareState(only(dict.fromkeys(active, True), wanted), offers=offers)

    def stage(self, host: Host, reading: FirmwareState, wanted: Settings) -> None:
        """Do nothing: Slurm stages when the job starts."""

    def reset(self, host: Host, reading: FirmwareState, wanted: Settings) -> None:
        """Submit a job that needs the features; it does nothing but be there."""
        constraint = "&".join(wanted)
        submitted = ["sbatch", "--parsable", "--exclusive", "--time=5", "--output=/dev/null"]
        name = ["--job-name=proofmark-mode", f"--nodelist={host.node}"]
        self._run(*submitted, *name, f"--constraint={constraint}", "--wrap=:")

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Read the active features."""
        return self.read(host, wanted).current

    def _run(self, *command: str) -> str:
        return ask_tool(*command, timeout_s=self._timeout_s)


def _features(text: str) -> list[str]:
    return [] if text in ("", "(null)") else text.split(",")
