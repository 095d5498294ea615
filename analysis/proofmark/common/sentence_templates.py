"""Templates."""

from proofmark.common.translation import N_

TEMPLATES: tuple[str, ...] = ()
WORDS: tuple[str, ...] = (N_("PASS"), N_("FAIL"), N_("INVALID"), N_("UNJUDGED"))
