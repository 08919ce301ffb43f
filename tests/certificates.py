"""Certificates for the tests: an authority, and what it signs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both in PEM."""

    certificate: str
    key: str

    def written(self, directory: Path, name: str) -> tuple[str, str]:
        """Returns the paths of the certificate and of the key."""
        paths = directory / f"{name}.pem", directory / f"{name}.key"
        paths[0].write_text(self.certificate)
        paths[1].write_text(self.key)
        return str(paths[0]), str(paths[1])


class Authority:
    """Signs for localhost, and for no other name of this machine."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("authority of a test")
        made = self._builder("authority of a test", self._key, 365).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        subject = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        made = made.add_extension(subject, critical=False)
        self.certificate = made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()

    def sign(self, name: str = "localhost", *, days: int = 30) -> Pair:
        """Returns a pair for a server or a client. `days`: until when it is valid; negative: it has
        expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = self._builder(name, key, days).add_extension(names, critical=False)
        made = made.add_extension(issuer, critical=False)
        signed = made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Pair(signed, private.decode())

    def _builder(self, name: str, key: ec.EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=60))
            .not_valid_after(now + timedelta(days=days))
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
