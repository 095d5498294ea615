"""The next step for each kind of problem: a problem and a sentence that says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from proofmark.common.message import joined
from proofmark.common.sentences import localized
from proofmark.common.translation import _, translated
from proofmark.judge.diagnosis.bad_nodes import BadNode
from proofmark.judge.invalid_cause import InvalidCause
from proofmark.judge.results import CONFIRMING, UNCONFIRMED, Result
from proofmark.site.installed_parts import By

MISSING = frozenset(f"hardware-{by}" for by in get_args(By))
"""The codes of faults of nodes with less hardware than stated."""


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def of_node(node: BadNode) -> tuple[str, str]:
    """Return the problem of a bad node, and the next step. Like nodes have the same texts."""
    parts = ", ".join(dict.fromkeys(each.place for each in node.counters if each.place))
    meanings = ", ".join(
        dict.fromkeys(localized(each.meaning) for each in node.counters if each.invalid)
    )
    missing = [fault for fault in node.known if fault.code in MISSING]
    if missing:
        return (
            _capital(localized(joined(missing))),
            _("Replace the parts that are missing. Measure again after that."),
        )
    if node.loss:
        return (
            _("Its port or its cable loses packets"),
            _("Replace the cable, then the port. Measure again after that."),
        )
    if parts:
        return (
            _("Error counters rose in {parts}").format(parts=parts),
            _("Replace the part in {parts}. Measure again after that.").format(parts=parts),
        )
    if meanings:
        return (
            _("Error counters rose: {meanings}").format(meanings=meanings),
            _("Send rma.csv to the vendor. Measure again after the repair."),
        )
    if node.known:
        return (
            _capital(localized(joined(node.known))),
            _("Send rma.csv to the vendor. Measure again after the repair."),
        )
    if node.digits:
        return (
            _("It computes other digits than its peers, without an error message"),
            _("Take the node out of service. Test its processors and its memory."),
        )
    cases = ", ".join(dict.fromkeys(slow.result.record.case for slow in node.slow))
    problem = _("Figures of {cases} are outside the limits").format(cases=cases)
    if node.retest:
        return problem, _again(slow.result.retest_reason for slow in node.slow)
    if node.slower:
        return problem, _("It became slower during the run: check its cooling and its power.")
    if node.causes:
        shared = f"{translated(node.causes[0].trait)} {node.causes[0].value}"
        action = _("The bad nodes share {shared}. Check this first. Measure again after that.")
        return problem, action.format(shared=shared)
    if node.rare_settings:
        action = _("Few nodes have {setting}. Set it as on the others. Measure again after that.")
        return problem, action.format(setting=localized(node.rare_settings[0]))
    return problem, _("Send rma.csv to the vendor. Measure again after the repair.")


def _again(reasons: Iterable[str]) -> str:
    """Return the next step for failures that are measured again for `reasons` (codes)."""
    if UNCONFIRMED not in reasons:
        return _("Measure again before you act: the difference is less than the noise.")
    return _(
        "Measure again before you act: fewer than {number} undisturbed repeats show it."
    ).format(number=CONFIRMING)


def of_failure(result: Result) -> tuple[str, str]:
    """Return the problem of a FAIL figure that no bad node explains, and the next step."""
    record = result.record
    problem = _("{figure} is outside the limits").format(figure=f"{record.case} {record.metric}")
    if result.retest:
        return problem, _again([result.retest_reason])
    missed = next((each for each in result.references if each.outcome == "FAIL"), None)
    if missed and missed.kind == "floor" and "blas_kernel" in record.parameters:
        return problem, _("Compare the kernel of the BLAS with the right one in this report.")
    return problem, _("Compare the settings in the part Provenance with the required ones.")


def of_invalid(cause: InvalidCause) -> str:
    """Return the next step for an INVALID figure with this cause."""
    return _INVALID[cause]()


def _disturbed() -> str:
    return _(
        "Stop these processes. Then run the command below: it repeats only the disturbed steps."
    )


def _counters() -> str:
    return _(
        "Error counters of the node rose. Replace the part that they name, then measure again."
    )


def _unfinished() -> str:
    return _("The program did not end by itself. Read stderr of the step, then measure again.")


def _full() -> str:
    return _("Free some space, or use another scratch folder. Then measure again.")


def _file_system() -> str:
    return _("Check the mounts of the scratch folder on the node. Then measure again.")


def _mode() -> str:
    return _(
        "Verify the firmware mode of the node with `proofmark modes verify`. Then measure again."
    )


def _binding() -> str:
    return _(
        "Check the affinity of the scheduler and of the MPI. Compare the machine with the "
        "inventory: a changed machine needs a new run."
    )


def _unavailable() -> str:
    return _("The program or a library is missing. Check it with `proofmark stage check-programs`.")


def _impossible() -> str:
    return _("The value is faster than the hardware. Check the input and the clock of the node.")


def _network() -> str:
    return _("The traffic did not use the planned network. Check the settings of the MPI.")


def _network_unproven() -> str:
    return _("The counters of the networks are missing. Read the messages of the job.")


def _other() -> str:
    return _("Read stdout and stderr of the step. Remove the cause. Then measure again.")


_INVALID: Mapping[InvalidCause, Callable[[], str]] = {
    InvalidCause.DISTURBED: _disturbed,
    InvalidCause.NO_SPACE: _full,
    InvalidCause.ERROR_COUNTERS: _counters,
    InvalidCause.NO_PROGRAM: _unavailable,
    InvalidCause.NO_END: _unfinished,
    InvalidCause.FILE_SYSTEM: _file_system,
    InvalidCause.MODE: _mode,
    InvalidCause.BINDING: _binding,
    InvalidCause.IMPOSSIBLE: _impossible,
    InvalidCause.NETWORK: _network,
    InvalidCause.NETWORK_UNPROVEN: _network_unproven,
    InvalidCause.OTHER: _other,
}
"""The next step for each cause, in the language of the page."""
