"""What the begins of the files in a folder of others show: programs, nodes, job scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from proofmark.cases.banners import Banners
from proofmark.common.nodesets import is_name, unfold
from proofmark.common.parallel import parallel_map
from proofmark.plan.node_names import is_node
from proofmark.runs.output_folder import OutputFolder, text_of

BATCH = 500
"""The number of files that one process looks at at a time."""
ONE_PROCESS = 2000
"""One process looks at at most this number of files: a second costs more time."""
_SCRIPT = re.compile(r"#!.*\n(?:.*\n)*?#(?:SBATCH|PBS|BSUB|\$|FLUX:|COBALT)[ \t]")
_NAMED = re.compile(
    r"""\n[ \t]*(?:
    (?:export\ |declare\ -x\ )?SLURM(?:D_NODENAME|_(?:JOB_|STEP_)?NODELIST)[ \t]*[=:]
    |NodeList=|exec_host[ \t]*=
    |\#SBATCH[ \t]+(?:-w[ \t]?|--nodelist[=\ ])
    |\#PBS[ \t]+-l[ \t]+(?:nodes=|.*\bhost=)|\#BSUB[ \t]+-m[ \t]|\#\$[ \t]+-l[ \t]+(?:h|hostname)=
    |(?:job[ \t]+)?(?:running|executing|started|ran|runs)[ \t]+on[ \t]
     (?:[ \t]*(?:compute[ \t]+)?(?:host|node)s?\b[ \t]*:?)?
    |(?:compute[ \t]+|allocated[ \t]+|execution[ \t]+)?
     (?:host(?:name)?s?|nodes?|node[ \t]?list)[ \t]*[=:]
    )(?P<nodes>.{1,4000})""",
    re.VERBOSE | re.IGNORECASE,
)
"""Lines of schedulers, job scripts and job outputs that name nodes."""


@dataclass(frozen=True)
class OutputHead:
    """What the begin of a file shows.

    Attributes:
        cases: of the programs whose banners it has.
        nodes: the nodes that it names.
        measured: whether the program itself names them, and not a job or a scheduler.
        script: whether it is a job script.
        problem: why it cannot be read; empty if it can.
    """

    cases: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    measured: bool = False
    script: bool = False
    problem: str = ""


def head_of(outputs: OutputFolder, banners: Banners, path: str) -> OutputHead:
    """Return what the begin of one file shows."""
    try:
        text = text_of(outputs.head(path))
    except OSError as error:
        return OutputHead(problem=error.strerror or "unreadable")
    cases = tuple(banners.cases(text))
    printed = []
    for case in cases:
        printed += [name for name in banners.nodes(case, text) if is_name(name)]
    nodes = tuple(dict.fromkeys(printed or _named(text)))
    return OutputHead(cases, nodes, bool(printed), not cases and bool(_SCRIPT.match(text)))


def heads_of(outputs: OutputFolder, banners: Banners) -> dict[str, OutputHead]:
    """Return what the begin of each file shows, by path."""
    paths = list(outputs.paths)
    batches = [paths[first : first + BATCH] for first in range(0, len(paths), BATCH)]
    work = partial(_batch, outputs, banners)
    heads = parallel_map(work, batches, large=len(paths) > ONE_PROCESS)
    every_head = []
    for batch in heads:
        every_head += batch
    return dict(zip(paths, every_head, strict=True))


def _batch(outputs: OutputFolder, banners: Banners, paths: Sequence[str]) -> list[OutputHead]:
    return [head_of(outputs, banners, path) for path in paths]


def _named(text: str) -> Iterator[str]:
    """Yield the nodes that lines of a scheduler, a job script or a job output name."""
    for match in _NAMED.finditer(f"\n{text}"):
        for word in re.split("[ \t+\"']+", match["nodes"].strip(" \t\"'")):
            try:
                names = unfold([re.split("[:/*;]", word.rstrip(",."))[0]])
            except ValueError:
                break
            if not all(map(is_node, names)):
                break
            yield from names
