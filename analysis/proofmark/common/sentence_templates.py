"""The sentences of all rooms that a report shows: reasons, faults, causes, with their fields.

A sentence is compared with these templates to find its translation (`proofmark.common.sentences`).
A field takes a value; its own translation is used if it is a sentence of this list. A field whose
name begins with ``text`` takes only a text that has a translation.
"""

from __future__ import annotations

TEMPLATES: tuple[str, ...] = (
    # judge: comparison with references
    "{ratio} × {name} ({value}) is at least {limit}",
    "{ratio} × {name} ({value}) is not at least {limit}",
    "{ratio} × {name} ({value}) is at most {limit}",
    "{ratio} × {name} ({value}) is not at most {limit}",
    "{ratio} × {name} ({value}) is at least {limit} and at most {upper}",
    "{ratio} × {name} ({value}) is not at least {limit} and at most {upper}",
    "median of {repeats} repeats: {text}",
    "{text}; {disturbed} of {repeats} repeats were disturbed and left out",
    "the contract figure",
    "the published figure",
    "the expected figure",
    "the baseline figure",
    "{name} was not measured",
    "{name} is 0",
    "no reference applies",
    "{nodes}: the node's hardware is not known",
    "{text} is not known; the key {key} enables this judgement",
    "{text} is not known ({node} is virtual: {machine}); the key {key} enables this judgement",
    "the AVX frequency of {processor}",
    "the nominal frequency of {processor}",
    "the number of vector units of {processor}",
    "the MCDRAM of {processor}",
    "the number of memory channels of {processor}",
    "the speed of any memory module of {node}",
    "the speed of a memory module of {node}",
    "the link of {node} ({rates})",
    "{node}: the run may use only a part of the processors of the node",
    # judge: the accepted runs of the site
    "the same node in the baseline",
    "the like nodes in the baseline",
    "{ratio} × {name} ({value}): the noise is not known, it was measured once",
    "{ratio} × {name} ({value}); the noise of a value is {noise} %, a change of {change} % is "
    "accepted",
    "{ratio} × {name} ({value}); the noise of a value is {noise} %, a change of {change} % is "
    "accepted; it improved",
    "{ratio} × {name} ({value}); the noise of a value is {noise} %, a change of {change} % is "
    "accepted; the program of imported outputs is not recorded",
    "{ratio} × {name} ({value}); the noise of a value is {noise} %, only a change of more than "
    "{change} % would be seen",
    "baseline {name}: {runs}",
    "less hardware than accepted: {text}",
    "cores: {found}, accepted {accepted}",
    "sockets: {found}, accepted {accepted}",
    "memory: {found}, accepted {accepted}",
    "DIMMs: {found}, accepted {accepted}",
    "NUMA domains: {found}, accepted {accepted}",
    "active ports of the fabric: {found}, accepted {accepted}",
    "library {library} of {program}",
    "BLAS kernel of {program}",
    # judge: provenance that imported outputs lack
    "the firmware mode of the nodes is not recorded",
    "the number of cores of the node is not recorded",
    "the machine, the program and the placement of the figure are not recorded",
    "a parameter that the limit needs is not recorded",
    "the file system that the program used is not recorded",
    "the network between the nodes is not recorded",
    "the hardware of the node is not recorded",
    # judge: past runs, and their traits
    "unfinished: it has no {file}",
    "damaged {file}: it does not end as proofmark writes it",
    "damaged {file}: it has no valid figure",
    "damaged {file}: neither the run id {run} nor the facts of a node have a time",
    "{file} is missing or damaged",
    "a copy of the run in {folder}",
    "{text}: {passed} PASS, {failed} FAIL, {invalid} INVALID, {unjudged} UNJUDGED; {measured} of "
    "{expected} steps measured",
    "program {program}",
    "library {library}",
    # judge: like nodes
    "like its peers: {ratio} × the median of {nodes} like nodes ({value})",
    "like its peers: {ratio} × the median of {nodes} storage targets ({value})",
    "{ratio} × the median of {nodes} like nodes ({value}); at most {accepted} spreads are accepted",
    "{ratio} × the median of {nodes} like nodes ({value}), {deviation} spreads from the "
    "median; at most {accepted} spreads are accepted",
    "{ratio} × the median of {nodes} storage targets ({value}); at most {accepted} spreads are "
    "accepted",
    "{ratio} × the median of {nodes} storage targets ({value}), {deviation} spreads from the "
    "median; at most {accepted} spreads are accepted",
    "{nodes} like nodes: too few for a comparison ({needed} needed)",
    "{nodes} like nodes",
    "{nodes} like nodes, spread {spread} %; finds one {drop} % off in 95 of 100 cases",
    "{nodes} storage targets, spread {spread} %; finds one {drop} % off in 95 of 100 cases",
    "all rounds",
    "the first {minutes} minutes of the run",
    "the median of the like nodes is 0",
    "{nodes} like nodes with a spread of {spread} %: even a node that fails completely would "
    "not be detected",
    "no digits are those of most of {nodes} like nodes",
    "{constant} of {repeated} nodes with repeats repeat their digits: this does not prove that "
    "the program is reproducible; {agreeing} of {nodes} like nodes agree",
    "wrong digits in {runs} of {executions} executions: {values}, but {agreeing} of {nodes} "
    "like nodes compute {digits}; {constant} of {repeated} nodes with repeats repeat their "
    "digits",
    "like its peers: the digits of {agreeing} of {nodes} like nodes",
    "{ratio} × the usual value of {pairs} like pairs ({value}); slow: {element} (confidence "
    "{percent} %)",
    "{ratio} × the first {minutes} minutes of the run; a repeat has a noise of {noise} %, and "
    "a change of {least} % counts",
    # judge: requirements, coverage, links, bad nodes
    "limit of {limit} not evaluated: {text}: {nodes}",
    "limit of {limit} not evaluated: {text}",
    "no step for it runs",
    "its row is missing in the output ({step})",
    "{case} {metric} on {hardware}: {text}",
    "no output has a matching row",
    "{step}: NOT RUN: needs mode {mode}",
    "{step}: NOT NEEDED: {text}",
    "{step}: NOT NEEDED: {reason}",
    "degraded: {nodes} of {all} nodes",
    "{step}, execution {execution}: {apart} of {pairs} pairs measured less than {share} of the "
    "time together with the others, or a clock is wrong: {listed}",
    "{step}, execution {execution}: {unknown} of {pairs} pairs have no times",
    "the node itself: its reported properties are those of its peers",
    "wrong computation without an error message: its processor, caches or memory",
    "slower over time: {text}",
    "{setting} {value}: {bad} of its {nodes} nodes are bad, {all_bad} of all {all_nodes} (p = {p})",
    "{setting} {value}, on {number} of {nodes} nodes",
    "its port or cable loses packets: TCP segments were sent again, {share} of them; {usual} "
    "is the median of {nodes} nodes",
    "storage target {target} of {file_system}: {ratio} × the median of {targets}",
    "file system of {folder}: {problem} on all nodes ({nodes}): {text}",
    "file system of {folder}: {problem} on {nodes}: {text}",
    "no free space or quota",
    "its servers, or the network to them",
    "the client of this node, or its network",
    "the client of these nodes, or its network",
    "the client of this node, or its servers, or the network to them",
    "{text}: {counter} +{rise}",
    "{text}: {counter} {before} → {after}",
    "{text} at {place}: {counter} +{rise}",
    # records: INVALID
    "timed out after {seconds} s (limit {limit} s)",
    "killed by {signal}",
    "exit code {code}",
    "exit code {code} ({program} not found)",
    "exit code {code} ({program} cannot be executed)",
    "exit code {code}: {message}",
    "exit code {code} ({program} not found): {message}",
    "exit code {code} ({program} cannot be executed): {message}",
    "left processes behind: {processes}",
    "the program gave up: {message}",
    "the output names node {node}, the step ran on {nodes}",
    "planned {name} {planned}, the output has {printed}",
    "{metric} {value} {unit} is above the physical bound {bound}: {source}",
    "{metric} {value} {unit} is below the physical bound {bound}: {source}",
    "ran on {node}, planned on {nodes}",
    "rank {rank} reported its binding {times} times",
    "{reported} of {ranks} ranks reported their binding",
    "rank {rank} is not one of the {ranks} planned ranks",
    "rank {rank} ran on CPUs {found}, planned on {planned}",
    "rank {rank} ran on {node}, planned on {planned}",
    "rank {rank} had the memory policy {found}, planned {planned}",
    "rank {rank} had no thread of its own on CPUs {missing}, planned one on each of {planned}",
    "rank {rank} had threads on CPUs {found}, planned one on each of {planned}",
    "thread {thread} is not one of the {threads} planned threads",
    "{reported} of {threads} threads reported their CPU",
    "thread {thread} ran on CPUs {found}, planned on {planned}",
    "{node} was in mode {found}, planned in {planned}",
    "{node}: mode {mode} is not proven: no probe before or after the step reports the boot",
    "{node}: mode {mode} is not proven for boot {boot}; verified in it: {modes}",
    "{node} reported {found}; mode {mode} has {expected}",
    "{node} had {found} at {path}, planned on {planned}",
    "{file} is missing: it is not known where the program wrote",
    "the scratch folder was {found}, planned in {planned}",
    "no file appeared in the scratch folder {folder}: the program wrote elsewhere",
    "{found} of at least {least} files appeared in {folder}",
    "the files in {folder} reached {found} of at least {least} bytes",
    "the load {case} was not started",
    "the load {case} ended before the program",
    "the counters of the networks were not recorded",
    "{node}: the counters of its networks were not recorded",
    "{digests} is damaged",
    "{file} appeared after the step ended",
    "{file} changed after the step ended",
    # records: disturbed executions
    "disturbed: {cause} {share} of the CPU time, more than {limit}",
    "a hypervisor withheld",
    "other processes used",
    "disturbed: {metric} changed from {before} to {after} within the repeat, by {change}, more "
    "than {limit}",
    "disturbed: {text}",
    "disturbed: {node}: {text}",
    "the ranks got {share} of their CPUs",
    "a hypervisor withheld {share} of a CPU, more than {limit}",
    "others used {share} of these CPUs, more than {limit}",
    "a thread waited {share} of the time, more than {limit}",
    "a thread waited {share} of a second, more than {limit}",
    "other processes: {names}",
    "and {nodes} more nodes",
    "{node} was busy at {time}: {commands}",
    "interrupted {times} before: the nodes may have the files in their page cache",
    # jobs
    "job {job}: {text}; {left} of {steps} steps left",
    "job {job}: {state}: {message}; {left} of {steps} steps left",
    "job {job}: without {nodes}",
    "lost a node",
    "lost a node: {nodes}",
    "stopped at its time limit",
    "cancelled by another user",
    "requeued too often",
    "preempted",
    # plan: steps that are not needed
    "runs the command of {step}: {variant} is {choice}",
    "its files are those of {step}: {text}",
    "the search ended: every point repeats the command of another step",
    "the search of {axes} ended: best {best}, {value}; no axis gives a gain of more than "
    "{threshold}; {used} of {points} points measured",
    "the search of {axes} ended: best {best}, {value}; each axis was varied {times} times; "
    "{used} of {points} points measured",
    "the search of {axes} ended: best {best}, {value}; there is no further value; {used} of "
    "{points} points measured",
    "the search of {axes} ended: best {best}, {value}; {last} gives no gain of more than "
    "{threshold}; {used} of {points} points measured",
    "the search of {axes} ended: no point has a valid figure; {used} of {points} points measured",
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
    # claims of papers
    "measured on {systems}; the claim is of {wanted}",
    "figures of {system}",
    "missing: {text}",
    "all {points} points of {sweep}",
    "{missing} of {points} points of {sweep}",
)

WORDS: tuple[str, ...] = (
    # the verdicts, the kinds of references, the origins
    *("PASS", "FAIL", "INVALID", "UNJUDGED"),
    *("contract", "published", "derived", "baseline", "fleet", "expected", "links", "over time"),
    *("measured", "emulated", "predicted", "imported"),
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
    *("NIC driver", "frequency driver", "version", "provider", "build"),
)
"""Words of all rooms that a report shows. A word that equals its translation is not listed."""
