"""Compares a lock with the pinned recipes, by the hashes of Spack itself.

Spack computes two hashes of a spec that it builds. That of the recipe is over the methods of the
recipe, the checksum of the source and the patches. That of the spec is over its version, variants,
target, recipe and dependencies. A comparison takes seconds, because nothing is solved. It does not
notice a directive of a recipe that would change the solution, such as a new dependency, and it
reads no external: these are no part of the hashes.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter

from proofmark.common.strict_model import StrictModel
from proofmark.software.spack.installation import CopiedEnvironment

SCRIPT = Path(__file__).with_name("hash_script.py")


class HashState(StrEnum):
    """How a spec of a lock differs from the pinned recipes."""

    EQUAL = "equal"
    NO_RECIPE = "no-recipe"
    RECIPE = "recipe"
    """The recipe, its source or a patch is another one."""
    SPEC = "spec"
    """The lock was edited: the hash is not that of its content."""


class SpecHashes(StrictModel):
    """The hashes of a spec in a lock, and the same ones computed now.

    Attributes:
        label: name and version.
        locked_spec: the hash of the spec in the lock.
        spec: the hash of the content of the spec in the lock.
        locked_recipe: the hash of the recipe in the lock.
        recipe: the hash of the pinned recipe; None: there is none.
    """

    label: str
    locked_spec: str
    spec: str
    locked_recipe: str
    recipe: str | None

    @property
    def state(self) -> HashState:
        """How the spec differs from the pinned recipes."""
        if self.recipe is None:
            return HashState.NO_RECIPE
        if self.spec != self.locked_spec:
            return HashState.SPEC
        return HashState.EQUAL if self.recipe == self.locked_recipe else HashState.RECIPE


_HASHES = TypeAdapter(tuple[SpecHashes, ...])


def hashes_of_lock(environment: CopiedEnvironment) -> tuple[SpecHashes, ...]:
    """Return the hashes of each spec that the lock in `environment` builds.

    Raises:
        BadInput: Spack failed.
    """
    return _HASHES.validate_json(environment.output_of(SCRIPT))
