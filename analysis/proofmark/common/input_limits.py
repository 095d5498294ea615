"""The limits of size, depth and number of everything that is read, each with its reason.

A file above a limit is damaged: the step, the node or the file that it belongs to is refused, and
the rest is judged. The limits are far above all real inputs and far below the memory of a node.
"""

from __future__ import annotations

MAX_OUTPUT_BYTES = 64 << 20
"""Bytes of one output of a program. HPL, IOR and IMB on 8,305 nodes print a few MiB."""
MAX_BINDING_BYTES = 256 << 20
"""Bytes of ``binding.json``: 80 bytes for each rank, and 8,305 nodes have 2.3 million threads."""
MAX_NOISE_BYTES = 64 << 20
"""Bytes of ``noise.json``: 700 bytes for each of 8,305 nodes have 6 MiB."""
MAX_RUN_FILE_BYTES = 256 << 20
"""Bytes of a file that the kit wrote: a plan, the programs, the jobs of one node."""
MAX_VERDICT_BYTES = 2 << 30
"""Bytes of ``verdict.json``: 8,305 nodes with 100 figures each have 700 MB."""
MAX_PROBE_BYTES = 16 << 20
"""Bytes of the probe of one node. hwloc's XML of the largest node has 2 MiB."""
MAX_HISTORY_BYTES = 16 << 20
"""Bytes of ``history.jsonl``. A job adds some hundred bytes for each change of its state."""
MAX_SMALL_BYTES = 64 << 10
"""Bytes of ``rc``, ``when.json``, ``ticket.json``, credentials and other files of one line."""
MAX_LAYOUT_BYTES = 16 << 20
"""Bytes of ``layout.txt``: 64 files on 2,000 storage targets, 40 bytes for each stripe: 5 MiB."""
MAX_YAML_BYTES = 4 << 20
"""Bytes of a YAML file. The inventory of 10,000 hosts, one line each, has 1 MiB."""
MAX_DEPTH = 64
"""Nested levels of JSON and YAML. Real files have fewer than 20; Python's stack holds 1,000."""
MAX_YAML_NODES = 1_000_000
"""Values of a YAML file with its aliases expanded: nine lines of aliases stand for 10^9 values."""
MAX_NODES = 200_000
"""Names in one node set. The largest machine has 160,000 nodes."""
MAX_REPEATS = 1000
"""Repeats of a step. Fifty give a median with an interval of one percent."""
MAX_STEPS = 200_000
"""Steps of a plan. A step needs 5 kB; the suite of all cases has 2,000 on the largest machine."""
MAX_ROUNDS = 10_000
"""Rounds of pairs. All pairs of 10,000 nodes need 9,999 rounds."""
MAX_WAIT_S = 366 * 86400
"""Seconds of a time limit or a pause: one year."""
MAX_PARALLEL = 4096
"""Nodes at which the kit works at the same time, and processes of a build. Each is a thread."""
MAX_TARGETS = 100_000
"""Storage targets of a file system. The largest have some thousands."""
MAX_COUNT = 1 << 60
"""Any other number of the inventory. A node has far less memory in bytes."""
MAX_CPUS = 1 << 16
"""Largest number of a CPU, and CPUs in one list. Linux supports 8,192 CPUs on a node."""
MAX_EVIDENCE_FILES = 10_000_000
"""Files of a run that are sealed. A run of 8,437 nodes has 1.3 million."""
MAX_EVIDENCE_BYTES = 64 << 30
"""Bytes of a run that are sealed. A run of 8,437 nodes has 1 GB."""
MAX_FACTS_BYTES = 64 << 20
"""Bytes of the facts of sealed evidence: half a million files that were removed or not read."""
MAX_ARCHIVES = 300
"""Archives of a run. Each is an open file. `stage collect` opens a run three times, and a process
may have 1,024 open files."""
MAX_PATH_BYTES = 8192
"""Bytes of a path in sealed evidence. A path of Linux has 4,096."""
MAX_SIGNED_FILES = 100_000
"""Files of a signed folder. An acceptance of 100 runs with 100 archives each has 10,000."""
MAX_SIGNATURES = 100
"""Signatures of one statement. A contract has two or three parties."""
