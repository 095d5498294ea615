"""The messages about nodes, programs and models: the code of each, and its English template."""

from __future__ import annotations

from collections.abc import Mapping

MACHINE_MESSAGES: Mapping[str, str] = {
    # judge: known before a run
    "floor-only": "only a floor applies, which a figure cannot pass",
    "foreseen": "{kind}: {figure}: {text}",
    "foreseen-item": "{kind}: {figure}: {text}; an item of {file} enables a judgement",
    # site: facts that a probe does not report
    "absent-said": "{problem}",
    "absent-no-file": "no such file: {path}",
    "absent-root": "needs root",
    "absent-root-file": "needs root: {path}",
    "absent-no-value": "empty or unreadable: {path}",
    "absent-no-line": "no relevant line in {path}",
    "absent-no-tool": "{tool} is not installed",
    "absent-no-tools": "no such tool: {tool}",
    "absent-tool-silent": "{tool} printed nothing",
    "absent-tool-slow": "{tool} did not answer within {seconds} s",
    "absent-tool-failed": "{tool}: exit code {code}",
    "absent-tool-said": "{tool}: exit code {code}: '{message}'",
    "absent-no-counter": "this processor has no such counter",
    "absent-no-edac": "no EDAC driver is loaded",
    "absent-no-entries": "ipmitool printed no number of entries",
    "absent-no-memory": "dmidecode reports no memory device",
    "absent-no-processor": "dmidecode reports no processor",
    "absent-no-driver": "the driver reports none",
    "absent-no-hardware": "no interface is hardware",
    "absent-no-accelerator": "the node has none",
    "absent-no-message": "no message about an error",
    "absent-no-module": "no such module is loaded",
    "absent-no-limit": "this shell has no such limit",
    "absent-unread": "'{value}' cannot be read",
    "probe-section": "{text} (node {node}, section {section})",
    "probe-gap": "{node}: {file}, section {section}: {text}; {having} of {nodes} like nodes have "
    "it",
    "crash-excused": "{node}: {text}; set aside: {why}",
    # site: what a change of a counter means
    "meaning-memory-uncorrected": "uncorrected memory errors",
    "meaning-memory-uncorrected-nowhere": "uncorrected memory errors in an unknown DIMM",
    "meaning-throttled-heat": "the processor was throttled because of its temperature",
    "meaning-machine-checks": "machine check exceptions",
    "meaning-deferred": "deferred (uncorrected) errors",
    "meaning-pcie-fatal": "fatal PCIe errors of a network adapter",
    "meaning-pcie-uncorrected": "uncorrected PCIe errors of a network adapter",
    "meaning-memory-corrected": "corrected memory errors",
    "meaning-memory-corrected-nowhere": "corrected memory errors in an unknown DIMM",
    "meaning-throttled-power": "the processor was throttled because of its power limit",
    "meaning-threshold": "a bank of corrected errors passed its threshold",
    "meaning-thermal-events": "thermal or power events",
    "meaning-out-of-memory": "processes were killed because memory ran out",
    "meaning-swapped": "pages were swapped",
    "meaning-stolen": "hundredths of a second of processor time that the hypervisor withheld",
    "meaning-ethernet": "errors of an Ethernet interface",
    "meaning-resent": "TCP segments were sent again, because packets were lost",
    "meaning-pcie-corrected": "corrected PCIe errors of a network adapter",
    "meaning-pcie-retrained": "the PCIe link of a network adapter was retrained",
    "meaning-congestion": "ticks that a port had to wait to send (congestion)",
    "meaning-link-down": "the link of a port went down",
    "meaning-fabric-port": "errors of a fabric port",
    "meaning-evicted": "a Lustre server evicted this client",
    "meaning-evictions": "evictions in the short history that Lustre keeps",
    "meaning-event-log": "new entries in the BMC's event log",
    "meaning-unknown": "a counter that the kit does not know",
    "meaning-reset": "the counter was reset: the number of events is unknown",
    "meaning-gone": "the counter existed before the job and does not exist any more",
    "meaning-appeared": "the counter did not exist before the job: its rise is unknown",
    "meaning-restarted": "the node was restarted",
    "errors-judged": "{text}; {allowed} in {hours} h are accepted ({source})",
    "errors-before": "before the job: {text}: {counter} {found}; {allowed} in {hours} h are "
    "accepted ({source})",
    # judge: faults of nodes that no figure has
    "same-machine": "{nodes} are one machine: {key} {value}",
    "same-output": "{nodes} have the same output of {case}: the digits of all values are equal "
    "({steps})",
    "edited-copy": "{nodes} have {equal} of {values} values of an output of {case} equal to all "
    "digits: one is an altered copy",
    "same-file": "{nodes} have one output of {case}: its numbers and its times of day are equal",
    "peers-too-good": "too good to be true: {metric} is {ratio} × the median of {nodes} like nodes "
    "({value})",
    "above-nominal": "too good to be true: {metric} is {ratio} × the bandwidth of the memory "
    "modules ({source})",
    "hardware-declared": "less hardware than declared: {text}",
    "hardware-accepted": "less hardware than accepted: {text}",
    "hardware-usual": "less hardware than most nodes: {text}",
    "other-declared": "other hardware than declared: {text}",
    "other-accepted": "other hardware than accepted: {text}",
    "other-usual": "other hardware than most nodes: {text}",
    "other-processor": "processor: {found}, accepted {accepted}",
    "other-cards": "model of the network adapters: {found}, accepted {accepted}",
    "lost-cores": "cores: {found}, accepted {accepted}",
    "lost-sockets": "sockets: {found}, accepted {accepted}",
    "lost-memory_bytes": "memory: {found}, accepted {accepted}",
    "lost-dimms": "DIMMs: {found}, accepted {accepted}",
    "lost-numa": "NUMA domains: {found}, accepted {accepted}",
    "lost-ports": "active ports of the fabric: {found}, accepted {accepted}",
    "lost-nics": "Ethernet interfaces that are up: {found}, accepted {accepted}",
    "lost-rails": "active ports of the network: {found}, accepted {accepted}",
    "lost-rate": "Gb/s of the ports: {found}, accepted {accepted}",
    "lost-link_bytes_per_s": "GB/s of all ports: {found}, accepted {accepted}",
    "lost-dimm_bytes": "size of {number} DIMMs: {found}, accepted {accepted}",
    "lost-dimm_mt_per_s": "MT/s of a DIMM: {found}, accepted {accepted}",
    "lost-accelerators": "accelerators that answer: {found}, accepted {accepted}",
    "lost-accelerator_ecc": "accelerators with ECC: {found}, accepted {accepted}",
    "lost-lanes": "PCIe lanes of the accelerators: {found}, accepted {accepted}",
    "lost-gt_per_s": "GT/s of the PCIe links of the accelerators: {found}, accepted {accepted}",
    "rail-slot": "rail {rail}: its slot is {found}, that of most nodes is {accepted}",
    "slot-narrow": "the slot of rail {rail} is {found}, its card can have {accepted}",
    "slot-narrow-on": "{nodes}: {text}; partition.node.rails.rate states what the slot gives",
    "rail-missing": "rail {rail} is missing",
    "rail-down": "rail {rail} (NUMA domain {numa}) is down: {state}",
    "rail-slow": "rail {rail} (NUMA domain {numa}) runs at {found} Gb/s, accepted {accepted}",
    "rail-not-chosen": "not judged: the kit does not know how this MPI is told to use only {rail}",
    "place-numa": "NUMA domain {number}",
    "place-socket": "socket {number}",
    "place-rail": "rail {number}",
    "part-slow": "{part}: {case} {metric} is {ratio} × the median of the {others} other parts of "
    "the node",
    "part-processor": "processor",
    "part-cards": "model of the network adapters",
    "part-cores": "cores",
    "part-sockets": "sockets",
    "part-numa": "NUMA domains",
    "part-memory_bytes": "memory",
    "part-dimms": "memory modules",
    "part-dimm_bytes": "size of the memory modules",
    "part-dimm_mt_per_s": "speed of the memory modules",
    "part-gbit_per_s": "ports of the network",
    "part-ports": "ports of the network",
    "part-rails": "ports of the network",
    "part-nics": "Ethernet interfaces",
    "part-link_bytes_per_s": "rate of the ports of the network",
    "part-accelerators": "accelerators",
    "part-accelerator_ecc": "ECC of the accelerators",
    "part-lanes": "PCIe lanes of the accelerators",
    "part-gt_per_s": "rate of the PCIe links of the accelerators",
    "channels-empty": "{nodes}: {filled} memory modules fill at most {filled} of {channels} "
    "channels, and nothing states that so few were ordered: partition.node.memory.modules",
    "order-unknown": "{nodes}: the nodes have several processors ({found}), and nothing states "
    "which of them was ordered: partition.node.cpu_model, or a partition of each",
    "groups-unknown": "are the nodes of these {count} groups alike, which no measurement connects: "
    "{groups}? yes: a site with one partition (-i, -l); they are compared within each group only",
    "part-unread": "{nodes}: the stated part was not found out: {part}",
    "parts-shown": "Limits are computed from what the nodes show, because nothing states it: "
    "{parts} ({nodes})",
    # software: facts that a probe does not report
    "absent-no-program": "no such program: {program}",
    "absent-no-libraries": "the program is static, or of another architecture",
    "absent-not-found": "not found by the dynamic linker",
    "absent-no-blas": "no known BLAS is linked",
    "absent-no-drivers": "the library names no driver of files",
    "absent-no-mpi": "no known MPI is linked",
    "absent-no-family": "the library contains the name of no known family",
    "absent-no-mpirun": "no bin/mpirun in a directory above the library",
    "absent-no-version": "not in the library",
    "absent-kernel-silent": "the library prints no kernel: it was built for one processor, or "
    "cannot be loaded on this node",
    "absent-kernel-blis": "BLIS chooses at its first call: run with BLIS_ARCH_DEBUG=1 and read "
    "stderr",
    "absent-kernel-mkl": "MKL chooses at its first call: run with MKL_VERBOSE=1 and read stdout",
    "absent-kernel-reference": "the reference BLAS has one kernel, in plain Fortran",
    "absent-kernel-unprinted": "{family} does not print its kernel",
    "absent-kernel-static": "the BLAS is linked statically: only a run of the program shows the "
    "kernel",
    "absent-kernel-unknown": "the probe has no kernel",
    # site, software: run-time variables
    "trait-variable": "run-time variable {name}",
    "variable-near": "a known name is {name}",
    "variable-of-none": "{name}: no known library reads it",
    "variable-of-other": "{name} is a variable of {library}, which is no part of {mpi}",
    "variable-unknown": "{name}: not a known variable of {library}",
    # software: findings
    "library-unversioned": "{library} of unknown version",
    "kernel-slow": "{library} chose {kernel} ({isa}) on a CPU with {vector} ({processor}): expect "
    "{text}; {remedy}.",
    "kernel-slow-requested": "{library} chose {kernel} ({isa}) because the environment requests "
    "{forced} on a CPU with {vector} ({processor}): expect {text}; {remedy}.",
    "kernel-requested": "{kernel} because the environment requests {forced}",
    "kernel-lacks": "{library} chose {kernel}, which needs {features}: this processor "
    "({processor}) lacks it, and ends the program at an illegal instruction (SIGILL).",
    "kernel-lacks-set": "{library} chose {kernel}, which needs {features}: this processor "
    "({processor}) lacks it, and ends the program at an illegal instruction (SIGILL); {remedy}.",
    "kernel-narrow": "{library} has no kernel for the {vector} of this processor ({processor}): "
    "{kernel} ({isa}) uses {bits} of {all} bits. Another BLAS may be faster.",
    "kernel-unlisted": "{program}: {library} chose {kernel}, which is not in the list of kernels.",
    "kernel-unknown": "{program}: the kernel of its {library} is not known: {reason}.",
    "blas-reference": "{program} is linked with the reference BLAS ({library}), which is not "
    "optimised: expect a many-fold loss in HPL and DGEMM; install an optimised BLAS.",
    "set": "set {setting}",
    "kernel-best": "the best kernel is {kernel}, {why}",
    "kernel-best-since": "the best kernel is {kernel} (in release {since} and later), {why}",
    "best-one-processor": "but this library was built for one processor",
    "best-lacking": "but this library lacks it",
    "best-untried": "but the probe did not try it on this library",
    "loss-some": "some loss in HPL and DGEMM",
    "loss-two": "a two-fold loss in HPL and DGEMM",
    "loss-several": "a several-fold loss in HPL and DGEMM",
    "library-missing": "{program} cannot start: {library} is not found by the dynamic linker.",
    "modules-secret": "{package}: its modules set {variables}. The values are not stored, because "
    "the names are those of secrets. If a program needs one, set it in "
    "partition.preinstalled.{package}.environment.",
    "derived": "{package} is DERIVED, built from the site's own lock: {parts}.",
    "mpi-unread": "{library} states no release: whether it is {wanted} of the lock is unknown.",
    "variants-default": "{part}: no fact of the site chose {variants}; the recipe did.",
    "variants-unknown": "{part} of the site: its programs do not state {variants}: unknown.",
    "drivers-default": "{part}: its recipe has no choice of ROMIO's drivers. On a parallel file "
    "system it writes by the generic one, without stripes.",
    "drivers-generic": "{part}: ROMIO has the drivers {drivers}. On a Lustre or GPFS it writes by "
    "the generic one, without stripes: the other needs lustre/lustreapi.h or gpfs.h on the system "
    "where the lock is made.",
    "derived-same": "the same versions, built in another way",
    # judge: comparisons of machines that would not see a material change
    "noisy": "too noisy: a difference of up to {change} % would not be seen, {material} % is "
    "material; {needed}",
    "noisy-once": "measured once: with an assumed noise of {noise} % the true level can be "
    "{change} % beyond the limit; {needed}",
    "needs-repeats": "about {repeats} repeats are needed",
    "needs-runs": "about {repeats} runs are needed",
    "needs-none": "no number of repeats up to {most} is enough",
    "needs-unknown": "with one repeat it is not known how many are needed",
    "peers-noisy": "{ratio} × the median of {nodes} like nodes ({value}), {noise}",
    "targets-noisy": "{ratio} × the median of {nodes} storage targets ({value}), {noise}",
    # judge: digits that a node computes
    "digits-unlike": "no digits are those of most of {nodes} like nodes",
    "digits-unproven": "{constant} of {repeated} nodes with repeats repeat their digits: this does "
    "not prove that the program is reproducible; {agreeing} of {nodes} like nodes agree",
    "digits-wrong": "wrong digits in {runs} of {executions} executions: {values}, but {agreeing} "
    "of {nodes} like nodes compute {digits}; {constant} of {repeated} nodes with repeats repeat "
    "their digits",
    "digits-alike": "like its peers: the digits of {agreeing} of {nodes} like nodes",
}
