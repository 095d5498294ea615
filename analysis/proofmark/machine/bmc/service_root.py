"""The vendor of a BMC, from its Redfish service root, which needs no log-in (DSP0266)."""

from __future__ import annotations

from proofmark.common.errors import ProofmarkError
from proofmark.common.text import one_line
from proofmark.machine.bmc.https import Answer, HttpsConnection, tls_context
from proofmark.machine.bmc.json_body import parse
from proofmark.machine.bmc.redirects import follow
from proofmark.machine.outcome import NodeError, Outcome

ROOT = "/redfish/v1/"
TIMEOUT_S = 20.0
SHOWN = 100
"""Limit of a name in characters."""


def vendor_of(address: str, port: int) -> str:
    """Return vendor and product of the BMC at `address`; empty if the service root has neither.

    The certificate is not verified: no secret is sent, and the site has not named its authority
    yet. `Vendor` is a property of the service root since its version 1.5; before, only the keys of
    `Oem` name the vendor.

    Raises:
        NodeError: the BMC does not answer, or the answer is no service root.
    """

    def send(path: str) -> Answer:
        connection = HttpsConnection(address, port, tls_context(None, verify=False), TIMEOUT_S)
        try:
            return connection.request("GET", path, {"Accept": "application/json"}, None)
        finally:
            connection.close()

    try:
        status, _, raw = follow(send, "GET", ROOT, address, port)
        body = parse(raw)
    except (OSError, ProofmarkError) as error:
        found = one_line(f"{type(error).__name__}: {error}")[: 2 * SHOWN]
        raise NodeError(Outcome.NO_ANSWER, f"https://{address}:{port}{ROOT}: {found}") from None
    if status != 200:
        found = f"https://{address}:{port}{ROOT}: status {status}"
        raise NodeError(Outcome.UNEXPECTED, found)
    oem = body.get("Oem")
    names = [body.get("Vendor"), next(iter(oem), "") if isinstance(oem, dict) else ""]
    vendor = next((name for name in names if isinstance(name, str) and name), "")
    product = body.get("Product")
    openbmc = isinstance(oem, dict) and "openbmc" in map(str.lower, oem)
    words = [vendor, product if isinstance(product, str) else "", "OpenBMC" if openbmc else ""]
    return one_line(" ".join(filter(None, words)))[:SHOWN]
