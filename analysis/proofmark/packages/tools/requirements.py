"""The conditions under which the figures of a step are valid, in words.

`proofmark.records.read` and the modules that it uses check them. Each requirement names the
function or class of the check, so that a test compares this list with the checks of the reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proofmark.cases.case import Case
from proofmark.cases.reader.reader import Reader
from proofmark.common.text import duration, size
from proofmark.plan.step import Step
from proofmark.site.partition import Partition


@dataclass(frozen=True)
class Requirement:
    """One condition. If it does not hold, figures of the step are INVALID.

    Attributes:
        about: its subject: one or two words.
        text: what must hold.
        check: the name of the function or class that checks it.
    """

    about: str
    text: str
    check: str


def requirements(
    step: Step, case: Case, partition: Partition, mode: str, *, executed: bool = True
) -> Iterator[Requirement]:
    """Yield the conditions for the figures of `step` in `mode`.

    Args:
        partition: the partition that it runs on.
        mode: the firmware mode that it is planned in.
        executed: whether the kit starts its program.
    """
    if not executed:
        text = "its files are as adopted, and name no other nodes than their paths"
        yield Requirement("adoption", text, "adoption_error")
        yield from _of_output(case.reader())
        yield _BOUNDS
        return
    yield from _of_execution(step)
    yield from _of_binding(step)
    yield from _of_node(step, partition, mode)
    yield from _of_files(step)
    yield from _of_network(step, partition)
    if step.load:
        text = f"{step.load.step.program} runs beside it during the whole measured program"
        yield Requirement("load", text, "load_error")
    if case.concurrent and step.copies > 1:
        text = f"its {step.copies} copies measure at the same time"
        yield Requirement("copies", text, "concurrency_error")
    yield from _of_disturbance(case)
    yield from _of_output(case.reader())
    yield _BOUNDS


_BOUNDS = Requirement("bounds", "no value is beyond the physical bound of its metric", "StepBounds")


def _of_execution(step: Step) -> Iterator[Requirement]:
    yield Requirement(
        "end",
        f"it ends within {duration(step.timeout)} with exit code 0, and leaves no process behind",
        "invalid_reason",
    )
    yield Requirement(
        "files",
        "its files can be read and have the digests that were recorded at its end",
        "invalid_reason",
    )
    yield Requirement("nodes", "it ran on its planned nodes", "HostNames")


def _of_binding(step: Step) -> Iterator[Requirement]:
    if not step.cpus:
        return
    parts = [f"each rank ({len(step.cpus)}) reported its planned CPUs"]
    if step.bind_threads or step.launch == "threads":
        parts.append("each thread had its own CPU")
    if step.membind:
        domains = ", ".join(map(str, step.membind))
        parts.append(f"memory was bound to the NUMA domains {domains}")
    yield Requirement("binding", "; ".join(parts), "BindingCheck")


def _of_node(step: Step, partition: Partition, mode: str) -> Iterator[Requirement]:
    parts = ["no counter of hardware errors rose on its nodes during the job"]
    if partition.firmware is not None:
        parts.append(f"the journal proves mode {mode} for the boot in which it ran")
    if partition.origin == "measured" and _declares_topology(partition, mode):
        parts.append("its nodes have the NUMA domains that the inventory declares for the mode")
    yield Requirement("node", "; ".join(parts), "Conditions")
    scratch = partition.scratch
    if step.uses_scratch and (scratch.type or scratch.source or scratch.off_root):
        kind = (
            " ".join(filter(None, (scratch.type, scratch.source))) or "a file system other than /"
        )
        yield Requirement("scratch", f"{scratch.path} is on {kind}", "Conditions")


def _declares_topology(partition: Partition, mode: str) -> bool:
    of_mode = partition.modes.get(mode)
    return bool(of_mode and (of_mode.topology or partition.node.topology))


def _of_files(step: Step) -> Iterator[Requirement]:
    if step.writes:
        text = f"at least {step.writes.files} files with {size(step.writes.bytes)} are in scratch"
        yield Requirement("written files", text, "scratch_error")
    if step.layout:
        values = ", ".join(f"{axis} {value}" for axis, value in step.layout.values.items())
        yield Requirement("layout", f"its files have {values}", "layout_error")
    if step.reads:
        text = f"step {step.reads} wrote the files before it, and they were not changed"
        yield Requirement("input files", text, "read_before")
        yield Requirement("input files", f"step {step.reads} has a result", "not_run")


def _of_network(step: Step, partition: Partition) -> Iterator[Requirement]:
    network = partition.fabric.network
    if network is not None and step.network_bytes:
        text = f"the named network carried its messages of at least {size(step.network_bytes)}"
        yield Requirement("network", text, "NetworkCheck")


def _of_disturbance(case: Case) -> Iterator[Requirement]:
    limits = case.undisturbed
    text = (
        f"a hypervisor withheld at most {limits.max_steal:.0%} of the time of a CPU, and other "
        f"processes used at most {limits.max_others:.0%}; a disturbed execution is repeated, and "
        "is INVALID if each repetition is disturbed"
    )
    yield Requirement("noise", text, "noise_reason")
    if limits.metric:
        text = f"{limits.metric} changes by at most {limits.max_change:.0%} between repeats"
        yield Requirement("steady rate", text, "without_disturbed")


def _of_output(reader: Reader) -> Iterator[Requirement]:
    parts = [f"the output has at least one result ({reader.finds})"]
    if reader.require:
        parts.append(f"it has the lines: {', '.join(reader.require)}")
    if reader.needs:
        parts.append(f"each value has {', '.join(reader.needs)}")
    if reader.reject:
        patterns = ", ".join(each.pattern for each in reader.reject)
        parts.append(f"no line is like {patterns}")
    yield Requirement("output", "; ".join(parts), "read_output")
    text = "the parameters and nodes in the output are the planned ones"
    yield Requirement("parameters", text, "_contradiction")
