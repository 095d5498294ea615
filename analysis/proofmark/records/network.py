"""Which network carried the traffic between the nodes of a step, and whether that was intended.

A library that finds no adapter falls back to TCP over another network, and prints valid figures.
Each node reports the counters of its networks before and after the step (``network/`` in the
folder of the attempt of the job).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from proofmark.common.files import names_in, read_text
from proofmark.common.input_limits import MAX_PROBE_BYTES
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.text import one_line
from proofmark.plan.step import Step
from proofmark.records.binding import HostNames
from proofmark.runs.attempts import Attempt
from proofmark.runs.run_files import RunFiles
from proofmark.site.fabric import Network
from proofmark.site.node.networks import CounterSample, carried, divided, read_samples

LEAST_SHARE = 0.5
"""The share of the bytes that a program moves at least. If another network carried it, it carried
messages of the program."""
LEAST_OF_INTENDED = 0.1
"""The share of the bytes of the intended network. With less, another network carried no messages
that count: the bytes that a program moves at least may be far below those that it moves."""
_ATTEMPT = re.compile(r"([A-Za-z0-9-]+)/(attempt-[0-9]+)")
_AFTER = ".after"


def adapters_that_moved(
    files: RunFiles, steps: Iterable[Step], names: HostNames
) -> dict[str, frozenset[str]]:
    """Return the adapters and interfaces that carried the messages of the steps, by host.

    A step that uses files is left out: its bytes may be those of the storage. A damaged sample
    tells nothing.
    """
    known = {step.id: step for step in steps if step.network_bytes and not step.uses_scratch}
    found: dict[str, set[str]] = {}
    for folder, step in _sampled(files, known):
        for name in _listed(folder):
            if name.endswith(_AFTER):
                reported = name.removesuffix(_AFTER)
                moved = found.setdefault(names.node(step.nodes, reported), set())
                moved.update(_carriers(folder, reported, step))
    return {host: frozenset(of_host) for host, of_host in found.items()}


def _sampled(files: RunFiles, steps: Mapping[str, Step]) -> Iterator[tuple[Path, Step]]:
    for job in _listed(files.work.jobs):
        for attempt in files.job(job).attempts():
            for name in _listed(attempt / "network"):
                number, _, step = name.partition("-")
                if number.isdecimal() and step in steps:
                    yield attempt / "network" / name, steps[step]


def _carriers(folder: Path, host: str, step: Step) -> list[str]:
    """Return what carried the messages of a step on a host; nothing if a sample is damaged."""
    try:
        before, after = _samples(folder, host)
    except (OSError, ValueError):
        return []
    networks = carried(before, after)
    least = LEAST_OF_INTENDED * max((each.bytes for each in networks), default=0.0)
    least = max(least, LEAST_SHARE * step.network_bytes)
    return [each.name for each in networks if each.bytes >= least]


class NetworkCheck:
    """Checks the executions of a run.

    `network` is that of its partition. An emulated node (not `required`) may have no counters.
    """

    def __init__(
        self, files: RunFiles, network: Network, names: HostNames, *, required: bool
    ) -> None:
        self._files, self._network, self._names = files, network, names
        self._required = required
        self._listed = cache(_listed)

    def invalid_reason(self, step: Step, nodes: Sequence[str], execution: Attempt) -> Message:
        """Return the reason if another network carried the messages of an execution.

        The reason is `NOTHING` if the named network carried them.

        An execution that was started by hand has no samples: it is not checked.
        """
        if not step.network_bytes or not execution.job_attempt:
            return NOTHING
        match = _ATTEMPT.fullmatch(execution.job_attempt)
        try:
            folder = match and self._around(
                self._files.job(match[1]).folder / match[2] / "network", step.id, execution
            )
        except (OSError, ValueError) as error:
            return Message("networks-unread", problem=one_line(str(error))[:200])
        if folder is None:
            return self._missing(Message("networks-unrecorded"))
        return joined(self._of_node(step, node, folder) for node in nodes)

    def _around(self, parent: Path, step: str, execution: Attempt) -> Path | None:
        """Return the folder of the samples before and after `execution`; None if there is none.

        A job may execute a step several times. The clock is that of the node of the execution.
        """
        parts = ((name.partition("-"), parent / name) for name in self._listed(parent))
        of_step = (
            (int(number), folder)
            for (number, _, of), folder in parts
            if of == step and number.isdecimal()
        )
        for _, folder in sorted(of_step):
            host = self._host(folder, execution.host)
            if host is None:
                continue
            before, after = _samples(folder, host)
            if before[-1].date <= execution.start and execution.end <= after.date:
                return folder
        return None

    def _host(self, folder: Path, node: str) -> str | None:
        """Return the name under which `node` stored its counters after the step."""
        names = (name for name in self._listed(folder) if name.endswith(_AFTER))
        hosts = (name.removesuffix(_AFTER) for name in names)
        return next((host for host in hosts if self._names.accepts(node, host)), None)

    def _missing(self, reason: Message) -> Message:
        return reason if self._required else NOTHING

    def _of_node(self, step: Step, node: str, folder: Path) -> Message:
        host = self._host(folder, node)
        if host is None:
            return self._missing(Message("node-networks-unrecorded", node=node))
        try:
            before, after = _samples(folder, host)
        except (OSError, ValueError) as error:
            return Message("node-networks-unread", node=node, problem=one_line(str(error)))
        division = divided(carried(before, after), self._network, after)
        other = sum(each.bytes for each in division.others)
        if other < max(LEAST_SHARE * step.network_bytes, LEAST_OF_INTENDED * division.intended):
            return NOTHING
        largest = max(division.others, key=lambda each: each.bytes)
        return Message(
            "other-network",
            node=node,
            network=f"{largest.name} ({largest.kind})",
            bytes=f"{largest.bytes / 1e6:.1f}",
            planned=f"{self._network}",
            intended=f"{division.intended / 1e6:.1f}",
            least=f"{step.network_bytes / 1e6:.1f}",
        )


def _listed(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(names_in(folder)))


def _samples(folder: Path, host: str) -> tuple[list[CounterSample], CounterSample]:
    """Return the samples of a node before a step, and the one after it.

    Raises:
        OSError or ValueError: a file is missing or damaged.
    """
    before = read_samples(read_text(folder / f"{host}.before", MAX_PROBE_BYTES))
    return before, read_samples(read_text(folder / f"{host}{_AFTER}", MAX_PROBE_BYTES))[-1]
