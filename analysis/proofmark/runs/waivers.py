"""``waivers.json``: the items of the contract that a party waived for a run, each signed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from proofmark.cases.vocabulary import Text
from proofmark.common.errors import bad_input
from proofmark.common.files import read_json, write_whole
from proofmark.common.strict_model import StrictModel
from proofmark.common.text import one_line
from proofmark.runs.run_files import RunFiles
from proofmark.runs.ssh_keygen import keygen, run_keygen
from proofmark.site.contract_document import Contract

NAMESPACE = "proofmark-waiver"
"""Namespace of the signature: a signature for another purpose does not verify (ssh-keygen, -n)."""


class Waiver(StrictModel):
    """A party accepts that a run misses an item of the contract.

    Attributes:
        item: the number of the item.
        by: the principal of the signer (ssh-keygen(1), ALLOWED SIGNERS).
        signature: of `line`, as ssh-keygen writes it.
    """

    item: Text
    by: Text
    date: date
    reason: Text
    signature: str = ""

    def line(self, run: str) -> bytes:
        """Return the signed line: it is for one run, item, person, date and reason."""
        unsigned = self.model_copy(update={"reason": one_line(self.reason), "signature": ""})
        return f"{run} {unsigned.model_dump_json()}\n".encode()


class Waivers(StrictModel):
    """The waivers of a run, by the number of the item."""

    items: dict[str, Waiver] = {}


def signed(waiver: Waiver, run: str, key: Path) -> Waiver:
    """Return `waiver` with the signature by the private ssh key in the file `key`.

    Raises:
        BadInput: ssh-keygen refuses, or is not there.
    """
    words = ("-f", str(key), "-n", NAMESPACE)
    signature = keygen("sign", *words, place="--key", content=waiver.line(run))
    return waiver.model_copy(update={"signature": signature})


def read_waivers(files: RunFiles, run: str, contract: Contract | None) -> Mapping[str, Waiver]:
    """Return the waivers of a run by the number of the item; a run without the file has none.

    Raises:
        BadInput: the file is damaged, or a waiver is not signed by one of the contract's signers.
    """
    path = files.waivers
    if contract is None or not os.path.lexists(path):
        return {}
    waivers = read_json(path, Waivers).items
    for waiver in waivers.values():
        check(waiver, run, contract, str(path))
    return waivers


def add_waiver(files: RunFiles, waiver: Waiver) -> None:
    """Add a waiver to those of a run.

    Raises:
        BadInput: the file cannot be read or written.
    """
    path = files.waivers
    known = read_json(path, Waivers).items if os.path.lexists(path) else {}
    changed = Waivers(items={**known, waiver.item: waiver})
    write_whole(path, changed.model_dump_json(indent=1) + "\n")


def check(waiver: Waiver, run: str, contract: Contract, place: str) -> None:
    """Refuse a waiver of an unknown item, or without the signature of one of the signers.

    Raises:
        BadInput: see above; `place` is the file or option that it names.
    """
    numbers = [item.number for item in contract.items]
    if waiver.item not in numbers:
        raise bad_input(place, "item", waiver.item, f"an item: {', '.join(numbers)}")
    with tempfile.TemporaryDirectory() as folder:
        signers, signature = Path(folder, "signers"), Path(folder, "signature")
        signers.write_text("".join(f"{one_line(each)}\n" for each in contract.signers), "utf-8")
        signature.write_text(waiver.signature, "utf-8")
        names = ("-f", str(signers), "-I", waiver.by, "-n", NAMESPACE, "-s", str(signature))
        done = run_keygen("verify", *names, content=waiver.line(run))
    if done.returncode:
        found = f"{waiver.item}: {one_line(done.stderr or done.stdout)}"
        raise bad_input(
            place, "signature", found, f"signed by {waiver.by}, a signer in contract.yml"
        )
