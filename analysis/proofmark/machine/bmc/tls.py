"""The policy for the certificates of BMCs. It is the same with each version of Python."""

from __future__ import annotations

import ssl

from proofmark.common.errors import bad_input

POLICY = ssl.VerifyFlags.VERIFY_X509_TRUSTED_FIRST | ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
"""All flags of a verification. `ssl.create_default_context` has other ones in each version.

VERIFY_X509_STRICT (default since Python 3.13) is not one of them. It refuses certificates without
an Authority Key Identifier, and authorities without a key usage. BMCs and the authorities of sites
have both. With VERIFY_X509_PARTIAL_CHAIN a certificate of the file is trusted also if it is that
of an intermediate authority or of the BMC itself. Signature, dates and name are always checked.
"""


def tls_context(ca: str | None, *, verify: bool) -> ssl.SSLContext:
    """Return a TLS context that checks BMCs against the file `ca`, or the system's authorities.

    Args:
        ca: file of PEM certificates; None for the authorities of the system.
        verify: False accepts any certificate.

    Raises:
        BadInput: `ca` cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        accepted = "a file of PEM certificates"
        raise bad_input(ca or "--ca", "", f"unreadable: {error}", accepted) from None
    context.verify_flags = POLICY
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
