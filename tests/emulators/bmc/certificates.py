"""A certificate authority for tests. It signs certificates of BMCs: valid, expired and old ones."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Authority:
    """A certificate authority; `ca` is its file for clients. All BMCs share one key.

    Args:
        folder: of the files.
        identified: whether the certificates have the identifiers of their keys.
        usage: whether the authority has a key usage.
    """

    def __init__(self, folder: Path, *, identified: bool = True, usage: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._bmc_key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "BMC test authority")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        signs = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self._identified = identified
        builder = self._builder(self._name, self._key.public_key(), datetime.now(UTC))
        builder = builder.add_extension(constraints, critical=True)
        if usage:
            builder = builder.add_extension(signs, critical=True)
        certificate = builder.sign(self._key, hashes.SHA256())
        self.ca = folder / "ca.pem"
        self.ca.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        self.key = folder / "key.pem"
        self.key.write_bytes(
            self._bmc_key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        self.key.chmod(0o600)

    def certificate(self, address: str, *, expired: bool = False) -> Path:
        """Write the certificate of a BMC at `address`; return its file."""
        start = datetime.now(UTC) - (60 * DAY if expired else DAY)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
        alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        certificate = (
            self._builder(name, self._bmc_key.public_key(), start)
            .add_extension(alternative, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        path = self._folder / f"{address}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def _builder(
        self, name: x509.Name, key: ec.EllipticCurvePublicKey, start: datetime
    ) -> x509.CertificateBuilder:
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start - DAY)
            .not_valid_after(start + 30 * DAY)
        )
        if not self._identified:
            return builder
        of_issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        own = x509.SubjectKeyIdentifier.from_public_key(key)
        return builder.add_extension(own, critical=False).add_extension(of_issuer, critical=False)
