"""The sentences of all rooms that a report shows: reasons, faults, causes, with their fields.

A sentence is compared with these templates to find its translation (`proofmark.common.sentences`).
A field takes a value; its own translation is used if it is a sentence of this list. A field whose
name begins with ``text`` takes only a text that has a translation.
"""

from __future__ import annotations

TEMPLATES: tuple[str, ...] = (
    # judge: past runs and their traits
    "program {program}",
    "library {library}",
    # readers: problems of an output
    "the program gave up: {message}",
    # site: facts that a node does not report
    "{tool} is not installed",
    "no such file: {path}",
    "no such tool: {tool}",
    "no EDAC driver is loaded",
    "no memory controller is watched: no EDAC driver is loaded",
    "needs root",
    "needs root: {path}",
    "empty or unreadable: {path}",
    "this processor has no such counter",
    "this kernel or processor counts none",
    "the driver reports none",
    "dmidecode reports no memory device",
    "no interface is hardware",
    "this shell has no such limit",
    "ipmitool printed no number of entries",
    "no relevant line in {path}",
    "the node was restarted",
    "a counter that the kit does not know",
    "the counter was reset: the number of events is unknown",
    "the counter existed before the job and does not exist any more",
    # software: findings
    "{library} chose {kernel} ({isa}) on a CPU with {vector} ({processor}): expect {text}; "
    "{remedy}.",
    "{library} chose {kernel} ({isa}) because the environment requests {forced} on a CPU with "
    "{vector} ({processor}): expect {text}; {remedy}.",
    "set {setting}",
    "some loss in HPL and DGEMM",
    "a two-fold loss in HPL and DGEMM",
    "a several-fold loss in HPL and DGEMM",
    "{library} chose {kernel}, which needs {features}: this processor ({processor}) lacks it, "
    "and ends the program at an illegal instruction (SIGILL); {remedy}.",
    "{library} has no kernel for the {vector} of this processor ({processor}): {kernel} "
    "({isa}) uses {bits} of {all} bits. Another BLAS may be faster.",
    "{program} is linked with the reference BLAS ({library}), which is not optimised: expect a "
    "many-fold loss in HPL and DGEMM; install an optimised BLAS.",
    "{program}: the kernel of its {library} is not known: {reason}.",
    "{program} cannot start: {library} is not found by the dynamic linker.",
)

WORDS: tuple[str, ...] = (
    # the verdicts, the kinds of references, the origins
    *("PASS", "FAIL", "INVALID", "UNJUDGED"),
    *("contract", "published", "derived", "baseline", "fleet", "expected", "links", "over time"),
    *("measured", "emulated", "predicted", "imported"),
    # the states of jobs that ended
    *("lost a node", "stopped at its time limit", "cancelled by another user"),
    *("requeued too often", "preempted"),
    # the parts of the baseline
    *("the same node in the baseline", "the like nodes in the baseline"),
    # the answers to claims, the states of a step, statistics
    *("holds", "does not hold", "cannot be told"),
    *("waiting", "running", "interrupted", "done"),
    *("mean", "min", "max"),
    "single run",
    # the properties in which nodes differ
    *("rack", "switch", "processor", "sockets", "cores online", "threads per core", "microcode"),
    *("stepping", "kernel", "kernel command line", "operating system", "governor", "turbo"),
    *("transparent huge pages", "memory", "DIMM part", "DIMM speed", "adapter firmware"),
    *("fabric rate", "NIC firmware", "PCIe link", "BIOS date", "board"),
    *("NIC driver", "frequency driver", "version", "provider", "build", "BLAS kernel"),
)
"""Words of all rooms that a report shows. A word that equals its translation is not listed."""
