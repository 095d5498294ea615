"""Messages of other rooms in the language of the page, and the words that they contain."""

from __future__ import annotations

from proofmark.common.message import English, Message, rendered
from proofmark.common.translation import ENGLISH, language


def localized(text: str) -> str:
    """Return a message of another room in the current language.

    Any other text is of a program or a file. On a page of another language it is `English`.
    """
    if isinstance(text, Message):
        return rendered(text)
    return English(text) if text and language() != ENGLISH else text


WORDS: tuple[str, ...] = (
    # the verdicts, the kinds of references, the origins
    *("PASS", "FAIL", "INVALID", "UNJUDGED", "NO FAULT FOUND"),
    *("contract", "expected", "floor", "baseline", "baseline elsewhere"),
    *("peers", "links", "over time"),
    *("measured", "emulated", "predicted", "imported"),
    # the states of jobs that ended
    *("lost a node", "stopped at its time limit", "cancelled by another user"),
    "its own command was stopped and cancelled it",
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
    *("NIC driver", "frequency driver"),
)
"""Words of all rooms that a report shows. A word that equals its translation is not listed."""
