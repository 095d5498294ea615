"""The messages of all rooms: the code of each, and its English template.

A template is the key of the catalogues. A code is stored in files: it stays when its words change.
Packages and sites add tables of their own: their `PLUGINS` or entry points name them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from proofmark.common.plugins import installed

OUTPUT_MESSAGES: Mapping[str, str] = {
    # items of a contract
    "items-waived": "{count} waived",
    "items-minor": "minor items not met: {count}",
    "item-runs": "{text}, but the item needs {needed} repeats and has {runs}",
    "item-scatter-met": "{text}; the scatter of {runs} repeats is {scatter} %, at most {most} %",
    "item-scatter": "the scatter of {runs} repeats is {scatter} %, not at most {most} %; {text}",
    "item-share": "{text}; {met} of {total} nodes meet the item, and {share} % have to",
    "excused": "{node}: {figure} {value} misses item {number} and is excused: {text}",
    "item-minor": "{text}; item {number} is minor",
    "option-replaced": "-e {option}={found} replaced {stated} of the inventory",
    "figure-in-doubt": "{text}; not judged: {why}",
    # judge: like pairs of nodes; those of like nodes begin with peers-
    "pairs": "{nodes:like pair|like pairs}",
    "pairs-alike": "like its peers: {ratio} × the median of {nodes} like pairs ({value})",
    "pairs-noisy": "{ratio} × the median of {nodes} like pairs ({value}), {noise}",
    "pairs-off": "{ratio} × the median of {nodes} like pairs ({value}); at most {accepted} spreads "
    "are accepted",
    "pairs-off-by": "{ratio} × the median of {nodes} like pairs ({value}), {deviation} spreads "
    "from the median; at most {accepted} spreads are accepted",
    "pairs-spread": "{nodes:like pair|like pairs}, spread {spread} %; finds one {drop} % off in "
    "95 of 100 cases",
    "pairs-too-good": "too good to be true: {metric} is {ratio} × the median of {nodes} like pairs "
    "({value})",
    "pairs-spike": "{ratio} × the median of {nodes} like pairs ({value}), but not at most other "
    "message sizes: measure again",
    "pairs-few": "{nodes:like pair|like pairs}, {gap} % apart: too few for a comparison ({needed} "
    "needed)",
    "pairs-zero": "the median of the like pairs is 0",
    "pairs-blind": "{nodes:like pair|like pairs} with a spread of {spread} %: even a pair that "
    "fails completely would not be detected",
    # the acceptance of a site by its runs
    "acceptance-met": "{met} of {total} items met",
    "acceptance-faults": "{count:node|nodes} with a fault that no figure has",
    "acceptance-open": "the evidence of {count:sealed run|sealed runs} is missing",
    "acceptance-more": "the same on {nodes}, with other values",
    "acceptance-no-node": "no run measured {nodes}",
    "acceptance-no-run": "no run measured it",
    "acceptance-not-seen": "no signer stated that it was seen: `proofmark acceptance witness`",
    "seen-missed": "seen, and not met",
    "seen-lacking": "not seen by {names}",
    "derived-open": "not judged: the items {items}",
    "derived-units": "an item has another unit than {unit}",
    "acceptance-differs": "{run}: {name}: {then}; the newest run has {now}",
    "acceptance-differs-more": "{count:more difference|more differences} from the newest run",
    "acceptance-origin": "its figures are {origin}, not measured",
    "acceptance-mode": "its mode was {mode}, the inventory has {now}: it decides only items of its "
    "mode",
    "acceptance-degraded": "{text}: it does not decide what all nodes measure together",
    "acceptance-unsealed": "nothing of it is sealed",
    "acceptance-contract": "it has another contract, or none",
    "acceptance-site": "it is a run of the site {site}",
    "acceptance-partition": "the inventory has no partition {partition}",
    "acceptance-unreadable": "{problem}",
    "acceptance-missing": "sealed {word} on {date}, its folder {folder} is missing",
    "acceptance-other-evidence": "sealed {word} on {date}, {folder} has other evidence than "
    "SHA-256 {evidence}",
    "acceptance-not-named": "sealed {word} on {date}, {folder} is not named by --run",
    "acceptance-fork": "{folder} has other evidence of this run; neither continues the other",
    "sealed-only": "without a verdict",
    # the origins of figures
    "origin-measured": "measured on the machine itself",
    "origin-emulated": "emulated: a rehearsal, not a measurement of a machine",
    "origin-predicted": "predicted by a model, not measured",
    # outputs
    "reader-contains": "the output contains {words}",
    "reader-no-space": "the output contains {words}",
    "reader-no-document": "no JSON document",
    "reader-empty": "the output is empty",
    "reader-nothing": "no {finds} found",
    "reader-rule": "{problem}",
    "reader-parameter": "{name}: {problem}",
    "reader-not-number": "{word} is not a number",
    "reader-negative": "negative value {word}",
    "reader-zero-rate": "{metric} is 0: nothing was measured",
    "reader-zero-time": "{metric} is 0: it is below the resolution of the output",
    "reader-too-large": "{word} is too large for a number",
    "reader-never-set": "{word} is memory that the program never set",
    "reader-not-whole": "{word} is not a whole number",
    "reader-not-word": "{word} is not a word",
    "reader-not-size": "{word} is not a size",
    "reader-not-bytes": "{word} is not a whole number of bytes",
    "reader-not-suffixed": "{word} is not a size with the suffix k, m, g, t or p",
    "reader-no-value-at": "neither a number nor a word at {place}",
    "reader-broken-document": "the JSON document is cut or broken: {problem}",
    "reader-partial": "the document is a report of a run that had not ended",
    "reader-contradiction": "{metric} is {printed}, but the other numbers of the row give "
    "{computed}",
    "reader-short": "{metric} was measured for {seconds} s, less than {least} s",
    "reader-more-lines": "{problem} (and {lines:more line|more lines})",
    "reader-no-option-size": "{option} {word}: not a size",
    "reader-first-row": "the first row has {bytes} bytes: rows from {least} on are missing",
    "reader-no-row-between": "no row between {least} and {most} bytes",
    "reader-last-row": "the last row has {bytes} of {most} bytes ({option} {word}): truncated",
    "reader-last-row-default": "the last row has {bytes} of {most} bytes (by default): truncated",
    "reader-no-count": "no line has the number of rows",
    "reader-other-count": "{rows:row|rows}, but the program reports {counted}",
    "reader-unconfirmed": "the line that confirms it is missing",
    "reader-broken-line": "broken line {line}",
    "reader-check": "its check is {metric} = {word}",
    "reader-not-row": "not a row of its table: {line}",
    "reader-no-rows": "no row under {titles}",
    "reader-foreign-lines": "{lines:line|lines} of another program in a table, the first is {line}",
    "reader-not-run": "not run: {metrics}",
    "reader-corrected": "{name}: {first} in one line, but {second} were used",
    "reader-gave-up": "the program gave up: {message}",
    "reader-instead": "{found} instead of {word}",
    "reader-title": "unknown column title {title}",
    "reader-mixed": "several outputs are mixed: {problem}",
    "mixed-row": "a row is outside of any table",
    "mixed-values": "a run has two values of {metric}",
    "mixed-headers": "a run has two headers",
    "mixed-lines": "a run has two lines {line}",
    "reader-row-outside": "a row outside of any table: {line}",
    "reader-cut": "the last line is cut: {line}",
    "reader-no-banner": "no banner: another program, or the beginning is missing",
    "reader-no-line": "no line {line}: truncated, or a check failed",
    "reader-foreign": "an output of {program}: it is not read",
    "reader-no-metric": "no value of {metric} found",
    "reader-no-parameter": "no line has its {name}",
    "reader-two-values": "two values of {name}: {first} and {second}",
}
"""Those about items of a contract, and about outputs that a reader cannot use."""

MESSAGES: Mapping[str, str] = {
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
    "clock-free": "the clock is not synchronised: {state}",
    "absent-no-tool": "{tool} is not installed",
    "absent-no-tools": "no such tool: {tool}",
    "absent-tool-silent": "{tool} printed nothing",
    "absent-tool-slow": "{tool} did not answer within {seconds} s",
    "absent-tool-failed": "{tool}: exit code {code}",
    "absent-tool-said": "{tool}: exit code {code}: '{message}'",
    "absent-no-counter": "this processor has no such counter",
    "absent-no-count": "'{value}' is no count: what a driver prints for none, or a full counter",
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
    "nodes-differ": "The nodes differ in {trait}; most have {usual}",
    "same-machine": "{nodes} are one machine: {key} {value}",
    "same-output": "{nodes} have the same output of {case}: the digits of all values are equal "
    "({steps})",
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
    "slot-narrow": "the slot of port {port} is {found}, its card can have {accepted}",
    "port-narrow": "port {port} has {found}: one lane or the slowest speed, as with a bad cable",
    "slot-narrow-on": "{nodes}: {text}; {key} states what it gives",
    "rail-missing": "rail {rail} is missing",
    "rail-down": "rail {rail} (NUMA domain {numa}) is down: {state}",
    "rail-slow": "rail {rail} (NUMA domain {numa}) runs at {found} Gb/s, accepted {accepted}",
    "rail-not-chosen": "not judged: the kit does not know how this MPI is told to use only {rail}",
    "place-numa": "NUMA domain {number}",
    "place-socket": "socket {number}",
    "place-rail": "rail {number}",
    "part-slow": "{part}: {case} {metric} is {ratio} × the median of the {others:other part|other "
    "parts} of the node",
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
    "channels-empty": "{nodes}: {filled:memory module fills|memory modules fill} at most {filled} "
    "of {channels} channels, and nothing states that so few were ordered: {key}",
    "order-unknown": "{nodes}: the nodes have several processors ({found}), and nothing states "
    "which of them was ordered: {key}, or a partition of each",
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
    "drivers-generic": "{part}: ROMIO has the drivers {drivers}. On a Lustre or GPFS it writes by "
    "the generic one, without stripes. romio-filesystem chooses another one; Open MPI needs "
    "lustre/lustreapi.h or gpfs.h for it, on the system where the lock is made.",
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
    "several": "{parts}",
    # records: what is stored beside the evidence
    "readings-foreign": "{path}: ignored: another user owns or can write this file; the evidence "
    "is read",
    "readings-stale": "{path}: ignored: it is of other evidence or of another version of the "
    "reader; the evidence is read",
    "readings-damaged": "{path}: ignored: damaged ({problem}); the evidence is read",
    # plan: what a suite has and a plan has not
    "left-said": "{text}",
    "left-repeats": "{case}: {repeats} of {stated} repeats, within {within}",
    "left-unwritten": "{case}: {point}: no step of the use before it writes its files",
    "left-readers": "{case}: {point}: it needs {needed:node|nodes} that did not write its files; "
    "the site has {free}",
    "left-lacking": "{asked}: {found}; there is: {there_is}",
    "left-together": "{nodes:node|nodes} together: nodes_per_job",
    "left-larger": "{case}: more than {nodes:node|nodes} together: nodes_per_job",
    "left-mode": "{case}: mode {mode}: {partition} has no such mode",
    "left-unmet": "{case}: {conditions}",
    "left-points": "{case}: {reason} (mode {mode}, {points:point|points})",
    "left-load": "{case}: no node is free for the load {load}",
    "left-pairs": "{case}: pairs of nodes of different jobs: nodes_per_job {limit} divides the "
    "nodes into {jobs} jobs",
    "left-waves": "{case}: {nodes:node, which is|nodes, which are} in none of the {rounds} waves "
    "of pairs alone",
    "left-rounds": "{case}: {nodes:node, which is|nodes, which are} in none of the {rounds} "
    "rounds of pairs together",
    "unmet-value": "{name} is {found}, and {needed} is needed",
    "unmet-least": "{name} is {found}, and at least {needed} is needed",
    "unmet-more": "{name} is {found}, and more than {needed} is needed",
    "unmet-most": "{name} is {found}, and at most {needed} is needed",
    "unmet-less": "{name} is {found}, and less than {needed} is needed",
    "unmet-other": "{name} is {found}, and another value is needed",
    "unmet-has": "{name} has no {needed}",
    "unmet-names": "the case is not for this: {names}",
    # judge: comparison with references
    "least-met": "{ratio} × {name} ({value}) is at least {limit}",
    "planned-alone": "the {planned} planned of {executions} executions alone: {text}",
    "repeats-beyond": "{slow} of {repeats} repeats miss the limit by more than {material} % "
    "(their median: {ratio}); the median of all: {text}",
    "least-missed": "{ratio} × {name} ({value}) is not at least {limit}",
    "most-met": "{ratio} × {name} ({value}) is at most {limit}",
    "most-missed": "{ratio} × {name} ({value}) is not at most {limit}",
    "bounds-met": "{ratio} × {name} ({value}) is at least {limit} and at most {upper}",
    "bounds-missed": "{ratio} × {name} ({value}) is not at least {limit} and at most {upper}",
    "of-repeats": "median of {repeats} repeats: {text}",
    "judged-contract": "{met} of {total} contract limits",
    "judged-expected": "{met} of {total} expected values",
    "judged-baseline": "{met} of {total} figures as accepted before",
    "judged-floor": "{met} of {total} floors",
    "judged-peers": "{met} of {total} figures like their peers",
    "judged-no-limit": "no contract, no expected value",
    "judged-nothing": "nothing was judged",
    "floor-met": "{text}: only a floor, below which something is broken",
    "unbelievable": "{text}; more than {times} times better than agreed: an output of others "
    "that is edited, or of another machine",
    "limit-confidence": "{text}; with 95 % confidence the true level is at most {change} % beyond "
    "the limit",
    "check-missed": "item {number} of the contract: {text}",
    "check-no-report": "the node has not reported its state",
    "check-nodes-left": "nodes is {found}; the run left out {number:node|nodes} of the partition",
    "check-unknown": "the node does not report: {name}",
    "check-unlike": "{name} is {found}; most nodes have {most}",
    "check-no-most": "{name} is {found}; no value is that of most nodes",
    "check-other": "{name} is {found}; the contract has {wanted}",
    "check-no-size": "{name} is {found}; the contract has a size of {bound} GiB",
    "check-low": "{name} is {found}; at least {least} is needed",
    "check-high": "{name} is {found}; at most {most} is accepted",
    "limit-far": "{text}; each repeat is at least {times} times better",
    "limit-noisy": "{text}; {noise}",
    "conditions-open": "{text}; it does not judge: {conditions}",
    "condition-virtual": "the source is about real nodes, and this one is virtual ({machine})",
    "condition-threads": "the source has {source} threads on {cores} cores, and this run has "
    "{threads}",
    "condition-tcp": "the source measured without TCP; whether this run used TCP is not known",
    "condition-nodes": "the source has {source:node|nodes} at most, the run has {nodes}",
    "condition-blas": "the BLAS of the source is {source}, and that of the program is {blas}",
    "condition-stores": "the source measured with stores that bypass the caches; whether the "
    "stores of this program do is not known",
    "condition-stores-cached": "the source measured with stores through the caches; whether the "
    "stores of this program pass the caches is not known",
    "typical-processor": "what {processor} typically reaches is in no table",
    "typical-link": "what MPI typically reaches over the link of {node} is in no table",
    "repeats-left-out": "{disturbed} of {repeats} repeats were disturbed and left out",
    "figure-contract": "the contract figure",
    "figure-expected": "the expected figure",
    "figure-baseline": "the baseline figure",
    "figure-floor": "the floor",
    "not-measured": "{name} was not measured",
    "reference-zero": "{name} is 0",
    "no-reference": "no reference applies",
    "hardware-unknown": "{nodes}: the node's hardware is not known",
    "fact-unknown": "{text} is not known; the key {key} enables this judgement",
    "fact-hidden": "{text} is not known ({node} is virtual: {machine}); the key {key} enables this "
    "judgement",
    "fact-clock-avx": "the AVX frequency of {processor}",
    "fact-clock": "the nominal frequency of {processor}",
    "fact-vector-units": "the number of vector units of {processor}",
    "fact-fast-memory": "the in-package memory of {processor}",
    "fact-other-memory": "the rate of the memory {kind} of {node} is in no table",
    "fact-cache-rate": "the rate of the memory-side cache of {node} ({cache} GiB)",
    "fact-beyond-cache": "{node}: the data exceed the memory-side cache ({cache} GiB) or have an "
    "unknown size, and no bandwidth bounds what is partly in it",
    "fact-channels": "the number of memory channels of {processor}",
    "fact-speed-any": "the speed of any memory module of {node}",
    "fact-speed": "the speed of a memory module of {node}",
    "fact-port": "the port of {node} that carries messages is not known ({ports}); the key {key} "
    "enables this judgement",
    "fact-link": "the link of {node} ({rates})",
    "part-of-node": "{node}: the run may use only a part of the processors of the node",
    # judge: the accepted runs of the site
    "baseline-once": "{ratio} × {name} ({value}): the noise is not known, it was measured once",
    "baseline-noise": "{ratio} × {name} ({value}); the noise of a value is {noise} %, a change of "
    "{change} % would be seen",
    "baseline-noisy": "{ratio} × {name} ({value}), {noise}",
    "baseline-no-program": "the program of the figures is not recorded",
    "improved": "it improved",
    "baseline-run": "baseline {name}: {run}",
    "baseline-runs": "baseline {name}: {run} and {count} earlier",
    # judge: like nodes
    "peers-alike": "like its peers: {ratio} × the median of {nodes} like nodes ({value})",
    "targets-alike": "like its peers: {ratio} × the median of {nodes} storage targets ({value})",
    "peers-off": "{ratio} × the median of {nodes} like nodes ({value}); at most {accepted} spreads "
    "are accepted",
    "peers-off-by": "{ratio} × the median of {nodes} like nodes ({value}), {deviation} spreads "
    "from the median; at most {accepted} spreads are accepted",
    "targets-off": "{ratio} × the median of {nodes} storage targets ({value}); at most {accepted} "
    "spreads are accepted",
    "targets-off-by": "{ratio} × the median of {nodes} storage targets ({value}), {deviation} "
    "spreads from the median; at most {accepted} spreads are accepted",
    "peers": "{nodes:like node|like nodes}",
    "targets": "{nodes:storage target|storage targets}",
    "peers-spread": "{nodes:like node|like nodes}, spread {spread} %; finds one {drop} % off in "
    "95 of 100 cases",
    "targets-spread": "{nodes:storage target|storage targets}, spread {spread} %; finds one "
    "{drop} % off in 95 of 100 cases",
    "peers-few": "{nodes:like node|like nodes}, {gap} % apart: too few for a comparison ({needed} "
    "needed)",
    "peers-zero": "the median of the like nodes is 0",
    "peers-blind": "{nodes:like node|like nodes} with a spread of {spread} %: even a node that "
    "fails completely would not be detected",
    "targets-few": "{nodes:storage target|storage targets}, {gap} % apart: too few for a "
    "comparison ({needed} needed)",
    "targets-zero": "the median of the storage targets is 0",
    "targets-blind": "{nodes:storage target|storage targets} with a spread of {spread} %: even a "
    "node that fails completely would not be detected",
    "measure-again": "{text}, but its repeats do not prove it: measure it again",
    "measure-nodes-again": "measure {nodes} again: the repeats of {count:figure that "
    "misses|figures that miss} a limit do not prove a fault",
    "peers-spike": "{ratio} × the median of {nodes} like nodes ({value}), but not at most other "
    "message sizes: measure again",
    "pairs-populations": "the pairs are not one population: {many} near {usual}, {few} near "
    "{other}; state the fabric in the inventory, so that pairs of one distance are compared",
    "nodes-populations": "the nodes are not one population: {many} near {usual}, {few} near "
    "{other}; state their kinds or places, so that like nodes are compared",
    "peers-apart": "{ratio} × the median of {nodes} like nodes ({value}); {apart}",
    "levels": "two levels of like nodes, {gap} % apart: {few} near {low}, {many} near {high}; "
    "{named}",
    "levels-by": "{fact}: {lower} | {upper}",
    "host-number": "host number {place}",
    "host-number-modulo": "host number modulo {by}",
    "levels-of": "{nodes} | others: no place and no setting that is known separates them",
    "levels-slope": "a slope along the numbers of like nodes: near {one} at {first}, near {other} "
    "at {last} ({gap} %)",
    "levels-slope-in": "a slope along the numbers of the like nodes of each {fact}: near {one} at "
    "its first, near {other} at its last ({gap} %)",
    # judge: links, and the end of a run
    "listed-and-more": "{listed} and {count} more",
    # judge: likely causes of bad nodes
    "node-fault": "{node}: {text}",
    "stage-fault": "{stage}: {code}: {text}",
    "crashed-before": "{crashed} of {executions} executions of {step} crashed or gave no valid "
    "output: {text}",
    "packets-lost": "its port or cable loses packets: TCP segments were sent again, {share} of "
    "them; {usual} is the median of {nodes} nodes",
    "wrong-digits": "wrong computation without an error message: its processor, caches or memory",
    "slower": "slower over time: {text}",
    "trait-bad": "{setting} {value}: {bad} of its {nodes:node|nodes} are bad, {all_bad} of all "
    "{all_nodes} (p = {p})",
    "node-itself": "the node itself: its reported properties are those of its peers",
    "target-slow": "storage target {target} of {file_system}: {ratio} × the median of {targets}",
    "files-fault": "file system of {folder}: {problem} on {nodes}: {text}",
    "files-fault-on-all": "file system of {folder}: {problem} on all nodes ({nodes}): {text}",
    "either": "{first} or {other}",
    "slow-alike": "{figure} slow alike",
    "cause-space": "no free space or quota",
    "cause-servers": "its servers, or the network to them",
    "cause-client": "the client of this node, or its network",
    "cause-clients": "the client of these nodes, or its network",
    "cause-client-servers": "the client of this node, or its servers, or the network to them",
    "degraded": "degraded: {nodes} of {all} nodes",
    # judge: what was not judged
    "limit-open": "limit of {limit} not evaluated: {text}",
    "limit-open-on": "{text}: {nodes}",
    "row-missing": "the output of {step} has no row for it",
    "rows-missing": "no output has a row for it",
    "step-missing": "no step of the run measures it",
    "not-measured-pairs": "{step}: {nodes} and {count:more pair|more pairs}",
    "not-measured-step": "{step}",
    "not-measured-on": "{step}: {nodes}",
    "mode-missing": "{step}: NOT RUN: needs mode {mode}",
    "same-command": "runs the command of {step}: {same}",
    "same-files": "its files are those of {step}: {text}",
    "step-not-needed": "{step}: NOT NEEDED: {reason}",
    "job-stopped": "job {job}: {text}; {left} of {steps} steps left",
    "job-stopped-said": "job {job}: {state}: {message}; {left} of {steps} steps left",
    "job-damaged": "job {job}: {problem}",
    "job-without": "job {job}: without {nodes}",
    "required-open": "{case} {metric} on {hardware}: {text}",
    "no-row": "no output has a matching row",
    # judge: past runs
    "past-copy": "a copy of the run in {folder}",
    "past-verdict": "{text}: {judged}; {passed} PASS, {failed} FAIL, {invalid} INVALID, "
    "{unjudged} UNJUDGED; {measured} of {expected} steps measured",
    # report: what differs in a signed folder
    "signed-unlisted": "{name}: not listed in the statement",
    "signed-missing": "{name}: listed in the statement, and missing",
    "signed-length": "{name}: {found} bytes, and {listed} in the statement",
    "signed-changed": "{name}: changed after it was signed",
    "product-missing": "{name}: missing",
    "product-other": "{name}: another content than that of the evidence",
    "product-not-made": "{name}: no such file is made from the evidence",
    "predicate-other": "statement.json: {name}: not what the evidence gives",
    "signed-unfinished": "unfinished: {missing} of {expected} steps are missing",
    "acceptance-line": "{word}: {text}",
    # judge: traits of nodes and programs
    "trait": "{name}",
    "trait-of": "{package}: {trait}",
    "trait-program": "program {program}",
    "trait-library": "library {library}",
    "trait-variants": "variants",
    "trait-compiler": "compiler",
    "trait-flags": "flags of the compiler",
    "trait-blas-built": "BLAS of the build",
    "trait-mpi-built": "MPI of the build",
    "trait-network-built": "network libraries of the build",
    "trait-request": "request to the provider",
    "trait-target": "processor that it was built for",
    "trait-version": "version",
    "trait-provider": "provider",
    "trait-build": "build",
    "trait-blas": "BLAS",
    "trait-kernel": "BLAS kernel",
    "trait-mpi": "MPI",
    # records: the end of an execution
    "timed-out": "timed out after {seconds} s (limit {limit} s)",
    "killed": "killed by {signal}",
    "exit-code": "exit code {code}",
    "exit-code-said": "exit code {code}: {message}",
    "no-space": "exit code {code}: {message}",
    "no-program": "exit code {code} ({program} not found)",
    "no-program-said": "exit code {code} ({program} not found): {message}",
    "no-execution": "exit code {code} ({program} cannot be executed)",
    "no-execution-said": "exit code {code} ({program} cannot be executed): {message}",
    "processes-left": "left processes behind: {processes}",
    "writer-failed": "not run: {step}, which writes its files, {problem}",
    # records: files of an execution
    "file-missing": "{file} is missing",
    "file-damaged": "{file} is damaged: {problem}",
    "digests-missing": "{file} is missing: the outputs are not proven",
    "digests-damaged": "{file} is damaged",
    "digest-missing": "{file} is damaged: it has no line for {name}",
    "file-appeared": "{file} appeared after the step ended",
    "file-changed": "{file} changed after the step ended",
    "other-script": "{file} is not the script of the run",
    # records: outputs
    "output": "{problem}",
    "output-of-node": "the output names node {node}, the step ran on {nodes}",
    "output-lacks": "planned {name} {planned}, the output does not state {name}",
    "output-of-plan": "planned {name} {planned}, the output has {printed}",
    "above-bound": "{metric} {value} is above the physical bound {bound}: {source}",
    "below-bound": "{metric} {value} is below the physical bound {bound}: {source}",
    # records: binding
    "wrong-host": "ran on {node}, planned on {nodes}",
    "rank-twice": "rank {rank} reported its binding {times} times",
    "ranks-silent": "{reported} of {ranks} ranks reported their binding",
    "rank-unplanned": "rank {rank} is not one of the {ranks} planned ranks",
    "rank-cpus": "rank {rank} ran on CPUs {found}, planned on {planned}",
    "rank-host": "rank {rank} ran on {node}, planned on {planned}",
    "rank-memory": "rank {rank} had the memory policy {found}, planned {planned}",
    "rank-threads-missing": "rank {rank} had no thread of its own on CPUs {missing}, planned one "
    "on each of {planned}",
    "rank-threads": "rank {rank} had threads on CPUs {found}, planned one on each of {planned}",
    "thread-unplanned": "thread {thread} is not one of the {threads} planned threads",
    "threads-silent": "{reported} of {threads} threads reported their CPU",
    "thread-cpus": "thread {thread} ran on CPUs {found}, planned on {planned}",
    "not-in-command": "not in the printed commands (unknown name, or no literal value): {names}",
    # records: conditions of a node
    "state-not-proven": "the state of {node} is not proven: {file} has no report of the job",
    "state-missing": "the state of {node} is not proven: {file} is missing (proofmark stage "
    "collect)",
    "mode-without-boot": "{node}: mode {mode} is not proven: no probe before or after the step "
    "reports the boot",
    "mode-of-other-boot": "{node}: mode {mode} is not proven: it ran in boot {boot}, the probes "
    "report {boots}",
    "mode-not-readable": "{node}: mode {mode} is not proven: {problem}",
    "mode-not-proven": "{node}: mode {mode} is not proven for boot {boot}; verified in it: {modes}",
    "other-mode": "{node} was in mode {found}, planned in {planned}",
    "other-shape": "{node} reported {found}; mode {mode} has {expected}",
    "other-mount": "{node} had {found} at {path}, planned on {planned}",
    "local-mount": "{node} had {found} at {path}, where most nodes have a file system of a server",
    "counter-rose": "{text}: {counter} +{rise}",
    "counter-changed": "{text}: {counter} {before} → {after}",
    "counter-rose-at": "{text} at {place}: {counter} +{rise}",
    "counter-changed-at": "{text} at {place}: {counter} {before} → {after}",
    "node-busy": "{node} was busy at {time}: {commands}",
    "probe-missing": "{file} is missing",
    "probe-damaged": "{file} is damaged: {problem}",
    # records: files in scratch
    "scratch-unknown": "{file} is missing: it is not known where the program wrote",
    "scratch-elsewhere": "the scratch folder was {found}, planned in {planned}",
    "scratch-empty": "no file appeared in the scratch folder {folder}: the program wrote elsewhere",
    "scratch-mount": "the files of {path} were on {found}, planned on {planned}",
    "scratch-mount-changed": "the files of {path} were on {found}, but the node reported {before} "
    "there before the job; type and source of the file system in the inventory state the intended "
    "one",
    "scratch-link-changed": "the files of {path} were on {found}, below {real}, but the node "
    "reported {before} there before the job; type and source of the file system in the inventory "
    "state the intended one",
    "scratch-same": "the file systems {name} and {other} are the same {found}; source in the "
    "inventory allows this",
    "scratch-files": "{found} of at least {least} files appeared in {folder}",
    "scratch-bytes": "the files in {folder} reached {found} of at least {least} bytes",
    "scratch-failed": "file system of {folder}: {problems}",
    "files-silent": "no answer within {seconds} s",
    "files-said": "{problem}",
    "files-full": "{problem}",
    "scratch-failed-on": "{problem} on {nodes}",
    "scratch-full-on": "{problem} on {nodes}",
    "scratch-worked-on": "{nodes} could write there",
    "layout-unknown": "{file} is missing or empty: the layout of the files is not known",
    "layout-without": "{file} has no {axis}: {text}",
    "layout-other": "files had the {axis} {found}, planned {planned}",
    "read-before-once": "interrupted once before: the nodes may have the files in their page cache",
    "read-before": "interrupted {times} times before: the nodes may have the files in their page "
    "cache",
    # records: loads, copies, networks
    "load-not-started": "the load {case} was not started",
    "load-incomplete": "the load {case} did not start: {began} of {ranks} ranks began",
    "load-ended": "the load {case} ended before the program",
    "load-binding": "the load {case}: {problem}",
    "copies-unknown": "{file}, the start and end of each copy, is missing or damaged",
    "copies-silent": "{reported} of {copies} copies reported when they ran",
    "copies-other": "the output has a value of an unknown copy: {axis} {copy}",
    "copies-apart": "the {copies} copies measured at the same time for {overlap} s of {longest} s, "
    "less than {share}",
    "networks-unread": "the counters of the networks cannot be read: {problem}",
    "networks-unrecorded": "the counters of the networks were not recorded",
    "node-networks-unread": "{node}: the counters of its networks cannot be read: {problem}",
    "node-networks-unrecorded": "{node}: the counters of its networks were not recorded",
    "other-network": "{node}: {network} carried {bytes} MB, and {planned} {intended} MB, of at "
    "least {least} MB to and from the node",
    # jobs
    "job-disturbed": "each of the last {steps} steps was disturbed, by {by}. Stop what disturbs. "
    "Then the same command continues",
    # records: disturbed executions
    "disturbed": "disturbed: {text}",
    "disturber": "{name} ({percent} % of a CPU)",
    "disturber-ended": "processes that ended before they were seen ({percent} % of a CPU)",
    "disturber-hypervisor": "a hypervisor ({percent} % of a CPU)",
    "disturber-outside": "processes that the kit does not see, outside of its namespace "
    "({percent} % of a CPU)",
    "disturbers-unknown": "the other processes",
    "node-disturbed": "disturbed in {disturbed} of {executions} executions by {names}",
    "disturbed-node": "{node}: {text}",
    "disturbed-more": "and {nodes:more node|more nodes}",
    "stolen-ticks": "a hypervisor withheld {share} of the CPU time, more than {limit}",
    "others-ticks": "other processes used {share} of the CPU time, more than {limit}",
    "ranks-got": "the ranks got {share} of their CPUs",
    "stolen": "a hypervisor withheld {share} of a CPU, more than {limit}",
    "others-used": "others used {share} of these CPUs, more than {limit}",
    "thread-waited": "a thread waited {share} of the time, more than {limit}",
    "thread-burst": "a thread waited {share} of a second, more than {limit}",
    "other-processes": "other processes: {names}",
    "rate-changed": "disturbed: {metric} changed from {before} to {after} within the repeat, by "
    "{change}, more than {limit}",
    **OUTPUT_MESSAGES,
}


@cache
def added_messages() -> Mapping[str, str]:
    """Return the templates of packages and of sites, by code."""
    added: dict[str, str] = {}
    for table in installed(__name__).values():
        added.update(table.load())
    return added


def template(code: str) -> str:
    """Return the English template of a code.

    Raises:
        KeyError: no table has the code.
    """
    return MESSAGES[code] if code in MESSAGES else added_messages()[code]
