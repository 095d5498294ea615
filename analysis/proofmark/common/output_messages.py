"""The messages about items of a contract, and about outputs that a reader cannot use."""

from __future__ import annotations

from collections.abc import Mapping

OUTPUT_MESSAGES: Mapping[str, str] = {
    # items of a contract
    "items-waived": "{count} waived",
    "items-minor": "{count} minor items missed",
    "item-runs": "{text}, but the item needs {needed} repeats and has {runs}",
    "item-scatter-met": "{text}; the scatter of {runs} repeats is {scatter} %, at most {most} %",
    "item-scatter": "the scatter of {runs} repeats is {scatter} %, not at most {most} %; {text}",
    "item-waived": "{text}; item {number} is waived by {by} on {date}: {why}",
    "item-share": "{text}; {met} of {total} nodes meet the item, and {share} % have to",
    "excused": "{node}: {figure} {value} misses item {number} and is excused: {text}",
    "item-minor": "{text}; item {number} is minor",
    "more-not-auto": "decisions.json has further executions, but the plan is not repeats=auto",
    "more-not-a-step": "decisions.json has further executions of no step that runs again alone",
    "more-over-time": "decisions.json has further executions for more than the time of the plan",
    "option-replaced": "-e {option}={found} replaced {stated} of the inventory",
    "figure-in-doubt": "{text}; not judged: {why}",
    # judge: like pairs of nodes; those of like nodes begin with peers-
    "pairs": "{nodes} like pairs",
    "pairs-alike": "like its peers: {ratio} × the median of {nodes} like pairs ({value})",
    "pairs-noisy": "{ratio} × the median of {nodes} like pairs ({value}), {noise}",
    "pairs-off": "{ratio} × the median of {nodes} like pairs ({value}); at most {accepted} spreads "
    "are accepted",
    "pairs-off-by": "{ratio} × the median of {nodes} like pairs ({value}), {deviation} spreads "
    "from the median; at most {accepted} spreads are accepted",
    "pairs-spread": "{nodes} like pairs, spread {spread} %; finds one {drop} % off in 95 of 100 "
    "cases",
    "pairs-too-good": "too good to be true: {metric} is {ratio} × the median of {nodes} like pairs "
    "({value})",
    "pairs-spike": "{ratio} × the median of {nodes} like pairs ({value}), but not at most other "
    "message sizes: measure again",
    "pairs-few": "{nodes} like pairs: too few for a comparison ({needed} needed)",
    "pairs-zero": "the median of the like pairs is 0",
    "pairs-blind": "{nodes} like pairs with a spread of {spread} %: even a pair that fails "
    "completely would not be detected",
    # adopt: files that are left over
    "adopt-no-pattern": "no pattern of a case",
    "adopt-nodes-mixed": "outputs of {nodes} in one file, and nothing says which is whose",
    "adopt-no-banner": "no banner of a case",
    "adopt-no-node": "no node in its path, in its text or in a job script beside it",
    "adopt-unsure-node": "are they nodes, counts or repeats: {words}? nodes: --node {option}; "
    "otherwise --nodes states the node",
    "adopt-two-answers": "its path names {path}, its text names {text}, as the texts of other "
    "nodes do: --node states that the paths count",
    "adopt-text-counts": "its path or --nodes names {path}, its text names {text}: the text counts",
    "adopt-other-node": "of nodes that -l does not select: {nodes}",
    "adopt-many-patterns": "the files of {case} need {most} patterns or more: --accept adopts all; "
    "a folder of their own needs one pattern",
    "adopt-other-program": "its output of {cases}, which no --case selects",
    "adopt-job-script": "a job script",
    "adopt-io500": "of the IO500 submission {folder}: proofmark io500 FOLDER",
    "packed-damaged": "damaged: {problem}",
    "packed-ratio": "compressed by more than {ratio}: a fault or an attack",
    "packed-large": "more than {megabytes} MiB",
    "archive-large": "too many files or bytes: {files} files are read, the rest is not",
    "archive-headers": "more than {most} headers before one member",
    "archive-header-large": "headers before one member with more than {most} bytes",
    "archive-all-headers": "headers with more than {most} bytes",
    "archive-special": "a link or a special file of an archive",
    "archive-path": "a path that an archive must not have: {problem}",
    # stability runs
    "stability-counts": "{hours} of {wanted} h; jobs: {started} started, {finished} finished, "
    "{invalid} INVALID, {running} running, failed: {failed}",
    "stability-unseen": "nobody looked at the nodes for {unseen} of {hours} h",
    "stability-not-seen": "nobody looked at the nodes in {hours} h, or the scheduler told no state",
    "stability-lines": "{file}: {count} lines are no look at the nodes, or not in order: {lines}",
    "stability-damaged": "the history of jobs is damaged: {text}",
    "stability-weaker": "the run was not that of the contract: {text}",
    "stability-term": "{name}: {found}; the contract: {agreed}",
    "stability-ahead": "stability: {hours} h with {load} % of {nodes} nodes busy: about {jobs} "
    "jobs and {node_hours} node-hours a day; nodes of a job: {sizes}; the time begins again after "
    "a failure by: {causes}",
    "stability-no-item": "stability: no item of the contract limits failures, so that the run is "
    "not judged",
    "stability-impossible": "item {number} cannot be met in this time",
    "stability-risk": "item {number} is met with at most {most} failures: a machine with {good} "
    "expected failures is refused with {producer} % (producer's risk), one with {bad} is accepted "
    "with {consumer} % (consumer's risk)",
    "stability-risk-jobs": "item {number} is met with at most {most} failures of {jobs} jobs: a "
    "machine with {good} expected failures is refused with {producer} % (producer's risk), one "
    "with {bad} is accepted with {consumer} % (consumer's risk)",
    # the acceptance of a site by its runs
    "acceptance-met": "{met} of {total} items met",
    "acceptance-faults": "{count} nodes with a fault that no figure has",
    "acceptance-open": "the evidence of {count} sealed runs is missing",
    "acceptance-more": "the same on {nodes}, with other values",
    "acceptance-no-node": "no run measured {nodes}",
    "acceptance-no-run": "no run measured it",
    "acceptance-imported": "others produced its outputs",
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
    "reader-more-lines": "{problem} (and {lines} more lines)",
    "reader-no-option-size": "{option} {word}: not a size",
    "reader-first-row": "the first row has {bytes} bytes: rows from {least} on are missing",
    "reader-no-row-between": "no row between {least} and {most} bytes",
    "reader-last-row": "the last row has {bytes} of {most} bytes ({option} {word}): truncated",
    "reader-last-row-default": "the last row has {bytes} of {most} bytes (by default): truncated",
    "reader-no-count": "no line has the number of rows",
    "reader-other-count": "{rows} rows, but the program reports {counted}",
    "reader-unconfirmed": "the line that confirms it is missing",
    "reader-broken-line": "broken line {line}",
    "reader-check": "its check is {metric} = {word}",
    "reader-not-row": "not a row of its table: {line}",
    "reader-no-rows": "no row under {titles}",
    "reader-foreign-lines": "{lines} lines of another program in a table, the first is {line}",
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
    "io500-no-result": "no phase in {files}",
    "io500-number": "{file}: {key}: found {found}; accepted: {accepted}",
    "io500-invalid": "the program itself says: {words}",
    "io500-no-phase": "{phase}: not run",
    "io500-short": "{phase}: {seconds} s; at least {least} s are required",
    "io500-stonewall": "{phase}: {option} {word}; at least {least} s are required",
    "io500-option": "{phase}: {option} {word}; {option} {accepted} is required",
    "io500-lacks": "{phase}: without {option}, which is required",
    "io500-forbidden": "{phase}: {option} is not allowed",
    "io500-phase-score": "{phase}: the result file has {printed}, the output of the phase gives "
    "{computed}",
    "io500-score": "{name}: the result file has {printed}, its phases give {computed}",
    "reader-two-values": "two values of {name}: {first} and {second}",
}
