"""The messages of the package: the code of each, and its English template."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "groups-unknown": "are the nodes of these {count} groups alike, which no measurement connects: "
    "{groups}? yes: a site with one partition (-i, -l); they are compared within each group only",
    "adopt-text-counts": "its path or --nodes names {path}, its text names {text}: the text counts",
    "adopt-other-program": "its output of {cases}, which no --case selects",
    "not-adopted": "adopted.json does not list this output",
    "adopted-unread": "{problem}",
    "adopted-changed": "stdout changed after it was adopted",
    "adopted-for-node": "the output names node {node}, it was adopted for {nodes}",
    "imported-mode": "the firmware mode of the nodes is not recorded",
    "imported-cores": "the number of cores of the node is not recorded",
    "imported-system": "the machine, the program and the placement of the figure are not recorded",
    "imported-parameter": "a parameter that the limit needs is not recorded",
    "imported-file-system": "the file system that the program used is not recorded",
    "imported-network": "the network between the nodes is not recorded",
    "imported-facts": "the hardware of the node is not recorded",
    "edited-copy": "{nodes} have {equal} of {values} values of an output of {case} equal to all "
    "digits: one is an altered copy",
    "same-file": "{nodes} have one output of {case}: its numbers and its times of day are equal",
    "adopted-run": "imported: others produced the outputs",
    "adopted-note": "Imported: others produced the outputs, their provenance is missing",
    "adopted-short": "imported outputs",
    "origin-imported": "imported: outputs that others produced, without their provenance",
    "adopt-no-pattern": "no pattern of a case",
    "adopt-nodes-mixed": "outputs of {nodes} in one file, and nothing says which is whose",
    "adopt-no-banner": "no banner of a case",
    "adopt-no-node": "no node in its path, in its text or in a job script beside it",
    "adopt-unsure-node": "are they nodes, counts or repeats: {words}? nodes: --node {option}; "
    "otherwise --nodes states the node",
    "adopt-two-answers": "its path names {path}, its text names {text}, as the texts of other "
    "nodes do: --node states that the paths count",
    "adopt-other-node": "of nodes that -l does not select: {nodes}",
    "adopt-many-patterns": "the files of {case} need {most} patterns or more: --accept adopts all; "
    "a folder of their own needs one pattern",
    "adopt-job-script": "a job script",
    "packed-ratio": "compressed by more than {ratio}: a fault or an attack",
    "packed-large": "more than {megabytes} MiB",
    "archive-headers": "more than {most} headers before one member",
    "archive-header-large": "headers before one member with more than {most} bytes",
    "archive-all-headers": "headers with more than {most} bytes",
    "packed-damaged": "damaged: {problem}",
    "archive-large": "too many files or bytes: {files} files are read, the rest is not",
    "archive-special": "a link or a special file of an archive",
    "archive-path": "a path that an archive must not have: {problem}",
}
